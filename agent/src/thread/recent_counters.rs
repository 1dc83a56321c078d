//! Caches of the counters that a thread used last, by place and class, and by handler: events that the VM reports repeat
//! at few places.

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

/// The handler of an exception. The VM does not reuse ids of methods, and a redefined method may have other lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandlerPlace {
    /// The VM's `jmethodID`.
    pub method: usize,
    pub bci: i64,
    pub line: i32,
}

/// The counter of an exception, its handler, and the counter of both.
#[derive(Clone, Copy)]
pub struct RecentCatch {
    pub exception: EventCounterRef,
    pub handler: HandlerPlace,
    pub counter: EventCounterRef,
}

/// One entry for each hash; a new entry replaces the old one.
#[derive(Default)]
pub struct RecentCatches(Vec<Option<RecentCatch>>);

impl RecentCatches {
    pub fn find_counter(
        &self,
        exception: EventCounterRef,
        handler: HandlerPlace,
    ) -> Option<EventCounterRef> {
        let recent = self.0.get(catch_index(exception, handler))?.as_ref()?;
        let same = std::ptr::eq(recent.exception.0, exception.0) && recent.handler == handler;
        same.then_some(recent.counter)
    }

    pub fn insert_counter(&mut self, recent: RecentCatch) {
        self.0.resize(ENTRIES, None);
        if let Some(entry) = self
            .0
            .get_mut(catch_index(recent.exception, recent.handler))
        {
            *entry = Some(recent);
        }
    }
}

fn catch_index(exception: EventCounterRef, handler: HandlerPlace) -> usize {
    let bci = handler.bci.unsigned_abs() as u32;
    entry_index((
        std::ptr::from_ref(exception.0).addr() as u64 ^ handler.method as u64,
        bci,
    ))
}

fn entry_index(place: CounterPlace) -> usize {
    let key = place.0 ^ u64::from(place.1).rotate_left(40);
    (key.wrapping_mul(MULTIPLIER) >> (64 - ENTRIES.trailing_zeros())) as usize
}
