//! Measuring the allocations of a piece of code: `io.lucce.Allocations`.
//!
//! ```text
//! begin_mark: a copy of the thread's counters ─► the code runs ─► stop_mark ─► end_mark: the differences, as text
//!   with tasks: a copy of all threads' counters  └► hand_task, begin_task, end_task: whose task runs where
//! ```
//!
//! A mark is a copy of the thread's counters and of its number of dropped events. The result is the difference between later
//! counters and the copy. Beginning and ending a mark cost time in proportion to the thread's contexts; in between, nothing
//! is slower. If the thread changes its counters meanwhile, under tags of the program, the mark keeps the difference so far.
//!
//! A mark may include work that the code hands to other threads (`with_tasks`). Then it also copies the counters of all other
//! threads. With `events=thread`, the context of each changed counter determines its owner ([`OwnershipResolver`]). Without
//! it, a changed counter is a reason for incomplete counts. The mark keeps the tasks that the code submits until its end, so
//! that the program can wait for all of them.
#![allow(unsafe_code, reason = "global references of the VM's")]

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::{ContextId, MethodId};
use lucce_instrument::kinds::THREAD;
use lucce_tracelog::{EventTypeId, ThreadId};
use rustc_hash::FxHashMap;

use crate::counting::AgentCounting;
use crate::counting::object_sizes::find_site_size;
use crate::events::ownership::{
    MAX_MEASUREMENTS, MeasurementSet, OwnershipResolver, any_runs_task,
};
use crate::memory::event_mask;
use crate::memory::locks::WatchedMutex;
use crate::options::InstrumentScope;
use crate::registry::RegisteredSiteKind;
use crate::stack::frames::MethodKind;
use crate::thread::ThreadState;
use crate::thread::counter_access::current_counters;
use crate::thread::thread_counters::ThreadCounters;
use lucce_jvmti::{FrameInfo, JniEnvironment};

const KIND: &str = "alloc";

/// Threads of the VM and of the JDK that never run code of a program.
const INFRASTRUCTURE: [&str; 6] = [
    "Reference Handler",
    "Finalizer",
    "Signal Dispatcher",
    "Common-Cleaner",
    "Attach Listener",
    "Notification Thread",
];
/// Maximum number of threads that a reason names.
const MAX_NAMES: usize = 3;

/// Marks that have begun and not ended.
#[derive(Default)]
pub struct AllocationMarks {
    open: WatchedMutex<OpenMarks>,
    /// The number of open marks.
    open_count: AtomicUsize,
    ownership: WatchedMutex<OwnershipResolver>,
}

#[derive(Default)]
struct OpenMarks {
    last: u64,
    marks: HashMap<u64, AllocationMark>,
    /// By the number of the measurement: the call site that runs its code.
    measurements: MeasurementSlots,
    /// Waiting tasks that do not report whether they have run, the oldest first.
    plain: VecDeque<PlainTask>,
    /// Threads that run tasks of measured code, by the addresses of their states.
    running: HashMap<usize, RunningTasks>,
}

/// The tasks of measured code that a thread runs.
struct RunningTasks {
    /// A global reference.
    thread: jobject,
    /// The outermost first: the slot of the frame that runs the task, and its owners.
    tasks: Vec<(usize, MeasurementSet)>,
}

/// A task whose end only the agent notices.
struct PlainTask {
    /// A global reference.
    object: jobject,
    whose: MeasurementSet,
}

/// One slot for each call site.
struct MeasurementSlots([MeasurementSlot; MAX_MEASUREMENTS]);

impl Default for MeasurementSlots {
    fn default() -> MeasurementSlots {
        MeasurementSlots(std::array::from_fn(|_| MeasurementSlot::default()))
    }
}

