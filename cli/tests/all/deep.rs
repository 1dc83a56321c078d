//! Deep recursions: what is read takes memory and time by the log's size, however long its traces are together.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use lucce_decoder::{Profile, TraceTree};

/// Together 2.5 milliards of frames.
const FRAMES: u32 = 100_000;
/// The log has 2 MB. What the command and the system take for themselves is most of this.
const MEMORY_KB: u32 = 250_000;
/// An unoptimised command on a busy machine; the work is that of less than a second.
const TIME: Duration = Duration::from_secs(60);

/// The command with so much memory and not more.
fn bounded(dir: &Path, command: &str) -> Child {
    let lucce = env!("CARGO_BIN_EXE_lucce");
    Command::new("sh")
        .arg("-c")
        .arg(format!("ulimit -v {MEMORY_KB}; exec {lucce} {command}"))
        .current_dir(dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// All that it prints.
fn whole(dir: &Path, command: &str) -> String {
    let started = Instant::now();
    let output = bounded(dir, command).wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command}: {} {stderr}",
        output.status
    );
    assert!(
        started.elapsed() < TIME,
        "{command}: {:?}",
        started.elapsed()
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Reads so many bytes of what it prints, then goes away.
fn beginning(dir: &Path, command: &str, bytes: u64) -> (String, String, ExitStatus) {
    let started = Instant::now();
    let mut child = bounded(dir, command);
    let mut text = String::new();
    let out = child.stdout.take().unwrap();
    let read = out.take(bytes).read_to_string(&mut text);
    assert_eq!(read.unwrap() as u64, bytes, "{command} ended");
    let output = child.wait_with_output().unwrap();
    assert!(
        started.elapsed() < TIME,
        "{command}: {:?}",
        started.elapsed()
    );
    let stderr = String::from_utf8(output.stderr).unwrap();
    (text, stderr, output.status)
}

fn log(dir: &Path) {
    let ids = lucce_testkit::deep::recursion(&dir.join("deep.log"), FRAMES);
    assert_eq!(ids.len() as u32, FRAMES / 2 - 1);
    let size = std::fs::metadata(dir.join("deep.log")).unwrap().len();
    assert!(size < 4 << 20, "{size} bytes");
    lucce_testkit::deep::stream(&dir.join("deep.log"), &ids);
}

#[test]
fn deep_recursions_are_read_within_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    log(dir);
    // What does not print all traces ends.
    for verb in [
        "stats",
        "check",
        "report --top 3",
        "report --top 3 --stream",
        "stream --limit 5",
    ] {
        let (verb, options) = verb.split_once(' ').unwrap_or((verb, ""));
        whole(dir, &format!("{verb} deep.log {options}"));
    }
    // A drawing has a column for each call: it ends at some depth, and says so.
    for options in ["", " --inverted", " --by line"] {
        let text = whole(dir, &format!("report --tree{options} deep.log"));
        assert!(text.len() < 8 << 20, "{options}: {} bytes", text.len());
        assert!(text.contains(" deeper)"), "{options}");
        let json = whole(dir, &format!("report --tree{options} --json deep.log"));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let branches = json["branches"].as_array().unwrap();
        assert!(branches.len() > 400, "{options}: {}", branches.len());
    }
    let contexts = whole(dir, "lab hot-paths --k 3 --lines --similar 1 deep.log");
    assert!(
        contexts.contains("app.Main.work(Main.java:24)"),
        "{contexts}"
    );
    let chrome = whole(dir, "export --format chrome deep.log");
    let chrome: serde_json::Value = serde_json::from_str(&chrome).unwrap();
    let frames = chrome["stackFrames"].as_object().unwrap().len() as u32;
    assert!(frames < 2 * FRAMES, "{frames} frames");
}

#[test]
fn what_is_large_is_announced_and_streams() {
    const BYTES: u64 = 100 << 20;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    log(dir);
    for (command, begins) in [
        (
            "report --top 0 --json deep.log",
            "{\"schema\":\"lucce-report\",\"version\":1,\"run\":\"0123456789abcdef\"",
        ),
        ("report --top 0 deep.log", "run 0123456789abcdef"),
        ("export deep.log", "app.Main.main;app.Main.work"),
    ] {
        let (text, stderr, status) = beginning(dir, command, BYTES);
        assert!(text.starts_with(begins), "{command}: {}", &text[..100]);
        assert!(status.success(), "{command}: {status} {stderr}");
        let is_announced = stderr.contains("MB will be written: 49,999 traces; --min-share");
        assert!(is_announced, "{command}: {stderr}");
    }
    for command in [
        "stream --traces --json deep.log",
        "stream --traces deep.log",
    ] {
        let (_, stderr, status) = beginning(dir, command, BYTES);
        assert!(status.success(), "{stderr}");
        let is_announced =
            stderr.contains("MB will be written: 49,999 events with their traces; --limit");
        assert!(is_announced, "{command}: {stderr}");
    }
}

/// As many stacks as both runs have.
#[test]
fn a_large_difference_is_announced() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    lucce_testkit::deep::recursion(&dir.join("deep.log"), 6_500);
    let stderr = first_error_line(dir, "export deep.log --diff deep.log");
    let is_announced = stderr.contains("MB will be written: 6,498 traces; --min-share");
    assert!(is_announced, "{stderr}");
}

