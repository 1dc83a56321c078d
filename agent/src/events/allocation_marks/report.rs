//! The result of a mark, as text for the program.

use std::collections::BTreeMap;
use std::fmt::Write;

use lucce_callgraph::{ContextId, MethodId};
use lucce_jvmti::JniEnvironment;

use crate::counting::CountingParts;
use crate::counting::object_sizes::find_site_size;
use crate::registry::RegisteredSiteKind;

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
        let mut lost = self.dropped;
        let mut lines = String::new();
        let mut line = |reading: CounterReading, bytes: u64, of: &str| {
            let _ = writeln!(
                lines,
                "{:x} {} {bytes} {of}",
                reading.number.0, reading.count
            );
        };
        for reading in sum_readings(&self.allocations) {
            match find_allocation(agent, env, reading.number) {
                SiteAllocation::Object { size, of } => {
                    line(reading, reading.value + reading.count * size, &of)
                }
                SiteAllocation::Nothing => {}
                SiteAllocation::Unknown => lost += reading.count.max(1),
            }
        }
        let details = agent.counting.event_types.details_of_kind(KIND);
        for reading in sum_readings(&self.by_type) {
            if let Some(of) = details.get(&reading.event) {
                line(reading, reading.value, of);
            }
        }
        format!("{lost}\n{}\n{lines}", self.reasons.join("; "))
    }
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

enum SiteAllocation {
    /// Bytes of each object in addition to the counter's sum, and the descriptor.
    Object {
        size: u64,
        of: String,
    },
    /// A site of other events, which have counters as well.
    Nothing,
    Unknown,
}

fn find_allocation(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    number: ContextId,
) -> SiteAllocation {
    let frames = agent.core.encoder.decode_context(number, MethodId::EVENT);
    let Some(site) = frames
        .ok()
        .and_then(|frames| frames.first().map(|frame| frame.site.0))
    else {
        return SiteAllocation::Unknown;
    };
    let registry = agent.core.registry();
    let Some(info) = registry.site(site) else {
        return SiteAllocation::Unknown;
    };
    let of = match info.kind {
        RegisteredSiteKind::New(of) | RegisteredSiteKind::Array(of) => {
            registry.name_text(of).to_string()
        }
        _ => return SiteAllocation::Nothing,
    };
    drop(registry);
    let size = find_site_size(agent, env, site).unwrap_or(0);
    SiteAllocation::Object { size, of }
}
