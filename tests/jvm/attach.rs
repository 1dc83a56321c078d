//! `lucce attach`: a JVM that runs without the agent, with frames that ran long before it came.
//!
//! The oracle is the program itself: it prints every stack trace at which it makes an object of one of its classes, as
//! `Throwable` has it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::running::Running;
use crate::{Test, test};

/// Name, flags, and whether it is one of the quick ones.
const WAYS: [(&str, &[&str], bool); 4] = [
    ("default", &["-Xcheck:jni"], true),
    ("int", &["-Xint"], false),
    (
        "comp",
        &[COMPILE_PROGRAMS, "-XX:TieredStopAtLevel=1"],
        false,
    ),
    ("z", &["-XX:+UseZGC"], false),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let traces = setup.jdks_from_11().flat_map(|jdk| {
        WAYS.iter().map(move |(way, flags, quick)| {
            let name = format!("attach::{}::{way}::traces_of_running_frames", jdk.version);
            let quick = *quick && jdk == setup.jdk();
            test(name, quick, move || traces(setup, jdk, way, flags))
        })
    });
    let others = [
        test("attach::sampled", true, move || sampled(setup)),
        test("attach::for_a_while", true, move || for_a_while(setup)),
        test("attach::asked_to_end", true, move || asked_to_end(setup)),
        test("attach::refused", false, move || refused(setup)),
        test("attach::again_and_again", false, move || {
            again_and_again(setup)
        }),
        test("attach::closed", false, move || closed(setup)),
        test("attach::no_jvm", true, move || no_jvm(setup)),
    ];
    let locks = setup.jdks_from_11().flat_map(|jdk| {
        let ways = LOCK_WAYS.iter().filter(|way| jdk.version >= way.from);
        ways.map(move |way| {
            let name = format!("attach::{}::locks::{}", jdk.version, way.name);
            let quick = way.name == "default" && jdk == setup.jdk();
            test(name, quick, move || locks(setup, jdk, way))
        })
    });
    traces.chain(others).chain(locks).collect()
}

/// How contended monitors are made, and what is asked for.
struct LockWay {
    name: &'static str,
    flags: &'static [&'static str],
    arguments: &'static [&'static str],
    options: &'static [&'static str],
    from: u32,
}

const LOCK_WAYS: [LockWay; 5] = [
    LockWay {
        name: "default",
        flags: &["-Xcheck:jni"],
        arguments: &[],
        options: &["events=lock"],
        from: 11,
    },
    LockWay {
        name: "int",
        flags: &["-Xint"],
        arguments: &[],
        options: &["events=lock", "instrument=all"],
        from: 11,
    },
    LockWay {
        name: "virtual",
        flags: &["-Xcheck:jni"],
        arguments: &["--virtual"],
        options: &["events=lock"],
        from: 25,
    },
    LockWay {
        name: "filtered",
        flags: &["-XX:+UseZGC"],
        arguments: &[],
        options: &["events=lock", "include=Contended"],
        from: 11,
    },
    LockWay {
        name: WITH_ALLOCATIONS,
        flags: &[],
        arguments: &[],
        options: &["events=alloc+lock", "alloc=64k"],
        from: 11,
    },
];

const WITH_ALLOCATIONS: &str = "with-allocations";

