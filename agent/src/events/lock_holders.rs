//! Who holds the lock for which a thread waits.
//!
//! ```text
//! waiting thread   begin_wait: publishes the lock and its turn ────────────────► end_wait
//! other threads      note_acquired: arrives later ─► note_released: held it when the wait began, or not
//! ```
//!
//! The holder itself reports its context when it releases the lock. It then stands in the frame that held it, so the context is
//! as exact as that of any event. It counts in its own thread: the context is the holder's, the type names the context that
//! waits, and the value is the time since the wait began.
//!
//! A thread that acquired the lock after the wait began did not hold it then. A hook behind each acquisition reports such a
//! thread; after a notification, the thread's state has the time. So a release without such a report proves who held the lock.
//! If no hook precedes the release, as in native methods and in classes left as they are, the holder stays unknown. So does the
//! holder of a wait that finds no slot.
//!
//! Java code reads a word with a bit for each wait without a known holder. Each use of a slot has its turn, in a word beside
//! the bits: a report with another turn came too late, and is ignored. Turns are odd while the slot is in use, so the word
//! also claims the slot. All words of the first slots are in one line of the processor's cache.

use std::array;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{MutexGuard, OnceLock};

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_callgraph::ContextId;
use lucce_instrument::kinds::LOCK_HOLDERS;
use lucce_jvmti::{JniEnvironment, clock};
use lucce_tracelog::{EventTypeId, lock_holder_detail};

use crate::counting::CountingParts;
use crate::counting::counter_lookup::{event_detail, verified_location};
use crate::memory::counter::increment_counter;
use crate::memory::locks::WatchedMutex;
use crate::memory::shared_layout::LOCK_SLOTS;
use crate::memory::slots;
use crate::stack::contexts;
use crate::thread::ThreadState;
use crate::thread::counter_access::{current_counters, event_counter};
use crate::thread::event_kind::EventKind;
use crate::thread::monitor_waits::LockSlot;

/// Maximum number of threads that acquire a lock during one wait. With more, the holder stays unknown.
const ARRIVALS: usize = 8;

/// The waits whose holders are to be found.
static WAITS: ContendedWaits = ContendedWaits::new();

struct ContendedWaits {
    /// `LucceRtLocks.contended` as a global reference, which is never deleted.
    locks: OnceLock<usize>,
    slots: [WaitSlot; LOCK_SLOTS],
}

/// The wait of a slot. Aligned, because the waiting thread and the holder use it in turns: both need one line of the
/// processor's cache if no thread arrives.
#[repr(align(64))]
struct WaitSlot(WatchedMutex<ContendedWait>);

/// One wait.
#[repr(C)]
struct ContendedWait {
    /// The slot's turn when the wait began.
    turn: u64,
    /// Nanoseconds of the clock of events.
    since: u64,
    holder_type: EventTypeId,
    /// The holder is known, or cannot be found any more.
    is_decided: bool,
    /// The number of `arrivals` in use.
    arrived: u8,
    /// The threads that acquired the lock since, by the address of their state, and how many times they still hold it.
    arrivals: [(usize, u32); ARRIVALS],
}

/// What a report of a release means for a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReleaseOutcome {
    /// The thread held the lock when the wait began.
    Holder {
        holder_type: EventTypeId,
        passed: u64,
    },
    /// The wait is over, or the thread came later.
    Other,
}

/// The thread that reports, and what it knows of itself.
#[derive(Clone, Copy)]
struct ReportingThread<'s> {
    address: usize,
    state: &'s ThreadState,
}

impl<'s> ReportingThread<'s> {
    fn new(state: &'s ThreadState) -> ReportingThread<'s> {
        ReportingThread {
            address: std::ptr::from_ref(state).addr(),
            state,
        }
    }
}

impl ContendedWait {
    const fn new() -> ContendedWait {
        ContendedWait {
            turn: 0,
            since: 0,
            holder_type: EventTypeId(0),
            is_decided: false,
            arrived: 0,
            arrivals: [(0, 0); ARRIVALS],
        }
    }

    /// Begins another wait. The unused arrivals stay as they are.
    fn restart(&mut self, turn: u64, since: u64, holder_type: EventTypeId) {
        self.turn = turn;
        self.since = since;
        self.holder_type = holder_type;
        self.is_decided = false;
        self.arrived = 0;
    }

    fn is_open(&self, turn: u64) -> bool {
        self.turn == turn && !self.is_decided
    }

