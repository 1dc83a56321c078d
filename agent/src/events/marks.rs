//! What the current thread has allocated since a moment: `io.lucce.Allocations`.
//!
//! A mark is a copy of what the thread's cells count, and how many events were lost until then. What the cells count later
//! on is told as the difference, cell by cell. Taking a mark and telling cost as much as the thread has contexts; in between
//! nothing is different from without. Where the thread goes on in another lane meanwhile, under tags of the program's own, what
//! came in the one before is kept with the mark.
//!
//! A mark may count in what the code hands to other threads (`with_tasks`). Then it also has a copy of what the cells of all
//! other threads count. With `events=thread` the contexts of what changed there say whose it is ([`Belongings`]); without, a change
//! is a reason why the counts are not complete. What the code submits is kept until the mark is told, so that the program
//! can wait until all of it has ended.
#![allow(unsafe_code, reason = "global references of the VM's")]

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::{ContextId, MethodId};
use lucce_hooks::kinds::THREAD;
use lucce_tracelog::{EventTypeId, ThreadId};
use rustc_hash::FxHashMap;

use crate::book::What;
use crate::counting::Counting;
use crate::counting::sizes::size_at;
use crate::events::belonging::{Belongings, MOST_MEASUREMENTS, MeasurementSet, run_a_task};
use crate::memory::gate;
use crate::memory::locks::WatchedMutex;
use crate::options::Instrument;
use crate::stack::frames::MethodKind;
use crate::thread::ThreadState;
use crate::thread::cells::lane_of;
use crate::thread::lane::Lane;
use lucce_vm::{Env, FrameInfo};

const KIND: &str = "alloc";

/// Threads of the VM and of the JDK that run no code of a program's, whatever it does.
const INFRASTRUCTURE: [&str; 6] = [
    "Reference Handler",
    "Finalizer",
    "Signal Dispatcher",
    "Common-Cleaner",
    "Attach Listener",
    "Notification Thread",
];
/// Threads that a reason names.
const MOST_NAMES: usize = 3;

/// Marks that were taken and not told.
#[derive(Default)]
pub struct Marks {
    open: WatchedMutex<Open>,
    /// How many there are.
    number: AtomicUsize,
    belongings: WatchedMutex<Belongings>,
}

#[derive(Default)]
struct Open {
    last: u64,
    marks: HashMap<u64, Mark>,
    /// By the number of the measurement: the call site from which its code runs.
    measurements: Measurements,
    /// Tasks that do not tell whether they have run, and wait for that: the oldest first.
    plain: VecDeque<PlainTask>,
    /// Threads that run tasks of measured code, by their states.
    running: HashMap<usize, RunningTasks>,
}

/// What a thread runs of measured code.
struct RunningTasks {
    /// A global reference.
    thread: jobject,
    /// The outermost first: the slot of the frame that runs the task, and whose it is.
    tasks: Vec<(usize, MeasurementSet)>,
}

/// A task of which nobody but the agent sees the end.
struct PlainTask {
    /// A global reference.
    object: jobject,
    whose: MeasurementSet,
}

/// One for each call site.
struct Measurements([Measurement; MOST_MEASUREMENTS]);

impl Default for Measurements {
    fn default() -> Measurements {
        Measurements(std::array::from_fn(|_| Measurement::default()))
    }
}

/// A call site of `Allocations.run`.
#[derive(Default)]
struct Measurement {
    use_state: UseState,
    /// What its cells in other threads counted when it ended last.
    counted: HashMap<CellPlace, u64>,
    /// What its code has handed to others: global references.
    handed: Vec<jobject>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum UseState {
    #[default]
    Free,
    Open,
    /// What its code has started still ran when it ended: that cannot be told from what comes.
    LeftRunning,
}

// SAFETY: global references may be used by any thread.
unsafe impl Send for Measurement {}
// SAFETY: as above.
unsafe impl Send for PlainTask {}
// SAFETY: as above.
unsafe impl Send for RunningTasks {}

/// How a mark is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begun {
    Mark(u64),
    /// All call sites are in use.
    TooMany,
}

