//! The log of recorded contexts.

use std::collections::HashMap;
use std::path::Path;

use lucce_callgraph::{ContextId, GraphChange};
use lucce_tracelog::{InMemoryLog, LogHeader, LogItem, LogWriter, ThreadId};

use crate::contexts;
use crate::measured;

const LIMIT: u64 = 256 << 20;

struct Content {
    changes: Vec<GraphChange>,
    counts: HashMap<ContextId, u32>,
}

impl Content {
    fn of(file: &Path) -> Content {
        let (numbers, changes) = contexts::encoded(&contexts::events(file));
        let mut counts = HashMap::new();
        for number in numbers {
            *counts.entry(number).or_default() += 1;
        }
        Content { changes, counts }
    }

    fn write(&self, writer: &mut LogWriter) {
        for change in &self.changes {
            writer.append(*change).expect("room");
        }
        let cells = u32::try_from(self.counts.len()).expect("few");
        let counters = writer.add_counters(ThreadId(1), cells).expect("room");
        for (cell, (number, count)) in counters.iter().zip(&self.counts) {
            cell.claim(*number);
            for _ in 0..*count {
                cell.count_event(24);
            }
        }
        writer.close().expect("room");
    }
}

fn created(path: &Path) -> LogWriter {
    let header = LogHeader {
        version_bits: 12,
        anchor_bits: 20,
        call_bits: 32,
        pid: 1,
        start: 0,
        run: None,
    };
    LogWriter::create_with_limit(path, &header, LIMIT).expect("a new file")
}

pub fn write(file: &Path) -> String {
    let content = Content::of(file);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let mut writer = created(&path);
    measured(&mut || content.write(&mut writer));
    let log = InMemoryLog::open(&path).expect("our own log");
    let records = log
        .items()
        .filter(|item| matches!(item, Ok(LogItem::Record(_))));
    assert_eq!(records.count(), content.changes.len());
    format!(
        "{} changes, {} counters",
        content.changes.len(),
        content.counts.len()
    )
}

pub fn read(file: &Path) -> String {
    let content = Content::of(file);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    content.write(&mut created(&path));
    let (mut records, mut events) = (0, 0);
    measured(&mut || {
        let log = InMemoryLog::open(&path).expect("our own log");
        for item in log.items() {
            match item.expect("a whole log") {
                LogItem::Record(_) => records += 1,
                LogItem::Counters(cells) => {
                    events += cells.iter().map(|cell| cell.count).sum::<u64>()
                }
                LogItem::EventCounters(_) | LogItem::Totals(_) | LogItem::VmCounters(_) => {}
            }
        }
    });
    assert_eq!(records, content.changes.len());
    let all: u64 = content.counts.values().map(|count| u64::from(*count)).sum();
    assert_eq!(events, all);
    format!("{records} records, {events} events")
}
