//! Lines of real logging libraries with `%lucce`, or a number in the MDC, and `lucce annotate`: each line shows where it was logged.

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};

use crate::{Test, test};

/// Module, main class, and how many lines with numbers it logs.
const LIBRARIES: [(&str, &str, usize); 3] = [
    ("logback", "io.lucce.logback.run.LogbackRun", 4),
    ("log4j2", "io.lucce.log4j2.run.Log4jRun", 4),
    ("slf4j", "io.lucce.slf4j.run.MdcRun", 4),
];
/// The module of the MDC, which knows no JDK: one JDK suffices.
const MDC: &str = "slf4j";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        for (module, main, numbers) in LIBRARIES {
            if module == MDC && jdk != setup.jdk() {
                continue;
            }
            let name = format!("log_lines::{}::{module}", jdk.version);
            tests.push(test(name, false, move || {
                annotated(setup, jdk, (module, main), numbers)
            }));
        }
    }
    tests
}

fn annotated(setup: &Setup, jdk: &Jdk, (module, main): (&str, &str), numbers: usize) -> Checked {
    let target = setup
        .harness
        .join("artifacts")
        .join(module)
        .join("target")
        .display()
        .to_string();
    let java = Java::new(setup, jdk, &format!("log-lines-{}-{module}", jdk.version))
        .class_path(format!(
            "{target}/test-classes:{target}/classes:{target}/lib/*"
        ))
        .agent("events=none")
        .main([main]);
    let ended = java.run()?.expect(0)?;
    let symbols = java.folder().join("run.lsym").display().to_string();
    let log = java.log().display().to_string();
    java.lucce().run(&["symbols", &log, "-o", &symbols])?;
    for run in [&log, &symbols] {
        let lucce = java.lucce();
        let output = lucce.run_with_input(&["annotate", "--inline", "-", run], &ended.stdout)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure(output.status.success(), || format!("{output:?}"))?;
        check(&text, main, numbers)?;
        // The whole traces begin there, too.
        let output = lucce.run_with_input(&["annotate", "-", run], &ended.stdout)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let begins = text
            .lines()
            .zip(text.lines().skip(1))
            .filter(|(line, next)| {
                line.contains("lucce:") && next.starts_with(&format!("\tat {main}."))
            });
        ensure(begins.count() == numbers, || text.clone())?;
    }
    java.clean();
    Ok(())
}

/// `direct main=36 io.lucce.X.main(X.java:36)`
fn check(text: &str, main: &str, numbers: usize) -> Checked {
    let mut right = 0;
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [way, place, found] = words[..] else {
            return Err(format!("{line:?} in\n{text}"));
        };
        // Too late for a number: the appender of the library itself writes in a thread of its own; or outside of an entry.
        if way == "late" {
            ensure(found == "0x0", || line.to_owned())?;
            continue;
        }
        let (method, number) = place.split_once('=').ok_or(line)?;
        let file = main.rsplit('.').next().unwrap_or(main);
        let expected = format!("{main}.{method}({file}.java:{number})");
        ensure(found == expected, || format!("{line}, not {expected}"))?;
        right += 1;
    }
    ensure(right == numbers, || {
        format!("{right} lines, not {numbers}:\n{text}")
    })
}
