//! The result of a mark, as text for the program.

use std::collections::BTreeMap;
use std::fmt::Write;

use lucce_instrument::kinds::LOCK_WAITS;
use lucce_jvmti::JniEnvironment;

use crate::counting::CountingParts;
use crate::counting::object_sizes::{ContextAllocation, find_context_allocation};

use super::KIND;
use super::counts::{CounterChange, CounterLocation, CounterReading, sum_readings};

/// Maximum number of threads that a reason names.
const MAX_NAMES: usize = 3;

/// The result of a mark.
#[derive(Default)]
pub(super) struct MarkReport {
    pub(super) dropped: u64,
    /// Reasons why the counts are incomplete.
    pub(super) reasons: Vec<String>,
    pub(super) allocations: Vec<CounterReading>,
    pub(super) by_type: Vec<CounterReading>,
    /// Counters of other threads that belong to the measurement, with their present counts.
    pub(super) cells: Vec<(CounterLocation, u64)>,
}

impl MarkReport {
    /// Adds a counter of another thread that belongs to the measurement.
    pub(super) fn add_change(&mut self, change: CounterChange) {
        self.cells.push((change.place, change.all));
        match change.place.is_by_type {
            true => self.by_type.push(change.counts),
            false => self.allocations.push(change.counts),
        }
    }

    /// The caller holds no lock: measuring sizes creates objects in this thread.
    pub(super) fn to_text(&self, agent: CountingParts<'_>, env: JniEnvironment) -> String {
        let mut lines = String::new();
        let unknown = self.for_each_allocation(agent, env, |reading, bytes, of| {
            let _ = writeln!(
                lines,
                "{:x} {} {bytes} {of}",
                reading.number.0, reading.count
            );
        });
        let lost = self.dropped + unknown;
        format!("{lost}\n{}\n{lines}", self.reasons.join("; "))
    }

    /// The sums of all contexts. The caller holds no lock.
    pub(super) fn sum_events(&self, agent: CountingParts<'_>, env: JniEnvironment) -> MarkSums {
        let mut sums = MarkSums::default();
        let unknown = self.for_each_allocation(agent, env, |reading, bytes, _| {
            sums.objects += reading.count;
            sums.bytes += bytes;
        });
        sums.lost = self.dropped + unknown;
        let waits = agent.counting.event_types.details_of_kind(LOCK_WAITS.name);
        for reading in &self.by_type {
            if waits.contains_key(&reading.event) {
                sums.waits += reading.count;
                sums.wait_ns += reading.value;
            }
        }
        sums
    }

    /// Calls `each` with the reading of each context and type, its bytes and the type. Returns the number of events whose type
    /// is unknown.
    fn for_each_allocation(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        mut each: impl FnMut(CounterReading, u64, &str),
    ) -> u64 {
        let mut unknown = 0;
        for reading in sum_readings(&self.allocations) {
            match find_context_allocation(agent, env, reading.number) {
                ContextAllocation::Object { size, of } => {
                    each(reading, reading.value + reading.count * size, &of);
                }
                ContextAllocation::Nothing => {}
                ContextAllocation::Unknown => unknown += reading.count.max(1),
            }
        }
        let details = agent.counting.event_types.details_of_kind(KIND);
        for reading in sum_readings(&self.by_type) {
            if let Some(of) = details.get(&reading.event) {
                each(reading, reading.value, of);
            }
        }
        unknown
    }
}

/// The sums of a mark.
#[derive(Clone, Copy, Default)]
pub struct MarkSums {
    pub objects: u64,
    pub bytes: u64,
    /// Waits that have ended, and their time.
    pub waits: u64,
    pub wait_ns: u64,
    /// Dropped events.
    pub lost: u64,
}

/// Why the counts lack events of these threads.
pub(super) fn unknown_reason(knows_origins: bool, events: &BTreeMap<String, u64>) -> String {
    let objects: u64 = events.values().sum();
    let names: Vec<&str> = events.keys().take(MAX_NAMES).map(|name| &**name).collect();
    let more = match events.len() > MAX_NAMES {
        true => ", …",
        false => "",
    };
    let names = format!("{}{more}", names.join(", "));
    let objects = match objects {
        1 => "an object".to_owned(),
        objects => format!("{objects} objects"),
    };
    match knows_origins {
        true => format!(
            "tasks in other threads made {objects} ({names}), and the agent does not know who submitted them"
        ),
        false => format!(
            "other threads made {objects} meanwhile ({names}), and the agent knows only with events=alloc+thread whether the \
             code has started them"
        ),
    }
}
