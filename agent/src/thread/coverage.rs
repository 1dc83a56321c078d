//! Coverage of allocations: beside its own counters, the log has the bytes that the VM allocated for each thread.
//!
//! A thread is *followed* from the moment at which events are recorded, or from its start. Its entry keeps what the
//! VM had counted by then. If the VM reports each allocation and the thread is older (`events=alloc=all` of an agent
//! without hooks), that moment is the thread's first event. The last moment is its last event before the agent
//! leaves, because a thread keeps running while the agent asks. The log's counters are written
//! * when the VM ends;
//! * from time to time, by an agent thread that only reads memory: for a JVM that is killed. The interval is a
//!   thousandth of the run time so far, or more if a reading takes much CPU time. It is at most a tenth of the run
//!   time, and ten seconds ([`pause_after`]).
//!
//! With the VM's bytes, a reading writes the sum of the agent's counters at the same moment. The counters continue
//! until the JVM is killed, so a reader compares two sums of one moment.
//!
//! Allocations of the agent itself in a thread of the program are excluded
//! ([`CoverageTracker::exclude_allocations`]). If only some classes or some periods are counted, the sums cannot be
//! compared. Then nothing is followed, and the log has the reason.
//!
//! The VM adds the allocations of virtual threads to their carriers.
#![allow(unsafe_code, reason = "reads what the VM keeps of its threads")]

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::{JNIEnv, jobject};
use lucce_instrument::kinds::ALLOC;
use lucce_tracelog::{CounterBlock as CellBlock, EventCounter, EventTypeId, ThreadId, VmCounter};

use crate::memory::locks::WatchedMutex;
use crate::options::{AgentOptions, LogLevel};
use crate::thread::ThreadParts;
use crate::thread::tags::TagSet;
use crate::thread::thread_counters::ThreadCounters;
use lucce_jvmti::FieldId;
use lucce_jvmti::JniEnvironment;
use lucce_jvmti::clock;
use lucce_jvmti::thread_allocation::{ThreadAllocationReader, VmThread};

/// Counters are added to the log in blocks of this size.
const CELLS: u32 = 64;
/// Bounds of the interval between two readings while the program runs.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(10);
/// The interval is 1/PART of the time since the start. A reading takes at most 1/PART of the interval in CPU time.
const PART: u32 = 1000;
/// Regardless of CPU time, the interval is at most 1/LATEST_PART of the time since the start.
const LATEST_PART: u32 = 10;
/// A reading takes at most 1/LARGEST_LOAD of one CPU, even if the interval then exceeds the bound by [`LATEST_PART`].
const LARGEST_LOAD: u32 = 20;

const CARRIER: &str = "Ljdk/internal/misc/CarrierThread;";

/// The followed threads, and the counters for their bytes in the log.
#[derive(Default)]
pub struct CoverageTracker {
    vm: OnceLock<VmAllocationReader>,
    state: WatchedMutex<CoverageState>,
    /// Whether the agent leaves. A thread that receives an allocation event then stops counting.
    is_leaving: AtomicBool,
}

/// Reads the VM's own counts.
struct VmAllocationReader {
    count: ThreadAllocationReader,
    /// Fields of `Thread`: the address of the VM's thread, and the thread's number.
    at: FieldId,
    number: FieldId,
}

#[derive(Default)]
struct CoverageState {
    followed: HashMap<VmThread, FollowedThread>,
    groups: HashMap<FollowedGroup, FollowedGroupSum>,
    /// Counters for the agent's own sums, by thread id.
    counted: HashMap<ThreadId, VmCounterPlace>,
    /// Types of allocations among the counters by type.
    allocation_types: HashSet<EventTypeId>,
    counter_block: Option<Arc<CellBlock<VmCounter>>>,
    next_counter: usize,
    /// The VM has ended or the agent has left: nothing changes any more.
    is_over: bool,
}

/// Threads that share one counter of the log.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct FollowedGroup {
    /// 0: the agent counted nothing in them.
    thread: ThreadId,
    carriers: bool,
}

/// A followed thread.
struct FollowedThread {
    group: FollowedGroup,
    /// Bytes that the VM had counted at the beginning, plus the agent's own allocations since.
    before: u64,
    number: i64,
    /// The thread has called the agent since it was found, so it lives as long as its entry.
    is_sure: bool,
    /// Bytes that the VM had counted when the agent began to leave.
    until: Option<u64>,
    /// Bytes that the VM had counted at the last reading.
    last: u64,
}

