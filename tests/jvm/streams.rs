//! `stream=on`: the stream holds the very events that the log's counters count, each at its time, in
//! its thread and in the order of the program, whatever becomes of the JVM.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use lucce_decoder::{
    ContextCounters, ContextId, EventStream, EventTypeId, EventWindow, Profile, ThreadId,
    check_same_run, count_streamed_events, count_unstreamed_events, events_path,
};
use lucce_tests::{COMPILE_PROGRAMS, Checked, Java, Jdk, Lucce, Setup, ensure};
use serde_json::Value;

use crate::running::Running;
use crate::{Test, test};

/// Name, flags of the JVM, options of the agent, and what runs.
type Run = (
    &'static str,
    &'static [&'static str],
    &'static str,
    &'static [&'static str],
);

const OWN_EVENTS: &[&str] = &["io.lucce.programs.OwnEvents"];
const RUNS: [Run; 14] = [
    ("own", &[], "events=alloc,verify=50", OWN_EVENTS),
    (
        "int",
        &["-Xint", "-Xcheck:jni"],
        "events=alloc+exception+lock,verify=20",
        &["io.lucce.programs.Thrown"],
    ),
    (
        "comp",
        &[
            COMPILE_PROGRAMS,
            "-XX:-TieredCompilation",
            "-XX:+UseSerialGC",
        ],
        "events=alloc,verify=50",
        OWN_EVENTS,
    ),
    (
        "threads",
        &[],
        "events=alloc+thread,verify=20",
        &["io.lucce.programs.ManyThreads"],
    ),
    (
        "z",
        &["-XX:+UseZGC", "-Xcheck:jni"],
        "events=alloc=all+lock,verify=9",
        &["io.lucce.programs.Locks"],
    ),
    (
        "thrown",
        &[],
        "events=exception,verify=1",
        &["io.lucce.programs.Thrown"],
    ),
    (
        "call",
        &[],
        "events=call+thread,verify=101",
        &["Timed", "300"],
    ),
    ("cct", &[], "tracking=cct,verify=9", OWN_EVENTS),
    (
        "adaptive",
        &[],
        "encoding=adaptive,verify=9",
        &["io.lucce.programs.LibraryCallbacks"],
    ),
    ("app", &[], "instrument=app,verify=1", OWN_EVENTS),
    (
        "virtual",
        &[],
        "events=alloc+lock,verify=20",
        &["io.lucce.programs.VirtualThreads"],
    ),
    (
        "leak",
        &["-Xmx40m"],
        "events=leak=16k",
        &["io.lucce.programs.Leaks", "queue", "2000"],
    ),
    (
        "burst",
        &[],
        "events=alloc,burst=3600s/7200s,verify=50",
        OWN_EVENTS,
    ),
    (
        "bursts",
        &["-Xcheck:jni"],
        "events=alloc+lock+thread,burst=0.2ms/2ms,verify=9",
        &["io.lucce.programs.ManyThreads"],
    ),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        for run in &RUNS {
            if run.0 == "virtual" && jdk.version < 21 {
                continue;
            }
            let is_same_anywhere = ["z", "adaptive", "app"].contains(&run.0);
            if is_same_anywhere && jdk != setup.jdk() {
                continue;
            }
            let quick = jdk == setup.jdk() && run.0 == "own";
            let name = format!("streams::{}::{}", jdk.version, run.0);
            tests.push(test(name, quick, move || as_counted(setup, jdk, run)));
        }
        for kind in ["platform", "virtual"] {
            if kind == "virtual" && jdk.version < 21 {
                continue;
            }
            let name = format!("streams::{}::in_order::{kind}", jdk.version);
            let quick = jdk == setup.jdk();
            tests.push(test(name, quick, move || in_order(setup, jdk, kind)));
        }
        let name = format!("streams::{}::limit", jdk.version);
        tests.push(test(name, false, move || limit(setup, jdk)));
        let name = format!("streams::{}::killed", jdk.version);
        tests.push(test(name, false, move || killed(setup, jdk)));
        let name = format!("streams::{}::stop_and_follow", jdk.version);
        tests.push(test(name, false, move || stop_and_follow(setup, jdk)));
    }
    tests
}

fn java<'a>(setup: &'a Setup, jdk: &'a Jdk, name: &str, options: &str) -> Java<'a> {
    let java = Java::new(setup, jdk, &format!("streams-{}-{name}", jdk.version));
    java.agent(&format!("stream=on,stream-limit=1g,{options}"))
}

