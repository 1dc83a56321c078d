//! `calls=on`: which methods are entered and how they end, of leaf methods, too. A program that
//! counts its own entries and exceptions is one oracle; `events=call`, which finds a context for each
//! entry in another way, is the other one.

use std::collections::{BTreeMap, HashMap};

use lucce_callfeed::recorded_code;
use lucce_callgraph::{CallEdge, ContextFrame, MethodId};
use lucce_decoder::{CodeSymbols, Profile};
use lucce_recording::{RecordedStep, Recording};
use lucce_tests::{Checked, Java, Jdk, Setup, ensure};

use crate::entries::{Counts, expected, same};
use crate::{Test, test};

/// With the JDK from which on they run.
const PROGRAMS: [(&str, u32); 4] = [
    ("Counts", 17),
    ("ManyThreads", 17),
    ("ReflectionCalls", 17),
    ("SynchronizedMethods", 17),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let modes: [(&str, &[&str]); 3] = [
        ("default", &[]),
        ("int", &["-Xint", "-Xcheck:jni"]),
        ("c1", &["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]),
    ];
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        for (mode, flags) in modes {
            let quick = jdk == setup.jdk() && mode == "default";
            let name = format!("recorded_calls::{}::{mode}", jdk.version);
            tests.push(test(name, quick, move || own(setup, jdk, mode, flags)));
        }
        for (program, _) in PROGRAMS.iter().filter(|(_, from)| jdk.version >= *from) {
            let name = format!("recorded_calls::{}::{program}", jdk.version);
            tests.push(test(name, false, move || same_entries(setup, jdk, program)));
        }
    }
    tests
}

fn java<'s>(setup: &'s Setup, jdk: &'s Jdk, name: &str, options: &str) -> Java<'s> {
    let name = format!("recorded-calls-{name}-{}", jdk.version);
    Java::new(setup, jdk, &name).agent(&format!("{options},calls=on,calls-limit=1g"))
}

fn open(java: &Java<'_>) -> Result<Recording, String> {
    let calls = java.log().with_extension("lucce.calls");
    let recording = Recording::open(&calls).map_err(|e| e.to_string())?;
    ensure(recording.ended() && !recording.is_cut(), || {
        "the recording has no end".into()
    })?;
    Ok(recording)
}

/// The program's own counts, by method and the line that calls it.
fn own(setup: &Setup, jdk: &Jdk, mode: &str, flags: &[&str]) -> Checked {
    const PROGRAM: &str = "io.lucce.programs.Entries";
    let java = java(setup, jdk, mode, "events=none")
        .flags(flags)
        .main([PROGRAM]);
    let ended = java.run()?.expect(0)?;
    let expected: Counts = ended.stdout.lines().filter_map(expected).collect();
    ended.ensure(expected.len() >= 25, "the program says what to expect")?;
    let recording = open(&java)?;
    let code = recorded_code(&recording);
    let calls = Calls::of(&recording)?;
    let found = calls.by_line(&code);
    same(&expected, &found, "recorded")?;
    calls.exceptions(&code, &expected)?;
    java.clean();
    Ok(())
}

/// Every entry that `events=call` counts is in the recording, in the same context, and no other.
fn same_entries(setup: &Setup, jdk: &Jdk, program: &str) -> Checked {
    let java = java(setup, jdk, program, "events=call");
    let java = java.main([format!("io.lucce.programs.{program}")]);
    java.run()?.expect(0)?;
    let log = Profile::open(java.log()).map_err(|e| e.to_string())?;
    let recorded = Calls::of(&open(&java)?)?.entries;
    let mut logged = Entries::new();
    // Number by number: rows of equal lines would be one, and the frames here are instructions.
    for share in log.events.as_slice() {
        let mut frames = log.decode_frames(share.id).map_err(|e| e.to_string())?;
        // The main thread's end is that of the VM, and of the recording.
        let outermost = frames
            .last()
            .map(|frame| log.code.method_name(frame.method));
        if outermost.is_some_and(|name| name == "java.lang.Thread.exit") {
            continue;
        }
        let entered = frames.remove(0).method;
        *logged.entry((entered, frames)).or_default() += share.count;
    }
    let missing = logged
        .iter()
        .filter(|(key, count)| recorded.get(*key) != Some(*count));
    let missing: Vec<_> = missing
        .map(|(key, count)| show(&log.code, key, *count, recorded.get(key)))
        .collect();
    ensure(missing.is_empty(), || {
        let some = missing.iter().take(5).cloned().collect::<Vec<_>>();
        format!("{} differ, as {}", missing.len(), some.join("\n"))
    })?;
    java.clean();
    Ok(())
}

fn show(
    code: &CodeSymbols,
    (entered, callers): &(MethodId, Vec<ContextFrame>),
    a: u64,
    b: Option<&u64>,
) -> String {
    let callers = callers
        .iter()
        .map(|frame| code.resolve_frame(*frame).to_string());
    let callers: Vec<_> = callers.collect();
    let name = code.method_name(*entered);
    format!("{name}: {a} {b:?}\n  {}", callers.join("\n  "))
}

/// Entered methods and their callers, innermost first.
type Entries = HashMap<(MethodId, Vec<ContextFrame>), u64>;

/// What a recording tells of calls.
#[derive(Default)]
struct Calls {
    entries: Entries,
    /// Frames that returned, and those that an exception ended, by method.
    returned: HashMap<MethodId, u64>,
    thrown: HashMap<MethodId, u64>,
}

impl Calls {
    fn of(recording: &Recording) -> Result<Calls, String> {
        let mut stacks: HashMap<u32, Vec<CallEdge>> = HashMap::new();
        let mut calls = Calls::default();
        for step in recording.steps() {
            let (thread, step) = step.map_err(|damage| damage.to_string())?;
            let stack = stacks.entry(thread.0).or_default();
            match step {
                RecordedStep::Start(_) | RecordedStep::Event(_) => {}
                RecordedStep::Enter(edge) => {
                    stack.push(edge);
                    let callers = stack.iter().rev().filter(|edge| !edge.is_entry());
                    let key = (
                        edge.callee,
                        callers.map(|edge| edge.caller_frame()).collect(),
                    );
                    *calls.entries.entry(key).or_default() += 1;
                }
                RecordedStep::Exit => end(stack, 1, &mut calls.returned),
                RecordedStep::Unwind(frames) => end(stack, frames as usize, &mut calls.thrown),
            }
        }
        Ok(calls)
    }

    fn by_line(&self, code: &CodeSymbols) -> Counts {
        let mut counts = Counts::new();
        for ((entered, callers), count) in &self.entries {
            let Some((caller, callee)) = callers.first().zip(name_of(code, *entered)) else {
                continue;
            };
            let line = i64::from(code.resolve_frame(*caller).line);
            *counts.entry((callee.0, callee.1, line)).or_default() += count;
        }
        counts
    }

    /// Every frame of the program's own methods has an end; an exception ended those that threw one.
    fn exceptions(&self, code: &CodeSymbols, expected: &Counts) -> Checked {
        let mut by_name: BTreeMap<(String, String), [u64; 3]> = BTreeMap::new();
        let entered = self.entries.iter().map(|((method, _), n)| (*method, *n));
        let of = |ends: &HashMap<MethodId, u64>| -> Vec<_> {
            ends.iter().map(|(method, n)| (*method, *n)).collect()
        };
        let all = [entered.collect(), of(&self.returned), of(&self.thrown)];
        for (kind, counts) in all.iter().enumerate() {
            for (method, count) in counts {
                if let Some(name) = name_of(code, *method) {
                    by_name.entry(name).or_default()[kind] += count;
                }
            }
        }
        let mut seen = 0;
        for ((class, method), [entered, returned, thrown]) in &by_name {
            if !class.starts_with("io.lucce.programs.Entries") {
                continue;
            }
            // Each `Failure` that is made is thrown, by the only method that makes them.
            let of_failure = |((class, method, _), _): &(&(String, String, i64), &u64)| {
                class.ends_with("$Failure") && method == "<init>"
            };
            let failures = || expected.iter().filter(of_failure).map(|(_, n)| *n).sum();
            let throws = match method.as_str() {
                "fails" => failures(),
                _ => 0,
            };
            seen += throws;
            let right = *thrown == throws && returned + thrown == *entered;
            ensure(right, || {
                format!(
                    "{class}.{method}: {entered} entered, {returned} returned, {thrown} thrown instead of {throws}"
                )
            })?;
        }
        ensure(seen > 10, || format!("{seen} exceptions"))
    }
}

fn end(stack: &mut Vec<CallEdge>, frames: usize, ends: &mut HashMap<MethodId, u64>) {
    for edge in stack.drain(stack.len() - frames..) {
        *ends.entry(edge.callee).or_default() += 1;
    }
}

/// Class and method.
fn name_of(code: &CodeSymbols, method: MethodId) -> Option<(String, String)> {
    let name = code.method_name(method);
    let (class, method) = name.rsplit_once('.')?;
    Some((class.to_owned(), method.to_owned()))
}
