//! `events=leak` and `lucce leaks`: a server at work, which leaks in a known line or not at all.

use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lucce_tests::{COMPILE_PROGRAMS, Checked, Ended, Java, Jdk, Lucce, PATIENCE, Setup, ensure};
use serde_json::Value;

use crate::{Test, test};

const PROGRAM: &str = "io.lucce.programs.Leaks";
const LEAKING: [&str; 4] = ["map", "listeners", "thread-local", "class-loader"];
const CLEAN: [&str; 3] = ["cache", "queue", "start-up"];
const COLLECTORS: [&str; 3] = ["Serial", "Parallel", "G1"];
/// A small heap: its old generation is collected a few times.
const HEAP: &str = "-Xmx40m";
/// G1 marks what lives beside the program: 40 times in a run, and a few times only where other programs have the
/// processors. So that what is judged does not depend on that, it is told to collect after so many requests, too.
const ASKED: &str = "-Dcollect=1500";
/// Without hooks.
const AGENT: &str = "events=leak=16k";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in setup.jdks_from_11() {
        for collector in COLLECTORS {
            for kind in LEAKING.into_iter().chain(CLEAN) {
                // One that leaks and one that does not tell whether a collector is understood.
                let one_of_each = ["map", "cache"].contains(&kind);
                if collector != "G1" && !one_of_each {
                    continue;
                }
                let name = format!("leaks::{}::{collector}::{kind}", jdk.version);
                let first = jdk == setup.jdk() && collector == "G1";
                let quick = first && one_of_each;
                tests.push(test(name, quick, move || {
                    judged(setup, jdk, collector, kind)
                }));
            }
        }
        for (collector, kind) in WALKED {
            let name = format!("leaks::{}::walked::{collector}::{kind}", jdk.version);
            let quick = jdk == setup.jdk() && kind == "map";
            tests.push(test(name, quick, move || {
                walked(setup, jdk, collector, kind)
            }));
        }
        for (name, flags) in [
            ("int", &["-Xint", "-XX:+UseParallelGC"][..]),
            ("comp", &[COMPILE_PROGRAMS, "-XX:+UseSerialGC"]),
            ("z", &["-XX:+UseZGC"]),
        ] {
            let name_of = format!("leaks::{}::{name}", jdk.version);
            tests.push(test(name_of, false, move || {
                in_a_mode(setup, jdk, name, flags)
            }));
        }
        let name = format!("leaks::{}::every_allocation", jdk.version);
        tests.push(test(name, false, move || every_allocation(setup, jdk)));
        for way in ["walked", "hooks", "attached"] {
            let name = format!("leaks::{}::none_lost::{way}", jdk.version);
            let quick = jdk == setup.jdk() && way == "hooks";
            tests.push(test(name, quick, move || none_lost(setup, jdk, way)));
        }
        let name = format!("leaks::{}::one_agent_samples", jdk.version);
        tests.push(test(name, false, move || one_samples(setup, jdk)));
        for (collector, kind) in ATTACHED {
            let name = format!("leaks::{}::attached::{collector}::{kind}", jdk.version);
            let quick = jdk == setup.jdk() && kind == "map";
            tests.push(test(name, quick, move || {
                attached(setup, jdk, collector, kind)
            }));
        }
        let name = format!("leaks::{}::attached::detached", jdk.version);
        tests.push(test(name, false, move || detached(setup, jdk)));
        let name = format!("leaks::{}::too_early", jdk.version);
        tests.push(test(name, false, move || too_early(setup, jdk)));
        let name = format!("leaks::{}::watch", jdk.version);
        tests.push(test(name, false, move || watch(setup, jdk)));
    }
    tests
}

/// Collectors and programs that are judged without hooks, too.
const ATTACHED: [(&str, &str); 6] = [
    ("Parallel", "map"),
    ("G1", "listeners"),
    ("Serial", "thread-local"),
    ("G1", "class-loader"),
    ("Parallel", "cache"),
    ("G1", "queue"),
];

/// From the start, and without hooks.
const WALKED: [(&str, &str); 4] = [
    ("G1", "map"),
    ("Parallel", "thread-local"),
    ("G1", "class-loader"),
    ("Serial", "cache"),
];

fn java<'a>(setup: &'a Setup, jdk: &'a Jdk, name: &str, options: &str) -> Java<'a> {
    Java::new(setup, jdk, &format!("leaks-{}-{name}", jdk.version))
        .agent(options)
        .flags([HEAP])
}

