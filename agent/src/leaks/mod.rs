//! `events=leak`: sampled objects are followed until they die.
//!
//! ```text
//! SampledObjectAlloc ─► context, type, weak reference ─► SampledObjectTable          on the allocating thread
//!                    └► check: was the old generation collected since? ─► snapshot, census ─► log
//! GarbageCollectionFinish ─► counts, wakes collection_watcher's thread ─► check      the event allows nothing else
//! ResourceExhausted  ─► check, and a census of the full heap                         on the thread that gets the error
//! VMDeath            ─► last check
//! ```
//! A snapshot contains the objects that a collection of the old generation has left alive. A census contains all objects that
//! are not known to be dead.
//!
//! In hookless mode, the context comes from the VM's stack (`hookless`). Nothing else differs.
//!
//! Ages need no work at collections: a living object has survived all collections since its birth.
//!
//! Lock order: the state's lock, then the log's. Nothing is allocated in the heap under it, because an allocation may be sampled.
//!
//! Read this file first, then `sampled_objects`, `canaries` and `snapshots`. For GC root paths: `object_selection`,
//! `holder_search`, `heap_search`, `chain_runs`. `survival` is the kind `survive`, which shares weak references alone.

pub mod canaries;
pub mod chain_runs;
mod collection_watcher;
mod full_collections;
pub mod heap_search;
pub mod holder_search;
pub mod object_selection;
mod sample_origin;
pub mod sampled_objects;
pub mod snapshots;
pub mod survival;