struct Mark {
    /// Whose it is.
    state: usize,
    /// What its lane had counted.
    counted: Counted,
    /// Events that the lane had lost, and all threads.
    lost: u64,
    lost_by_all: u64,
    /// In lanes that it has left since.
    before: Before,
    /// The thread has run the code to its end, and counts for others.
    is_stopped: bool,
    /// The lanes that it has counted in.
    own_lanes: Vec<ThreadId>,
    /// What the other threads' cells had counted. `None`: they are not asked.
    others: Option<Others>,
    /// With `events=thread`.
    measurement: Option<usize>,
    /// Tasks that went on nowhere since there was no room.
    unfollowed: u64,
}

/// What cells of other threads had counted: count and value, block by block.
struct Others {
    cells: Vec<Vec<[u64; 2]>>,
    by_type: Vec<Vec<[u64; 2]>>,
}

/// Where a cell is: in which block of those that all threads have.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct CellPlace {
    is_by_type: bool,
    block: usize,
    at: usize,
}

/// A cell of another thread that has counted since.
struct Change {
    thread: ThreadId,
    place: CellPlace,
    /// How many events it has counted altogether.
    all: u64,
    /// What it has counted since.
    counts: Counts,
}

/// What is told of a mark.
#[derive(Default)]
struct Told {
    lost: u64,
    /// Why the counts are not complete.
    reasons: Vec<String>,
    made: Vec<Counts>,
    by_type: Vec<Counts>,
    /// Cells of other threads that are the measurement's, and what they count now.
    cells: Vec<(CellPlace, u64)>,
}

/// What was counted, and how much was lost.
#[derive(Default)]
struct Before {
    made: Vec<Counts>,
    by_type: Vec<Counts>,
    lost: u64,
}

/// What a cell counts: for which context, of which type if it is one by type, how many events, and their values beside the sizes
/// of their sites.
#[derive(Clone, Copy)]
struct Counts {
    number: ContextId,
    event: EventTypeId,
    count: u64,
    value: u64,
}

#[derive(Default)]
struct Counted {
    /// By the cell's address.
    cells: FxHashMap<usize, Counts>,
    /// Of the VM's own objects, with `alloc=all`.
    by_type: FxHashMap<usize, Counts>,
}

/// Why allocations of the current thread cannot be counted; `None`: they can.
pub fn unable(counting: &Counting, state: &ThreadState) -> Option<&'static str> {
    let options = &counting.options;
    if !counting.is_live() {
        Some("the agent is not recording yet")
    } else if options.burst.is_some() {
        Some("the agent counts in bursts only (burst=)")
    } else if !counting.gate.is_open(gate::ALLOC) {
        Some(
            "the agent does not count every allocation now: it wants events=alloc, and no `lucce ctl stop`",
        )
    } else if options.instrument != Instrument::All || !options.filter.is_open() {
        Some("the agent counts in some classes only (instrument=, include=, exclude=)")
    } else if state.is_virtual {
        Some("this is a virtual thread, whose events are counted with those of others")
    } else {
        None
    }
}

/// In the whole JVM: it is not known in which thread.
fn lost_by_all(counting: &Counting) -> u64 {
    counting.counts.events_lost.load(Ordering::Relaxed)
}

