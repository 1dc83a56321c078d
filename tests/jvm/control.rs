//! `lucce ctl`: a running JVM does what it is told, and goes on whatever it is told.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};

use crate::running::Running;
use crate::{Test, test};

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let per_jdk = setup.jdks.iter().map(|jdk| {
        let name = format!("control::{}::stop_start_dump_set", jdk.version);
        test(name, jdk == setup.jdk(), move || control(setup, jdk))
    });
    let others = [
        test("control::switched_on_later", false, move || later(setup)),
        test("control::waits_while_stopped", false, move || {
            waits_while_stopped(setup)
        }),
        test("control::off", false, move || off(setup)),
        test("control::hostile_clients", true, move || hostile(setup)),
        test("control::foreign_socket", true, move || foreign(setup)),
        test("control::stream", false, move || stream(setup)),
        test("control::killed", false, move || killed(setup)),
    ];
    per_jdk.chain(others).collect()
}

fn control(setup: &'static Setup, jdk: &'static Jdk) -> Checked {
    let name = format!("control-{}", jdk.version);
    let mut jvm = Running::start(setup, jdk, &name, "events=alloc,verify=101")?;
    let mode = fs::metadata(jvm.socket()).map_err(|e| e.to_string())?;
    let mode = mode.permissions().mode() & 0o777;
    ensure(mode == 0o600, || format!("the socket's mode is {mode:o}"))?;
    let status = jvm.ctl(&["status"])?;
    let expected = status["counting"] == true
        && status["pid"] == jvm.child.id()
        && status["log"]["file"] == jvm.java.log().to_string_lossy().as_ref()
        && status["panics"] == 0;
    ensure(expected, || format!("status: {status}"))?;
    ensure(jvm.counts()?, || "nothing is counted at first".into())?;

    let stopped = jvm.ctl(&["stop"])?;
    ensure(stopped["counting"] == false, || format!("stop: {stopped}"))?;
    // An event may have been under way.
    jvm.works_on()?;
    ensure(!jvm.counts()?, || "it counts after stop".into())?;
    let copy = jvm.java.folder().join("copy.lucce");
    jvm.ctl(&["dump", &copy.to_string_lossy()])?;
    let (recorded, copied) = (jvm.recorded()?, total(&jvm, &copy)?);
    ensure(recorded == copied, || {
        format!("{recorded} events are recorded, {copied} in the copy")
    })?;

    jvm.ctl(&["start"])?;
    ensure(jvm.counts()?, || "nothing is counted after start".into())?;
    jvm.ctl(&["set", "events=none"])?;
    jvm.works_on()?;
    ensure(!jvm.counts()?, || "events=none counts".into())?;
    jvm.ctl(&["set", "events=alloc"])?;
    ensure(jvm.counts()?, || "events=alloc does not count".into())?;
    // While it counts: a log that is whole, and no smaller than what was counted before.
    let before = jvm.recorded()?;
    jvm.ctl(&["dump", &copy.to_string_lossy()])?;
    let copied = total(&jvm, &copy)?;
    ensure(copied >= before, || {
        format!("{before} events were recorded, {copied} are in the copy")
    })?;
    jvm.ctl(&["dump"])?;

    let log = jvm.java.log();
    jvm.refused(&["dump", &log.to_string_lossy()], "the log itself")?;
    jvm.refused(&["dump", "/nowhere/at/all"], "/nowhere/at/all")?;
    jvm.refused(&["set", "events=aloc"], "did you mean 'alloc'")?;
    jvm.refused(&["set", "verify=1"], "only events can be set")?;
    jvm.refused(&["set", "include=a..b"], "only events can be set")?;
    jvm.refused(&["set", "events"], "only events can be set")?;
    jvm.refused(&["detach"], "from the start")?;
    jvm.works_on()?;
    let java = jvm.end()?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// All events of a log, which must be whole.
fn total(jvm: &Running, log: &std::path::Path) -> Result<u64, String> {
    let log = log.to_string_lossy();
    jvm.lucce().text(0, &["report", "--top", "1", &log])?;
    let report = jvm.lucce().json(&["report", "--json", &log])?;
    report["totals"]["count"]
        .as_u64()
        .ok_or_else(|| format!("no total: {}", report["totals"]))
}

/// What classes have no hooks for is refused, unless they got all.
fn later(setup: &'static Setup) -> Checked {
    let jdk = setup.jdk();
    let jvm = Running::start(setup, jdk, "control-none", "events=none")?;
    jvm.refused(&["set", "events=alloc"], "ctl=all")?;
    jvm.end()?.clean();
    let options = "events=none,ctl=all,verify=101";
    let mut jvm = Running::start(setup, jdk, "control-all", options)?;
    ensure(!jvm.counts()?, || "events=none counts".into())?;
    jvm.ctl(&["set", "events=alloc"])?;
    ensure(jvm.counts()?, || "events=alloc does not count".into())?;
    let java = jvm.end()?;
    java.lucce().check(&java.log())?;
    java.clean();
    each_later(setup)
}

/// A program in which all of them happen.
fn each_later(setup: &'static Setup) -> Checked {
    let java = Java::new_light(setup, setup.jdk(), "control-each");
    let java = java
        .agent("events=none,ctl=all,verify=1")
        .main(["Contended"]);
    let mut jvm = Running::of(java)?;
    ensure(!jvm.counts()?, || "events=none counts".into())?;
    let kinds = ["exception", "io", "lock", "thread"];
    for kind in kinds {
        jvm.ctl(&["set", &format!("events={kind}")])?;
        ensure(jvm.counts()?, || format!("events={kind} does not count"))?;
    }
    jvm.ctl(&["set", "events=none"])?;
    // What was under way.
    jvm.works_on()?;
    ensure(!jvm.counts()?, || "events=none counts again".into())?;
    jvm.refused(&["set", "events=call"], "start the JVM with events=call")?;
    let java = jvm.end()?;
    let log = java.log();
    for kind in kinds {
        let log = log.to_string_lossy();
        let report = java
            .lucce()
            .json(&["report", "--json", "--event", kind, &log])?;
        let counted = report["totals"]["count"].as_u64();
        ensure(counted > Some(0), || format!("{kind}: {report}"))?;
    }
    java.lucce().check(&log)?;
    java.clean();
    Ok(())
}

fn off(setup: &'static Setup) -> Checked {
    let jvm = Running::start(setup, setup.jdk(), "control-off", "ctl=off")?;
    jvm.refused(&["status"], "does not listen")?;
    jvm.end()?.clean();
    Ok(())
}

/// A client that does not speak the protocol, sends without end or not at all, or is another user's.
fn hostile(setup: &'static Setup) -> Checked {
    let mut jvm = Running::start(setup, setup.jdk(), "control-hostile", "events=alloc")?;
    let silent: Vec<_> = (0..3).map(|_| UnixStream::connect(jvm.socket())).collect();
    for (request, words) in [
        (&b"GET / HTTP/1.0\r\n\r\n"[..], "not lucce's protocol"),
        (b"lucce 1 explode\n", "unknown command 'explode'"),
        (b"lucce 99 status\n", "version 99"),
        (b"lucce 1 dump somewhere\n", "absolute path"),
        (&[b'a'; 100_000], "more than 8192 bytes"),
        (b"lucce 1 sta", "malformed request"),
    ] {
        let answer = say(&jvm, request)?;
        ensure(
            answer.starts_with("lucce 1 error ") && answer.contains(words),
            || format!("the agent answers {answer:?} instead of '{words}'"),
        )?;
    }
    drop(silent);
    somebody_else(&jvm)?;
    ensure(jvm.counts()?, || "it counts no more".into())?;
    jvm.end()?.clean();
    Ok(())
}

/// A socket in the agent's place that somebody else has bound: whatever it answers, or if it answers nothing.
fn foreign(setup: &'static Setup) -> Checked {
    let java = Java::new_light(setup, setup.jdk(), "control-foreign");
    let pid = std::process::id().to_string();
    let socket = format!("/tmp/.lucce_pid{pid}");
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).map_err(|e| e.to_string())?;
    let endless = "a".repeat(1 << 20);
    let answers: [&[u8]; 6] = [
        b"",
        b"\xff\xfe\0\n\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"lucce 1 ok 3\nabc",
        b"lucce 1 ok 18446744073709551615\n{}",
        endless.as_bytes(),
    ];
    let verbs = [
        &["ctl", &pid, "status"][..],
        &["ctl", &pid, "set", "events=none"],
    ];
    let rounds = verbs.len();
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            for answer in answers.iter().cycle().take(answers.len() * rounds) {
                let Ok((mut stream, _)) = listener.accept() else {
                    return;
                };
                let mut request = [0; 64];
                // A client that has gone already has heard enough.
                let _ = stream.read(&mut request);
                let _ = stream.write_all(answer);
            }
        });
        let asked = verbs
            .iter()
            .flat_map(|verb| answers.iter().map(move |_| verb));
        let said: Vec<_> = asked.map(|verb| java.lucce().run(verb)).collect();
        said
    });
    let _ = fs::remove_file(&socket);
    for output in said {
        let output = output?;
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure(
            output.status.code() == Some(3) && words.contains("foreign"),
            || format!("{words}, {}", output.status),
        )?;
    }
    Ok(())
}