#[derive(Default)]
struct FollowedGroupSum {
    /// Bytes of threads that have ended.
    ended: u64,
    counter: Option<VmCounterPlace>,
}

/// The position of a counter in the log.
type VmCounterPlace = (Arc<CellBlock<VmCounter>>, usize);

/// Sums of the agent's own counters.
#[derive(Clone, Copy, Default)]
struct CountedAllocations {
    bytes: u64,
    /// Events of counters without bytes.
    objects: u64,
}

impl CoverageTracker {
    /// Follows the current thread and all others from now on.
    pub fn start_following(&self, agent: ThreadParts<'static>, env: JniEnvironment) {
        if let Some(reason) = incomparable_reason(&agent.core.options) {
            return log_no_coverage(agent, reason);
        }
        match VmAllocationReader::new(agent, env) {
            None => log_no_coverage(agent, "this VM does not say what it allocates"),
            Some(vm) => {
                let vm = self.vm.get_or_init(|| vm);
                self.follow_all(agent, env, vm);
                start_readings(agent);
            }
        }
    }

    fn follow_all(&self, agent: ThreadParts<'_>, env: JniEnvironment, vm: &VmAllocationReader) {
        let current = vm.count.thread_of_env(env.as_raw());
        let mut state = self.lock_state();
        for thread in agent.core.jvmti.all_threads() {
            let at = vm.vm_thread(env, thread);
            let number = env.get_long(thread, vm.number.as_raw());
            if let Some(before) = vm.count.query_allocated(env.as_raw(), number) {
                let living = state.followed.entry(at).or_insert(FollowedThread {
                    group: FollowedGroup::without_thread(is_carrier(agent, env, thread)),
                    before,
                    number,
                    is_sure: false,
                    until: None,
                    last: 0,
                });
                living.is_sure |= at == current;
            }
            env.delete_local(thread);
        }
    }

    /// Follows `thread`, the current one, from its start.
    pub fn begin_thread(&self, agent: ThreadParts<'_>, env: JniEnvironment, thread: jobject) {
        let Some(vm) = self.vm.get() else { return };
        let carries = is_carrier(agent, env, thread);
        let mut state = self.lock_state();
        let living = state.followed.entry(vm.count.thread_of_env(env.as_raw()));
        living
            .or_insert_with(FollowedThread::new_started)
            .group
            .carriers = carries;
    }

    /// Connects the current thread with the thread id of its counters.
    pub fn assign_counters(&self, counters: &ThreadCounters) {
        let (Some(vm), Some(id), false) = (self.vm.get(), counters.id, counters.is_virtual) else {
            return;
        };
        let thread = vm.count.thread_of_env(counters.env as *mut JNIEnv);
        let mut state = self.lock_state();
        // If native code attaches a thread, the constructor of its `Thread` runs before the thread's start event.
        let living = state
            .followed
            .entry(thread)
            .or_insert_with(FollowedThread::new_started);
        living.is_sure = true;
        // The VM's count is not divided by tags.
        if counters.tags == TagSet::NONE || living.group.thread == ThreadId(0) {
            living.group.thread = id;
        }
    }

    /// Records the first allocation that the VM reports for the current thread, of `size` bytes. From now on the VM
    /// reports each.
    pub fn record_first_allocation(&self, env: JniEnvironment, size: u64) {
        self.update_at_allocation(env, size, |living, before| {
            // All allocations of a thread that started under the agent are counted.
            if living.number != 0 {
                living.before = before;
            }
        });
    }

    /// Whether the agent leaves. Then allocations of the current thread are no longer counted, this object of `size`
    /// bytes included.
    pub fn is_leaving(&self, env: JniEnvironment, size: u64) -> bool {
        let is_leaving = self.is_leaving.load(Ordering::Acquire);
        if is_leaving {
            self.update_at_allocation(env, size, |living, before| {
                living.until.get_or_insert(before);
            });
        }
        is_leaving
    }

    /// Passes to `note` the current thread's entry and the bytes that the VM had counted before it made this object
    /// of `size` bytes.
    fn update_at_allocation(
        &self,
        env: JniEnvironment,
        size: u64,
        note: impl FnOnce(&mut FollowedThread, u64),
    ) {
        let Some(vm) = self.vm.get() else { return };
        let thread = vm.count.thread_of_env(env.as_raw());
        // SAFETY: `thread` is the current thread, which cannot end meanwhile.
        let now = unsafe { vm.count.read_allocated(thread) };
        if let (Some(now), Some(living)) = (now, self.lock_state().followed.get_mut(&thread)) {
            note(living, now.saturating_sub(size));
        }
    }

