//! `events=survive`: how many young collections the samples of `events=heap` live through.
//!
//! ```text
//! SampledObjectAlloc      ─► weak reference, counters of the context ─► FollowedSample   on the allocating thread
//! GarbageCollectionFinish ─► which references are cleared, the VM's own counts ─► counters   all threads stand still
//! ```
//! The age of a sample is the number of young collections since it was followed. The VM counts young collections, those of
//! the whole heap, and the tenuring threshold. At a young collection the VM moves an object to the old generation if its age
//! has reached the threshold. A collection of the whole heap moves all that live. G1 puts objects of more than half a region
//! there at once. So a sample that is old by these rules is old; objects that the VM moves early are found later.
//!
//! References are read without the VM, which may not be called at a collection. Serial, Parallel and G1 have cleared them
//! by then. Other collectors clear them while threads run: for them nothing is counted, and the log says so.
//!
//! No function of the VM is called under the lock, so a holder that runs soon releases it.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{MutexGuard, OnceLock};

use jvmti_bindings::sys::jni::jobject;
use jvmti_bindings::sys::jvmti as ti;
use lucce_instrument::kinds::{
    BYTES, DIED_YOUNG, NO_SURVIVAL, OLD_OBJECTS, SURVIVED_COLLECTIONS, SURVIVORS,
    TENURING_THRESHOLD, UNFOLLOWED_SAMPLES, YOUNG_COLLECTIONS,
};
use lucce_jvmti::gc_counters::GcCounters;
use lucce_jvmti::{JniEnvironment, JvmError, VmHandle, flags};
use lucce_tracelog::EventCounter;

use crate::counting::CountingParts;
use crate::events::samples::CountedSample;
use crate::leaks::snapshots::is_cleared;
use crate::memory::counter::increment_counter;
use crate::memory::locks::WatchedMutex;
use crate::thread::counter_access::{current_counters, event_counter};
use crate::thread::lifecycle::state_of;

/// Maximum number of followed samples. With a sampling interval of 512 KB they represent 8 GB between two collections.
const MAX_SAMPLES: usize = 1 << 14;
/// Attempts to get the lock at a collection.
const LOCK_ATTEMPTS: u32 = 10_000;
/// The VM's largest age of an object, which has four bits. A larger threshold is never reached.
const MAX_AGE: u64 = 15;
/// The number of young collections after which a sample has been through all counted ones.
const LAST_SURVIVED: u64 = SURVIVED_COLLECTIONS[SURVIVED_COLLECTIONS.len() - 1];

/// The followed samples, and the VM's counts of collections.
#[derive(Default)]
pub struct SurvivalTracker {
    /// Set once the VM is initialized, if its collector can be followed.
    vm: OnceLock<VmCollections>,
    state: WatchedMutex<SurvivalState>,
    /// Samples for which there was no room.
    dropped: AtomicU64,
    /// Collections at which the lock was held.
    missed: AtomicU64,
    /// References were not as the VM says.
    is_unreliable: AtomicBool,
}

struct VmCollections {
    counters: GcCounters,
    /// Larger objects are old from the beginning.
    humongous_bytes: Option<u64>,
}

/// The VM's counts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct CollectionCounts {
    young: u64,
    full: u64,
    /// The age that the next young collection moves to the old generation.
    threshold: u64,
}

