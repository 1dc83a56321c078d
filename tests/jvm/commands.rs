//! `lucce run`, `lucce decode`, and the agent's own ways to be started.

use std::ffi::OsString;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::{Test, test};

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let decode = setup.jdks.iter().map(|jdk| {
        let name = format!("commands::{}::decode_prints_the_jvms_trace", jdk.version);
        test(name, jdk == setup.jdk(), move || decode(setup, jdk))
    });
    let others = [
        test("commands::run_passes_the_exit_code_on", true, || run(setup)),
        test("commands::no_options", true, || no_options(setup)),
        test("commands::events_none", true, || events_none(setup)),
        test("commands::unknown_id", false, || unknown_id(setup)),
        test("commands::numbers_of_another_run", false, || {
            another_run(setup)
        }),
    ];
    decode.chain(others).collect()
}

/// `Known` prints numbers and, below each, the trace of a `Throwable` made on the same line.
fn decode(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new_light(setup, jdk, &format!("decode-{}", jdk.version))
        .agent("events=none")
        .main(["Known"]);
    let ended = java.run()?.expect(0)?;
    let places: Vec<(&str, &str)> = ended
        .stdout
        .split("id=")
        .skip(1)
        .filter_map(|part| part.split_once('\n'))
        .collect();
    ended.ensure(places.len() == 4, "four places")?;
    let log = java.log();
    let log = log.to_string_lossy();
    for (id, trace) in &places {
        let decoded = java.lucce().text(0, &["decode", &log, id])?;
        let frames = decoded.split_once('\n').map_or("", |(_, frames)| frames);
        ensure(frames == *trace, || {
            format!("the JVM says\n{trace}decoded\n{decoded}")
        })?;
    }
    from_standard_input(&java, &log, &places)?;
    in_lines_of_text(&java, &log, &places)?;
    java.clean();
    Ok(())
}

/// Numbers name their run, so they are found in what the program has printed, and as bare numbers they are known, too.
fn in_lines_of_text(java: &Java, log: &str, places: &[(&str, &str)]) -> Checked {
    let stats = java.lucce().stats(log)?;
    let run = stats["run_id"].as_str().unwrap_or_default();
    let prefix = format!("lucce:{run}:0x");
    for (id, trace) in places {
        let number = id.strip_prefix(&prefix);
        ensure(run.len() == 16 && number.is_some(), || {
            format!("{id} does not name the run {run:?}")
        })?;
        let bare = format!("0x{}", number.unwrap_or_default());
        for (text, run) in [
            (format!("WARN {id} leaked"), Value::from(run)),
            (bare, Value::Null),
        ] {
            let line = java.lucce().json(&["decode", "--json", log, &text])?;
            let frames = line["frames"].as_array().map_or(0, Vec::len);
            ensure(
                line["run"] == run && frames == trace.lines().count(),
                || format!("{text} is {line}"),
            )?;
        }
    }
    Ok(())
}

/// Decimal or 0x, one per line; one object per line comes out.
fn from_standard_input(java: &Java, log: &str, places: &[(&str, &str)]) -> Checked {
    let ids = places.iter().map(|(id, _)| format!("{id}\n"));
    let output = java
        .lucce()
        .run_with_input(&["decode", log, "--json", "-"], &ids.collect::<String>())?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure(output.status.success(), || {
        format!("lucce decode -: {}", output.status)
    })?;
    let lines: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    ensure(lines.len() == places.len(), || {
        format!("an object per line:\n{text}")
    })?;
    lines.iter().zip(places).try_for_each(|(line, (_, trace))| {
        let shown: String = line["frames"]
            .as_array()
            .into_iter()
            .flatten()
            .map(frame)
            .collect();
        ensure(shown == *trace, || {
            format!("the JVM says\n{trace}decoded\n{line}")
        })
    })
}

pub fn frame(frame: &Value) -> String {
    let (class, method) = (
        frame["class"].as_str().unwrap_or("?"),
        frame["method"].as_str().unwrap_or("?"),
    );
    let place = match (frame["file"].as_str(), frame["line"].as_i64()) {
        (_, Some(-2)) => "Native Method".to_owned(),
        (Some(file), Some(line)) if line >= 0 => format!("{file}:{line}"),
        (Some(file), _) => file.to_owned(),
        (None, _) => "Unknown Source".to_owned(),
    };
    format!("\tat {class}.{method}({place})\n")
}