fn as_counted(setup: &Setup, jdk: &Jdk, (name, flags, options, main): &Run) -> Checked {
    let java = java(setup, jdk, name, options).flags(*flags).main(*main);
    let ended = java.run()?.expect(0)?;
    let told = ended
        .agent_lines()
        .iter()
        .any(|line| line.contains("events streamed to"));
    ended.ensure(told, "the agent says where the events are")?;
    let log = java.log();
    let text = log.to_string_lossy();
    let stats = java.lucce().stats(&*text)?;
    let kinds = stats["kinds"].as_array().ok_or("no kinds")?;
    same(&log)?;
    if *name == "own" {
        same_report(java.lucce(), &text)?;
    }
    match *name {
        "leak" => leaks_are_told(&log, &stats)?,
        _ => java.lucce().check(&log)?,
    }
    ensure(*name == "leak" || !kinds.is_empty(), || "no events".into())?;
    java.clean();
    Ok(())
}

/// Count and sum of each context, type and thread.
type Shares = BTreeMap<(ContextId, EventTypeId, ThreadId), (u64, u64)>;

fn shares(events: &ContextCounters) -> Shares {
    let all = events.as_slice().iter().filter(|share| share.count > 0);
    all.map(|share| {
        let key = (share.id, share.event, share.thread);
        (key, (share.count, share.value))
    })
    .collect()
}

/// The stream holds what the counters count.
fn same(log: &Path) -> Checked {
    let (profile, stream) = open(log)?;
    let all = EventWindow {
        times: 0..u64::MAX,
        is_thread: &|_| true,
    };
    let (streamed, unknown) = count_streamed_events(&profile, &stream, &all);
    ensure(unknown.is_none(), || format!("{unknown:?}"))?;
    let (mut counted, mut streamed) = (shares(&profile.events), shares(&streamed));
    // Handlers of exceptions are counted beside the exceptions, which the stream has.
    counted.retain(|(_, event, _), _| kind_of(&profile, *event) != "exception-catch");
    streamed.retain(|(_, event, _), _| kind_of(&profile, *event) != "leak");
    for (key, sums) in &counted {
        let found = streamed.remove(key).unwrap_or_default();
        // The VM's own threads may go on when the stream has ended.
        let fine = found == *sums || !is_of_program(&profile, key.0) && found.0 <= sums.0;
        ensure(fine, || {
            let trace = profile.decode_trace(key.0).map(|trace| trace.to_string());
            let kind = kind_of(&profile, key.1);
            format!("{kind}: counted {sums:?}, streamed {found:?}\n{trace:?}")
        })?;
    }
    ensure(streamed.is_empty(), || {
        format!("streamed only: {streamed:?}")
    })
}

fn is_of_program(profile: &Profile, id: ContextId) -> bool {
    let is_own = |class: &str| class.starts_with("io.lucce.") || class == "Timed";
    let trace = profile.decode_trace(id);
    trace.is_ok_and(|trace| trace.frames.iter().any(|frame| is_own(&frame.class)))
}

/// And so says the command.
fn same_report(lucce: Lucce, log: &str) -> Checked {
    for kind in ["plain", "caught", "recursive", "own"] {
        let arguments = ["report", "--top", "0", "--event", kind, log];
        let counted = lucce.text(0, &arguments)?;
        let streamed = lucce.text(0, &[&arguments[..], &["--stream"]].concat())?;
        let rows = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| !line.starts_with("events: "));
            lines.map(str::to_owned).collect()
        };
        let is_same = counted.contains("events") && rows(&counted) == rows(&streamed);
        ensure(is_same, || {
            format!("counted\n{counted}\nstreamed\n{streamed}")
        })?;
    }
    Ok(())
}

/// Followed objects have no counters; the agent says how many it sampled.
fn leaks_are_told(log: &Path, stats: &Value) -> Checked {
    let (profile, stream) = open(log)?;
    let told = stream
        .iter_events()
        .filter(|event| kind_of(&profile, event.event) == "leak")
        .count() as u64;
    let agent = |key: &str| stats["agent"][key].as_u64().unwrap_or(0);
    ensure(agent("leak.thinned") == 0, || {
        "objects were thinned out".into()
    })?;
    let expected = agent("leak.sampled") - agent("leak.lost");
    ensure(told > 100 && told == expected, || {
        format!("{told} sampled objects in the stream, {expected} were followed")
    })
}

