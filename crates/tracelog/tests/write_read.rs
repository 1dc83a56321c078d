//! What the writer appends, the reader returns: also when the log is not closed.

use lucce_callgraph::{Base, ContextId, GraphChange, Version};
use lucce_tracelog::{
    EndRecord, InMemoryLog, LogFull, LogFullCause, LogHeader, LogItem, LogRecord, LogWriter,
    OpenError, SealState, StatRecord, ThreadId, WarningRecord,
};
use std::sync::atomic::Ordering;
use tempfile::TempDir;

const HEADER: LogHeader = LogHeader {
    version_bits: 16,
    anchor_bits: 16,
    call_bits: 32,
    pid: 7,
    start: 8,
    run: None,
};

fn dir() -> (TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.lucce");
    (dir, path)
}

fn warning(n: usize) -> WarningRecord<'static> {
    WarningRecord {
        text: format!("{n} {}", "x".repeat(n % 300)).into(),
    }
}

fn records(log: &InMemoryLog) -> Vec<LogRecord<'_>> {
    let entries = log.items().filter_map(|item| match item.unwrap() {
        LogItem::Record(entry) => entry.record,
        _ => None,
    });
    entries.collect()
}

fn cells(log: &InMemoryLog) -> Vec<(u32, u64, u64, u64)> {
    let blocks = log.items().filter_map(|item| match item.unwrap() {
        LogItem::Counters(cells) => Some(cells),
        _ => None,
    });
    blocks
        .flat_map(|b| {
            b.iter()
                .map(move |c| (b.thread.0, c.id.0, c.count, c.bytes))
        })
        .collect()
}

#[test]
fn records_come_back_in_order_over_many_blocks() {
    let (_dir, path) = dir();
    let mut writer = LogWriter::create(&path, &HEADER).unwrap();
    for n in 0..20_000 {
        writer.append(warning(n)).unwrap();
    }
    writer.append(EndRecord).unwrap();
    let written = writer.bytes_written();
    writer.close().unwrap();
    let log = InMemoryLog::open(&path).unwrap();
    assert_eq!(log.size(), written);
    assert_eq!(*log.header(), HEADER);
    let expected = (0..20_000)
        .map(|n| LogRecord::from(warning(n)))
        .chain([EndRecord.into()]);
    assert!(expected.eq(records(&log)));
}

#[test]
fn a_log_that_nobody_closed_is_whole() {
    let (_dir, path) = dir();
    let mut writer = LogWriter::create(&path, &HEADER).unwrap();
    for n in 0..5_000 {
        writer.append(warning(n)).unwrap();
        if n % 500 == 0 {
            assert_eq!(records(&InMemoryLog::open(&path).unwrap()).len(), n + 1);
        }
    }
    assert_eq!(records(&InMemoryLog::open(&path).unwrap()).len(), 5_000);
}

#[test]
fn counters_keep_their_place_and_count_in_the_file() {
    let (_dir, path) = dir();
    let mut writer = LogWriter::create(&path, &HEADER).unwrap();
    let first = writer.add_counters(ThreadId(5), 3).unwrap();
    let address = first.address();
    assert_eq!(address % 8, 0);
    first[0].claim(ContextId(77));
    first[0].count_event(0);
    for n in 0..10_000 {
        writer.append(warning(n)).unwrap();
    }
    let second = writer.add_counters(ThreadId(6), 1000).unwrap();
    second[999].claim(ContextId(78));
    second[999].count_event(24);
    second[999].count_event(16);
    first[0].count_event(0);
    assert_eq!(first.address(), address);
    assert_eq!(first[0].id(), ContextId(77));
    let expected = [(5, 77, 2, 0), (6, 78, 2, 40)];
    assert_eq!(cells(&InMemoryLog::open(&path).unwrap()), expected);
    writer.close().unwrap();
    // The program may count on; the log has ended, and its checksums hold.
    first[0].count_event(1);
    drop(writer);
    first[0].count_event(1);
    assert_eq!(first[0].count.load(Ordering::Relaxed), 4);
    let log = InMemoryLog::open(&path).unwrap();
    assert_eq!(cells(&log), expected);
    let seals = log.items().filter_map(|item| match item.unwrap() {
        LogItem::Counters(cells) => Some(cells.seal),
        _ => None,
    });
    assert_eq!(seals.collect::<Vec<_>>(), [SealState::Right; 2]);
}

/// Bytes of the file at `path` that are in this process's memory.
fn resident(path: &std::path::Path) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let name = path.to_str().unwrap();
    let mut is_the_log = false;
    let mut kilobytes = 0;
    for line in maps.lines() {
        // A mapping's first line has no colon behind its first word.
        let word = line.split(' ').next().unwrap();
        if !word.ends_with(':') {
            is_the_log = line.ends_with(name);
        } else if is_the_log && let Some(size) = line.strip_prefix("Rss:") {
            let size = size.strip_suffix("kB").unwrap().trim();
            kilobytes += size.parse::<u64>().unwrap();
        }
    }
    kilobytes << 10
}