/// Where other tools' files have each stack with all of its frames.
#[test]
fn large_files_of_other_tools_are_announced() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    log(dir);
    for (format, traces) in [
        ("jfr", "traces; --min-share"),
        ("pprof", "traces, packed, "),
        ("perfetto", "traces; --min-share"),
        ("otlp", "traces; --min-share"),
    ] {
        let stderr = first_error_line(dir, &format!("export --format {format} deep.log -o large"));
        let announced = format!("MB will be written: 49,999 {traces}");
        assert!(stderr.contains(&announced), "{format}: {stderr}");
    }
    for format in ["speedscope", "firefox"] {
        let stderr = first_error_line(dir, &format!("export --format {format} deep.log -o large"));
        assert!(stderr.contains("wrote 49,999 "), "{format}: {stderr}");
    }
}

/// The first line on standard error of a command that is not let go on.
fn first_error_line(dir: &Path, command: &str) -> String {
    let mut child = bounded(dir, command);
    let mut line = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    line
}

/// What is shown and the rest are the whole.
#[test]
fn a_threshold_sums_up_what_is_small() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    log(dir);
    let all = whole(dir, "report --top 1 --json deep.log");
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    let total = &all["totals"];
    let first = all["contexts"][0]["count"].as_u64().unwrap();
    let others = all["rest"]["count"].as_u64().unwrap();
    assert_eq!(first + others, total["count"]);
    for options in ["--min-share 1", "--min-value 1m", "--min-value 4800000"] {
        let json = whole(dir, &format!("report --top 0 {options} --json deep.log"));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let shown = json["contexts"].as_array().unwrap();
        assert_eq!(shown.len(), 1, "{options}");
        for key in ["count", "value", "bytes"] {
            let sum = json["rest"][key].as_u64().unwrap() + shown[0][key].as_u64().unwrap();
            assert_eq!(sum, total[key], "{options}: {key}");
        }
        assert_eq!(json["rest"]["contexts"], 49_998);
        assert_eq!(&json["totals"], total);
    }
    let text = whole(dir, "report --top 0 --min-share 1 deep.log");
    let rest = text.lines().find(|line| line.contains("; the others: "));
    assert!(
        rest.is_some_and(|rest| rest.contains(" in 49,998 contexts")),
        "{rest:?}"
    );
    let collapsed = whole(dir, "export --min-share 1 deep.log");
    let lines: Vec<_> = BufReader::new(collapsed.as_bytes())
        .lines()
        .map(Result::unwrap)
        .collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[1].starts_with("[rest] "));
    let values = lines
        .iter()
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    assert_eq!(values.sum::<u64>(), total["value"].as_u64().unwrap());
}

/// The tree of frames says what each number decodes to alone.
#[test]
fn shared_traces_are_those_of_each_number() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut ids = lucce_testkit::deep::recursion(&path, 300);
    let small = dir.path().join("small");
    let others = lucce_testkit::sample(&small);
    for (path, ids) in [
        (path, std::mem::take(&mut ids)),
        (small, others.into_values().collect()),
    ] {
        let mut profile = Profile::open(&path).unwrap();
        for patterns in ["", "app.*", "app.Gen", "nobody"] {
            let include = lucce_filter::PatternList::parse(patterns).unwrap_or_default();
            let mut filter = lucce_filter::ClassFilter::default();
            filter.include.extend(include);
            profile.restrict_scope(&filter);
            let mut traces = TraceTree::new(&profile);
            for id in ids.iter().rev().chain(&ids) {
                let trace = traces.insert_trace(*id).unwrap();
                let shown: Vec<_> = traces.stack_frames(trace).cloned().collect();
                let alone = profile.decode_trace(*id).unwrap();
                assert_eq!(shown, alone.frames);
                assert_eq!(traces.stack_id(trace), alone.stack);
                let frames: Vec<_> = traces.frames_of_trace(trace).collect();
                assert_eq!(frames, profile.decode_frames(*id).unwrap());
                let wrong = lucce_decoder::ContextId(id.0 ^ 1 << 40);
                assert_eq!(
                    traces.insert_trace(wrong).err(),
                    profile.decode_trace(wrong).err()
                );
            }
        }
    }
}
