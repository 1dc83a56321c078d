//! Code that is replaced while frames run it, by Java agents and by debuggers: traces have the lines of the code that each frame
//! runs, with hooks and without. And which events `verify=N` compares.

use std::collections::BTreeMap;

use lucce_decoder::Profile;
use lucce_tests::{Checked, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::java_agents::agent_jar;
use crate::{Test, test};

/// Name, events and tracking.
const WAYS: [(&str, &str); 2] = [
    ("walked", "events=exception"),
    ("hooked", "events=exception,tracking=lazy"),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in setup.jdks_from_11() {
        for (way, options) in WAYS {
            let name = |what: &str| format!("replaced::{}::{what}-{way}", jdk.version);
            let quick = jdk == setup.jdk() && way == "walked";
            tests.push(test(name("agent"), quick, move || {
                by_java_agent(setup, jdk, (way, options))
            }));
            if jdk.has_module("jdk.jdi") && jdk.has_module("jdk.jdwp.agent") {
                tests.push(test(name("debugger"), false, move || {
                    by_debugger(setup, jdk, (way, options))
                }));
            }
            tests.push(test(name("brief"), quick, move || {
                brief_threads(setup, jdk, (way, options))
            }));
        }
        // On JDK 11 the log is full before events are dropped.
        if *jdk != setup.jdk_11 {
            let name = format!("replaced::{}::refused", jdk.version);
            tests.push(test(name, false, move || refused(setup, jdk)));
        }
    }
    tests
}

fn java<'a>(setup: &'a Setup, jdk: &'a Jdk, name: &str, options: &str) -> Java<'a> {
    let java = Java::new(setup, jdk, &format!("replaced-{}-{name}", jdk.version));
    java.agent(options)
}

fn by_java_agent(setup: &Setup, jdk: &Jdk, (way, options): (&str, &str)) -> Checked {
    let java = java(
        setup,
        jdk,
        &format!("agent-{way}"),
        &format!("{options},verify=1"),
    );
    let jar = agent_jar(setup, "Replaced")?;
    let java = java.flags([format!("-javaagent:{}", jar.display())]);
    has_same_stacks(&java.main(["Replaced", "agent"]))
}

fn by_debugger(setup: &Setup, jdk: &Jdk, (way, options): (&str, &str)) -> Checked {
    let java = java(
        setup,
        jdk,
        &format!("debugger-{way}"),
        &format!("{options},verify=1"),
    );
    let asm = format!("-Xbootclasspath/a:{}", setup.asm()?.display());
    let java = java.flags([
        "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0",
        "--add-exports=java.base/jdk.internal.vm=ALL-UNNAMED",
        &asm,
    ]);
    has_same_stacks(&java.main(["Replaced", "debugger"]))
}

/// The exceptions' own traces, as the program says them, are those of the log, each as often.
fn has_same_stacks(java: &Java<'_>) -> Checked {
    let ended = java.run()?.expect(0)?;
    let mut expected = BTreeMap::new();
    for line in ended.stdout.lines() {
        if let Some((stack, count)) = line.strip_prefix("STACK ").and_then(|l| l.rsplit_once(' ')) {
            let count: u64 = count.parse().map_err(|_| line.to_owned())?;
            expected.insert(stack.to_owned(), count);
        }
    }
    let mut times = ended
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("OK "));
    let times: u64 = times
        .next()
        .and_then(|times| times.parse().ok())
        .unwrap_or(0);
    ended.ensure(
        times > 84 && expected.len() > 200,
        "the class was replaced again and again",
    )?;
    java.lucce().check(&java.log())?;
    let found = logged_stacks(&Profile::open(java.log()).map_err(|e| e.to_string())?)?;
    let differing: Vec<String> = expected
        .keys()
        .chain(found.keys())
        .filter(|stack| expected.get(*stack) != found.get(*stack))
        .map(|stack| format!("{stack} {:?} {:?}", expected.get(stack), found.get(stack)))
        .collect();
    ensure(differing.is_empty(), || {
        let first: Vec<_> = differing.iter().take(10).cloned().collect();
        format!("{} stacks differ:\n{}", differing.len(), first.join("\n"))
    })?;
    java.clean();
    Ok(())
}

