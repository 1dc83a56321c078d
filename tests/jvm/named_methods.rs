//! `events=call:METHODS` and `events=time:METHODS`: what a program counts and measures itself is what reports say; on JDK 25,
//! what Flight Recorder counts too.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Java, Jdk, Lucce, Setup, ensure};
use serde_json::Value;

use crate::modes::{self, Case, Mode, differences};
use crate::running::{self, Running};
use crate::{Test, test};

const PROGRAM: &str = "NamedMethods";
const METHODS: &str = "events=call:NamedMethods$Repo.*+NamedMethods$First.put+NamedMethods$Store.*\
                       +NamedMethods.leaf+java.util.BitSet.flip+java.lang.System.gc+java.lang.Runtime.gc\
                       +com.acme.None.*+time:NamedMethods$Repo.save+NamedMethods$Repo.walk";

/// What the program prints: a number by its name.
type Sums = BTreeMap<String, u64>;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 5] = [
        ("default", &["-Xcheck:jni"], ",verify=7"),
        ("int", &["-Xint"], "+alloc+exception,verify=31"),
        (
            "comp",
            &[COMPILE_PROGRAMS, "-XX:-TieredCompilation"],
            "+alloc+lock+thread,verify=7",
        ),
        ("stream", &[], ",stream=on,cache=off,verify=7"),
        (
            "app",
            &["-XX:+UseSerialGC"],
            ",verify=7,include=NamedMethods+java.util.*+java.lang.System",
        ),
    ];
    let mut tests = modes::each_from_11(setup, "named_methods", &MODES, check_mode);
    for jdk in setup.jdks_from_11() {
        let name = |what: &str| format!("named_methods::{}::{what}", jdk.version);
        let is_quick = jdk == setup.jdk();
        tests.push(test(name("attached"), is_quick, move || {
            attached(setup, jdk)
        }));
        if jdk.version >= 21 {
            tests.push(test(name("virtual"), false, move || {
                virtual_threads(setup, jdk)
            }));
        }
        if jdk.version >= 25 {
            tests.push(test(name("flight_recorder"), false, move || {
                flight_recorder(setup, jdk)
            }));
        }
    }
    tests
}

fn check_mode(case: &Case) -> Checked {
    check_run(
        case.java(&format!("{METHODS}{}", case.options))
            .main([PROGRAM]),
    )
}

fn virtual_threads(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(
        setup,
        jdk,
        &format!("named_methods-{}-virtual", jdk.version),
    );
    let java = java.agent(&format!("{METHODS},verify=5"));
    check_run(java.main([PROGRAM, "--virtual"]))
}

fn check_run(java: Java<'_>) -> Checked {
    let ended = java.run()?.expect(0)?;
    let expected = read_sums(&ended.stdout);
    ended.ensure(expected.len() > 15, "the program says what to expect")?;
    for words in [
        // Native, or out of scope.
        "java.lang.Runtime.gc is left as it is: calls not counted: it",
        "no method of a loaded class matches com.acme.None.*",
    ] {
        ended.ensure(ended.stderr.contains(words), words)?;
    }
    java.lucce().check(&java.log())?;
    compare_with_report(java.lucce(), &java.log().display().to_string(), &expected)?;
    java.clean();
    Ok(())
}

