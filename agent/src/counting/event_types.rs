//! Event types other than allocations by bytecode, and how their events are counted.
//!
//! A type consists of a kind (`lock`, `exception`, a name of the program) and a detail, such as a class's descriptor. It gets
//! its id when it first occurs. The log contains the id before a counter uses it. Each thread has its own counters, by context
//! and type.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::ContextId;
use lucce_instrument::kinds::{ALLOC, is_companion_kind};
use lucce_tracelog::{EventType, EventTypeId};

use crate::counting::CountingParts;
use crate::counting::stream;
use crate::memory::counter::increment_counter;
use crate::memory::locks::WatchedMutex;
/// Maximum length of the name of a program's own event.
pub use crate::memory::shared_layout::LONGEST_KIND as MOST_OF_KIND;
use crate::options::is_agent_event;
use crate::thread::ThreadState;
use crate::thread::counter_access::{current_counters, event_counter};
use lucce_jvmti::JniEnvironment;

/// Maximum number of types in a run. Beyond it, a kind's events are counted without detail.
const MAX_TYPES: usize = 1 << 16;
/// Number of additional types without detail.
const MAX_KINDS: usize = 1 << 10;

/// Counts an event of the program; `kind` is a Java string. Returns its type, if it was counted.
pub fn count_program_event(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    number: ContextId,
    kind: jobject,
    value: i64,
) -> Option<EventTypeId> {
    let kind = program_kind_name(&env.read_string(kind, MOST_OF_KIND));
    let event = agent.find_or_add_event_type(&kind, "", "");
    agent.count_event(env, state, number, event, value)?;
    event
}

/// The log's name for a kind of the program's own events. It differs from the agent's kinds.
pub fn program_kind_name(name: &str) -> String {
    match name {
        "" => "own".to_string(),
        name if is_agent_event(name) => format!("own {name}"),
        name => name.to_string(),
    }
}

/// The id of each type, by kind and detail.
#[derive(Default)]
pub struct EventTypes(WatchedMutex<HashMap<(String, String), EventTypeId>>);

impl EventTypes {
    /// The id, and whether it is new. `None`: there are too many types.
    fn get_or_add(&self, kind: &str, detail: &str) -> Option<(EventTypeId, bool)> {
        let mut types = self.0.lock();
        let most = match detail {
            "" => MAX_TYPES + MAX_KINDS,
            _ => MAX_TYPES,
        };
        let next = types.len();
        let key = (kind.to_string(), detail.to_string());
        if let Some(id) = types.get(&key) {
            return Some((*id, false));
        }
        let id = EventTypeId(next as u32 + 1);
        (next < most).then(|| {
            types.insert(key, id);
            (id, true)
        })
    }

    /// The types of one kind with their details.
    pub fn details_of_kind(&self, kind: &str) -> HashMap<EventTypeId, String> {
        let types = self.0.lock();
        let of_kind = types.iter().filter(|((of, _), _)| of == kind);
        of_kind
            .map(|((_, detail), id)| (*id, detail.clone()))
            .collect()
    }

    /// The kind of each type of events.
    pub fn kinds_by_id(&self) -> HashMap<EventTypeId, String> {
        let types = self.0.lock();
        let kinds = types
            .iter()
            .filter(|((kind, _), _)| !is_companion_kind(kind));
        let kinds = kinds.map(|((kind, _), id)| (*id, kind.clone()));
        kinds.collect()
    }
}

impl CountingParts<'_> {
    /// The type of events of `kind` on `detail`, with values in `unit` (`bytes`, `ns` or nothing). It is valid for the whole run
    /// and may be cached. `None`: the log has no room, or there are too many types.
    pub fn find_or_add_event_type(
        self,
        kind: &str,
        unit: &str,
        detail: &str,
    ) -> Option<EventTypeId> {
        let Some((id, new)) = self.counting.event_types.get_or_add(kind, detail) else {
            return match detail {
                "" => None,
                _ => self.find_or_add_event_type(kind, unit, ""),
            };
        };
        if new {
            let appended = self.core.log.append_record(EventType {
                id,
                kind: kind.into(),
                unit: unit.into(),
                detail: detail.into(),
            });
            appended.ok()?;
            if kind == ALLOC.name {
                self.counters.coverage.add_allocation_type(id);
            }
        }
        Some(id)
    }

    /// Counts an event of the current thread, whose state is passed, in the context `number`. `number` stands for an event, as
    /// `ContextEncoder::encode_event` returns it. Negative values add nothing to the sum. `None`: the number is unknown or the log
    /// is full, and the event counts as dropped. Not for fast paths: it looks the counter up in a hash table.
    pub fn count_event(
        self,
        env: JniEnvironment,
        state: &ThreadState,
        number: ContextId,
        event: Option<EventTypeId>,
        value: i64,
    ) -> Option<()> {
        let cell = event.and_then(|event| {
            let mut counters = current_counters(self.thread_parts(), env, state);
            event_counter(self.thread_parts(), &mut counters, number, event)
        });
        match cell {
            Some(cell) => {
                cell.count_event(u64::try_from(value).unwrap_or(0));
                let event = cell.event_type();
                stream::record_event(self, env, state, (event, number), value);
            }
            None => {
                increment_counter(&self.core.counts.events_dropped);
                return None;
            }
        }
        Some(())
    }

    /// Sums of all counters by type, by kind.
    pub fn events_by_kind(self) -> HashMap<String, u64> {
        let kinds = self.counting.event_types.kinds_by_id();
        let cells = self.counters.lock_event_counter_blocks();
        let mut sums = HashMap::new();
        for cell in cells.iter().flat_map(|counters| counters.iter()) {
            let count = u64::from_le(cell.count.load(Ordering::Relaxed));
            if let (Some(kind), true) = (kinds.get(&cell.event_type()), count > 0) {
                *sums.entry(kind.clone()).or_default() += count;
            }
        }
        sums
    }
}

#[cfg(test)]
mod event_types_tests {
    use super::*;

    #[test]
    fn a_type_is_a_kind_and_a_detail() {
        let types = EventTypes::default();
        let first = types.get_or_add("lock", "La;").unwrap();
        assert!(first.1);
        assert_eq!(types.get_or_add("lock", "La;"), Some((first.0, false)));
        let others = [("lock", "Lb;"), ("io", "La;"), ("lock", "")];
        for (kind, detail) in others {
            assert!(types.get_or_add(kind, detail).unwrap().1);
        }
        let kinds = types.kinds_by_id();
        assert_eq!(kinds.len(), 4);
        assert_eq!(kinds[&first.0], "lock");
    }

    #[test]
    fn own_events_do_not_mix_with_ours() {
        let names =
            ["", "cache miss", "alloc", "io-time", "inuse", "alloc_space"].map(program_kind_name);
        let wanted = [
            "own",
            "cache miss",
            "own alloc",
            "own io-time",
            "own inuse",
            "own alloc_space",
        ];
        assert_eq!(names, wanted);
    }

    #[test]
    fn kinds_have_room_when_details_have_none() {
        let types = EventTypes::default();
        for n in 0..MAX_TYPES {
            assert!(types.get_or_add("own", &n.to_string()).is_some());
        }
        assert_eq!(types.get_or_add("own", "more"), None);
        assert!(types.get_or_add("own", "").is_some());
        assert_eq!(
            types.get_or_add("own", "0").map(|known| known.1),
            Some(false)
        );
        for n in 1..MAX_KINDS {
            assert!(types.get_or_add(&n.to_string(), "").is_some());
        }
        assert_eq!(types.get_or_add("x", ""), None);
    }
}
