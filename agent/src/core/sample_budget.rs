//! `budget=PERCENT`: the sampling interval follows the load, so that samples take at most a part of the program's CPU time.
//!
//! ```text
//! sample ─► its price, by the thread's CPU clock: one in 8 ─┐
//! 64 samples or 250 ms ─► CPU time of the process ──────────┴► IntervalController ─► the VM's interval
//! ```
//! The VM draws a thread's distance to its next sample at its last sample, with the interval of that moment. Each thread keeps
//! that interval, and its next sample is weighted by it. At each object the probability of a sample is then known, so sums are
//! unbiased however the interval varies. The counters of [`SAMPLE_ERRORS`] have the variance of each context's sum.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use lucce_jvmti::clock;
use lucce_options::{CostBudget, DEFAULT_SAMPLING_INTERVAL};
use lucce_tracelog::{CounterBlock, EventTypeId, TotalCounter};

use crate::core::AgentCore;
use crate::memory::locks::WatchedMutex;
use crate::options::LogLevel;
use crate::registry::agent_log::AgentLog;

/// Bounds of the interval in bytes. The largest is the floor of accuracy: a sum of 1 GB has an error of at most 13% by chance.
const LEAST_INTERVAL: u32 = CostBudget::LEAST_INTERVAL;
const MOST_INTERVAL: u32 = CostBudget::MOST_INTERVAL;
/// One in this number of samples is timed: reading the clock is a system call.
const SAMPLES_PER_TIMING: u64 = 8;
/// The load is measured after this number of samples or nanoseconds, whichever comes first.
const SAMPLES_PER_CHECK: u64 = 64;
const CHECK_NS: u64 = 250_000_000;
/// What the VM does for a sample outside of the agent's function, in nanoseconds: the clock of that function does not see it.
const VM_PRICE_NS: u64 = 1_000;

/// Names of the counts in the log's mapped pages, in the order of [`BudgetTotal`].
const TOTALS: [&str; 5] = [
    "budget.cost_ns",
    "budget.cpu_ns",
    "budget.interval",
    "budget.interval_least",
    "budget.interval_most",
];

#[derive(Clone, Copy)]
enum BudgetTotal {
    Cost,
    Cpu,
    Interval,
    Least,
    Most,
}

/// Samples that keep to a budget.
pub struct SampleBudget {
    percent: u32,
    /// The interval of draws from before the agent.
    earlier_interval: u32,
    /// The present interval in bytes.
    interval: AtomicU32,
    /// Sums over all samples: their number, and the bytes between them.
    samples: AtomicU64,
    bytes: AtomicU64,
    /// The number of timed samples, and their time.
    timed: AtomicU64,
    timed_ns: AtomicU64,
    /// When the load was measured last.
    checked_ns: AtomicU64,
    state: WatchedMutex<BudgetState>,
    totals: Option<CounterBlock<TotalCounter>>,
    error_type: OnceLock<EventTypeId>,
    has_warned_of_variance: AtomicBool,
}

/// The sampling intervals of a thread's draws, in bytes. 0: every allocation is a sample.
#[derive(Clone, Copy)]
pub struct SampleDraws {
    /// Of the draw that led to the current sample.
    sample_interval: u32,
    /// Of the VM's draw of the distance to the next sample.
    next_interval: u32,
    /// Whether an agent has seen that draw.
    is_seen: bool,
}

impl SampleDraws {
    /// `interval`: that of a draw that no agent has seen.
    pub fn new(interval: u32) -> SampleDraws {
        SampleDraws {
            sample_interval: interval,
            next_interval: interval,
            is_seen: false,
        }
    }

    /// The VM has taken a sample, and has drawn the distance to the next one with the `present` interval.
    pub fn note_sample(&mut self, present: u32) {
        self.sample_interval = self.next_interval;
        self.note_draw(present);
    }

    /// The VM has drawn the distance to the next sample with this interval.
    pub fn note_draw(&mut self, interval: u32) {
        self.next_interval = interval;
        self.is_seen = true;
    }

    /// Takes over the draw that an earlier agent has seen.
    pub fn continue_earlier(&mut self, earlier: Option<SampleDraws>) {
        if let Some(earlier) = earlier.filter(|earlier| earlier.is_seen) {
            self.note_draw(earlier.next_interval);
        }
    }