/// Of a program that runs: contended monitors and waiting, with the lines and the times that it has.
fn locks(setup: &Setup, jdk: &Jdk, way: &LockWay) -> Checked {
    let java = Java::new(
        setup,
        jdk,
        &format!("attach-{}-locks-{}", jdk.version, way.name),
    );
    let program = ["Contended"];
    let mut jvm = Running::of(
        java.flags(way.flags)
            .main(program.iter().chain(way.arguments)),
    )?;
    attach(&jvm, &[way.options, &["verify=1"]].concat())?;
    let first = rounds(&jvm);
    jvm.until("locks are counted", |jvm| Ok(rounds(jvm) > first + 80))?;
    let rounds = rounds(&jvm) - first;
    let last = jvm.ctl(&["status"])?;
    let fine = last["attached"] == true && last["lost"] == 0;
    ensure(fine, || format!("before the end: {last}"))?;
    // What is under way when the agent goes may be lost.
    let last = jvm.ctl(&["detach"])?;
    ensure(last["panics"] == 0, || format!("at the end: {last}"))?;
    jvm.works_on()?;
    let java = jvm.end()?;
    let log = java.log();
    let log = log.to_string_lossy();
    let args = ["report", "--json", "--top", "0", "--event", "lock", &log];
    let report = java.lucce().json(&args)?;
    // By method, as the program says in which one it waits.
    let mut found: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for row in report["contexts"].as_array().into_iter().flatten() {
        let frames: Vec<&Value> = row["frames"].as_array().into_iter().flatten().collect();
        let own = |frame: &&&Value| {
            let class = frame["class"].as_str().unwrap_or_default();
            class == "Contended" || class.starts_with("Contended$")
        };
        let Some(innermost) = frames.iter().find(own) else {
            continue;
        };
        let filtered = way.name != "filtered" || frames.iter().all(|frame| own(&frame));
        ensure(filtered, || format!("frames of other classes: {row}"))?;
        let method = innermost["method"].as_str().unwrap_or_default().to_owned();
        let line = innermost["line"].as_u64().unwrap_or_default();
        let what = row["class"].as_str().unwrap_or_default().to_owned();
        let sums = found.entry((what, format!("{method}:{line}"))).or_default();
        sums.0 += row["count"].as_u64().unwrap_or_default();
        sums.1 += row["value"].as_u64().unwrap_or_default();
    }
    let place = |(what, at): (&str, &str)| {
        let key = (format!("Contended$Lock ({what})"), at.to_owned());
        found.get(&key).copied().unwrap_or_default()
    };
    let places = [
        ("enter", "block:21"),
        ("enter", "method:10"),
        ("wait", "waiting:34"),
    ];
    let counts = places.map(place);
    // Each happens once in a round; the rounds in which it began and ended are not whole.
    let (least, most) = (
        counts.iter().map(|of| of.0).min().unwrap_or_default(),
        counts.iter().map(|of| of.0).max().unwrap_or_default(),
    );
    let long = counts.iter().all(|of| of.1 >= of.0 * 1_000_000);
    // It tells every 20th round.
    ensure(least + 20 >= rounds && most - least <= 2 && long, || {
        format!("{counts:?} of {rounds} rounds at {places:?}\n{found:#?}")
    })?;
    if way.name == WITH_ALLOCATIONS {
        allocations(&java)?;
    }
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// The same program makes an array in each round, as large as the interval of samples.
fn allocations(java: &Java) -> Checked {
    let log = java.log();
    let log = log.to_string_lossy();
    let args = ["report", "--json", "--top", "0", "--event", "alloc", &log];
    let report = java.lucce().json(&args)?;
    let mut rows = report["contexts"].as_array().into_iter().flatten();
    let arrays =
        rows.find(|row| row["class"] == "byte[]" && row["frames"][0]["method"] == "failing");
    let count = arrays.and_then(|row| row["count"].as_u64());
    ensure(count > Some(0), || format!("no arrays in {report}"))
}

/// Up to which round the program has told that it works; only whole lines count.
fn rounds(jvm: &Running) -> u64 {
    let printed = jvm.java.printed("stdout");
    let whole = printed.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let last = whole
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("working "));
    last.and_then(|round| round.parse().ok())
        .unwrap_or_default()
}

fn busy<'a>(
    setup: &'a Setup,
    jdk: &'a Jdk,
    name: &str,
    flags: &[&str],
) -> Result<Running<'a>, String> {
    let java = Java::new(setup, jdk, name).flags(flags).main(["Busy"]);
    Running::of(java)
}

fn attach(jvm: &Running, options: &[&str]) -> Checked {
    let (pid, log) = (jvm.pid(), jvm.java.log());
    let log = log.to_string_lossy();
    let mut all = vec!["attach", &pid, "--out", &log];
    all.extend(options.iter().flat_map(|option| ["--opt", option]));
    jvm.lucce().text(0, &all).map(drop)
}

/// Traces by class of what was made.
type Traces = BTreeMap<String, BTreeSet<String>>;

