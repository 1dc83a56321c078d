//! Names that a terminal, a spreadsheet or a flame graph would obey: no verb prints one as it is.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use lucce_testkit::hostile::{self, FORGED};
use lucce_tracelog::escape::is_plain;

const VERBS: [&str; 32] = [
    "report hostile.log --top 0",
    "report hostile.log --top 0 --json",
    "report hostile.log --top 0 --event +1",
    "report hostile.log --top 0 --event nothing",
    "report hostile.log --stream",
    "report hostile.log --min-share 20",
    "decode hostile.log -",
    "decode hostile.log --json -",
    "annotate - hostile.log",
    "annotate - hostile.log --inline",
    "stats hostile.log",
    "stats hostile.log --json",
    "check hostile.log",
    "check hostile.log --json",
    "export hostile.log --leaf-type",
    "export hostile.log --event +1 --leaf-type",
    "export hostile.log --format chrome",
    "lab hot-paths hostile.log --similar 1 --top 0",
    "lab hot-paths hostile.log --types --lines --json",
    "lab hot-paths hostile.log --format collapsed",
    "lab hot-paths hostile.log --tables --plot charts",
    "lab hot-paths hostile.calls --similar 1 --top 0",
    "leaks hostile.log --top 0",
    "diff sample.log hostile.log --top 0",
    "diff sample.log hostile.log --top 0 --json",
    "diff sample.log hostile.log --by line",
    "gate hostile.log --base sample.log --top 0 --max-growth 0",
    "leaks hostile.log --top 0 --json",
    "stream hostile.log",
    "stream hostile.log --traces --json",
    "stream hostile.log --csv",
    "lab replay --compare hostile.calls --plot charts",
];

fn run_with(dir: &Path, words: &[&str], numbers: &str) -> Output {
    let input = dir.join("numbers");
    fs::write(&input, numbers).unwrap();
    Command::new(env!("CARGO_BIN_EXE_lucce"))
        .args(words)
        .current_dir(dir)
        .stdin(fs::File::open(input).unwrap())
        .output()
        .unwrap()
}

/// Lines of characters that are shown, of which none is forged; a frame begins with a tab.
fn check(what: &str, bytes: &[u8]) {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    for line in text.split('\n') {
        let line = line.strip_prefix('\t').unwrap_or(line);
        assert!(!line.starts_with(FORGED), "{what}: {line:?}");
        let hostile = line.chars().find(|c| !is_plain(*c));
        assert_eq!(hostile, None, "{what}: {line:?}");
    }
}

#[test]
fn no_verb_prints_what_is_obeyed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let ids = hostile::all(dir);
    lucce_testkit::sample(&dir.join("sample.log"));
    let run = lucce_testkit::HEADER.run.unwrap();
    let numbers = |prefix: &str| -> String {
        let lines = ids.iter().map(|id| format!("{prefix}{id}\n"));
        lines.collect()
    };
    let of_the_run = numbers(&format!("lucce:{run}:"));
    let numbers = numbers("");
    for command in VERBS {
        let words: Vec<_> = command.split(' ').collect();
        let input = match command.starts_with("annotate") {
            true => &of_the_run,
            false => &numbers,
        };
        let output = run_with(dir, &words, input);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let ended = output.status.code();
        assert!(
            matches!(ended, Some(0..=2)),
            "{command}: {ended:?} {stderr}"
        );
        assert!(
            !output.stdout.is_empty() || ended == Some(2),
            "{command}: {stderr}"
        );
        check(command, &output.stdout);
        check(command, &output.stderr);
        if command.contains("--json") || command.contains("chrome") {
            let text = String::from_utf8(output.stdout).unwrap();
            let values = serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>();
            let hostile = values
                .map(Result::unwrap)
                .any(|value| contains(&value, hostile::NAMES[0]));
            // What a program reads is the name itself.
            assert!(hostile || command.starts_with("check"), "{command}");
        }
    }
}

fn contains(value: &serde_json::Value, name: &str) -> bool {
    use serde_json::Value::{Array, Object, String};
    match value {
        String(text) => text.contains(name),
        Array(list) => list.iter().any(|value| contains(value, name)),
        Object(fields) => fields
            .iter()
            .any(|(key, value)| key.contains(name) || contains(value, name)),
        _ => false,
    }
}

/// Each line of collapsed stacks has one number behind one space, and as many frames as the trace.
#[test]
fn no_name_forges_a_stack() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let ids = hostile::all(dir);
    let output = run_with(dir, &["export", "hostile.log", "--leaf-type"], "");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut depths: Vec<usize> = Vec::new();
    for line in text.lines() {
        let (stack, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<u64>().is_ok(), "{line}");
        let before = stack.rsplit_once(' ').map(|(_, word)| word);
        assert!(
            before.is_none_or(|word| word.parse::<u64>().is_err()),
            "{line}"
        );
        depths.push(stack.split(';').count());
    }
    depths.sort_unstable();
    let expected: Vec<usize> = (2..ids.len() + 2).collect();
    assert_eq!(depths, expected);
}

/// As a spreadsheet reads it: cells that begin as formulas do are none.
#[test]
fn no_cell_is_a_formula() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let ids = hostile::all(dir);
    let output = run_with(dir, &["stream", "hostile.log", "--csv"], "");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 2 * ids.len());
    for line in &lines {
        let cells = cells(line);
        assert_eq!(cells.len(), 10, "{line}");
        for cell in cells {
            assert!(!cell.starts_with(['=', '+', '-', '@']), "{line}");
        }
    }
}

/// RFC 4180.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    assert!(!quoted, "{line}");
    cells
}

/// Names of files are names, too.
#[test]
fn files_and_charts_are_called_by_what_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    hostile::all(dir);
    let name = "\u{1b}[31m\u{202e}\nFORGED<script>.calls";
    fs::copy(dir.join("hostile.calls"), dir.join(name)).unwrap();
    let missing = "\u{1b}[31m\nFORGED";
    for words in [
        &["lab", "hot-paths", name, "--tables", "--plot", "charts"][..],
        &["lab", "hot-paths", name, "--tables", "--json"],
        &["lab", "replay", name, "--encoding", "dacce"],
        &["lab", "replay", "--compare", name, "--plot", "comparison"],
        &["check", name],
        &["report", missing],
        &["stream", missing],
        &["decode", "hostile.log", missing],
    ] {
        let output = run_with(dir, words, "");
        check(&words.join(" "), &output.stdout);
        check(&words.join(" "), &output.stderr);
    }
    let charts = fs::read_dir(dir.join("charts"))
        .unwrap()
        .map(|chart| chart.unwrap().path());
    for chart in charts.chain([dir.join("comparison/encodings.svg")]) {
        let text = fs::read_to_string(&chart).unwrap();
        check(&format!("{chart:?}"), text.as_bytes());
        assert!(!text.contains("<script"), "{chart:?}");
    }
}