    /// The interval that weights the current sample.
    pub fn sample_interval(&self) -> u32 {
        self.sample_interval
    }
}

struct BudgetState {
    controller: IntervalController,
    last: LoadReading,
    /// The smallest and the largest interval so far.
    least: u32,
    most: u32,
    is_warned: bool,
}

/// The sums at one moment.
#[derive(Clone, Copy, Default)]
struct LoadReading {
    samples: u64,
    bytes: u64,
    timed: u64,
    timed_ns: u64,
    cpu_ns: u64,
}

/// The load between two measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LoadWindow {
    samples: u64,
    /// Allocated bytes, by the samples.
    bytes: u64,
    /// Number of timed samples, and the mean price of a sample in nanoseconds.
    timed: u64,
    price_ns: Option<u64>,
    /// CPU time of the process, with the agent's.
    cpu_ns: u64,
}

impl SampleBudget {
    /// `first_interval`: the interval with which sampling begins.
    pub fn new(percent: u32, first_interval: u32, is_attached: bool, log: &AgentLog) -> Self {
        let budget = SampleBudget {
            percent,
            earlier_interval: match is_attached {
                true => DEFAULT_SAMPLING_INTERVAL,
                false => first_interval,
            },
            interval: AtomicU32::new(first_interval),
            samples: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            timed: AtomicU64::new(0),
            timed_ns: AtomicU64::new(0),
            checked_ns: AtomicU64::new(clock::nano_time()),
            state: WatchedMutex::new(BudgetState {
                controller: IntervalController::new(percent, first_interval),
                last: LoadReading {
                    cpu_ns: clock::cpu_time(),
                    ..LoadReading::default()
                },
                least: first_interval,
                most: first_interval,
                is_warned: false,
            }),
            totals: log.add_totals(&TOTALS).ok(),
            error_type: OnceLock::new(),
            has_warned_of_variance: AtomicBool::new(false),
        };
        for total in [BudgetTotal::Interval, BudgetTotal::Least, BudgetTotal::Most] {
            budget.add_to_total(total, u64::from(first_interval));
        }
        budget
    }

    /// The present interval in bytes: that of the VM's next draws.
    pub fn interval(&self) -> u32 {
        // Relaxed: no other data depends on it.
        self.interval.load(Ordering::Relaxed)
    }

    /// The interval of draws from before the agent that no earlier agent has seen.
    pub fn earlier_interval(&self) -> u32 {
        self.earlier_interval
    }

    /// The type of counters with variances, which `find` adds to the log.
    pub fn error_type(&self, find: impl FnOnce() -> Option<EventTypeId>) -> Option<EventTypeId> {
        if let Some(known) = self.error_type.get() {
            return Some(*known);
        }
        let event = find()?;
        Some(*self.error_type.get_or_init(|| event))
    }

    /// A sample's variance has no counter: says so once in the log.
    pub fn warn_of_missing_variance(&self, core: &AgentCore) {
        if !self.has_warned_of_variance.swap(true, Ordering::Relaxed) {
            core.append_warning("errors of some samples are too small: there is no counter left");
        }
    }

    /// Called before a sample is recorded. Returns the thread's CPU time in nanoseconds, if this sample is timed.
    pub fn begin_sample(&self) -> Option<u64> {
        let samples = self.samples.load(Ordering::Relaxed);
        samples
            .is_multiple_of(SAMPLES_PER_TIMING)
            .then(clock::thread_time)
    }

    /// Called after a sample was recorded that was drawn with this interval. `since`: the result of [`Self::begin_sample`].
    pub fn end_sample(&self, core: &AgentCore, interval: u32, since: Option<u64>) {
        // Relaxed, below: sums; no other data depends on them.
        if let Some(since) = since {
            let price = clock::thread_time().saturating_sub(since) + VM_PRICE_NS;
            self.timed.fetch_add(1, Ordering::Relaxed);
            self.timed_ns.fetch_add(price, Ordering::Relaxed);
        }
        self.bytes.fetch_add(u64::from(interval), Ordering::Relaxed);
        let samples = self.samples.fetch_add(1, Ordering::Relaxed) + 1;
        let now = clock::nano_time();
        let checked = self.checked_ns.load(Ordering::Relaxed);
        if samples.is_multiple_of(SAMPLES_PER_CHECK / 4) || now.saturating_sub(checked) >= CHECK_NS
        {
            self.follow_load(core, now);
        }
    }

