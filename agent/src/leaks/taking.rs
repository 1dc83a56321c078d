//! Snapshots and censuses are taken, and written.
#![allow(
    unsafe_code,
    reason = "reads references while the VM may not be called"
)]

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jvmti_bindings::sys::jni::jobject;
use lucce_tracelog::{self as tracelog, CensusCause, HeapCensus, Record, Snapshot, Survivors};
use lucce_vm::{Env, is_slot_cleared};

use crate::counting::Counting;
use crate::leaks::followed::{Birth, Row};
use crate::leaks::whole::WholeCollections;
use crate::leaks::{Leaks, State};

/// When something is written again: a part of the time later that has passed, so that a run of a year has hardly more of it
/// than one of a day.
pub struct Schedule {
    next: Duration,
    pause: Duration,
    part: u32,
}

impl Schedule {
    pub fn new(first: Duration, (pause, part): (Duration, u32)) -> Schedule {
        Schedule {
            next: first,
            pause,
            part,
        }
    }

    pub fn is_due(&self, now: Duration) -> bool {
        now >= self.next
    }

    pub fn done(&mut self, now: Duration) {
        self.next = now + self.pause.max(now / self.part);
    }
}

/// When a snapshot was taken that was asked for.
pub struct Times {
    /// Since objects are followed.
    pub now: Duration,
    /// What the collection took that was asked for.
    pub collection: Option<Duration>,
}

/// Whether references may be read without the VM, found out by comparison with what the VM says.
#[derive(Default)]
pub struct Slots {
    compares: bool,
    gone: Cell<bool>,
    differ: Cell<bool>,
}

impl Slots {
    /// From now on.
    pub fn compare(&mut self) {
        self.compares = true;
    }

    /// What the VM says of a reference.
    pub fn note(&self, weak: usize, is_gone: bool) {
        if self.compares {
            self.gone.set(self.gone.get() || is_gone);
            self.differ
                .set(self.differ.get() || is_cleared(weak) != is_gone);
        }
    }

    /// Living and dead objects were told apart, and each as the VM does it.
    fn are_reliable(&self) -> bool {
        self.gone.get() && !self.differ.get()
    }
}

/// The caller holds the state's lock, under which references are deleted.
fn is_cleared(weak: usize) -> bool {
    // SAFETY: a followed object's weak reference, which is not deleted meanwhile.
    unsafe { is_slot_cleared(weak as jobject) }
}

/// What is to be written together: names that the log does not have yet, and rows.
struct Listing {
    names: Vec<(u32, Arc<Birth>)>,
    rows: Vec<Row>,
}

impl Listing {
    fn new(state: &State, rows: Vec<Row>) -> Listing {
        let name = |row: &Row| Some((row.key, state.followed.untold(row.key)?));
        let mut names: Vec<_> = rows.iter().filter_map(name).collect();
        // A place has a row for each class of ages.
        names.sort_by_key(|(key, _)| *key);
        names.dedup_by_key(|(key, _)| *key);
        Listing { names, rows }
    }

    /// The log has it.
    fn mark_told(&self, state: &mut State) {
        let keys = self.names.iter().map(|(key, _)| *key);
        keys.for_each(|key| state.followed.mark_told(key));
    }

    /// With `head` between the names and the rows.
    fn records<'l>(&'l self, head: Record<'l>) -> Vec<Record<'l>> {
        let name = |(key, place): &'l (u32, Arc<Birth>)| {
            Record::from(tracelog::Followed {
                key: *key,
                context: place.context,
                of: (&*place.of).into(),
            })
        };
        let row = |row: &'l Row| {
            Record::from(Survivors {
                key: row.key,
                objects: row.objects,
                bytes: row.bytes,
                generations: (&row.generations[..]).into(),
            })
        };
        let names = self.names.iter().map(name);
        names
            .chain([head])
            .chain(self.rows.iter().map(row))
            .collect()
    }
}

