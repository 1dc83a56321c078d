//! Marks: named moments of a run, with what all counters had counted then.
//!
//! ```text
//! MarkedCounters, MarkedCounters, …, MarkRecord ─► RunMark
//! ```

use std::collections::HashMap;
use std::fmt;

use lucce_tracelog::{MarkRecord, MarkedCounters};
use serde::Serialize;

use crate::escape::EscapedText;
use crate::events::{ContextCounter, ContextCounters};

/// The name of the run's start, which no mark has.
pub const START_NAME: &str = "start";

/// The marks of a log, in the order of its records.
#[derive(Default)]
pub struct RunMarks {
    marks: Vec<RunMark>,
    /// Counters of marks whose own record has not been read.
    unfinished: HashMap<u32, Vec<ContextCounter>>,
}

/// A named moment of a run.
pub struct RunMark {
    pub moment: MarkedMoment,
    /// What had been counted.
    pub events: ContextCounters,
}

/// The name and time of a mark.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MarkedMoment {
    pub name: String,
    /// From the start of the log, in milliseconds.
    #[serde(rename = "at_ms")]
    pub millis: u64,
    /// Whether readers begin to count here by default.
    pub reset: bool,
}

/// The part of a run to which a profile is limited.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RunInterval {
    /// `None`: from the start.
    pub since: Option<MarkedMoment>,
    /// `None`: to the end.
    pub until: Option<MarkedMoment>,
}

impl RunMarks {
    pub(crate) fn add_counters(&mut self, record: &MarkedCounters) {
        let counters = record.counters.iter().map(|counter| ContextCounter {
            id: counter.context,
            thread: record.thread,
            event: counter.event,
            offset: 0,
            count: counter.count,
            value: counter.value,
        });
        let unfinished = self.unfinished.entry(record.mark).or_default();
        unfinished.extend(counters);
    }

    /// Finishes a mark. Without all of its counters it is left out; then false.
    pub(crate) fn add_mark(&mut self, record: &MarkRecord<'_>) -> bool {
        let counters = self.unfinished.remove(&record.id).unwrap_or_default();
        if counters.len() as u64 != record.counters {
            return false;
        }
        self.marks.push(RunMark {
            moment: MarkedMoment {
                name: record.name.clone().into_owned(),
                millis: record.at_ns / 1_000_000,
                reset: record.is_reset,
            },
            events: ContextCounters::new(counters),
        });
        true
    }

    #[must_use]
    pub fn as_slice(&self) -> &[RunMark] {
        &self.marks
    }
}

impl RunInterval {
    /// Says how to see the whole run, if the interval starts at a reset.
    #[must_use]
    pub fn start_hint(&self) -> &'static str {
        match &self.since {
            Some(since) if since.reset => " (--since start: the whole run)",
            _ => "",
        }
    }
}

impl fmt::Display for MarkedMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.millis as f64 / 1e3;
        match self.reset {
            true => write!(f, "the reset at {seconds:.3} s"),
            false => write!(f, "mark {} at {seconds:.3} s", EscapedText(&self.name)),
        }
    }
}

/// `counted since mark warm at 1.250 s, until mark done at 2.000 s`
impl fmt::Display for RunInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.since, &self.until) {
            (None, None) => write!(f, "counted from start to end"),
            (Some(since), None) => write!(f, "counted since {since}"),
            (None, Some(until)) => write!(f, "counted until {until}"),
            (Some(since), Some(until)) => write!(f, "counted since {since}, until {until}"),
        }
    }
}

#[cfg(test)]
mod marks_tests {
    use lucce_callgraph::ContextId;
    use lucce_tracelog::{EventTypeId, MarkedCounter, ThreadId};

    use super::*;

    fn counters(mark: u32, sums: &[(u64, u64, u64)]) -> MarkedCounters {
        let counter = |(id, count, value): &(u64, u64, u64)| MarkedCounter {
            context: ContextId(*id),
            event: EventTypeId(0),
            count: *count,
            value: *value,
        };
        MarkedCounters {
            mark,
            thread: ThreadId(1),
            counters: sums.iter().map(counter).collect(),
        }
    }

    fn mark(id: u32, counters: u64, is_reset: bool) -> MarkRecord<'static> {
        MarkRecord {
            id,
            is_reset,
            at_ns: u64::from(id) * 1_500_000_000,
            counters,
            name: "phase".into(),
        }
    }

    #[test]
    fn a_mark_has_all_of_its_counters_or_is_none() {
        let mut marks = RunMarks::default();
        marks.add_counters(&counters(1, &[(7, 1, 8)]));
        // Two marks may be written at once.
        marks.add_counters(&counters(2, &[(7, 2, 16)]));
        marks.add_counters(&counters(1, &[(8, 3, 0), (7, 4, 8)]));
        assert!(!marks.add_mark(&mark(2, 2, false)));
        assert!(marks.add_mark(&mark(1, 3, true)));
        let found = marks.as_slice().last().unwrap();
        let sums = found.events.as_slice().iter();
        let sums: Vec<_> = sums.map(|sum| (sum.id.0, sum.count, sum.value)).collect();
        // A context may have several counters in a thread.
        assert_eq!(sums, [(7, 5, 16), (8, 3, 0)]);
        assert_eq!(found.moment.to_string(), "the reset at 1.500 s");
        assert!(marks.add_mark(&mark(3, 0, false)));
        assert_eq!(marks.as_slice().len(), 2);
    }
}