fn traces(setup: &Setup, jdk: &Jdk, way: &str, flags: &[&str]) -> Checked {
    let mut jvm = busy(setup, jdk, &format!("attach-{}-{way}", jdk.version), flags)?;
    attach(&jvm, &["alloc=all", "verify=1"])?;
    let classes = if jdk.version >= 21 { 9 } else { 8 };
    jvm.until("each way of being busy is recorded", |jvm| {
        let copy = jvm.java.folder().join("copy.lucce");
        jvm.ctl(&["dump", &copy.to_string_lossy()])?;
        Ok(recorded(jvm, &copy.to_string_lossy())?.len() == classes)
    })?;
    std::thread::sleep(Duration::from_millis(500));
    let last = jvm.ctl(&["detach"])?;
    let fine = last["attached"] == true && last["lost"] == 0 && last["panics"] == 0;
    ensure(fine, || format!("at the end: {last}"))?;
    jvm.refused(&["status"], "does not listen")?;
    // It goes on without the agent.
    jvm.works_on()?;

    let log = jvm.java.log();
    let recorded = recorded(&jvm, &log.to_string_lossy())?;
    // An object is made before its trace is printed: a thread may have been in between at the end.
    let untold = |jvm: &Running| first_untold(&recorded, &told(&jvm.java.printed("stdout")));
    let all = jvm.until("each recorded trace is printed", |jvm| {
        Ok(untold(jvm).is_none())
    });
    all.map_err(|e| format!("{e}; none was ever made: {:?}", untold(&jvm)))?;
    let java = jvm.end()?;
    java.lucce().check(&log)?;
    java.clean();
    Ok(())
}

/// A class and a trace that the program did not print.
fn first_untold(recorded: &Traces, told: &Traces) -> Option<(String, String)> {
    recorded.iter().find_map(|(class, traces)| {
        let known = |trace: &&String| told.get(class).is_some_and(|known| known.contains(*trace));
        let untold = traces.iter().find(|trace| !known(trace));
        untold.map(|trace| (class.clone(), trace.clone()))
    })
}

/// What the log says, of the program's own classes.
fn recorded(jvm: &Running, log: &str) -> Result<Traces, String> {
    let args = [
        "report", "--json", "--type", "^Busy\\$", "--top", "100000", log,
    ];
    let report = jvm.lucce().json(&args)?;
    let mut traces = Traces::new();
    for context in report["contexts"].as_array().into_iter().flatten() {
        let class = context["class"].as_str().unwrap_or("?").to_owned();
        let frames = context["frames"].as_array().into_iter().flatten();
        let trace = frames.map(crate::commands::frame).collect();
        traces.entry(class).or_default().insert(trace);
    }
    Ok(traces)
}

/// What the program printed.
fn told(stdout: &str) -> Traces {
    let mut traces = Traces::new();
    for part in stdout.split("made=").skip(1) {
        let Some((class, rest)) = part.split_once('\n') else {
            continue;
        };
        let frames = rest.lines().take_while(|line| line.starts_with("\tat "));
        let trace = frames.map(|line| format!("{line}\n")).collect();
        traces.entry(class.to_owned()).or_default().insert(trace);
    }
    traces
}

/// By default a few allocations stand for all.
fn sampled(setup: &'static Setup) -> Checked {
    let java = Java::new(setup, setup.jdk(), "attach-sampled").main(["Forever"]);
    let mut jvm = Running::of(java)?;
    attach(&jvm, &["alloc=64k"])?;
    let made = |jvm: &Running| -> u64 {
        let printed = jvm.java.printed("stdout");
        let last = printed
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("working "));
        last.and_then(|number| number.trim().parse().ok())
            .unwrap_or(0)
    };
    let before = made(&jvm);
    jvm.until("many objects were made", |jvm| {
        Ok(made(jvm) > before + 20_000_000)
    })?;
    let after = made(&jvm);
    jvm.ctl(&["detach"])?;
    let log = jvm.java.log();
    let args = [
        "report",
        "--json",
        "--type",
        "^Forever$",
        &log.to_string_lossy(),
    ];
    let count = jvm.lucce().json(&args)?["totals"]["count"]
        .as_u64()
        .unwrap_or(0);
    // 20 million objects of 16 bytes are some 5,000 samples: 2% of error is one in a thousand runs
    // more than the other way about; what was made before and after the two moments adds a little.
    let (least, most) = ((after - before) / 10 * 9, (after - before) * 2);
    ensure((least..most).contains(&count), || {
        format!("{} objects were made, {count} estimated", after - before)
    })?;
    let report = jvm
        .lucce()
        .text(0, &["report", "--top", "1", &log.to_string_lossy()])?;
    ensure(report.contains("from samples"), || report.clone())?;
    jvm.end()?.clean();
    Ok(())
}

