//! Methods that stay without hooks, because they are too large, because the constant pool is full, or because the agent cannot
//! read the class: whoever enters them, the VM above all, what they call has the JVM's own trace.

use lucce_tests::{COMPILE_PROGRAMS, Checked, Java, Jdk, Setup, ensure};

use crate::{Test, test};

const PROGRAM: &str = "io.lucce.programs.UntouchedEntries";

/// A name, the program's argument, the VM's flags, and the agent's options.
const WAYS: [(&str, &str, &[&str], &str); 7] = [
    ("large", "large", &[], ""),
    (
        "large-comp",
        "large",
        &[COMPILE_PROGRAMS, "-XX:TieredStopAtLevel=1"],
        "",
    ),
    ("full", "full", &[], ""),
    ("unread", "unread", &UNVERIFIED, ""),
    ("app", "large", &["-Dlucce.scope=app"], ",instrument=app"),
    (
        "outside",
        "large",
        &["-Dlucce.scope=generated"],
        ",exclude=io.lucce.programs.generated.*",
    ),
    ("hooked", "hooked", &[], ""),
];

/// The VM reads what it would refuse otherwise.
const UNVERIFIED: [&str; 2] = [
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        for way in &WAYS {
            let name = format!("untouched::{}::{}", jdk.version, way.0);
            let quick = jdk == setup.jdk() && way.0 == "large";
            tests.push(test(name, quick, move || check(setup, jdk, way)));
        }
    }
    tests
}

fn check(
    setup: &Setup,
    jdk: &Jdk,
    &(name, kind, flags, options): &(&str, &str, &[&str], &str),
) -> Checked {
    let java = Java::new(setup, jdk, &format!("untouched-{}-{name}", jdk.version));
    let java = java
        .agent(&format!("events=alloc,verify=1{options}"))
        .flags(flags)
        .flags(["-Xmx400m"])
        .flags([format!("-Dlucce.native={}", setup.natives.display())])
        .main([PROGRAM, kind]);
    let ended = java.run()?.expect(0)?;
    ended.ensure(ended.last_line().starts_with("OK "), "no result")?;
    let log = java.log();
    java.lucce().check(&log)?;
    let stats = java.lucce().stats(&log)?;
    let count = |key: &str| stats["agent"][key].as_u64().unwrap_or(0);
    ensure(count("agent.upcalls_lost") == 0, || {
        format!("frames that the VM enters are lost: {stats}")
    })?;
    let left = count("methods.skipped") + count("classes.skipped");
    // What is out of scope is in no count.
    let must_be_left = !["hooked", "outside"].contains(&name);
    ensure(!must_be_left || left > 0, || {
        format!("no method is without hooks: {stats}")
    })?;
    java.clean();
    Ok(())
}