    /// Adds the sum of the current thread, which has ended, to its group.
    pub fn end_thread(&self, env: JniEnvironment) {
        let Some(vm) = self.vm.get() else { return };
        let thread = vm.count.thread_of_env(env.as_raw());
        let mut state = self.lock_state();
        if let Some(living) = state.followed.remove(&thread) {
            // SAFETY: `thread` is the current thread, which cannot end meanwhile.
            let now = || unsafe { vm.count.read_allocated(thread) };
            let all = living.until.or_else(now).unwrap_or(living.last);
            // The next reading writes the sum, so that all counters are of one moment.
            let sum = state.groups.entry(living.group).or_default();
            sum.ended += all.saturating_sub(living.before);
        }
    }

    /// Writes the final sums, when the VM ends or the agent leaves. No thread is read afterwards.
    pub fn end_all_threads(&self, agent: ThreadParts<'_>, env: JniEnvironment) {
        self.is_leaving.store(true, Ordering::Release);
        self.write_totals(agent, Some(env));
        let mut state = self.lock_state();
        state.followed.clear();
        state.is_over = true;
    }

    /// Writes the current sums to the log. `env` is the current thread's environment. Without it, threads that have
    /// not called the agent are left out.
    pub fn write_totals(&self, agent: ThreadParts<'_>, env: Option<JniEnvironment>) {
        let Some(vm) = self.vm.get() else { return };
        // Outside of the lock, for which beginning and ending threads wait.
        let counted = self.sum_counters(agent);
        let mut state = self.lock_state();
        if state.is_over {
            return;
        }
        let mut sums: HashMap<FollowedGroup, u64> = HashMap::new();
        for (row, sum) in &state.groups {
            sums.insert(*row, sum.ended);
        }
        for (thread, living) in &mut state.followed {
            let all = match (living.is_sure, env) {
                _ if living.until.is_some() => living.until,
                // SAFETY: before a thread ends, `end_thread` takes it out of the list, under this lock.
                (true, _) => unsafe { vm.count.read_allocated(*thread) },
                (false, Some(env)) => vm.count.query_allocated(env.as_raw(), living.number),
                (false, None) => None,
            };
            // If a thread's buffers change too fast to be read, its last value is a lower bound.
            living.last = all.unwrap_or(living.last);
            let since = living.last.saturating_sub(living.before);
            *sums.entry(living.group).or_default() += since;
        }
        for (row, sum) in sums {
            state.set_total(agent, row, sum);
        }
        for (thread, sum) in counted {
            state.set_counted_total(agent, thread, sum);
        }
    }

    /// Sums the agent's allocation counters for each thread id.
    fn sum_counters(&self, agent: ThreadParts<'_>) -> HashMap<ThreadId, CountedAllocations> {
        let mut sums: HashMap<ThreadId, CountedAllocations> = HashMap::new();
        // Relaxed, below: each value is used by itself.
        let load = |word: &AtomicU64| u64::from_le(word.load(Ordering::Relaxed));
        visit_blocks(
            || agent.counters.lock_counter_blocks(),
            |block| {
                let sum = sums.entry(block.thread()).or_default();
                for cell in block.iter() {
                    match load(&cell.bytes) {
                        0 => sum.objects += load(&cell.count),
                        bytes => sum.bytes = sum.bytes.saturating_add(bytes),
                    }
                }
            },
        );
        let types = self.lock_state().allocation_types.clone();
        if !types.is_empty() {
            visit_blocks(
                || agent.counters.lock_event_counter_blocks(),
                |block| {
                    let sum = sums.entry(block.thread()).or_default();
                    let of_allocations = |cell: &&EventCounter| types.contains(&cell.event_type());
                    for cell in block.iter().filter(of_allocations) {
                        sum.bytes = sum.bytes.saturating_add(load(&cell.value));
                    }
                },
            );
        }
        sums
    }

    /// Adds a type whose counters count allocations.
    pub fn add_allocation_type(&self, event: EventTypeId) {
        self.lock_state().allocation_types.insert(event);
    }

    /// Excludes what `make` allocates in the current thread: it belongs to the agent, not to the program.
    pub fn exclude_allocations<T>(&self, env: JniEnvironment, make: impl FnOnce() -> T) -> T {
        let Some(vm) = self.vm.get() else {
            return make();
        };
        let thread = vm.count.thread_of_env(env.as_raw());
        // SAFETY: `thread` is the current thread, which cannot end meanwhile.
        let read = || unsafe { vm.count.read_allocated(thread) };
        let before = read();
        let made = make();
        if let (Some(before), Some(after)) = (before, read())
            && let Some(living) = self.lock_state().followed.get_mut(&thread)
        {
            living.before += after.saturating_sub(before);
        }
        made
    }

