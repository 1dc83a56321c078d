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
//!
//! `counts` reads and compares counters, `tasks` follows the tasks of measured code, and `report` writes the result.
#![allow(unsafe_code, reason = "global references of the VM's")]

mod counts;
mod report;
mod tasks;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicUsize, Ordering};

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::ContextId;
use lucce_instrument::kinds::{ALLOC, THREAD};
use lucce_jvmti::JniEnvironment;
use lucce_tracelog::ThreadId;

use crate::counting::CountingParts;
use crate::events::ownership::{MAX_MEASUREMENTS, OwnershipResolver};
use crate::memory::locks::WatchedMutex;
use crate::options::InstrumentScope;
use crate::thread::ThreadState;
use crate::thread::counter_access::current_counters;
use crate::thread::thread_counters::ThreadCounters;

use counts::{
    CounterChange, CounterLocation, CounterReadings, MarkCounts, OtherThreadCounts,
    subtract_readings,
};
pub use report::MarkSums;
use report::{MarkReport, unknown_reason};
use tasks::{PlainTask, RunningTasks};

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
    /// When it ended, work that its code had started still ran. New work could not be distinguished from it.
    LeftRunning,
}

// SAFETY: global references may be used by any thread.
unsafe impl Send for MeasurementSlot {}
/// How a mark ends.
#[derive(Clone, Copy)]
pub struct EndedMark {
    pub number: u64,
    /// Work that the code has started continues.
    pub left_running: bool,
}

/// Whose the events of another thread's counter are.
enum ChangeOwner {
    Mark,
    /// The name of the thread that ran the task.
    UnknownSubmitter(String),
    UnknownContext,
    OtherCode,
}

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