/// A call site of `Allocations.run`.
#[derive(Default)]
struct MeasurementSlot {
    use_state: UseState,
    /// The last counts of its counters in other threads, when it ended.
    counted: HashMap<CounterLocation, u64>,
    /// Tasks that its code has handed to others: global references.
    handed: Vec<jobject>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum UseState {
    #[default]
    Free,
    Open,
    /// When it ended, work that its code had started still ran. New work could not be told apart.
    LeftRunning,
}

// SAFETY: global references may be used by any thread.
unsafe impl Send for MeasurementSlot {}
// SAFETY: as above.
unsafe impl Send for PlainTask {}
// SAFETY: as above.
unsafe impl Send for RunningTasks {}

/// The result of beginning a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkStart {
    Mark(u64),
    /// All call sites are in use.
    TooMany,
}

struct AllocationMark {
    /// The address of the thread's state.
    state: usize,
    /// The readings of the thread's counters at the beginning.
    counted: CounterReadings,
    /// Events that the thread, and all threads, had dropped.
    dropped: u64,
    dropped_by_all: u64,
    /// Counts from counters that the thread has left since.
    earlier: MarkCounts,
    /// The thread has run the code to its end, and only waits for tasks.
    is_stopped: bool,
    /// Counters in which the thread has counted.
    own_counters: Vec<ThreadId>,
    /// The readings of other threads' counters. `None`: they do not matter.
    others: Option<OtherThreadCounts>,
    /// The number of the measurement, with `events=thread`.
    measurement: Option<usize>,
    /// Tasks whose origin found no room.
    unfollowed: u64,
}

/// Readings of all threads' counters, block by block: count and value.
struct OtherThreadCounts {
    cells: Vec<Vec<[u64; 2]>>,
    by_type: Vec<Vec<[u64; 2]>>,
}

/// The position of a counter: a block of all threads' blocks, and an index.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct CounterLocation {
    is_by_type: bool,
    block: usize,
    at: usize,
}

/// A changed counter of another thread.
struct CounterChange {
    thread: ThreadId,
    place: CounterLocation,
    /// Its total number of events.
    all: u64,
    /// Its events since the mark began.
    counts: CounterReading,
}

/// The result of a mark.
#[derive(Default)]
struct MarkReport {
    dropped: u64,
    /// Reasons why the counts are incomplete.
    reasons: Vec<String>,
    made: Vec<CounterReading>,
    by_type: Vec<CounterReading>,
    /// Counters of other threads that belong to the measurement, with their present counts.
    cells: Vec<(CounterLocation, u64)>,
}

/// Counted events, and the number of dropped events.
#[derive(Default)]
struct MarkCounts {
    made: Vec<CounterReading>,
    by_type: Vec<CounterReading>,
    dropped: u64,
}

/// The reading of a counter: context, event type (of a counter by type), number of events, and sum of values. Sizes that
/// sites determine are not in the sum.
#[derive(Clone, Copy)]
struct CounterReading {
    number: ContextId,
    event: EventTypeId,
    count: u64,
    value: u64,
}

#[derive(Default)]
struct CounterReadings {
    /// By the counter's address.
    cells: FxHashMap<usize, CounterReading>,
    /// Counters of the VM's own objects, with `alloc=all`.
    by_type: FxHashMap<usize, CounterReading>,
}

/// Why allocations of the current thread cannot be counted. `None`: they can.
pub fn refusal_reason(counting: &AgentCounting, state: &ThreadState) -> Option<&'static str> {
    let options = &counting.options;
    if !counting.is_live() {
        Some("the agent is not recording yet")
    } else if options.burst.is_some() {
        Some("the agent counts in bursts only (burst=)")
    } else if !counting.event_mask.is_enabled(event_mask::ALLOC) {
        Some(
            "the agent does not count every allocation now: it wants events=alloc, and no `lucce ctl stop`",
        )
    } else if options.instrument != InstrumentScope::All || !options.filter.is_open() {
        Some("the agent counts in some classes only (instrument=, include=, exclude=)")
    } else if state.is_virtual {
        Some("this is a virtual thread, whose events are counted with those of others")
    } else {
        None
    }
}