fn of_collector(collector: &str) -> Vec<String> {
    let asked = (collector == "G1").then(|| ASKED.to_owned());
    let flags = [format!("-XX:+Use{collector}GC")].into_iter();
    flags.chain(asked).collect()
}

fn judged(setup: &Setup, jdk: &Jdk, collector: &str, kind: &str) -> Checked {
    let java = java(
        setup,
        jdk,
        &format!("{collector}-{kind}"),
        &format!("{AGENT},tracking=lazy"),
    )
    .flags(of_collector(collector))
    .main([PROGRAM, kind]);
    let ended = java.run()?.expect(0)?;
    let log = java.log().to_string_lossy().into_owned();
    let output = java.lucce().run(&["leaks", "--json", &log])?;
    let report = report(&output)?;
    as_expected(&ended, &report, output.status.code())?;
    java.clean();
    Ok(())
}

fn walked(setup: &Setup, jdk: &Jdk, collector: &str, kind: &str) -> Checked {
    let java = java(setup, jdk, &format!("walked-{collector}-{kind}"), AGENT)
        .flags(of_collector(collector))
        .main([PROGRAM, kind]);
    let ended = java.run()?.expect(0)?;
    let log = java.log().to_string_lossy().into_owned();
    let output = java.lucce().run(&["leaks", "--json", &log])?;
    let report = report(&output)?;
    as_expected(&ended, &report, output.status.code())?;
    java.clean();
    Ok(())
}

fn report(output: &Output) -> Result<Value, String> {
    serde_json::from_slice(&output.stdout).map_err(|e| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("no JSON from lucce leaks: {e}\n{errors}")
    })
}

/// The program says what leaks; `lucce leaks` must say the same, that first of all.
fn as_expected(ended: &Ended, report: &Value, code: Option<i32>) -> Checked {
    let leaks = report["leaks"].as_array().ok_or("no list of leaks")?;
    let found: Vec<String> = leaks.iter().map(place).collect();
    let told = || {
        format!(
            "{}\n{found:#?}\n{report:#}\n{}",
            ended.last_line(),
            ended.text()
        )
    };
    match ended.last_line() {
        "clean" => ensure(found.is_empty() && code == Some(0), told)?,
        leak => {
            let first = found.first().is_some_and(|first| first == leak);
            ensure(first && code == Some(1), told)?;
        }
    }
    let old = report["totals"]["old_collections"].as_u64();
    ensure(old >= Some(4) && report["ended"] == true, told)
}

/// As the program says it.
fn place(leak: &Value) -> String {
    let (frame, class) = (&leak["frames"][0], &leak["class"]);
    let (line, of) = (&frame["line"], frame["class"].as_str());
    let class = class.as_str().unwrap_or("?");
    format!("leak {class} {} {line}", of.unwrap_or("?"))
}

/// Under stricter checks and other ways to run Java: it ends, the VM complains of nothing, and every
/// number that was written down decodes.
fn in_a_mode(setup: &Setup, jdk: &Jdk, name: &str, flags: &[&str]) -> Checked {
    let java = java(setup, jdk, name, "events=alloc+leak=16k,verify=97")
        .flags(["-Xcheck:jni", "-Xverify:all"])
        .flags(flags)
        .main([PROGRAM, "map", "1500"]);
    let ended = java.run()?.expect(0)?;
    let text = ended.text();
    ended.ensure(
        !text.contains("FATAL") && !text.contains("JNI call"),
        "no complaints",
    )?;
    java.lucce().check(&java.log())?;
    let log = java.log().to_string_lossy().into_owned();
    let report = java.lucce().json(&["leaks", "--json", &log])?;
    ended.ensure(report["damage"].is_null(), "every number decodes")?;
    let sampled = java.lucce().stats(&log)?;
    ended.ensure(stat(&sampled, "leak.sampled") > 1_000, &sampled.to_string())?;
    java.clean();
    Ok(())
}

fn stat(stats: &Value, key: &str) -> u64 {
    stats["agent"][key].as_u64().unwrap_or(0)
}

