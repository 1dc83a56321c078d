//! `encoding=static,graph=FILE`: contexts are numbered in advance, from an earlier run's log. Whatever
//! that log knows of this run, every number decodes to the JVM's own trace.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use lucce_decoder::Profile;
use lucce_tests::{COMPILE_PROGRAMS, Checked, Java, Jdk, Setup, ensure};

use crate::{Test, test};

/// With the JDK from which on they run.
const PROGRAMS: [(&str, u32); 6] = [
    ("ClassInit", 17),
    ("ClassLoading", 17),
    ("Exceptions", 17),
    ("Lambdas", 17),
    ("ManyThreads", 17),
    ("VirtualThreads", 21),
];

/// Ways to run Java of which one program has to do.
const MODES: [(&str, &[&str]); 2] = [
    ("int", &["-Xint", "-XX:+UseSerialGC"]),
    ("comp", &[COMPILE_PROGRAMS, "-XX:+UseZGC"]),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        let programs = PROGRAMS.iter().filter(|(_, from)| jdk.version >= *from);
        for (program, _) in programs {
            let quick = jdk == setup.jdk() && *program == "Lambdas";
            let name = format!("planned::{}::{program}", jdk.version);
            tests.push(test(name, quick, move || {
                twice(setup, jdk, program, "", &[])
            }));
        }
        for (mode, flags) in MODES {
            let name = format!("planned::{}::{mode}", jdk.version);
            let run = move || twice(setup, jdk, "LibraryCallbacks", mode, flags);
            tests.push(test(name, false, run));
        }
        let name = format!("planned::{}::another_program", jdk.version);
        tests.push(test(name, false, move || another_program(setup, jdk)));
    }
    tests.push(test("planned::bad_graphs", true, || bad_graphs(setup)));
    tests
}

fn java<'a>(setup: &'a Setup, jdk: &'a Jdk, program: &str, run: &str) -> Java<'a> {
    let name = format!("planned-{program}-{}-{run}", jdk.version);
    Java::new(setup, jdk, &name).flags(["-Xverify:all"])
}

fn main_class(program: &str) -> [String; 1] {
    [format!("io.lucce.programs.{program}")]
}

/// The agent's counts of what the plan knew.
fn counts(log: &Path) -> Result<BTreeMap<String, u64>, String> {
    let profile = Profile::open(log).map_err(|e| e.to_string())?;
    let plan = profile.stats.iter().filter_map(|(key, value)| {
        let key = key.strip_prefix("plan.")?;
        Some((key.to_owned(), *value))
    });
    Ok(plan.collect())
}

/// A first run, and a second one that knows it.
fn twice(setup: &Setup, jdk: &Jdk, program: &str, mode: &str, flags: &[&str]) -> Checked {
    let first = java(setup, jdk, program, &format!("{mode}-first"));
    let first = first.flags(flags).agent("").main(main_class(program));
    first.run()?.expect(0)?;
    let graph = first.log();
    // Where code does not change its form, some events of each kind show what all show.
    let verify = if mode.is_empty() { 1 } else { 31 };
    let options = format!("encoding=static,graph={},verify={verify}", graph.display());
    let second = java(setup, jdk, program, &format!("{mode}-second"));
    let second = second
        .flags(flags)
        .agent(&options)
        .main(main_class(program));
    let ended = second.run()?.expect(0)?;
    second.lucce().check(&second.log())?;
    let counts = counts(&second.log())?;
    let known_mostly = counts["calls_known"] * 10 >= counts["calls_asked"] * 9;
    ended.ensure(
        known_mostly && counts["calls_numbered"] > 0,
        &format!("a second run is known: {counts:?}"),
    )?;
    first.clean();
    second.clean();
    Ok(())
}

/// The log of another program does no harm, and the agent says that it was of little use.
fn another_program(setup: &Setup, jdk: &Jdk) -> Checked {
    let other = java(setup, jdk, "Counts", "other").agent("events=none");
    let other = other.main(main_class("Counts"));
    other.run()?.expect(0)?;
    let options = format!("encoding=static,graph={},verify=1", other.log().display());
    let java = java(setup, jdk, "Serialization", "unknown").agent(&options);
    let java = java.main(main_class("Serialization"));
    let ended = java.run()?.expect(0)?;
    java.lucce().check(&java.log())?;
    let lines = ended.agent_lines();
    let told = lines
        .iter()
        .any(|line| line.contains("is it a log of the same program?"));
    ended.ensure(told, "the agent says that the plan was of little use")?;
    let log = java.log();
    let stats = java.lucce().text(0, &["stats", &log.to_string_lossy()])?;
    ensure(stats.contains("plan.calls_known"), || stats)?;
    other.clean();
    java.clean();
    Ok(())
}

/// A file that is no whole log: the JVM does not start, and one line says what is wrong with it.
fn bad_graphs(setup: &Setup) -> Checked {
    let first = java(setup, setup.jdk(), "Lambdas", "bad-first").agent("");
    let first = first.main(main_class("Lambdas"));
    first.run()?.expect(0)?;
    let whole = fs::read(first.log()).map_err(|e| e.to_string())?;
    let mut broken = whole.clone();
    broken[2000] ^= 0x10;
    let foreign =
        b"PK\x03\x04 this is no log at all, but long enough to be one, one would think".to_vec();
    let header_only = whole[..20].to_vec();
    let cases = [
        ("missing", None, "No such file"),
        ("foreign", Some(foreign), "not a lucce log"),
        ("header", Some(header_only), "offset"),
        ("broken", Some(broken), "damaged at offset"),
    ];
    for (name, bytes, says) in cases {
        let java = java(setup, setup.jdk(), "Lambdas", &format!("bad-{name}"));
        let file = first.folder().join(format!("{name}.lucce"));
        if let Some(bytes) = bytes {
            fs::write(&file, bytes).map_err(|e| e.to_string())?;
        }
        let options = format!("encoding=static,graph={}", file.display());
        let java = java.agent(&options).main(main_class("Lambdas"));
        let ended = java.run()?;
        let lines = ended.agent_lines();
        let refused = ended.code.is_some_and(|code| code != 0) && lines.len() == 1;
        ended.ensure(refused, "the JVM does not start, and one line says why")?;
        let named = lines[0].contains(says) && lines[0].contains(&format!("{name}.lucce"));
        ended.ensure(named, &format!("the line says {says}"))?;
        ended.ensure(!java.log().exists(), "no log was made")?;
        java.clean();
    }
    first.clean();
    Ok(())
}
