//! Logs of many runs, made of the log of one that was recorded.
//!
//! A variation has what differs between runs of one program: a run's id and start, other counts, some contexts that were not
//! met, and, from release to release, other lines in some of the program's classes, so that the contexts through them have
//! other content ids. Numbers, graph, classes and methods are the recorded run's. The arguments alone decide what it is.

mod chance;

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use lucce_callgraph::ContextId;
use lucce_tracelog::{
    AllocationCounters, ClassId, ClassRecord, EventCounters, InMemoryLog, LogHeader, LogItem,
    LogRecord, LogWriter, MethodRecord, RunId, VmCounters,
};

use chance::Chance;

/// Of a hundred contexts so many are not met.
const MISSED: u64 = 3;
/// A release changes one of so many classes of the program.
const CHANGED: u64 = 20;
/// What the JDK's classes are called.
const JDK: [&str; 5] = ["java.", "javax.", "jdk.", "sun.", "com.sun."];

/// Which run it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variation {
    /// Others of one program have other numbers.
    pub number: u64,
    /// Of the program, from 0, which is as it was recorded.
    pub release: u32,
    /// Milliseconds since 1970.
    pub start_ms: u64,
}

/// Writes the log of a run that was not; `name` tells programs apart.
///
/// # Errors
/// The log is damaged, or the other one cannot be written.
pub fn write(log: &InMemoryLog, name: &str, variation: Variation, to: &Path) -> io::Result<RunId> {
    let chance = Chance::of(name).and(variation.number);
    let run = RunId::new(chance.value() | 1).ok_or_else(|| damaged("a run without an id"))?;
    let header = LogHeader {
        start: variation.start_ms.saturating_mul(1_000_000),
        run: Some(run),
        ..*log.header()
    };
    let mut writing = Writing {
        writer: LogWriter::create(to, &header)?,
        chance,
        release: variation.release,
        // From half of the work to one and a half times as much.
        work: 512 + chance.and(0).below(1025),
        classes: HashMap::new(),
        ended: false,
    };
    for item in log.items() {
        let item = item.map_err(|damage| damaged(damage.to_string()))?;
        writing.item(item)?;
    }
    if !writing.ended {
        return Err(damaged("the recorded run has not ended by itself"));
    }
    writing.writer.close()?;
    Ok(run)
}

fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

struct Writing {
    writer: LogWriter,
    chance: Chance,
    release: u32,
    /// In parts of 1024.
    work: u64,
    /// By how many lines a class has moved.
    classes: HashMap<ClassId, u16>,
    ended: bool,
}

impl Writing {
    fn item(&mut self, item: LogItem<'_>) -> io::Result<()> {
        match item {
            LogItem::Record(entry) => match entry.record {
                // Of a later version.
                None => Ok(()),
                Some(record) => self.record(record),
            },
            LogItem::Counters(cells) => self.cells(cells),
            LogItem::EventCounters(cells) => self.event_cells(cells),
            // Records say what they were in the end.
            LogItem::Totals(_) => Ok(()),
            LogItem::VmCounters(cells) => self.vm_cells(cells),
        }
    }

    fn record(&mut self, record: LogRecord<'_>) -> io::Result<()> {
        let record = match record {
            LogRecord::Class(class) => {
                self.classes.insert(class.id, self.moved(&class));
                LogRecord::Class(class)
            }
            LogRecord::Method(method) => LogRecord::Method(self.method(method)),
            other => other,
        };
        self.ended |= matches!(record, LogRecord::End(_));
        self.writer.append(record).map_err(io::Error::other)
    }

    /// By how many lines it has moved in all releases so far.
    fn moved(&self, class: &ClassRecord<'_>) -> u16 {
        if JDK.iter().any(|prefix| class.name.starts_with(prefix)) {
            return 0;
        }
        let chance = Chance::of(&class.name);
        let changes = (1..=u64::from(self.release))
            .filter(|release| chance.and(*release).below(CHANGED) == 0);
        changes
            .map(|release| 1 + chance.and(release).and(1).below(9) as u16)
            .sum()
    }

    fn method<'m>(&self, method: MethodRecord<'m>) -> MethodRecord<'m> {
        let by = self.classes.get(&method.class).copied().unwrap_or(0);
        let moved: Option<Vec<(u16, u16)>> = method
            .lines
            .iter()
            .map(|(bci, line)| Some((*bci, line.checked_add(by)?)))
            .collect();
        match moved {
            Some(lines) if by > 0 => MethodRecord {
                lines: Cow::Owned(lines),
                ..method
            },
            _ => method,
        }
    }

    /// How often it happened in this run, of how often it was recorded; 0: never.
    fn count(&self, id: ContextId, count: u64) -> u64 {
        let chance = self.chance.and(id.0);
        if count == 0 || chance.below(100) < MISSED {
            return 0;
        }
        let jitter = 768 + chance.and(1).below(513);
        let varied = (u128::from(count) * u128::from(self.work) * u128::from(jitter)) >> 20;
        u64::try_from(varied).unwrap_or(u64::MAX).max(1)
    }

    fn cells(&mut self, cells: AllocationCounters<'_>) -> io::Result<()> {
        let varied = cells.iter().filter_map(|cell| {
            let count = self.count(cell.id, cell.count);
            // Objects' sizes are multiples of 8.
            let bytes = || share(cell.bytes, count, cell.count).next_multiple_of(8);
            (count > 0).then(|| (cell.id, count, bytes()))
        });
        let varied: Vec<_> = varied.collect();
        let written = self.writer.add_counters(cells.thread, size(varied.len()));
        for (cell, (id, count, bytes)) in written.map_err(io::Error::other)?.iter().zip(varied) {
            cell.claim(id);
            cell.add_events(count, bytes);
        }
        Ok(())
    }

    fn event_cells(&mut self, cells: EventCounters<'_>) -> io::Result<()> {
        let varied = cells.iter().filter_map(|cell| {
            let count = self.count(cell.id, cell.count);
            (count > 0).then(|| {
                (
                    cell.id,
                    cell.event,
                    count,
                    share(cell.value, count, cell.count),
                )
            })
        });
        let varied: Vec<_> = varied.collect();
        let written = self
            .writer
            .add_event_counters(cells.thread, size(varied.len()));
        for (cell, (id, event, count, value)) in
            written.map_err(io::Error::other)?.iter().zip(varied)
        {
            cell.claim(id, event);
            // Relaxed, twice: no reader has the log yet.
            cell.count.store(count.to_le(), Ordering::Relaxed);
            cell.value.store(value.to_le(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// As much more or less as the work is.
    fn vm_cells(&mut self, cells: VmCounters<'_>) -> io::Result<()> {
        let recorded: Vec<_> = cells.iter().collect();
        let written = self
            .writer
            .add_vm_counters(size(recorded.len()))
            .map_err(io::Error::other)?;
        for (cell, recorded) in written.iter().zip(recorded) {
            cell.claim(recorded.thread, recorded.carriers);
            cell.set_reading(share(recorded.bytes, self.work, 1024), recorded.at);
        }
        Ok(())
    }
}

/// A block of the log has fewer.
fn size(cells: usize) -> u32 {
    u32::try_from(cells).unwrap_or(u32::MAX)
}

/// `of` × `count` / `all`.
fn share(of: u64, count: u64, all: u64) -> u64 {
    let share = u128::from(of) * u128::from(count) / u128::from(all.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod variations_tests;
