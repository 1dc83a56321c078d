//! The run's files: none of another run is touched, and what becomes of them while the JVM runs is told.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};

use crate::running::Running;
use crate::{Test, test};

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = vec![
        test("files::named_by_process_and_time", true, || {
            default_name(setup)
        }),
        test("files::no_log_stays_as_it_is", true, || foreign(setup)),
        test("files::unwritable", true, || unwritable(setup)),
        test("files::owner_only", false, || owner_only(setup)),
        test("files::beside_the_log", false, || beside(setup)),
        test("files::a_copy_replaces_copies_only", false, || {
            copies(setup)
        }),
        test("files::recording_truncated", false, || recording(setup)),
    ];
    for jdk in &setup.jdks {
        let version = jdk.version;
        let mut add = |what: &str, quick, run: fn(&Setup, &Jdk) -> Checked| {
            let name = format!("files::{version}::{what}");
            tests.push(test(name, quick, move || run(setup, jdk)));
        };
        add("children", true, children);
        add("only", false, only);
        add("truncated", true, |setup, jdk| truncated(setup, jdk, "", 0));
        add("truncated-stream", false, |setup, jdk| {
            truncated(setup, jdk, "stream=on,", 0)
        });
        add("truncated-in-part", false, |setup, jdk| {
            truncated(setup, jdk, "", 100_000)
        });
        add("removed", false, removed);
        add("moved", false, moved);
    }
    tests
}

/// All logs in the folder, by name.
fn logs(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let files = fs::read_dir(folder).map_err(|e| e.to_string())?;
    let mut files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
    files.retain(|file| file.extension().is_some_and(|is| is == "lucce"));
    files.sort();
    Ok(files)
}

/// The number of events of each.
fn counts(java: &Java, logs: &[PathBuf]) -> Result<Vec<u64>, String> {
    let count = |log: &PathBuf| {
        let report = java
            .lucce()
            .json(&["report", "--json", &log.to_string_lossy()])?;
        let count = report["totals"]["count"].as_u64();
        count.ok_or_else(|| format!("{}: {report}", log.display()))
    };
    logs.iter().map(count).collect()
}

fn default_name(setup: &Setup) -> Checked {
    let java = Java::new_light(setup, setup.jdk(), "default-name");
    let java = java.bare_agent().main(["io.lucce.programs.Lambdas"]);
    let mut pid = String::new();
    let ended = java.run_beside(|number| {
        pid = number.to_owned();
        Ok(())
    })?;
    let ended = ended.expect(0)?;
    let logs = logs(java.folder())?;
    let [log] = &logs[..] else {
        return Err(format!("one log: {logs:?}"));
    };
    let name = log
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let begin = format!("lucce-{pid}-20");
    ended.ensure(
        name.starts_with(&begin) && ended.stderr.contains(&name),
        &name,
    )?;
    java.clean();
    Ok(())
}

/// A JVM and those that it starts are given one name: each has a log of its own, as has the next run.
fn children(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new_light(setup, jdk, &format!("children-{}", jdk.version));
    let java = java.main(["Children", "3"]);
    let options = format!(
        "-agentpath:{}=out=all.lucce,events=alloc",
        setup.agent.display()
    );
    for run in 1..=2 {
        let mut command = Command::new("env");
        command
            .arg(format!("JAVA_TOOL_OPTIONS={options}"))
            .arg(jdk.tool("java"));
        let ended = java.run_as(&mut command, &java.arguments())?.expect(0)?;
        let fine = ended.stdout.matches("child ended with 0").count();
        ended.ensure(fine == 3, "all children have ended well")?;
        let logs = logs(java.folder())?;
        ended.ensure(logs.len() == 4 * run, &format!("{run}: {logs:?}"))?;
        for count in counts(&java, &logs)? {
            ended.ensure(count >= 1000, &format!("{count} events of {logs:?}"))?;
        }
        // Who looks for the file that was asked for is told of those that others have.
        let told = ended.agent_lines();
        let others = told
            .iter()
            .filter(|line| line.contains("exists already"))
            .count();
        // The very first one has the name.
        ended.ensure(others == if run == 1 { 3 } else { 4 }, "those are told")?;
        let recorded = told
            .iter()
            .filter(|line| line.contains("recorded in"))
            .count();
        ended.ensure(recorded == 4, "each says where it has recorded")?;
    }
    java.clean();
    Ok(())
}