impl Marks {
    /// A mark. `with_tasks`: what the code hands to other threads counts, too.
    pub fn begin(
        &self,
        counting: &Counting,
        env: Env,
        (state, with_tasks): (&ThreadState, bool),
    ) -> Begun {
        let address = std::ptr::from_ref(state) as usize;
        let measurement = match with_tasks && knows_origins(counting) {
            false => None,
            true => {
                let measurement = self.lock().take_measurement(counting);
                if measurement.is_none() {
                    return Begun::TooMany;
                }
                measurement
            }
        };
        if measurement.is_some() {
            counting.gate.follow_tasks(true);
        }
        let others = with_tasks.then(|| Others::of(counting));
        let lane = lane_of(counting, env, state);
        let mark = Mark {
            state: address,
            counted: Counted::of(&lane),
            lost: lane.lost(),
            lost_by_all: lost_by_all(counting),
            before: Before::default(),
            is_stopped: false,
            own_lanes: Vec::from_iter(lane.id),
            others,
            measurement,
            unfollowed: counting.tasks.unfollowed.load(Ordering::Relaxed),
        };
        drop(lane);
        let mut open = self.lock();
        open.last += 1;
        let number = open.last;
        open.marks.insert(number, mark);
        self.number.store(open.marks.len(), Ordering::Relaxed);
        Begun::Mark(number)
    }

    /// The call site from which the code of a mark is to be run. `None`: any.
    pub fn measurement(&self, mark: u64) -> Option<usize> {
        self.lock().marks.get(&mark)?.measurement
    }

    /// The current thread has run the code of a mark to its end: what it does from now on does not count.
    pub fn stop(&self, counting: &Counting, env: Env, (state, number): (&ThreadState, u64)) {
        let lane = lane_of(counting, env, state);
        let mut open = self.lock();
        if let Some(mark) = open.marks.get_mut(&number)
            && mark.state == std::ptr::from_ref(state) as usize
        {
            mark.keep(&lane);
            mark.is_stopped = true;
        }
    }

    /// The current thread is about to leave its lane.
    pub fn leaves(&self, counting: &Counting, env: Env, state: &ThreadState) {
        self.each(state, |mark| {
            let lane = lane_of(counting, env, state);
            if !mark.is_stopped {
                mark.keep(&lane);
            }
        });
    }

    /// The thread goes on in another lane, or in the lane that it had.
    pub fn enters(&self, counting: &Counting, env: Env, state: &ThreadState) {
        self.each(state, |mark| {
            let lane = lane_of(counting, env, state);
            mark.counted = Counted::of(&lane);
            mark.lost = lane.lost();
        });
    }

    /// Marks of the current thread.
    fn each(&self, state: &ThreadState, mut each: impl FnMut(&mut Mark)) {
        // Relaxed: this thread's own are among them.
        if self.number.load(Ordering::Relaxed) == 0 {
            return;
        }
        let address = std::ptr::from_ref(state) as usize;
        let mut open = self.lock();
        let own = open.marks.values_mut().filter(|mark| mark.state == address);
        own.for_each(&mut each);
    }

    /// The current thread hands a task or a thread to others in a context. `is_plain`: an object that does not tell
    /// whether it has run.
    pub fn hands(
        &self,
        counting: &Counting,
        env: Env,
        (task, number): (jobject, ContextId),
        is_plain: bool,
    ) {
        let Some(whose) = self.belongings().find(counting, number) else {
            return;
        };
        if whose.of.is_empty() || whose.adds_worker {
            return;
        }
        let mut open = self.lock();
        for (at, measurement) in open.measurements.0.iter_mut().enumerate() {
            if !whose.of.has(at) || measurement.use_state != UseState::Open {
                continue;
            }
            if !is_plain {
                measurement.handed.push(env.global(task));
            }
        }
        if is_plain {
            open.plain.push_back(PlainTask {
                object: env.global(task),
                whose: whose.of,
            });
        }
    }

    /// An executor has refused what was handed to it just now.
    pub fn takes_back(&self, env: Env, task: jobject) {
        let mut open = self.lock();
        let is_it = |plain: &PlainTask| env.is_same(plain.object, task);
        let plain = open.plain.iter().rposition(is_it);
        if let Some(plain) = plain.and_then(|at| open.plain.remove(at)) {
            env.forget_global(plain.object);
            return;
        }
        for measurement in &mut open.measurements.0 {
            let handed = &mut measurement.handed;
            if let Some(at) = handed.iter().rposition(|known| env.is_same(*known, task)) {
                env.forget_global(handed.swap_remove(at));
            }
        }
    }