    /// Adds the load since the last measurement to the totals. Sampling has ended.
    pub fn finish(&self) {
        let mut state = self.state.lock();
        let window = self.measure_window(&mut state);
        let price = window
            .price_ns
            .map_or(state.controller.price_ns, |price| price as f64);
        self.add_to_total(BudgetTotal::Cost, (window.samples as f64 * price) as u64);
        self.add_to_total(BudgetTotal::Cpu, window.cpu_ns);
    }

    fn measure_window(&self, state: &mut BudgetState) -> LoadWindow {
        let reading = LoadReading {
            samples: self.samples.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            timed: self.timed.load(Ordering::Relaxed),
            timed_ns: self.timed_ns.load(Ordering::Relaxed),
            cpu_ns: clock::cpu_time(),
        };
        let window = reading.window_since(state.last);
        state.last = reading;
        window
    }

    /// Measures the load, and changes the interval if it does not fit. One thread at a time does this.
    fn follow_load(&self, core: &AgentCore, now: u64) {
        let Some(mut state) = self.state.try_lock() else {
            return;
        };
        let passed = now.saturating_sub(self.checked_ns.load(Ordering::Relaxed));
        let samples = self.samples.load(Ordering::Relaxed);
        if samples.saturating_sub(state.last.samples) < SAMPLES_PER_CHECK && passed < CHECK_NS {
            // Another thread has just measured it.
            return;
        }
        self.checked_ns.store(now, Ordering::Relaxed);
        let window = self.measure_window(&mut state);
        let cost = state.controller.follow_window(window);
        self.add_to_total(BudgetTotal::Cost, cost);
        self.add_to_total(BudgetTotal::Cpu, window.cpu_ns);
        let (before, interval) = (self.interval(), state.controller.interval);
        if interval != before && core.jvmti.set_sampling_interval(interval).is_ok() {
            self.interval.store(interval, Ordering::Relaxed);
            self.move_total(BudgetTotal::Interval, (before, interval));
            if interval < state.least {
                self.move_total(BudgetTotal::Least, (state.least, interval));
                state.least = interval;
            }
            if interval > state.most {
                self.move_total(BudgetTotal::Most, (state.most, interval));
                state.most = interval;
            }
        }
        if state.controller.is_exceeded() && !state.is_warned {
            state.is_warned = true;
            core.report_message(
                LogLevel::Warn,
                &format!(
                    "budget={}% is exceeded: samples at the largest interval, {} MB, take more; a sum of 1 GB still has an \
                     error of at most 13% by chance",
                    self.percent,
                    MOST_INTERVAL >> 20
                ),
            );
        }
    }

    /// The line for the user when recording begins.
    pub fn describe_choice(&self) -> String {
        format!(
            "budget={}%: allocations are sampled without hooks, one per {} to {} KB as the load allows, at first {} KB; a \
             sum of 1 GB has an error of at most 13% by chance",
            self.percent,
            LEAST_INTERVAL >> 10,
            MOST_INTERVAL >> 10,
            self.interval() >> 10
        )
    }

    fn add_to_total(&self, total: BudgetTotal, more: u64) {
        let counter = self.totals.as_ref();
        if let Some(counter) = counter.and_then(|totals| totals.get(total as usize)) {
            counter.add(more);
        }
    }

    /// Changes a total from one value to another.
    fn move_total(&self, total: BudgetTotal, (from, to): (u32, u32)) {
        self.add_to_total(total, u64::from(to).wrapping_sub(u64::from(from)));
    }
}

impl LoadReading {
    fn window_since(self, before: LoadReading) -> LoadWindow {
        let timed = self.timed.saturating_sub(before.timed);
        let timed_ns = self.timed_ns.saturating_sub(before.timed_ns);
        LoadWindow {
            samples: self.samples.saturating_sub(before.samples),
            bytes: self.bytes.saturating_sub(before.bytes),
            timed,
            price_ns: timed_ns.checked_div(timed),
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
        }
    }
}