/// With `stream=on`: `status` tells of the stream, and `dump` copies it as well.
fn stream(setup: &'static Setup) -> Checked {
    for (name, options, full) in [
        ("whole", "events=lock,stream=on", false),
        ("full", "events=alloc,stream=on,stream-limit=64k", true),
    ] {
        let name = format!("control-stream-{name}");
        let java = Java::new_light(setup, setup.jdk(), &name).agent(options);
        let mut jvm = Running::of(java.main(["Contended"]))?;
        let copy = jvm.java.folder().join("copy.lucce");
        jvm.until("the stream has entries", |jvm| {
            let stream = jvm.ctl(&["status"])?["stream"].clone();
            let (entries, lost) = (stream["entries"].as_u64(), stream["lost"].as_u64());
            let there = entries > Some(100) && (lost > Some(0)) == full && stream["full"] == full;
            Ok(there && stream["bytes"].as_u64() <= stream["limit"].as_u64())
        })?;
        let done = jvm.ctl(&["dump", &copy.to_string_lossy()])?;
        let said = done["stream"]["file"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        ensure(said.ends_with("copy.lucce.events"), || done.to_string())?;
        let size = fs::metadata(&said).map_err(|e| e.to_string())?.len();
        ensure(done["stream"]["bytes"].as_u64() == Some(size), || {
            done.to_string()
        })?;
        // Each entry is explained by the copy of the log.
        let copy = copy.to_string_lossy();
        let lines = jvm.lucce().text(0, &["stream", "--json", &copy])?;
        let entries = lines.lines().filter(|line| line.starts_with('{')).count();
        ensure(entries > 100, || format!("{entries} entries in the copy"))?;
        jvm.ctl(&["dump"])?;
        jvm.works_on()?;
        jvm.end()?.clean();
    }
    let jvm = Running::start(setup, setup.jdk(), "control-no-stream", "events=none")?;
    let status = jvm.ctl(&["status"])?;
    ensure(status["stream"].is_null(), || status.to_string())?;
    jvm.end()?.clean();
    Ok(())
}

/// Waiting that ends while nothing is counted is forgotten: what begins then, and ends when events are counted
/// again, is not taken for it.
fn waits_while_stopped(setup: &'static Setup) -> Checked {
    let java = Java::new_light(setup, setup.jdk(), "control-waits").agent("events=lock,verify=1");
    let folder = java.folder().to_string_lossy().into_owned();
    let mut jvm = Running::of(java.main(["Steps", &folder]))?;
    for (step, next) in [("stop", "start"), ("start", "never")] {
        jvm.ctl(&[step])?;
        fs::write(jvm.java.folder().join(step), "").map_err(|e| e.to_string())?;
        let said = format!("until {next}");
        jvm.until(&said, |jvm| Ok(jvm.java.printed("stdout").contains(&said)))?;
    }
    let java = jvm.end()?;
    let log = java.log();
    let log = log.to_string_lossy();
    let args = ["report", "--json", "--top", "0", "--event", "lock", &log];
    let report = java.lucce().json(&args)?;
    let rows = report["contexts"].as_array().into_iter().flatten();
    let own = rows.filter(|row| row["frames"][0]["class"] == "Steps");
    let own: Vec<_> = own
        .map(|row| (row["frames"][0]["method"].clone(), row["count"].clone()))
        .collect();
    ensure(own == [("third".into(), 1.into())], || format!("{own:?}"))?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

fn say(jvm: &Running, request: &[u8]) -> Result<String, String> {
    let mut stream = UnixStream::connect(jvm.socket()).map_err(|e| e.to_string())?;
    // It may be cut short.
    let _ = stream.write_all(request);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Only a user who may become another one can try.
fn somebody_else(jvm: &Running) -> Checked {
    const NOBODY: u32 = 65534;
    let mut command = Command::new("cat");
    command.arg("/dev/null").uid(NOBODY);
    if !command.status().is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let program = jvm.lucce().command();
    let copy = std::env::temp_dir().join(format!("lucce-{}", jvm.pid()));
    fs::copy(program.get_program(), &copy).map_err(|e| e.to_string())?;
    let mut other = Command::new(&copy);
    other.args(["ctl", &jvm.pid(), "stop"]).uid(NOBODY);
    let output = loop {
        match other.output() {
            // A process that another test is starting still has the copy open that this one runs.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                thread::sleep(Duration::from_millis(1));
            }
            output => break output,
        }
    };
    let _ = fs::remove_file(&copy);
    let output = output.map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure(
        output.status.code() == Some(2) && said.contains("own user"),
        || format!("to another user it says {said}, {}", output.status),
    )
}

/// What a killed JVM leaves is cleared away.
fn killed(setup: &'static Setup) -> Checked {
    let mut jvm = Running::start(setup, setup.jdk(), "control-killed", "events=alloc")?;
    jvm.child
        .kill()
        .and_then(|()| jvm.child.wait())
        .map_err(|e| e.to_string())?;
    // Another JVM that starts just now may have cleared it away already.
    jvm.refused(&["status"], "no process")?;
    ensure(!jvm.socket().exists(), || "the socket was left".into())?;
    jvm.java.clean();
    Ok(())
}
