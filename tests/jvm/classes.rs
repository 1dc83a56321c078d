//! Class files that no compiler writes: a JVM under the agent makes of each what it makes of it without, and traces
//! are right in those that it runs.

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};

use crate::{Test, test};

/// The program's arguments, the VM's flags, and what is counted.
const WAYS: [(&str, &[&str], &[&str], &str); 5] = [
    ("default", &[], &[], "alloc"),
    ("guarded", &["guarded"], &[], "alloc"),
    ("call", &[], &[], "call+alloc+lock"),
    // Without verification the VM may run anything, so only what it would run with it.
    (
        "unverified",
        &["sound"],
        &[
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:-BytecodeVerificationRemote",
        ],
        "alloc",
    ),
    ("app", &["sound", "guarded"], &[], "alloc,instrument=app"),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        for way in &WAYS {
            let name = format!("classes::{}::{}", jdk.version, way.0);
            let quick = jdk == setup.jdk() && way.0 == "default";
            tests.push(test(name, quick, move || check(setup, jdk, way)));
        }
        let name = format!("classes::{}::near", jdk.version);
        tests.push(test(name, false, || calls_tell_enough(setup, jdk)));
    }
    tests
}

/// Where code calls what the VM enters, too, from the same places again and again, the VM is not asked for all frames.
fn calls_tell_enough(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("classes-{}-near", jdk.version));
    let java = java.main(["io.lucce.programs.LoaderCalls"]);
    let java = java.agent("events=alloc,verify=1");
    java.run()?.expect(0)?;
    let log = java.log();
    java.lucce().check(&log)?;
    let stats = java
        .lucce()
        .json(&["stats", "--json", &log.to_string_lossy()])?;
    let count = |key: &str| stats["agent"][key].as_u64();
    let (all, near) = (count("agent.upcalls"), count("agent.upcalls_near"));
    let enough = all.zip(near).is_some_and(|(all, near)| near > all / 2);
    ensure(enough, || format!("{near:?} of {all:?}: {stats}"))?;
    java.clean();
    Ok(())
}

fn check(
    setup: &Setup,
    jdk: &Jdk,
    &(way, arguments, flags, events): &(&str, &[&str], &[&str], &str),
) -> Checked {
    let java = |name: &str| {
        let folder = format!("classes-{}-{way}-{name}", jdk.version);
        let command = ["io.lucce.programs.OddClasses"].iter().chain(arguments);
        Java::new(setup, jdk, &folder).flags(flags).main(command)
    };
    let plain = java("plain").run()?.expect(0)?;
    ensure(plain.stdout.lines().count() > 20, || plain.text())?;
    let java = java("agent").agent(&format!("events={events},verify=1"));
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
    let stats = java
        .lucce()
        .json(&["stats", "--json", &log.to_string_lossy()])?;
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
