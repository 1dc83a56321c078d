//! `lucce bench`, with a shell script in Java's place.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use lucce_testkit::programs::write_script;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// A script that is being written must not be inherited, open, by another test's child.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs `lucce bench ARGS -- ./java -jar app.jar` where `java` is the script.
fn bench(folder: &Path, script: &str, args: &[&str]) -> (Output, String) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let java = folder.join("java");
    write_script(&java, &format!("#!/bin/sh\n{script}\n"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_lucce"));
    command.arg("bench").args(args).current_dir(folder);
    command.args(["--", "./java", "-jar", "app.jar"]);
    let output = command.output().unwrap();
    let text = String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap();
    (output, text)
}

/// Each iteration takes time of its own, so that its lines are read one by one: of those that come together only the last has CPU
/// time of own threads, and of none there is no ratio.
const ITERATES: &str = "case \"$1\" in -Xint) t=30;; *) t=10;; esac
    for i in 1 2 3; do
        n=0; while [ $n -lt 10000 ]; do n=$((n + 1)); done
        echo \"iteration $i: $t ms wall, $t ms cpu, checksum x\"
    done";

#[test]
fn ratios_are_printed_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let own = ["--variants", "", "--variant", "interpreted=-Xint"];
    let more = ["--rounds", "2", "--plot", "charts"];
    let (output, text) = bench(folder.path(), ITERATES, &[&own[..], &more].concat());
    assert_eq!(output.status.code(), Some(0), "{text}");
    let row_of = |title: &str| {
        let mut lines = text.lines().skip_while(|line| !line.contains(title));
        let row = lines.nth(2).unwrap_or_else(|| panic!("{text}"));
        let cells = row.trim_matches('|').split('|').map(str::trim);
        cells.map(str::to_owned).collect::<Vec<_>>()
    };
    let cpu = row_of("| CPU time of the process");
    assert_eq!(cpu, ["app.jar", "10 ms (10 ms–10 ms)", "3.00"]);
    let three = row_of("CPU of own threads · wall · CPU of process");
    assert!(three[1].ends_with("10 ms · 10 ms"), "{three:?}");
    assert!(three[2].ends_with("3.00 · 3.00"), "{three:?}");
    let chart = fs::read_to_string(folder.path().join("charts/cost.svg")).unwrap();
    assert!(chart.contains("app.jar, interpreted:"), "{chart}");
}

#[test]
fn json_holds_what_was_measured_and_what_was_not() {
    let folder = tempfile::tempdir().unwrap();
    let refuses = "case \"$1\" in -agentpath*) echo lucce: no >&2; exit 1;; esac";
    let script = format!("{refuses}\n{ITERATES}");
    let args = [
        "--json",
        "--rounds",
        "2",
        "--variants",
        "xshare-off,tracking",
    ];
    let (output, text) = bench(folder.path(), &script, &args);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let variants = &json["programs"][0]["variants"];
    let cpu = &variants[1]["measured"]["cpu"];
    // Three iterations in each of two rounds, one dropped.
    assert_eq!(cpu["spread"]["count"], 4);
    assert_eq!(cpu["ratio"]["value"], 1.0);
    assert!(variants[2]["not_run"].is_string(), "{json}");
}

#[test]
fn a_wrong_result_is_a_finding_and_a_wrong_command_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let run = |script: &str, args: &[&str]| bench(folder.path(), script, args);
    let wrong = "for i in 1 2; do echo \"iteration $i: 1 ms wall, 1 ms cpu, checksum $1\"; done";
    let (output, text) = run(wrong, &["--variants", "xshare-off"]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("FAILED: app.jar, xshare-off: computed -Xshare:off"));
    let (output, text) = run("exit 5", &[]);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("exit status: 5"), "{text}");
    let refused = |args: &[&str], why: &str| {
        let (output, text) = run(ITERATES, args);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(why), "{text}");
    };
    refused(&["--variants", "fast"], "unknown variant fast");
    refused(&["--variant", "fast"], "must be NAME=FLAGS");
    refused(&["--rounds", "0"], "0 is not in 1..");
}
