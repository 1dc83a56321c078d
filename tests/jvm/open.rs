//! `events=open`: what is open, what was closed, and what was collected without being closed. The oracle is a program that
//! prints what it left open, and programs with pools of libraries.

use std::collections::BTreeMap;
use std::fs;

use lucce_tests::{Checked, Ended, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::running::{self, Running};
use crate::{Test, test};

const PROGRAM: &str = "OpenResources";
const RESOURCES: &str = "resource=OpenResources$Store.open:shut+OpenResources$Pool.take:OpenResources$Pool.giveBack+\
    OpenResources$Chain.link:OpenResources$Chain.unlink";
const POOLS: &str = "io.lucce.apps.pools.Pools";
const JDKS: [u32; 3] = [11, 17, 25];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    let jdks = setup.jdks_from_11();
    for jdk in jdks.filter(|jdk| JDKS.contains(&jdk.version)) {
        let quick = jdk == setup.jdk();
        let mut add = |name: &str, run: fn(&Setup, &Jdk) -> Checked| {
            let full = format!("open::{}::{name}", jdk.version);
            tests.push(test(full, quick && name == "default", move || {
                run(setup, jdk)
            }));
        };
        add("default", default);
        add("attached", attached);
        // Their libraries and tests are compiled for later JDKs.
        if *jdk != setup.jdk_11 {
            add("pools", pools);
            add("netty", netty);
        }
        if jdk.version > 17 {
            add("netty-excluded", netty_excluded);
            add("netty-traces", netty_traces);
            add("out-of-scope", out_of_scope);
        }
    }
    tests
}

/// What became of resources: state, method and class, with their number.
type States = BTreeMap<(String, String, String), u64>;

fn expected_states(printed: &str) -> Result<States, String> {
    let mut states = States::new();
    for line in printed.lines() {
        let words: Vec<_> = line.split(' ').collect();
        // JDK 11 prints the handlers of signals, too, if it was started with some ignored.
        if let [
            state @ ("open" | "closed" | "collected" | "left"),
            method,
            number,
            class,
        ] = words[..]
        {
            let key = [state, method, class].map(str::to_owned);
            let number = number.parse().map_err(|e| format!("{line}: {e}"))?;
            states.insert(key.into(), number);
        }
    }
    Ok(states)
}

/// Beginnings of the names of the methods that open resources.
const NAMED: [&str; 6] = ["leak", "close", "drop", "fail", "forget", "use"];

/// The states that the report has for those methods of the class `owner`.
fn reported_states(report: &Value, owner: &str) -> Result<States, String> {
    let mut states = States::new();
    // A context with both has a row in both lists.
    let mut rows: BTreeMap<(&str, &str), &Value> = BTreeMap::new();
    for list in ["contexts", "never_closed", "all_closed"] {
        for row in report[list].as_array().ok_or(format!("no {list}"))? {
            let text = |key: &str| row[key].as_str().unwrap_or_default();
            rows.insert((text("stack"), text("type")), row);
        }
    }
    for ((_, class), row) in rows {
        let frames = row["frames"].as_array().ok_or("no frames")?;
        let own = frames.iter().filter(|frame| frame["class"] == owner);
        let mut methods = own.filter_map(|frame| frame["method"].as_str());
        let is_named = |method: &&str| NAMED.iter().any(|start| method.starts_with(start));
        let Some(method) = methods.find(is_named) else {
            continue;
        };
        for state in ["open", "closed", "collected"] {
            let number = row[state].as_u64().ok_or(format!("no {state}: {row}"))?;
            if number > 0 {
                let key = [state, method, class].map(str::to_owned);
                *states.entry(key.into()).or_default() += number;
            }
        }
    }
    Ok(states)
}

