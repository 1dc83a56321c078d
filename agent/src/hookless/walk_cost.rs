//! Detects when stack walks cost more than hooks would.
//!
//! Every call pays for a hook; every event pays for a stack walk, in proportion to the depth. The break-even point depends on the
//! program. The agent measures the part of the program's CPU time that walks take.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lucce_jvmti::clock;

use crate::counting::CountingParts;
use crate::memory::locks::WatchedMutex;
use crate::options::LogLevel;

/// Part of the process's CPU time in percent: as much as hooks cost, or more. With `budget=`, samples may take that in addition.
const MAX_WALK_PERCENT: u64 = 20;
/// Nanoseconds between two checks.
const WINDOW_NS: u64 = 5_000_000_000;
/// One in this number of walks is timed: reading the clock is a system call.
const WALKS_PER_TIMING: u64 = 8;
/// The other clocks are read once in this number of walks.
const WALKS_PER_CHECK: u64 = 1024;

/// Costs of all walks so far.
static WALKS: AtomicU64 = AtomicU64::new(0);
static FRAMES: AtomicU64 = AtomicU64::new(0);
static NANOS: AtomicU64 = AtomicU64::new(0);
static IS_WARNED: AtomicBool = AtomicBool::new(false);

/// The costs at the end of the last window.
static LAST_WINDOW: WatchedMutex<Option<WalkCosts>> = WatchedMutex::new(None);

#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct WalkCosts {
    walks: u64,
    frames: u64,
    /// Nanoseconds: CPU time in walks, CPU time of the whole process, and elapsed time.
    walk_ns: u64,
    cpu_ns: u64,
    time_ns: u64,
}

/// Resets the costs for a new agent.
pub fn reset_costs() {
    for sum in [&WALKS, &FRAMES, &NANOS] {
        sum.store(0, Ordering::Relaxed);
    }
    IS_WARNED.store(false, Ordering::Relaxed);
    *LAST_WINDOW.lock() = None;
}

/// Called before the current thread's stack is walked. Returns the thread's CPU time in nanoseconds, if this walk is timed.
pub fn begin_walk() -> Option<u64> {
    let is_timed = WALKS
        .load(Ordering::Relaxed)
        .is_multiple_of(WALKS_PER_TIMING);
    is_timed.then(clock::thread_time)
}

/// Called after a walk of `frames` frames. `since`: the result of [`begin_walk`].
pub fn end_walk(agent: CountingParts<'_>, frames: usize, since: Option<u64>) {
    // Relaxed: sums; no other data depends on them.
    FRAMES.fetch_add(frames as u64, Ordering::Relaxed);
    if let Some(since) = since {
        let worked = clock::thread_time().saturating_sub(since);
        NANOS.fetch_add(WALKS_PER_TIMING * worked, Ordering::Relaxed);
    }
    let walks = WALKS.fetch_add(1, Ordering::Relaxed) + 1;
    if walks.is_multiple_of(WALKS_PER_CHECK) && !IS_WARNED.load(Ordering::Relaxed) {
        check_costs(agent, walks);
    }
}

fn check_costs(agent: CountingParts<'_>, walks: u64) {
    let now = WalkCosts {
        walks,
        frames: FRAMES.load(Ordering::Relaxed),
        walk_ns: NANOS.load(Ordering::Relaxed),
        cpu_ns: clock::cpu_time(),
        time_ns: clock::nano_time(),
    };
    let passed = {
        let mut last = LAST_WINDOW.lock();
        let before = *last.get_or_insert(now);
        if now.time_ns.saturating_sub(before.time_ns) < WINDOW_NS {
            return;
        }
        *last = Some(now);
        now.costs_since(before)
    };
    let budget = agent.core.options.budget;
    let allowed = MAX_WALK_PERCENT + budget.map_or(0, |budget| u64::from(budget.percent()));
    if let Some(text) = passed.cost_warning(allowed)
        && !IS_WARNED.swap(true, Ordering::Relaxed)
    {
        let advice = match agent.core.is_attached() {
            true => "ask for fewer events (--opt alloc=SIZE), or start the JVM with the agent",
            false => "ask for fewer events, or start the JVM with tracking=lazy",
        };
        agent
            .core
            .report_message(LogLevel::Warn, &format!("{text}: {advice}"));
    }
}

impl WalkCosts {
    fn costs_since(self, before: WalkCosts) -> WalkCosts {
        WalkCosts {
            walks: self.walks.saturating_sub(before.walks),
            frames: self.frames.saturating_sub(before.frames),
            walk_ns: self.walk_ns.saturating_sub(before.walk_ns),
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            time_ns: self.time_ns.saturating_sub(before.time_ns),
        }
    }

    /// `allowed`: the largest part of the CPU time without a warning, in percent.
    fn cost_warning(self, allowed: u64) -> Option<String> {
        let share = 100 * self.walk_ns / self.cpu_ns.max(1);
        let a_second = self.walks * 1_000_000_000 / self.time_ns.max(1);
        let depth = self.frames / self.walks.max(1);
        (share > allowed).then(|| {
            format!(
                "walking stacks takes {share}% of the CPU time ({a_second} events a second, {depth} frames each): \
                 hooks would take less"
            )
        })
    }
}

#[cfg(test)]
mod walk_cost_tests {
    use super::*;

    #[test]
    fn the_user_is_warned_only_above_the_limit() {
        let at = |walking| WalkCosts {
            walks: 50_000,
            frames: 2_000_000,
            walk_ns: walking,
            cpu_ns: 6_000_000_000,
            time_ns: 5_000_000_000,
        };
        let warning = |walking| at(walking).cost_warning(MAX_WALK_PERCENT);
        assert_eq!(warning(1_200_000_000), None);
        let text = warning(1_500_000_000).unwrap();
        assert!(
            text.contains("25%") && text.contains("10000 events a second, 40 frames each"),
            "{text}"
        );
        assert_eq!(at(1).costs_since(at(1)), WalkCosts::default());
        assert_eq!(WalkCosts::default().cost_warning(MAX_WALK_PERCENT), None);
        // With budget=10%.
        let beside = |walking| at(walking).cost_warning(MAX_WALK_PERCENT + 10);
        assert!(beside(1_800_000_000).is_none() && beside(1_900_000_000).is_some());
    }
}
