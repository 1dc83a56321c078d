//! Counters by type: what was counted comes back, also of a log that was not closed, that was cut, or
//! whose bytes were changed.

use std::path::Path;

use lucce_callgraph::ContextId;
use lucce_tracelog::{
    CounterBlock, EndRecord, EventCount, EventCounter, EventType, EventTypeId, InMemoryLog,
    LogHeader, LogItem, LogWriter, ThreadId,
};

const BLOCK: usize = 64;
const CELLS: usize = BLOCK + 64;

fn lock(id: u32) -> EventType<'static> {
    EventType {
        id: EventTypeId(id),
        kind: "lock".into(),
        unit: "ns".into(),
        detail: "Ljava/lang/Object;".into(),
    }
}

/// Two threads' cells, the first thing in the log, then the type and the end.
fn write(path: &Path) -> (LogWriter, [CounterBlock<EventCounter>; 2]) {
    let mut writer = LogWriter::create(path, &LogHeader::default()).unwrap();
    let cells = [1, 2].map(|thread| writer.add_event_counters(ThreadId(thread), 3).unwrap());
    writer.append(lock(7)).unwrap();
    let [first, second] = &cells;
    first[0].claim(ContextId(77), EventTypeId(7));
    first[0].count_event(100);
    first[0].count_event(0);
    first[2].claim(ContextId(78), EventTypeId(7));
    second[1].claim(ContextId(77), EventTypeId(7));
    second[1].count_event(u64::MAX);
    assert_eq!(
        (second[1].id(), second[1].event_type()),
        (ContextId(77), EventTypeId(7))
    );
    writer.append(EndRecord).unwrap();
    (writer, cells)
}

fn file() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    write(&path).0.close().unwrap();
    std::fs::read(path).unwrap()
}

/// What the cells hold, the number of records, and whether the log is damaged.
fn read(log: &InMemoryLog) -> (Vec<(u32, EventCount)>, usize, bool) {
    let (mut cells, mut records, mut damaged) = (Vec::new(), 0, false);
    for item in log.items() {
        match item {
            Ok(LogItem::Totals(_)) => panic!("nobody asked for them"),
            Ok(LogItem::EventCounters(some)) => {
                cells.extend(some.iter().map(|cell| (some.thread.0, cell)));
            }
            Ok(LogItem::Record(_)) => records += 1,
            Ok(LogItem::Counters(_) | LogItem::VmCounters(_)) => unreachable!("there are none"),
            Err(_) => damaged = true,
        }
    }
    (cells, records, damaged)
}

fn expected() -> Vec<(u32, EventCount)> {
    let cell = |at: usize, id, count, value| EventCount {
        offset: at as u64,
        id: ContextId(id),
        event: EventTypeId(7),
        zero: 0,
        count,
        value,
    };
    vec![
        (1, cell(CELLS, 77, 2, 100)),
        (1, cell(CELLS + 64, 78, 0, 0)),
        (2, cell(CELLS + 128 + 64 + 32, 77, 1, u64::MAX)),
    ]
}

#[test]
fn what_was_counted_comes_back() {
    let log = InMemoryLog::from_bytes(file()).unwrap();
    assert_eq!(read(&log), (expected(), 2, false));
}

#[test]
fn a_log_that_nobody_closed_has_all_counts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let (_writer, [first, _]) = write(&path);
    assert_eq!(read(&InMemoryLog::open(&path).unwrap()).0, expected());
    first[0].count_event(11);
    let (cells, ..) = read(&InMemoryLog::open(&path).unwrap());
    assert_eq!((cells[0].1.count, cells[0].1.value), (3, 111));
}

#[test]
fn cut_anywhere() {
    let bytes = file();
    let mut last = 0;
    for len in 64..bytes.len() {
        let (cells, _, damaged) = read(&InMemoryLog::from_bytes(bytes[..len].to_vec()).unwrap());
        assert!(cells.len() >= last && cells.len() <= 3);
        assert!(cells.iter().zip(expected()).all(|(a, b)| *a == b));
        // Missing parts of a block are reported; a file may end behind the first cell.
        assert!(damaged || cells.len() != 1, "{len}");
        last = cells.len();
    }
    assert_eq!(last, 3);
}

#[test]
fn a_block_header_that_was_changed_is_seen() {
    let bytes = file();
    for at in BLOCK..BLOCK + 24 {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let (_, _, damaged) = read(&InMemoryLog::from_bytes(flipped).unwrap());
            assert!(damaged, "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn nonzero_padding_of_a_cell_is_reported() {
    let mut bytes = file();
    bytes[CELLS + 13] = 1;
    let (cells, ..) = read(&InMemoryLog::from_bytes(bytes).unwrap());
    assert_eq!(cells[0].1.zero, 0x100);
}

#[test]
fn more_cells_than_a_block_may_have_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::create(dir.path().join("x"), &LogHeader::default()).unwrap();
    assert!(writer.add_event_counters(ThreadId(1), u32::MAX).is_err());
    assert!(writer.add_event_counters(ThreadId(1), 1).is_ok());
}

#[test]
fn what_was_counted_by_a_reading_is_beside_what_the_vm_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut writer = LogWriter::create(&path, &LogHeader::default()).unwrap();
    let cells = writer.add_vm_counters(3).unwrap();
    cells[0].claim(ThreadId(7), false);
    cells[0].set_reading(1000, 5);
    cells[1].claim_counted(ThreadId(7));
    cells[1].set_counted(900, 4);
    drop(writer);
    let log = InMemoryLog::open(&path).unwrap();
    let mut cells_read = (Vec::new(), Vec::new());
    for item in log.items() {
        if let LogItem::VmCounters(cells) = item.unwrap() {
            cells_read
                .0
                .extend(cells.iter().map(|cell| (cell.thread, cell.bytes, cell.at)));
            let counted = cells.iter_counted();
            cells_read
                .1
                .extend(counted.map(|sum| (sum.thread, sum.bytes, sum.objects)));
        }
    }
    // A reader that does not know the second cell skips it.
    assert_eq!(cells_read.0, [(ThreadId(7), 1000, 5)]);
    assert_eq!(cells_read.1, [(ThreadId(7), 900, 4)]);
}
