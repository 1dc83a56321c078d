//! `calls=on`: the recording holds the same events in the same contexts as the log, which has
//! another way to them; and it says who started which thread.

use std::collections::HashMap;
use std::path::Path;

use lucce_callfeed::recorded_code;
use lucce_callgraph::{CallEdge, ContextFrame};
use lucce_decoder::{CodeSymbols, Profile};
use lucce_recording::{RecordedStep, Recording};
use lucce_tests::{Checked, Java, Jdk, Setup, ensure};

use crate::{Test, test};

/// With the JDK from which on they run.
const PROGRAMS: [(&str, u32); 17] = [
    ("Counts", 17),
    ("Exceptions", 17),
    ("ClassInit", 17),
    ("ClassLoading", 17),
    ("Constructors", 17),
    ("DefaultMethods", 17),
    ("Finalizers", 17),
    ("Lambdas", 17),
    ("LibraryCallbacks", 17),
    ("ManyThreads", 17),
    ("MethodHandleCalls", 17),
    ("Proxies", 17),
    ("ReflectionCalls", 17),
    ("Serialization", 17),
    ("ShutdownHooks", 17),
    ("SynchronizedMethods", 17),
    ("VirtualThreads", 21),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        for (program, from) in PROGRAMS {
            if jdk.version < from {
                continue;
            }
            let quick = jdk == setup.jdk() && program == "Exceptions";
            tests.push(test(
                format!("recorded::{}::{program}", jdk.version),
                quick,
                move || same_contexts(setup, jdk, program),
            ));
        }
        tests.push(test(
            format!("recorded::{}::overflow", jdk.version),
            false,
            move || overflow(setup, jdk),
        ));
        for encoding in ["adaptive", "cct"] {
            tests.push(test(
                format!("recorded::{}::{encoding}", jdk.version),
                false,
                move || other_encoding(setup, jdk, encoding),
            ));
        }
        tests.push(test(
            format!("recorded::{}::limit", jdk.version),
            false,
            move || limit(setup, jdk),
        ));
    }
    tests
}

fn java<'a>(setup: &'a Setup, jdk: &'a Jdk, program: &str, options: &str) -> Java<'a> {
    let name = format!("recorded-{program}-{}", jdk.version);
    let java = Java::new(setup, jdk, &name).agent(&format!("{options},calls=on,calls-limit=1g"));
    java.main([format!("io.lucce.programs.{program}")])
}

/// How often each context had an event, the frames innermost first.
type Events = HashMap<Vec<ContextFrame>, u64>;

fn same_contexts(setup: &Setup, jdk: &Jdk, program: &str) -> Checked {
    let java = java(setup, jdk, program, "events=alloc");
    java.run()?.expect(0)?;
    let log = Profile::open(java.log()).map_err(|e| e.to_string())?;
    let calls = java.log().with_extension("lucce.calls");
    let recording = Recording::open(&calls).map_err(|e| e.to_string())?;
    ensure(recording.ended() && !recording.is_cut(), || {
        "the recording has no end".into()
    })?;
    let (recorded, logged) = (recorded(&recording)?, logged(&log));
    ensure(recorded == logged, || {
        difference(&recorded_code(&recording), &recorded, &logged)
    })?;
    if program == "ManyThreads" {
        threads_were_started_somewhere(&recording)?;
    }
    if program == "Exceptions" {
        replays(setup, &calls)?;
    }
    java.clean();
    Ok(())
}

fn logged(log: &Profile) -> Events {
    let mut events = Events::new();
    // Number by number: rows of equal lines would be one, and the frames here are instructions.
    for share in log.events.as_slice() {
        if let Ok(frames) = log.decode_frames(share.id) {
            *events.entry(frames).or_default() += share.count;
        }
    }
    events
}

fn recorded(recording: &Recording) -> Result<Events, String> {
    let mut stacks: HashMap<u32, Vec<CallEdge>> = HashMap::new();
    let mut events = Events::new();
    for step in recording.steps() {
        let (thread, step) = step.map_err(|damage| damage.to_string())?;
        let stack = stacks.entry(thread.0).or_default();
        match step {
            RecordedStep::Start(_) => {}
            RecordedStep::Enter(edge) => stack.push(edge),
            RecordedStep::Exit => drop(stack.pop()),
            RecordedStep::Unwind(frames) => stack.truncate(stack.len() - frames as usize),
            RecordedStep::Event(edge) => {
                let callers = stack.iter().rev().filter(|edge| !edge.is_entry());
                let frames = [edge.caller_frame()]
                    .into_iter()
                    .chain(callers.map(|edge| edge.caller_frame()));
                *events.entry(frames.collect()).or_default() += 1;
            }
        }
    }
    Ok(events)
}