    /// Makes the VM give the current thread a new allocation buffer.
    ///
    /// The VM tests for a due sample at the end of a buffer, and sets that end when it gives the buffer to the
    /// thread. A buffer from before sampling was enabled is used up without a test. So the agent fills the rest of it
    /// with an array.
    pub fn renew_buffer(&self, agent: ThreadParts<'_>, env: JniEnvironment) {
        /// Maximum size of the header of a byte array.
        const HEADER: u64 = 24;
        let new = match self.vm.get() {
            Some(_) => None,
            None => VmAllocationReader::new(agent, env),
        };
        let Some(vm) = self.vm.get().or(new.as_ref()) else {
            return;
        };
        // SAFETY: the environment is the current thread's.
        let left = unsafe { vm.count.buffer_left(vm.count.thread_of_env(env.as_raw())) };
        let fillers = [left.checked_sub(HEADER), Some(HEADER)];
        self.exclude_allocations(env, || {
            for bytes in fillers.into_iter().flatten() {
                let length = i32::try_from(bytes).unwrap_or(0);
                if let Some(array) = env.new_bytes(length) {
                    env.delete_local(array);
                }
            }
        });
    }

    fn lock_state(&self) -> MutexGuard<'_, CoverageState> {
        self.state.lock()
    }
}

/// Visits all blocks. The list may grow meanwhile: its lock is held for a few blocks at a time.
pub fn visit_blocks<'a, C>(
    lock: impl Fn() -> MutexGuard<'a, Vec<CellBlock<C>>>,
    mut visit: impl FnMut(&CellBlock<C>),
) where
    C: 'a,
{
    const AT_A_TIME: usize = 64;
    for first in (0..).step_by(AT_A_TIME) {
        let blocks = lock();
        let rest = blocks.get(first..).unwrap_or_default();
        if rest.is_empty() {
            return;
        }
        rest.iter().take(AT_A_TIME).for_each(&mut visit);
    }
}

/// Logs that from now on the agent counts less than the VM.
pub fn record_interruption(agent: ThreadParts<'_>, reason: &str) {
    if agent.counters.coverage.vm.get().is_some() {
        log_no_coverage(agent, reason);
    }
}

fn log_no_coverage(agent: ThreadParts<'_>, reason: &str) {
    agent.core.append_meta("coverage.none", reason);
}

/// The reason why counters cannot be compared with the VM's count.
fn incomparable_reason(options: &AgentOptions) -> Option<&'static str> {
    if !options.events.has_kind(&ALLOC) && options.events.alloc_interval().is_none() {
        return Some("allocations were not counted");
    }
    if options.is_partial() {
        return Some("classes out of scope (instrument=, include=, exclude=) were not counted");
    }
    if options.delay.is_some() {
        return Some("counting began after the start (delay=)");
    }
    options
        .burst
        .is_some()
        .then_some("events were counted in bursts only")
}

impl VmAllocationReader {
    fn new(agent: ThreadParts<'_>, env: JniEnvironment) -> Option<VmAllocationReader> {
        let class = env.find_class(c"java/lang/Thread")?;
        let field = |name| env.field_id(class, name, c"J").map(FieldId::new);
        let fields = (field(c"eetop"), field(c"tid"));
        env.delete_local(class);
        let (Some(at), Some(number)) = fields else {
            return None;
        };
        let thread = agent.core.jvmti.current_thread()?;
        let current = VmThread::from_address(env.get_long(thread, at.as_raw()) as usize);
        env.delete_local(thread);
        // SAFETY: environment and thread are the current thread's.
        let count = unsafe { ThreadAllocationReader::new(env.as_raw(), current) }?;
        Some(VmAllocationReader { count, at, number })
    }

    fn vm_thread(&self, env: JniEnvironment, thread: jobject) -> VmThread {
        VmThread::from_address(env.get_long(thread, self.at.as_raw()) as usize)
    }
}

fn is_carrier(agent: ThreadParts<'_>, env: JniEnvironment, thread: jobject) -> bool {
    let class = env.class_of(thread);
    let name = agent.core.jvmti.class_signature(class);
    env.delete_local(class);
    name.is_some_and(|name| name == CARRIER)
}

impl FollowedThread {
    /// A thread whose allocations are all counted, and which has called the agent.
    fn new_started() -> FollowedThread {
        FollowedThread {
            group: FollowedGroup::without_thread(false),
            before: 0,
            number: 0,
            is_sure: true,
            until: None,
            last: 0,
        }
    }
}