fn open(log: &Path) -> Result<(Profile, EventStream), String> {
    let profile = Profile::open(log).map_err(|e| e.to_string())?;
    let stream = EventStream::open(events_path(log)).map_err(|e| e.to_string())?;
    check_same_run(&profile, &stream).map_err(|e| e.to_string())?;
    ensure(
        stream.damage().is_none() && profile.damage.is_none(),
        || format!("{:?} {:?}", stream.damage(), profile.damage),
    )?;
    Ok((profile, stream))
}

fn kind_of(profile: &Profile, event: EventTypeId) -> &str {
    profile.types.get(event).map_or("", |info| &info.kind)
}

/// Each thread's steps are 0, 1, 2, …; and the clock of each event is not before what the program read just
/// before it, nor behind what it read next. How many steps each thread made.
fn steps(profile: &Profile, stream: &EventStream) -> Result<BTreeMap<String, i64>, String> {
    let mut steps: BTreeMap<String, i64> = BTreeMap::new();
    let mut clocks: BTreeMap<String, u64> = BTreeMap::new();
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    for event in stream.iter_events() {
        let thread = stream
            .thread_info(event.thread)
            .ok_or("no such thread")?
            .name
            .clone();
        let read = clocks.entry(thread.clone()).or_default();
        let last = last.entry(thread.clone()).or_default();
        match kind_of(profile, event.event) {
            "clock" => {
                *read = event.value.cast_unsigned();
                ensure(*last <= *read, || {
                    format!("{thread}: event at {last}, then {read}")
                })?;
            }
            "step" => {
                let next = steps.entry(thread.clone()).or_default();
                ensure(event.value == *next, || {
                    format!("{thread}: step {} instead of {next}", event.value)
                })?;
                *next += 1;
            }
            _ => continue,
        }
        ensure(*read <= event.clock, || {
            format!("{thread}: an event at {}, read {read}", event.clock)
        })?;
        *last = event.clock;
    }
    Ok(steps)
}

fn in_order(setup: &Setup, jdk: &Jdk, kind: &str) -> Checked {
    const STEPS: i64 = 5000;
    let steps_text = STEPS.to_string();
    let mut main = vec!["Timed", &steps_text];
    main.extend((kind == "virtual").then_some("virtual"));
    let java = java(
        setup,
        jdk,
        &format!("order-{kind}"),
        "events=alloc,verify=100",
    )
    .main(main);
    java.run()?.expect(0)?;
    let log = java.log();
    let (profile, stream) = open(&log)?;
    let steps = steps(&profile, &stream)?;
    let expected = (0..6).map(|n| (format!("timed-{n}"), STEPS)).collect();
    ensure(steps == expected, || {
        format!("{steps:?} instead of {expected:?}")
    })?;
    let virtuals = stream
        .threads()
        .iter()
        .filter(|thread| thread.is_virtual)
        .count();
    ensure(virtuals == if kind == "virtual" { 6 } else { 0 }, || {
        format!("{virtuals} virtual threads")
    })?;
    same(&log)?;
    shown(java.lucce(), &log)?;
    java.lucce().check(&log)?;
    java.clean();
    Ok(())
}

/// As the command prints them.
fn shown(lucce: Lucce, log: &Path) -> Checked {
    let log = log.to_string_lossy();
    let arguments = ["stream", &*log, "--event", "step", "--thread", "^timed-4$"];
    let csv = lucce.text(0, &[&arguments[..], &["--csv"]].concat())?;
    let lines: Vec<_> = csv.lines().collect();
    ensure(
        lines.len() == 5001 && lines[0].starts_with("time_ns,thread,event"),
        || csv.clone(),
    )?;
    let mut last = 0;
    for (n, line) in lines[1..].iter().enumerate() {
        let fields: Vec<_> = line.split(',').collect();
        let time: u64 = fields[0].parse().map_err(|_| format!("no time: {line}"))?;
        let fine = time >= last && fields[1] == "timed-4" && fields[4] == n.to_string();
        let (told, stack) = line.rsplit_once(',').unwrap_or_default();
        ensure(
            fine && told.ends_with(",Timed.step(Timed.java:53),") && stack.len() == 32,
            || line.to_string(),
        )?;
        last = time;
    }
    let first = lucce.json(&[&arguments[..], &["--json", "--limit", "1", "--traces"]].concat())?;
    let frames = first["frames"].as_array().map_or(0, Vec::len);
    ensure(first["value"] == 0 && frames > 2, || first.to_string())?;
    let time = first["time"].as_u64().unwrap_or(0);
    let before = format!("{time}ns");
    let none = lucce.text(0, &[&arguments[..], &["--to", &before]].concat())?;
    ensure(none.is_empty(), || format!("before {before}: {none}"))
}