/// What cannot be is told, and the JVM goes on.
fn refused(setup: &'static Setup) -> Checked {
    let mut jvm = busy(setup, setup.jdk(), "attach-refused", &[])?;
    let pid = jvm.pid();
    for (option, words) in [
        ("evnts=alloc", "did you mean 'events'"),
        ("alloc=lots", "alloc=lots"),
        ("calls=on", "from the start"),
        ("events=exception", "only if it was started with them"),
        ("events=alloc+thread", "who starts a thread"),
        ("include=a..b", "include"),
        ("tracking=cct", "from the start"),
        ("out=/no/such/folder/a.lucce", "/no/such/folder"),
    ] {
        let said = jvm.lucce().text(2, &["attach", &pid, "--opt", option])?;
        ensure(said.contains(words), || format!("{option}: {said}"))?;
    }
    let agent = ["attach", &pid, "--agent", "/no/such/agent.so"];
    let said = jvm.lucce().text(2, &agent)?;
    ensure(said.contains("/no/such/agent.so is not there"), || {
        said.clone()
    })?;
    jvm.works_on()?;
    // What was refused has left nothing behind.
    attach(&jvm, &[])?;
    let status: Value = jvm.ctl(&["status"])?;
    ensure(status["counting"] == true, || format!("status: {status}"))?;
    // Without detach: the log is ended with the JVM.
    let java = jvm.end()?;
    let log = java.log();
    let stats = java.lucce().stats(&log)?;
    ensure(stats["ended"] == true, || format!("stats: {stats}"))?;
    java.clean();

    let jvm = Running::start(setup, setup.jdk(), "attach-twice", "events=alloc")?;
    let said = jvm.lucce().text(2, &["attach", &jvm.pid()])?;
    let helps = format!("was started with it, `lucce ctl {} status`", jvm.pid());
    ensure(said.contains(&helps), || said.clone())?;
    jvm.end()?.clean();
    Ok(())
}

/// A JVM that was told to load nothing says so, and is not disturbed.
fn closed(setup: &'static Setup) -> Checked {
    for jdk in &setup.jdks {
        let name = format!("attach-closed-{}", jdk.version);
        let mut jvm = busy(setup, jdk, &name, &["-XX:+DisableAttachMechanism"])?;
        let said = jvm.lucce().text(2, &["attach", &jvm.pid()])?;
        ensure(
            said.contains("was started with -XX:+DisableAttachMechanism"),
            || said.clone(),
        )?;
        jvm.works_on()?;
        let java = jvm.end()?;
        let printed = java.printed("stdout") + &java.printed("stderr");
        // What SIGQUIT makes a JVM print that does not listen.
        ensure(!printed.contains("Full thread dump"), || {
            "a thread dump".into()
        })?;
        java.clean();
    }
    Ok(())
}