/// Why allocations of the current thread cannot be counted. `None`: they can.
pub fn refusal_reason(agent: CountingParts<'_>, state: &ThreadState) -> Option<&'static str> {
    let options = &agent.core.options;
    if !agent.core.is_live() {
        Some("the agent is not recording yet")
    } else if options.burst.is_some() {
        Some("the agent counts in bursts only (burst=)")
    } else if !agent.core.event_mask.is_enabled(ALLOC.mask_bit) {
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
fn dropped_by_all(agent: CountingParts<'_>) -> u64 {
    agent.core.counts.events_dropped.load(Ordering::Relaxed)
}

impl AllocationMarks {
    /// Begins a mark. `with_tasks`: work that the code hands to other threads counts as well.
    pub fn begin_mark(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        (state, with_tasks): (&ThreadState, bool),
    ) -> MarkStart {
        let address = std::ptr::from_ref(state) as usize;
        let measurement = match with_tasks && knows_origins(agent) {
            false => None,
            true => {
                let measurement = self.lock().take_measurement(agent);
                if measurement.is_none() {
                    return MarkStart::TooMany;
                }
                measurement
            }
        };
        if measurement.is_some() {
            agent.core.event_mask.follow_tasks(true);
        }
        let others = with_tasks.then(|| OtherThreadCounts::read_all(agent));
        let counters = current_counters(agent.thread_parts(), env, state);
        let mark = AllocationMark {
            state: address,
            counted: CounterReadings::read_counters(&counters),
            dropped: counters.dropped_events(),
            dropped_by_all: dropped_by_all(agent),
            earlier: MarkCounts::default(),
            is_stopped: false,
            own_counters: Vec::from_iter(counters.id),
            others,
            measurement,
            unfollowed: agent.stack.tasks.unfollowed.load(Ordering::Relaxed),
        };
        drop(counters);
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
        agent: CountingParts<'_>,
        env: JniEnvironment,
        (state, number): (&ThreadState, u64),
    ) {
        let counters = current_counters(agent.thread_parts(), env, state);
        let mut open = self.lock();
        if let Some(mark) = open.marks.get_mut(&number)
            && mark.state == std::ptr::from_ref(state) as usize
        {
            mark.keep_counts(&counters);
            mark.is_stopped = true;
        }
    }

    /// Called before the current thread changes its counters.
    pub fn leave_counters(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &ThreadState,
    ) {
        self.for_each_own(state, |mark| {
            let counters = current_counters(agent.thread_parts(), env, state);
            if !mark.is_stopped {
                mark.keep_counts(&counters);
            }
        });
    }

    /// Called after the thread has changed to other counters, or back to earlier ones.
    pub fn enter_counters(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &ThreadState,
    ) {
        self.for_each_own(state, |mark| {
            let counters = current_counters(agent.thread_parts(), env, state);
            mark.counted = CounterReadings::read_counters(&counters);
            mark.dropped = counters.dropped_events();
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

    /// Ends a mark and returns its result as text.
    ///
    /// Line 1: the number of dropped events. Line 2: why the counts are incomplete, or empty. Then a line for each context: number,
    /// objects, bytes and type. `None`: the mark does not belong to this thread, or counting has ended.
    pub fn end_mark(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: Option<&ThreadState>,
        ended: EndedMark,
    ) -> Option<String> {
        self.finish_mark(agent, env, (state, ended), |report| {
            report.to_text(agent, env)
        })
    }

    /// Ends a mark and returns its sums. `None`: as of [`AllocationMarks::end_mark`].
    pub fn sum_mark(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: Option<&ThreadState>,
        ended: EndedMark,
    ) -> Option<MarkSums> {
        self.finish_mark(agent, env, (state, ended), |report| {
            report.sum_events(agent, env)
        })
    }

    /// Ends a mark and returns what `read_report` makes of its counts.
    fn finish_mark<T>(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        (state, ended): (Option<&ThreadState>, EndedMark),
        read_report: impl FnOnce(&MarkReport) -> T,
    ) -> Option<T> {
        let mut mark = self.lock().marks.remove(&ended.number)?;
        let mut cells = Vec::new();
        let result = state.and_then(|state| {
            let is_own = mark.state == std::ptr::from_ref(state) as usize;
            let counts = is_own && refusal_reason(agent, state).is_none();
            counts.then(|| {
                if !mark.is_stopped {
                    let counters = current_counters(agent.thread_parts(), env, state);
                    mark.keep_counts(&counters);
                }
                let report = self.sum_marked_allocations(agent, &mark);
                let result = read_report(&report);
                cells = report.cells;
                result
            })
        });
        let mut open = self.lock();
        self.open_count.store(open.marks.len(), Ordering::Relaxed);
        if let Some(measurement) = mark
            .measurement
            .and_then(|at| open.measurements.0.get_mut(at))
        {
            measurement.use_state = match ended.left_running {
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
            agent.core.event_mask.follow_tasks(false);
        }
        result
    }

    fn sum_marked_allocations(
        &self,
        agent: CountingParts<'_>,
        mark: &AllocationMark,
    ) -> MarkReport {
        let mut report = MarkReport {
            dropped: dropped_by_all(agent).wrapping_sub(mark.dropped_by_all) + mark.earlier.dropped,
            by_type: mark.earlier.by_type.clone(),
            ..MarkReport::default()
        };
        let mut ownership = self.lock_ownership();
        for reading in &mark.earlier.allocations {
            if !mark.is_only_host(agent, &mut ownership, reading.number) {
                report.allocations.push(*reading);
            }
        }
        let others = mark.others.as_ref();
        let changes = others.map(|others| others.find_changes(agent, &mark.own_counters));
        let mut unknown: BTreeMap<String, u64> = BTreeMap::new();
        for change in changes.into_iter().flatten() {
            match mark.find_owner(agent, &mut ownership, &change) {
                ChangeOwner::Mark => report.add_change(change),
                ChangeOwner::UnknownSubmitter(thread) => {
                    *unknown.entry(thread).or_default() += change.counts.count;
                }
                ChangeOwner::UnknownContext => report.dropped += change.counts.count.max(1),
                ChangeOwner::OtherCode => {}
            }
        }
        if !unknown.is_empty() {
            let reason = unknown_reason(mark.measurement.is_some(), &unknown);
            report.reasons.push(reason);
        }
        let unfollowed = agent.stack.tasks.unfollowed.load(Ordering::Relaxed);
        if mark.measurement.is_some() && unfollowed != mark.unfollowed {
            let reason = "tasks were submitted at too many places, so whose they are is not known";
            report.reasons.push(reason.into());
        }
        report
    }

    fn lock_ownership(&self) -> MutexGuard<'_, OwnershipResolver> {
        self.ownership.lock()
    }

    fn lock(&self) -> MutexGuard<'_, OpenMarks> {
        self.open.lock()
    }
}

impl AllocationMark {
    /// Whether the context's code belongs to others, and only ran in this thread while it waited for its own tasks.
    fn is_only_host(
        &self,
        agent: CountingParts<'_>,
        ownership: &mut OwnershipResolver,
        number: ContextId,
    ) -> bool {
        self.measurement.is_some_and(|at| {
            let whose = ownership.resolve_context(agent, number);
            let whose = whose.unwrap_or_default();
            whose.hosts.contains(at) && !whose.owners.contains(at)
        })
    }

    /// Whose the events of another thread's counter are.
    fn find_owner(
        &self,
        agent: CountingParts<'_>,
        ownership: &mut OwnershipResolver,
        change: &CounterChange,
    ) -> ChangeOwner {
        let thread = || agent.counters.thread_name(change.thread);
        let Some(measurement) = self.measurement else {
            let thread = thread();
            return match INFRASTRUCTURE.contains(&&*thread) {
                true => ChangeOwner::OtherCode,
                false => ChangeOwner::UnknownSubmitter(thread),
            };
        };
        match ownership.resolve_context(agent, change.counts.number) {
            None => ChangeOwner::UnknownContext,
            Some(whose) if whose.owners.contains(measurement) => ChangeOwner::Mark,
            Some(whose) if whose.is_unknown_task => ChangeOwner::UnknownSubmitter(thread()),
            Some(_) => ChangeOwner::OtherCode,
        }
    }

    /// Adds the events since the last reading to the mark.
    fn keep_counts(&mut self, counters: &ThreadCounters) {
        let since = self.counts_since(counters);
        self.earlier.allocations.extend(since.allocations);
        self.earlier.by_type.extend(since.by_type);
        self.earlier.dropped += since.dropped;
        self.own_counters.extend(counters.id);
    }

    /// Events since the mark began, or since the thread changed to these counters.
    fn counts_since(&self, counters: &ThreadCounters) -> MarkCounts {
        let now = CounterReadings::read_counters(counters);
        // A missing counter belonged to a number that has left the graph. Its last count is unknown.
        let is_gone = |cell: &&usize| !now.cells.contains_key(*cell);
        let gone = self.counted.cells.keys().filter(is_gone).count() as u64;
        MarkCounts {
            allocations: subtract_readings(&now.cells, &self.counted.cells).collect(),
            by_type: subtract_readings(&now.by_type, &self.counted.by_type).collect(),
            dropped: counters.dropped_events().wrapping_sub(self.dropped) + gone,
        }
    }
}

/// Whether contexts of tasks and threads continue where they were submitted and started.
fn knows_origins(agent: CountingParts<'_>) -> bool {
    agent.core.options.hooked_events().has_kind(&THREAD)
        && agent.core.event_mask.is_enabled(THREAD.mask_bit)
        && agent.counters.tracking.is_lazy()
}

impl OpenMarks {
    /// The first call site that is free and whose earlier work has ended. `None`: all are in use.
    fn take_measurement(&mut self, agent: CountingParts<'_>) -> Option<usize> {
        for (at, measurement) in self.measurements.0.iter_mut().enumerate() {
            if measurement.use_state != UseState::Free {
                continue;
            }
            // Work that continued after the end, such as a cancelled task, has counted since.
            if measurement
                .counted
                .iter()
                .any(|(place, all)| place.read_count(agent) != *all)
            {
                measurement.use_state = UseState::LeftRunning;
                continue;
            }
            measurement.use_state = UseState::Open;
            return Some(at);
        }
        None
    }
}
