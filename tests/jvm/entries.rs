//! `events=call`: a program that counts its methods' entries itself, by the line that calls them; and
//! entries of everything that programs do, compared with the JVM's own stack traces.

use std::collections::BTreeMap;
use std::path::Path;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Java, Jdk, Lucce, Setup, ensure};

use crate::modes::{self, Case, Mode};
use crate::{Test, test};

const PROGRAM: &str = "io.lucce.programs.Entries";

/// Entries by class, method, and line of the caller.
pub type Counts = BTreeMap<(String, String, i64), u64>;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 6] = [
        ("default", &[], ""),
        ("int", &["-Xint", "-Xcheck:jni"], ""),
        (
            "comp",
            &[
                COMPILE_PROGRAMS,
                "-XX:-TieredCompilation",
                "-XX:+UseSerialGC",
            ],
            "",
        ),
        ("c1", &["-XX:TieredStopAtLevel=1"], ""),
        ("app", &["-Xcheck:jni"], ",instrument=app"),
        (
            "include",
            &[COMPILE_PROGRAMS, "-XX:-TieredCompilation"],
            ",include=io.lucce.*+java.util.Tree*",
        ),
    ];
    let mut tests = modes::each_from_11(setup, "entries", &MODES, check);
    for jdk in setup.jdks_from_11() {
        for program in ["ClassInit", "Lambdas", "ReflectionCalls", "VirtualThreads"] {
            if program == "VirtualThreads" && jdk.version < 21 {
                continue;
            }
            for (scope, classes) in [("", ""), ("app::", ",instrument=app")] {
                let name = format!("entries::{}::verified::{scope}{program}", jdk.version);
                let run = move || verified(setup, jdk, program, classes);
                tests.push(test(name, false, run));
            }
        }
    }
    tests
}

fn check(case: &Case) -> Checked {
    let java = case.java(&format!("events=call,verify=101{}", case.options));
    let java = java.main([PROGRAM]);
    let ended = java.run()?.expect(0)?;
    let expected: Counts = ended.stdout.lines().filter_map(expected).collect();
    ended.ensure(expected.len() >= 25, "the program says what to expect")?;
    let found = reported(java.lucce(), &java.log())?;
    same(&expected, &found, "reported")?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// Everything that is expected is found so often.
pub fn same(expected: &Counts, found: &Counts, how: &str) -> Checked {
    let different: Vec<_> = expected
        .iter()
        .filter(|(key, count)| found.get(*key) != Some(*count))
        .map(|(key, count)| (key, count, found.get(key)))
        .collect();
    ensure(different.is_empty(), || {
        format!("expected and {how}: {different:#?}")
    })
}

/// `class|method|line|count`
pub fn expected(line: &str) -> Option<((String, String, i64), u64)> {
    let mut fields = line.split('|');
    let names = (fields.next()?.to_owned(), fields.next()?.to_owned());
    let line = fields.next()?.parse().ok()?;
    Some(((names.0, names.1, line), fields.next()?.parse().ok()?))
}

/// A report of everything that the JDK calls is far larger than what is compared.
fn reported(lucce: Lucce, log: &Path) -> Result<Counts, String> {
    let log = log.to_string_lossy();
    let mut counts = Counts::new();
    let args = ["report", "--json", "--top", "0", "--event", "call", &*log];
    lucce.json_rows(&args, "contexts", &mut |row| {
        let text = |key: &str| row["frames"][0][key].as_str().map(str::to_owned);
        let (Some(class), Some(method), Some(line)) = (
            text("class"),
            text("method"),
            row["frames"][1]["line"].as_i64(),
        ) else {
            return Ok(());
        };
        let count = row["count"].as_u64().ok_or("no count")?;
        *counts.entry((class, method, line)).or_default() += count;
        Ok(())
    })?;
    Ok(counts)
}

fn verified(setup: &Setup, jdk: &Jdk, program: &str, classes: &str) -> Checked {
    let scope = if classes.is_empty() { "all" } else { "app" };
    let name = format!("entries-{program}-{}-{scope}", jdk.version);
    let java = Java::new(setup, jdk, &name);
    let java = java
        .agent(&format!("events=call+thread+alloc,verify=67{classes}"))
        .flags([format!("-Dlucce.scope={scope}")])
        .main([format!("io.lucce.programs.{program}")]);
    java.run()?.expect(0)?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}