/// Compares what the report has for the methods and classes that the program names.
fn compare(report: &Value, printed: &str) -> Checked {
    let expected = expected_states(printed)?;
    ensure(expected.len() >= 40, || printed.to_owned())?;
    let reported = reported_states(report, PROGRAM)?;
    let is_named = |(_, method, class): &(String, String, String)| {
        expected
            .keys()
            .any(|(_, named, of)| named == method && of == class)
    };
    let found: States = reported
        .clone()
        .into_iter()
        .filter(|(key, _)| is_named(key))
        .collect();
    ensure(found == expected, || {
        let differs = |(key, number): &(&_, &u64)| expected.get(*key) != Some(*number);
        let different: Vec<_> = found.iter().filter(differs).collect();
        let missing: Vec<_> = expected
            .iter()
            .filter(|(key, _)| !found.contains_key(*key))
            .collect();
        format!("missing {missing:#?}, different {different:#?}")
    })?;
    // What the JDK opens for its own use in these methods, it may keep.
    let own_types = |class: &str| expected.keys().any(|(_, _, of)| of == class);
    let left = reported.keys().find(|(state, method, class)| {
        let closes = method.starts_with("close") || method.starts_with("fail");
        state != "closed" && closes && own_types(class)
    });
    ensure(left.is_none(), || format!("{left:?} is left"))
}