/// `lucce record`: the agent comes and goes, and there is a page. `lucce list` says so before and after.
fn for_a_while(setup: &'static Setup) -> Checked {
    let mut jvm = busy(setup, setup.jdk(), "attach-for-a-while", &[])?;
    let (pid, log) = (jvm.pid(), jvm.java.log());
    let page = jvm.java.folder().join("page.html");
    let is_without = |jvm: &Running| -> Checked {
        let listed = jvm.lucce().text(0, &["list", "--json"])?;
        let rows = listed.lines().map(serde_json::from_str::<Value>);
        let number: u64 = pid.parse().map_err(|_| format!("{pid} is no number"))?;
        let row = rows.flatten().find(|row| row["pid"] == number);
        let row = row.ok_or_else(|| format!("{pid} is not listed: {listed}"))?;
        let fine = row["agent"].is_null() && row["command"] == "Busy";
        ensure(fine, || row.to_string())
    };
    is_without(&jvm)?;
    let (output, out) = (page.to_string_lossy(), log.to_string_lossy());
    let arguments = ["record", "-d", "2s", "--page", &output, "--out", &out, &pid];
    jvm.lucce().text(0, &arguments)?;
    is_without(&jvm)?;
    jvm.works_on()?;
    let stats = jvm.lucce().stats(&*out)?;
    let sampled = jvm.lucce().json(&["report", "--json", &out])?;
    let count = sampled["totals"]["count"].as_u64();
    ensure(count > Some(0) && sampled["ended"] == true, || {
        stats.to_string()
    })?;
    let seconds = sampled["seconds"].as_f64().unwrap_or_default();
    ensure(seconds >= 2.0, || {
        format!("{seconds} seconds were recorded")
    })?;
    let html = fs::read_to_string(&page).map_err(|e| e.to_string())?;
    let is_page = html.contains("<meta name=\"generator\" content=\"lucce ");
    ensure(is_page, || "there is no page".into())?;
    jvm.end()?.clean();
    Ok(())
}

/// `lucce record` that is told to end, by Ctrl-C or by who supervises it: what was recorded until then has a page, and the agent is
/// gone. While it is there, another `record` says how to take it out.
fn asked_to_end(setup: &'static Setup) -> Checked {
    let mut jvm = busy(setup, setup.jdk(), "attach-asked-to-end", &[])?;
    let pid = jvm.pid();
    for signal in ["-INT", "-TERM"] {
        let page = jvm.java.folder().join(format!("page{signal}.html"));
        let log = jvm.java.folder().join(format!("run{signal}.lucce"));
        let (output, out) = (page.to_string_lossy(), log.to_string_lossy());
        let mut record = jvm.lucce().command();
        record.args([
            "record", "-d", "10m", "--page", &output, "--out", &out, &pid,
        ]);
        record.stdout(Stdio::null()).stderr(Stdio::piped());
        let record = record.spawn().map_err(|e| e.to_string())?;
        counts(&mut jvm)?;
        let said = jvm.lucce().text(2, &["record", &pid])?;
        let helps = format!("lucce ctl {pid} detach");
        ensure(said.contains(&helps), || said.clone())?;
        let number = record.id().to_string();
        let told = Command::new("kill").args([signal, &number]).status();
        ensure(told.is_ok_and(|status| status.success()), || {
            "no kill".into()
        })?;
        let ended = record.wait_with_output().map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        let is_told = said.contains("asked to end") && said.contains(&format!("to {output}"));
        ensure(ended.status.code() == Some(0) && is_told, || said.clone())?;
        let html = fs::read_to_string(&page).map_err(|e| e.to_string())?;
        ensure(html.contains("name=\"generator\""), || "no page".into())?;
        let sampled = jvm.lucce().json(&["report", "--json", &out])?;
        let count = sampled["totals"]["count"].as_u64();
        ensure(count > Some(0) && sampled["ended"] == true, || {
            sampled.to_string()
        })?;
        let said = jvm.lucce().text(2, &["ctl", &pid, "status"])?;
        ensure(!said.is_empty(), || "the agent is still there".into())?;
    }
    jvm.works_on()?;
    jvm.end()?.clean();
    Ok(())
}