    fn arrivals(&mut self) -> std::slice::IterMut<'_, (usize, u32)> {
        let arrived = usize::from(self.arrived);
        self.arrivals
            .get_mut(..arrived)
            .unwrap_or_default()
            .iter_mut()
    }

    fn add_arrival(&mut self, thread: usize) {
        if let Some((_, count)) = self.arrivals().find(|(of, _)| *of == thread) {
            *count += 1;
        } else if let Some(free) = self.arrivals().find(|(_, count)| *count == 0) {
            *free = (thread, 1);
        } else if let Some(next) = self.arrivals.get_mut(usize::from(self.arrived)) {
            *next = (thread, 1);
            self.arrived += 1;
        } else {
            self.is_decided = true;
        }
    }

    /// A thread releases the lock at time `now`. `fully`: however often it has acquired it.
    fn release_lock(
        &mut self,
        thread: ReportingThread<'_>,
        now: u64,
        fully: bool,
    ) -> ReleaseOutcome {
        let is_own = |(of, count): &&mut (usize, u32)| *of == thread.address && *count > 0;
        if let Some((_, count)) = self.arrivals().find(is_own) {
            *count -= 1;
            // Of a thread that gives up all at once, it is unknown whether it held the lock before.
            self.is_decided |= fully;
            return ReleaseOutcome::Other;
        }
        self.is_decided = true;
        // No hook reports that a notified thread gets its monitor back.
        if thread.state.notified_at.get() >= self.since {
            return ReleaseOutcome::Other;
        }
        ReleaseOutcome::Holder {
            holder_type: self.holder_type,
            passed: now.saturating_sub(self.since),
        }
    }
}

impl ContendedWaits {
    const fn new() -> ContendedWaits {
        ContendedWaits {
            locks: OnceLock::new(),
            slots: [const { WaitSlot(WatchedMutex::new(ContendedWait::new())) }; LOCK_SLOTS],
        }
    }

    fn locks(&self) -> Option<jobject> {
        let array = self.locks.get()?;
        Some(std::ptr::with_exposed_provenance_mut(*array))
    }

    /// The wait of a slot, locked. `None`: the wait with that turn is over, or there is no such slot.
    fn lock_wait(&self, slot: usize, turn: u64) -> Option<MutexGuard<'_, ContendedWait>> {
        let WaitSlot(wait) = self.slots.get(slot)?;
        let wait = wait.lock();
        // Relaxed: what a thread that ends its wait at the same time has done does not matter here.
        let is_current = slots::lock_turn_word(slot)?.load(Ordering::Relaxed) == turn;
        is_current.then_some(wait)
    }
}

/// Claims a free slot. Returns it with the turn of its new use.
fn claim_slot() -> Option<(usize, u64)> {
    (0..LOCK_SLOTS).find_map(|slot| Some((slot, claim_turn(slots::lock_turn_word(slot)?)?)))
}

/// Makes the turn odd. `None`: it is odd already.
fn claim_turn(word: &AtomicU64) -> Option<u64> {
    let turn = word.load(Ordering::Relaxed);
    let next = turn + 1;
    let is_free = turn.is_multiple_of(2);
    // Acquire: pairs with the Release in `end_wait`, so the slot's lock is gone from the array.
    let claim = || word.compare_exchange(turn, next, Ordering::Acquire, Ordering::Relaxed);
    (is_free && claim().is_ok()).then_some(next)
}

/// Keeps the array in which Java code finds locks that threads wait for.
pub fn keep_contended_locks(env: JniEnvironment, locks: jobject) {
    let global = env.new_global(locks);
    let _ = WAITS.locks.set(global.expose_provenance());
}