/// Frames of the class that is replaced, of events that happen in it.
fn logged_stacks(log: &Profile) -> Result<BTreeMap<String, u64>, String> {
    let mut stacks = BTreeMap::new();
    for context in log.list_contexts(&|_| ()).list {
        // Handlers of exceptions are counted beside the exceptions.
        if log.is_event_of_kind(context.event, "exception-catch") {
            continue;
        }
        let trace = log.decode_trace(context.id).map_err(|e| e.to_string())?;
        let is_own = |class: &str| class == "Replaced$Swap";
        if trace.frames.first().is_none_or(|leaf| !is_own(&leaf.class)) {
            continue;
        }
        let frames = trace.frames.iter().filter(|frame| is_own(&frame.class));
        let stack: String = frames
            .map(|frame| format!("{}:{};", frame.method, frame.line))
            .collect();
        *stacks.entry(stack).or_default() += context.count;
    }
    Ok(stacks)
}

/// Every N-th event of the run is compared, however few each thread has, and `check` says what was not.
fn brief_threads(setup: &Setup, jdk: &Jdk, (way, options): (&str, &str)) -> Checked {
    const THREADS: u64 = 2000;
    const INTERVAL: u64 = 200;
    let options = format!("{options},verify={INTERVAL}");
    let java = java(setup, jdk, &format!("brief-{way}"), &options);
    let java = java.main(["Brief".to_owned(), THREADS.to_string()]);
    java.run()?.expect(0)?;
    java.lucce().check(&java.log())?;
    let log = java.log().display().to_string();
    let checked = java.lucce().json(&["check", "--json", &log])?;
    let number = |value: &Value| value.as_u64().unwrap_or(u64::MAX);
    let coverage = &checked["coverage"];
    let [events, left_out, threads, untouched] = [
        "events",
        "events_not_compared",
        "threads",
        "threads_not_compared",
    ]
    .map(|key| number(&coverage[key]));
    let compared = number(&checked["compared"]);
    let told = || format!("{checked}");
    // Each of the threads that live at once may have one more or one less.
    const LIVING: u64 = 100;
    ensure(compared.abs_diff(events / INTERVAL) < LIVING, told)?;
    ensure(
        events >= THREADS * 51 && events - left_out == compared,
        told,
    )?;
    ensure((THREADS..THREADS + LIVING).contains(&threads), told)?;
    ensure(
        untouched <= threads && untouched + compared >= threads,
        told,
    )?;
    let text = java.lucce().text(0, &["check", &log])?;
    ensure(
        text.contains("  not compared: ") && text.contains(" threads had no event compared\n"),
        || text.clone(),
    )?;
    java.clean();
    Ok(())
}

/// A log that is full has no number for some events: they are dropped, and none is wrong.
fn refused(setup: &Setup, jdk: &Jdk) -> Checked {
    for events in ["events=alloc", "events=alloc+exception"] {
        let options = format!("{events},verify=1,limit=160k");
        let java = java(setup, jdk, "refused", &options).main(["Refused"]);
        let ended = java.run()?.expect(0)?;
        let log = java.log().display().to_string();
        let checked = java.lucce().run(&["check", "--json", &log])?;
        let said: Value = serde_json::from_slice(&checked.stdout).map_err(|e| e.to_string())?;
        let dropped = said["not_compared"]["dropped"].as_u64();
        let fine = checked.status.code() != Some(1) && said["mismatches"] == 0;
        ended.ensure(fine && dropped > Some(0), &format!("no mismatch: {said}"))?;
        java.clean();
    }
    Ok(())
}