/// Of all JVMs that are given the options those of one program are recorded.
fn only(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new_light(setup, jdk, &format!("only-{}", jdk.version));
    let run = |command: &[&str], only: &str, expected: usize| -> Checked {
        fs::create_dir_all(java.folder()).map_err(|e| e.to_string())?;
        let options = format!(
            "-agentpath:{}=out=%p.lucce,strict=on,only={only}",
            setup.agent.display()
        );
        let mut env = Command::new("env");
        env.arg(format!("JAVA_TOOL_OPTIONS={options}"))
            .arg(jdk.tool("java"));
        let classes = setup.classes.to_string_lossy().into_owned();
        let arguments: Vec<_> = ["-cp", &classes]
            .iter()
            .chain(command)
            .map(Into::into)
            .collect();
        let ended = java.run_as(&mut env, &arguments)?.expect(0)?;
        let logs = logs(java.folder())?;
        ended.ensure(logs.len() == expected, &format!("only={only}: {logs:?}"))?;
        ended.ensure(
            ended.agent_lines().len() == expected,
            "a line for each, and no word of others",
        )?;
        java.clean();
        Ok(())
    };
    run(&["Children", "2"], "Children", 3)?;
    run(&["Children", "2"], "Children$Child", 2)?;
    run(&["Children", "2"], "no.Such+x.*", 0)?;
    let jar = setup.scratch.join(format!("only {}.jar", jdk.version));
    let manifest = setup.scratch.join(format!("only-{}.txt", jdk.version));
    fs::write(&manifest, "Main-Class: Children\n").map_err(|e| e.to_string())?;
    let mut tool = Command::new(setup.jdk().tool("jar"));
    tool.arg("cfm")
        .args([&jar, &manifest])
        .arg("-C")
        .arg(&setup.classes);
    let made = tool.arg(".").status();
    ensure(made.is_ok_and(|status| status.success()), || {
        "no jar".into()
    })?;
    let jar = jar.to_string_lossy();
    run(&["-jar", &jar, "0"], "Children", 1)?;
    run(&["-jar", &jar, "0"], "only*", 1)?;
    run(&["-jar", &jar, "0"], "Other", 0)
}

/// What is no log is not written to, whatever has the name.
fn foreign(setup: &Setup) -> Checked {
    let java = Java::new_light(setup, setup.jdk(), "foreign-file");
    let precious = java.folder().join("precious.txt");
    fs::create_dir_all(java.folder()).map_err(|e| e.to_string())?;
    fs::write(&precious, "precious\n").map_err(|e| e.to_string())?;
    for (strict, code) in [("", 0), (",strict=on", 1)] {
        let java = Java::new_light(setup, setup.jdk(), "foreign-file")
            .agent(&format!("out=precious.txt{strict}"))
            .main(["io.lucce.programs.Lambdas"]);
        let ended = java.run()?.expect(code)?;
        let lines = ended.agent_lines();
        let told =
            lines.len() == 1 && lines[0].contains("precious.txt") && lines[0].contains("no log");
        ended.ensure(told, "one line says why")?;
        let text = fs::read_to_string(&precious).unwrap_or_default();
        ended.ensure(text == "precious\n", &text)?;
        let files = fs::read_dir(java.folder()).map_err(|e| e.to_string())?;
        // And what the program has printed.
        ended.ensure(files.count() == 3, "no other file is made")?;
    }
    java.clean();
    Ok(())
}

/// The program runs as if there was no agent, and nothing is recorded.
fn unwritable(setup: &Setup) -> Checked {
    for (number, (out, limit)) in [
        ("/no/such/folder/a.lucce", ""),
        ("/dev/full", ""),
        ("/proc/self/a.lucce", ""),
        (".", ""),
        ("a.lucce", ",limit=1k"),
        ("a.lucce", ",limit=1k,stream=on"),
    ]
    .into_iter()
    .enumerate()
    {
        let java = Java::new_light(setup, setup.jdk(), &format!("unwritable-{number}"));
        let java = java
            .agent(&format!("out={out}{limit}"))
            .main(["io.lucce.programs.Lambdas"]);
        let ended = java.run()?.expect(0)?;
        ended.ensure(!ended.stdout.is_empty(), "the program runs")?;
        let lines = ended.agent_lines();
        let told =
            lines.len() == 1 && lines[0].contains(out) && lines[0].contains("nothing is recorded");
        ended.ensure(told, "one line says what is missing, and why")?;
        ended.ensure(logs(java.folder())?.is_empty(), "no file is left")?;
        java.clean();
    }
    Ok(())
}

