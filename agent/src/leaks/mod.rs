//! `events=leak`: sampled objects are followed until they die.
//!
//! ```text
//! SampledObjectAlloc ─► context, type, weak reference ─► followed (a table)   on the allocating thread
//!                    └► look: was the old generation collected since? ─► snapshot, census ─► log
//! GarbageCollectionFinish ─► one more collection ─► watcher, its thread ─► look    nothing else is allowed
//! ResourceExhausted  ─► a look, and a census of what fills the heap           on the thread that gets the error
//! VMDeath            ─► a last look
//! ```
//! A snapshot has what a collection of the old generation has left alive; a census has everything that is not known to
//! be dead.
//!
//! Without hooks, in a JVM that ran before the agent came, the context is what the VM's stack says (`walked`);
//! nothing else differs.
//!
//! Ages need no work at collections: an object that is alive has survived all collections since its birth.
//!
//! Lock: the state's, taken before the log's. Nothing is allocated in the heap under it, because an
//! allocation may be sampled.

pub mod canaries;
pub mod chain_runs;
mod collection_watcher;
mod full_collections;
pub mod heap_search;
pub mod holder_search;
pub mod object_selection;
pub mod sampled_objects;
pub mod snapshots;

use std::cell::Cell;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::{jclass, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_tracelog::CensusCause;

use crate::counting::AgentCounting;
use crate::counting::stream;
use crate::hookless::call_context;
use crate::leaks::canaries::{CanaryObject, CanarySet, UnusedReference};
use crate::leaks::collection_watcher::CollectionWatcher;
use crate::leaks::full_collections::FullCollections;
use crate::leaks::object_selection::{SelectionLimits, select_survivors};
use crate::leaks::sampled_objects::{AgedReference, AllocationOrigin, SampledObjectTable};
use crate::leaks::snapshots::{SlotReliability, SnapshotTimes, WriteSchedule};
use crate::memory::counter::increment_counter;
use crate::memory::event_mask;
use crate::memory::locks::WatchedMutex;
use crate::stack::current_location;
use crate::stack::current_location::AllocationPlace;
use crate::stack::{contexts, verify};
use crate::thread::coverage::CoverageTracker;
use crate::thread::lifecycle::current_state;
use lucce_jvmti::{JniEnvironment, JvmError, VmHandle};

/// Objects that are followed at a time. At 512 KB from one to the next they stand for 8 GB.
const MAX_OBJECTS: usize = 1 << 14;
/// Snapshots are at least as far apart, and a part of the time that has passed: a run of a year has
/// hardly more than one of a day.
const MIN_PAUSE: Duration = Duration::from_millis(20);
const PAUSE_DIVISOR: u32 = 20;
/// The same of censuses.
const MIN_CENSUS_PAUSE: Duration = Duration::from_secs(1);
const CENSUS_PAUSE_DIVISOR: u32 = 10;
/// The kind of events in a stream.
const LEAK: &str = "leak";

pub struct LeakDetector {
    interval: u32,
    started: Instant,
    collections: AtomicU64,
    dropped_samples: AtomicU64,
    /// Once the VM is initialised.
    full_collections: OnceLock<FullCollections>,
    watcher: CollectionWatcher,
    state: WatchedMutex<LeakDetectorState>,
}

/// Objects of one type that were made in a context and are followed.
pub struct LiveObjectsOfType {
    /// A descriptor.
    pub descriptor: Box<str>,
    pub followed: usize,
    pub alive: usize,
    /// Some of the living.
    pub objects: Vec<jobject>,
}

struct LeakDetectorState {
    objects: SampledObjectTable<usize>,
    canaries: CanarySet<usize>,
    sample_count: u64,
    /// Collections of the old generation that were noticed.
    old_collections: u64,
    /// What the last of them tested, and whether the log says so.
    tested: u64,
    is_snapshot_written: bool,
    /// Collections of the whole heap that were noticed.
    full_collection_count: u64,
    /// Objects born before this collection have survived one.
    survived: u64,
    /// Collections before the last look.
    checked_collections: u64,
    /// When what is written next.
    snapshots: WriteSchedule,
    censuses: WriteSchedule,
    exhaustions: WriteSchedule,
    /// Sampled objects and collections of which the last census knows.
    last_census: (u64, u64),
    /// Whether references may be read without the VM.
    slot_reliability: SlotReliability,
    /// Nothing is followed any more.
    ended: bool,
}

thread_local! {
    /// Objects that are made here for ourselves are not followed.
    static IN_OWN_SCOPE: Cell<bool> = const { Cell::new(false) };
}

/// Until it is dropped, this thread follows nothing.
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

/// Objects, and collections.
pub const EVENTS: [ti::jvmtiEvent; 3] = [
    ti::JVMTI_EVENT_GARBAGE_COLLECTION_FINISH,
    ti::JVMTI_EVENT_RESOURCE_EXHAUSTED,
    ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC,
];

/// What is needed beside the agent's capabilities; one agent at a time can have it.
pub fn required_capabilities() -> ti::jvmtiCapabilities {
    let mut wanted = ti::jvmtiCapabilities::default();
    wanted.set_can_generate_sampled_object_alloc_events(true);
    wanted.set_can_generate_garbage_collection_events(true);
    wanted.set_can_generate_resource_exhaustion_heap_events(true);
    wanted
}

/// Says in the log that objects will be followed. This comes before the log's `options`, so a reader who
/// sees those knows whether to wait for a first snapshot.
pub fn write_interval(counting: &AgentCounting, leaks: &LeakDetector) {
    counting.append_meta("leak.interval", &leaks.interval.to_string());
}

/// The VM is initialised, and calls `sampled`, `collected` and `exhausted`: from now on objects are followed.
///
/// # Errors
/// The VM's; the log says so, too.
pub fn start_sampling(
    counting: &'static AgentCounting,
    leaks: &'static LeakDetector,
    vm: Option<VmHandle>,
) -> Result<(), JvmError> {
    let jvmti = counting.jvmti;
    if let Some(vm) = vm {
        leaks.inspect_vm(counting, vm);
        collection_watcher::start_watcher(counting, leaks, vm);
    }
    let enable = |()| {
        EVENTS
            .into_iter()
            .try_for_each(|event| jvmti.enable_event(event))
    };
    let started = jvmti.set_sampling_interval(leaks.interval).and_then(enable);
    if started.is_err() {
        counting.append_meta("leak.none", "this VM does not sample allocations");
    }
    started
}

impl LeakDetector {
    /// `interval`: bytes from one sampled object to the next, on average.
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

    /// What the VM counts, and how it ends.
    fn inspect_vm(&self, counting: &AgentCounting, vm: VmHandle) {
        let whole = self
            .full_collections
            .get_or_init(|| FullCollections::from_vm(vm));
        let mut state = self.lock_state();
        state.full_collection_count = whole.current_count().count;
        if let Some(flag) = whole.exit_flag() {
            counting.append_meta("leak.exits_by", flag);
            state.slot_reliability.start_comparing();
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, LeakDetectorState> {
        self.state.lock()
    }

    /// In the VM's own thread, while all others stand still.
    pub fn on_collection(&self, counting: &AgentCounting) {
        let collections = increment_counter(&self.collections) + 1;
        let whole = self.full_collections.get();
        if let Some(whole) = whole.filter(|whole| whole.record_collection(collections))
            && whole.exit_flag().is_some()
        {
            self.write_at_pause(counting, whole);
        }
        self.watcher.wake_thread();
    }

    fn count_collections(&self) -> u64 {
        self.collections.load(Ordering::Relaxed)
    }

    /// The current thread has made `object`, of `size` bytes, and the VM took it as a sample.
    pub fn on_sample(
        &self,
        counting: &'static AgentCounting,
        env: JniEnvironment,
        object: jobject,
        class: jclass,
        size: u64,
    ) {
        if let Some(_busy) = OwnAllocationScope::enter_scope()
            && counting.event_mask.is_enabled(event_mask::LEAK)
            && !env.has_exception()
        {
            self.add_sample(counting, env, object, class, size);
            self.check_heap(counting, env);
        }
    }

    fn add_sample(
        &self,
        counting: &'static AgentCounting,
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
        let context = match current_context(counting, env) {
            Ok(context) => context,
            Err(NotProgramContext) => {
                self.lock_state().sample_count -= 1;
                return;
            }
        };
        let place = allocation_origin(counting, context, class);
        if let Some(place) = &place {
            stream_sample(counting, env, place, size);
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

    fn check_heap(&self, counting: &AgentCounting, env: JniEnvironment) {
        let wants = {
            let mut state = self.lock_state();
            let wants = self.detect_collections(&mut state, env);
            let now = self.elapsed_time();
            if !state.is_snapshot_written && state.snapshots.is_due(now) {
                self.write_snapshot(counting, env, &mut state);
            }
            if self.is_census_due(&state, now) {
                self.write_census(counting, env, &mut state, (CensusCause::Regular, ""));
            }
            wants
        };
        let pauses = self.cycle_pauses();
        let born = self.count_collections();
        if let Some(made) = wants
            .then(|| make_canary_and_probe(&counting.coverage, env))
            .flatten()
        {
            let mut state = self.lock_state();
            state.canaries.add_canary_and_probe(made, born, pauses);
            // The end has let go of the references that were there.
            if state.ended {
                state.release_references(env);
            }
        }
    }

    /// A thread of the agent's own looks: no thread of the program has done so since a collection.
    pub fn check_heap_in_background(&self, counting: &AgentCounting, env: JniEnvironment) {
        if let Some(_busy) = OwnAllocationScope::enter_scope()
            && !self.lock_state().ended
        {
            self.check_heap(counting, env);
        }
    }

    /// Whether there is something to look for.
    fn is_check_due(&self) -> bool {
        let (state, now) = (self.lock_state(), self.elapsed_time());
        let collections = self.count_collections();
        let snapshot = !state.is_snapshot_written && state.snapshots.is_due(now);
        let census = self.is_census_due(&state, now);
        !state.ended && (state.checked_collections != collections || snapshot || census)
    }

    /// Where the VM ends without a word as soon as its heap is exhausted, a census may be the last one.
    fn is_census_due(&self, state: &LeakDetectorState, now: Duration) -> bool {
        let ends = |whole: &FullCollections| whole.exit_flag().is_some() && whole.is_nearly_full();
        let is_due = state.censuses.is_due(now)
            || state.exhaustions.is_due(now) && self.full_collections.get().is_some_and(ends);
        is_due && state.has_unwritten(self.count_collections())
    }

    /// Writes what lives now, whenever that was done last, behind a collection of the whole heap if it is asked for.
    /// Returns when what was written was taken.
    ///
    /// # Errors
    /// The VM does not collect.
    pub fn write_live_objects(
        &self,
        counting: &AgentCounting,
        env: JniEnvironment,
        collects: bool,
    ) -> Result<SnapshotTimes, JvmError> {
        let _busy = OwnAllocationScope::enter_scope();
        let (began, before) = (Instant::now(), self.count_collections());
        let old = self.lock_state().old_collections;
        if collects {
            counting.jvmti.collect_heap()?;
        }
        let collection = collects.then(|| began.elapsed());
        self.check_heap(counting, env);
        let mut state = self.lock_state();
        if collects {
            // The VM may not count it, and no canary may be old enough.
            let old = state.old_collections.max(old + 1);
            state.set_tested(before + 1, old);
        }
        if !state.ended {
            if !state.is_snapshot_written {
                self.write_snapshot(counting, env, &mut state);
            }
            self.write_census(counting, env, &mut state, (CensusCause::Regular, ""));
        }
        Ok(SnapshotTimes {
            now: self.elapsed_time(),
            collection,
        })
    }

    /// Bytes of the heap in use after the last collection, and its largest size.
    pub fn heap_bytes(&self) -> (Option<u64>, Option<u64>) {
        let whole = self.full_collections.get();
        (
            whole.and_then(FullCollections::used_bytes),
            whole.and_then(FullCollections::max_heap_bytes),
        )
    }

    /// The VM says that the heap is exhausted, in the thread that gets the error, which has just collected everything.
    /// Nothing is made in the heap here.
    pub fn on_heap_exhausted(&self, counting: &AgentCounting, env: JniEnvironment, what: &str) {
        let _busy = OwnAllocationScope::enter_scope();
        let mut state = self.lock_state();
        let now = self.elapsed_time();
        if state.ended || !state.exhaustions.is_due(now) {
            return;
        }
        state.exhaustions.mark_done(now);
        self.detect_collections(&mut state, env);
        if !state.is_snapshot_written {
            self.write_snapshot(counting, env, &mut state);
        }
        let cause = (CensusCause::HeapExhausted, what);
        self.write_census(counting, env, &mut state, cause);
    }

    /// Notices collections. `true`: a new canary and a new probe are wanted.
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

    /// Since objects are followed.
    fn elapsed_time(&self) -> Duration {
        self.started.elapsed()
    }

    /// How many objects of some contexts are followed, of each type or of one, and some living ones among them: references of the
    /// current thread's own. The type with most living ones comes first.
    pub fn select_objects(
        &self,
        env: JniEnvironment,
        (contexts, of): (&[ContextId], Option<&str>),
        most: SelectionLimits,
    ) -> Vec<LiveObjectsOfType> {
        let collections = self.count_collections();
        // No reference is given back meanwhile.
        let state = self.lock_state();
        let found = state.objects.find_by_contexts(contexts, of).into_iter();
        let mut found: Vec<_> = found
            .map(|of_type| {
                let followed = of_type.objects.len();
                (
                    of_type.descriptor,
                    followed,
                    retain_alive(env, of_type.objects),
                )
            })
            .collect();
        found.sort_by_key(|(_, _, living)| Reverse(living.len()));
        let numbers: Vec<_> = found.iter().map(|(_, _, living)| living.len()).collect();
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
        found.into_iter().zip(shares).map(alive).collect()
    }

    /// How many objects were sampled.
    pub fn count_samples(&self) -> u64 {
        self.lock_state().sample_count
    }

    /// The agent leaves the VM: as `finish`, and no object is referred to any more.
    pub fn finish_and_release(&self, counting: &AgentCounting, env: JniEnvironment) {
        self.finish_sampling(counting, env);
        let mut state = self.lock_state();
        state.release_references(env);
    }

    /// The VM ends: what was not written yet.
    pub fn finish_sampling(&self, counting: &AgentCounting, env: JniEnvironment) {
        // On failure they come and are not looked at.
        let _ = counting
            .jvmti
            .disable_event(ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
        self.watcher.request_end();
        let _busy = OwnAllocationScope::enter_scope();
        let mut state = self.lock_state();
        self.detect_collections(&mut state, env);
        if !state.is_snapshot_written {
            self.write_snapshot(counting, env, &mut state);
        }
        if state.sample_count > 0 {
            self.write_census(counting, env, &mut state, (CensusCause::Regular, ""));
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
            counting.append_stat(key, value);
        }
    }
}

impl LeakDetectorState {
    /// What was born before collection `tested` has survived a collection of the old generation, of which there were `old`.
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

    /// Whether there is more to write than the last census has; `collections`: until now.
    fn has_unwritten(&self, collections: u64) -> bool {
        self.last_census != (self.sample_count, collections)
    }

    /// Of all references.
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

/// The current thread's context. `Err`: what the slow paths of hooks make is not the program's, nor what the VM makes for itself,
/// where no frame is shown.
fn current_context(
    counting: &'static AgentCounting,
    env: JniEnvironment,
) -> Result<Option<ContextId>, NotProgramContext> {
    if counting.is_hookless() {
        return match call_context::find_shown_number(counting, env, 0) {
            Some(Some(number)) => Ok(Some(number)),
            Some(None) => Err(NotProgramContext),
            None => Ok(None),
        };
    }
    let own = current_state(counting, env);
    let Some(state) = own.get() else {
        let has_frames = counting.jvmti.frame_location(0).is_some();
        return has_frames.then_some(None).ok_or(NotProgramContext);
    };
    match current_location::locate_allocation(counting, env, state) {
        AllocationPlace::Ours | AllocationPlace::Nowhere => Err(NotProgramContext),
        AllocationPlace::Unknown => Ok(None),
        AllocationPlace::Here(here) => {
            let number = contexts::event_number(counting, state, here);
            if state.countdown.count_event(counting.options.verify) {
                verify::compare_number(counting, env, number, 0);
            }
            Ok(Some(number))
        }
    }
}

struct NotProgramContext;

fn allocation_origin(
    counting: &AgentCounting,
    context: Option<ContextId>,
    class: jclass,
) -> Option<AllocationOrigin> {
    let context = context?;
    let of = counting.jvmti.class_signature(class)?;
    (context != ContextId::UNKNOWN).then(|| AllocationOrigin {
        context,
        descriptor: of.into(),
    })
}

/// With `record=stream` a followed object is an event of its own.
fn stream_sample(
    counting: &AgentCounting,
    env: JniEnvironment,
    place: &AllocationOrigin,
    size: u64,
) {
    if counting.streamer.is_none() {
        return;
    }
    let event = counting.find_or_add_event_type(LEAK, "bytes", &place.descriptor);
    let own = current_state(counting, env);
    if let (Some(event), Some(state)) = (event, own.get()) {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        stream::record_event(counting, env, state, (event, place.context), size);
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
    let made = [strong, weak, weak_probe]
        .iter()
        .all(|made| !made.is_null());
    if env.has_exception() {
        env.clear_exception();
    }
    made.then_some((canary, weak_probe as usize))
}