/// The current thread begins to wait at time `since` for `lock`, of class `class`. Returns the wait's slot.
pub fn begin_wait(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    (lock, kind): (jobject, &'static EventKind),
    (context, wait_type): (ContextId, EventTypeId),
    since: u64,
) -> Option<LockSlot> {
    let (locks, word) = (WAITS.locks()?, slots::lock_waits_word()?);
    let holder_type = find_holder_type(agent, env, (lock, kind), (context, wait_type))?;
    let (slot, turn) = claim_slot()?;
    // Only the thread that has claimed the slot changes its turn.
    WAITS
        .lock_wait(slot, turn)?
        .restart(turn, since, holder_type);
    env.set_element(locks, slot as i32, lock);
    // Release: a hook that sees the bit sees the turn and the lock.
    word.fetch_or(1 << slot, Ordering::Release);
    Some(LockSlot(slot))
}

/// The wait ends.
pub fn end_wait(env: JniEnvironment, LockSlot(slot): LockSlot) {
    clear_bit(slot);
    if let Some(locks) = WAITS.locks() {
        env.set_element(locks, slot as i32, std::ptr::null_mut());
    }
    if let Some(word) = slots::lock_turn_word(slot) {
        let turn = word.load(Ordering::Relaxed);
        // Release: pairs with the Acquire in `claim_turn`.
        word.store(turn + 1, Ordering::Release);
    }
}

/// The current thread acquires the lock of `slot`.
pub fn note_acquired(state: &ThreadState, slot: usize, turn: u64) {
    if let Some(mut wait) = WAITS.lock_wait(slot, turn)
        && wait.is_open(turn)
    {
        wait.add_arrival(ReportingThread::new(state).address);
        if wait.is_decided {
            clear_bit(slot);
        }
    }
}

/// The current thread releases the lock of `slot` in the context `number`. Unknown: the agent asks the VM.
pub fn note_released(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (slot, turn): (usize, u64),
    number: ContextId,
) {
    report_release(agent, env, state, (slot, turn), (number, false));
}

/// The current thread gives `lock` up to wait for a notification, in the context `number`.
pub fn note_given_up(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    lock: jobject,
    number: ContextId,
) {
    let (Some(locks), Some(word)) = (WAITS.locks(), slots::lock_waits_word()) else {
        return;
    };
    // Acquire: pairs with the Release in `begin_wait`.
    let mut bits = word.load(Ordering::Acquire);
    while bits != 0 {
        let slot = bits.trailing_zeros() as usize;
        bits &= bits - 1;
        let turn = slots::lock_turn_word(slot).map_or(0, |word| word.load(Ordering::Acquire));
        let contended = env.get_element(locks, slot as i32);
        if env.is_same(contended, lock) {
            report_release(agent, env, state, (slot, turn), (number, true));
        }
        env.delete_local(contended);
    }
}

fn report_release(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (slot, turn): (usize, u64),
    (number, fully): (ContextId, bool),
) {
    let now = clock::nano_time();
    let Some(mut wait) = WAITS.lock_wait(slot, turn) else {
        return;
    };
    if !wait.is_open(turn) {
        return;
    }
    let outcome = wait.release_lock(ReportingThread::new(state), now, fully);
    if wait.is_decided {
        // Within the lock: the bit is that of this turn, for a new wait is prepared within the lock before it sets the bit.
        clear_bit(slot);
    }
    drop(wait);
    if let ReleaseOutcome::Holder {
        holder_type,
        passed,
    } = outcome
        && count_holder(agent, env, state, (number, holder_type), passed).is_none()
    {
        increment_counter(&agent.core.counts.events_dropped);
    }
}

fn count_holder(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (number, holder_type): (ContextId, EventTypeId),
    passed: u64,
) -> Option<()> {
    let number = match number {
        ContextId::UNKNOWN => {
            let here = verified_location(agent, env, state)?;
            contexts::event_number(agent.stack_parts(), state, here)
        }
        number => number,
    };
    let mut counters = current_counters(agent.thread_parts(), env, state);
    // The stream has the wait itself.
    event_counter(agent.thread_parts(), &mut counters, number, holder_type)?.count_event(passed);
    Some(())
}

fn clear_bit(slot: usize) {
    let bit = 1 << slot;
    // The holder has cleared it if it is known: the thread that waited need not write.
    if let Some(word) = slots::lock_waits_word()
        && word.load(Ordering::Relaxed) & bit != 0
    {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
}

/// The type of a context's waits, and that of their holders.
#[derive(Clone, Copy, Default)]
struct KnownHolderType {
    context: u64,
    wait_type: u32,
    holder_type: u32,
}

const KNOWN_TYPES: usize = 64;

thread_local! {
    /// By hash; a new entry replaces the old one. On the heap, because a library that is loaded late has little room in the
    /// thread's own block.
    static HOLDER_TYPES: RefCell<Option<Box<[KnownHolderType; KNOWN_TYPES]>>> = const { RefCell::new(None) };
}

/// The event type of a holder for which `context` waits.
fn find_holder_type(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    (lock, kind): (jobject, &'static EventKind),
    (context, wait_type): (ContextId, EventTypeId),
) -> Option<EventTypeId> {
    let index = (context.0 ^ context.0 >> 32 ^ u64::from(wait_type.0)) as usize % KNOWN_TYPES;
    let known = HOLDER_TYPES.with_borrow(|types| types.as_ref()?.get(index).copied());
    if let Some(known) = known
        && (known.context, known.wait_type) == (context.0, wait_type.0)
    {
        return Some(EventTypeId(known.holder_type));
    }
    let class: jclass = env.class_of(lock);
    let detail = event_detail(agent, class, kind);
    env.delete_local(class);
    let detail = lock_holder_detail(&detail, context);
    let found = agent.find_or_add_event_type(LOCK_HOLDERS.name, LOCK_HOLDERS.unit, &detail)?;
    HOLDER_TYPES.with_borrow_mut(|types| {
        let types = types.get_or_insert_with(|| Box::new(array::from_fn(|_| Default::default())));
        if let Some(entry) = types.get_mut(index) {
            *entry = KnownHolderType {
                context: context.0,
                wait_type: wait_type.0,
                holder_type: found.0,
            };
        }
    });
    Some(found)
}

#[cfg(test)]
mod lock_holders_tests {
    use super::*;
    use crate::core::VerifyCountdown;
    use crate::memory::address_space::MappedRange;

    const HOLDER: EventTypeId = EventTypeId(8);

    fn new_state() -> ThreadState {
        let region = MappedRange::from_unmapped(0x1000, 0x1000);
        ThreadState::new(region, false, VerifyCountdown::new(0))
    }

    /// A wait that began at time 100.
    fn new_wait() -> ContendedWait {
        ContendedWait {
            turn: 1,
            since: 100,
            holder_type: HOLDER,
            ..ContendedWait::new()
        }
    }

    fn held_for(passed: u64) -> ReleaseOutcome {
        ReleaseOutcome::Holder {
            holder_type: HOLDER,
            passed,
        }
    }

    #[test]
    fn the_first_thread_that_did_not_arrive_later_is_the_holder() {
        let (holder, late) = (new_state(), new_state());
        let (holder, late) = (ReportingThread::new(&holder), ReportingThread::new(&late));
        let mut wait = new_wait();
        wait.add_arrival(late.address);
        assert_eq!(wait.release_lock(late, 120, false), ReleaseOutcome::Other);
        assert!(wait.is_open(1) && !wait.is_open(3));
        // The holder enters once more: its inner release ends nothing.
        wait.add_arrival(holder.address);
        assert_eq!(wait.release_lock(holder, 130, false), ReleaseOutcome::Other);
        assert_eq!(wait.release_lock(holder, 150, false), held_for(50));
        assert!(!wait.is_open(1));
    }

    #[test]
    fn a_thread_that_was_notified_later_is_not_the_holder() {
        let state = new_state();
        let thread = ReportingThread::new(&state);
        state.notified_at.set(99);
        assert_eq!(new_wait().release_lock(thread, 150, false), held_for(50));
        state.notified_at.set(100);
        let mut wait = new_wait();
        assert_eq!(wait.release_lock(thread, 150, false), ReleaseOutcome::Other);
        assert!(!wait.is_open(1));
    }

    #[test]
    fn a_wait_is_open_in_its_own_turn() {
        let mut wait = new_wait();
        wait.restart(3, 100, HOLDER);
        assert!(wait.is_open(3) && !wait.is_open(1));
    }

    #[test]
    fn a_turn_is_claimed_once() {
        let word = AtomicU64::new(0);
        assert_eq!(claim_turn(&word), Some(1));
        assert_eq!(claim_turn(&word), None);
        word.store(2, Ordering::Relaxed);
        assert_eq!(claim_turn(&word), Some(3));
    }

    #[test]
    fn what_cannot_be_known_stays_unknown() {
        let state = new_state();
        let thread = ReportingThread::new(&state);
        let mut wait = new_wait();
        wait.add_arrival(thread.address);
        assert_eq!(wait.release_lock(thread, 150, true), ReleaseOutcome::Other);
        assert!(!wait.is_open(1));
        let mut wait = new_wait();
        for thread in 1..=ARRIVALS {
            wait.add_arrival(thread);
            assert!(wait.is_open(1));
        }
        wait.add_arrival(ARRIVALS + 1);
        assert!(!wait.is_open(1));
    }
}
