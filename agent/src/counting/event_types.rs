//! Events beside allocations by bytecode: their types, and how one is counted.
//!
//! A type is a kind (`lock`, `exception`, a name that the program gives) and what it happened to (a
//! class's descriptor, say). It gets an id when it is first seen, and the log knows the id before it
//! is counted under. Each thread counts in cells of its lane, by context and type.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::ContextId;
use lucce_instrument::kinds::ALLOC;
use lucce_tracelog::{EventType, EventTypeId};

use crate::counting::AgentCounting;
use crate::counting::stream;
use crate::memory::counter::increment_counter;
use crate::memory::locks::WatchedMutex;
/// Characters of the name of an event of the program's own.
pub use crate::memory::shared_layout::LONGEST_KIND as MOST_OF_KIND;
use crate::options::is_agent_event;
use crate::thread::ThreadState;
use crate::thread::counter_access::{current_counters, event_counter};
use lucce_jvmti::JniEnvironment;

/// Details that one run can tell apart. Behind them a kind's events are counted without detail.
const MAX_TYPES: usize = 1 << 16;
/// Kinds beyond.
const MAX_KINDS: usize = 1 << 10;

/// An event of the program's own: `kind` is a string of Java. Its type, if it was counted.
pub fn count_program_event(
    counting: &AgentCounting,
    env: JniEnvironment,
    state: &ThreadState,
    number: ContextId,
    kind: jobject,
    value: i64,
) -> Option<EventTypeId> {
    let kind = program_kind_name(&env.read_string(kind, MOST_OF_KIND));
    let event = counting.find_or_add_event_type(&kind, "", "");
    counting.count_event(env, state, number, event, value)?;
    event
}

/// What a program's own events are called: not as ours are.
pub fn program_kind_name(name: &str) -> String {
    match name {
        "" => "own".to_string(),
        name if is_agent_event(name) => format!("own {name}"),
        name => name.to_string(),
    }
}

/// Kind and detail of every type, and its id.
#[derive(Default)]
pub struct EventTypes(WatchedMutex<HashMap<(String, String), EventTypeId>>);

impl EventTypes {
    /// The id, and whether it is new. `None`: there are too many.
    fn get_or_add(&self, kind: &str, detail: &str) -> Option<(EventTypeId, bool)> {
        let mut known = self.0.lock();
        let most = match detail {
            "" => MAX_TYPES + MAX_KINDS,
            _ => MAX_TYPES,
        };
        let next = known.len();
        let key = (kind.to_string(), detail.to_string());
        if let Some(id) = known.get(&key) {
            return Some((*id, false));
        }
        let id = EventTypeId(next as u32 + 1);
        (next < most).then(|| {
            known.insert(key, id);
            (id, true)
        })
    }

    /// The types of one kind, with what their events happen to.
    pub fn details_of_kind(&self, kind: &str) -> HashMap<EventTypeId, String> {
        let known = self.0.lock();
        let of_kind = known.iter().filter(|((of, _), _)| of == kind);
        of_kind
            .map(|((_, detail), id)| (*id, detail.clone()))
            .collect()
    }

    /// All kinds by id; what is counted under them is summed up by kind.
    pub fn kinds_by_id(&self) -> HashMap<EventTypeId, String> {
        let known = self.0.lock();
        let kinds = known.iter().map(|((kind, _), id)| (*id, kind.clone()));
        kinds.collect()
    }
}

impl AgentCounting {
    /// The type of events of `kind` on `detail`, whose values are in `unit` (`bytes`, `ns` or
    /// nothing). It may be kept: it stays the same for ever. `None`: the log has no room, or there are
    /// too many types.
    pub fn find_or_add_event_type(
        &self,
        kind: &str,
        unit: &str,
        detail: &str,
    ) -> Option<EventTypeId> {
        let Some((id, new)) = self.event_types.get_or_add(kind, detail) else {
            return match detail {
                "" => None,
                _ => self.find_or_add_event_type(kind, unit, ""),
            };
        };
        if new {
            let told = self.log.append_record(EventType {
                id,
                kind: kind.into(),
                unit: unit.into(),
                detail: detail.into(),
            });
            told.ok()?;
            if kind == ALLOC.name {
                self.coverage.add_allocation_type(id);
            }
        }
        Some(id)
    }

    /// An event of the current thread, whose state this is, in the context `number`: a number that
    /// stands for an event, as `ContextEncoder::encode_event` gives it. What is below 0 adds nothing to the sum. `None`:
    /// counted as lost, as that is unknown or the log is full. Not for fast paths: it looks the cell up in a hash table.
    pub fn count_event(
        &self,
        env: JniEnvironment,
        state: &ThreadState,
        number: ContextId,
        event: Option<EventTypeId>,
        value: i64,
    ) -> Option<()> {
        let cell = event.and_then(|event| {
            let mut lane = current_counters(self, env, state);
            event_counter(self, &mut lane, number, event)
        });
        match cell {
            Some(cell) => {
                cell.count_event(u64::try_from(value).unwrap_or(0));
                let event = cell.event_type();
                stream::record_event(self, env, state, (event, number), value);
            }
            None => {
                increment_counter(&self.counts.events_dropped);
                return None;
            }
        }
        Some(())
    }

    /// Events in all cells by type, by kind.
    pub fn events_by_kind(&self) -> HashMap<String, u64> {
        let kinds = self.event_types.kinds_by_id();
        let cells = self.lock_event_counter_blocks();
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
mod tests {
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