use std::cell::Cell;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::{jclass, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_instrument::kinds::LEAK;
use lucce_tracelog::CensusCause;

use crate::counting::CountingParts;
use crate::leaks::canaries::{CanaryObject, CanarySet, UnusedReference};
use crate::leaks::collection_watcher::CollectionWatcher;
use crate::leaks::full_collections::FullCollections;
use crate::leaks::object_selection::{SelectionLimits, select_survivors};
use crate::leaks::sample_origin::{
    NotProgramContext, allocation_origin, current_context, stream_sample,
};
use crate::leaks::sampled_objects::{AgedReference, SampledObjectTable};
use crate::leaks::snapshots::{SlotReliability, SnapshotTimes, WriteSchedule};
use crate::memory::counter::increment_counter;
use crate::memory::locks::WatchedMutex;
use crate::thread::coverage::CoverageTracker;
use lucce_jvmti::{JniEnvironment, JvmError, VmHandle};

/// Maximum number of followed objects. With a sampling interval of 512 KB they represent 8 GB.
const MAX_OBJECTS: usize = 1 << 14;
/// Minimum time between two snapshots. The pause also grows with the elapsed time, so a run of a year has hardly more snapshots
/// than a run of a day.
const MIN_PAUSE: Duration = Duration::from_millis(20);
const PAUSE_DIVISOR: u32 = 20;
/// The same for censuses.
const MIN_CENSUS_PAUSE: Duration = Duration::from_secs(1);
const CENSUS_PAUSE_DIVISOR: u32 = 10;

/// Followed objects, and the evidence of collections.
pub struct LeakDetector {
    interval: u32,
    started: Instant,
    collections: AtomicU64,
    dropped_samples: AtomicU64,
    /// Set once the VM is initialized.
    full_collections: OnceLock<FullCollections>,
    watcher: CollectionWatcher,
    state: WatchedMutex<LeakDetectorState>,
}

/// Followed objects of one type and context.
pub struct LiveObjectsOfType {
    /// The type's descriptor.
    pub descriptor: Box<str>,
    pub followed: usize,
    pub alive: usize,
    /// Some of the living objects.
    pub objects: Vec<jobject>,
}

struct LeakDetectorState {
    objects: SampledObjectTable<usize>,
    canaries: CanarySet<usize>,
    sample_count: u64,
    /// Detected collections of the old generation.
    old_collections: u64,
    /// Objects born before this collection were tested by the last of them; whether the log has the snapshot.
    tested: u64,
    is_snapshot_written: bool,
    /// Detected collections of the whole heap.
    full_collection_count: u64,
    /// Objects born before this collection have survived a collection.
    survived: u64,
    /// Number of collections before the last check.
    checked_collections: u64,
    /// When snapshots, censuses and reports of exhaustion may be written next.
    snapshots: WriteSchedule,
    censuses: WriteSchedule,
    exhaustions: WriteSchedule,
    /// Numbers of sampled objects and collections at the last census.
    last_census: (u64, u64),
    /// Whether references may be read without the VM.
    slot_reliability: SlotReliability,
    /// No object is followed any more.
    ended: bool,
}

thread_local! {
    /// The agent creates objects for itself in this thread. They are not followed.
    static IN_OWN_SCOPE: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread follows no objects.
struct OwnAllocationScope;

impl OwnAllocationScope {
    fn enter_scope() -> Option<OwnAllocationScope> {
        (!IN_OWN_SCOPE.replace(true)).then_some(OwnAllocationScope)
    }
}

impl Drop for OwnAllocationScope {
    fn drop(&mut self) {
        IN_OWN_SCOPE.set(false);
    }
}

/// VM events of objects and collections.
pub const EVENTS: [ti::jvmtiEvent; 3] = [
    ti::JVMTI_EVENT_GARBAGE_COLLECTION_FINISH,
    ti::JVMTI_EVENT_RESOURCE_EXHAUSTED,
    ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC,
];

/// Capabilities in addition to the agent's. Only one agent can have them at a time.
pub fn required_capabilities() -> ti::jvmtiCapabilities {
    let mut wanted = ti::jvmtiCapabilities::default();
    wanted.set_can_generate_sampled_object_alloc_events(true);
    wanted.set_can_generate_garbage_collection_events(true);
    wanted.set_can_generate_resource_exhaustion_heap_events(true);
    wanted
}

/// Writes the sampling interval to the log. It must precede the log's `options`: a reader who sees those then knows whether to
/// wait for a first snapshot.
pub fn write_interval(agent: CountingParts<'_>, leaks: &LeakDetector) {
    agent
        .core
        .append_meta("leak.interval", &leaks.interval.to_string());
}

/// Starts following objects. The VM is initialized, and calls `on_sample`, `on_collection` and `on_heap_exhausted`.
///
/// # Errors
/// The VM's error, which is also in the log.
pub fn start_sampling(
    agent: CountingParts<'static>,
    leaks: &'static LeakDetector,
    vm: Option<VmHandle>,
) -> Result<(), JvmError> {
    let jvmti = agent.core.jvmti;
    if let Some(vm) = vm {
        leaks.inspect_vm(agent, vm);
        collection_watcher::start_watcher(agent, leaks, vm);
    }
    let enable = |()| {
        EVENTS
            .into_iter()
            .try_for_each(|event| jvmti.enable_event(event))
    };
    let started = jvmti.set_sampling_interval(leaks.interval).and_then(enable);
    if started.is_err() {
        agent
            .core
            .append_meta("leak.none", "this VM does not sample allocations");
    }
    started
}

impl LeakDetector {
    /// `interval`: mean number of bytes between two sampled objects.
    pub fn new(interval: u32) -> LeakDetector {
        LeakDetector {
            interval,
            started: Instant::now(),
            collections: AtomicU64::new(0),
            dropped_samples: AtomicU64::new(0),
            state: WatchedMutex::new(LeakDetectorState {
                objects: SampledObjectTable::new(MAX_OBJECTS, interval.into()),
                canaries: CanarySet::new(),
                sample_count: 0,
                old_collections: 0,
                tested: 0,
                is_snapshot_written: true,
                full_collection_count: 0,
                survived: 0,
                checked_collections: 0,
                snapshots: WriteSchedule::new(MIN_PAUSE, (MIN_PAUSE, PAUSE_DIVISOR)),
                censuses: WriteSchedule::new(
                    Duration::ZERO,
                    (MIN_CENSUS_PAUSE, CENSUS_PAUSE_DIVISOR),
                ),
                exhaustions: WriteSchedule::new(Duration::ZERO, (MIN_PAUSE, PAUSE_DIVISOR)),
                last_census: (0, 0),
                slot_reliability: SlotReliability::default(),
                ended: false,
            }),
            full_collections: OnceLock::new(),
            watcher: CollectionWatcher::default(),
        }
    }

    /// Reads the VM's counters of collections and its flags.
    fn inspect_vm(&self, agent: CountingParts<'_>, vm: VmHandle) {
        let whole = self
            .full_collections
            .get_or_init(|| FullCollections::from_vm(vm));
        let mut state = self.lock_state();
        state.full_collection_count = whole.current_count().count;
        if let Some(flag) = whole.exit_flag() {
            agent.core.append_meta("leak.exits_by", flag);
            state.slot_reliability.start_comparing();
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, LeakDetectorState> {
        self.state.lock()
    }

    /// Called at the end of a collection, in the VM's own thread, while all other threads stand still.
    pub fn on_collection(&self, agent: CountingParts<'_>) {
        let collections = increment_counter(&self.collections) + 1;
        let whole = self.full_collections.get();
        if let Some(whole) = whole.filter(|whole| whole.record_collection(collections))
            && whole.exit_flag().is_some()
        {
            self.write_at_pause(agent, whole);
        }
        self.watcher.wake_thread();
    }

    fn count_collections(&self) -> u64 {
        self.collections.load(Ordering::Relaxed)
    }

    /// Handles an object of `size` bytes that the current thread has created and that the VM sampled.
    pub fn on_sample(
        &self,
        agent: CountingParts<'static>,
        env: JniEnvironment,
        object: jobject,
        class: jclass,
        size: u64,
    ) {
        if let Some(_busy) = OwnAllocationScope::enter_scope()
            && agent.core.event_mask.is_enabled(LEAK.mask_bit)
            && !env.has_exception()
        {
            self.add_sample(agent, env, object, class, size);
            self.check_heap(agent, env);
        }
    }

    fn add_sample(
        &self,
        agent: CountingParts<'static>,
        env: JniEnvironment,
        object: jobject,
        class: jclass,
        size: u64,
    ) {
        let wanted = {
            let mut state = self.lock_state();
            state.sample_count += 1;
            state.objects.draws_next_object()
        };
        if !wanted {
            return;
        }
        let context = match current_context(agent, env) {
            Ok(context) => context,
            Err(NotProgramContext) => {
                self.lock_state().sample_count -= 1;
                return;
            }
        };
        let place = allocation_origin(agent, context, class);
        if let Some(place) = &place {
            stream_sample(agent, env, place, size);
        }
        let weak = place.is_some().then(|| env.new_weak_global(object));
        if env.has_exception() {
            env.clear_exception();
        }
        match (place, weak.filter(|weak| !weak.is_null())) {
            (Some(place), Some(weak)) => {
                let born = self.count_collections();
                let mut state = self.lock_state();
                if state.ended {
                    env.delete_weak(weak);
                    return;
                }
                if state.objects.is_full() {
                    state.make_room(env);
                }
                state.objects.add_object(place, born, size, weak as usize);
            }
            _ => {
                increment_counter(&self.dropped_samples);
            }
        }
    }

    fn check_heap(&self, agent: CountingParts<'_>, env: JniEnvironment) {
        let wants = {
            let mut state = self.lock_state();
            let wants = self.detect_collections(&mut state, env);
            let now = self.elapsed_time();
            if !state.is_snapshot_written && state.snapshots.is_due(now) {
                self.write_snapshot(agent, env, &mut state);
            }
            if self.is_census_due(&state, now) {
                self.write_census(agent, env, &mut state, (CensusCause::Regular, ""));
            }
            wants
        };
        let pauses = self.cycle_pauses();
        let born = self.count_collections();
        if let Some(made) = wants
            .then(|| make_canary_and_probe(&agent.counters.coverage, env))
            .flatten()
        {
            let mut state = self.lock_state();
            state.canaries.add_canary_and_probe(made, born, pauses);
            // The end of sampling has released the earlier references.
            if state.ended {
                state.release_references(env);
            }
        }
    }

    /// Checks the heap on the agent's own thread: no thread of the program has done so since a collection.
    pub fn check_heap_in_background(&self, agent: CountingParts<'_>, env: JniEnvironment) {
        if let Some(_busy) = OwnAllocationScope::enter_scope()
            && !self.lock_state().ended
        {
            self.check_heap(agent, env);
        }
    }

    /// Whether a check may find something new.
    fn is_check_due(&self) -> bool {
        let (state, now) = (self.lock_state(), self.elapsed_time());
        let collections = self.count_collections();
        let snapshot = !state.is_snapshot_written && state.snapshots.is_due(now);
        let census = self.is_census_due(&state, now);
        !state.ended && (state.checked_collections != collections || snapshot || census)
    }

    /// If the VM exits without notice when its heap is exhausted, any census may be the last one.
    fn is_census_due(&self, state: &LeakDetectorState, now: Duration) -> bool {
        let ends = |whole: &FullCollections| whole.exit_flag().is_some() && whole.is_nearly_full();
        let is_due = state.censuses.is_due(now)
            || state.exhaustions.is_due(now) && self.full_collections.get().is_some_and(ends);
        is_due && state.has_unwritten(self.count_collections())
    }

    /// Writes a snapshot and a census now, after a collection of the whole heap if `collects`. Returns their times.
    ///
    /// # Errors
    /// The VM refuses to collect.
    pub fn write_live_objects(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        collects: bool,
    ) -> Result<SnapshotTimes, JvmError> {
        let _busy = OwnAllocationScope::enter_scope();
        let (began, before) = (Instant::now(), self.count_collections());
        let old = self.lock_state().old_collections;
        if collects {
            agent.core.jvmti.collect_heap()?;
        }
        let collection = collects.then(|| began.elapsed());
        self.check_heap(agent, env);
        let mut state = self.lock_state();
        if collects {
            // The VM may not count the collection, and no canary may be old enough.
            let old = state.old_collections.max(old + 1);
            state.set_tested(before + 1, old);
        }
        if !state.ended {
            if !state.is_snapshot_written {
                self.write_snapshot(agent, env, &mut state);
            }
            self.write_census(agent, env, &mut state, (CensusCause::Regular, ""));
        }
        Ok(SnapshotTimes {
            now: self.elapsed_time(),
            collection,
        })
    }

    /// Bytes in use after the last collection, and the maximum size of the heap in bytes.
    pub fn heap_bytes(&self) -> (Option<u64>, Option<u64>) {
        let whole = self.full_collections.get();
        (
            whole.and_then(FullCollections::used_bytes),
            whole.and_then(FullCollections::max_heap_bytes),
        )
    }

    /// Handles exhaustion of the heap, in the thread that gets the error. The VM has just collected everything. Must not allocate in
    /// the heap.
    pub fn on_heap_exhausted(&self, agent: CountingParts<'_>, env: JniEnvironment, what: &str) {
        let _busy = OwnAllocationScope::enter_scope();
        let mut state = self.lock_state();
        let now = self.elapsed_time();
        if state.ended || !state.exhaustions.is_due(now) {
            return;
        }
        state.exhaustions.mark_done(now);
        self.detect_collections(&mut state, env);
        if !state.is_snapshot_written {
            self.write_snapshot(agent, env, &mut state);
        }
        let cause = (CensusCause::HeapExhausted, what);
        self.write_census(agent, env, &mut state, cause);
    }

    /// Detects collections. `true`: a new canary and a new probe are needed.
    fn detect_collections(&self, state: &mut LeakDetectorState, env: JniEnvironment) -> bool {
        state.checked_collections = self.count_collections();
        let whole = self.full_collections.get();
        if let Some(whole) = whole {
            state.set_full_collections(whole.current_count());
        }
        let pauses = || whole.and_then(FullCollections::cycle_pauses);
        let LeakDetectorState {
            canaries,
            slot_reliability: slots,
            ..
        } = state;
        let look =
            canaries.check_collections(liveness_check(env, slots), reference_releaser(env), pauses);
        if let Some(tested) = look.tested.filter(|tested| *tested > state.tested) {
            let old = state.old_collections + 1;
            state.set_tested(tested, old);
        }
        state.survived = state.survived.max(look.survived.unwrap_or(0));
        look.needs_objects
    }

    fn cycle_pauses(&self) -> Option<lucce_jvmti::gc_counters::CyclePauses> {
        self.full_collections
            .get()
            .and_then(FullCollections::cycle_pauses)
    }

    /// Time since objects are followed.
    fn elapsed_time(&self) -> Duration {
        self.started.elapsed()
    }

    /// Followed objects of some contexts, by type or of one type: their numbers, and local references to some living ones. The type
    /// with most living objects comes first.
    pub fn select_objects(
        &self,
        env: JniEnvironment,
        (contexts, of): (&[ContextId], Option<&str>),
        most: SelectionLimits,
    ) -> Vec<LiveObjectsOfType> {
        let collections = self.count_collections();
        // Under the lock no reference is deleted.
        let state = self.lock_state();
        let by_type = state.objects.find_by_contexts(contexts, of).into_iter();
        let mut by_type: Vec<_> = by_type
            .map(|of_type| {
                let followed = of_type.objects.len();
                (
                    of_type.descriptor,
                    followed,
                    retain_alive(env, of_type.objects),
                )
            })
            .collect();
        by_type.sort_by_key(|(_, _, living)| Reverse(living.len()));
        let numbers: Vec<_> = by_type.iter().map(|(_, _, living)| living.len()).collect();
        let shares = most.share_evenly(&numbers).into_iter();
        let alive = |((of, followed, living), share): ((_, _, Vec<_>), _)| {
            let some = select_survivors(&living, share, (state.tested, collections)).into_iter();
            let objects = some.map(|weak| env.new_local(weak as jobject));
            LiveObjectsOfType {
                descriptor: of,
                followed,
                alive: living.len(),
                objects: objects.filter(|object| !object.is_null()).collect(),
            }
        };
        by_type.into_iter().zip(shares).map(alive).collect()
    }

    /// The number of sampled objects.
    pub fn count_samples(&self) -> u64 {
        self.lock_state().sample_count
    }

    /// Like `finish_sampling`, and deletes all references: the agent leaves the VM.
    pub fn finish_and_release(&self, agent: CountingParts<'_>, env: JniEnvironment) {
        self.finish_sampling(agent, env);
        let mut state = self.lock_state();
        state.release_references(env);
    }

    /// Writes the last snapshot and census when the VM ends.
    pub fn finish_sampling(&self, agent: CountingParts<'_>, env: JniEnvironment) {
        // If this fails, further samples arrive and are ignored.
        let _ = agent
            .core
            .jvmti
            .disable_event(ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
        self.watcher.request_end();
        let _busy = OwnAllocationScope::enter_scope();
        let mut state = self.lock_state();
        self.detect_collections(&mut state, env);
        if !state.is_snapshot_written {
            self.write_snapshot(agent, env, &mut state);
        }
        if state.sample_count > 0 {
            self.write_census(agent, env, &mut state, (CensusCause::Regular, ""));
        }
        state.ended = true;
        for (key, value) in [
            ("leak.sampled", state.sample_count),
            ("leak.following", state.objects.len() as u64),
            ("leak.thinned", state.objects.thinning_count().into()),
            ("leak.lost", self.dropped_samples.load(Ordering::Relaxed)),
            ("leak.collections", self.count_collections()),
            ("leak.old_collections", state.old_collections),
        ] {
            agent.core.append_stat(key, value);
        }
    }
}

impl LeakDetectorState {
    /// Sets that objects born before collection `tested` have survived one of `old` collections of the old generation.
    fn set_tested(&mut self, tested: u64, old: u64) {
        self.old_collections = old;
        self.is_snapshot_written = self.is_snapshot_written && tested <= self.tested;
        self.tested = self.tested.max(tested);
        self.survived = self.survived.max(tested);
    }

    fn set_full_collections(&mut self, whole: full_collections::FullCollectionCount) {
        if whole.count > self.full_collection_count && whole.last > 0 {
            let old = self.old_collections + (whole.count - self.full_collection_count);
            self.full_collection_count = whole.count;
            self.set_tested(whole.last, old);
        }
    }

    /// Whether something has changed since the last census; `collections`: the present number.
    fn has_unwritten(&self, collections: u64) -> bool {
        self.last_census != (self.sample_count, collections)
    }

    /// Deletes all references.
    fn release_references(&mut self, env: JniEnvironment) {
        let free = |weak| env.delete_weak(weak as jobject);
        self.objects.remove_dead_objects(|_| false, free);
        self.canaries.release_all(&reference_releaser(env));
    }

    fn remove_dead_objects(&mut self, env: JniEnvironment) {
        let free = |weak| env.delete_weak(weak as jobject);
        self.objects
            .remove_dead_objects(liveness_check(env, &self.slot_reliability), free);
    }

    fn make_room(&mut self, env: JniEnvironment) {
        self.remove_dead_objects(env);
        self.objects
            .thin_out(|weak| env.delete_weak(weak as jobject));
    }
}

fn reference_releaser(env: JniEnvironment) -> impl Fn(UnusedReference<usize>) {
    move |freed| match freed {
        UnusedReference::Weak(weak) => env.delete_weak(weak as jobject),
        UnusedReference::Strong(strong) => env.delete_global(strong as jobject),
    }
}

fn retain_alive(
    env: JniEnvironment,
    mut objects: Vec<AgedReference<usize>>,
) -> Vec<AgedReference<usize>> {
    objects.retain(|object| !env.is_cleared(object.reference as jobject));
    objects
}

fn liveness_check(env: JniEnvironment, slots: &SlotReliability) -> impl Fn(usize) -> bool {
    move |weak| {
        let is_gone = env.is_cleared(weak as jobject);
        slots.compare_slot(weak, is_gone);
        !is_gone
    }
}

/// A canary and a probe.
type CanaryAndProbe = (CanaryObject<usize>, usize);

fn make_canary_and_probe(
    coverage: &CoverageTracker,
    env: JniEnvironment,
) -> Option<CanaryAndProbe> {
    let canary = coverage.exclude_allocations(env, || env.new_bytes(0))?;
    let (strong, weak) = (env.new_global(canary), env.new_weak_global(canary));
    env.delete_local(canary);
    let probe = coverage.exclude_allocations(env, || env.new_bytes(0))?;
    let weak_probe = env.new_weak_global(probe);
    env.delete_local(probe);
    let canary = CanaryObject {
        strong: strong as usize,
        weak: weak as usize,
    };
    let are_created = [strong, weak, weak_probe]
        .iter()
        .all(|are_created| !are_created.is_null());
    if env.has_exception() {
        env.clear_exception();
    }
    are_created.then_some((canary, weak_probe as usize))
}