/// The line of `lucce top` that sums up what is open says what `lucce open` does, and its rows have the oldest first.
fn compare_top(java: &Java<'_>, target: &str) -> Checked {
    let open = java.lucce().text(0, &["open", "--top", "0", target])?;
    let summary = open.lines().next().ok_or("no summary")?;
    let args = ["top", target, "--once", "--interval", "100ms"];
    let top = java
        .lucce()
        .text(0, &[&args[..], &["--event", "open"]].concat())?;
    let shown = top
        .lines()
        .find_map(|line| line.strip_prefix("Open resources: "));
    let numbers = |text: &str| {
        let words = text.split(|c: char| !c.is_ascii_digit() && c != ',');
        words
            .filter(|word| word.contains(|c: char| c.is_ascii_digit()))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    // The age is later by a little, if the JVM runs.
    let counts = |text: &str| {
        let (open, rest) = text.split_once(", the oldest for ")?;
        let (_, past) = rest.split_once("; ")?;
        Some([numbers(open), numbers(past)])
    };
    let expected = summary.strip_prefix("open: ").and_then(counts);
    ensure(
        expected.is_some() && shown.and_then(counts) == expected,
        || format!("{summary}\n{top}"),
    )?;
    let row = top.lines().find(|line| line.starts_with("  oldest: "));
    ensure(row.is_some_and(|row| row.contains(", opened at: ")), || {
        top.clone()
    })
}

/// The page has a row for each context with open or collected resources.
fn compare_page(java: &Java<'_>, log: &str, report: &Value) -> Checked {
    let page = java.folder().join("open.html");
    let to = page.display().to_string();
    java.lucce().text(0, &["view", log, "-o", &to])?;
    let html = fs::read_to_string(&page).map_err(|e| e.to_string())?;
    let data = html.split_once("id=\"data\">").map(|(_, behind)| behind);
    let data = data.and_then(|data| data.split_once("</script>"));
    let (data, _) = data.ok_or("a page without data")?;
    let data: Value = serde_json::from_str(data).map_err(|e| e.to_string())?;
    let tables = data["facts"].as_array().ok_or("no tables")?;
    let table = tables.iter().find(|table| table["tab"] == "open");
    let rows = table.and_then(|table| table["rows"].as_array());
    let rows = rows.ok_or("no table of open resources")?;
    let mut sums = [0; 4];
    for row in rows {
        for (sum, cell) in sums.iter_mut().zip([2, 3, 4, 5]) {
            *sum += row["cells"][cell].as_u64().ok_or("no number")?;
        }
    }
    let listed = ["contexts", "never_closed"].map(|list| report[list].as_array());
    let mut expected = [0; 4];
    let mut seen = std::collections::BTreeSet::new();
    for row in listed.into_iter().flatten().flatten() {
        if seen.insert((row["stack"].to_string(), row["type"].to_string())) {
            for (sum, key) in expected
                .iter_mut()
                .zip(["open", "opened", "closed", "collected"])
            {
                *sum += row[key].as_u64().ok_or("no number")?;
            }
        }
    }
    ensure(sums == expected && rows.len() == seen.len(), || {
        format!(
            "the page has {sums:?} in {} rows, not {expected:?}",
            rows.len()
        )
    })
}

/// Netty's own records of leaks are those of numbers. A Netty that lacks a method keeps its own detector.
fn netty(setup: &Setup, jdk: &Jdk) -> Checked {
    let ended = compare_netty(setup, jdk, "numbers", Some("events=none"))?;
    for method in [
        "needReport",
        "getInitialHint",
        "setLeakListener",
        "reportTracedLeak",
    ] {
        let named = format!("ResourceLeakDetector.{method}(");
        ended.ensure(ended.stderr.contains(&named), method)?;
    }
    Ok(())
}

/// Without frames of Netty, records have all frames of the program.
fn netty_excluded(setup: &Setup, jdk: &Jdk) -> Checked {
    let options = "events=none,exclude=io.netty.*";
    compare_netty(setup, jdk, "excluded", Some(options)).map(|_| ())
}

/// Where no context is known, records are stack traces.
fn netty_traces(setup: &Setup, jdk: &Jdk) -> Checked {
    compare_netty(setup, jdk, "traces", None).map(|_| ())
}

/// Compares records of leaks with Netty's own: the program does. `options`: of the agent, if there is one.
fn compare_netty(
    setup: &Setup,
    jdk: &Jdk,
    mode: &str,
    options: Option<&str>,
) -> Result<Ended, String> {
    let target = setup.harness.join("artifacts/netty/target");
    let target = target.display();
    let java = Java::new(setup, jdk, &format!("open-{}-netty-{mode}", jdk.version))
        .class_path(format!(
            "{target}/test-classes:{target}/classes:{target}/lib/*"
        ))
        .main(["io.lucce.netty.run.NettyRun", mode]);
    let java = match options {
        Some(options) => java.agent(options),
        None => java,
    };
    let ended = java.run()?.expect(0)?;
    let leaks = ended.stdout.lines().find_map(|line| {
        let number = line.strip_prefix("OK ")?.strip_suffix(" leaks")?;
        number.parse::<u32>().ok()
    });
    ensure(leaks >= Some(30), || ended.stdout.clone())?;
    java.clean();
    Ok(ended)
}

fn read_open(java: &Java<'_>, target: &str) -> Result<Value, String> {
    java.lucce().json(&["open", "--json", "--top", "0", target])
}

fn run_program(setup: &Setup, jdk: &Jdk, name: &str, options: &str) -> Checked {
    let java = Java::new(setup, jdk, &format!("open-{}-{name}", jdk.version))
        .agent(&format!("events=open,verify=1,{RESOURCES}{options}"))
        .flags(["-Xcheck:jni"])
        .main([PROGRAM]);
    java.run()?.expect(0)?;
    let log = java.log().to_string_lossy().into_owned();
    let report = read_open(&java, &log)?;
    compare(&report, &java.printed("stdout"))?;
    let streams = report["contexts"].as_array().ok_or("no contexts")?;
    let stream = streams.iter().find(|row| {
        let first = |frame: &Value| frame["method"] == "leakStream";
        row["frames"]
            .as_array()
            .is_some_and(|frames| frames.iter().any(first))
    });
    let stream = stream.ok_or("no streams")?;
    let quarters = stream["opened_by_quarter"]
        .as_array()
        .ok_or("no quarters")?;
    let sum: u64 = quarters.iter().filter_map(Value::as_u64).sum();
    ensure(
        stream["threads"]["main"] == 3
            && sum == 3
            && stream["oldest_millis"].as_u64() >= stream["newest_millis"].as_u64(),
        || stream.to_string(),
    )?;
    let text = java.lucce().text(0, &["open", "--top", "0", &log])?;
    for words in [
        "open: ",
        "\n  3 java.io.FileInputStream for ",
        "opened at OpenResources.leakStream(OpenResources.java:",
        "collected but never closed: 11 by ",
        "\nby type:\n",
    ] {
        ensure(text.contains(words), || format!("{words}: {text}"))?;
    }
    compare_top(&java, &log)?;
    compare_page(&java, &log, &report)?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

fn default(setup: &Setup, jdk: &Jdk) -> Checked {
    run_program(setup, jdk, "default", "")
}

/// The classes of the JDK are in no trace; their hooks ask the VM.
fn out_of_scope(setup: &Setup, jdk: &Jdk) -> Checked {
    run_program(setup, jdk, "out-of-scope", ",instrument=app")
}

/// Hooks go into a running JVM, whose open resources are shown while it runs.
fn attached(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("open-{}-attached", jdk.version));
    let go = running::signal_file(&java).display().to_string();
    let log = java.log().display().to_string();
    let java = java.flags(["-Xcheck:jni"]).main([PROGRAM, &*go]);
    let mut jvm = Running::with_line(java, "waits")?;
    let pid = jvm.pid();
    let opts = ["events=open", RESOURCES, "verify=3"];
    let mut args = vec!["attach", &pid, "--out", &log];
    args.extend(opts.iter().flat_map(|option| ["--opt", option]));
    jvm.lucce().text(0, &args)?;
    // Then every hook is in.
    jvm.ctl(&["set", "events=open+call:OpenResources.openAll"])?;
    fs::write(&go, "").map_err(|e| e.to_string())?;
    jvm.until("ready", |jvm| {
        Ok(jvm.java.printed("stdout").contains("ready"))
    })?;
    // Hooks of cleaners are in the program's own classes, which stay as they are.
    let printed = jvm.java.printed("stdout");
    let expected: Vec<_> = printed
        .lines()
        .filter(|line| !line.contains("Cleanable"))
        .collect();
    let expected = expected.join("\n");
    compare(&read_open(&jvm.java, &pid)?, &expected)?;
    compare_top(&jvm.java, &pid)?;
    jvm.ctl(&["detach"])?;
    // The log is complete without its JVM.
    compare(&read_open(&jvm.java, &log)?, &expected)?;
    jvm.lucce().check(log.as_ref())
}

/// Real libraries: one method of each pair forgets to give back what it took.
fn pools(setup: &Setup, jdk: &Jdk) -> Checked {
    let apps = setup.harness.join("apps/target");
    let path = format!("{0}/apps.jar:{0}/lib/*", apps.display());
    let java = Java::new(setup, jdk, &format!("open-{}-pools", jdk.version))
        .agent("events=open,verify=1")
        .class_path(path)
        .main([POOLS]);
    java.run()?.expect(0)?;
    let report = read_open(&java, &java.log().to_string_lossy())?;
    let expected = expected_states(&java.printed("stdout"))?;
    let mut left = States::new();
    for ((state, method, class), number) in reported_states(&report, POOLS)? {
        // A collection may come, or not.
        if state != "closed" {
            *left.entry(("left".into(), method, class)).or_default() += number;
        }
    }
    // Of what another thread opens, the sum of its class.
    for row in report["types"].as_array().ok_or("no types")? {
        let number = |key: &str| row[key].as_u64().unwrap_or_default();
        let class = row["type"].as_str().unwrap_or_default();
        let key = ("left".into(), "-".into(), class.into());
        left.insert(key, number("open") + number("collected"));
    }
    ensure(expected.len() >= 5, || java.printed("stdout"))?;
    for (key, number) in &expected {
        ensure(left.get(key) == Some(number), || {
            format!("{key:?}: expected {number}, found {left:#?}")
        })?;
    }
    // What was given back is not left. Clients keep their sockets.
    let used = left.keys().find(|(_, method, class)| {
        method.starts_with("use") && expected.keys().any(|(_, _, of)| of == class)
    });
    ensure(used.is_none(), || format!("{used:?} is left: {left:#?}"))?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}