/// Every encoding takes the stream of a real program.
fn replays(setup: &Setup, calls: &Path) -> Checked {
    let lucce = lucce_tests::Lucce::new(setup);
    for encoding in ["lucce", "pcce", "dacce"] {
        let calls = calls.as_os_str();
        lucce.text(
            0,
            &[
                "lab".as_ref(),
                "replay".as_ref(),
                calls,
                "--encoding".as_ref(),
                encoding.as_ref(),
            ],
        )?;
    }
    Ok(())
}

/// The program's own threads were started by `main`.
fn threads_were_started_somewhere(recording: &Recording) -> Checked {
    let mut by_main = 0;
    for step in recording.steps() {
        let (_, step) = step.map_err(|damage| damage.to_string())?;
        if let RecordedStep::Start(start) = step
            && let Some(parent) = start.parent
        {
            let parent = recording.threads().get(parent.0 as usize);
            by_main += u32::from(parent.is_some_and(|name| name == "main"));
        }
    }
    ensure(by_main >= 4, || {
        format!("{by_main} threads were started by main")
    })
}

fn difference(code: &CodeSymbols, recorded: &Events, logged: &Events) -> String {
    let differ =
        |(frames, count): &(&Vec<ContextFrame>, &u64)| recorded.get(*frames) != Some(*count);
    let missing = logged.iter().filter(differ);
    let differ = |(frames, count): &(&Vec<ContextFrame>, &u64)| logged.get(*frames) != Some(*count);
    let extra = recorded.iter().filter(differ);
    let show = |(frames, count): (&Vec<ContextFrame>, &u64)| {
        let frames: Vec<String> = frames
            .iter()
            .map(|frame| code.resolve_frame(*frame).to_string())
            .collect();
        format!("{count} × {}", frames.join("\n      "))
    };
    let (many, more) = (missing.clone().count(), extra.clone().count());
    format!(
        "{many} contexts of the log differ, {more} of the recording\n  the log: {}\n  the recording: {}",
        missing.take(3).map(show).collect::<Vec<_>>().join("\n  "),
        extra.take(3).map(show).collect::<Vec<_>>().join("\n  "),
    )
}

/// At the end of a stack the hooks themselves may have no room, so the last frames may differ; the
/// stream is still a possible one.
fn overflow(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = java(setup, jdk, "StackOverflow", "events=none");
    java.run()?.expect(0)?;
    let calls = java.log().with_extension("lucce.calls");
    let recording = Recording::open(&calls).map_err(|e| e.to_string())?;
    let steps = recording
        .steps()
        .try_fold(0u64, |steps, step| step.map(|_| steps + 1));
    let steps = steps.map_err(|damage| damage.to_string())?;
    ensure(recording.ended() && steps > 10_000, || {
        format!("{steps} steps")
    })?;
    java.clean();
    Ok(())
}

/// The other ways to number contexts: every number decodes to the JVM's own trace.
fn other_encoding(setup: &Setup, jdk: &Jdk, encoding: &str) -> Checked {
    let java = Java::new(setup, jdk, &format!("recorded-{encoding}-{}", jdk.version));
    let java = java.agent(&format!("encoding={encoding},verify=3"));
    let java = java.main(["io.lucce.programs.LibraryCallbacks"]);
    java.run()?.expect(0)?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// A recording that reaches its limit says so, is not larger, and is the beginning of the run.
fn limit(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("recorded-limit-{}", jdk.version));
    let java = java
        .agent("calls=on,calls-limit=20k")
        .main(["io.lucce.programs.Counts"]);
    let ended = java.run()?.expect(0)?;
    ensure(
        ended
            .agent_lines()
            .iter()
            .any(|line| line.contains("cut: the limit was reached")),
        || "nobody says that the recording is cut".into(),
    )?;
    let calls = java.log().with_extension("lucce.calls");
    let recording = Recording::open(&calls).map_err(|e| e.to_string())?;
    ensure(recording.is_cut() && recording.size() <= 20 << 10, || {
        format!("{} bytes", recording.size())
    })?;
    recorded(&recording)?;
    java.clean();
    Ok(())
}
