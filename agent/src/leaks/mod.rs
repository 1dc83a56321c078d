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
pub mod choice;
pub mod followed;
pub mod holders;
pub mod runs;
pub mod search;
pub mod taking;
mod watcher;
mod whole;

use std::cell::Cell;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::{jclass, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_tracelog::CensusCause;

use crate::counting::Counting;
use crate::counting::stream;
use crate::leaks::canaries::{Canaries, Canary, Freed};
use crate::leaks::choice::{Most, survivors};
use crate::leaks::followed::{Aged, Birth, Followed};
use crate::leaks::taking::{Schedule, Slots, Times};
use crate::leaks::watcher::Watcher;
use crate::leaks::whole::WholeCollections;
use crate::memory::counter::count;
use crate::memory::gate;
use crate::memory::locks::WatchedMutex;
use crate::stack::here;
use crate::stack::here::Made;
use crate::stack::{contexts, verify};
use crate::thread::coverage::Coverage;
use crate::thread::life::current_state;
use crate::walked::asked;
use lucce_vm::{Env, Failed, Vm};

/// Objects that are followed at a time. At 512 KB from one to the next they stand for 8 GB.
const MOST: usize = 1 << 14;
/// Snapshots are at least as far apart, and a part of the time that has passed: a run of a year has
/// hardly more than one of a day.
const PAUSE: Duration = Duration::from_millis(20);
const PART: u32 = 20;
/// The same of censuses.
const CENSUS_PAUSE: Duration = Duration::from_secs(1);
const CENSUS_PART: u32 = 10;
/// The kind of events in a stream.
const LEAK: &str = "leak";

pub struct Leaks {
    interval: u32,
    started: Instant,
    collections: AtomicU64,
    lost: AtomicU64,
    /// Once the VM is initialised.
    whole: OnceLock<WholeCollections>,
    watcher: Watcher,
    state: WatchedMutex<State>,
}

/// Objects of one type that were made in a context and are followed.
pub struct Alive {
    /// A descriptor.
    pub of: Box<str>,
    pub followed: usize,
    pub alive: usize,
    /// Some of the living.
    pub objects: Vec<jobject>,
}

struct State {
    followed: Followed<usize>,
    canaries: Canaries<usize>,
    sampled: u64,
    /// Collections of the old generation that were noticed.
    old: u64,
    /// What the last of them tested, and whether the log says so.
    tested: u64,
    told: bool,
    /// Collections of the whole heap that were noticed.
    whole: u64,
    /// Objects born before this collection have survived one.
    survived: u64,
    /// Collections before the last look.
    looked: u64,
    /// When what is written next.
    snapshots: Schedule,
    censuses: Schedule,
    exhaustions: Schedule,
    /// Sampled objects and collections of which the last census knows.
    in_census: (u64, u64),
    /// Whether references may be read without the VM.
    slots: Slots,
    /// Nothing is followed any more.
    ended: bool,
}

thread_local! {
    /// Objects that are made here for ourselves are not followed.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Until it is dropped, this thread follows nothing.
struct Busy;

impl Busy {
    fn begin() -> Option<Busy> {
        (!BUSY.replace(true)).then_some(Busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        BUSY.set(false);
    }
}

/// Objects, and collections.
pub const EVENTS: [ti::jvmtiEvent; 3] = [
    ti::JVMTI_EVENT_GARBAGE_COLLECTION_FINISH,
    ti::JVMTI_EVENT_RESOURCE_EXHAUSTED,
    ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC,
];

/// What is needed beside the agent's capabilities; one agent at a time can have it.
pub fn capabilities() -> ti::jvmtiCapabilities {
    let mut wanted = ti::jvmtiCapabilities::default();
    wanted.set_can_generate_sampled_object_alloc_events(true);
    wanted.set_can_generate_garbage_collection_events(true);
    wanted.set_can_generate_resource_exhaustion_heap_events(true);
    wanted
}

/// Says in the log that objects will be followed. This comes before the log's `options`, so a reader who
/// sees those knows whether to wait for a first snapshot.
pub fn announce(counting: &Counting, leaks: &Leaks) {
    counting.meta("leak.interval", &leaks.interval.to_string());
}

/// The VM is initialised, and calls `sampled`, `collected` and `exhausted`: from now on objects are followed.
///
/// # Errors
/// The VM's; the log says so, too.
pub fn start(
    counting: &'static Counting,
    leaks: &'static Leaks,
    vm: Option<Vm>,
) -> Result<(), Failed> {
    let jvmti = counting.jvmti;
    if let Some(vm) = vm {
        leaks.know(counting, vm);
        watcher::start(counting, leaks, vm);
    }
    let enable = |()| EVENTS.into_iter().try_for_each(|event| jvmti.enable(event));
    let started = jvmti.sample_every(leaks.interval).and_then(enable);
    if started.is_err() {
        counting.meta("leak.none", "this VM does not sample allocations");
    }
    started
}

impl Leaks {
    /// `interval`: bytes from one sampled object to the next, on average.
    pub fn new(interval: u32) -> Leaks {
        Leaks {
            interval,
            started: Instant::now(),
            collections: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            state: WatchedMutex::new(State {
                followed: Followed::new(MOST, interval.into()),
                canaries: Canaries::new(),
                sampled: 0,
                old: 0,
                tested: 0,
                told: true,
                whole: 0,
                survived: 0,
                looked: 0,
                snapshots: Schedule::new(PAUSE, (PAUSE, PART)),
                censuses: Schedule::new(Duration::ZERO, (CENSUS_PAUSE, CENSUS_PART)),
                exhaustions: Schedule::new(Duration::ZERO, (PAUSE, PART)),
                in_census: (0, 0),
                slots: Slots::default(),
                ended: false,
            }),
            whole: OnceLock::new(),
            watcher: Watcher::default(),
        }
    }

    /// What the VM counts, and how it ends.
    fn know(&self, counting: &Counting, vm: Vm) {
        let whole = self.whole.get_or_init(|| WholeCollections::find(vm));
        let mut state = self.state();
        state.whole = whole.so_far().count;
        if let Some(flag) = whole.exits_by() {
            counting.meta("leak.exits_by", flag);
            state.slots.compare();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// In the VM's own thread, while all others stand still.
    pub fn collected(&self, counting: &Counting) {
        let collections = count(&self.collections) + 1;
        let whole = self.whole.get();
        if let Some(whole) = whole.filter(|whole| whole.note_collection(collections))
            && whole.exits_by().is_some()
        {
            self.take_at_pause(counting, whole);
        }
        self.watcher.wake();
    }

    fn collections(&self) -> u64 {
        self.collections.load(Ordering::Relaxed)
    }

    /// The current thread has made `object`, of `size` bytes, and the VM took it as a sample.
    pub fn sampled(
        &self,
        counting: &'static Counting,
        env: Env,
        object: jobject,
        class: jclass,
        size: u64,
    ) {
        if let Some(_busy) = Busy::begin()
            && counting.gate.is_open(gate::LEAK)
            && !env.has_exception()
        {
            self.follow(counting, env, object, class, size);
            self.look(counting, env);
        }
    }

    fn follow(
        &self,
        counting: &'static Counting,
        env: Env,
        object: jobject,
        class: jclass,
        size: u64,
    ) {
        let wanted = {
            let mut state = self.state();
            state.sampled += 1;
            state.followed.wants()
        };
        if !wanted {
            return;
        }
        let context = match context(counting, env) {
            Ok(context) => context,
            Err(NotTheProgram) => {
                self.state().sampled -= 1;
                return;
            }
        };
        let place = place(counting, context, class);
        if let Some(place) = &place {
            tell(counting, env, place, size);
        }
        let weak = place.is_some().then(|| env.weak_global(object));
        if env.has_exception() {
            env.clear();
        }
        match (place, weak.filter(|weak| !weak.is_null())) {
            (Some(place), Some(weak)) => {
                let born = self.collections();
                let mut state = self.state();
                if state.ended {
                    env.forget_weak(weak);
                    return;
                }
                if state.followed.is_full() {
                    state.make_room(env);
                }
                state.followed.add(place, born, size, weak as usize);
            }
            _ => {
                count(&self.lost);
            }
        }
    }

    fn look(&self, counting: &Counting, env: Env) {
        let wants = {
            let mut state = self.state();
            let wants = self.look_at(&mut state, env);
            let now = self.now();
            if !state.told && state.snapshots.is_due(now) {
                self.snapshot(counting, env, &mut state);
            }
            if self.wants_census(&state, now) {
                self.census(counting, env, &mut state, (CensusCause::Regular, ""));
            }
            wants
        };
        let pauses = self.pauses();
        let born = self.collections();
        if let Some(made) = wants.then(|| make(&counting.coverage, env)).flatten() {
            let mut state = self.state();
            state.canaries.give(made, born, pauses);
            // The end has let go of the references that were there.
            if state.ended {
                state.let_go(env);
            }
        }
    }

    /// A thread of the agent's own looks: no thread of the program has done so since a collection.
    pub fn look_again(&self, counting: &Counting, env: Env) {
        if let Some(_busy) = Busy::begin()
            && !self.state().ended
        {
            self.look(counting, env);
        }
    }

    /// Whether there is something to look for.
    fn is_behind(&self) -> bool {
        let (state, now) = (self.state(), self.now());
        let collections = self.collections();
        let snapshot = !state.told && state.snapshots.is_due(now);
        let census = self.wants_census(&state, now);
        !state.ended && (state.looked != collections || snapshot || census)
    }

    /// Where the VM ends without a word as soon as its heap is exhausted, a census may be the last one.
    fn wants_census(&self, state: &State, now: Duration) -> bool {
        let ends = |whole: &WholeCollections| whole.exits_by().is_some() && whole.is_nearly_full();
        let is_due = state.censuses.is_due(now)
            || state.exhaustions.is_due(now) && self.whole.get().is_some_and(ends);
        is_due && state.has_news(self.collections())
    }

    /// Writes what lives now, whenever that was done last, behind a collection of the whole heap if it is asked for.
    /// Returns when what was written was taken.
    ///
    /// # Errors
    /// The VM does not collect.
    pub fn look_now(&self, counting: &Counting, env: Env, collects: bool) -> Result<Times, Failed> {
        let _busy = Busy::begin();
        let (began, before) = (Instant::now(), self.collections());
        let old = self.state().old;
        if collects {
            counting.jvmti.collect_heap()?;
        }
        let collection = collects.then(|| began.elapsed());
        self.look(counting, env);
        let mut state = self.state();
        if collects {
            // The VM may not count it, and no canary may be old enough.
            let old = state.old.max(old + 1);
            state.note_tested(before + 1, old);
        }
        if !state.ended {
            if !state.told {
                self.snapshot(counting, env, &mut state);
            }
            self.census(counting, env, &mut state, (CensusCause::Regular, ""));
        }
        Ok(Times {
            now: self.now(),
            collection,
        })
    }

    /// Bytes of the heap in use after the last collection, and its largest size.
    pub fn heap_bytes(&self) -> (Option<u64>, Option<u64>) {
        let whole = self.whole.get();
        (
            whole.and_then(WholeCollections::used_bytes),
            whole.and_then(WholeCollections::max_heap_bytes),
        )
    }

    /// The VM says that the heap is exhausted, in the thread that gets the error, which has just collected everything.
    /// Nothing is made in the heap here.
    pub fn exhausted(&self, counting: &Counting, env: Env, what: &str) {
        let _busy = Busy::begin();
        let mut state = self.state();
        let now = self.now();
        if state.ended || !state.exhaustions.is_due(now) {
            return;
        }
        state.exhaustions.done(now);
        self.look_at(&mut state, env);
        if !state.told {
            self.snapshot(counting, env, &mut state);
        }
        let cause = (CensusCause::HeapExhausted, what);
        self.census(counting, env, &mut state, cause);
    }

    /// Notices collections. `true`: a new canary and a new probe are wanted.
    fn look_at(&self, state: &mut State, env: Env) -> bool {
        state.looked = self.collections();
        let whole = self.whole.get();
        if let Some(whole) = whole {
            state.note_whole(whole.so_far());
        }
        let pauses = || whole.and_then(WholeCollections::cycle_pauses);
        let State {
            canaries, slots, ..
        } = state;
        let look = canaries.look(is_alive(env, slots), freed(env), pauses);
        if let Some(tested) = look.tested.filter(|tested| *tested > state.tested) {
            let old = state.old + 1;
            state.note_tested(tested, old);
        }
        state.survived = state.survived.max(look.survived.unwrap_or(0));
        look.wants
    }

    fn pauses(&self) -> Option<lucce_vm::gc_counters::CyclePauses> {
        self.whole.get().and_then(WholeCollections::cycle_pauses)
    }

    /// Since objects are followed.
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// How many objects of some contexts are followed, of each type or of one, and some living ones among them: references of the
    /// current thread's own. The type with most living ones comes first.
    pub fn some_of(
        &self,
        env: Env,
        (contexts, of): (&[ContextId], Option<&str>),
        most: Most,
    ) -> Vec<Alive> {
        let collections = self.collections();
        // No reference is given back meanwhile.
        let state = self.state();
        let found = state.followed.of(contexts, of).into_iter();
        let mut found: Vec<_> = found
            .map(|of_type| {
                let followed = of_type.objects.len();
                (of_type.of, followed, living(env, of_type.objects))
            })
            .collect();
        found.sort_by_key(|(_, _, living)| Reverse(living.len()));
        let numbers: Vec<_> = found.iter().map(|(_, _, living)| living.len()).collect();
        let shares = most.in_turn(&numbers).into_iter();
        let alive = |((of, followed, living), share): ((_, _, Vec<_>), _)| {
            let some = survivors(&living, share, (state.tested, collections)).into_iter();
            let objects = some.map(|weak| env.local(weak as jobject));
            Alive {
                of,
                followed,
                alive: living.len(),
                objects: objects.filter(|object| !object.is_null()).collect(),
            }
        };
        found.into_iter().zip(shares).map(alive).collect()
    }

    /// How many objects were sampled.
    pub fn so_far(&self) -> u64 {
        self.state().sampled
    }

    /// The agent leaves the VM: as `finish`, and no object is referred to any more.
    pub fn leave(&self, counting: &Counting, env: Env) {
        self.finish(counting, env);
        let mut state = self.state();
        state.let_go(env);
    }

    /// The VM ends: what was not written yet.
    pub fn finish(&self, counting: &Counting, env: Env) {
        // On failure they come and are not looked at.
        let _ = counting.jvmti.disable(ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
        self.watcher.end();
        let _busy = Busy::begin();
        let mut state = self.state();
        self.look_at(&mut state, env);
        if !state.told {
            self.snapshot(counting, env, &mut state);
        }
        if state.sampled > 0 {
            self.census(counting, env, &mut state, (CensusCause::Regular, ""));
        }
        state.ended = true;
        for (key, value) in [
            ("leak.sampled", state.sampled),
            ("leak.following", state.followed.len() as u64),
            ("leak.thinned", state.followed.thinned().into()),
            ("leak.lost", self.lost.load(Ordering::Relaxed)),
            ("leak.collections", self.collections()),
            ("leak.old_collections", state.old),
        ] {
            counting.stat(key, value);
        }
    }
}

impl State {
    /// What was born before collection `tested` has survived a collection of the old generation, of which there were `old`.
    fn note_tested(&mut self, tested: u64, old: u64) {
        self.old = old;
        self.told = self.told && tested <= self.tested;
        self.tested = self.tested.max(tested);
        self.survived = self.survived.max(tested);
    }

    fn note_whole(&mut self, whole: whole::WholeCount) {
        if whole.count > self.whole && whole.last > 0 {
            let old = self.old + (whole.count - self.whole);
            self.whole = whole.count;
            self.note_tested(whole.last, old);
        }
    }

    /// Whether there is more to write than the last census has; `collections`: until now.
    fn has_news(&self, collections: u64) -> bool {
        self.in_census != (self.sampled, collections)
    }

    /// Of all references.
    fn let_go(&mut self, env: Env) {
        let free = |weak| env.forget_weak(weak as jobject);
        self.followed.sweep(|_| false, free);
        self.canaries.let_go_of_all(&freed(env));
    }

    fn sweep(&mut self, env: Env) {
        let free = |weak| env.forget_weak(weak as jobject);
        self.followed.sweep(is_alive(env, &self.slots), free);
    }

    fn make_room(&mut self, env: Env) {
        self.sweep(env);
        self.followed
            .make_room(|weak| env.forget_weak(weak as jobject));
    }
}

fn freed(env: Env) -> impl Fn(Freed<usize>) {
    move |freed| match freed {
        Freed::Weak(weak) => env.forget_weak(weak as jobject),
        Freed::Strong(strong) => env.forget_global(strong as jobject),
    }
}

fn living(env: Env, mut objects: Vec<Aged<usize>>) -> Vec<Aged<usize>> {
    objects.retain(|object| !env.is_gone(object.reference as jobject));
    objects
}

fn is_alive(env: Env, slots: &Slots) -> impl Fn(usize) -> bool {
    move |weak| {
        let is_gone = env.is_gone(weak as jobject);
        slots.note(weak, is_gone);
        !is_gone
    }
}

/// The current thread's context. `Err`: what the slow paths of hooks make is not the program's, nor what the VM makes for itself,
/// where no frame is shown.
fn context(counting: &'static Counting, env: Env) -> Result<Option<ContextId>, NotTheProgram> {
    if counting.walks() {
        return match asked::shown(counting, env, 0) {
            Some(Some(number)) => Ok(Some(number)),
            Some(None) => Err(NotTheProgram),
            None => Ok(None),
        };
    }
    let own = current_state(counting, env);
    let Some(state) = own.get() else {
        let has_frames = counting.jvmti.frame(0).is_some();
        return has_frames.then_some(None).ok_or(NotTheProgram);
    };
    match here::made(counting, env, state) {
        Made::Ours | Made::Nowhere => Err(NotTheProgram),
        Made::Unknown => Ok(None),
        Made::Here(here) => {
            let number = contexts::event(counting, state, here);
            if state.countdown.count_event(counting.options.verify) {
                verify::compare(counting, env, number, 0);
            }
            Ok(Some(number))
        }
    }
}

struct NotTheProgram;

fn place(counting: &Counting, context: Option<ContextId>, class: jclass) -> Option<Birth> {
    let context = context?;
    let of = counting.jvmti.signature(class)?;
    (context != ContextId::UNKNOWN).then(|| Birth {
        context,
        of: of.into(),
    })
}

/// With `record=stream` a followed object is an event of its own.
fn tell(counting: &Counting, env: Env, place: &Birth, size: u64) {
    if counting.streamer.is_none() {
        return;
    }
    let event = counting.event_type(LEAK, "bytes", &place.of);
    let own = current_state(counting, env);
    if let (Some(event), Some(state)) = (event, own.get()) {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        stream::record(counting, env, state, (event, place.context), size);
    }
}

/// A canary and a probe.
type CanaryPair = (Canary<usize>, usize);

fn make(coverage: &Coverage, env: Env) -> Option<CanaryPair> {
    let canary = coverage.ours(env, || env.new_bytes(0))?;
    let (strong, weak) = (env.global(canary), env.weak_global(canary));
    env.forget(canary);
    let probe = coverage.ours(env, || env.new_bytes(0))?;
    let weak_probe = env.weak_global(probe);
    env.forget(probe);
    let canary = Canary {
        strong: strong as usize,
        weak: weak as usize,
    };
    let made = [strong, weak, weak_probe]
        .iter()
        .all(|made| !made.is_null());
    if env.has_exception() {
        env.clear();
    }
    made.then_some((canary, weak_probe as usize))
}
