//! Packed logs that become far more than they are: an answer in little memory.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use lucce_tracelog::{EndRecord, InMemoryLog, SkippedRecord, WarningRecord};
use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;
use miniz_oxide::{MZFlush, MZStatus};

/// KB of addresses that a command may have: a log takes some megabytes.
const ADDRESSES: u32 = 2_000_000;

/// Deflated bytes that can follow each other and themselves.
fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut state = CompressorOxide::new(create_comp_flags_from_zip_params(6, -15, 0));
    let mut all = Vec::new();
    let (mut rest, mut block) = (bytes, vec![0; 64 << 10]);
    loop {
        let result = deflate(&mut state, rest, &mut block, MZFlush::Full);
        assert_eq!(result.status, Ok(MZStatus::Ok));
        rest = &rest[result.bytes_consumed..];
        all.extend(&block[..result.bytes_written]);
        if rest.is_empty() && result.bytes_written < block.len() {
            return all;
        }
    }
}

/// A packed file of `first`, and so many times `again`; its end is missing, as nobody comes that far.
fn bomb(first: &[u8], again: &[u8], times: usize) -> Vec<u8> {
    let mut bomb = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    bomb.extend(deflated(first));
    bomb.extend(deflated(again).repeat(times));
    bomb
}

/// The blocks of a log with these records.
fn blocks(records: impl Iterator<Item = lucce_tracelog::LogRecord<'static>>) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let mut writer = lucce_testkit::writer(&path);
    records.for_each(|record| writer.append(record).unwrap());
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
    with_room(fs::read(path).unwrap()).split_off(64)
}

/// A log whose last block has all of its bytes, so that another one can follow.
fn with_room(mut log: Vec<u8>) -> Vec<u8> {
    let mut at = 64;
    while let Some(capacity) = log.get(at + 8..at + 12) {
        at += 64 + u32::from_le_bytes(capacity.try_into().unwrap()) as usize;
    }
    log.resize(at, 0);
    log
}

fn run(dir: &Path, command: &str) -> Output {
    let limited = format!(
        "ulimit -v {ADDRESSES}; exec timeout 100 {} {command}",
        env!("CARGO_BIN_EXE_lucce")
    );
    let shell = Command::new("sh")
        .args(["-c", &limited])
        .current_dir(dir)
        .output();
    shell.unwrap()
}

/// The content before the bomb is shown, the bomb is reported, and the exit code is 3.
fn check(name: &str, bomb: &[u8], message: &str) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bomb.lucce.gz"), bomb).unwrap();
    for command in [
        "report bomb.lucce.gz",
        "stats bomb.lucce.gz --json",
        "check bomb.lucce.gz",
    ] {
        let output = run(dir.path(), command);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{name}: {command}: {stderr}");
        assert!(stderr.contains(message), "{name}: {command}: {stderr}");
        assert!(!output.stdout.is_empty(), "{name}: {command}");
    }
    let symbols = run(dir.path(), "symbols bomb.lucce.gz -o bomb.lsym");
    assert_eq!(symbols.status.code(), Some(3), "{name}: {symbols:?}");
}

fn sample() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.log");
    lucce_testkit::sample(&path);
    with_room(fs::read(path).unwrap())
}

#[test]
fn zeros_behind_a_log_are_not_unpacked_to_their_end() {
    let zeros = bomb(&sample(), &vec![0; 16 << 20], 256);
    assert!(zeros.len() < 6 << 20, "{}", zeros.len());
    check("zeros", &zeros, "zeros behind the last block");
}

#[test]
fn records_that_say_the_same_again_and_again_are_cut_off() {
    let skipped = (0..10_000).map(|_| {
        let (class, method, reason) = ("".into(), None, "".into());
        SkippedRecord {
            class,
            method,
            reason,
        }
        .into()
    });
    check(
        "skipped",
        &bomb(&sample(), &blocks(skipped), 150),
        "more than 1048576 notes of one kind",
    );
    let warnings = (0..30).map(|_| {
        let text = "x".repeat(2000).into();
        WarningRecord { text }.into()
    });
    check(
        "warnings",
        &bomb(&sample(), &blocks(warnings), 3_000),
        "bytes of content",
    );
}

#[test]
fn a_block_that_claims_all_that_a_block_may_have_takes_no_more() {
    // The head of a block of counters, and then other bytes than zeros.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let mut writer = lucce_testkit::writer(&path);
    writer
        .add_counters(
            lucce_tracelog::ThreadId(1),
            lucce_tracelog::limits::MAX_CELLS,
        )
        .unwrap();
    let mut head = vec![0; 128];
    std::os::unix::fs::FileExt::read_exact_at(&fs::File::open(&path).unwrap(), &mut head, 0)
        .unwrap();
    drop(writer);
    fs::remove_file(path).unwrap();
    let of = |byte: u8| bomb(&head, &[byte; 1 << 20], 400);
    check(
        "cells",
        &of(1),
        "a counter of more than any program can count",
    );
    // Numbers that nothing explains.
    let cell: Vec<u8> = [7_u64, 1, 1]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    check(
        "counted",
        &bomb(&head, &cell.repeat(1 << 15), 500),
        "bytes of content",
    );
}

#[test]
fn a_packed_log_is_as_good_as_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    lucce_testkit::sample(&path("sample.log"));
    drop(lucce_testkit::running(&path("killed.log")));
    for name in ["sample.log", "killed.log"] {
        let log = fs::read(path(name)).unwrap();
        fs::write(path("packed.gz"), lucce_testkit::packed(&log)).unwrap();
        let [plain, packed] =
            [name, "packed.gz"].map(|name| run(dir.path(), &format!("report {name} --json")));
        assert!(
            plain.status.success() && packed.status.success(),
            "{packed:?}"
        );
        assert_eq!(plain.stdout, packed.stdout);
        assert_eq!(
            InMemoryLog::from_bytes(log).unwrap().size(),
            fs::metadata(path(name)).unwrap().len()
        );
    }
}