/// The program goes on; each thread's beginning is there, and what is not is told.
fn limit(setup: &Setup, jdk: &Jdk) -> Checked {
    const LIMIT: u64 = 256 << 10;
    let java = Java::new(setup, jdk, &format!("streams-{}-limit", jdk.version));
    let java = java
        .agent("stream=on,stream-limit=256k,events=none")
        .main(["Timed", "9000"]);
    let ended = java.run()?.expect(0)?;
    let told = ended
        .agent_lines()
        .iter()
        .any(|line| line.contains("it is full"));
    ended.ensure(told, "the agent says that the stream is full")?;
    let log = java.log();
    let size = fs::metadata(events_path(&log))
        .map_err(|e| e.to_string())?
        .len();
    ended.ensure(size <= LIMIT, &format!("the stream has {size} bytes"))?;
    let (profile, stream) = open(&log)?;
    let steps = steps(&profile, &stream)?;
    let streamed: i64 = steps.values().sum();
    ended.ensure(streamed > 1000, &format!("{steps:?}"))?;
    let counted: u64 = profile
        .events
        .as_slice()
        .iter()
        .map(|share| share.count)
        .sum();
    ensure(counted == 6 * 9000 * 2, || {
        format!("{counted} events counted")
    })?;
    let rest = count_unstreamed_events(&profile, &stream);
    let missing = u64::try_from(6 * 9000 - streamed).unwrap_or(0);
    ensure(rest.get("step") == Some(&missing), || {
        format!("{rest:?}, {missing} steps missing")
    })?;
    let text = java
        .lucce()
        .text(0, &["stream", &log.to_string_lossy(), "--limit", "1"])?;
    ensure(
        text.contains("full since") && text.contains("counted only"),
        || text.clone(),
    )?;
    java.clean();
    Ok(())
}

fn killed(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = java(setup, jdk, "killed", "events=none").main(["Timed", "forever"]);
    let mut jvm = Running::of(java)?;
    jvm.works_on()?;
    // SIGKILL: nothing of the agent runs after it.
    jvm.child
        .kill()
        .and_then(|()| jvm.child.wait())
        .map_err(|e| e.to_string())?;
    let made = jvm.java.printed("stdout");
    // The last line may be cut.
    let made: Vec<_> = made.lines().collect();
    let made = made
        .iter()
        .rev()
        .nth(1)
        .and_then(|line| line.strip_prefix("working "));
    let made: i64 = made.and_then(|made| made.parse().ok()).ok_or("no steps")?;
    let (profile, stream) = open(&jvm.java.log())?;
    let steps = steps(&profile, &stream)?;
    let found = steps.get("main").copied().unwrap_or(0);
    ensure(stream.end_clock().is_none() && found >= made, || {
        format!("{made} steps were made, {found} are in the stream")
    })?;
    let log = jvm.java.log();
    jvm.java
        .lucce()
        .text(0, &["stream", &log.to_string_lossy(), "--limit", "9"])?;
    same(&log)?;
    jvm.java.clean();
    Ok(())
}

/// While the JVM runs: new events are shown as they come, and none after `ctl stop`.
fn stop_and_follow(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = java(setup, jdk, "follow", "events=none").main(["Timed", "forever"]);
    let mut jvm = Running::of(java)?;
    let log = jvm.java.log();
    let text = log.to_string_lossy();
    let before = EventStream::open(events_path(&log))
        .map_err(|e| e.to_string())?
        .event_count();
    let more = (before + 400).to_string();
    let followed = jvm
        .lucce()
        .text(0, &["stream", &text, "--follow", "--limit", &more])?;
    let lines = followed.lines().count() as u64;
    ensure(lines == before + 400, || {
        format!("{lines} lines, {before} events at first")
    })?;
    jvm.ctl(&["stop"])?;
    // An event may have been under way.
    jvm.works_on()?;
    let stopped = || EventStream::open(events_path(&log)).map(|stream| stream.event_count());
    let at_first = stopped().map_err(|e| e.to_string())?;
    same(&log)?;
    jvm.works_on()?;
    let later = stopped().map_err(|e| e.to_string())?;
    ensure(at_first == later && at_first >= before + 400, || {
        format!("{at_first} events when it was stopped, {later} later")
    })?;
    jvm.ctl(&["start"])?;
    jvm.until("events are streamed again", |_| {
        Ok(stopped().map_err(|e| e.to_string())? > later)
    })?;
    jvm.end()?.clean();
    Ok(())
}