/// Dropped events of the whole JVM whose thread is unknown.
fn dropped_by_all(counting: &AgentCounting) -> u64 {
    counting.counts.events_dropped.load(Ordering::Relaxed)
}

impl AllocationMarks {
    /// Begins a mark. `with_tasks`: work that the code hands to other threads counts as well.
    pub fn begin_mark(
        &self,
        counting: &AgentCounting,
        env: JniEnvironment,
        (state, with_tasks): (&ThreadState, bool),
    ) -> MarkStart {
        let address = std::ptr::from_ref(state) as usize;
        let measurement = match with_tasks && knows_origins(counting) {
            false => None,
            true => {
                let measurement = self.lock().take_measurement(counting);
                if measurement.is_none() {
                    return MarkStart::TooMany;
                }
                measurement
            }
        };
        if measurement.is_some() {
            counting.event_mask.follow_tasks(true);
        }
        let others = with_tasks.then(|| OtherThreadCounts::read_all(counting));
        let lane = current_counters(counting, env, state);
        let mark = AllocationMark {
            state: address,
            counted: CounterReadings::read_counters(&lane),
            dropped: lane.dropped_events(),
            dropped_by_all: dropped_by_all(counting),
            earlier: MarkCounts::default(),
            is_stopped: false,
            own_counters: Vec::from_iter(lane.id),
            others,
            measurement,
            unfollowed: counting.tasks.unfollowed.load(Ordering::Relaxed),
        };
        drop(lane);
        let mut open = self.lock();
        open.last += 1;
        let number = open.last;
        open.marks.insert(number, mark);
        self.open_count.store(open.marks.len(), Ordering::Relaxed);
        MarkStart::Mark(number)
    }

    /// The call site that must run the code of a mark. `None`: any.
    pub fn measurement_of_mark(&self, mark: u64) -> Option<usize> {
        self.lock().marks.get(&mark)?.measurement
    }

    /// The current thread has run the code of a mark to its end. Its further events do not count.
    pub fn stop_mark(
        &self,
        counting: &AgentCounting,
        env: JniEnvironment,
        (state, number): (&ThreadState, u64),
    ) {
        let lane = current_counters(counting, env, state);
        let mut open = self.lock();
        if let Some(mark) = open.marks.get_mut(&number)
            && mark.state == std::ptr::from_ref(state) as usize
        {
            mark.keep_counts(&lane);
            mark.is_stopped = true;
        }
    }

    /// Called before the current thread changes its counters.
    pub fn leave_counters(
        &self,
        counting: &AgentCounting,
        env: JniEnvironment,
        state: &ThreadState,
    ) {
        self.for_each_own(state, |mark| {
            let lane = current_counters(counting, env, state);
            if !mark.is_stopped {
                mark.keep_counts(&lane);
            }
        });
    }

    /// Called after the thread has changed to other counters, or back to earlier ones.
    pub fn enter_counters(
        &self,
        counting: &AgentCounting,
        env: JniEnvironment,
        state: &ThreadState,
    ) {
        self.for_each_own(state, |mark| {
            let lane = current_counters(counting, env, state);
            mark.counted = CounterReadings::read_counters(&lane);
            mark.dropped = lane.dropped_events();
        });
    }

    /// Applies `each` to the open marks of the current thread.
    fn for_each_own(&self, state: &ThreadState, mut each: impl FnMut(&mut AllocationMark)) {
        // Relaxed: the number includes this thread's own marks.
        if self.open_count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let address = std::ptr::from_ref(state) as usize;
        let mut open = self.lock();
        let own = open.marks.values_mut().filter(|mark| mark.state == address);
        own.for_each(&mut each);
    }

