//! The bodies of the fuzz targets (`fuzz/`) over damaged files, from fixed seeds: no panic, bounded time and memory,
//! and of the command one of its exit codes.
//!
//! `LUCCE_SEEDS=100000` looks at more; `BLESS=1` writes the corpus again.

use lucce_testkit::fuzz::{bodies, mutate};

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Of one file, unoptimised and on a busy machine.
const LONGEST: Duration = Duration::from_secs(30);
/// Of the whole process.
const MOST_KB: u64 = 2 << 20;

fn corpus(kind: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/corpus")
        .join(kind);
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    let files: Vec<_> = files
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    assert!(!files.is_empty(), "no corpus of {kind}");
    files
}

fn seeds(few: u64) -> std::ops::Range<u64> {
    let seeds = std::env::var("LUCCE_SEEDS").ok();
    1..seeds.map_or(few, |seeds| seeds.parse().unwrap())
}

fn peak_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

/// Each file as it is, then damaged in many ways.
fn smoke(kind: &str, mutate: fn(u64, &[u8]) -> Vec<u8>, body: &dyn Fn(&[u8])) {
    for (path, bytes) in corpus(kind) {
        body(&bytes);
        for seed in seeds(400) {
            let damaged = mutate(seed, &bytes);
            let started = Instant::now();
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&damaged)));
            assert!(ended.is_ok(), "{path:?}, seed {seed}");
            let took = started.elapsed();
            assert!(took < LONGEST, "{path:?}, seed {seed}: {took:?}");
            let peak = peak_kb();
            assert!(peak < MOST_KB, "{path:?}, seed {seed}: {peak} KB");
        }
    }
}

#[test]
fn logs() {
    smoke("log", mutate::log, &bodies::log);
}

#[test]
fn streams() {
    let log = &corpus("log")
        .into_iter()
        .find(|(path, _)| path.ends_with("kinds"))
        .unwrap()
        .1;
    smoke("stream", mutate::stream, &|bytes| {
        bodies::stream(log, bytes)
    });
}

#[test]
fn recordings() {
    smoke("recording", mutate::recording, &bodies::recording);
}

/// The command itself: what it prints, and how it ends.
#[test]
fn verbs_end_with_their_codes() {
    const VERBS: [&[&str]; 8] = [
        &["report", "x", "--top", "0", "--json"],
        &[
            "report",
            "x",
            "--across-threads",
            "--event",
            "lock",
            "--include",
            "app.*",
        ],
        &["stats", "x"],
        &["check", "x"],
        &["export", "x", "--leaf-type"],
        &["contexts", "x", "--k", "4"],
        &["leaks", "x"],
        &[
            "decode",
            "x",
            "0x400024000c77cb",
            "lucce:0123456789abcdef:0x1",
        ],
    ];
    let dir = tempfile::tempdir().unwrap();
    for (path, bytes) in corpus("log") {
        for seed in seeds(25) {
            fs::write(dir.path().join("x"), mutate::log(seed, &bytes)).unwrap();
            let words = VERBS[seed as usize % VERBS.len()];
            let mut lucce = Command::new(env!("CARGO_BIN_EXE_lucce"));
            let output = lucce.args(words).current_dir(dir.path()).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            let code = output.status.code();
            let is_reported = !stderr.contains("panick") && (code != Some(3) || !stderr.is_empty());
            assert!(
                matches!(code, Some(0..=3)) && is_reported,
                "{path:?}, seed {seed}, {words:?}: {code:?} {stderr}"
            );
        }
    }
}

/// Small files of each kind, as the tests' programs write them.
#[test]
fn the_corpus_is_what_is_written_today() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    lucce_testkit::leaks::leaking(&dir.join("leaking"));
    lucce_testkit::started(&dir.join("started"));
    lucce_testkit::deep::recursion(&dir.join("deep"), 200);
    lucce_testkit::stream::streams(dir);
    lucce_testkit::calls::record(&dir.join("figure"));
    for (from, to) in [
        ("leaking", "log/leaking"),
        ("started", "log/started"),
        ("deep", "log/deep"),
        ("kinds.log", "log/kinds"),
        ("kinds.log.events", "stream/kinds"),
        ("figure", "recording/figure"),
    ] {
        let to = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../fuzz/corpus")
            .join(to);
        let mut bytes = fs::read(dir.join(from)).unwrap();
        // Room that was obtained in advance.
        let used = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |at| at + 1);
        bytes.truncate(used.next_multiple_of(64).min(bytes.len()));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&to, &bytes).unwrap();
        }
        assert!(
            fs::read(&to).unwrap() == bytes || from == "figure",
            "{to:?}: BLESS=1 renews it"
        );
    }
}
