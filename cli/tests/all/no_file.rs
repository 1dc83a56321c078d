//! Every command reports at once that a pipe, device, socket or folder is no log. The same holds for a file with holes in place of
//! blocks.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Every verb that reads a log, a stream or a recording; @ is the file.
const VERBS: [&str; 23] = [
    "report @",
    "report @ --stream",
    "decode @ 0x1",
    "annotate words @",
    "stats @",
    "check @",
    "export @",
    "export @ --format chrome",
    "view @ -o page.html",
    "symbols @ -o x.lsym",
    "lab hot-paths @",
    "leaks @",
    "leaks @ --watch",
    "stream @",
    "top @ --once",
    "serve @",
    "otlp --once --endpoint http://127.0.0.1:9 @",
    "push --patience 1s --collector http://127.0.0.1:9 @",
    "diff @ sample.log",
    "diff sample.log @",
    "gate @ --base sample.log",
    "gate sample.log --base @",
    "lab replay --compare @",
];

fn run(dir: &Path, words: &str) -> Output {
    // 124: it has not ended by itself.
    let command = Command::new("timeout")
        .args(["-s", "KILL", "60", env!("CARGO_BIN_EXE_lucce")])
        .args(words.split(' '))
        .current_dir(dir)
        .stdin(Stdio::null())
        .output();
    command.unwrap()
}

#[test]
fn every_command_reports_what_is_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    lucce_testkit::sample(&path("sample.log"));
    fs::write(path("words"), "word").unwrap();
    let status = Command::new("mkfifo")
        .args([path("pipe"), path("pipe.events")])
        .status();
    assert!(status.unwrap().success());
    let _socket = UnixListener::bind(path("socket")).unwrap();
    fs::create_dir(path("folder")).unwrap();
    for (file, what) in [
        ("pipe", "a pipe (FIFO), not a file"),
        ("socket", "a socket, not a file"),
        ("/dev/zero", "a device, not a file"),
        ("folder", "a directory, not a file"),
    ] {
        for verb in VERBS {
            // Of a folder those logs are sent that were not.
            if file == "folder" && verb.contains("--collector") {
                continue;
            }
            let output = run(dir.path(), &verb.replace('@', file));
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{verb}: {file}: {stderr}");
            assert!(stderr.contains(what), "{verb}: {file}: {stderr}");
        }
    }
}

#[test]
fn a_stream_or_a_mark_beside_a_log_is_no_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    lucce_testkit::sample(&path("sample.log"));
    let status = Command::new("mkfifo")
        .args([path("sample.log.events"), path("sample.log.push")])
        .status();
    assert!(status.unwrap().success());
    for verb in [
        "stream sample.log",
        "report sample.log --stream",
        "export sample.log --format chrome",
    ] {
        let output = run(dir.path(), verb);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{verb}: {stderr}");
        assert!(
            stderr.contains("sample.log.events: a pipe (FIFO)"),
            "{verb}: {stderr}"
        );
    }
    // Nobody listens there; the mark has kept nobody waiting.
    let output = run(
        dir.path(),
        "push --patience 1s --collector http://127.0.0.1:9 sample.log",
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn holes_of_a_terabyte_cost_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    lucce_testkit::sample(&path("sample.log"));
    lucce_testkit::stream::streams(dir.path());
    let expected = run(dir.path(), "report sample.log --json");
    let streamed = run(dir.path(), "stream kinds.log --json");
    // A JVM that was killed leaves room behind its last block.
    for name in ["sample.log", "kinds.log.events"] {
        let file = fs::File::options().write(true).open(path(name)).unwrap();
        file.set_len(1 << 40).unwrap();
    }
    let output = run(dir.path(), "report sample.log --json");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, expected.stdout);
    let output = run(dir.path(), "stream kinds.log --json");
    assert_eq!(output.stdout, streamed.stdout, "{output:?}");
}
