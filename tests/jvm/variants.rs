//! HotSpot's own variants: collectors, layouts of objects and a compiler that no other test has. Every tenth event is compared
//! with the JVM's own stack trace.

use std::path::PathBuf;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};

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
    // An image of a JDK may lack the module by which the VM speaks with such a compiler.
    let jdks = setup.jdks.iter().filter(|jdk| jdk.version == GRAAL);
    for jdk in jdks.filter(|jdk| jdk.has_module("jdk.internal.vm.ci")) {
        let name = format!("variants::{}::graal", jdk.version);
        tests.push(test(name, false, move || graal(setup, jdk)));
    }
    tests
}

/// The JDK that the compiler is for.
const GRAAL: u32 = 25;

/// A compiler that is written in Java, in place of C2: the VM enters it again and again, on threads of its own. It has numbers
/// as the program has.
fn graal(setup: &Setup, jdk: &Jdk) -> Checked {
    let folder = setup.harness.join("graal/target/lib");
    let failed = |e| format!("{}: {e}", folder.display());
    let jars = std::fs::read_dir(&folder).map_err(failed)?;
    let jars: Vec<PathBuf> = jars.flatten().map(|jar| jar.path()).collect();
    let path = std::env::join_paths(jars).map_err(|e| e.to_string())?;
    let java = Java::new(setup, jdk, "variant-graal");
    let java = java
        .agent("events=alloc,verify=10")
        .flags([
            "-XX:+UnlockExperimentalVMOptions",
            "-XX:+EnableJVMCI",
            "-XX:+UseJVMCICompiler",
        ])
        .flags([format!("--upgrade-module-path={}", path.to_string_lossy())])
        .main(["io.lucce.programs.Constructors"]);
    let ended = java.run()?.expect(0)?;
    ended.ensure(ended.last_line().starts_with("OK "), "no result")?;
    java.lucce().check(&java.log())?;
    let log = java.log().display().to_string();
    let asked = [
        "report",
        "--json",
        "--top",
        "1000",
        "--include",
        COMPILER,
        &log,
    ];
    let report = java.lucce().json(&asked)?;
    let count = report["totals"]["count"].as_u64();
    ensure(count > Some(10_000), || {
        format!("{count:?} events of the compiler")
    })?;
    java.clean();
    Ok(())
}

const COMPILER: &str = "jdk.graal.*";

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