    /// The current thread begins to run a task in the frame with this slot. `task`: what it carries, too; unknown if it is
    /// plain.
    pub fn begins(
        &self,
        counting: &Counting,
        env: Env,
        (state, slot): (&ThreadState, usize),
        (task, number): (jobject, ContextId),
    ) {
        let known = match number {
            ContextId::UNKNOWN => None,
            number => self.belongings().find(counting, number),
        };
        let Some(thread) = counting.jvmti.current_thread() else {
            return;
        };
        let address = std::ptr::from_ref(state) as usize;
        let mut open = self.lock();
        let whose = match known {
            Some(whose) => whose.of,
            None => open.take_plain(env, task),
        };
        open.end_from(env, address, slot);
        if !whose.is_empty() {
            let running = open.running.entry(address).or_insert_with(|| RunningTasks {
                thread: env.global(thread),
                tasks: Vec::new(),
            });
            if !env.is_same(running.thread, thread) {
                // Another thread has ended, and had its state here.
                env.forget_global(running.thread);
                running.thread = env.global(thread);
                running.tasks.clear();
            }
            running.tasks.push((slot, whose));
        }
        drop(open);
        env.forget(thread);
    }

    /// The current thread has done with the task that the frame with this slot ran.
    pub fn ran(&self, env: Env, state: &ThreadState, slot: usize) {
        let address = std::ptr::from_ref(state) as usize;
        self.lock().end_from(env, address, slot);
    }

    /// What the code of a mark has handed to others since this was called last, as global references that the caller gives
    /// back; and how many tasks run, or wait and do not tell whether they have run.
    pub fn take_handed(&self, counting: &Counting, env: Env, mark: u64) -> (Vec<jobject>, u64) {
        let measurement = self.measurement(mark);
        let Some(at) = measurement else {
            return (Vec::new(), 0);
        };
        self.look_at_threads(counting, env, at);
        let mut open = self.lock();
        let waiting = open
            .plain
            .iter()
            .filter(|plain| plain.whose.has(at))
            .count();
        let running = open.running.values().flat_map(|running| &running.tasks);
        let running = running.filter(|(_, whose)| whose.has(at)).count();
        let handed = open.measurements.0.get_mut(at);
        let handed = handed.map(|of| std::mem::take(&mut of.handed));
        (handed.unwrap_or_default(), (waiting + running) as u64)
    }

    /// The end of a task of a `ForkJoinPool` has no hook. A thread in which no frame runs a task any more has none.
    fn look_at_threads(&self, counting: &Counting, env: Env, measurement: usize) {
        let mut threads = Vec::new();
        for (address, running) in &self.lock().running {
            if running
                .tasks
                .iter()
                .any(|(_, whose)| whose.has(measurement))
            {
                threads.push((*address, env.local(running.thread), running.tasks.clone()));
            }
        }
        for (address, thread, tasks) in threads {
            let runs_tasks = Marks::runs_tasks(counting, env, thread);
            env.forget(thread);
            let mut open = self.lock();
            let is_unchanged = |running: &RunningTasks| running.tasks == tasks;
            if !runs_tasks && open.running.get(&address).is_some_and(is_unchanged) {
                open.end_from(env, address, 0);
            }
        }
    }

    /// Whether a frame of a thread may run a task.
    fn runs_tasks(counting: &Counting, env: Env, thread: jobject) -> bool {
        const MOST_FRAMES: usize = 4096;
        let empty = FrameInfo {
            method: std::ptr::null_mut(),
            location: 0,
        };
        let mut frames = vec![empty; MOST_FRAMES];
        let Ok(found) = counting.jvmti.stack_of(thread, &mut frames) else {
            // It has ended.
            return false;
        };
        let frames = frames.get(..found).unwrap_or_default();
        let methods = frames.iter().map(|frame| {
            let method = counting.frames.resolve(counting, env, frame.method);
            match method.kind {
                MethodKind::Known(id) => MethodId(id),
                // A helper's that tells that the task begins, too.
                _ => MethodId(0),
            }
        });
        found == MOST_FRAMES || run_a_task(counting, &methods.collect::<Vec<_>>())
    }

