//! Who waits for whom, and which threads live. The oracles are programs with known numbers.

use std::collections::BTreeMap;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::running::Running;
use crate::{Test, test};

/// Name, flags, arguments, and the first JDK that has them.
type Mode = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    u32,
);

const MODES: [Mode; 6] = [
    ("default", &["-Xcheck:jni"], &[], 11),
    ("int", &["-Xint"], &[], 11),
    (
        "comp",
        &[COMPILE_PROGRAMS, "-XX:TieredStopAtLevel=1"],
        &[],
        11,
    ),
    (
        "biased",
        &[
            "-XX:+IgnoreUnrecognizedVMOptions",
            "-XX:+UseBiasedLocking",
            "-XX:BiasedLockingStartupDelay=0",
        ],
        &[],
        11,
    ),
    ("z", &["-XX:+UseZGC"], &[], 11),
    ("virtual", &[], &["--virtual"], 21),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in setup.jdks_from_11() {
        for mode in MODES.iter().filter(|mode| jdk.version >= mode.3) {
            let quick = jdk == setup.jdk() && mode.0 == "default";
            let name = format!("lock_holders::{}::{}", jdk.version, mode.0);
            tests.push(test(name, quick, move || holders(setup, jdk, mode)));
        }
        let name = format!("lock_holders::{}::living_threads", jdk.version);
        tests.push(test(name, jdk == setup.jdk(), move || living(setup, jdk)));
    }
    tests
}

/// Methods that wait and that hold, with a number.
type Pairs = BTreeMap<(String, String), u64>;

fn holders(setup: &Setup, jdk: &Jdk, (mode, flags, arguments, _): &Mode) -> Checked {
    let java = Java::new(setup, jdk, &format!("lock-holders-{}-{mode}", jdk.version))
        .agent("events=lock,verify=1,exclude=LockHolders$Unhooked")
        .flags(*flags)
        .main(["LockHolders"].iter().chain(*arguments));
    java.run()?.expect(0)?;
    let log = java.log().to_string_lossy().into_owned();
    let args = ["report", "--json", "--top", "0", "--event", "lock", &log];
    let report = java.lucce().json(&args)?;
    let mut expected = Pairs::new();
    let mut unknown = BTreeMap::new();
    let printed = java.printed("stdout");
    for line in printed.lines().filter(|line| line.starts_with("await")) {
        let words: Vec<_> = line.split(' ').collect();
        let [waiting, holding, count] = words[..] else {
            return Err(format!("not three words: {line}"));
        };
        let count: u64 = count.parse().map_err(|e| format!("{line}: {e}"))?;
        match holding {
            "-" => drop(unknown.insert(waiting.to_owned(), count)),
            _ => drop(expected.insert((waiting.to_owned(), holding.to_owned()), count)),
        }
    }
    ensure(expected.len() == 7 && unknown.len() == 3, || {
        printed.clone()
    })?;
    let found = pairs(&report)?;
    ensure(found == expected, || {
        format!("found {found:?}, expected {expected:?}")
    })?;
    let holders = &report["holders"];
    let number = |key: &str| holders[key].as_u64().unwrap_or_default();
    let sum = number("known") + number("unknown");
    let least: u64 = expected.values().chain(unknown.values()).sum();
    ensure(number("waits") == sum && sum >= least, || {
        holders.to_string()
    })?;
    ensure(number("unknown") >= unknown.values().sum(), || {
        holders.to_string()
    })?;
    let text = java
        .lucce()
        .text(0, &["report", "--event", "lock", "--top", "0", &log])?;
    let says = "LockHolders.holdBlock(LockHolders.java:";
    ensure(
        text.contains("who waits for whom: ") && text.contains(says),
        || text,
    )?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// The pairs of methods of the program, each with a time that the program makes at least.
fn pairs(report: &Value) -> Result<Pairs, String> {
    const HELD_NANOS: u64 = 25_000_000;
    let mut found = Pairs::new();
    for pair in report["holders"]["pairs"].as_array().into_iter().flatten() {
        let waiting = method(&pair["waiting"], "await");
        let (Some(waiting), Some(waits)) = (waiting, pair["waits"].as_u64()) else {
            continue;
        };
        let holder = method(&pair["holder"], "hold");
        let holder = holder.ok_or_else(|| format!("a foreign holder: {pair}"))?;
        let held = pair["held_nanos"].as_u64().unwrap_or_default();
        ensure(held >= waits * HELD_NANOS, || format!("too short: {pair}"))?;
        *found.entry((waiting, holder)).or_default() += waits;
    }
    Ok(found)
}

/// The innermost method of the program with this beginning, but not the one that all of its waits have.
fn method(context: &Value, begin: &str) -> Option<String> {
    let frames = context["frames"].as_array()?;
    let is_own = |frame: &&Value| {
        let class = frame["class"].as_str();
        class.is_some_and(|class| class.starts_with("LockHolders"))
    };
    let own = frames.iter().filter(is_own);
    let mut methods = own.filter_map(|frame| frame["method"].as_str());
    let found = methods.find(|method| method.starts_with(begin) && *method != "await");
    found.map(str::to_owned)
}

/// The numbers of [`LivingThreads`](../java/LivingThreads.java): at the end, while the JVM runs, and after it was killed.
fn living(setup: &Setup, jdk: &Jdk) -> Checked {
    let name = format!("living-threads-{}", jdk.version);
    let java = Java::new(setup, jdk, &name).agent("events=thread");
    let java = java.main(["LivingThreads"]);
    java.run()?.expect(0)?;
    check_living(&java)?;
    java.clean();
    let java = Java::new(setup, jdk, &format!("{name}-killed")).agent("events=thread");
    let mut jvm = Running::with_line(java.main(["LivingThreads", "wait"]), "ready")?;
    check_living(&jvm.java)?;
    jvm.child.kill().map_err(|e| e.to_string())?;
    jvm.child.wait().map_err(|e| e.to_string())?;
    check_living(&jvm.java)?;
    jvm.java.clean();
    Ok(())
}

fn check_living(java: &Java<'_>) -> Checked {
    let log = java.log().to_string_lossy().into_owned();
    let args = ["report", "--json", "--top", "0", "--event", "thread", &log];
    let report = java.lucce().json(&args)?;
    let rows = report["threads"]["starts"].as_array().cloned();
    let mut found = BTreeMap::new();
    for row in rows.into_iter().flatten() {
        let frames = row["frames"].as_array().cloned().unwrap_or_default();
        let own = frames
            .iter()
            .find(|frame| frame["class"] == "LivingThreads");
        if let Some(method) = own.and_then(|frame| frame["method"].as_str()) {
            let sums: &mut [u64; 3] = found.entry(method.to_owned()).or_default();
            for (sum, key) in sums.iter_mut().zip(["started", "alive", "ended"]) {
                *sum += row[key].as_u64().unwrap_or_default();
            }
        }
    }
    let expected = [
        ("end".to_owned(), [30, 0, 30]),
        ("keep".to_owned(), [12, 12, 0]),
    ];
    ensure(found == BTreeMap::from(expected), || {
        report["threads"].to_string()
    })?;
    let oldest = report["threads"]["oldest_millis"].as_u64();
    ensure(oldest >= Some(300), || report["threads"].to_string())?;
    let text = java
        .lucce()
        .text(0, &["report", "--event", "thread", &log])?;
    let says = "started at LivingThreads.keep(LivingThreads.java:";
    ensure(text.contains(says), || text)
}