/// A process that is no JVM is left alone: the signal that a JVM expects would end it.
fn no_jvm(setup: &'static Setup) -> Checked {
    let java = Java::new(setup, setup.jdk(), "attach-no-jvm");
    let said = java.lucce().text(2, &["attach", "4294967295"])?;
    ensure(said.contains("no process 4294967295"), || said.clone())?;
    let mut sleeper = Command::new("sleep")
        .arg("60")
        .stdin(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let said = java.lucce().text(2, &["attach", &sleeper.id().to_string()]);
    let alive = sleeper.try_wait().map_err(|e| e.to_string())?.is_none();
    let _ = sleeper.kill();
    let _ = sleeper.wait();
    let said = said?;
    ensure(said.contains("no HotSpot JVM") && alive, || {
        format!("alive: {alive}; {said}")
    })?;
    let _ = fs::remove_dir_all(java.folder());
    Ok(())
}

/// Comes and goes, with other options each time; each time there is a log of its own, and nothing is left.
fn again_and_again(setup: &'static Setup) -> Checked {
    const WAYS: [&[&str]; 5] = [
        &["alloc=4k"],
        &["events=alloc+lock", "alloc=all"],
        &["events=leak=16k", "verify=97"],
        &["events=alloc+leak=16k"],
        &["alloc=512k", "include=java.*"],
    ];
    for jdk in &setup.jdks {
        let name = format!("attach-again-{}", jdk.version);
        let mut jvm = busy(setup, jdk, &name, &["-Xmx200m"])?;
        let mut addresses = Vec::new();
        for (round, options) in WAYS.iter().enumerate() {
            let log = jvm.java.folder().join(format!("run-{round}.lucce"));
            // Of a run that failed: it would stay as it is.
            let _ = fs::remove_file(&log);
            let log = log.to_string_lossy().into_owned();
            let pid = jvm.pid();
            let mut all = vec!["attach", &pid, "--out", &log];
            all.extend(options.iter().flat_map(|option| ["--opt", option]));
            jvm.lucce().text(0, &all)?;
            // While it is there another one is not taken.
            let said = jvm.lucce().text(2, &["attach", &pid])?;
            ensure(said.contains("has the agent already"), || said.clone())?;
            jvm.works_on()?;
            jvm.works_on()?;
            let is_leak = options[0].contains("leak");
            if !is_leak {
                counts(&mut jvm)?;
            }
            jvm.lucce().text(0, &["ctl", &pid, "detach"])?;
            jvm.until("nothing is left of the agent", |jvm| {
                let status = Own::of(&jvm.pid())?;
                Ok(status.threads.is_empty() && !status.maps.contains("run-"))
            })?;
            addresses.push(Own::of(&pid)?.addresses);
            let stats = jvm.lucce().stats(&log)?;
            ensure(stats["ended"] == true, || format!("round {round}: {stats}"))?;
            let told = || format!("round {round}: {stats}");
            match is_leak {
                true => ensure(stats["agent"]["leak.sampled"].as_u64() > Some(0), told)?,
                false => ensure(stats["agent"]["events.recorded"].as_u64() > Some(0), told)?,
            }
            let checked = jvm.lucce().run(&["check", "--json", &log])?;
            ensure(checked.status.code() != Some(1), told)?;
        }
        // Each has reserved a gigabyte for its tables alone.
        let grown = addresses[4].saturating_sub(addresses[0]);
        ensure(grown < 700 << 10, || {
            format!("address space in KB: {addresses:?}")
        })?;
        jvm.works_on()?;
        jvm.end()?.clean();
    }
    Ok(())
}

/// Waits for the agent, and for its first event.
fn counts(jvm: &mut Running<'_>) -> Checked {
    jvm.until("the agent counts", |jvm| {
        let status = jvm.ctl(&["status"]);
        Ok(status.is_ok_and(|status| status["recorded"].as_u64() > Some(0)))
    })
}

/// What the system says of a process.
struct Own {
    /// Names of the agent's threads.
    threads: Vec<String>,
    maps: String,
    /// Kilobytes.
    addresses: u64,
}

impl Own {
    fn of(pid: &str) -> Result<Own, String> {
        let read = |path: String| fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"));
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).map_err(|e| e.to_string())?;
        let names = tasks.flatten().filter_map(|task| {
            // One that ends just now says nothing.
            fs::read_to_string(task.path().join("comm")).ok()
        });
        let threads = names.filter(|name| name.starts_with("lucce")).collect();
        let status = read(format!("/proc/{pid}/status"))?;
        let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
        let size = size.and_then(|size| size.trim().strip_suffix("kB"));
        Ok(Own {
            threads,
            maps: read(format!("/proc/{pid}/maps"))?,
            addresses: size
                .and_then(|kb| kb.trim().parse().ok())
                .ok_or("no size")?,
        })
    }
}