/// Much more than can be followed: most is let go in a fair way, and the leak is still found.
fn every_allocation(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = java(setup, jdk, "every", "events=leak=0")
        .flags(["-XX:+UseSerialGC"])
        .main([PROGRAM, "listeners", "9000"]);
    let ended = java.run()?.expect(0)?;
    let log = java.log().to_string_lossy().into_owned();
    let output = java.lucce().run(&["leaks", "--json", &log])?;
    let report = report(&output)?;
    as_expected(&ended, &report, output.status.code())?;
    let following = report["totals"]["following"].as_u64();
    let thinned = report["totals"]["thinned"].as_u64();
    ended.ensure(
        following <= Some(1 << 14) && thinned > Some(0),
        "some are let go",
    )?;
    // What is followed stands for all that lives, 27,000 listeners at the end.
    let live = &report["leaks"][0]["live"][2];
    let (objects, bytes) = (live["objects"].as_f64(), live["bytes"].as_f64());
    let of_all = |part: Option<f64>, all: f64| part.is_some_and(|n| n > 0.5 * all && n < 1.2 * all);
    let right = of_all(objects, 27_000.0) && of_all(bytes, 27_000.0 * 144.0);
    ensure(right, || format!("{live:#}"))?;
    java.clean();
    Ok(())
}

/// Each object that the program makes has a context, those of errors that the VM makes, too; what the VM makes for itself, a thread's
/// object before the thread has any frame say, is no object of the program's.
fn none_lost(setup: &Setup, jdk: &Jdk, way: &str) -> Checked {
    let tracking = if way == "hooks" { ",tracking=lazy" } else { "" };
    let options = format!("events=leak=0,verify=7{tracking}");
    let java = Java::new(
        setup,
        jdk,
        &format!("leaks-{}-none-lost-{way}", jdk.version),
    );
    let java = java.flags([HEAP, "-XX:+UseSerialGC"]);
    let (java, ended) = match way {
        "attached" => {
            let java = java.main([PROGRAM, "map", "1500"]);
            let options: Vec<&str> = options.split(',').collect();
            let ended = java.run_beside(|pid| attach(&java, pid, &options))?;
            (java, ended.expect(0)?)
        }
        _ => {
            let java = java.agent(&options).main([PROGRAM, "map", "150"]);
            let ended = java.run()?.expect(0)?;
            (java, ended)
        }
    };
    let stats = java.lucce().stats(java.log())?;
    let is = |key: &str| stat(&stats, key);
    let fine = is("leak.lost") == 0 && is("events.lost") == 0 && is("verify.mismatches") == 0;
    let some = is("leak.sampled") > 10_000 && is("verify.compared") > 1_000;
    ended.ensure(fine && some, &stats.to_string())?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// The agent comes when the program has begun.
fn attached(setup: &Setup, jdk: &Jdk, collector: &str, kind: &str) -> Checked {
    let name = format!("leaks-{}-attached-{collector}-{kind}", jdk.version);
    let java = Java::new(setup, jdk, &name)
        .flags([HEAP])
        .flags(of_collector(collector))
        .main([PROGRAM, kind, "24000"]);
    let ended = java.run_beside(|pid| attach(&java, pid, &["events=leak=16k", "verify=97"]));
    let ended = ended?.expect(0)?;
    let log = java.log().to_string_lossy().into_owned();
    let output = java.lucce().run(&["leaks", "--json", &log])?;
    as_expected(&ended, &report(&output)?, output.status.code())?;
    java.lucce().check(&java.log())?;
    // Objects are followed, and none is counted.
    let stats = java.lucce().stats(&log)?;
    let fine = stat(&stats, "events.recorded") == 0 && stat(&stats, "leak.lost") == 0;
    ended.ensure(
        fine && stat(&stats, "verify.compared") > 0,
        &stats.to_string(),
    )?;
    java.clean();
    Ok(())
}

/// When the agent goes it refers to no object any more, and the log says what it had seen.
fn detached(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("leaks-{}-detached", jdk.version))
        .flags([HEAP, "-Xcheck:jni", "-XX:+UseParallelGC"])
        .main([PROGRAM, "cache", "100000"]);
    let ended = java.run_beside(|pid| {
        attach(&java, pid, &["events=alloc+leak=16k"])?;
        let started = Instant::now();
        while weak_references(jdk, pid)? < 500 {
            ensure(started.elapsed() < PATIENCE, || {
                "few objects are followed".into()
            })?;
        }
        java.lucce().text(0, &["ctl", pid, "detach"])?;
        let left = weak_references(jdk, pid)?;
        ensure(left < 100, || format!("{left} weak references are left"))
    })?;
    let ended = ended.expect(0)?;
    let log = java.log().to_string_lossy().into_owned();
    let stats = java.lucce().stats(&log)?;
    let fine = stats["ended"] == true && stat(&stats, "events.lost") == 0;
    let seen = stat(&stats, "leak.sampled") >= 500 && stat(&stats, "events.recorded") >= 500;
    ended.ensure(fine && seen, &stats.to_string())?;
    java.clean();
    Ok(())
}