    /// What was counted since, and the mark is no more: a line with how many events were lost, a line that says why the counts
    /// are not complete, which is empty if they are, then a line for each context with its number, how many objects, their
    /// bytes and their type. `left_running`: something that the code has started runs on. `None`: the mark is not one of
    /// this thread, or counting has ended.
    pub fn end(
        &self,
        counting: &Counting,
        env: Env,
        (state, number, left_running): (Option<&ThreadState>, u64, bool),
    ) -> Option<String> {
        let mut mark = self.lock().marks.remove(&number)?;
        let mut cells = Vec::new();
        let told = state.and_then(|state| {
            let is_own = mark.state == std::ptr::from_ref(state) as usize;
            let counts = is_own && unable(counting, state).is_none();
            counts.then(|| {
                if !mark.is_stopped {
                    let lane = lane_of(counting, env, state);
                    mark.keep(&lane);
                }
                let told = self.sum_up(counting, &mark);
                let text = told.write(counting, env);
                cells = told.cells;
                text
            })
        });
        let mut open = self.lock();
        self.number.store(open.marks.len(), Ordering::Relaxed);
        if let Some(measurement) = mark
            .measurement
            .and_then(|at| open.measurements.0.get_mut(at))
        {
            measurement.use_state = match left_running {
                true => UseState::LeftRunning,
                false => UseState::Free,
            };
            measurement.counted.extend(cells);
            for global in std::mem::take(&mut measurement.handed) {
                env.forget_global(global);
            }
        }
        let is_followed = |measurement: &Measurement| measurement.use_state == UseState::Open;
        if !open.measurements.0.iter().any(is_followed) {
            for plain in std::mem::take(&mut open.plain) {
                env.forget_global(plain.object);
            }
            for running in std::mem::take(&mut open.running).into_values() {
                env.forget_global(running.thread);
            }
            counting.gate.follow_tasks(false);
        }
        told
    }

    fn sum_up(&self, counting: &Counting, mark: &Mark) -> Told {
        let mut told = Told {
            lost: lost_by_all(counting).wrapping_sub(mark.lost_by_all) + mark.before.lost,
            by_type: mark.before.by_type.clone(),
            ..Told::default()
        };
        let mut belongings = self.belongings();
        // A thread that waits for its own tasks may run those of others.
        let mut is_foreign = |number: ContextId| {
            mark.measurement.is_some_and(|at| {
                let whose = belongings.find(counting, number).unwrap_or_default();
                whose.beside.has(at) && !whose.of.has(at)
            })
        };
        let own = mark.before.made.iter();
        told.made
            .extend(own.filter(|made| !is_foreign(made.number)));
        let changes = mark
            .others
            .as_ref()
            .map(|others| others.changes(counting, &mark.own_lanes));
        let mut unknown: BTreeMap<String, u64> = BTreeMap::new();
        for change in changes.into_iter().flatten() {
            let number = change.counts.number;
            let name = counting.thread_name(change.thread);
            let Some(measurement) = mark.measurement else {
                if !INFRASTRUCTURE.contains(&&*name) {
                    *unknown.entry(name).or_default() += change.counts.count;
                }
                continue;
            };
            match belongings.find(counting, number) {
                None => told.lost += change.counts.count.max(1),
                Some(whose) if whose.of.has(measurement) => {
                    told.cells.push((change.place, change.all));
                    match change.place.is_by_type {
                        true => told.by_type.push(change.counts),
                        false => told.made.push(change.counts),
                    }
                }
                Some(whose) if whose.is_unknown_task => {
                    *unknown.entry(name).or_default() += change.counts.count;
                }
                Some(_) => {}
            }
        }
        if !unknown.is_empty() {
            told.reasons
                .push(unknown_reason(mark.measurement.is_some(), &unknown));
        }
        let unfollowed = counting.tasks.unfollowed.load(Ordering::Relaxed);
        if mark.measurement.is_some() && unfollowed != mark.unfollowed {
            let reason = "tasks were submitted at too many places, so whose they are is not known";
            told.reasons.push(reason.into());
        }
        told
    }

