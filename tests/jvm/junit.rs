//! Tests that limit what they allocate, run by JUnit's own launcher: exact counts, traces, and reasons.

use std::collections::BTreeMap;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};

use crate::{Test, test};

/// The program tells it as well: tests whose names begin so must fail.
const FAILING: &str = "fails";

/// Name, agent's options, JVM's flags.
const MODES: [(&str, &str, &[&str]); 3] = [
    ("default", "events=alloc+thread,verify=29", &[]),
    ("int", "verify=97", &["-Xint"]),
    // The VM's own objects are counted as well, and none of them is a test's.
    (
        "all",
        "events=alloc=all,tracking=cct,verify=31",
        &["-XX:+UseSerialGC"],
    ),
];

/// Options with which nothing can be counted exactly, and what is said of it.
const UNABLE: [(&str, &str); 5] = [
    (
        "events=none",
        "the agent does not count every allocation now",
    ),
    ("events=alloc=512k", "no class has hooks"),
    (
        "events=alloc=512k,tracking=lazy",
        "the agent does not count every allocation now",
    ),
    ("instrument=app", "the agent counts in some classes only"),
    ("burst=0.2ms/2ms", "the agent counts in bursts only"),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        for (at, (name, options, flags)) in MODES.into_iter().enumerate() {
            // The other modes are of the agent, not of the JDK.
            if at == 0 || jdk == setup.jdk() {
                let name = format!("junit::{}::{name}", jdk.version);
                let folder = name.replace("::", "-");
                tests.push(test(name, at == 0 && jdk == setup.jdk(), move || {
                    let java = java(setup, jdk, &folder).agent(options).flags(flags);
                    check(java, options.contains("thread"))
                }));
            }
        }
    }
    tests.push(test("junit::unable", false, move || {
        UNABLE
            .iter()
            .try_for_each(|(options, reason)| unable(setup, options, reason))
    }));
    tests
}

fn java<'a>(setup: &'a Setup, jdk: &'a Jdk, name: &str) -> Java<'a> {
    let target = setup
        .harness
        .join("artifacts/junit/target")
        .display()
        .to_string();
    let class_path = format!("{target}/test-classes:{target}/classes:{target}/lib/*");
    Java::new(setup, jdk, name)
        .class_path(class_path)
        .main(["io.lucce.junit.LimitedRun"])
}

/// How each test ended, by its name.
fn ends(text: &str) -> BTreeMap<&str, &str> {
    let tests = text.split("== ").filter_map(|test| test.split_once('\n'));
    tests.map(|(name, end)| (name, end.trim_end())).collect()
}