impl FollowedGroup {
    fn without_thread(carriers: bool) -> FollowedGroup {
        let thread = ThreadId(0);
        FollowedGroup { thread, carriers }
    }
}

impl CoverageState {
    fn set_total(&mut self, agent: ThreadParts<'_>, row: FollowedGroup, bytes: u64) {
        if self
            .groups
            .get(&row)
            .is_none_or(|sum| sum.counter.is_none())
        {
            let cell = self.new_counter(agent);
            if let Some((cells, at)) = &cell
                && let Some(cell) = cells.get(*at)
            {
                cell.claim(row.thread, row.carriers);
            }
            self.groups.entry(row).or_default().counter = cell;
        }
        let cell = self.groups.get(&row).and_then(|sum| sum.counter.as_ref());
        if let Some((cells, at)) = cell
            && let Some(cell) = cells.get(*at)
        {
            cell.set_reading(bytes, clock::unix_nanos());
        }
    }

    fn set_counted_total(
        &mut self,
        agent: ThreadParts<'_>,
        thread: ThreadId,
        sum: CountedAllocations,
    ) {
        if !self.counted.contains_key(&thread)
            && let Some((cells, at)) = self.new_counter(agent)
        {
            if let Some(cell) = cells.get(at) {
                cell.claim_counted(thread);
            }
            self.counted.insert(thread, (cells, at));
        }
        if let Some((cells, at)) = self.counted.get(&thread)
            && let Some(cell) = cells.get(*at)
        {
            cell.set_counted(sum.bytes, sum.objects);
        }
    }

    /// A new counter in the log. `None`: the log is full.
    fn new_counter(&mut self, agent: ThreadParts<'_>) -> Option<VmCounterPlace> {
        if self
            .counter_block
            .as_ref()
            .is_none_or(|cells| self.next_counter >= cells.len())
        {
            self.counter_block = agent.core.log.add_vm_counters(CELLS).ok().map(Arc::new);
            self.next_counter = 0;
        }
        let cells = Arc::clone(self.counter_block.as_ref()?);
        self.next_counter += 1;
        Some((cells, self.next_counter - 1))
    }
}

/// Starts the thread that takes readings. Without it, the log of a killed JVM has no bytes of threads that were still
/// running.
fn start_readings(agent: ThreadParts<'static>) {
    let started = agent
        .core
        .agent_threads
        .spawn_thread("lucce-coverage", move || run_readings(agent));
    if let Err(error) = started {
        agent
            .core
            .report_message(LogLevel::Debug, &format!("coverage: {error}"));
    }
}

fn run_readings(agent: ThreadParts<'_>) {
    let begin = Instant::now();
    let mut pause = SHORTEST;
    while !agent.core.vm_end.wait_until(Instant::now() + pause) {
        let before = clock::thread_time();
        agent.counters.coverage.write_totals(agent, None);
        let took = clock::thread_time().saturating_sub(before);
        pause = pause_after(begin.elapsed(), Duration::from_nanos(took));
    }
}

/// The pause after a reading.
///
/// `since`: the time since the start. `took`: the CPU time of the reading. Wall time would also contain the load of
/// the machine and stops of the process.
fn pause_after(since: Duration, took: Duration) -> Duration {
    let latest = (since / LATEST_PART).clamp(SHORTEST, LONGEST);
    (since / PART)
        .max(took.saturating_mul(PART))
        .clamp(SHORTEST, latest)
        .max(took.saturating_mul(LARGEST_LOAD))
}

#[cfg(test)]
mod coverage_tests {
    use super::*;

    #[test]
    fn it_is_read_rarely_enough_not_to_be_noticed() {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        assert_eq!(pause_after(ms(5), ms(0)), SHORTEST);
        assert_eq!(pause_after(s(100), ms(0)), ms(100));
        assert_eq!(pause_after(s(86_400), ms(0)), LONGEST);
        assert_eq!(pause_after(s(100), ms(2)), s(2));
    }

    #[test]
    fn a_reading_that_takes_long_puts_off_the_next_one_by_a_tenth_of_the_run() {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        assert_eq!(pause_after(s(1), ms(2)), ms(100));
        assert_eq!(pause_after(s(20), ms(50)), s(2));
        assert_eq!(pause_after(s(86_400), ms(400)), LONGEST);
        // Unless a reading would take more than a twentieth of a CPU.
        assert_eq!(pause_after(s(1), ms(50)), s(1));
    }
}