    fn belongings(&self) -> MutexGuard<'_, Belongings> {
        self.belongings.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock()
    }
}

impl Counted {
    fn of(lane: &Lane) -> Counted {
        let mut counted = Counted::default();
        lane.each_cell(|cell, [number, count, value]| {
            let (number, event) = (ContextId(number), EventTypeId::default());
            let counts = Counts {
                number,
                event,
                count,
                value,
            };
            counted.cells.insert(cell, counts);
        });
        lane.each_event_cell(|cell, [number, event, count, value]| {
            let counts = Counts {
                number: ContextId(number),
                // The other half is zero.
                event: EventTypeId(event as u32),
                count,
                value,
            };
            counted.by_type.insert(cell, counts);
        });
        counted
    }
}

/// What has come since.
fn more<'a>(
    now: &'a FxHashMap<usize, Counts>,
    before: &'a FxHashMap<usize, Counts>,
) -> impl Iterator<Item = Counts> + 'a {
    now.iter().filter_map(|(cell, counts)| {
        let old = before.get(cell);
        let count = counts.count.wrapping_sub(old.map_or(0, |old| old.count));
        let value = counts.value.wrapping_sub(old.map_or(0, |old| old.value));
        (count != 0 || value != 0).then_some(Counts {
            count,
            value,
            ..*counts
        })
    })
}

impl Mark {
    /// Keeps what has come in the lane.
    fn keep(&mut self, lane: &Lane) {
        let since = self.since(lane);
        self.before.made.extend(since.made);
        self.before.by_type.extend(since.by_type);
        self.before.lost += since.lost;
        self.own_lanes.extend(lane.id);
    }

    /// What has come in the lane since the mark was taken, or since the thread has gone on in it.
    fn since(&self, lane: &Lane) -> Before {
        let now = Counted::of(lane);
        // A cell that is gone was of a number that has left the graph: what it counted last is not known.
        let is_gone = |cell: &&usize| !now.cells.contains_key(*cell);
        let gone = self.counted.cells.keys().filter(is_gone).count() as u64;
        Before {
            made: more(&now.cells, &self.counted.cells).collect(),
            by_type: more(&now.by_type, &self.counted.by_type).collect(),
            lost: lane.lost().wrapping_sub(self.lost) + gone,
        }
    }
}

/// Why the counts lack what was counted in these threads.
fn unknown_reason(knows_origins: bool, events: &BTreeMap<String, u64>) -> String {
    let objects: u64 = events.values().sum();
    let names: Vec<&str> = events.keys().take(MOST_NAMES).map(|name| &**name).collect();
    let more = match events.len() > MOST_NAMES {
        true => ", …",
        false => "",
    };
    let names = format!("{}{more}", names.join(", "));
    let made = match objects {
        1 => "an object".to_owned(),
        objects => format!("{objects} objects"),
    };
    match knows_origins {
        true => format!(
            "tasks in other threads made {made} ({names}), and the agent does not know who submitted them"
        ),
        false => format!(
            "other threads made {made} meanwhile ({names}), and the agent knows only with events=alloc+thread whether the \
             code has started them"
        ),
    }
}

/// Whether the contexts of tasks and threads go on where they were submitted and started.
fn knows_origins(counting: &Counting) -> bool {
    counting.options.hooks().has(&THREAD)
        && counting.gate.is_open(THREAD.gate)
        && counting.comparison.is_off()
}

