//! What the agent stands on in the process: addresses, room for variables of threads, an archive of classes that the
//! VM writes, and how long a method its compilers take.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use lucce_tests::{Checked, Ended, Java, Jdk, Setup, ensure};

use crate::{Test, test};

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        let version = jdk.version;
        let mut add = |what: &str, quick, run: fn(&Setup, &Jdk) -> Checked| {
            let name = format!("ground::{version}::{what}");
            tests.push(test(name, quick, move || run(setup, jdk)));
        };
        add("few-addresses", false, few_addresses);
        add("hardly-any-addresses", false, hardly_any);
        add("room-for-other-libraries", true, room);
        add("demanded-archive", false, demanded);
        add("long-methods", true, long_methods);
        if version >= 24 {
            add("archive", true, archive);
            add("few-stacks", false, few_stacks);
        }
    }
    tests
}

/// As under `ulimit -v`.
fn limited(
    java: &Java,
    jdk: &Jdk,
    gigabytes: u64,
    arguments: &[OsString],
) -> Result<Ended, String> {
    let mut shell = Command::new("bash");
    let limit = format!("ulimit -v {}; exec \"$@\"", gigabytes << 20);
    shell.args(["-c", &limit, "bash"]).arg(jdk.tool("java"));
    java.run_as(&mut shell, arguments)
}

/// The agent takes less, says how much, and still records.
fn few_addresses(setup: &Setup, jdk: &Jdk) -> Checked {
    for gigabytes in [30, 16, 8] {
        let java = Java::new(setup, jdk, &format!("few-{gigabytes}-{}", jdk.version));
        let java = java
            .agent("events=alloc,verify=1")
            .flags(["-Xmx1g"])
            .main(["io.lucce.programs.Lambdas"]);
        let ended = limited(&java, jdk, gigabytes, &java.arguments())?.expect(0)?;
        let lines = ended.agent_lines();
        let amount = lines.iter().any(|line| {
            line.contains("shadow stacks") && line.contains(&format!("ulimit -v is {gigabytes} GB"))
        });
        ended.ensure(amount, "the agent says how much it has, and why no more")?;
        java.lucce().check(&java.log())?;
        java.clean();
    }
    Ok(())
}

/// More threads live than there are shadow stacks: events of the others are lost, and no number is wrong.
fn few_stacks(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("few-stacks-{}", jdk.version));
    let java = java
        .agent("events=alloc,verify=3")
        .flags(["-Xint", "-Xmx128m", "-XX:+UseSerialGC"])
        .flags(["-Dlucce.threads=20", "-Dlucce.check.none-allowed=true"])
        .main(["io.lucce.programs.VirtualThreads"]);
    let ended = limited(&java, jdk, 6, &java.arguments())?.expect(0)?;
    ended.ensure(ended.last_line().starts_with("OK "), "no result")?;
    let log = java.log();
    java.lucce().check(&log)?;
    let stats = java.lucce().stats(&log)?;
    ensure(stats["agent"]["events.lost"].as_u64() > Some(0), || {
        format!("each thread has a stack: {stats}")
    })?;
    java.clean();
    Ok(())
}

/// So few that the JVM itself needs all of them, or nearly: it runs as it does without the agent.
fn hardly_any(setup: &Setup, jdk: &Jdk) -> Checked {
    let program = ["io.lucce.programs.Lambdas"];
    let mut compared = 0;
    for (gigabytes, heap) in [(3, 128), (3, 256), (3, 512), (4, 512), (5, 512), (6, 512)] {
        let name = format!("hardly-{gigabytes}-{heap}-{}", jdk.version);
        let plain = Java::new(setup, jdk, &name)
            .flags([format!("-Xmx{heap}m")])
            .main(program);
        if limited(&plain, jdk, gigabytes, &plain.arguments())?.code != Some(0) {
            continue;
        }
        compared += 1;
        let java = Java::new(setup, jdk, &name)
            .agent("events=alloc")
            .flags([format!("-Xmx{heap}m")])
            .main(program);
        let ended = limited(&java, jdk, gigabytes, &java.arguments())?.expect(0)?;
        let told = ended
            .agent_lines()
            .iter()
            .any(|line| line.contains("ulimit -v is"));
        ended.ensure(told, "the agent says what is missing, or how little it has")?;
        java.clean();
    }
    ensure(compared > 0, || {
        "the JVM runs under none of these limits".into()
    })
}

/// Libraries that are loaded later, with variables of threads in the block that all share.
fn room(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("room-{}", jdk.version));
    let java = java.agent("events=alloc");
    let library = setup.room.as_os_str();
    let java = java.main(["Loads".as_ref(), library]);
    let ended = java.run()?.expect(0)?;
    ended.ensure(ended.stdout.contains("loaded"), "the library is loaded")?;
    java.clean();
    Ok(())
}