/// Chooses the interval from the load.
struct IntervalController {
    /// The part of the program's CPU time that samples may take.
    share: f64,
    interval: u32,
    /// Smoothed: nanoseconds for a sample, and allocated bytes in a nanosecond of the program's CPU time.
    price_ns: f64,
    rate: f64,
    /// Nanoseconds that samples have taken beyond [`Self::USED`]; negative: what they may take beyond it.
    debt_ns: f64,
    /// The same, beyond the whole budget.
    excess_ns: f64,
}

impl IntervalController {
    /// Part of the budget that samples use. The rest pays for what no clock sees: caches that samples have emptied.
    const USED: f64 = 0.85;
    /// CPU time of the program in which a debt is paid back.
    const PAY_BACK_NS: f64 = 4e9;
    /// Least part of the budget that remains while a debt is paid back.
    const LEAST_USED: f64 = 0.25;
    /// Largest part of the budget, after samples have taken less than it.
    const MOST_USED: f64 = 1.3;
    /// A smaller change of the interval is not worth a call of the VM.
    const LEAST_CHANGE: f64 = 1.2;

    fn new(percent: u32, interval: u32) -> IntervalController {
        IntervalController {
            share: f64::from(percent) / 100.0,
            interval,
            price_ns: 0.0,
            rate: 0.0,
            debt_ns: 0.0,
            excess_ns: 0.0,
        }
    }

    /// Chooses the interval after a window. Returns what its samples took, in nanoseconds.
    fn follow_window(&mut self, window: LoadWindow) -> u64 {
        if let Some(price) = window.price_ns {
            let new = price as f64;
            let part = match self.price_ns {
                0.0 => 1.0,
                _ => window.timed as f64 / (window.timed + SAMPLES_PER_TIMING) as f64,
            };
            self.price_ns += part * (new - self.price_ns);
        }
        let price = window.price_ns.map_or(self.price_ns, |price| price as f64);
        let cost = window.samples as f64 * price;
        // The price is an estimate, and may exceed the CPU time of a short window.
        let cpu = window.cpu_ns as f64;
        let program = (cpu - cost).max(cpu / 4.0).max(1.0);
        let rate = window.bytes as f64 / program;
        let part = match self.rate {
            0.0 => 1.0,
            // A few samples say little, and a growing load must not wait.
            known if rate > known => (2 * window.samples) as f64 / (2 * window.samples + 16) as f64,
            _ => window.samples as f64 / (window.samples + 32) as f64,
        };
        self.rate += part * (rate - self.rate);
        let credit = -self.share * Self::PAY_BACK_NS;
        let used = self.share * Self::USED;
        self.debt_ns = (self.debt_ns + cost - used * program).max(credit);
        self.excess_ns = (self.excess_ns + cost - self.share * program).max(credit);
        let target = used - self.debt_ns / Self::PAY_BACK_NS;
        let target = target.clamp(self.share * Self::LEAST_USED, self.share * Self::MOST_USED);
        let wanted = self.rate * self.price_ns / target;
        let change = wanted / f64::from(self.interval);
        if !(1.0 / Self::LEAST_CHANGE..Self::LEAST_CHANGE).contains(&change) {
            // Saturates.
            let wanted = wanted as u32;
            self.interval = wanted.clamp(LEAST_INTERVAL, MOST_INTERVAL);
        }
        cost as u64
    }

    /// Whether the largest interval does not keep to the budget.
    fn is_exceeded(&self) -> bool {
        self.interval == MOST_INTERVAL && self.excess_ns > self.share * Self::PAY_BACK_NS
    }
}

#[cfg(test)]
mod sample_budget_tests {
    use super::*;
    use crate::memory::random_numbers::RandomNumbers;

    /// A program that allocates `rate` bytes in a nanosecond of its CPU time, and whose samples take `price` nanoseconds.
    #[derive(Clone, Copy)]
    struct SimulatedLoad {
        rate: f64,
        price: f64,
        threads: usize,
    }

    /// Simulates the VM: each thread keeps the interval of its draw.
    struct Simulation {
        controller: IntervalController,
        random: RandomNumbers,
        /// The bytes until each thread's next sample, and the intervals of its draws.
        draws: Vec<(f64, SampleDraws)>,
    }

    struct SimulatedSums {
        /// The part of the program's time that samples took.
        cost: f64,
        estimated_bytes: f64,
        true_bytes: f64,
    }