/// Hooks go into a running JVM, others follow by `lucce ctl`, and all go out again.
fn attached(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(
        setup,
        jdk,
        &format!("named_methods-{}-attached", jdk.version),
    );
    let file = running::signal_file(&java);
    let log = java.log().display().to_string();
    let path = file.display().to_string();
    let java = java
        .flags(["-Xcheck:jni"])
        .main([PROGRAM, "--wait", &*path]);
    let mut jvm = Running::of(java)?;
    // A round without the agent compiles the methods, and starts the classes.
    round(&mut jvm, &path)?;
    let pid = jvm.pid();
    let only = "events=call:NamedMethods$First.put";
    jvm.lucce().text(
        0,
        &[
            "attach", &pid, "--out", &log, "--opt", only, "--opt", "verify=3",
        ],
    )?;
    // Then every hook is in.
    jvm.ctl(&["set", METHODS])?;
    let first = round(&mut jvm, &path)?;
    jvm.ctl(&["set", "events=call:NamedMethods$First.put"])?;
    let second = round(&mut jvm, &path)?;
    jvm.ctl(&["detach"])?;
    let third = round(&mut jvm, &path)?;
    ensure(!third.is_empty(), || "the program goes on".to_owned())?;
    let mut expected = first;
    let put = "calls NamedMethods$First.put";
    *expected.entry(put.to_owned()).or_default() += second.get(put).copied().unwrap_or(0);
    jvm.lucce().check(log.as_ref())?;
    compare_with_report(jvm.lucce(), &log, &expected)
}

/// One round of the program, and what it says of it.
fn round(jvm: &mut Running<'_>, file: &str) -> Result<Sums, String> {
    let before = jvm.java.printed("stdout").len();
    fs::write(file, "").map_err(|e| e.to_string())?;
    jvm.until("a round", |jvm| {
        let printed = jvm.java.printed("stdout");
        Ok(printed
            .get(before..)
            .is_some_and(|new| new.contains("round\n")))
    })?;
    let printed = jvm.java.printed("stdout");
    Ok(read_sums(printed.get(before..).unwrap_or_default()))
}

fn read_sums(text: &str) -> Sums {
    let lines = text.lines().filter_map(|line| {
        let (name, number) = line.rsplit_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    });
    lines.collect()
}

/// Compares numbers exactly. Times lie between those from within and those from without.
fn compare_with_report(lucce: Lucce, log: &str, expected: &Sums) -> Checked {
    let calls = |sums: &Sums| -> Sums {
        let calls = sums.iter().filter(|(name, _)| name.starts_with("calls "));
        calls
            .map(|(name, number)| (name.clone(), *number))
            .collect()
    };
    let reported = read_calls(lucce, log)?;
    let expected_calls = calls(expected);
    ensure(reported == expected_calls, || {
        differences(&expected_calls, &reported)
    })?;
    let times = read_times(lucce, log)?;
    let number = |key: &str, method: &str| {
        let key = format!("{key} {method}");
        expected.get(&key).copied().unwrap_or(0)
    };
    ensure(times.len() == 2, || format!("{times:?}"))?;
    for (method, time) in times {
        let counts = (number("ended", &method), number("threw", &method));
        ensure((time.ended, time.threw) == counts, || {
            format!("{method}: {time:?}, expected {counts:?}")
        })?;
        let inner = (number("inner", &method), number("inner-longest", &method));
        let outer = (number("outer", &method), number("outer-longest", &method));
        let is_between = inner.0 <= time.sum
            && time.sum <= outer.0
            && inner.1 <= time.longest
            && time.longest <= outer.1;
        ensure(is_between, || {
            format!("{method}: {time:?} is not between {inner:?} and {outer:?}")
        })?;
    }
    Ok(())
}

fn read_calls(lucce: Lucce, log: &str) -> Result<Sums, String> {
    let report = lucce.json(&[
        "report", "--json", "--top", "0", "--event", "call", "--by", "method", log,
    ])?;
    let mut sums = Sums::new();
    for row in report["rows"].as_array().ok_or("no rows")? {
        let name = row["name"].as_str().ok_or("no name")?;
        let own = row["own"].as_u64().ok_or("no own")?;
        // Bodies of lambdas match patterns with a star too; the program does not count them.
        if own > 0 && !name.contains(".lambda$") {
            sums.insert(format!("calls {name}"), own);
        }
    }
    Ok(sums)
}

/// The times of a method.
#[derive(Default, Debug)]
struct MethodTimes {
    ended: u64,
    threw: u64,
    sum: u64,
    longest: u64,
}

