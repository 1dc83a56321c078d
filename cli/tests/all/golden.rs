//! The command, as files: each of `tests/golden/*.txt` begins with a command and holds what it prints.
//!
//! ```text
//! $ lucce decode sample.log @A          the command
//! < @B                                  a line of standard input
//! …                                     standard output
//! [stderr] …                            a line of standard error
//! [exit 1]                              if not 0
//! ```
//! `@A` is the number of the fixture's context A, bare, `@A.dec` in decimal. `BLESS=1` renews
//! what follows the command.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use lucce_testkit::Ids;

fn logs(dir: &Path) -> Ids {
    let ids = lucce_testkit::sample(&dir.join("sample.log"));
    drop(lucce_testkit::running(&dir.join("killed.log")));
    lucce_testkit::troubled(&dir.join("troubled.log"));
    lucce_testkit::corrupt(&dir.join("corrupt.log"));
    lucce_testkit::overwritten(&dir.join("overwritten.log"));
    lucce_testkit::overcounted(&dir.join("overcounted.log"));
    lucce_testkit::kinds(&dir.join("kinds.log"));
    lucce_testkit::untyped(&dir.join("untyped.log"));
    lucce_testkit::moved(&dir.join("moved.log"));
    lucce_testkit::mixed::mixed(&dir.join("mixed.log"));
    lucce_testkit::sampled(&dir.join("sampled.log"));
    lucce_testkit::interrupted(&dir.join("interrupted.log"));
    lucce_testkit::other_program(&dir.join("program.log"));
    lucce_testkit::requests(&dir.join("requests.log"), 6000);
    lucce_testkit::requests(&dir.join("nothing.log"), 0);
    lucce_testkit::leaks::leaking(&dir.join("leaking.log"));
    lucce_testkit::leaks::clean(&dir.join("clean.log"));
    lucce_testkit::leaks::cut(&dir.join("cut.log"));
    lucce_testkit::leaks::early(&dir.join("early.log"));
    lucce_testkit::leaks::exhausted(&dir.join("exhausted.log"));
    lucce_testkit::leaks::full(&dir.join("full-leaks.log"));
    lucce_testkit::without_events(&dir.join("no-lock.log"), "events=lock,out=no-lock.log");
    lucce_testkit::started(&dir.join("started.log"));
    lucce_testkit::killed_while_comparing(&dir.join("compared.log"), true);
    lucce_testkit::killed_while_comparing(&dir.join("untold.log"), false);
    lucce_testkit::partly_compared(&dir.join("partly.log"));
    lucce_testkit::stream::streams(dir);
    lucce_testkit::calls::record(&dir.join("figure.calls"));
    let figure = fs::read(dir.join("figure.calls")).unwrap();
    fs::write(dir.join("truncated.calls"), &figure[..figure.len() - 40]).unwrap();
    let sample = fs::read(dir.join("sample.log")).unwrap();
    fs::write(dir.join("old.log"), lucce_testkit::before_run_ids(&sample)).unwrap();
    fs::write(dir.join("truncated.log"), &sample[..sample.len() - 200]).unwrap();
    fs::write(dir.join("header.log"), &sample[..50]).unwrap();
    fs::write(dir.join("foreign.log"), "PK\u{3}\u{4} some other file").unwrap();
    fs::write(dir.join("empty.log"), "").unwrap();
    let mut other_run = sample.clone();
    lucce_testkit::rename_run(&mut other_run, 0xfedc_ba98_7654_3210);
    fs::write(dir.join("other.log"), other_run).unwrap();
    fs::write(dir.join("sample.log.gz"), lucce_testkit::packed(&sample)).unwrap();
    lucce_testkit::symbols(&dir.join("sample.log"), &dir.join("sample.lsym"));
    let symbols = fs::read(dir.join("sample.lsym")).unwrap();
    fs::write(dir.join("cut.lsym"), &symbols[..symbols.len() - 4]).unwrap();
    ids
}

fn with_numbers(text: &str, ids: &Ids) -> String {
    ids.iter().fold(text.to_owned(), |text, (name, id)| {
        text.replace(&format!("@{name}.dec"), &id.0.to_string())
            .replace(&format!("@{name}"), &id.to_string())
    })
}

fn with_names(text: &str, ids: &Ids) -> String {
    ids.iter().fold(text.to_owned(), |text, (name, id)| {
        text.replace(&id.to_string(), &format!("@{name}"))
            .replace(&id.0.to_string(), &format!("@{name}.dec"))
    })
}