    impl Simulation {
        fn new(percent: u32, threads: usize, seed: u64) -> Simulation {
            let first = DEFAULT_SAMPLING_INTERVAL;
            let mut simulation = Simulation {
                controller: IntervalController::new(percent, first),
                random: RandomNumbers(seed),
                draws: Vec::new(),
            };
            for _ in 0..threads {
                let distance = simulation.exponential() * f64::from(first);
                simulation.draws.push((distance, SampleDraws::new(first)));
            }
            simulation
        }

        fn exponential(&mut self) -> f64 {
            // Never the logarithm of 0.
            -(1.0 - self.random.uniform()).ln()
        }

        fn run(&mut self, load: SimulatedLoad, program_ns: f64) -> SimulatedSums {
            let (mut time, mut cost, mut estimate) = (0.0, 0.0, 0.0);
            let (mut window, mut window_start) = ((0_u64, 0_u64), (0.0, 0.0));
            let rate = load.rate / load.threads as f64;
            while time < program_ns {
                let next = self.draws.iter().take(load.threads).enumerate();
                let next = next.min_by(|(_, a), (_, b)| a.0.total_cmp(&b.0));
                let (thread, distance) = next.map(|(at, (left, _))| (at, *left)).unwrap();
                time += distance / rate;
                for (left, _) in self.draws.iter_mut().take(load.threads) {
                    *left -= distance;
                }
                let drawn = self.controller.interval;
                let distance = self.exponential() * f64::from(drawn);
                let (left, draws) = &mut self.draws[thread];
                *left = distance;
                draws.note_sample(drawn);
                let interval = draws.sample_interval();
                estimate += f64::from(interval);
                cost += load.price;
                window.0 += 1;
                window.1 += u64::from(interval);
                let passed = time + cost - window_start.0 - window_start.1;
                if window.0 == SAMPLES_PER_CHECK || passed > CHECK_NS as f64 {
                    self.controller.follow_window(LoadWindow {
                        samples: window.0,
                        bytes: window.1,
                        timed: window.0.div_ceil(SAMPLES_PER_TIMING),
                        price_ns: Some(load.price as u64),
                        cpu_ns: passed as u64,
                    });
                    window = (0, 0);
                    window_start = (time, cost);
                }
            }
            SimulatedSums {
                cost: cost / time,
                estimated_bytes: estimate,
                true_bytes: time * load.rate,
            }
        }
    }

    const SECOND: f64 = 1e9;

    #[test]
    fn samples_use_the_budget_and_keep_to_it() {
        for percent in [1, 5, 20] {
            for (rate, price) in [(0.05, 8_000.0), (0.5, 4_000.0), (2.0, 15_000.0)] {
                let mut simulation = Simulation::new(percent, 4, 7);
                let load = SimulatedLoad {
                    rate,
                    price,
                    threads: 4,
                };
                simulation.run(load, 2.0 * SECOND);
                let cost = simulation.run(load, 10.0 * SECOND).cost;
                let budget = f64::from(percent) / 100.0;
                assert!(cost < budget, "{percent}%, {rate}: {cost}");
                let is_least = simulation.controller.interval == LEAST_INTERVAL;
                assert!(
                    cost > 0.6 * budget || is_least,
                    "{percent}%, {rate}: {cost}"
                );
            }
        }
    }

    #[test]
    fn changing_loads_cost_no_more_than_the_budget_and_a_little() {
        let mut simulation = Simulation::new(10, 8, 7);
        let (mut cost, mut time) = (0.0, 0.0);
        for step in 0..40 {
            let rate = [0.01, 3.0, 0.3, 1.0][step % 4];
            let load = SimulatedLoad {
                rate,
                price: 6_000.0,
                threads: 8,
            };
            cost += simulation.run(load, SECOND / 2.0).cost;
            time += 1.0;
        }
        assert!((0.05..0.105).contains(&(cost / time)), "{}", cost / time);
    }

