//! Counts threads inside agent functions, so that an agent that leaves the VM frees nothing that is in use.
//!
//! ```text
//! a function begins   count one more inside ─► is a run recorded?   if not, or another run: do nothing
//! the agent leaves    no run is recorded ─► wait until no thread is inside ─► free everything
//! ```
//!
//! A function counts itself before it reads the run; the leaving agent changes the run before it reads the counts.
//! Both use one order that all threads see. So a thread that is not waited for finds that the agent has left.
//!
//! The counts are spread over cache lines, so that threads with events at the same time do not wait for each other.
//! An agent that stays until the VM ends (classes have its hooks) counts no threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lucce_tracelog::RunId;

const SHARDS: usize = 64;

/// Alone in its cache lines, because processors fetch two at a time.
#[repr(align(128))]
struct AgentUseShard(AtomicUsize);

static USE_COUNTS: [AgentUseShard; SHARDS] = [const { AgentUseShard(AtomicUsize::new(0)) }; SHARDS];
/// The run that is recorded now; 0: none.
static CURRENT_RUN: AtomicU64 = AtomicU64::new(0);
/// Whether an agent that may leave has started in this process.
static MAY_LEAVE: AtomicBool = AtomicBool::new(false);
static NEXT_SHARD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The agent does not leave while a guard exists. Keep it briefly: the thread that detaches the agent waits.
pub struct AgentUseGuard(Option<&'static AtomicUsize>);

impl AgentUseGuard {
    /// Counts the current thread as inside.
    pub fn enter() -> AgentUseGuard {
        // Relaxed: it was set before there was anything to enter.
        if !MAY_LEAVE.load(Ordering::Relaxed) {
            return AgentUseGuard(None);
        }
        let shard = thread_shard();
        // SeqCst, in one order with `end_run`: see the module's text.
        shard.fetch_add(1, Ordering::SeqCst);
        AgentUseGuard(Some(shard))
    }

    /// Whether this run is recorded now.
    pub fn is_for_run(&self, run: RunId) -> bool {
        CURRENT_RUN.load(Ordering::SeqCst) == run.bits()
    }
}

impl Drop for AgentUseGuard {
    fn drop(&mut self) {
        if let Some(shard) = self.0 {
            // Release: work under this guard happens before what `end_run` does next. Pairs with its load.
            shard.fetch_sub(1, Ordering::Release);
        }
    }
}

/// The current thread's count.
fn thread_shard() -> &'static AtomicUsize {
    let own = SHARD.try_with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT_SHARD.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        own.get()
    });
    // A thread that is ending has lost its thread-local value.
    let own = own.unwrap_or(0);
    USE_COUNTS
        .get(own)
        .map_or(&USE_COUNTS[0].0, |shard| &shard.0)
}

/// Begins a run. `may_leave`: the agent may leave before the VM ends.
pub fn begin_run(run: RunId, may_leave: bool) {
    if may_leave {
        MAY_LEAVE.store(true, Ordering::SeqCst);
    }
    CURRENT_RUN.store(run.bits(), Ordering::SeqCst);
}

/// Ends the run; `hide` makes the agent unreachable for other threads. Returns whether no thread is inside any more,
/// after at most `patience`.
pub fn end_run(hide: impl FnOnce(), patience: Duration) -> bool {
    const LOOK: Duration = Duration::from_millis(1);
    CURRENT_RUN.store(0, Ordering::SeqCst);
    hide();
    let until = Instant::now() + patience;
    // SeqCst, which includes Acquire: pairs with the Release of the dropped guards.
    let is_empty = || {
        USE_COUNTS
            .iter()
            .all(|shard| shard.0.load(Ordering::SeqCst) == 0)
    };
    while !is_empty() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

#[cfg(test)]
#[allow(unsafe_code, reason = "what is freed is what is looked for")]
mod agent_use_tests {
    use std::sync::atomic::AtomicPtr;
    use std::sync::{Barrier, Mutex};

    use super::*;

    /// The counts belong to the process, so tests run one at a time.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn an_agent_that_leaves_waits_for_those_inside() {
        let _alone = ALONE.lock();
        let run = RunId::new(7).unwrap();
        begin_run(run, true);
        let inside = AgentUseGuard::enter();
        assert!(inside.is_for_run(run));
        assert!(!end_run(|| (), Duration::from_millis(5)));
        assert!(!inside.is_for_run(run));
        drop(inside);
        assert!(end_run(|| (), Duration::from_secs(60)));
    }

    /// A thread inside never sees freed memory.
    #[test]
    fn nothing_is_given_back_that_is_in_use() {
        let _alone = ALONE.lock();
        const ROUNDS: u64 = if cfg!(miri) { 20 } else { 200 };
        let works: AtomicPtr<AtomicU64> = AtomicPtr::default();
        let start = Barrier::new(3);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    while !ended.load(Ordering::Relaxed) {
                        let _inside = AgentUseGuard::enter();
                        let round = works.load(Ordering::SeqCst);
                        // SAFETY: what a thread finds while it is inside is not freed.
                        if let Some(round) = unsafe { round.as_ref() } {
                            assert_ne!(round.load(Ordering::Relaxed), 0);
                        }
                    }
                });
            }
            begin_run(RunId::new(1).unwrap(), true);
            start.wait();
            for round in 1..=ROUNDS {
                begin_run(RunId::new(round).unwrap(), true);
                let allocated = Box::into_raw(Box::new(AtomicU64::new(round)));
                works.store(allocated, Ordering::SeqCst);
                std::thread::yield_now();
                let hide = || works.store(std::ptr::null_mut(), Ordering::SeqCst);
                assert!(end_run(hide, Duration::from_secs(60)));
                // SAFETY: `Box::into_raw` made it, and no thread finds it any more.
                let allocated = unsafe { Box::from_raw(allocated) };
                allocated.store(0, Ordering::Relaxed);
            }
            ended.store(true, Ordering::Relaxed);
        });
    }
}
