//! `budget=PERCENT` with hooks: each allocation counts while that fits; else a part of those on frequent call paths.
//!
//! ```text
//! 256 counted allocations of a path ─► their number, and the time of the last one ─┐
//! 100 ms ─► CPU time of the process ───────────────────────────────────────────────┴► LevelController ─► the level
//! ```
//! On level n, one in 2^n allocations of a path counts (`LucceRtThinning`). The cost of hooks that count nothing cannot be measured
//! while they are there: it is taken to be [`CostBudget::HOOKS`], and the rest of the budget is for counting.

use std::sync::atomic::{AtomicU64, Ordering};

use lucce_jvmti::clock;
use lucce_options::CostBudget;

use crate::core::AgentCore;
use crate::core::budget_totals::BudgetTotals;
use crate::memory::locks::WatchedMutex;
use crate::memory::shared_layout::{MOST_THINNING, RARE_EVENT_BITS, REPORT_BITS};
use crate::memory::slots;
use crate::options::LogLevel;
use crate::registry::agent_log::AgentLog;

/// The load is measured when so many nanoseconds have passed.
const CHECK_NS: u64 = 100_000_000;
/// Nanoseconds for an allocation that is left out.
const SKIPPED_NS: f64 = 4.0;
/// A longer time was an interruption of the thread.
const LONGEST_NS: u64 = 2_000;
/// Readings of the clock that measure its own time.
const CLOCK_READINGS: u64 = 64;

/// Names of the counts in the log's mapped pages, in the order of [`HookTotal`].
const TOTALS: [&str; 4] = [
    "budget.cost_ns",
    "budget.cpu_ns",
    "budget.level",
    "budget.level_most",
];

#[derive(Clone, Copy)]
enum HookTotal {
    Cost,
    Cpu,
    Level,
    MostLevel,
}

/// Counting that keeps to a budget.
pub struct HookBudget {
    percent: u32,
    /// The word with the level that Java code reads.
    level_word: Option<&'static AtomicU64>,
    /// Sums over all reports: counted allocations, and those for which they stand.
    counted: AtomicU64,
    events: AtomicU64,
    /// The number of timed allocations, and their time.
    timed: AtomicU64,
    timed_ns: AtomicU64,
    /// Nanoseconds for reading the clock.
    clock_ns: u64,
    /// When the load was measured last.
    checked_ns: AtomicU64,
    state: WatchedMutex<CountingState>,
    totals: BudgetTotals,
}

struct CountingState {
    controller: LevelController,
    last: CountingSums,
    most_level: u32,
    is_warned: bool,
}

/// The sums at one moment.
#[derive(Clone, Copy, Default)]
struct CountingSums {
    counted: u64,
    events: u64,
    timed: u64,
    timed_ns: u64,
    cpu_ns: u64,
}

/// The load between two measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CountingWindow {
    /// Counted allocations, and all allocations of their paths.
    counted: u64,
    events: u64,
    /// Number of timed allocations, and the mean time of one in nanoseconds.
    timed: u64,
    price_ns: Option<f64>,
    /// CPU time of the process, with the agent's.
    cpu_ns: u64,
}

impl HookBudget {
    pub fn new(budget: CostBudget, log: &AgentLog) -> Self {
        let since = clock::nano_time();
        for _ in 1..CLOCK_READINGS {
            clock::nano_time();
        }
        let clock_ns = (clock::nano_time() - since) / CLOCK_READINGS;
        HookBudget {
            percent: budget.percent(),
            level_word: slots::thinning_level_word(),
            counted: AtomicU64::new(0),
            events: AtomicU64::new(0),
            timed: AtomicU64::new(0),
            timed_ns: AtomicU64::new(0),
            clock_ns,
            checked_ns: AtomicU64::new(clock::nano_time()),
            state: WatchedMutex::new(CountingState {
                controller: LevelController::new(budget.counting_percent()),
                last: CountingSums {
                    cpu_ns: clock::cpu_time(),
                    ..CountingSums::default()
                },
                most_level: 0,
                is_warned: false,
            }),
            totals: BudgetTotals::new(log, &TOTALS),
        }
    }

    /// Whether some allocations were left out so far.
    pub fn has_thinned(&self) -> bool {
        self.state.lock().most_level > 0
    }

    /// A call path has counted [`REPORT_BITS`] more allocations; the last one, of this level, took `passed` nanoseconds.
    pub fn follow_path(&self, core: &AgentCore, level: u32, passed: u64) {
        let counted = 1 << REPORT_BITS;
        let price = passed.saturating_sub(self.clock_ns).min(LONGEST_NS);
        // Relaxed: sums; no other data depends on them.
        self.counted.fetch_add(counted, Ordering::Relaxed);
        let events = counted << level.min(MOST_THINNING);
        self.events.fetch_add(events, Ordering::Relaxed);
        self.timed.fetch_add(1, Ordering::Relaxed);
        self.timed_ns.fetch_add(price, Ordering::Relaxed);
        let now = clock::nano_time();
        if now.saturating_sub(self.checked_ns.load(Ordering::Relaxed)) >= CHECK_NS {
            self.follow_load(core, now);
        }
    }

