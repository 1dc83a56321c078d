//! Class files that no compiler writes: a JVM under the agent makes of each what it makes of it without, and traces
//! are right in those that it runs.

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};

use crate::{Test, test};

/// The program's arguments, the VM's flags, and the agent's options.
const WAYS: [(&str, &[&str], &[&str], &str); 5] = [
    ("default", &[], &[], "events=alloc,verify=1"),
    ("guarded", &["guarded"], &[], "events=alloc,verify=1"),
    ("call", &[], &[], "events=call+alloc+lock,verify=101"),
    // Without verification the VM may run anything, so only what it would run with it.
    (
        "unverified",
        &["sound"],
        &[
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:-BytecodeVerificationRemote",
        ],
        "events=alloc,verify=1",
    ),
    (
        "app",
        &["sound", "guarded"],
        &[],
        "events=alloc,verify=1,instrument=app",
    ),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in setup.jdks_from_11() {
        for way in &WAYS {
            let name = format!("classes::{}::{}", jdk.version, way.0);
            let quick = jdk == setup.jdk() && way.0 == "default";
            tests.push(test(name, quick, move || check(setup, jdk, way)));
        }
        let name = format!("classes::{}::near", jdk.version);
        tests.push(test(name, false, || calls_tell_enough(setup, jdk)));
        let name = format!("classes::{}::recorder", jdk.version);
        tests.push(test(name, false, || frames_tell_enough(setup, jdk)));
        let name = format!("classes::{}::lost_entries", jdk.version);
        tests.push(test(name, false, || lost_entries_are_told(setup, jdk)));
        let name = format!("classes::{}::early", jdk.version);
        tests.push(test(name, true, || early_classes_run(setup, jdk)));
    }
    tests
}

/// Where code calls what the VM enters, too, from the same places again and again, the VM is not asked for all frames. Where
/// only some classes have hooks, most entries end before anybody needs their caller.
fn calls_tell_enough(setup: &Setup, jdk: &Jdk) -> Checked {
    const RUNS: [(&str, &str, &str); 2] = [
        (
            "io.lucce.programs.LoaderCalls",
            "events=alloc,verify=1",
            "agent.upcalls_near",
        ),
        (
            "FreshLoaders",
            "events=alloc,verify=1,instrument=app,include=FreshLoaders*",
            "agent.upcalls_deferred",
        ),
    ];
    for (main, options, key) in RUNS {
        let name = format!("classes-{}-near-{}", jdk.version, options.len());
        let java = Java::new(setup, jdk, &name).main([main]).agent(options);
        check_asked_stacks(&java, key)?;
    }
    Ok(())
}

/// Most VM entries are in the count `key`, and for few of these the VM is asked later.
fn check_asked_stacks(java: &Java, key: &str) -> Checked {
    java.run()?.expect(0)?;
    let log = java.log();
    java.lucce().check(&log)?;
    let stats = java.lucce().stats(&log)?;
    let count = |key: &str| stats["agent"][key].as_u64();
    let (all, cheap) = (count("agent.upcalls"), count(key));
    let later = count("agent.upcalls_located");
    let enough = all
        .zip(cheap.zip(later))
        .is_some_and(|(all, (cheap, later))| cheap > all / 2 && later < cheap / 2);
    ensure(enough, || format!("{cheap:?} of {all:?}: {stats}"))?;
    java.clean();
    Ok(())
}

const RECORDER: &str = "io.lucce.programs.FlightRecording";

/// Flight Recorder's code calls without hooks, also in errors that the VM makes: the frames alone tell each context.
fn frames_tell_enough(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("classes-{}-recorder", jdk.version));
    let java = java.main([RECORDER]).agent("events=alloc,verify=1");
    let ended = java.run()?.expect(0)?;
    ended.ensure(!ended.text().contains(UNKNOWN_CALLER), "no warning")?;
    let log = java.log();
    java.lucce().check(&log)?;
    let stats = java.lucce().stats(&log)?;
    let count = |key: &str| stats["agent"][key].as_u64();
    let by_frames = count("agent.upcalls_by_frames");
    let enough = by_frames > Some(0) && count("agent.upcalls_lost") == Some(0);
    ensure(enough, || format!("{by_frames:?}: {stats}"))?;
    java.clean();
    Ok(())
}