fn run(dir: &Path, command: &str, input: &str) -> Output {
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("lucce"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_lucce"))
        .args(words)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that reads no input may have ended already.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn printed(output: &Output) -> String {
    let mut text = String::from_utf8(output.stdout.clone()).unwrap();
    for line in String::from_utf8(output.stderr.clone()).unwrap().lines() {
        text.push_str(&format!("[stderr] {line}\n"));
    }
    match output.status.code() {
        Some(0) => text,
        code => format!("{text}[exit {}]\n", code.unwrap()),
    }
}

/// Whether the file says what the command prints.
fn check(case: &Path, dir: &Path, ids: &Ids) -> bool {
    let text = fs::read_to_string(case).unwrap();
    let is_head = |line: &&str| line.starts_with("$ ") || line.starts_with("< ");
    let head: Vec<_> = text.lines().take_while(is_head).collect();
    let command = with_numbers(head[0].strip_prefix("$ ").unwrap(), ids);
    let input: String = head[1..]
        .iter()
        .map(|line| with_numbers(&line[2..], ids) + "\n")
        .collect();
    let output = with_names(&printed(&run(dir, &command, &input)), ids);
    let now = head.join("\n") + "\n" + &output;
    if std::env::var_os("BLESS").is_some() {
        fs::write(case, &now).unwrap();
    }
    let same = fs::read_to_string(case).unwrap() == now;
    if !same {
        eprintln!("--- {} says otherwise:\n{now}", case.display());
    }
    same
}

#[test]
fn every_golden_file_matches_its_command() {
    let dir = tempfile::tempdir().unwrap();
    let ids = logs(dir.path());
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut cases: Vec<PathBuf> = fs::read_dir(cases)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    cases.sort();
    assert!(cases.len() > 20);
    let wrong = cases
        .iter()
        .filter(|case| !check(case, dir.path(), &ids))
        .count();
    assert_eq!(wrong, 0, "files that say otherwise; BLESS=1 renews them");
}

#[test]
fn every_verb_has_help_with_an_example() {
    for verb in [
        "run",
        "bench",
        "report",
        "decode",
        "stats",
        "check",
        "export",
        "lab hot-paths",
        "leaks",
        "lab replay",
        "stream",
        "annotate",
        "symbols",
        "man",
        "completions",
    ] {
        let output = run(Path::new("/"), &format!("lucce {verb} --help"), "");
        let text = printed(&output);
        assert!(
            output.status.success() && text.contains("Example"),
            "{text}"
        );
        assert!(text.contains(&format!("  lucce {verb} ")), "{text}");
    }
}

/// Every command that `lucce --help` names has a page with its options and examples, and is completed.
#[test]
fn every_verb_has_a_manual_page_and_is_completed() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(printed(&run(dir.path(), "lucce man new/man1", "")), "");
    let page = |name: &str| fs::read_to_string(dir.path().join("new/man1").join(name)).unwrap();
    let help = printed(&run(dir.path(), "lucce --help", ""));
    let (commands, _) = help.split_once("\nOptions:\n").unwrap();
    let lines = commands.lines().filter(|line| line.starts_with("  "));
    let verbs: Vec<_> = lines
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert!(verbs.len() > 20, "{help}");
    let scripts: Vec<_> = ["bash", "zsh", "fish"]
        .map(|shell| printed(&run(dir.path(), &format!("lucce completions {shell}"), "")))
        .into();
    for verb in verbs {
        let text = page(&format!("lucce-{verb}.1"));
        assert!(
            text.contains(".SH EXAMPLES") || verb == "ctl",
            "{verb}: {text}"
        );
        let foot = ".TH lucce-";
        assert!(
            text.contains(foot) && text.contains("lucce 0."),
            "{verb}: {text}"
        );
        let listed = format!("lucce\\-{}(1)", verb.replace('-', "\\-"));
        assert!(page("lucce.1").contains(&listed), "{verb}");
        assert!(scripts.iter().all(|script| script.contains(verb)), "{verb}");
    }
    assert!(page("lucce-ctl-dump.1").contains(".SH OPTIONS"));
    assert!(page("lucce-report.1").contains("\\-\\-top"));
    assert!(scripts.iter().all(|script| script.contains("min-share")));
}

#[test]
fn the_version_names_the_product_and_the_versions_of_its_files() {
    let version = |flag: &str| printed(&run(Path::new("/"), &format!("lucce {flag}"), ""));
    let first = concat!("lucce ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(version("-V"), first);
    let long = version("--version");
    let logs = format!("logs up to version {}", lucce_tracelog::FORMAT_VERSION);
    assert!(long.starts_with(first) && long.contains(&logs), "{long}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let ids = logs(dir.path());
    let mut child = Command::new(env!("CARGO_BIN_EXE_lucce"))
        .args(["decode", "sample.log", "-"])
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let lines = format!("{}\n", ids[&'E']).repeat(2_000);
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn export_writes_a_file() {
    let dir = tempfile::tempdir().unwrap();
    logs(dir.path());
    let output = run(dir.path(), "lucce export sample.log -o out.collapsed", "");
    assert_eq!(
        printed(&output),
        "[stderr] lucce: wrote 3 stacks to out.collapsed\n"
    );
    let to_stdout = run(dir.path(), "lucce export sample.log", "");
    assert_eq!(
        fs::read(dir.path().join("out.collapsed")).unwrap(),
        to_stdout.stdout
    );
}

#[test]
fn tables_of_recorded_calls_and_charts() {
    let dir = tempfile::tempdir().unwrap();
    logs(dir.path());
    let command =
        "lucce lab hot-paths --tables --json --plot charts figure.calls figure.calls sample.log";
    let output = run(dir.path(), command, "");
    assert!(output.status.success());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let program = &json["programs"][0];
    // By hand: five routines under r, one node for each call.
    let by_hand = [
        ("call_graph", 6),
        ("call_graph_edges", 9),
        ("cct", 14),
        ("cct_sites", 14),
        ("call_tree", 14),
        ("depth", 4),
    ];
    for (key, number) in by_hand {
        assert_eq!(program["sizes"][key], number, "{key}");
    }
    assert!(program["times"]["sf1_indexed"].as_f64().unwrap() > 0.0);
    assert_eq!(program["bursts"], "0.2 ms of every 2 ms");
    assert_eq!(json["programs"][1]["name"], "figure.calls-2");
    assert_eq!(json["programs"][2]["times"], serde_json::Value::Null);
    let charts = fs::read_dir(dir.path().join("charts")).unwrap();
    let charts: Vec<PathBuf> = charts.map(|chart| chart.unwrap().path()).collect();
    assert_eq!(charts.len(), 4 + 2 * 3);
    for chart in charts {
        let text = fs::read_to_string(&chart).unwrap();
        assert!(
            text.starts_with("<svg") && text.trim_end().ends_with("</svg>"),
            "{chart:?}"
        );
        assert!(!text.contains("NaN") && !text.contains("inf"), "{chart:?}");
    }
}

/// Where the sample's records begin: after the file header and two blocks of counters.
const RECORDS: usize = 64 + 2 * (64 + 192);

/// Any cut and any flipped byte: an answer or an error, never a panic.
#[test]
fn whatever_the_log_there_is_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    logs(dir.path());
    let sample = fs::read(dir.path().join("sample.log")).unwrap();
    for at in (0..sample.len()).step_by(3) {
        let mut flipped = sample.clone();
        flipped[at] ^= 0x41;
        // Not sealed: the records themselves are looked at.
        flipped[RECORDS + 36] = 0;
        for bytes in [&flipped[..], &sample[..at]] {
            let Ok(log) = lucce_tracelog::InMemoryLog::from_bytes(bytes.to_vec()) else {
                continue;
            };
            let Ok(profile) = lucce_decoder::Profile::from_log(&log, &|_| ()) else {
                continue;
            };
            for context in profile.list_contexts(&|_| ()).list {
                profile.decode_trace(context.id).unwrap();
            }
        }
    }
}

/// A terminal, which `script` makes, gets no bytes that it cannot show; a pipe does.
#[test]
fn what_is_no_text_does_not_go_to_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::sample(&dir.path().join("sample.log"));
    for format in ["pprof", "jfr", "perfetto", "otlp", "firefox", "speedscope"] {
        let export = format!(
            "{} export --format {format} sample.log",
            env!("CARGO_BIN_EXE_lucce")
        );
        let at_terminal = Command::new("script")
            .args(["-qec", &export, "/dev/null"])
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&at_terminal.stdout);
        let is_text = format == "speedscope";
        assert_eq!(at_terminal.status.success(), is_text, "{format}: {stdout}");
        assert_eq!(stdout.contains("is no text for a terminal"), !is_text);
        let piped = Command::new("sh")
            .args(["-c", &export])
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(
            piped.status.success() && piped.stdout.len() > 100,
            "{format}"
        );
    }
}
