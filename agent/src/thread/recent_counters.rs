//! A cache of the counters that a thread used last, by place and class: events that the VM reports repeat at few
//! places.

use jvmti_bindings::sys::jni::{jclass, jobject};

use crate::memory::java_table::MULTIPLIER;
use crate::thread::event_kind::{EventCounterRef, EventKind};
use lucce_jvmti::JniEnvironment;

const ENTRIES: usize = 64;

/// A context as the thread keeps it, and a site.
type CounterPlace = (u64, u32);

/// A place, a kind of event, the class of its object, and their counter.
#[derive(Clone, Copy)]
pub struct RecentCounter {
    place: CounterPlace,
    kind: &'static EventKind,
    /// A weak global reference. It is stable while the class is loaded, and meaningless afterwards.
    class: usize,
    counter: EventCounterRef,
}

impl RecentCounter {
    pub fn new(
        env: JniEnvironment,
        place: CounterPlace,
        kind: &'static EventKind,
        class: jclass,
        counter: EventCounterRef,
    ) -> RecentCounter {
        RecentCounter {
            place,
            kind,
            class: match class.is_null() {
                true => 0,
                false => env.new_weak_global(class) as usize,
            },
            counter,
        }
    }
}

/// One entry for each hash; a new entry replaces the old one.
#[derive(Default)]
pub struct RecentCounters(Vec<Option<RecentCounter>>);

impl RecentCounters {
    /// The counter of an event of `kind` at `place` on an object of `class`, if it was used recently.
    pub fn find_counter(
        &self,
        env: JniEnvironment,
        place: CounterPlace,
        kind: &'static EventKind,
        class: jclass,
    ) -> Option<EventCounterRef> {
        let entry = self.0.get(entry_index(place))?.as_ref()?;
        let same = entry.place == place
            && std::ptr::eq(entry.kind, kind)
            // Null also stands for an unloaded class.
            && (entry.class == 0) == class.is_null()
            && env.is_same(entry.class as jobject, class);
        same.then_some(entry.counter)
    }

    pub fn insert_counter(&mut self, env: JniEnvironment, recent: RecentCounter) {
        self.0.resize(ENTRIES, None);
        if let Some(entry) = self.0.get_mut(entry_index(recent.place))
            && let Some(old) = entry.replace(recent)
            && old.class != 0
        {
            env.delete_weak(old.class as jobject);
        }
    }
}

fn entry_index(place: CounterPlace) -> usize {
    let key = place.0 ^ u64::from(place.1).rotate_left(40);
    (key.wrapping_mul(MULTIPLIER) >> (64 - ENTRIES.trailing_zeros())) as usize
}
