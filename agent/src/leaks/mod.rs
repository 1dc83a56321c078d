//! `events=leak`: sampled objects are followed until they die.
//!
//! ```text
//! SampledObjectAlloc ─► context, type, weak reference ─► followed (a table)   on the allocating thread
//!                    └► canaries: was the old generation collected since? ─► snapshot ─► log
//! GarbageCollectionFinish ─► one more collection                              nothing else is allowed
//! VMDeath            ─► a last look
//! ```
//! Without hooks, in a JVM that ran before the agent came, the context is what the VM's stack says (`walked`);
//! nothing else differs.
//!
//! There is no thread for this: without allocations nothing leaks. Ages need no work at collections
//! either: an object that is alive has survived all collections since its birth.
//!
//! Lock: the state's, taken before the log's. Nothing is allocated in the heap under it, because an
//! allocation may be sampled.

pub mod canaries;
pub mod choice;
pub mod followed;
pub mod holders;
pub mod runs;
pub mod search;

use std::cell::Cell;
use std::cmp::Reverse;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::{jclass, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_tracelog::{self as tracelog, Snapshot, Survivors};

use crate::counting::Counting;
use crate::counting::stream;
use crate::leaks::canaries::{Canaries, Canary, Freed, Look};
use crate::leaks::choice::{Most, survivors};
use crate::leaks::followed::{Aged, Birth, Followed};
use crate::memory::counter::count;
use crate::memory::gate;
use crate::memory::locks::WatchedMutex;
use crate::stack::here;
use crate::stack::here::Made;
use crate::stack::{contexts, verify};
use crate::thread::coverage::Coverage;
use crate::thread::life::current_state;
use crate::walked::asked;
use lucce_vm::{Env, Failed, Jvmti};

/// Objects that are followed at a time. At 512 KB from one to the next they stand for 8 GB.
const MOST: usize = 1 << 14;
/// Snapshots are at least as far apart, and a part of the time that has passed: a run of a year has
/// hardly more than one of a day.
const PAUSE: Duration = Duration::from_millis(100);
const PART: u32 = 20;
/// The kind of events in a stream.
const LEAK: &str = "leak";

pub struct Leaks {
    interval: u32,
    started: Instant,
    collections: AtomicU64,
    lost: AtomicU64,
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
    /// What the last collection of the old generation tested, and whether the log says so.
    tested: u64,
    told: bool,
    next: Duration,
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
pub const EVENTS: [ti::jvmtiEvent; 2] = [
    ti::JVMTI_EVENT_GARBAGE_COLLECTION_FINISH,
    ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC,
];

/// What is needed beside the agent's capabilities; one agent at a time can have it.
pub fn capabilities() -> ti::jvmtiCapabilities {
    let mut wanted = ti::jvmtiCapabilities::default();
    wanted.set_can_generate_sampled_object_alloc_events(true);
    wanted.set_can_generate_garbage_collection_events(true);
    wanted
}

/// Says in the log that objects will be followed. This comes before the log's `options`, so a reader who
/// sees those knows whether to wait for a first snapshot.
pub fn announce(counting: &Counting, leaks: &Leaks) {
    counting.meta("leak.interval", &leaks.interval.to_string());
}

/// The VM is initialised, and calls `sampled` and `collected`: from now on objects are followed.
///
/// # Errors
/// The VM's; the log says so, too.
pub fn start(counting: &Counting, jvmti: Jvmti, interval: u32) -> Result<(), Failed> {
    let enable = |()| EVENTS.into_iter().try_for_each(|event| jvmti.enable(event));
    let started = jvmti.sample_every(interval).and_then(enable);
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
                tested: 0,
                told: true,
                next: PAUSE,
                ended: false,
            }),
        }
    }

    pub fn interval(&self) -> u32 {
        self.interval
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// In the VM's own thread, while all others stand still.
    pub fn collected(&self) {
        count(&self.collections);
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
            let look = state.look(env);
            if !state.told && self.started.elapsed() >= state.next {
                self.snapshot(counting, env, &mut state);
            }
            look.wants
        };
        if let Some((canary, probe)) = wants.then(|| make(&counting.coverage, env)).flatten() {
            let born = self.collections();
            let mut state = self.state();
            state.canaries.give(canary, probe, born);
            // The end has let go of the references that were there.
            if state.ended {
                state.let_go(env);
            }
        }
    }

    /// Writes what lives, as far as the last collection of the old generation has tested it.
    fn snapshot(&self, counting: &Counting, env: Env, state: &mut State) {
        state.sweep(env);
        let rows = state.followed.rows(state.tested);
        let now = self.started.elapsed();
        state.told = true;
        state.next = now + PAUSE.max(now / PART);
        for row in &rows {
            if let Some(place) = state.followed.tell(row.key) {
                counting.note(tracelog::Followed {
                    key: row.key,
                    context: place.context,
                    of: (&*place.of).into(),
                });
            }
        }
        counting.note(Snapshot {
            rows: rows.len() as u32,
            millis: now.as_millis() as u64,
            collections: self.collections(),
            old: state.canaries.old(),
            tested: state.tested,
            sampled: state.sampled,
            following: state.followed.len() as u64,
            thinned: state.followed.thinned(),
            lost: self.lost.load(Ordering::Relaxed),
        });
        for row in rows {
            counting.note(Survivors {
                key: row.key,
                objects: row.objects,
                bytes: row.bytes,
                generations: row.generations.into(),
            });
        }
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
        state.ended = true;
        state.let_go(env);
    }

    /// The VM ends: what was not written yet.
    pub fn finish(&self, counting: &Counting, env: Env) {
        // On failure they come and are not looked at.
        let _ = counting.jvmti.disable(ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
        let _busy = Busy::begin();
        let mut state = self.state();
        state.look(env);
        if !state.told {
            self.snapshot(counting, env, &mut state);
        }
        for (key, value) in [
            ("leak.sampled", state.sampled),
            ("leak.following", state.followed.len() as u64),
            ("leak.thinned", state.followed.thinned().into()),
            ("leak.lost", self.lost.load(Ordering::Relaxed)),
            ("leak.collections", self.collections()),
            ("leak.old_collections", state.canaries.old()),
        ] {
            counting.stat(key, value);
        }
    }
}

impl State {
    fn look(&mut self, env: Env) -> Look {
        let look = self.canaries.look(is_alive(env), freed(env));
        if let Some(tested) = look.tested {
            self.told = self.told && tested == self.tested;
            self.tested = tested;
        }
        look
    }

    /// Of all references.
    fn let_go(&mut self, env: Env) {
        let free = |weak| env.forget_weak(weak as jobject);
        self.followed.sweep(|_| false, free);
        self.canaries.let_go_of_all(&freed(env));
    }

    fn sweep(&mut self, env: Env) {
        let free = |weak| env.forget_weak(weak as jobject);
        self.followed.sweep(is_alive(env), free);
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

fn is_alive(env: Env) -> impl Fn(usize) -> bool {
    move |weak| !env.is_gone(weak as jobject)
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
fn make(coverage: &Coverage, env: Env) -> Option<(Canary<usize>, usize)> {
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