impl Leaks {
    /// Writes what lives, as far as the last collection of the old generation has tested it.
    pub(super) fn snapshot(&self, counting: &Counting, env: Env, state: &mut State) {
        state.sweep(env);
        let now = self.now();
        let (listing, head) = self.list_snapshot(state, now, &|_| true);
        // A full log is told at the end.
        let _ = counting.log.append_all(listing.records(head.into()));
        listing.mark_told(state);
        state.told = true;
        state.snapshots.done(now);
    }

    fn list_snapshot(
        &self,
        state: &State,
        now: Duration,
        is_alive: &dyn Fn(usize) -> bool,
    ) -> (Listing, Snapshot) {
        let rows = state.followed.rows(0..state.tested, is_alive);
        let head = Snapshot {
            rows: rows.len() as u32,
            millis: now.as_millis() as u64,
            collections: self.collections(),
            old: state.old,
            tested: state.tested,
            sampled: state.sampled,
            following: state.followed.len() as u64,
            thinned: state.followed.thinned(),
            lost: self.lost.load(Ordering::Relaxed),
        };
        (Listing::new(state, rows), head)
    }

    /// Writes all that is not known to be dead.
    pub(super) fn census(
        &self,
        counting: &Counting,
        env: Env,
        state: &mut State,
        cause: (CensusCause, &str),
    ) {
        state.sweep(env);
        let now = self.now();
        let (listing, head) = self.list_census(state, (cause, now), &|_| true);
        state.in_census = (head.sampled, head.collections);
        // A full log is told at the end.
        let _ = counting.log.append_all(listing.records(head.into()));
        listing.mark_told(state);
        state.censuses.done(now);
        state.exhaustions.done(now);
    }

    fn list_census<'c>(
        &self,
        state: &State,
        ((cause, detail), now): ((CensusCause, &'c str), Duration),
        is_alive: &dyn Fn(usize) -> bool,
    ) -> (Listing, HeapCensus<'c>) {
        let collections = self.collections();
        let (tested, survived) = (state.tested, state.survived.max(state.tested));
        let classes = [0..tested, tested..survived, survived..u64::MAX];
        let rows = |born| state.followed.rows(born, is_alive);
        let rows: Vec<Row> = classes.into_iter().flat_map(rows).collect();
        let whole = self.whole.get();
        let head = HeapCensus {
            rows: rows.len() as u32,
            cause,
            detail: detail.into(),
            millis: now.as_millis() as u64,
            collections,
            full: whole.and_then(WholeCollections::full_collections),
            survived,
            tested,
            sampled: state.sampled,
            following: state.followed.len() as u64,
            thinned: state.followed.thinned(),
            used_bytes: whole.and_then(WholeCollections::used_bytes),
            max_bytes: whole.and_then(WholeCollections::max_heap_bytes),
        };
        (Listing::new(state, rows), head)
    }

    /// In the VM's own thread, while all others stand still, at the end of a collection of the whole heap: the VM may end as
    /// soon as they go on. The VM is not called, and no thread is waited for: where one has a lock, this is left out.
    pub(super) fn take_at_pause(&self, counting: &Counting, whole: &WholeCollections) {
        let Some(mut state) = self.state.try_lock() else {
            return;
        };
        let now = self.now();
        let is_unknown = whole.used_bytes().is_none();
        let is_wanted = whole.is_nearly_full() || is_unknown || state.censuses.is_due(now);
        if state.ended || !state.slots.are_reliable() || !is_wanted {
            return;
        }
        state.note_whole(whole.so_far());
        let is_alive = |weak| !is_cleared(weak);
        if state.snapshots.is_due(now) {
            let (listing, head) = self.list_snapshot(&state, now, &is_alive);
            if counting.log.try_append_all(listing.records(head.into())) {
                listing.mark_told(&mut state);
                state.told = true;
                state.snapshots.done(now);
            }
        }
        let cause = (CensusCause::FullCollection, "");
        let (listing, head) = self.list_census(&state, (cause, now), &is_alive);
        let known = (head.sampled, head.collections);
        if counting.log.try_append_all(listing.records(head.into())) {
            listing.mark_told(&mut state);
            state.in_census = known;
            state.censuses.done(now);
        }
    }
}
