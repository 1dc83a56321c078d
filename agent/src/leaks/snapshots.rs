//! Takes snapshots and censuses, and writes them to the log.
#![allow(
    unsafe_code,
    reason = "reads references while the VM may not be called"
)]

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jvmti_bindings::sys::jni::jobject;
use lucce_jvmti::{JniEnvironment, is_slot_cleared};
use lucce_tracelog::{
    self as tracelog, CensusCause, HeapCensus, LogRecord, SnapshotRecord, SurvivorsRecord,
};

use crate::counting::CountingParts;
use crate::leaks::full_collections::FullCollections;
use crate::leaks::sampled_objects::{AllocationOrigin, SurvivorRow};
use crate::leaks::{LeakDetector, LeakDetectorState};

/// Schedules repeated writing. The pause grows with the elapsed time, so a run of a year writes hardly more than a run of a day.
pub struct WriteSchedule {
    next: Duration,
    pause: Duration,
    part: u32,
}

impl WriteSchedule {
    /// `first`: the first due time. `pause`: the minimum pause. `part`: the pause is at least 1/`part` of the elapsed time.
    pub fn new(first: Duration, (pause, part): (Duration, u32)) -> WriteSchedule {
        WriteSchedule {
            next: first,
            pause,
            part,
        }
    }

    /// Whether the next writing is due at `now`, a time since the start.
    pub fn is_due(&self, now: Duration) -> bool {
        now >= self.next
    }

    /// Sets the next due time after writing at `now`.
    pub fn mark_done(&mut self, now: Duration) {
        self.next = now + self.pause.max(now / self.part);
    }
}

/// The times of a requested snapshot.
pub struct SnapshotTimes {
    /// Time since objects are followed.
    pub now: Duration,
    /// Duration of the requested collection.
    pub collection: Option<Duration>,
}

/// Whether references may be read without the VM, determined by comparison with the VM's answers.
#[derive(Default)]
pub struct SlotReliability {
    compares: bool,
    gone: Cell<bool>,
    differ: Cell<bool>,
}

impl SlotReliability {
    /// Starts the comparison.
    pub fn start_comparing(&mut self) {
        self.compares = true;
    }

    /// Compares a reference with the VM's answer.
    pub fn compare_slot(&self, weak: usize, is_gone: bool) {
        if self.compares {
            self.gone.set(self.gone.get() || is_gone);
            self.differ
                .set(self.differ.get() || is_cleared(weak) != is_gone);
        }
    }

    /// Whether living and dead objects were seen and always read like the VM does.
    fn are_reliable(&self) -> bool {
        self.gone.get() && !self.differ.get()
    }
}

/// Whether the object is gone. The caller holds the lock of the reference's owner, who deletes no reference that is followed
/// meanwhile.
pub(super) fn is_cleared(weak: usize) -> bool {
    // SAFETY: a followed object's weak reference, which is not deleted meanwhile.
    unsafe { is_slot_cleared(weak as jobject) }
}

/// Records that are written together: origins that the log does not have yet, and rows.
struct SurvivorListing {
    names: Vec<(u32, Arc<AllocationOrigin>)>,
    rows: Vec<SurvivorRow>,
}

impl SurvivorListing {
    fn new(state: &LeakDetectorState, rows: Vec<SurvivorRow>) -> SurvivorListing {
        let name = |row: &SurvivorRow| Some((row.key, state.objects.unwritten_origin(row.key)?));
        let mut names: Vec<_> = rows.iter().filter_map(name).collect();
        // An origin has a row for each age class.
        names.sort_by_key(|(key, _)| *key);
        names.dedup_by_key(|(key, _)| *key);
        SurvivorListing { names, rows }
    }

    /// Marks that the log has the origins.
    fn mark_origins_written(&self, state: &mut LeakDetectorState) {
        let keys = self.names.iter().map(|(key, _)| *key);
        keys.for_each(|key| state.objects.mark_origin_written(key));
    }

