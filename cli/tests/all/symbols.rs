//! A run's symbols decode all that its log decodes; `lucce annotate` shows a line when it has come.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use lucce_decoder::{LogSource, Profile, is_symbols};

fn lucce() -> Command {
    Command::new(env!("CARGO_BIN_EXE_lucce"))
}

/// How many numbers there were.
fn check_all(log: &Path) -> usize {
    let path = log.with_extension("lsym");
    lucce_testkit::symbols(log, &path);
    let (whole, symbols) = (Profile::open(log).unwrap(), Profile::open(&path).unwrap());
    assert!(is_symbols(&symbols) && !is_symbols(&whole));
    assert_eq!(symbols.header, whole.header);
    assert_eq!(symbols.ended, whole.ended);
    assert_eq!(
        (symbols.damage.as_ref(), symbols.events.as_slice().len()),
        (None, 0)
    );
    let ids = whole.events.context_ids();
    for id in &ids {
        assert_eq!(symbols.decode_trace(*id), whole.decode_trace(*id), "{id}");
    }
    // The symbols of symbols are those symbols.
    let again = path.with_extension("again");
    lucce_testkit::symbols(&path, &again);
    assert_eq!(fs::read(&again).unwrap(), fs::read(&path).unwrap());
    ids.len()
}

#[test]
fn symbols_decode_what_the_log_decodes() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    lucce_testkit::sample(&path("sample.log"));
    lucce_testkit::kinds(&path("kinds.log"));
    lucce_testkit::started(&path("started.log"));
    drop(lucce_testkit::running(&path("killed.log")));
    for name in ["sample.log", "kinds.log", "started.log", "killed.log"] {
        assert!(check_all(&path(name)) > 3, "{name}");
    }
    lucce_testkit::hostile::all(dir.path());
    check_all(&path("hostile.log"));
}

/// Any cut and any flipped byte: an answer or an error, never a panic, and never a trace that is not the log's.
#[test]
fn damaged_symbols_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (log, path) = (dir.path().join("log"), dir.path().join("lsym"));
    lucce_testkit::sample(&log);
    lucce_testkit::symbols(&log, &path);
    let whole = Profile::open(&log).unwrap();
    let ids = whole.events.context_ids();
    let bytes = fs::read(&path).unwrap();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x41;
        for changed in [&flipped[..], &bytes[..at]] {
            fs::write(&path, changed).unwrap();
            let Ok(profile) =
                LogSource::open(&path).and_then(|mut source| source.read_profile(&|_| ()))
            else {
                continue;
            };
            let is_reported = profile.damage.is_some();
            let traces = ids
                .iter()
                .map(|id| profile.decode_trace(*id) == whole.decode_trace(*id));
            assert!(is_reported || traces.into_iter().all(|same| same), "{at}");
        }
    }
}

/// They have the program's arguments, as the log has.
#[test]
fn symbols_are_read_by_their_user_alone() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("run.lucce");
    lucce_testkit::sample(&log);
    for (name, options) in [("run.lsym", &[][..]), ("other.lsym", &["-o", "other.lsym"])] {
        let mut symbols = lucce();
        symbols
            .current_dir(dir.path())
            .args(["symbols", "run.lucce"]);
        assert!(symbols.args(options).status().unwrap().success());
        let metadata = fs::metadata(dir.path().join(name)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_line_is_shown_before_the_next_one_comes() {
    let dir = tempfile::tempdir().unwrap();
    let ids = lucce_testkit::sample(&dir.path().join("sample.log"));
    let mut child = lucce()
        .args(["annotate", "-", "sample.log"])
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        let number = format!("lucce:0123456789abcdef:{}", ids[&'A']);
        let line = format!("leaked {number}\n");
        input.write_all(line.as_bytes()).unwrap();
        input.flush().unwrap();
        // Blocks for ever if the line is kept back.
        let mut shown = String::new();
        for _ in 0..4 {
            output.read_line(&mut shown).unwrap();
        }
        let trace = "\tat app.Main.work(Main.java:21)\n\tat app.Main.main(Main.java:5)\n";
        let head = format!("\tcontext {number}  f00403cbb399c9ee83ee35588751f6b8\n");
        assert_eq!(shown, format!("{line}{head}{trace}"));
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// Bytes that are no text, and a last line without an end, stay as they are.
#[test]
fn lines_are_passed_through_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let ids = lucce_testkit::sample(&dir.path().join("sample.log"));
    let number = format!("lucce:0123456789abcdef:{}", ids[&'A']);
    let plain = b"\xff\xfe latin \xe9\r\n\n\0\x1b[31m\r\nlast".to_vec();
    let mut with_number = b"\xe9".to_vec();
    with_number.extend(number.as_bytes());
    with_number.push(0xe9);
    for (text, added) in [(plain, false), (with_number, true)] {
        fs::write(dir.path().join("app.log"), &text).unwrap();
        let output = lucce()
            .args(["annotate", "app.log", "sample.log"])
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(output.status.success());
        assert!(output.stdout.starts_with(&text));
        let rest = &output.stdout[text.len()..];
        assert_eq!(!rest.is_empty(), added);
        let head =
            format!("\n\tcontext {number}  f00403cbb399c9ee83ee35588751f6b8\n\tat app.Main.work");
        assert!(!added || rest.starts_with(head.as_bytes()), "{rest:?}");
    }
}