#[test]
fn counters_leave_memory_and_go_on_counting() {
    const CELLS: u32 = 4096;
    let (_dir, path) = dir();
    let mut writer = LogWriter::create(&path, &HEADER).unwrap();
    let mut blocks = Vec::new();
    for block in 0..100 {
        let counters = writer.add_counters(ThreadId(1), CELLS).unwrap();
        for (n, cell) in (1..).zip(counters.iter()) {
            cell.claim(ContextId(block << 32 | n));
            cell.count_event(n);
        }
        blocks.push(counters);
        blocks
            .iter()
            .for_each(|counters| counters[7].count_event(1));
    }
    let size = writer.bytes_written();
    assert!(size > 9 << 20);
    assert!(resident(&path) < size / 3, "{} KB", resident(&path) >> 10);
    blocks.iter().for_each(|counters| counters.release_pages());
    let left = resident(&path);
    assert!(left < 1 << 20, "{left}");
    let mut expected = Vec::new();
    for block in 0..100 {
        for n in 1..=CELLS.into() {
            let again = if n == 8 { 100 - block } else { 0 };
            expected.push((1, block << 32 | n, 1 + again, n + again));
        }
    }
    assert_eq!(cells(&InMemoryLog::open(&path).unwrap()), expected);
    let known = blocks
        .iter()
        .map(|counters| counters[8].id().0)
        .sum::<u64>();
    assert_eq!(known, (0..100).map(|block| block << 32 | 9).sum());
}

#[test]
fn a_record_larger_than_a_block_gets_its_own() {
    let (_dir, path) = dir();
    let mut writer = LogWriter::create(&path, &HEADER).unwrap();
    writer.append(warning(1)).unwrap();
    let long = WarningRecord {
        text: "y".repeat(1 << 20).into(),
    };
    writer.append(long.clone()).unwrap();
    writer.append(warning(2)).unwrap();
    writer.close().unwrap();
    let log = InMemoryLog::open(&path).unwrap();
    assert_eq!(
        records(&log),
        [warning(1).into(), long.into(), warning(2).into()]
    );
}

#[test]
fn a_full_log_keeps_a_prefix_and_its_end() {
    let (_dir, path) = dir();
    let mut writer = LogWriter::create_with_limit(&path, &HEADER, 300 << 10).unwrap();
    let fitted = (0..)
        .take_while(|n| writer.append(warning(*n)).is_ok())
        .count();
    assert!(fitted > 100);
    assert_eq!(
        writer.append(GraphChange::Base(Base::new(Version(1)))),
        Err(LogFull)
    );
    assert!(writer.add_counters(ThreadId(1), 1).is_err());
    for value in 0..500 {
        writer
            .append(StatRecord {
                key: "events.lost".into(),
                value,
            })
            .unwrap();
    }
    writer.append(EndRecord).unwrap();
    assert_eq!(writer.refused(), 2);
    assert_eq!(writer.full_cause(), Some(LogFullCause::Limit));
    writer.close().unwrap();
    assert_eq!(writer.append(EndRecord), Err(LogFull));
    let log = InMemoryLog::open(&path).unwrap();
    assert!(log.size() <= 300 << 10);
    let read = records(&log);
    assert!(
        (0..fitted)
            .map(|n| LogRecord::from(warning(n)))
            .eq(read[..fitted].iter().cloned())
    );
    assert_eq!(read[fitted + 500], EndRecord.into());
    assert_eq!(
        read[fitted + 501],
        StatRecord {
            key: "log.refused".into(),
            value: 2
        }
        .into()
    );
}

#[test]
fn a_smaller_request_for_counters_may_still_fit() {
    let (_dir, path) = dir();
    let mut writer = LogWriter::create_with_limit(&path, &HEADER, 256 << 10).unwrap();
    assert!(writer.add_counters(ThreadId(1), 1 << 20).is_err());
    assert!(writer.add_counters(ThreadId(1), u32::MAX).is_err());
    assert!(writer.add_counters(ThreadId(1), 1 << 10).is_ok());
    assert!(writer.append(warning(1)).is_ok());
}

#[test]
fn a_log_without_room_is_not_created() {
    let (_dir, path) = dir();
    let error = LogWriter::create_with_limit(&path, &HEADER, 1000)
        .err()
        .unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn only_ordinary_files_are_written() {
    let (dir, path) = dir();
    assert!(LogWriter::create(dir.path(), &HEADER).is_err());
    assert!(LogWriter::create("/dev/null", &HEADER).is_err());
    assert!(LogWriter::create(path.join("missing/x"), &HEADER).is_err());
}

#[test]
fn what_has_the_name_already_stays_as_it_is() {
    let (_dir, path) = dir();
    let mut old = LogWriter::create(&path, &HEADER).unwrap();
    let error = LogWriter::create(&path, &HEADER).err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    old.append(warning(1)).unwrap();
    assert_eq!(
        records(&InMemoryLog::open(&path).unwrap()),
        [warning(1).into()]
    );
}

#[test]
fn a_log_is_its_user_s_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, path) = dir();
    drop(LogWriter::create(&path, &HEADER).unwrap());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn other_files_are_refused() {
    let (_dir, path) = dir();
    for foreign in [&b"LUCID"[..], b"#!/bin/sh\n", &[0; 4096]] {
        std::fs::write(&path, foreign).unwrap();
        assert!(matches!(
            InMemoryLog::open(&path),
            Err(OpenError::Foreign(_))
        ));
    }
    std::fs::write(&path, "").unwrap();
    assert!(matches!(InMemoryLog::open(&path), Err(OpenError::Empty(_))));
    assert!(matches!(
        InMemoryLog::open("/nonexistent"),
        Err(OpenError::Io(_))
    ));
}

#[test]
fn a_newer_format_is_named() {
    let (_dir, path) = dir();
    drop(LogWriter::create(&path, &HEADER).unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] = 9;
    assert!(matches!(
        InMemoryLog::from_bytes(bytes.clone()),
        Err(OpenError::Damaged(_))
    ));
    let crc = crc32fast::hash(&bytes[..60]).to_le_bytes();
    bytes[60..64].copy_from_slice(&crc);
    assert!(matches!(
        InMemoryLog::from_bytes(bytes),
        Err(OpenError::Newer { version: 9, .. })
    ));
}
