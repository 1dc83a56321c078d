//! Who defines classes. The oracles are a program with known numbers, and the VM's own counts (`ClassLoadingMXBean`).

use std::collections::BTreeMap;
use std::fs;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::running::{self, Running};
use crate::{Test, test};

const PROGRAM: &str = "DefinedClasses";

/// Name, flags and options. With `alloc`, classes have hooks.
const MODES: [(&str, &[&str], &str); 3] = [
    ("default", &["-Xcheck:jni"], "events=class,verify=1"),
    ("hooks", &[], "events=class+alloc,verify=1"),
    ("z", &["-XX:+UseZGC"], "events=class,verify=1"),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in setup.jdks_from_11() {
        for mode in MODES {
            let is_quick = jdk == setup.jdk() && mode.0 == "default";
            let name = format!("defined_classes::{}::{}", jdk.version, mode.0);
            tests.push(test(name, is_quick, move || defined(setup, jdk, mode)));
        }
        let name = format!("defined_classes::{}::attached", jdk.version);
        tests.push(test(name, false, move || attached(setup, jdk)));
    }
    tests
}

fn defined(setup: &Setup, jdk: &Jdk, (mode, flags, options): (&str, &[&str], &str)) -> Checked {
    let name = format!("defined-classes-{}-{mode}", jdk.version);
    let java = Java::new(setup, jdk, &name).agent(options);
    let java = java.flags(flags).main([PROGRAM]);
    java.run()?.expect(0)?;
    compare_with_report(&java)?;
    // Hooks make classes larger, and older JDKs count otherwise.
    if jdk.version >= 17 && !options.contains("alloc") {
        compare_metaspace(&java)?;
    }
    let log = java.log().to_string_lossy().into_owned();
    let rows = definitions(&java, &log)?;
    // Only hooks have the bytes of hidden classes.
    let hidden = rows.iter().filter(|row| is_hidden_by(row, "hidden"));
    let bytes: u64 = hidden.map(|row| number(row, "bytes")).sum();
    ensure((bytes > 0) == options.contains("alloc"), || {
        format!("hidden: {bytes} bytes")
    })?;
    // The estimate covers living classes with known bytes, and the report says so if there are others.
    let sum = |key| rows.iter().map(|row| number(row, key)).sum::<u64>();
    let (covered, alive) = (sum("metaspace_classes"), sum("alive"));
    let summary = java
        .lucce()
        .text(0, &["report", "--event", "class", "--top", "1", &log])?;
    let says = summary
        .lines()
        .find(|line| line.starts_with("defined classes: "));
    let says_part = says.is_some_and(|line| line.contains(" of them, "));
    let has_part = covered > 0 && covered < alive;
    ensure(
        says_part == has_part && (has_part || options.contains("alloc")),
        || format!("{covered} of {alive} classes: {says:?}"),
    )?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// The agent comes before the classes do, and leaves after them.
fn attached(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(
        setup,
        jdk,
        &format!("defined-classes-{}-attached", jdk.version),
    );
    let file = running::signal_file(&java);
    let log = java.log().display().to_string();
    let path = file.display().to_string();
    let mut jvm = Running::of(java.flags(["-Xcheck:jni"]).main([PROGRAM, &*path]))?;
    let pid = jvm.pid();
    let options = ["--opt", "events=class", "--opt", "verify=1"];
    let attach = [&["attach", &pid, "--out", &log][..], &options].concat();
    jvm.lucce().text(0, &attach)?;
    fs::write(&file, "").map_err(|e| e.to_string())?;
    jvm.until("all classes", |jvm| {
        let printed = jvm.java.printed("stdout");
        Ok(printed.lines().any(|line| line == "done"))
    })?;
    jvm.ctl(&["detach"])?;
    compare_with_report(&jvm.java)?;
    jvm.lucce().check(log.as_ref())?;
    jvm.java.clean();
    Ok(())
}

/// Classes and loaders that were defined, and those that were unloaded, by what the program calls them.
type Numbers = BTreeMap<String, (u64, u64)>;

fn compare_with_report(java: &Java<'_>) -> Checked {
    let printed = java.printed("stdout");
    let mut expected = Numbers::new();
    for line in printed.lines() {
        if let [name, defined, unloaded] = line.split(' ').collect::<Vec<_>>()[..] {
            let number = |text: &str| text.parse().map_err(|e| format!("{line}: {e}"));
            expected.insert(name.to_owned(), (number(defined)?, number(unloaded)?));
        }
    }
    let by_vm = expected.remove("loaded").ok_or_else(|| printed.clone())?;
    ensure(expected.len() == 6, || printed.clone())?;
    let log = java.log().to_string_lossy().into_owned();
    let rows = definitions(java, &log)?;
    let sums = |selects: &dyn Fn(&Value) -> bool, keys: [&str; 2]| {
        let rows = rows.iter().filter(|row| selects(row));
        rows.fold((0, 0), |(defined, unloaded), row| {
            (
                defined + number(row, keys[0]),
                unloaded + number(row, keys[0]) - number(row, keys[1]),
            )
        })
    };
    let is_deployed = |row: &Value| row["loader"] == "DefinedClasses$Deployment";
    let is_proxy = |row: &Value| number(row, "generated") > 0 && has_method(row, "proxy");
    let classes = ["defined", "alive"];
    let found = Numbers::from([
        ("deploy".to_owned(), sums(&is_deployed, classes)),
        (
            "loaders".to_owned(),
            sums(&is_deployed, ["loaders", "loaders_alive"]),
        ),
        (
            "bytes".to_owned(),
            sums(&is_deployed, ["bytes", "alive_bytes"]),
        ),
        ("proxy".to_owned(), sums(&is_proxy, classes)),
        (
            "hidden".to_owned(),
            sums(&|row| is_hidden_by(row, "hidden"), classes),
        ),
        (
            "lambda".to_owned(),
            sums(&|row| is_hidden_by(row, "lambda"), classes),
        ),
    ]);
    ensure(found == expected, || {
        format!("found {found:?}, expected {expected:?}")
    })?;
    let of_vm = ["deploy", "proxy", "hidden", "lambda"].map(|name| found[name]);
    let all = of_vm
        .iter()
        .fold((0, 0), |all, sum| (all.0 + sum.0, all.1 + sum.1));
    ensure(all == by_vm, || format!("{found:?}, VM: {by_vm:?}"))?;
    let text = java
        .lucce()
        .text(0, &["report", "--event", "class", "--top", "0", &log])?;
    let (defined, unloaded) = expected["deploy"];
    let (loaders, unloaded_loaders) = expected["loaders"];
    let alive = defined - unloaded;
    let (alive, says) = (
        format!("; {alive} alive, about "),
        format!(
            " of metaspace, {unloaded} unloaded; {loaders} loaders, {} alive: DefinedClasses$Deployment, at DefinedClasses$Deployment.findClass(DefinedClasses.java:",
            loaders - unloaded_loaders
        ),
    );
    let line = text.lines().find(|line| line.contains(&says));
    ensure(line.is_some_and(|line| line.contains(&alive)), || {
        format!("{alive}…{says}\n{text}")
    })
}

/// The estimate is that of the VM, up to a tenth, for small classes.
fn compare_metaspace(java: &Java<'_>) -> Checked {
    let printed = java.printed("stdout");
    let lines = printed.lines();
    let of_vm = lines.filter_map(|line| line.strip_prefix("metaspace ")?.parse::<u64>().ok());
    let of_vm: u64 = of_vm.sum();
    let rows = definitions(java, &java.log().to_string_lossy())?;
    let rows = rows
        .iter()
        .filter(|row| row["loader"] == "DefinedClasses$Deployment");
    let estimate: u64 = rows.map(|row| number(row, "metaspace_bytes")).sum();
    ensure(of_vm > 0 && estimate.abs_diff(of_vm) * 10 <= of_vm, || {
        format!("about {estimate} bytes of metaspace, {of_vm} as the VM says")
    })
}

fn definitions(java: &Java<'_>, log: &str) -> Result<Vec<Value>, String> {
    let args = ["report", "--json", "--top", "0", "--event", "class", log];
    let report = java.lucce().json(&args)?;
    let classes = &report["classes"];
    let rows = classes["definitions"].as_array().cloned();
    let rows = rows.ok_or_else(|| report.to_string())?;
    for key in ["defined", "hidden", "generated", "bytes", "unloaded"] {
        let sum: u64 = rows.iter().map(|row| number(row, key)).sum();
        ensure(number(classes, key) == sum, || format!("{key}: {classes}"))?;
    }
    // The VM counts each class once, whatever loaders find it.
    ensure(
        report["totals"]["count"].as_u64() == Some(number(classes, "defined")),
        || format!("{classes}, {}", report["totals"]),
    )?;
    Ok(rows)
}

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_default()
}

fn has_method(row: &Value, method: &str) -> bool {
    let mut frames = row["frames"].as_array().into_iter().flatten();
    frames.any(|frame| frame["class"] == PROGRAM && frame["method"] == method)
}

/// Whether the row has hidden classes of the program that this method defines.
fn is_hidden_by(row: &Value, method: &str) -> bool {
    let is_of_program = row["loader"] == "jdk.internal.loader.ClassLoaders$AppClassLoader";
    is_of_program && number(row, "hidden") > 0 && has_method(row, method)
}
