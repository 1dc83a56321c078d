//! Threads that go on while the JVM ends: when the VM does not say their frames any more, nothing is compared
//! with them, and nothing is taken from them.

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};

use crate::running::Running;
use crate::{Test, test};

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let tests_of = |jdk: &'static Jdk| {
        let name = format!("ending::{}", jdk.version);
        let terminated = format!("ending::{}::terminated", jdk.version);
        [
            test(name, jdk == setup.jdk(), move || check(setup, jdk)),
            test(terminated, false, move || {
                terminated_while_it_throws(setup, jdk)
            }),
        ]
    };
    setup.jdks_from_11().flat_map(tests_of).collect()
}

/// Of exceptions that are thrown while the VM ends it does not tell, so the frames that they leave stay in the books.
fn terminated_while_it_throws(setup: &Setup, jdk: &Jdk) -> Checked {
    for _ in 0..2 {
        let java = Java::new(setup, jdk, &format!("ending-terminated-{}", jdk.version))
            .agent("events=alloc+call+exception,verify=1")
            .main(["Throwing"]);
        let java = Running::of(java)?.end()?;
        java.lucce().check(&java.log())?;
        java.clean();
    }
    Ok(())
}

fn check(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("ending-{}", jdk.version))
        .agent("events=alloc=all,verify=1,log=debug")
        .main(["io.lucce.programs.Ending"]);
    for _ in 0..3 {
        let ended = java.run()?.expect(0)?;
        let clean = !ended.stderr.contains("lucce: mismatch");
        ended.ensure(clean, "no trace differs, not even at the very end")?;
        java.lucce().check(&java.log())?;
        // What threads counted while the log was closed has changed no counter behind its checksum.
        let log = java.log().to_string_lossy().into_owned();
        let checked = java.lucce().json(&["check", "--json", &log])?;
        ensure(
            checked["unsealed"] == 0 && checked["damaged"] == false,
            || format!("counters without checksums: {checked}"),
        )?;
    }
    java.clean();
    Ok(())
}