    /// The current thread hands a task or a thread to others in a context. `is_plain`: the object does not report whether it has run.
    pub fn hand_task(
        &self,
        counting: &AgentCounting,
        env: JniEnvironment,
        (task, number): (jobject, ContextId),
        is_plain: bool,
    ) {
        let Some(whose) = self.lock_ownership().resolve_context(counting, number) else {
            return;
        };
        if whose.owners.is_empty() || whose.adds_worker {
            return;
        }
        let mut open = self.lock();
        for (at, measurement) in open.measurements.0.iter_mut().enumerate() {
            if !whose.owners.contains(at) || measurement.use_state != UseState::Open {
                continue;
            }
            if !is_plain {
                measurement.handed.push(env.new_global(task));
            }
        }
        if is_plain {
            open.plain.push_back(PlainTask {
                object: env.new_global(task),
                whose: whose.owners,
            });
        }
    }

    /// Removes a task that an executor has just refused.
    pub fn take_back_task(&self, env: JniEnvironment, task: jobject) {
        let mut open = self.lock();
        let is_it = |plain: &PlainTask| env.is_same(plain.object, task);
        let plain = open.plain.iter().rposition(is_it);
        if let Some(plain) = plain.and_then(|at| open.plain.remove(at)) {
            env.delete_global(plain.object);
            return;
        }
        for measurement in &mut open.measurements.0 {
            let handed = &mut measurement.handed;
            if let Some(at) = handed.iter().rposition(|known| env.is_same(*known, task)) {
                env.delete_global(handed.swap_remove(at));
            }
        }
    }

    /// The current thread begins to run a task in the frame with this slot. `number`: the context that the task carries; unknown if
    /// the task is plain.
    pub fn begin_task(
        &self,
        counting: &AgentCounting,
        env: JniEnvironment,
        (state, slot): (&ThreadState, usize),
        (task, number): (jobject, ContextId),
    ) {
        let known = match number {
            ContextId::UNKNOWN => None,
            number => self.lock_ownership().resolve_context(counting, number),
        };
        let Some(thread) = counting.jvmti.current_thread() else {
            return;
        };
        let address = std::ptr::from_ref(state) as usize;
        let mut open = self.lock();
        let whose = match known {
            Some(whose) => whose.owners,
            None => open.take_plain(env, task),
        };
        open.end_tasks_from(env, address, slot);
        if !whose.is_empty() {
            let running = open.running.entry(address).or_insert_with(|| RunningTasks {
                thread: env.new_global(thread),
                tasks: Vec::new(),
            });
            if !env.is_same(running.thread, thread) {
                // The thread that had its state here has ended.
                env.delete_global(running.thread);
                running.thread = env.new_global(thread);
                running.tasks.clear();
            }
            running.tasks.push((slot, whose));
        }
        drop(open);
        env.delete_local(thread);
    }

    /// The current thread has finished the task of the frame with this slot.
    pub fn end_task(&self, env: JniEnvironment, state: &ThreadState, slot: usize) {
        let address = std::ptr::from_ref(state) as usize;
        self.lock().end_tasks_from(env, address, slot);
    }

    /// Tasks that the code of a mark has handed to others since the last call, as global references that the caller must delete.
    /// Also the number of its tasks that run, and of its plain tasks that wait.
    pub fn take_handed(
        &self,
        counting: &AgentCounting,
        env: JniEnvironment,
        mark: u64,
    ) -> (Vec<jobject>, u64) {
        let measurement = self.measurement_of_mark(mark);
        let Some(at) = measurement else {
            return (Vec::new(), 0);
        };
        self.end_finished_tasks(counting, env, at);
        let mut open = self.lock();
        let waiting = open
            .plain
            .iter()
            .filter(|plain| plain.whose.contains(at))
            .count();
        let running = open.running.values().flat_map(|running| &running.tasks);
        let running = running.filter(|(_, whose)| whose.contains(at)).count();
        let handed = open.measurements.0.get_mut(at);
        let handed = handed.map(|of| std::mem::take(&mut of.handed));
        (handed.unwrap_or_default(), (waiting + running) as u64)
    }