fn run(setup: &Setup) -> Checked {
    let java = Java::new_light(setup, setup.jdk(), "run").main(["Known", "7"]);
    let log = java.log();
    let mut arguments: Vec<OsString> = ["run", "--events", "alloc", "--out"]
        .map(OsString::from)
        .into();
    arguments.extend([
        log.clone().into_os_string(),
        "--".into(),
        setup.jdk().tool("java").into_os_string(),
    ]);
    arguments.extend(java.arguments());
    let ended = java
        .run_as(&mut java.lucce().command(), &arguments)?
        .expect(7)?;
    ended.ensure(
        ended.stdout.contains("id=lucce:"),
        "the program runs under the agent",
    )?;
    let report = java
        .lucce()
        .text(0, &["report", "--type", "^Known", &log.to_string_lossy()])?;
    ensure(report.contains("at Known."), || {
        format!("the report shows the program:\n{report}")
    })?;
    java.clean();
    Ok(())
}

/// Allocations go to `lucce-PID.lucce` in the working directory; one line at exit says so.
fn no_options(setup: &Setup) -> Checked {
    let java = Java::new_light(setup, setup.jdk(), "no-options")
        .bare_agent()
        .main(["Known"]);
    let ended = java.run()?.expect(0)?;
    let lines = ended.agent_lines();
    ended.ensure(
        lines.len() == 1 && ended.stderr.lines().count() == 1,
        "one line at exit",
    )?;
    let files = std::fs::read_dir(java.folder()).map_err(|e| e.to_string())?;
    let log = files
        .flatten()
        .map(|entry| entry.file_name())
        .find(|name| name.to_string_lossy().ends_with(".lucce"));
    let log = log
        .ok_or("no log in the working directory")?
        .to_string_lossy()
        .into_owned();
    ended.ensure(
        log.starts_with("lucce-") && lines[0].contains(&log),
        &format!("the line names {log}"),
    )?;
    java.lucce()
        .text(0, &["report", &java.folder().join(log).to_string_lossy()])?;
    java.clean();
    Ok(())
}

/// Tracks without recording.
fn events_none(setup: &Setup) -> Checked {
    let java = Java::new_light(setup, setup.jdk(), "events-none")
        .agent("events=none")
        .main(["Known"]);
    let ended = java.run()?.expect(0)?;
    ended.ensure(!ended.stdout.contains(":0x0\n"), "numbers are there")?;
    let log = java.log();
    let report = java
        .lucce()
        .json(&["report", "--json", &log.to_string_lossy()])?;
    ensure(report["totals"]["count"] == 0, || {
        format!("events were recorded: {}", report["totals"])
    })?;
    java.clean();
    Ok(())
}

/// What a run printed is refused by the next run's log, which would take some of the bare numbers for its own.
fn another_run(setup: &Setup) -> Checked {
    let run = |name: &str| {
        let java = Java::new_light(setup, setup.jdk(), name)
            .agent("events=none")
            .main(["Known"]);
        let ended = java.run()?.expect(0)?;
        Ok::<_, String>((java, ended.stdout))
    };
    let ((first, printed), (second, _)) = (run("first-run")?, run("second-run")?);
    let ids = printed.lines().filter_map(|line| line.strip_prefix("id="));
    for id in ids {
        let said = second
            .lucce()
            .text(1, &["decode", &second.log().to_string_lossy(), id])?;
        let runs = said.matches(":0x").count() == 1 && said.contains("the log of run");
        ensure(runs && said.contains(id), || {
            format!("another run's number {id}:\n{said}")
        })?;
    }
    first.clean();
    second.clean();
    Ok(())
}

fn unknown_id(setup: &Setup) -> Checked {
    let java = Java::new_light(setup, setup.jdk(), "unknown-id")
        .agent("events=alloc")
        .main(["Known"]);
    java.run()?.expect(0)?;
    let id = "0x7edcba9876543210";
    let said = java
        .lucce()
        .text(1, &["decode", &java.log().to_string_lossy(), id])?;
    ensure(said.contains(id), || {
        format!("the error names the number:\n{said}")
    })?;
    java.clean();
    Ok(())
}