    /// Measures the load, and changes the level if it does not fit. One thread at a time does this.
    fn follow_load(&self, core: &AgentCore, now: u64) {
        let Some(mut state) = self.state.try_lock() else {
            return;
        };
        if now.saturating_sub(self.checked_ns.load(Ordering::Relaxed)) < CHECK_NS {
            // Another thread has just measured it.
            return;
        }
        self.checked_ns.store(now, Ordering::Relaxed);
        let before = state.controller.level;
        self.follow_window(&mut state);
        let level = state.controller.level;
        if let Some(word) = self.level_word.filter(|_| level != before) {
            // Relaxed: no other data depends on it.
            word.store(level.into(), Ordering::Relaxed);
        }
        if state.controller.is_exceeded() && !state.is_warned {
            state.is_warned = true;
            core.report_message(
                LogLevel::Warn,
                &format!(
                    "budget={}% is exceeded: one in {} allocations of frequent call paths counts, and counting takes more",
                    self.percent,
                    1 << MOST_THINNING
                ),
            );
        }
    }

    fn follow_window(&self, state: &mut CountingState) {
        let window = self.measure_window(state);
        let before = state.controller.level;
        let cost = state.controller.follow_window(window);
        let level = state.controller.level;
        self.add_cost(cost, window);
        self.totals
            .move_total(HookTotal::Level as usize, (before, level));
        if level > state.most_level {
            self.totals
                .move_total(HookTotal::MostLevel as usize, (state.most_level, level));
            state.most_level = level;
        }
    }

    fn measure_window(&self, state: &mut CountingState) -> CountingWindow {
        let reading = CountingSums {
            counted: self.counted.load(Ordering::Relaxed),
            events: self.events.load(Ordering::Relaxed),
            timed: self.timed.load(Ordering::Relaxed),
            timed_ns: self.timed_ns.load(Ordering::Relaxed),
            cpu_ns: clock::cpu_time(),
        };
        let window = reading.window_since(state.last);
        state.last = reading;
        window
    }

    fn add_cost(&self, cost: u64, window: CountingWindow) {
        self.totals.add_to_total(HookTotal::Cost as usize, cost);
        self.totals
            .add_to_total(HookTotal::Cpu as usize, window.cpu_ns);
    }

    /// Adds the load since the last measurement to the totals. Counting has ended.
    pub fn finish(&self) {
        let mut state = self.state.lock();
        let window = self.measure_window(&mut state);
        let controller = &state.controller;
        let cost = controller.estimate_cost(window, controller.level);
        self.add_cost(cost as u64, window);
    }

    /// The line for the user when recording begins.
    pub fn describe_choice(&self) -> String {
        format!(
            "budget={}%: hooks count every allocation while this fits, else one in 2 to {} on call paths with more than {}, with \
             an error; hooks alone are taken to cost {}%",
            self.percent,
            1 << MOST_THINNING,
            2 << RARE_EVENT_BITS,
            CostBudget::HOOKS
        )
    }
}

impl CountingSums {
    fn window_since(self, before: CountingSums) -> CountingWindow {
        let timed = self.timed.saturating_sub(before.timed);
        let timed_ns = self.timed_ns.saturating_sub(before.timed_ns);
        CountingWindow {
            counted: self.counted.saturating_sub(before.counted),
            events: self.events.saturating_sub(before.events),
            timed,
            price_ns: (timed > 0).then(|| timed_ns as f64 / timed as f64),
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
        }
    }
}

/// Chooses the level from the load.
struct LevelController {
    /// The part of the program's CPU time that counting may take.
    share: f64,
    level: u32,
    /// Smoothed: nanoseconds for a counted allocation.
    price_ns: f64,
    /// Nanoseconds that counting has taken beyond the budget; negative: what it has not used.
    excess_ns: f64,
}

impl LevelController {
    /// Timed allocations that outweigh the earlier ones.
    const STEADY_TIMINGS: f64 = 16.0;
    /// The level falls if counting would take less than this part of the budget afterwards.
    const LEAST_USED: f64 = 0.7;
    /// CPU time of the program in which an excess must be paid back.
    const PAY_BACK_NS: f64 = 4e9;

    /// `percent`: of the program's CPU time, for counting.
    fn new(percent: u32) -> LevelController {
        LevelController {
            share: f64::from(percent) / 100.0,
            level: 0,
            price_ns: 0.0,
            excess_ns: 0.0,
        }
    }