/// A class of the program's own loader runs before the VM is initialized, and goes on in the same code.
fn early_classes_run(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("classes-{}-early", jdk.version));
    let java = java
        .agent("events=alloc,verify=1")
        .flags(["-Djava.system.class.loader=EarlyLoader"])
        .main(["EarlyLoader"]);
    java.run()?.expect(0)?;
    let log = java.log();
    java.lucce().check(&log)?;
    let log = log.to_string_lossy();
    let wanted = ["--type", ATOMIC_LONG, "--include", "EarlyLoader*"];
    let report = ["report", "--json", "--top", "0", &log];
    let report = java.lucce().json(&[&report[..], &wanted].concat())?;
    // A hundred runs, of which each second one fails. The loader's ten come before the first event.
    ensure(report["totals"]["count"] == 4 * 100 + 50, || {
        report.to_string()
    })?;
    java.clean();
    Ok(())
}

const ATOMIC_LONG: &str = r"java\.util\.concurrent\.atomic\.AtomicLong";
const UNKNOWN_CALLER: &str = "cannot find the caller of";

/// With `tracking=cct` the frames are not enough: the agent warns once, and `stats` and `check` count.
fn lost_entries_are_told(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("classes-{}-lost", jdk.version));
    let java = java.flags(["-Dlucce.check.none-allowed=true"]);
    let java = java.main([RECORDER]).agent("events=alloc,tracking=cct");
    let ended = java.run()?.expect(0)?;
    let warnings = ended.text().matches(UNKNOWN_CALLER).count();
    ended.ensure(warnings == 1, &format!("{warnings} warnings"))?;
    let log = java.log().to_string_lossy().into_owned();
    let lucce = java.lucce();
    let stats = lucce.stats(&log)?;
    let counted = stats["agent"]["agent.upcalls_lost"].as_u64();
    let checked = lucce.json(&["check", "--json", &log])?;
    let told = checked["lost_entries"].as_u64();
    ensure(counted > Some(0) && told == counted, || {
        format!("{counted:?} in stats, {told:?} in check: {stats}")
    })?;
    let text = lucce.text(0, &["check", &log])?;
    ensure(text.contains("from an unknown caller: "), || text.clone())?;
    java.clean();
    Ok(())
}

fn check(
    setup: &Setup,
    jdk: &Jdk,
    &(way, arguments, flags, options): &(&str, &[&str], &[&str], &str),
) -> Checked {
    let java = |name: &str| {
        let folder = format!("classes-{}-{way}-{name}", jdk.version);
        let command = ["io.lucce.programs.OddClasses"].iter().chain(arguments);
        Java::new(setup, jdk, &folder).flags(flags).main(command)
    };
    let plain = java("plain").run()?.expect(0)?;
    ensure(plain.stdout.lines().count() > 20, || plain.text())?;
    let java = java("agent").agent(options);
    let ended = java.run()?.expect(0)?;
    ensure(plain.stdout == ended.stdout, || {
        format!(
            "without the agent:\n{}\nwith it:\n{}",
            plain.stdout,
            ended.text()
        )
    })?;
    let log = java.log();
    java.lucce().text(0, &["check", &log.to_string_lossy()])?;
    let stats = java.lucce().stats(&log)?;
    let text = stats.to_string();
    for none in [r#""events.lost":0"#, r#""agent.upcalls_lost":0"#] {
        ensure(text.contains(none), || format!("{none}: {text}"))?;
    }
    // Three have no room for a helper.
    let left_out = text.contains(r#""methods.skipped":0"#);
    ensure(!left_out || way == "app", || {
        format!("methods without hooks are counted: {text}")
    })?;
    java.clean();
    Ok(())
}