    /// The weight of each sample is the interval of its draw: the sum is that of the program.
    #[test]
    fn estimates_are_unbiased_while_the_interval_changes() {
        let (mut estimated_bytes, mut true_bytes) = ([0.0; 3], [0.0; 3]);
        for seed in 0..400 {
            let mut simulation = Simulation::new(10, 4, 1000 + seed);
            for (phase, rate) in [0.02, 2.0, 0.2].into_iter().enumerate() {
                let load = SimulatedLoad {
                    rate,
                    price: 6_000.0,
                    threads: 4,
                };
                let sums = simulation.run(load, SECOND / 20.0);
                estimated_bytes[phase] += sums.estimated_bytes;
                true_bytes[phase] += sums.true_bytes;
            }
        }
        for (estimate, truth) in estimated_bytes.iter().zip(true_bytes) {
            assert!(
                (estimate / truth - 1.0).abs() < 0.08,
                "{estimate} of {truth}"
            );
        }
    }

    /// A thread allocates equal parts in two contexts, in turns, and the interval changes with the context. Weighted by the present
    /// interval, the first sample of each part would have the wrong weight.
    #[test]
    fn the_interval_of_its_draw_weights_a_sample() {
        const PART: f64 = 100_000.0;
        const TURNS: usize = 8000;
        let mut simulation = Simulation::new(10, 1, 7);
        let intervals = [64_000_u32, 1000];
        let mut draws = SampleDraws::new(intervals[0]);
        let mut distance = simulation.exponential() * f64::from(intervals[0]);
        let mut sums = [0.0_f64; 2];
        for turn in 0..TURNS {
            let (context, mut left) = (turn % 2, PART);
            while distance <= left {
                left -= distance;
                draws.note_sample(intervals[context]);
                sums[context] += f64::from(draws.sample_interval());
                distance = simulation.exponential() * f64::from(intervals[context]);
            }
            distance -= left;
        }
        let truth = PART * (TURNS / 2) as f64;
        for sum in sums {
            assert!((sum / truth - 1.0).abs() < 0.06, "{sums:?}, not {truth}");
        }
    }

    #[test]
    fn a_draw_outlives_the_agent_that_has_seen_it() {
        let intervals = |earlier| {
            let mut draws = SampleDraws::new(512 << 10);
            draws.continue_earlier(earlier);
            let mut sample = || {
                draws.note_sample(2 << 10);
                draws.sample_interval()
            };
            [sample(), sample()]
        };
        assert_eq!(intervals(None), [512 << 10, 2 << 10]);
        // Its draw is older than the earlier agent.
        let mut earlier = SampleDraws::new(512 << 10);
        assert_eq!(intervals(Some(earlier)), [512 << 10, 2 << 10]);
        earlier.note_sample(64 << 10);
        assert_eq!(intervals(Some(earlier)), [64 << 10, 2 << 10]);
        // The earlier agent has counted every allocation.
        earlier.note_draw(0);
        assert_eq!(intervals(Some(earlier)), [0, 2 << 10]);
    }

    /// Samples at the largest interval take a steady part of the budget.
    #[test]
    fn only_more_than_the_whole_budget_exceeds_it() {
        let is_exceeded = |part: f64| {
            let mut controller = IntervalController::new(10, MOST_INTERVAL);
            let program = 250e6;
            let price = part * controller.share * program / SAMPLES_PER_CHECK as f64;
            for _ in 0..800 {
                controller.follow_window(LoadWindow {
                    samples: SAMPLES_PER_CHECK,
                    bytes: SAMPLES_PER_CHECK * u64::from(MOST_INTERVAL),
                    timed: SAMPLES_PER_CHECK,
                    price_ns: Some(price as u64),
                    cpu_ns: (program * (1.0 + part * controller.share)) as u64,
                });
                assert_eq!(controller.interval, MOST_INTERVAL);
            }
            controller.is_exceeded()
        };
        assert!(!is_exceeded(0.9) && !is_exceeded(0.99));
        assert!(is_exceeded(1.05) && is_exceeded(3.0));
    }

    #[test]
    fn a_budget_that_cannot_be_kept_is_exceeded_at_the_largest_interval() {
        let mut simulation = Simulation::new(1, 1, 7);
        let load = SimulatedLoad {
            rate: 40.0,
            price: 50_000.0,
            threads: 1,
        };
        simulation.run(load, 10.0 * SECOND);
        assert_eq!(simulation.controller.interval, MOST_INTERVAL);
        assert!(simulation.controller.is_exceeded());
    }
}