impl Open {
    /// The first call site that nothing has used, or nothing that still runs. `None`: all are in use.
    fn take_measurement(&mut self, counting: &Counting) -> Option<usize> {
        for (at, measurement) in self.measurements.0.iter_mut().enumerate() {
            if measurement.use_state != UseState::Free {
                continue;
            }
            // What ran on although it was done (a task that was cancelled) has counted since.
            if measurement
                .counted
                .iter()
                .any(|(place, all)| place.count(counting) != *all)
            {
                measurement.use_state = UseState::LeftRunning;
                continue;
            }
            measurement.use_state = UseState::Open;
            return Some(at);
        }
        None
    }

    /// A plain task begins: whose it is.
    fn take_plain(&mut self, env: Env, task: jobject) -> MeasurementSet {
        let is_it = |plain: &PlainTask| env.is_same(plain.object, task);
        let plain = self.plain.iter().position(is_it);
        let plain = plain.and_then(|at| self.plain.remove(at));
        plain.map_or(MeasurementSet::default(), |plain| {
            env.forget_global(plain.object);
            plain.whose
        })
    }

    /// Tasks in the frame with this slot, and in those above it, have ended.
    fn end_from(&mut self, env: Env, address: usize, slot: usize) {
        if let Some(running) = self.running.get_mut(&address) {
            running.tasks.retain(|(at, _)| *at < slot);
            if running.tasks.is_empty()
                && let Some(running) = self.running.remove(&address)
            {
                env.forget_global(running.thread);
            }
        }
    }
}

impl CellPlace {
    fn count(self, counting: &Counting) -> u64 {
        let CellPlace {
            is_by_type,
            block,
            at,
        } = self;
        let load = |word: &AtomicU64| u64::from_le(word.load(Ordering::Relaxed));
        let count = match is_by_type {
            true => {
                let blocks = counting.all_event_cells();
                blocks
                    .get(block)
                    .and_then(|block| block.get(at))
                    .map(|cell| load(&cell.count))
            }
            false => {
                let blocks = counting.all_cells();
                blocks
                    .get(block)
                    .and_then(|block| block.get(at))
                    .map(|cell| load(&cell.count))
            }
        };
        count.unwrap_or(0)
    }
}

impl Others {
    /// What all cells count now.
    fn of(counting: &Counting) -> Others {
        // Relaxed: each number stands for itself.
        let load = |word: &AtomicU64| u64::from_le(word.load(Ordering::Relaxed));
        let cells = counting.all_cells();
        let cells = cells.iter().map(|block| {
            let counts = block
                .iter()
                .map(|cell| [load(&cell.count), load(&cell.bytes)]);
            counts.collect()
        });
        let cells = cells.collect();
        let by_type = counting.all_event_cells();
        let by_type = by_type.iter().map(|block| {
            let counts = block
                .iter()
                .map(|cell| [load(&cell.count), load(&cell.value)]);
            counts.collect()
        });
        Others {
            cells,
            by_type: by_type.collect(),
        }
    }

