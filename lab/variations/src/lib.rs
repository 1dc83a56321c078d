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

use chance::SeededChance;

/// Of a hundred contexts so many are not met.
const MISSED: u64 = 3;
/// A release changes one of so many classes of the program.
const CHANGED: u64 = 20;
/// What the JDK's classes are called.
const JDK: [&str; 5] = ["java.", "javax.", "jdk.", "sun.", "com.sun."];

/// Which run it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunVariation {
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
pub fn write_variation(
    log: &InMemoryLog,
    name: &str,
    variation: RunVariation,
    to: &Path,
) -> io::Result<RunId> {
    let chance = SeededChance::from_name(name).mix(variation.number);
    let run = RunId::new(chance.value() | 1).ok_or_else(|| damage_error("a run without an id"))?;
    let header = LogHeader {
        start: variation.start_ms.saturating_mul(1_000_000),
        run: Some(run),
        ..*log.header()
    };
    let mut writing = VariationWriter {
        writer: LogWriter::create(to, &header)?,
        chance,
        release: variation.release,
        // From half of the work to one and a half times as much.
        work: 512 + chance.mix(0).pick_below(1025),
        classes: HashMap::new(),
        ended: false,
    };
    for item in log.items() {
        let item = item.map_err(|damage| damage_error(damage.to_string()))?;
        writing.write_item(item)?;
    }
    if !writing.ended {
        return Err(damage_error("the recorded run has not ended by itself"));
    }
    writing.writer.close()?;
    Ok(run)
}

fn damage_error(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

struct VariationWriter {
    writer: LogWriter,
    chance: SeededChance,
    release: u32,
    /// In parts of 1024.
    work: u64,
    /// By how many lines a class has moved.
    classes: HashMap<ClassId, u16>,
    ended: bool,
}

impl VariationWriter {
    fn write_item(&mut self, item: LogItem<'_>) -> io::Result<()> {
        match item {
            LogItem::Record(entry) => match entry.record {
                // Of a later version.
                None => Ok(()),
                Some(record) => self.write_record(record),
            },
            LogItem::Counters(cells) => self.write_counters(cells),
            LogItem::EventCounters(cells) => self.write_event_counters(cells),
            // Records say what they were in the end.
            LogItem::Totals(_) => Ok(()),
            LogItem::VmCounters(cells) => self.write_vm_counters(cells),
        }
    }

    fn write_record(&mut self, record: LogRecord<'_>) -> io::Result<()> {
        let record = match record {
            LogRecord::Class(class) => {
                self.classes.insert(class.id, self.moved_lines(&class));
                LogRecord::Class(class)
            }
            LogRecord::Method(method) => LogRecord::Method(self.move_method(method)),
            other => other,
        };
        self.ended |= matches!(record, LogRecord::End(_));
        self.writer.append(record).map_err(io::Error::other)
    }

    /// By how many lines it has moved in all releases so far.
    fn moved_lines(&self, class: &ClassRecord<'_>) -> u16 {
        if JDK.iter().any(|prefix| class.name.starts_with(prefix)) {
            return 0;
        }
        let chance = SeededChance::from_name(&class.name);
        let changes = (1..=u64::from(self.release))
            .filter(|release| chance.mix(*release).pick_below(CHANGED) == 0);
        changes
            .map(|release| 1 + chance.mix(release).mix(1).pick_below(9) as u16)
            .sum()
    }

    fn move_method<'m>(&self, method: MethodRecord<'m>) -> MethodRecord<'m> {
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
    fn vary_count(&self, id: ContextId, count: u64) -> u64 {
        let chance = self.chance.mix(id.0);
        if count == 0 || chance.pick_below(100) < MISSED {
            return 0;
        }
        let jitter = 768 + chance.mix(1).pick_below(513);
        let varied = (u128::from(count) * u128::from(self.work) * u128::from(jitter)) >> 20;
        u64::try_from(varied).unwrap_or(u64::MAX).max(1)
    }

    fn write_counters(&mut self, cells: AllocationCounters<'_>) -> io::Result<()> {
        let varied = cells.iter().filter_map(|cell| {
            let count = self.vary_count(cell.id, cell.count);
            // Objects' sizes are multiples of 8.
            let bytes = || proportional_share(cell.bytes, count, cell.count).next_multiple_of(8);
            (count > 0).then(|| (cell.id, count, bytes()))
        });
        let varied: Vec<_> = varied.collect();
        let written = self
            .writer
            .add_counters(cells.thread, counter_count(varied.len()));
        for (cell, (id, count, bytes)) in written.map_err(io::Error::other)?.iter().zip(varied) {
            cell.claim(id);
            cell.add_events(count, bytes);
        }
        Ok(())
    }

    fn write_event_counters(&mut self, cells: EventCounters<'_>) -> io::Result<()> {
        let varied = cells.iter().filter_map(|cell| {
            let count = self.vary_count(cell.id, cell.count);
            (count > 0).then(|| {
                (
                    cell.id,
                    cell.event,
                    count,
                    proportional_share(cell.value, count, cell.count),
                )
            })
        });
        let varied: Vec<_> = varied.collect();
        let written = self
            .writer
            .add_event_counters(cells.thread, counter_count(varied.len()));
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
    fn write_vm_counters(&mut self, cells: VmCounters<'_>) -> io::Result<()> {
        let recorded: Vec<_> = cells.iter().collect();
        let written = self
            .writer
            .add_vm_counters(counter_count(recorded.len()))
            .map_err(io::Error::other)?;
        for (cell, recorded) in written.iter().zip(recorded) {
            cell.claim(recorded.thread, recorded.carriers);
            cell.set_reading(
                proportional_share(recorded.bytes, self.work, 1024),
                recorded.at,
            );
        }
        Ok(())
    }
}

/// A block of the log has fewer.
fn counter_count(cells: usize) -> u32 {
    u32::try_from(cells).unwrap_or(u32::MAX)
}

/// `of` × `count` / `all`.
fn proportional_share(of: u64, count: u64, all: u64) -> u64 {
    let share = u128::from(of) * u128::from(count) / u128::from(all.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod variations_tests;