/// A JVM that must use its archive of classes does not start where classes get hooks, and says so; it starts where they get none.
fn demanded(setup: &Setup, jdk: &Jdk) -> Checked {
    let name = format!("demanded-{}", jdk.version);
    let plain = Java::new(setup, jdk, &name);
    fs::create_dir_all(plain.folder()).map_err(|e| e.to_string())?;
    // An image of a JDK may have no archive of its own.
    let file = plain.folder().join("classes.jsa");
    let file = format!("-XX:SharedArchiveFile={}", file.display());
    let dump = ["-Xshare:dump", &file].map(OsString::from);
    plain
        .run_as(&mut Command::new(jdk.tool("java")), &dump)?
        .expect(0)?;
    let with = |options: Option<&str>| {
        let java = Java::new(setup, jdk, &name);
        let java = match options {
            Some(options) => java.agent(options),
            None => java,
        };
        let java = java.flags(["-Xshare:on", &file]);
        java.main(["io.lucce.programs.Lambdas"]).run()
    };
    with(None)?.expect(0)?;
    let ended = with(Some("events=alloc"))?.expect(1)?;
    let said = ended.text().contains("Unable to use shared archive");
    ended.ensure(said, "the JVM says why it does not start")?;
    with(Some("events=leak"))?.expect(0)?;
    plain.clean();
    Ok(())
}

/// What the VM writes for later JVMs has no hooks, and is whole.
fn archive(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("archive-{}", jdk.version));
    let folder = java.folder().to_owned();
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let cache = folder.join("cache.aot");
    let with = |agent: Option<&str>, flags: &[String]| {
        // The VM takes jars only for its archives.
        let java = Java::new(setup, jdk, &format!("archive-{}", jdk.version));
        let java = match agent {
            Some(options) => java.agent(options),
            None => java,
        };
        let mut arguments = java.arguments();
        arguments.truncate(arguments.len() - 2);
        arguments.extend(flags.iter().map(OsString::from));
        arguments.push("-cp".into());
        arguments.push(setup.programs().into());
        arguments.push("io.lucce.programs.Lambdas".into());
        java.run_as(&mut Command::new(jdk.tool("java")), &arguments)
    };
    let output = format!("-XX:AOTCacheOutput={}", cache.display());
    let ended = with(Some("events=alloc"), std::slice::from_ref(&output))?.expect(0)?;
    let told = ended
        .agent_lines()
        .iter()
        .any(|line| line.contains("-XX:AOTCacheOutput"));
    ended.ensure(told, "the agent says that it stays out")?;
    let size = fs::metadata(&cache).map_or(0, |found| found.len());
    ended.ensure(size > 1 << 20, "the archive is written")?;
    ended.ensure(!java.log().exists(), "there is no log")?;
    // Without the agent the archive is used, or the JVM would not start.
    let uses = format!("-XX:AOTCache={}", cache.display());
    let demands = [uses.clone(), "-XX:AOTMode=on".into()];
    with(None, &demands)?.expect(0)?;
    let ended = with(Some("events=alloc"), &demands)?.expect(1)?;
    let said = ended.text().contains("Unable to use AOT cache");
    ended.ensure(said, "the JVM says why it does not start")?;
    // With it the JVM does without, and is recorded.
    let ended = with(Some("events=alloc"), &[uses])?.expect(0)?;
    ended.ensure(ended.stderr.contains("recorded in"), "the run is recorded")?;

    let configuration = format!("-XX:AOTConfiguration={}", folder.join("a.conf").display());
    let record = ["-XX:AOTMode=record".into(), configuration.clone()];
    with(Some("events=alloc"), &record)?.expect(0)?;
    with(Some("events=alloc,strict=on"), &record)?.expect(1)?;
    // The VM may end before it asks for its agents.
    with(
        Some("events=alloc"),
        &[
            "-XX:AOTMode=create".into(),
            configuration,
            format!("-XX:AOTCache={}", cache.display()),
        ],
    )?
    .expect(0)?;
    java.clean();
    Ok(())
}

/// A method that hooks make longer than HotSpot compiles is compiled all the same, unless the user has said that none is.
fn long_methods(setup: &Setup, jdk: &Jdk) -> Checked {
    const SAID: &str = "-XX:+DontCompileHugeMethods";
    for (name, flags, compiles) in [("long", &[][..], true), ("long-not", &[SAID][..], false)] {
        let java = Java::new(setup, jdk, &format!("{name}-{}", jdk.version));
        let java = java.agent("events=alloc,verify=1").flags(flags);
        let java = java.flags(["-XX:+PrintCompilation"]);
        let java = java.main(["io.lucce.programs.LongMethod"]);
        let ended = java.run()?.expect(0)?;
        let lengths = ended.stdout.lines().filter_map(length_of_compiled);
        let longest = lengths.max();
        ended.ensure(
            longest.is_some_and(|length| length > LONGEST) == compiles,
            &format!("the longest that was compiled: {longest:?}"),
        )?;
        let lines = ended.agent_lines();
        let warned = lines.iter().any(|line| {
            line.contains("generated.Long.run has more than 8000 bytes with its hooks")
                && line.contains("-XX:-DontCompileHugeMethods")
        });
        ended.ensure(warned != compiles, "who said that none is compiled is told")?;
        java.lucce().check(&java.log())?;
        java.clean();
    }
    Ok(())
}

/// Bytes of code, for HotSpot's compilers.
const LONGEST: u32 = 8000;

/// Of the generated method, in a line of `PrintCompilation`.
fn length_of_compiled(line: &str) -> Option<u32> {
    let (_, behind) = line.split_once("generated.Long::run (")?;
    behind.split_once(" bytes)")?.0.parse().ok()
}