    /// Ends tasks of threads in which no frame runs a task any more: the end of a task of a `ForkJoinPool` has no hook.
    fn end_finished_tasks(
        &self,
        counting: &AgentCounting,
        env: JniEnvironment,
        measurement: usize,
    ) {
        let mut threads = Vec::new();
        for (address, running) in &self.lock().running {
            if running
                .tasks
                .iter()
                .any(|(_, whose)| whose.contains(measurement))
            {
                threads.push((
                    *address,
                    env.new_local(running.thread),
                    running.tasks.clone(),
                ));
            }
        }
        for (address, thread, tasks) in threads {
            let runs_tasks = AllocationMarks::runs_tasks(counting, env, thread);
            env.delete_local(thread);
            let mut open = self.lock();
            let is_unchanged = |running: &RunningTasks| running.tasks == tasks;
            if !runs_tasks && open.running.get(&address).is_some_and(is_unchanged) {
                open.end_tasks_from(env, address, 0);
            }
        }
    }

    /// Whether a frame of a thread may run a task.
    fn runs_tasks(counting: &AgentCounting, env: JniEnvironment, thread: jobject) -> bool {
        const MOST_FRAMES: usize = 4096;
        let empty = FrameInfo {
            method: std::ptr::null_mut(),
            location: 0,
        };
        let mut frames = vec![empty; MOST_FRAMES];
        let Ok(found) = counting.jvmti.read_stack(thread, &mut frames) else {
            // The thread has ended.
            return false;
        };
        let frames = frames.get(..found).unwrap_or_default();
        let methods = frames.iter().map(|frame| {
            let method = counting.frames.resolve_method(counting, env, frame.method);
            match method.kind {
                MethodKind::Known(id) => MethodId(id),
                // Including a helper that reports the begin of the task.
                _ => MethodId(0),
            }
        });
        found == MOST_FRAMES || any_runs_task(counting, &methods.collect::<Vec<_>>())
    }

    /// Ends a mark and returns its result as text.
    ///
    /// Line 1: the number of dropped events. Line 2: why the counts are incomplete, or empty. Then a line for each context: number,
    /// objects, bytes and type. `left_running`: work that the code has started continues. `None`: the mark does not belong to this
    /// thread, or counting has ended.
    pub fn end_mark(
        &self,
        counting: &AgentCounting,
        env: JniEnvironment,
        (state, number, left_running): (Option<&ThreadState>, u64, bool),
    ) -> Option<String> {
        let mut mark = self.lock().marks.remove(&number)?;
        let mut cells = Vec::new();
        let told = state.and_then(|state| {
            let is_own = mark.state == std::ptr::from_ref(state) as usize;
            let counts = is_own && refusal_reason(counting, state).is_none();
            counts.then(|| {
                if !mark.is_stopped {
                    let lane = current_counters(counting, env, state);
                    mark.keep_counts(&lane);
                }
                let told = self.sum_up(counting, &mark);
                let text = told.to_text(counting, env);
                cells = told.cells;
                text
            })
        });
        let mut open = self.lock();
        self.open_count.store(open.marks.len(), Ordering::Relaxed);
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
                env.delete_global(global);
            }
        }
        let is_followed = |measurement: &MeasurementSlot| measurement.use_state == UseState::Open;
        if !open.measurements.0.iter().any(is_followed) {
            for plain in std::mem::take(&mut open.plain) {
                env.delete_global(plain.object);
            }
            for running in std::mem::take(&mut open.running).into_values() {
                env.delete_global(running.thread);
            }
            counting.event_mask.follow_tasks(false);
        }
        told
    }

    fn sum_up(&self, counting: &AgentCounting, mark: &AllocationMark) -> MarkReport {
        let mut told = MarkReport {
            dropped: dropped_by_all(counting).wrapping_sub(mark.dropped_by_all)
                + mark.earlier.dropped,
            by_type: mark.earlier.by_type.clone(),
            ..MarkReport::default()
        };
        let mut belongings = self.lock_ownership();
        // A thread that waits for its own tasks may run tasks of others.
        let mut is_foreign = |number: ContextId| {
            mark.measurement.is_some_and(|at| {
                let whose = belongings
                    .resolve_context(counting, number)
                    .unwrap_or_default();
                whose.hosts.contains(at) && !whose.owners.contains(at)
            })
        };
        let own = mark.earlier.made.iter();
        told.made
            .extend(own.filter(|made| !is_foreign(made.number)));
        let changes = mark
            .others
            .as_ref()
            .map(|others| others.find_changes(counting, &mark.own_counters));
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
            match belongings.resolve_context(counting, number) {
                None => told.dropped += change.counts.count.max(1),
                Some(whose) if whose.owners.contains(measurement) => {
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

    fn lock_ownership(&self) -> MutexGuard<'_, OwnershipResolver> {
        self.ownership.lock()
    }

    fn lock(&self) -> MutexGuard<'_, OpenMarks> {
        self.open.lock()
    }
}

