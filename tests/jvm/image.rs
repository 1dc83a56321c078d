//! Instrument everything: each class of the JDK's image is loaded and linked under the agent, and
//! the JVM's verifier looks at what became of it.

use std::time::Duration;

use lucce_tests::{Checked, Java, Jdk, Setup};

use crate::{Test, test};

const LIMIT: Duration = Duration::from_secs(900);

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let tests = setup.jdks_from_11().map(|jdk| {
        let name = format!("image::{}::every_class_verifies", jdk.version);
        test(name, false, move || every_class_verifies(setup, jdk))
    });
    tests.collect()
}

fn every_class_verifies(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("image-{}", jdk.version)).agent("events=alloc");
    let java = java
        .flags(["-Xverify:all", "-Xmx2g", "--add-modules", "ALL-SYSTEM"])
        .main(["LoadAll"])
        .limit(LIMIT);
    let ended = java.run()?.expect(0)?;
    ended.ensure(ended.last_line().starts_with("OK "), "a class was refused")?;
    let log = java.log();
    let stats = java.lucce().stats(&log)?;
    let agent = |key: &str| stats["agent"][key].as_u64().unwrap_or_default();
    println!(
        "JDK {}: {}; rewritten {} classes, passed through {} classes and {} methods",
        jdk.version,
        ended.last_line(),
        agent("classes.rewritten"),
        agent("classes.skipped"),
        agent("methods.skipped"),
    );
    let rewritten = agent("classes.rewritten");
    ended.ensure(
        rewritten > 10_000,
        &format!("only {rewritten} classes were rewritten"),
    )?;
    java.clean();
    Ok(())
}