/// A log tells how the program was called, with all arguments.
fn owner_only(setup: &Setup) -> Checked {
    let mode = |path: &Path| -> Result<u32, String> {
        let found = fs::metadata(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(found.permissions().mode() & 0o777)
    };
    let is_private = |path: PathBuf| {
        let mode = mode(&path)?;
        ensure(mode == 0o600, || format!("{}: {mode:o}", path.display()))
    };
    let jvm = Running::start(setup, setup.jdk(), "owner-only", "stream=on")?;
    let copy = jvm.java.folder().join("copy.lucce");
    jvm.ctl(&["dump", &copy.to_string_lossy()])?;
    let folder = jvm.java.folder().to_owned();
    for name in [
        "run.lucce",
        "run.lucce.events",
        "copy.lucce",
        "copy.lucce.events",
    ] {
        is_private(folder.join(name))?;
    }
    jvm.end()?.clean();
    let java = Java::new_light(setup, setup.jdk(), "owner-only-calls");
    let java = java.agent("calls=on").main(["io.lucce.programs.Lambdas"]);
    java.run()?.expect(0)?;
    is_private(java.folder().join("run.lucce.calls"))?;
    java.clean();
    Ok(())
}

/// A stream whose log has gone is another run's file, too.
fn beside(setup: &Setup) -> Checked {
    for (kind, extension) in [("stream", "events"), ("calls", "calls")] {
        let java = Java::new_light(setup, setup.jdk(), &format!("beside-{kind}"));
        let old = java.folder().join(format!("a.lucce.{extension}"));
        fs::create_dir_all(java.folder()).map_err(|e| e.to_string())?;
        fs::write(&old, "old").map_err(|e| e.to_string())?;
        let java = java.agent(&format!("out=a.lucce,{kind}=on"));
        let java = java.main(["io.lucce.programs.Lambdas"]);
        let ended = java.run()?.expect(0)?;
        let logs = logs(java.folder())?;
        let [log] = &logs[..] else {
            return Err(format!("one log: {logs:?}"));
        };
        ended.ensure(log.ends_with("a-2.lucce"), &format!("{logs:?}"))?;
        let new = java.folder().join(format!("a-2.lucce.{extension}"));
        ended.ensure(new.exists(), "both files have the number")?;
        let text = fs::read_to_string(&old).unwrap_or_default();
        ended.ensure(text == "old", "the old one stays as it is")?;
        java.clean();
    }
    Ok(())
}

fn copies(setup: &Setup) -> Checked {
    let jvm = Running::start(setup, setup.jdk(), "copies", "stream=on")?;
    let folder = jvm.java.folder().to_owned();
    let copy = folder.join("copy.lucce");
    let name = copy.to_string_lossy().into_owned();
    fs::write(&copy, "").map_err(|e| e.to_string())?;
    jvm.ctl(&["dump", &name])?;
    jvm.ctl(&["dump", &name])?;
    let other = Running::start(setup, setup.jdk(), "copies-other", "")?;
    other.refused(&["dump", &name], "no copy of this log")?;
    fs::write(&copy, "precious\n").map_err(|e| e.to_string())?;
    jvm.refused(&["dump", &name], "no copy of this log")?;
    let text = fs::read_to_string(&copy).unwrap_or_default();
    ensure(text == "precious\n", || text)?;
    other.end()?.clean();
    jvm.end()?.clean();
    Ok(())
}

/// `: > run.lucce`, or what the rotation of logs does: the program goes on, and the loss is told at once, by `ctl`,
/// and at the end.
fn truncated(setup: &Setup, jdk: &Jdk, options: &str, size: u64) -> Checked {
    let kind = if options.is_empty() { "log" } else { "stream" };
    let name = format!("truncated-{kind}-{size}-{}", jdk.version);
    let mut jvm = Running::start(setup, jdk, &name, &format!("{options}events=alloc"))?;
    let log = jvm.java.log();
    let lost = match kind {
        "log" => log.clone(),
        _ => log.with_extension("lucce.events"),
    };
    let file = OpenOptions::new().write(true).open(&lost);
    file.and_then(|file| file.set_len(size))
        .map_err(|e| e.to_string())?;
    for _ in 0..3 {
        jvm.works_on()?;
    }
    let told = |jvm: &mut Running| {
        let said = jvm.java.printed("stderr");
        Ok(said
            .lines()
            .any(|line| line.starts_with("lucce: ") && line.contains("truncated")))
    };
    jvm.until("the loss is told", told)?;
    let status = jvm.ctl(&["status"])?;
    ensure(status[kind]["state"] == "truncated", || status.to_string())?;
    if kind == "log" {
        let copy = jvm.java.folder().join("copy.lucce");
        jvm.refused(&["dump", &copy.to_string_lossy()], "truncated")?;
        ensure(!copy.exists(), || "a copy is left".into())?;
        ensure(
            status["recorded"] == 0 && status["lost"].as_u64() > Some(0),
            || status.to_string(),
        )?;
    }
    jvm.works_on()?;
    let java = jvm.end()?;
    let ended = java.so_far();
    let last = ended.agent_lines().join("\n");
    ensure(
        last.contains("lost") && !last.contains(&format!("recorded in {}", lost.display())),
        || last.clone(),
    )?;
    let left = fs::metadata(&lost).map_or(u64::MAX, |found| found.len());
    ensure(left == size, || format!("{left} bytes are left of {size}"))?;
    ensure(
        !ended.stderr.contains("SIGBUS") && !ended.stderr.contains("InternalError"),
        || ended.stderr.clone(),
    )?;
    java.clean();
    Ok(())
}

/// Removed with the folder that it is in: it can be saved as long as the JVM runs.
fn removed(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new_light(setup, jdk, &format!("removed-{}", jdk.version));
    let folder = java.folder().join("logs");
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let java = java.agent(&format!(
        "out={},events=alloc",
        folder.join("a.lucce").display()
    ));
    let mut jvm = Running::of(java.main(["Forever"]))?;
    fs::remove_dir_all(&folder).map_err(|e| e.to_string())?;
    jvm.until("the loss is told", |jvm| {
        let said = jvm.java.printed("stderr");
        Ok(said.contains("a.lucce was removed") && said.contains("dump FILE"))
    })?;
    let status = jvm.ctl(&["status"])?;
    ensure(status["log"]["state"] == "removed", || status.to_string())?;
    jvm.refused(&["dump"], "removed")?;
    let copy = jvm.java.folder().join("copy.lucce");
    jvm.ctl(&["dump", &copy.to_string_lossy()])?;
    let report = jvm
        .lucce()
        .text(0, &["report", "--top", "1", &copy.to_string_lossy()])?;
    ensure(report.contains("at Forever.work"), || report)?;
    let java = jvm.end()?;
    let said = java.printed("stderr");
    ensure(
        said.contains("lost") && !said.contains("recorded in"),
        || said.clone(),
    )?;
    java.clean();
    Ok(())
}

fn moved(setup: &Setup, jdk: &Jdk) -> Checked {
    let jvm = Running::start(
        setup,
        jdk,
        &format!("moved-{}", jdk.version),
        "events=alloc",
    )?;
    let (log, now) = (jvm.java.log(), jvm.java.folder().join("now.lucce"));
    fs::rename(&log, &now).map_err(|e| e.to_string())?;
    let status = jvm.ctl(&["status"])?;
    let file = status["log"]["file"].as_str().map(PathBuf::from);
    ensure(file.as_ref() == Some(&now), || status.to_string())?;
    let java = jvm.end()?;
    let said = java.printed("stderr");
    let expected = format!("recorded in {}", now.display());
    ensure(said.contains(&expected), || said.clone())?;
    counts(&java, &[now])?;
    java.clean();
    Ok(())
}

/// Nothing is written behind the gap.
fn recording(setup: &Setup) -> Checked {
    let mut jvm = Running::start(setup, setup.jdk(), "recording", "calls=on")?;
    let calls = jvm.java.log().with_extension("lucce.calls");
    let file = OpenOptions::new().write(true).open(&calls);
    file.and_then(|file| file.set_len(0))
        .map_err(|e| e.to_string())?;
    jvm.works_on()?;
    jvm.until("the loss is told", |jvm| {
        Ok(jvm
            .java
            .printed("stderr")
            .contains("lucce.calls was truncated"))
    })?;
    let java = jvm.end()?;
    let said = java.printed("stderr");
    ensure(said.contains("the calls are lost"), || said.clone())?;
    let left = fs::metadata(&calls).map_or(u64::MAX, |found| found.len());
    ensure(left == 0, || format!("{left} bytes are left"))?;
    java.clean();
    Ok(())
}