    /// Chooses the level after a window. Returns what counting took, in nanoseconds.
    fn follow_window(&mut self, window: CountingWindow) -> u64 {
        if let Some(price) = window.price_ns {
            let timed = window.timed as f64;
            let part = match self.price_ns {
                0.0 => 1.0,
                _ => timed / (timed + Self::STEADY_TIMINGS),
            };
            self.price_ns += part * (price - self.price_ns);
        }
        let cost = self.estimate_cost(window, self.level);
        // The price is an estimate, and may exceed the CPU time of a short window.
        let cpu = window.cpu_ns as f64;
        let hooks = 1.0 + f64::from(CostBudget::HOOKS) / 100.0;
        let allowed = self.share * (cpu - cost).max(cpu / 4.0) / hooks;
        let credit = -self.share * Self::PAY_BACK_NS;
        self.excess_ns = (self.excess_ns + cost - allowed).max(credit);
        let before = self.level;
        let mut level = before;
        self.level = loop {
            let lower = level.checked_sub(1);
            let fits_lower =
                |lower: &u32| self.estimate_cost(window, *lower) < Self::LEAST_USED * allowed;
            if level >= before
                && level < MOST_THINNING
                && self.estimate_cost(window, level) > allowed
            {
                level += 1;
            } else if let Some(lower) = lower.filter(fits_lower).filter(|_| level <= before) {
                level = lower;
            } else {
                break level;
            }
        };
        cost as u64
    }

    /// What the window's allocations take if paths have this level, in nanoseconds.
    fn estimate_cost(&self, window: CountingWindow, level: u32) -> f64 {
        let events = window.events as f64;
        let change = f64::from(self.level) - f64::from(level);
        let counted = (window.counted as f64 * change.exp2()).min(events);
        counted * self.price_ns + (events - counted) * SKIPPED_NS
    }

    /// Whether the highest level does not keep to the budget.
    fn is_exceeded(&self) -> bool {
        self.level == MOST_THINNING && self.excess_ns > self.share * Self::PAY_BACK_NS
    }
}

#[cfg(test)]
mod hook_budget_tests {
    use super::*;

    /// Windows of 100 ms of a program that allocates `rate` objects in a nanosecond, each of which takes `price` nanoseconds. All
    /// of its paths are frequent. Returns the cost of counting as a part of the program's time.
    fn run(controller: &mut LevelController, rate: f64, price: f64, windows: u32) -> f64 {
        let program = 100e6;
        let mut costs = 0.0;
        for _ in 0..windows {
            let events = (rate * program) as u64;
            let counted = events >> controller.level;
            let cost = counted as f64 * price + (events - counted) as f64 * SKIPPED_NS;
            costs += cost;
            controller.follow_window(CountingWindow {
                counted,
                events,
                timed: 64,
                price_ns: Some(price),
                cpu_ns: (program * 1.6 + cost) as u64,
            });
        }
        costs / (program * f64::from(windows))
    }

    #[test]
    fn every_allocation_counts_while_that_fits() {
        let mut controller = LevelController::new(40);
        // 0.02 · 15 is 30%.
        let cost = run(&mut controller, 0.02, 15.0, 100);
        assert_eq!(controller.level, 0);
        assert!((cost - 0.3).abs() < 0.001 && !controller.is_exceeded());
    }

    #[test]
    fn the_level_follows_the_load_up_and_down() {
        let mut controller = LevelController::new(40);
        // One in 2^n takes 0.052 · (20 / 2^n + 4 · (1 - 1 / 2^n)): 104%, 62%, 42%, 31%.
        run(&mut controller, 0.052, 20.0, 50);
        assert_eq!(controller.level, 3);
        let cost = run(&mut controller, 0.052, 20.0, 50);
        assert!((cost - 0.312).abs() < 0.001, "{cost}");
        // 0.01 · 20 is 20%.
        run(&mut controller, 0.01, 20.0, 2);
        assert_eq!(controller.level, 0);
        // One window is above the budget.
        run(&mut controller, 0.052, 20.0, 1);
        assert_eq!(controller.level, 3);
    }

    #[test]
    fn a_level_that_fits_is_kept() {
        for (rate, price) in [(0.03, 20.0), (0.05, 30.0), (0.09, 8.0), (0.2, 12.0)] {
            let mut controller = LevelController::new(40);
            run(&mut controller, rate, price, 50);
            let level = controller.level;
            for _ in 0..50 {
                run(&mut controller, rate, price, 1);
                assert_eq!(controller.level, level, "{rate}, {price}");
            }
        }
    }

    #[test]
    fn what_no_level_keeps_is_exceeded() {
        let mut controller = LevelController::new(15);
        // What is left out takes 0.1 · 4, 40%.
        run(&mut controller, 0.1, 20.0, 400);
        assert_eq!(controller.level, MOST_THINNING);
        assert!(controller.is_exceeded());
        run(&mut controller, 0.001, 20.0, 400);
        assert!(controller.level == 0 && !controller.is_exceeded());
    }

    #[test]
    fn a_window_without_allocations_changes_no_price() {
        let mut controller = LevelController::new(40);
        run(&mut controller, 0.05, 20.0, 10);
        let idle = CountingWindow {
            counted: 0,
            events: 0,
            timed: 0,
            price_ns: None,
            cpu_ns: 0,
        };
        assert_eq!(controller.follow_window(idle), 0);
        assert!((controller.price_ns - 20.0).abs() < 1e-9);
    }
}