    /// The records, with `head` between origins and rows.
    fn to_records<'l>(&'l self, head: LogRecord<'l>) -> Vec<LogRecord<'l>> {
        let name = |(key, place): &'l (u32, Arc<AllocationOrigin>)| {
            LogRecord::from(tracelog::FollowedKeyRecord {
                key: *key,
                context: place.context,
                type_name: (&*place.descriptor).into(),
            })
        };
        let row = |row: &'l SurvivorRow| {
            LogRecord::from(SurvivorsRecord {
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

impl LeakDetector {
    /// Writes the objects that are alive and were tested by the last collection of the old generation.
    pub(super) fn write_snapshot(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &mut LeakDetectorState,
    ) {
        state.remove_dead_objects(env);
        let now = self.elapsed_time();
        let (listing, head) = self.list_snapshot(state, now, &|_| true);
        // A full log is reported at the end.
        let _ = agent
            .core
            .log
            .append_records(listing.to_records(head.into()));
        listing.mark_origins_written(state);
        state.is_snapshot_written = true;
        state.snapshots.mark_done(now);
    }

    fn list_snapshot(
        &self,
        state: &LeakDetectorState,
        now: Duration,
        is_alive: &dyn Fn(usize) -> bool,
    ) -> (SurvivorListing, SnapshotRecord) {
        let rows = state.objects.survivor_rows(0..state.tested, is_alive);
        let head = SnapshotRecord {
            rows: rows.len() as u32,
            millis: now.as_millis() as u64,
            collections: self.count_collections(),
            old: state.old_collections,
            tested: state.tested,
            sampled: state.sample_count,
            following: state.objects.len() as u64,
            thinned: state.objects.thinning_count(),
            lost: self.dropped_samples.load(Ordering::Relaxed),
        };
        (SurvivorListing::new(state, rows), head)
    }

    /// Writes all objects that are not known to be dead.
    pub(super) fn write_census(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &mut LeakDetectorState,
        cause: (CensusCause, &str),
    ) {
        state.remove_dead_objects(env);
        let now = self.elapsed_time();
        let (listing, head) = self.list_census(state, (cause, now), &|_| true);
        state.last_census = (head.sampled, head.collections);
        // A full log is reported at the end.
        let _ = agent
            .core
            .log
            .append_records(listing.to_records(head.into()));
        listing.mark_origins_written(state);
        state.censuses.mark_done(now);
        state.exhaustions.mark_done(now);
    }

    fn list_census<'c>(
        &self,
        state: &LeakDetectorState,
        ((cause, detail), now): ((CensusCause, &'c str), Duration),
        is_alive: &dyn Fn(usize) -> bool,
    ) -> (SurvivorListing, HeapCensus<'c>) {
        let collections = self.count_collections();
        let (tested, survived) = (state.tested, state.survived.max(state.tested));
        let classes = [0..tested, tested..survived, survived..u64::MAX];
        let rows = |born| state.objects.survivor_rows(born, is_alive);
        let rows: Vec<SurvivorRow> = classes.into_iter().flat_map(rows).collect();
        let whole = self.full_collections.get();
        let head = HeapCensus {
            rows: rows.len() as u32,
            cause,
            detail: detail.into(),
            millis: now.as_millis() as u64,
            collections,
            full: whole.and_then(FullCollections::vm_count),
            survived,
            tested,
            sampled: state.sample_count,
            following: state.objects.len() as u64,
            thinned: state.objects.thinning_count(),
            used_bytes: whole.and_then(FullCollections::used_bytes),
            max_bytes: whole.and_then(FullCollections::max_heap_bytes),
        };
        (SurvivorListing::new(state, rows), head)
    }

    /// Writes a snapshot and a census at the end of a collection of the whole heap. The VM may exit as soon as its threads
    /// continue. Runs in the VM's own thread while all others stand still. So it neither calls the VM nor waits for a thread: if a
    /// lock is held, nothing is written.
    pub(super) fn write_at_pause(&self, agent: CountingParts<'_>, whole: &FullCollections) {
        let Some(mut state) = self.state.try_lock() else {
            return;
        };
        let now = self.elapsed_time();
        let is_unknown = whole.used_bytes().is_none();
        let is_wanted = whole.is_nearly_full() || is_unknown || state.censuses.is_due(now);
        if state.ended || !state.slot_reliability.are_reliable() || !is_wanted {
            return;
        }
        state.set_full_collections(whole.current_count());
        let is_alive = |weak| !is_cleared(weak);
        if state.snapshots.is_due(now) {
            let (listing, head) = self.list_snapshot(&state, now, &is_alive);
            if agent
                .core
                .log
                .try_append_records(listing.to_records(head.into()))
            {
                listing.mark_origins_written(&mut state);
                state.is_snapshot_written = true;
                state.snapshots.mark_done(now);
            }
        }
        let cause = (CensusCause::FullCollection, "");
        let (listing, head) = self.list_census(&state, (cause, now), &is_alive);
        let known = (head.sampled, head.collections);
        if agent
            .core
            .log
            .try_append_records(listing.to_records(head.into()))
        {
            listing.mark_origins_written(&mut state);
            state.last_census = known;
            state.censuses.mark_done(now);
        }
    }
}
