//! HotSpot's own variants: collectors and layouts of objects that no other test has. Every tenth event is compared with the
//! JVM's own stack trace.

use lucce_tests::{Checked, Java, Jdk, Setup};

use crate::{Test, test};

/// A name, flags, and the JDKs that have them.
const VARIANTS: [(&str, &[&str], &[u32]); 3] = [
    ("shenandoah", &["-XX:+UseShenandoahGC"], &[17, 25]),
    ("generational-z", &["-XX:+UseZGC"], &[25]),
    ("compact-headers", &["-XX:+UseCompactObjectHeaders"], &[25]),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for (name, flags, versions) in VARIANTS {
        let jdks = setup.jdks.iter();
        for jdk in jdks.filter(|jdk| versions.contains(&jdk.version)) {
            let full = format!("variants::{}::{name}", jdk.version);
            tests.push(test(full, false, move || {
                verified(setup, jdk, (name, flags))
            }));
        }
    }
    tests
}

fn verified(setup: &Setup, jdk: &Jdk, (name, flags): (&str, &[&str])) -> Checked {
    let java = Java::new(setup, jdk, &format!("variant-{}-{name}", jdk.version));
    let java = java
        .agent("events=alloc,verify=10")
        .flags(["-Xmx512m"])
        .flags(flags.iter().copied())
        .main(["io.lucce.programs.Constructors"]);
    let ended = java.run()?.expect(0)?;
    ended.ensure(ended.last_line().starts_with("OK "), "no result")?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}