impl CounterReadings {
    fn read_counters(lane: &ThreadCounters) -> CounterReadings {
        let mut counted = CounterReadings::default();
        lane.for_each_counter(|cell, [number, count, value]| {
            let (number, event) = (ContextId(number), EventTypeId::default());
            let counts = CounterReading {
                number,
                event,
                count,
                value,
            };
            counted.cells.insert(cell, counts);
        });
        lane.for_each_event_counter(|cell, [number, event, count, value]| {
            let counts = CounterReading {
                number: ContextId(number),
                // The upper half is zero.
                event: EventTypeId(event as u32),
                count,
                value,
            };
            counted.by_type.insert(cell, counts);
        });
        counted
    }
}

/// Differences between two readings.
fn subtract_readings<'a>(
    now: &'a FxHashMap<usize, CounterReading>,
    before: &'a FxHashMap<usize, CounterReading>,
) -> impl Iterator<Item = CounterReading> + 'a {
    now.iter().filter_map(|(cell, counts)| {
        let old = before.get(cell);
        let count = counts.count.wrapping_sub(old.map_or(0, |old| old.count));
        let value = counts.value.wrapping_sub(old.map_or(0, |old| old.value));
        (count != 0 || value != 0).then_some(CounterReading {
            count,
            value,
            ..*counts
        })
    })
}

impl AllocationMark {
    /// Adds the events since the last reading to the mark.
    fn keep_counts(&mut self, lane: &ThreadCounters) {
        let since = self.counts_since(lane);
        self.earlier.made.extend(since.made);
        self.earlier.by_type.extend(since.by_type);
        self.earlier.dropped += since.dropped;
        self.own_counters.extend(lane.id);
    }

    /// Events since the mark began, or since the thread changed to these counters.
    fn counts_since(&self, lane: &ThreadCounters) -> MarkCounts {
        let now = CounterReadings::read_counters(lane);
        // A missing counter belonged to a number that has left the graph. Its last count is unknown.
        let is_gone = |cell: &&usize| !now.cells.contains_key(*cell);
        let gone = self.counted.cells.keys().filter(is_gone).count() as u64;
        MarkCounts {
            made: subtract_readings(&now.cells, &self.counted.cells).collect(),
            by_type: subtract_readings(&now.by_type, &self.counted.by_type).collect(),
            dropped: lane.dropped_events().wrapping_sub(self.dropped) + gone,
        }
    }
}