/// The counters of a context and a type.
#[derive(Clone, Copy)]
struct SurvivalCounters {
    old: &'static EventCounter,
    died: &'static EventCounter,
    survived: [&'static EventCounter; SURVIVED_COLLECTIONS.len()],
}

struct FollowedSample {
    weak: usize,
    /// Number of young collections before it was followed.
    born: u64,
    is_old: bool,
    /// The objects that it represents, and their bytes.
    objects: u64,
    bytes: u64,
    counters: SurvivalCounters,
}

/// A reference to be deleted.
struct UnusedWeak {
    weak: usize,
    was_cleared: bool,
}

#[derive(Default)]
struct SurvivalState {
    samples: Vec<FollowedSample>,
    /// Has room for all samples, so that a collection allocates nothing.
    unused: Vec<UnusedWeak>,
    /// The counts at the last seen collection.
    seen: CollectionCounts,
    has_ended: bool,
}

/// Starts following samples. The VM is initialized and samples allocations.
///
/// # Errors
/// The VM's error.
pub fn start_following(
    agent: CountingParts<'_>,
    survival: &SurvivalTracker,
    vm: VmHandle,
) -> Result<(), JvmError> {
    let counters = GcCounters::find_in(vm.as_raw());
    if counters.young_collections().is_none() {
        let why = "only young collections of G1, Parallel and Serial are known to the agent, and not with -XX:-UsePerfData";
        agent.core.append_meta(NO_SURVIVAL, why);
        return Ok(());
    }
    let known = VmCollections {
        counters,
        humongous_bytes: flags::humongous_bytes(vm.as_raw()),
    };
    let counts = known.read_counts();
    let threshold = counts.threshold.to_string();
    agent.core.append_meta(TENURING_THRESHOLD, &threshold);
    survival.state.lock().seen = counts;
    let _ = survival.vm.set(known);
    let jvmti = agent.core.jvmti;
    jvmti.enable_event(ti::JVMTI_EVENT_GARBAGE_COLLECTION_FINISH)
}

impl VmCollections {
    fn read_counts(&self) -> CollectionCounts {
        CollectionCounts {
            young: self.counters.young_collections().unwrap_or(0),
            full: self.counters.full_collections().unwrap_or(0),
            threshold: self.counters.tenuring_threshold().unwrap_or(u64::MAX),
        }
    }
}

impl SurvivalTracker {
    /// Follows an object that the thread has created and that was counted as a sample.
    pub fn follow_sample(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        (thread, object): (jobject, jobject),
        sample: &CountedSample,
    ) {
        let Some(vm) = self.vm.get().filter(|_| self.is_following()) else {
            return;
        };
        self.delete_unused(agent, env);
        if self.state.lock().samples.len() >= MAX_SAMPLES {
            increment_counter(&self.dropped);
            return;
        }
        let counters = find_counters(agent, env, thread, sample);
        let weak = counters.is_some().then(|| env.new_weak_global(object));
        if env.has_exception() {
            env.clear_exception();
        }
        let (Some(counters), Some(weak)) = (counters, weak.filter(|weak| !weak.is_null())) else {
            increment_counter(&self.dropped);
            return;
        };
        let is_old = vm.humongous_bytes.is_some_and(|most| sample.size > most);
        let mut state = self.state.lock();
        let followed = FollowedSample {
            weak: weak as usize,
            // A collection that runs now has already been counted.
            born: vm.read_counts().young,
            is_old,
            objects: sample.objects,
            bytes: sample.objects.saturating_mul(sample.size),
            counters,
        };
        state.add_sample(followed);
    }

    fn is_following(&self) -> bool {
        // Relaxed: no other data depends on it.
        !self.is_unreliable.load(Ordering::Relaxed)
    }

    /// Called at the end of a collection, in the VM's own thread, while all other threads stand still.
    pub fn on_collection(&self) {
        let Some(vm) = self.vm.get().filter(|_| self.is_following()) else {
            return;
        };
        match self.lock_at_pause() {
            Some(mut state) => state.note_collection(vm.read_counts(), |weak| !is_cleared(weak)),
            None => {
                increment_counter(&self.missed);
            }
        }
    }

    /// The VM's thread must not wait for long.
    fn lock_at_pause(&self) -> Option<MutexGuard<'_, SurvivalState>> {
        (0..LOCK_ATTEMPTS).find_map(|_| {
            let guard = self.state.try_lock();
            if guard.is_none() {
                std::hint::spin_loop();
            }
            guard
        })
    }

    /// Deletes references, and compares what was read with the VM's answers.
    fn delete_unused(&self, agent: CountingParts<'_>, env: JniEnvironment) {
        let unused = self.state.lock().take_unused();
        for unused in unused {
            let weak = unused.weak as jobject;
            if unused.was_cleared
                && !env.is_cleared(weak)
                && !self.is_unreliable.swap(true, Ordering::Relaxed)
            {
                let why = "this VM's weak references cannot be read at a collection";
                agent.core.append_meta(NO_SURVIVAL, why);
            }
            env.delete_weak(weak);
        }
    }

    /// Writes the numbers of the whole run, when the VM ends.
    pub fn finish_following(&self, agent: CountingParts<'_>) {
        let Some(vm) = self.vm.get() else {
            return;
        };
        self.state.lock().has_ended = true;
        agent
            .core
            .append_stat(YOUNG_COLLECTIONS, vm.read_counts().young);
        let unfollowed = [&self.dropped, &self.missed];
        for (key, count) in UNFOLLOWED_SAMPLES.iter().zip(unfollowed) {
            agent.core.append_stat(key, count.load(Ordering::Relaxed));
        }
    }
}