/// `knows_origins`: the agent knows which threads a test starts.
fn check(java: Java<'_>, knows_origins: bool) -> Checked {
    let ended = java.run()?.expect(0)?;
    let ends = ends(&ended.stdout);
    ended.ensure(ends.len() == 21, "21 tests are run")?;
    for (name, end) in &ends {
        let fails = name.starts_with(FAILING)
            && !["failsForThree(int)[1]", "failsForThree(int)[2]"].contains(name);
        let expected = if fails { "FAILED" } else { "SUCCESSFUL" };
        ensure(end.starts_with(expected), || format!("{name}: {end}"))?;
    }
    let lines = |name: &str| -> Vec<String> {
        let lines = ends.get(name).into_iter().flat_map(|end| end.lines());
        lines.map(without_numbers).collect()
    };
    let failed = "FAILED org.opentest4j.AssertionFailedError: allocates";
    let at = "\tat io.lucce.junit.Limited";
    let expected = [
        (
            "failsByOneByte()",
            vec![
                format!("{failed} 360 bytes, 1 more than the limit of 359"),
                "360 bytes in 3 objects".into(),
                "360 bytes  3 × byte[]".into(),
                format!("{at}.make(Limited.java)"),
                format!("{at}.failsByOneByte(Limited.java)"),
            ],
        ),
        (
            "failsByBoth()",
            vec![
                format!(
                    "{failed} 40 bytes, 39 more than the limit of 1, and 2 objects, 1 more than the limit of 1"
                ),
                "40 bytes in 2 objects".into(),
                "24 bytes  1 × int[]".into(),
                format!("{at}.failsByBoth(Limited.java)"),
                "16 bytes  1 × io.lucce.junit.Limited$Node".into(),
                format!("{at}.failsByBoth(Limited.java)"),
            ],
        ),
        (
            "failsByItsClass()",
            vec![
                format!("{failed} 2 objects, 1 more than the limit of 1"),
                "240 bytes in 2 objects".into(),
                "240 bytes  2 × byte[]".into(),
                format!("{at}.make(Limited.java)"),
                format!("{at}$OfAClass.failsByItsClass(Limited.java)"),
            ],
        ),
        (
            "failsForAReasonOfItsOwn()",
            vec!["FAILED java.lang.IllegalStateException: its own".into()],
        ),
        (
            "failsForALimitBelowNothing()",
            vec![below_nothing("failsForALimitBelowNothing")],
        ),
        (
            "failsForFewerWarmUpsThanNone()",
            vec![below_nothing("failsForFewerWarmUpsThanNone")],
        ),
    ];
    for (name, expected) in expected {
        let found = lines(name);
        ensure(found == expected, || {
            format!("{name}: {found:#?}, not {expected:#?}")
        })?;
    }
    // By the VM's own count, which also has what JUnit and the agent allocate in the thread.
    let by_the_heap = lines("failsByTheHeap()");
    let first = by_the_heap.first().map_or("", String::as_str);
    ensure(
        first.starts_with(failed) && first.contains(" bytes of the heap, "),
        || format!("{by_the_heap:#?}"),
    )?;
    let by_a_thread = lines("failsByAnotherThread()");
    let first = by_a_thread.first().map_or("", String::as_str);
    let is_told = match knows_origins {
        true => first.starts_with(failed) && first.ends_with("more than the limit of 100,000"),
        false => first.contains("events=alloc+thread"),
    };
    ensure(is_told, || format!("{by_a_thread:#?}"))?;
    same_ids(&java, &ended.stdout)?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// What is said of an annotation with a number that is none.
fn below_nothing(name: &str) -> String {
    format!(
        "FAILED org.junit.jupiter.api.extension.ExtensionConfigurationException: @AllocatesAtMost of Limited.{name} wants bytes, objects, heapBytes and warmUps of 0 and more"
    )
}

/// Each place says its number and its content id, as the decoder has it.
fn same_ids(java: &Java<'_>, text: &str) -> Checked {
    let places = text.lines().filter_map(|line| line.split_once("  lucce:"));
    let mut compared = 0;
    for (_, ids) in places {
        let (number, stack) = ids.split_once("  ").ok_or_else(|| ids.to_owned())?;
        let log = java.log().to_string_lossy().into_owned();
        let number = format!("lucce:{number}");
        let decoded = java.lucce().json(&["decode", "--json", &log, &number])?;
        ensure(decoded["stack"] == stack, || format!("{stack}: {decoded}"))?;
        compared += 1;
    }
    ensure(compared >= 4, || format!("{compared} places in {text}"))
}

/// Without numbers of contexts and lines.
fn without_numbers(line: &str) -> String {
    let line = line.split("  lucce:").next().unwrap_or(line);
    match line.split_once(".java:") {
        Some((before, _)) => format!("{before}.java)"),
        None => line.to_owned(),
    }
}

fn unable(setup: &Setup, options: &str, reason: &str) -> Checked {
    let java = java(setup, setup.jdk(), "junit-unable").agent(options);
    let ended = java.run()?.expect(0)?;
    let own = format!("skipped: @AllocatesAtMost cannot count: {reason}");
    let tests = ends(&ended.stdout);
    let is_skipped = tests.get("fits()").is_some_and(|end| end.starts_with(&own));
    ended.ensure(is_skipped, &format!("{options}: skipped with a reason"))?;
    java.clean();
    let java = java_required(setup).agent(options);
    let ended = java.run()?.expect(0)?;
    let tests = ends(&ended.stdout);
    let fails = |end: &&str| end.starts_with("FAILED") && end.contains(reason);
    ended.ensure(
        tests.get("fits()").is_some_and(fails),
        &format!("{options}: fails where the agent is required"),
    )?;
    java.clean();
    Ok(())
}

fn java_required(setup: &Setup) -> Java<'_> {
    java(setup, setup.jdk(), "junit-required").main(["io.lucce.junit.LimitedRun", "required"])
}