/// Why the counts lack events of these threads.
fn unknown_reason(knows_origins: bool, events: &BTreeMap<String, u64>) -> String {
    let objects: u64 = events.values().sum();
    let names: Vec<&str> = events.keys().take(MAX_NAMES).map(|name| &**name).collect();
    let more = match events.len() > MAX_NAMES {
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

/// Whether contexts of tasks and threads continue where they were submitted and started.
fn knows_origins(counting: &AgentCounting) -> bool {
    counting.options.hooked_events().has_kind(&THREAD)
        && counting.event_mask.is_enabled(THREAD.mask_bit)
        && counting.tracking.is_lazy()
}

impl OpenMarks {
    /// The first call site that is free and whose earlier work has ended. `None`: all are in use.
    fn take_measurement(&mut self, counting: &AgentCounting) -> Option<usize> {
        for (at, measurement) in self.measurements.0.iter_mut().enumerate() {
            if measurement.use_state != UseState::Free {
                continue;
            }
            // Work that continued after the end, such as a cancelled task, has counted since.
            if measurement
                .counted
                .iter()
                .any(|(place, all)| place.read_count(counting) != *all)
            {
                measurement.use_state = UseState::LeftRunning;
                continue;
            }
            measurement.use_state = UseState::Open;
            return Some(at);
        }
        None
    }

    /// Removes a plain task that begins. Returns its owners.
    fn take_plain(&mut self, env: JniEnvironment, task: jobject) -> MeasurementSet {
        let is_it = |plain: &PlainTask| env.is_same(plain.object, task);
        let plain = self.plain.iter().position(is_it);
        let plain = plain.and_then(|at| self.plain.remove(at));
        plain.map_or(MeasurementSet::default(), |plain| {
            env.delete_global(plain.object);
            plain.whose
        })
    }

    /// Ends the tasks in the frame with this slot and in frames above it.
    fn end_tasks_from(&mut self, env: JniEnvironment, address: usize, slot: usize) {
        if let Some(running) = self.running.get_mut(&address) {
            running.tasks.retain(|(at, _)| *at < slot);
            if running.tasks.is_empty()
                && let Some(running) = self.running.remove(&address)
            {
                env.delete_global(running.thread);
            }
        }
    }
}

impl CounterLocation {
    fn read_count(self, counting: &AgentCounting) -> u64 {
        let CounterLocation {
            is_by_type,
            block,
            at,
        } = self;
        let load = |word: &AtomicU64| u64::from_le(word.load(Ordering::Relaxed));
        let count = match is_by_type {
            true => {
                let blocks = counting.lock_event_counter_blocks();
                blocks
                    .get(block)
                    .and_then(|block| block.get(at))
                    .map(|cell| load(&cell.count))
            }
            false => {
                let blocks = counting.lock_counter_blocks();
                blocks
                    .get(block)
                    .and_then(|block| block.get(at))
                    .map(|cell| load(&cell.count))
            }
        };
        count.unwrap_or(0)
    }
}

impl OtherThreadCounts {
    /// Readings of all counters.
    fn read_all(counting: &AgentCounting) -> OtherThreadCounts {
        // Relaxed: each number stands for itself.
        let load = |word: &AtomicU64| u64::from_le(word.load(Ordering::Relaxed));
        let cells = counting.lock_counter_blocks();
        let cells = cells.iter().map(|block| {
            let counts = block
                .iter()
                .map(|cell| [load(&cell.count), load(&cell.bytes)]);
            counts.collect()
        });
        let cells = cells.collect();
        let by_type = counting.lock_event_counter_blocks();
        let by_type = by_type.iter().map(|block| {
            let counts = block
                .iter()
                .map(|cell| [load(&cell.count), load(&cell.value)]);
            counts.collect()
        });
        OtherThreadCounts {
            cells,
            by_type: by_type.collect(),
        }
    }

    /// Counters of other threads that have changed. Counters by type: only of allocations.
    fn find_changes(&self, counting: &AgentCounting, own: &[ThreadId]) -> Vec<CounterChange> {
        let now = OtherThreadCounts::read_all(counting);
        let allocations = counting.event_types.details_of_kind(KIND);
        let mut changes = Vec::new();
        let mut add =
            |place: CounterLocation, thread, counts: CounterReading, before: Option<&[u64; 2]>| {
                let [count, value] = before.copied().unwrap_or_default();
                let since = CounterReading {
                    count: counts.count.wrapping_sub(count),
                    value: counts.value.wrapping_sub(value),
                    ..counts
                };
                if since.count != 0 || since.value != 0 {
                    changes.push(CounterChange {
                        thread,
                        place,
                        all: counts.count,
                        counts: since,
                    });
                }
            };
        let old = |blocks: &'_ [Vec<[u64; 2]>], place: CounterLocation| {
            blocks
                .get(place.block)
                .and_then(|block| block.get(place.at))
                .copied()
        };
        let of_cells = counting.lock_counter_blocks();
        for (block, cells) in of_cells.iter().enumerate() {
            if own.contains(&cells.thread()) {
                continue;
            }
            for (at, cell) in cells.iter().enumerate() {
                let place = CounterLocation {
                    is_by_type: false,
                    block,
                    at,
                };
                let Some([count, value]) = old(&now.cells, place) else {
                    continue;
                };
                let counts = CounterReading {
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
        for (block, cells) in counting.lock_event_counter_blocks().iter().enumerate() {
            if own.contains(&cells.thread()) {
                continue;
            }
            for (at, cell) in cells.iter().enumerate() {
                let place = CounterLocation {
                    is_by_type: true,
                    block,
                    at,
                };
                let event = cell.event_type();
                let Some([count, value]) = old(&now.by_type, place) else {
                    continue;
                };
                if allocations.contains_key(&event) {
                    let counts = CounterReading {
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

/// Sums up readings of one context and type.
fn sum_readings(parts: &[CounterReading]) -> impl Iterator<Item = CounterReading> {
    let mut sums: FxHashMap<(ContextId, EventTypeId), CounterReading> = FxHashMap::default();
    for counts in parts {
        let key = (counts.number, counts.event);
        let sum = sums.entry(key).or_insert(CounterReading {
            count: 0,
            value: 0,
            ..*counts
        });
        sum.count = sum.count.wrapping_add(counts.count);
        sum.value = sum.value.wrapping_add(counts.value);
    }
    sums.into_values()
}

impl MarkReport {
    /// The caller holds no lock: measuring sizes creates objects in this thread.
    fn to_text(&self, counting: &AgentCounting, env: JniEnvironment) -> String {
        let mut lost = self.dropped;
        let mut lines = String::new();
        let mut line = |made: CounterReading, bytes: u64, of: &str| {
            let _ = writeln!(lines, "{:x} {} {bytes} {of}", made.number.0, made.count);
        };
        for made in sum_readings(&self.made) {
            match find_allocation(counting, env, made.number) {
                SiteAllocation::Object { size, of } => {
                    line(made, made.value + made.count * size, &of)
                }
                SiteAllocation::Nothing => {}
                SiteAllocation::Unknown => lost += made.count.max(1),
            }
        }
        let details = counting.event_types.details_of_kind(KIND);
        for made in sum_readings(&self.by_type) {
            if let Some(of) = details.get(&made.event) {
                line(made, made.value, of);
            }
        }
        format!("{lost}\n{}\n{lines}", self.reasons.join("; "))
    }
}

enum SiteAllocation {
    /// Bytes of each object in addition to the counter's sum, and the descriptor.
    Object {
        size: u64,
        of: String,
    },
    /// A site of other events, which have counters as well.
    Nothing,
    Unknown,
}

fn find_allocation(
    counting: &AgentCounting,
    env: JniEnvironment,
    number: ContextId,
) -> SiteAllocation {
    let frames = counting.encoder.decode_context(number, MethodId::EVENT);
    let Some(site) = frames
        .ok()
        .and_then(|frames| frames.first().map(|frame| frame.site.0))
    else {
        return SiteAllocation::Unknown;
    };
    let book = counting.registry();
    let Some(info) = book.site(site) else {
        return SiteAllocation::Unknown;
    };
    let of = match info.kind {
        RegisteredSiteKind::New(of) | RegisteredSiteKind::Array(of) => {
            book.name_text(of).to_string()
        }
        _ => return SiteAllocation::Nothing,
    };
    drop(book);
    let size = find_site_size(counting, env, site).unwrap_or(0);
    SiteAllocation::Object { size, of }
}