/// The counters of the sample's context and type. `None`: the log is full.
fn find_counters(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    thread: jobject,
    sample: &CountedSample,
) -> Option<SurvivalCounters> {
    let own = state_of(agent.thread_parts(), env, thread);
    let state = own.get()?;
    let type_of = |kind: &str| agent.find_or_add_event_type(kind, BYTES, &sample.descriptor);
    let types = [&OLD_OBJECTS, &DIED_YOUNG].map(|kind| type_of(kind.name));
    let survivors = SURVIVORS.each_ref().map(|kind| type_of(kind.name));
    let mut counters = current_counters(agent.thread_parts(), env, state);
    let mut find =
        |event| event_counter(agent.thread_parts(), &mut counters, sample.number, event?);
    let [old, died] = types.map(&mut find);
    let [one, two, four, eight] = survivors.map(&mut find);
    Some(SurvivalCounters {
        old: old?,
        died: died?,
        survived: [one?, two?, four?, eight?],
    })
}

impl FollowedSample {
    /// Only the holder of the state's lock may call this: counters have one writer at a time.
    fn count_at(&self, counter: &EventCounter) {
        counter.add_events(self.objects, self.bytes);
    }
}

impl SurvivalState {
    fn add_sample(&mut self, sample: FollowedSample) {
        if sample.is_old && !self.has_ended {
            sample.count_at(sample.counters.old);
        }
        self.samples.push(sample);
        self.unused.reserve(self.samples.len());
    }

    /// The references to be deleted. The room for those of the next collection stays.
    fn take_unused(&mut self) -> Vec<UnusedWeak> {
        self.unused.drain(..).collect()
    }

