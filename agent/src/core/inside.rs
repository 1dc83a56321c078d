//! Which functions of the agent run, where it may leave the VM: what they use is given back only when none of them does.
//!
//! ```text
//! a function begins   one more inside ─► which run works?          none, or another one: it does nothing
//! the agent leaves    no run works    ─► wait until no thread is inside ─► give all back
//! ```
//! Who begins is counted before it looks, and who leaves says so before it waits, both in the one order that all threads see: so
//! a thread that is not waited for finds that the agent has gone.
//!
//! Counters are spread over cache lines, so that threads which tell of events at the same time do not wait for each other. An agent
//! that stays until the VM ends (classes have its hooks) counts no threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lucce_tracelog::RunId;

const SHARDS: usize = 64;

/// Alone in its cache lines: processors fetch two at a time.
#[repr(align(128))]
struct Shard(AtomicUsize);

static INSIDE: [Shard; SHARDS] = [const { Shard(AtomicUsize::new(0)) }; SHARDS];
/// The run that is recorded now; 0: none.
static WORKS: AtomicU64 = AtomicU64::new(0);
/// An agent that may leave has been here.
static MAY_LEAVE: AtomicBool = AtomicBool::new(false);
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// As long as it is there, the agent that works does not go. Not for long: the thread that detaches it waits.
pub struct Inside(Option<&'static AtomicUsize>);

impl Inside {
    pub fn enter() -> Inside {
        // Relaxed: it was set before there was anything to enter.
        if !MAY_LEAVE.load(Ordering::Relaxed) {
            return Inside(None);
        }
        let shard = shard();
        // In one order with `leave`: see the module.
        shard.fetch_add(1, Ordering::SeqCst);
        Inside(Some(shard))
    }

    /// Whether this is the run that is recorded now.
    pub fn is_of(&self, run: RunId) -> bool {
        WORKS.load(Ordering::SeqCst) == run.bits()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(shard) = self.0 {
            // Release: what was done here comes before what `leave` does then.
            shard.fetch_sub(1, Ordering::Release);
        }
    }
}

/// The current thread's.
fn shard() -> &'static AtomicUsize {
    let own = SHARD.try_with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        own.get()
    });
    // A thread that ends has none of its own any more.
    let own = own.unwrap_or(0);
    INSIDE.get(own).map_or(&INSIDE[0].0, |shard| &shard.0)
}

/// A run begins. `may_leave`: the agent need not stay until the VM ends.
pub fn begins(run: RunId, may_leave: bool) {
    if may_leave {
        MAY_LEAVE.store(true, Ordering::SeqCst);
    }
    WORKS.store(run.bits(), Ordering::SeqCst);
}

/// No run is recorded from now on, and no thread finds the agent, as `hide` sees to it. Whether no thread is inside any more, within
/// that time.
pub fn leave(hide: impl FnOnce(), patience: Duration) -> bool {
    const LOOK: Duration = Duration::from_millis(1);
    WORKS.store(0, Ordering::SeqCst);
    hide();
    let until = Instant::now() + patience;
    // Acquire: pairs with the Release of those who were inside.
    let is_empty = || {
        INSIDE
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
mod tests {
    use std::sync::atomic::AtomicPtr;
    use std::sync::{Barrier, Mutex};

    use super::*;

    /// The counters are the process's.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn an_agent_that_leaves_waits_for_those_inside() {
        let _alone = ALONE.lock();
        let run = RunId::new(7).unwrap();
        begins(run, true);
        let inside = Inside::enter();
        assert!(inside.is_of(run));
        assert!(!leave(|| (), Duration::from_millis(5)));
        assert!(!inside.is_of(run));
        drop(inside);
        assert!(leave(|| (), Duration::from_secs(60)));
    }

    /// What is inside never sees what was given back.
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
                        let _inside = Inside::enter();
                        let found = works.load(Ordering::SeqCst);
                        // SAFETY: what is found while one is inside is not freed.
                        if let Some(found) = unsafe { found.as_ref() } {
                            assert_ne!(found.load(Ordering::Relaxed), 0);
                        }
                    }
                });
            }
            begins(RunId::new(1).unwrap(), true);
            start.wait();
            for round in 1..=ROUNDS {
                begins(RunId::new(round).unwrap(), true);
                let made = Box::into_raw(Box::new(AtomicU64::new(round)));
                works.store(made, Ordering::SeqCst);
                std::thread::yield_now();
                let hide = || works.store(std::ptr::null_mut(), Ordering::SeqCst);
                assert!(leave(hide, Duration::from_secs(60)));
                // SAFETY: made above, and no thread finds it any more.
                let made = unsafe { Box::from_raw(made) };
                made.store(0, Ordering::Relaxed);
            }
            ended.store(true, Ordering::Relaxed);
        });
    }
}