    /// What cells of other threads count now that they did not then. Cells by type: of allocations.
    fn changes(&self, counting: &Counting, own: &[ThreadId]) -> Vec<Change> {
        let now = Others::of(counting);
        let allocations = counting.event_types.details_of(KIND);
        let mut changes = Vec::new();
        let mut add = |place: CellPlace, thread, counts: Counts, before: Option<&[u64; 2]>| {
            let [count, value] = before.copied().unwrap_or_default();
            let since = Counts {
                count: counts.count.wrapping_sub(count),
                value: counts.value.wrapping_sub(value),
                ..counts
            };
            if since.count != 0 || since.value != 0 {
                changes.push(Change {
                    thread,
                    place,
                    all: counts.count,
                    counts: since,
                });
            }
        };
        let old = |blocks: &'_ [Vec<[u64; 2]>], place: CellPlace| {
            blocks
                .get(place.block)
                .and_then(|block| block.get(place.at))
                .copied()
        };
        let of_cells = counting.all_cells();
        for (block, cells) in of_cells.iter().enumerate() {
            if own.contains(&cells.thread()) {
                continue;
            }
            for (at, cell) in cells.iter().enumerate() {
                let place = CellPlace {
                    is_by_type: false,
                    block,
                    at,
                };
                let Some([count, value]) = old(&now.cells, place) else {
                    continue;
                };
                let counts = Counts {
                    number: cell.id(),
                    event: EventTypeId::default(),
                    count,
                    value,
                };
                add(
                    place,
                    cells.thread(),
                    counts,
                    old(&self.cells, place).as_ref(),
                );
            }
        }
        drop(of_cells);
        for (block, cells) in counting.all_event_cells().iter().enumerate() {
            if own.contains(&cells.thread()) {
                continue;
            }
            for (at, cell) in cells.iter().enumerate() {
                let place = CellPlace {
                    is_by_type: true,
                    block,
                    at,
                };
                let event = cell.event();
                let Some([count, value]) = old(&now.by_type, place) else {
                    continue;
                };
                if allocations.contains_key(&event) {
                    let counts = Counts {
                        number: cell.id(),
                        event,
                        count,
                        value,
                    };
                    add(
                        place,
                        cells.thread(),
                        counts,
                        old(&self.by_type, place).as_ref(),
                    );
                }
            }
        }
        changes
    }
}

/// What several lanes have counted for one context and type is one.
fn added(parts: &[Counts]) -> impl Iterator<Item = Counts> {
    let mut sums: FxHashMap<(ContextId, EventTypeId), Counts> = FxHashMap::default();
    for counts in parts {
        let key = (counts.number, counts.event);
        let sum = sums.entry(key).or_insert(Counts {
            count: 0,
            value: 0,
            ..*counts
        });
        sum.count = sum.count.wrapping_add(counts.count);
        sum.value = sum.value.wrapping_add(counts.value);
    }
    sums.into_values()
}

impl Told {
    /// No lock is held: to ask for sizes makes objects, in this thread.
    fn write(&self, counting: &Counting, env: Env) -> String {
        let mut lost = self.lost;
        let mut lines = String::new();
        let mut line = |made: Counts, bytes: u64, of: &str| {
            let _ = writeln!(lines, "{:x} {} {bytes} {of}", made.number.0, made.count);
        };
        for made in added(&self.made) {
            match made_at(counting, env, made.number) {
                Made::Object { size, of } => line(made, made.value + made.count * size, &of),
                Made::Nothing => {}
                Made::Unknown => lost += made.count.max(1),
            }
        }
        let details = counting.event_types.details_of(KIND);
        for made in added(&self.by_type) {
            if let Some(of) = details.get(&made.event) {
                line(made, made.value, of);
            }
        }
        format!("{lost}\n{}\n{lines}", self.reasons.join("; "))
    }
}

enum Made {
    /// How large each is beside what the cell counts, and its descriptor.
    Object {
        size: u64,
        of: String,
    },
    /// Other events have cells there, too.
    Nothing,
    Unknown,
}

fn made_at(counting: &Counting, env: Env, number: ContextId) -> Made {
    let frames = counting.encoder.decode(number, MethodId::EVENT);
    let Some(site) = frames
        .ok()
        .and_then(|frames| frames.first().map(|frame| frame.site.0))
    else {
        return Made::Unknown;
    };
    let book = counting.book();
    let Some(info) = book.site(site) else {
        return Made::Unknown;
    };
    let of = match info.what {
        What::New(of) | What::Array(of) => book.text(of).to_string(),
        _ => return Made::Nothing,
    };
    drop(book);
    let size = size_at(counting, env, site).unwrap_or(0);
    Made::Object { size, of }
}