/// As soon as the JVM can be attached to.
fn attach(java: &Java, pid: &str, options: &[&str]) -> Checked {
    let log = java.log();
    let log = log.to_string_lossy();
    let mut all = vec!["attach", pid, "--out", &log];
    all.extend(options.iter().flat_map(|option| ["--opt", option]));
    let started = Instant::now();
    loop {
        let output = java.lucce().run(&all)?;
        if output.status.success() {
            return Ok(());
        }
        ensure(started.elapsed() < PATIENCE, || {
            String::from_utf8_lossy(&output.stderr).into_owned()
        })?;
    }
}

/// What the VM says of native code's references.
fn weak_references(jdk: &Jdk, pid: &str) -> Result<u64, String> {
    let output = Command::new(jdk.tool("jcmd"))
        .args([pid, "Thread.print"])
        .output()
        .map_err(|e| format!("cannot start jcmd: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text.split_once("weak refs: ").map(|(_, rest)| rest.trim());
    let digits = number.and_then(|rest| rest.lines().next());
    let found = digits.and_then(|digits| digits.parse().ok());
    found.ok_or_else(|| format!("jcmd says\n{text}"))
}

/// Follows a process by its number from its first seconds to its end.
fn watch(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = java(setup, jdk, "watch", AGENT)
        .flags(["-XX:+UseParallelGC"])
        .main([PROGRAM, "map", "36000"]);
    let mut child = java.spawn()?;
    let output = watched(java.lucce(), child.id());
    let status = child.wait().map_err(|e| e.to_string())?;
    let output = output?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let reports: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let told = || format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    ensure(status.success() && output.status.code() == Some(1), told)?;
    let (Some(first), Some(last)) = (reports.first(), reports.last()) else {
        return Err(told());
    };
    ensure(first["ended"] == false && last["ended"] == true, told)?;
    let found = place(&last["leaks"][0]);
    ensure(
        found.starts_with("leak byte[] io.lucce.programs.Leaks "),
        told,
    )?;
    let early = reports.iter().any(|report| {
        report["ended"] == false && report["leaks"].as_array().is_some_and(|l| !l.is_empty())
    });
    ensure(early, || format!("found before the end\n{}", told()))?;
    java.clean();
    Ok(())
}

/// The log is there once the VM has loaded the agent.
fn watched(lucce: Lucce, process: u32) -> Result<Output, String> {
    let started = Instant::now();
    loop {
        let pid = process.to_string();
        let mut command = lucce.command();
        command.args(["leaks", "--watch", "--interval", "1", "--json", &pid]);
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(|e| format!("cannot start lucce: {e}"))?;
        let early = output.status.code() == Some(2) && output.stdout.is_empty();
        if !early || started.elapsed() > PATIENCE {
            return Ok(output);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Few collections, none of the old generation: nothing is judged, and as many are told as the VM says there were.
fn too_early(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = java(setup, jdk, "too-early", "events=leak")
        .flags(["-Xlog:gc", "-Xmx32m", "-XX:+UseSerialGC"])
        .main(["Forever", "2000000"]);
    let ended = java.run()?.expect(0)?;
    let happened = ended.stdout.matches("Pause Young").count() as u64;
    let log = java.log().to_string_lossy().into_owned();
    let report = java.lucce().json(&["leaks", "--json", &log])?;
    let told = report["totals"]["collections"].as_u64();
    ended.ensure(
        happened > 0 && told == Some(happened),
        &format!("{happened} collections, {told:?} are told"),
    )?;
    let text = java.lucce().text(0, &["leaks", &log])?;
    let is_told = text.contains("it cannot be said that nothing leaks")
        && text.contains(&format!("; {happened} collection"))
        && text.contains(", 0 of the old generation");
    ensure(is_told, || text)?;
    java.clean();
    Ok(())
}

/// The VM lets one agent sample allocations. The second says why it cannot.
fn one_samples(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = java(setup, jdk, "second", AGENT).main([PROGRAM, "map", "100"]);
    let mut arguments = java.arguments();
    let mut other = std::ffi::OsString::from("-agentpath:");
    other.push(&setup.sampling_agent);
    arguments.insert(0, other);
    let ended = java.run_as(&mut Command::new(jdk.tool("java")), &arguments)?;
    let said = ended.agent_lines();
    let why = said
        .iter()
        .filter(|line| line.contains("another agent samples allocations"));
    let told = why.count() == 1;
    ended.ensure(told && ended.code == Some(1), "one line says why")?;
    java.clean();
    Ok(())
}