fn read_times(lucce: Lucce, log: &str) -> Result<BTreeMap<String, MethodTimes>, String> {
    let report = lucce.json(&["report", "--json", "--top", "0", "--event", "time", log])?;
    let mut times: BTreeMap<String, MethodTimes> = BTreeMap::new();
    for context in report["contexts"].as_array().ok_or("no contexts")? {
        let frame = &context["frames"][0];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = format!("{}.{}", text(&frame["class"]), text(&frame["method"]));
        let number = |key: &str| context[key].as_u64().ok_or(format!("no {key}: {context}"));
        let time = times.entry(name).or_default();
        let (count, value) = (number("count")?, number("value")?);
        let detail = text(&context["class"]);
        match detail.ends_with(", threw") {
            true => time.threw += count,
            false => time.ended += count,
        }
        check_power(&detail, count, value)?;
        time.sum += value;
        time.longest = time.longest.max(number("longest")?);
    }
    Ok(times)
}

/// The events of a detail lie between its power of two and the next one.
fn check_power(detail: &str, count: u64, value: u64) -> Checked {
    let parse = || {
        let text = detail.strip_prefix("from ")?.trim_end_matches(", threw");
        let (amount, unit) = text.split_once(' ')?;
        let factor = match unit {
            "ns" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => return None,
        };
        Some(amount.parse::<f64>().ok()? * factor)
    };
    let from = parse().ok_or(format!("no detail of a time: {detail}"))?;
    let mean = value as f64 / count as f64;
    // The detail is rounded.
    ensure(mean >= from * 0.99 && mean <= from.max(1.0) * 2.02, || {
        format!("{detail}: {count} times have {value} ns")
    })
}

/// Flight Recorder counts the same calls in a run of its own: the program's are always as many. It counts a call twice whose
/// exception passes a handler of the method, so `save` is left out.
fn flight_recorder(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(
        setup,
        jdk,
        &format!("named_methods-{}-recorder", jdk.version),
    );
    let recording = java.folder().join("run.jfr");
    let filter = "NamedMethods$Repo::find;NamedMethods::leaf";
    let start = format!(
        "-XX:StartFlightRecording:filename={},jdk.MethodTiming#enabled=true,jdk.MethodTiming#filter={filter}",
        recording.display()
    );
    let recorded = java.flags([start]).main([PROGRAM]);
    recorded.run()?.expect(0)?;
    let printed = Command::new(jdk.tool("jfr"))
        .args(["print", "--json", "--events", "jdk.MethodTiming"])
        .arg(&recording)
        .output()
        .map_err(|e| e.to_string())?;
    let events: Value = serde_json::from_slice(&printed.stdout).map_err(|e| e.to_string())?;
    let mut counted = Sums::new();
    for event in events["recording"]["events"]
        .as_array()
        .ok_or("no events")?
    {
        let values = &event["values"];
        let name = values["method"]["name"].as_str().ok_or("no method")?;
        let invocations = values["invocations"].as_u64().ok_or("no invocations")?;
        // Each event has the number since the start; overloads have one each.
        let descriptor = values["method"]["descriptor"].as_str().unwrap_or_default();
        let sum = counted.entry(format!("{name}{descriptor}")).or_default();
        *sum = invocations.max(*sum);
    }
    let java = Java::new(setup, jdk, &format!("named_methods-{}-beside", jdk.version));
    let java = java.agent(METHODS).main([PROGRAM]);
    java.run()?.expect(0)?;
    let calls = read_calls(java.lucce(), &java.log().display().to_string())?;
    for (name, method) in [
        ("find", "NamedMethods$Repo.find"),
        ("leaf", "NamedMethods.leaf"),
    ] {
        let of_method = counted.iter().filter(|(key, _)| key.starts_with(name));
        let theirs: u64 = of_method.map(|(_, count)| *count).sum();
        let ours = calls.get(&format!("calls {method}")).copied();
        ensure(ours == Some(theirs) && theirs > 0, || {
            format!("{method}: {ours:?}, Flight Recorder {theirs}: {counted:?}")
        })?;
    }
    java.clean();
    Ok(())
}