    /// Counts what a collection has left alive.
    fn note_collection(&mut self, now: CollectionCounts, is_alive: impl Fn(usize) -> bool) {
        let before = mem::replace(&mut self.seen, now);
        let is_full = now.full != before.full;
        // Some pauses collect nothing.
        if self.has_ended || (now.young == before.young && !is_full) {
            return;
        }
        // After a missed collection the threshold of the last one is unknown.
        let threshold = match now.young > before.young + 1 {
            true => before.threshold.max(now.threshold).max(MAX_AGE),
            false => before.threshold,
        };
        let mut at = 0;
        while let Some(sample) = self.samples.get_mut(at) {
            let was_cleared = !is_alive(sample.weak);
            match was_cleared {
                true if !sample.is_old => sample.count_at(sample.counters.died),
                true => {}
                false => sample.note_survival((before.young, now.young), (is_full, threshold)),
            }
            let age = now.young.saturating_sub(sample.born);
            if was_cleared || sample.is_old && age >= LAST_SURVIVED {
                let weak = sample.weak;
                self.unused.push(UnusedWeak { weak, was_cleared });
                self.samples.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }
}

impl FollowedSample {
    /// `young`: numbers of young collections at the last seen collection, and now.
    fn note_survival(&mut self, young: (u64, u64), (is_full, threshold): (bool, u64)) {
        let [before, age] = [young.0, young.1].map(|young| young.saturating_sub(self.born));
        for (least, counter) in SURVIVED_COLLECTIONS.iter().zip(self.counters.survived) {
            if before < *least && age >= *least {
                self.count_at(counter);
            }
        }
        // An object of this age had lived through one collection less before the last one.
        let is_tenured = threshold <= MAX_AGE && age > threshold;
        if !self.is_old && (is_full || is_tenured) {
            self.is_old = true;
            self.count_at(self.counters.old);
        }
    }
}

#[cfg(test)]
mod survival_tests {
    use std::collections::HashSet;

    use super::*;

    fn new_counters() -> SurvivalCounters {
        let new = || &*Box::leak(Box::<EventCounter>::default());
        SurvivalCounters {
            old: new(),
            died: new(),
            survived: [new(), new(), new(), new()],
        }
    }

    fn amounts(counters: &SurvivalCounters) -> [u64; 6] {
        let count = |counter: &EventCounter| u64::from_le(counter.count.load(Ordering::Relaxed));
        let [one, two, four, eight] = counters.survived.map(count);
        [
            one,
            two,
            four,
            eight,
            count(counters.old),
            count(counters.died),
        ]
    }

    /// A heap whose objects die after some collections, with this tenuring threshold.
    struct TestHeap {
        state: SurvivalState,
        counters: SurvivalCounters,
        counts: CollectionCounts,
        alive: HashSet<usize>,
    }

    impl TestHeap {
        fn new(threshold: u64) -> TestHeap {
            let counts = CollectionCounts {
                young: 5,
                full: 0,
                threshold,
            };
            TestHeap {
                state: SurvivalState {
                    seen: counts,
                    ..SurvivalState::default()
                },
                counters: new_counters(),
                counts,
                alive: HashSet::new(),
            }
        }

        fn create(&mut self, weak: usize, is_old: bool) {
            self.alive.insert(weak);
            self.state.add_sample(FollowedSample {
                weak,
                born: self.counts.young,
                is_old,
                objects: 1,
                bytes: 16,
                counters: self.counters,
            });
        }

        fn collect(&mut self, young: u64, full: u64) {
            self.counts.young += young;
            self.counts.full += full;
            let alive = &self.alive;
            self.state
                .note_collection(self.counts, |weak| alive.contains(&weak));
        }
    }

    #[test]
    fn a_collection_allocates_nothing() {
        let mut heap = TestHeap::new(4);
        for round in 0..4 {
            for object in 1..=100 {
                heap.create(round * 100 + object, false);
            }
            let has_room = |heap: &TestHeap| {
                let SurvivalState {
                    samples, unused, ..
                } = &heap.state;
                unused.capacity() - unused.len() >= samples.len()
            };
            assert!(has_room(&heap));
            heap.alive.retain(|weak| weak % 2 == 0);
            heap.collect(1, 0);
            assert_eq!(heap.state.take_unused().len(), 50);
            assert!(has_room(&heap));
        }
    }

    /// Each object n dies before collection n: counted by hand.
    #[test]
    fn ages_are_numbers_of_young_collections() {
        let mut heap = TestHeap::new(4);
        (1..=12).for_each(|n| heap.create(n, false));
        for n in 1..=12 {
            heap.alive.remove(&n);
            heap.collect(1, 0);
        }
        // Objects 2 to 12 live through the first collection. Those from 6 on live through the fifth, which finds age 4.
        assert_eq!(amounts(&heap.counters), [11, 10, 8, 4, 7, 5]);
        assert!(heap.state.samples.is_empty());
        assert_eq!(heap.state.unused.len(), 12);
        let cleared = heap.state.unused.iter().filter(|unused| unused.was_cleared);
        // Those that were alive and old at the eighth collection are not followed any more.
        assert_eq!(cleared.count(), 8);
    }

    #[test]
    fn full_collections_make_all_old_and_pauses_count_nothing() {
        let mut heap = TestHeap::new(15);
        heap.create(1, false);
        heap.create(2, false);
        heap.collect(0, 0);
        assert_eq!(amounts(&heap.counters), [0; 6]);
        heap.alive.remove(&2);
        heap.collect(0, 1);
        assert_eq!(amounts(&heap.counters), [0, 0, 0, 0, 1, 1]);
        // An old object that dies has not died young.
        heap.collect(1, 0);
        heap.alive.remove(&1);
        heap.collect(1, 1);
        assert_eq!(amounts(&heap.counters), [1, 0, 0, 0, 1, 1]);
    }

    #[test]
    fn humongous_objects_are_old_at_once_and_count_once() {
        let mut heap = TestHeap::new(1);
        heap.create(1, true);
        assert_eq!(amounts(&heap.counters), [0, 0, 0, 0, 1, 0]);
        (0..20).for_each(|_| heap.collect(1, 0));
        assert_eq!(amounts(&heap.counters), [1, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn a_missed_collection_proves_less() {
        let mut heap = TestHeap::new(1);
        heap.create(1, false);
        heap.collect(3, 0);
        assert_eq!(amounts(&heap.counters), [1, 1, 0, 0, 0, 0]);
        heap.collect(1, 0);
        assert_eq!(amounts(&heap.counters), [1, 1, 1, 0, 1, 0]);
        // Age 16 is never reached: such objects stay young.
        let mut heap = TestHeap::new(16);
        heap.create(1, false);
        (0..40).for_each(|_| heap.collect(1, 0));
        assert_eq!(amounts(&heap.counters), [1, 1, 1, 1, 0, 0]);
    }
}
