//! Errors of sampled allocations, by context, and what `budget=` has chosen.
//!
//! With one sampling interval, an error follows from the estimate and its interval. With `budget=` the interval varies, and the
//! log has the sum of the samples' variances for each context.

use std::collections::HashMap;
use std::fmt;

use lucce_callgraph::ContextId;
use lucce_command::grouped;
use lucce_options::kinds::{HEAP_INTERVAL, VARIANCE_UNIT};
use serde::Serialize;

use crate::contexts::EventContext;
use crate::profile::Profile;
use crate::recorded_options::read_recorded_options;

/// The first JDK that samples objects of all sizes without bias.
const FAIR_SAMPLES: u32 = 25;
const REASON_SAMPLE_BIAS: &str = "this JVM samples large objects too rarely (JDK-8356372, corrected in JDK 25): what makes objects that did \
    not fit into the rest of a thread's buffer can be a quarter too low, and what makes smaller ones a fifth too high";

/// The statistical error of an estimate from samples.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct SampleError {
    /// Approximate number of samples.
    pub samples: u64,
    /// Two standard deviations of the percentage of bytes: 95 of 100 runs are within.
    pub error_percent: f64,
}

/// The errors of a run's samples of one kind.
pub struct SampleErrors {
    /// The sampling interval in bytes: the largest, if it varied.
    interval: u64,
    /// With `budget=`: of each context.
    variances: Option<HashMap<ContextId, VarianceSum>>,
    /// By how much the truth may differ because this JVM samples some objects too rarely, in percent of the estimate.
    bias_percent: f64,
}

/// Samples and their variance, in units of [`VARIANCE_UNIT`].
#[derive(Clone, Copy, Default)]
struct VarianceSum {
    samples: u64,
    variance: u64,
}

/// An estimate's error.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct EstimateError {
    /// Approximate number of samples.
    pub samples: u64,
    /// 95 of 100 estimates are within this number of bytes of the truth.
    pub error_bytes: u64,
}

/// The largest bias of JVMs that sample large objects too rarely, in percent of the estimate: see [`explain_sample_bias`]. If that is
/// a quarter too low, the truth is a third above it.
const LARGEST_BIAS: f64 = 100.0 / 3.0;

impl SampleErrors {
    /// Reads the errors of allocations. `None`: they are not sampled.
    #[must_use]
    pub fn read(profile: &Profile) -> Option<SampleErrors> {
        let interval = read_sampled_bytes(profile)?;
        let variances = summarize_budget(profile).map(|_| {
            let mut sums: HashMap<ContextId, VarianceSum> = HashMap::new();
            for counter in profile.sample_errors.as_slice() {
                let sum = sums.entry(counter.id).or_default();
                sum.samples = sum.samples.saturating_add(counter.count);
                sum.variance = sum.variance.saturating_add(counter.value);
            }
            sums
        });
        Some(SampleErrors {
            variances,
            ..SampleErrors::with_interval(profile, interval)
        })
    }

    /// Reads the errors of what reached the heap. `None`: it was not sampled.
    #[must_use]
    pub fn read_heap(profile: &Profile) -> Option<SampleErrors> {
        let interval = read_heap_interval(profile)?;
        Some(SampleErrors::with_interval(profile, interval))
    }

    fn with_interval(profile: &Profile, interval: u64) -> SampleErrors {
        SampleErrors {
            interval,
            variances: None,
            bias_percent: match explain_sample_bias(profile) {
                Some(_) => LARGEST_BIAS,
                None => 0.0,
            },
        }
    }

    /// The error of the sum of these contexts, as of [`Self::counter_error`].
    #[must_use]
    pub fn context_error<'c>(
        &self,
        contexts: impl Iterator<Item = &'c EventContext> + Clone,
    ) -> EstimateError {
        self.counter_error(contexts.flat_map(|context| {
            let own = (context.id, context.count, context.value);
            // The sums are those of the first id.
            let aliases = context.aliases.iter().map(|id| (*id, 0, 0));
            std::iter::once(own).chain(aliases)
        }))
    }

    /// The error of the sum of counters: of chance, and with the bias of the JVM. `counters` as in [`Self::chance_error`].
    #[must_use]
    pub fn counter_error(
        &self,
        counters: impl Iterator<Item = (ContextId, u64, u64)> + Clone,
    ) -> EstimateError {
        let bytes = counters.clone().map(|(_, _, value)| value);
        let bytes = bytes.fold(0, u64::saturating_add);
        let chance = self.chance_error(counters);
        let bias = bytes as f64 * self.bias_percent / 100.0;
        EstimateError {
            error_bytes: chance.error_bytes.saturating_add(bias.round() as u64),
            ..chance
        }
    }

    /// The error of chance of the sum of counters: context id, objects, bytes. All counters of a context are summed or none. A context
    /// without a variance has that of samples with the largest interval.
    #[must_use]
    pub fn chance_error(
        &self,
        counters: impl Iterator<Item = (ContextId, u64, u64)>,
    ) -> EstimateError {
        let mut sums: HashMap<ContextId, VarianceSum> = HashMap::new();
        let mut others = Vec::new();
        let known = self.variances.as_ref();
        for (id, count, value) in counters {
            match known.and_then(|variances| variances.get(&id)) {
                Some(sum) => {
                    sums.insert(id, *sum);
                }
                None => others.push((count, value)),
            }
        }
        let error = SampleError::new(others.iter().copied(), self.interval);
        let bytes = others.iter().map(|(_, value)| *value as f64).sum::<f64>();
        let deviation = bytes * error.error_percent / 200.0;
        let (mut samples, mut variance) = (error.samples, deviation * deviation);
        for sum in sums.values() {
            samples = samples.saturating_add(sum.samples);
            variance += sum.variance as f64 * VARIANCE_UNIT;
        }
        // The variance is itself an estimate, and too small if chance gave few samples.
        let few = match samples {
            0 => 1.0,
            samples => (samples as f64 + 2.0) / samples as f64,
        };
        EstimateError {
            samples,
            error_bytes: (2.0 * (variance * few).sqrt()).round() as u64,
        }
    }
}

impl SampleError {
    /// Computes the error of an estimate. `counters`: the estimated objects and bytes of each counter. `interval`: the
    /// sampling interval in bytes.
    ///
    /// An object of `size` bytes is sampled with probability `1 − e^(−size/interval)`,
    /// and a sample stands for `1 ÷ probability` objects. So a counter has about `objects × probability` samples,
    /// and each adds `(size ÷ probability)² × (1 − probability)` to the variance of the sum. Rounding to whole objects adds at most
    /// a quarter of the square of the size: sizes differ, so the fraction of `1 ÷ probability` is not known above 1.5.
    pub(crate) fn new(counters: impl Iterator<Item = (u64, u64)>, interval: u64) -> SampleError {
        let (mut samples, mut bytes, mut variance) = (0.0, 0.0, 0.0);
        for (count, value) in counters.filter(|(count, _)| *count > 0) {
            let size = value as f64 / count as f64;
            let chance = match interval {
                0 => 1.0,
                _ => -(-size / interval as f64).exp_m1(),
            };
            if chance <= 0.0 {
                continue;
            }
            let own = count as f64 * chance;
            samples += own;
            bytes += value as f64;
            let weight = 1.0 / chance;
            let part = (weight - 1.0).min(0.5);
            let rounding = part * (1.0 - part);
            variance += own * size * size * (weight * weight * (1.0 - chance) + rounding);
        }
        let relative: f64 = if bytes > 0.0 {
            2.0 * variance.sqrt() / bytes
        } else {
            0.0
        };
        SampleError {
            samples: samples.round() as u64,
            error_percent: 100.0 * relative,
        }
    }

    /// Scales the error to a percentage.
    pub(crate) fn scale_to_percent(self, percent: Option<f64>) -> SampleError {
        SampleError {
            error_percent: self.error_percent * percent.unwrap_or(100.0) / 100.0,
            ..self
        }
    }
}

/// The sampling interval in bytes, if allocations are estimated from samples: the largest, if it varied.
#[must_use]
pub fn read_sampled_bytes(profile: &Profile) -> Option<u64> {
    let first = profile.meta.get("sampled.bytes")?.parse().ok();
    // Only with `budget=`.
    match profile.stat_value("budget.interval_most") {
        0 => first,
        most => Some(most),
    }
}

/// The sampling interval in bytes of what reached the heap; `None`: it was not sampled.
#[must_use]
pub fn read_heap_interval(profile: &Profile) -> Option<u64> {
    let interval = profile.meta.get(HEAP_INTERVAL)?.parse().ok();
    interval.filter(|interval| *interval > 0)
}

/// A known bias of the samples of the JVM that wrote the log.
#[must_use]
pub fn explain_sample_bias(profile: &Profile) -> Option<&'static str> {
    if read_sampled_bytes(profile).is_none() && read_heap_interval(profile).is_none() {
        return None;
    }
    let version = profile.meta.get("jvm")?.split(['.', '-', '+']).next()?;
    let version: u32 = version.parse().ok()?;
    (version < FAIR_SAMPLES).then_some(REASON_SAMPLE_BIAS)
}

/// What `budget=` has chosen, and what it cost.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BudgetSummary {
    /// The budget, as a percentage of the program's CPU time.
    pub percent: u32,
    /// How allocations were recorded: `samples`.
    pub mode: &'static str,
    /// What samples took by the agent's clock. `None`: not known yet.
    pub cost_percent: Option<f64>,
    /// The sampling interval in bytes: the last one, the smallest, and the largest.
    pub interval_bytes: u64,
    pub least_bytes: u64,
    pub most_bytes: u64,
}

/// What `budget=` has chosen. `None`: the run has no budget.
#[must_use]
pub fn summarize_budget(profile: &Profile) -> Option<BudgetSummary> {
    if !profile.meta.contains_key("budget") {
        return None;
    }
    let percent = read_recorded_options(profile)?.budget?.percent();
    let first = profile.meta.get("sampled.bytes")?.parse().unwrap_or(0);
    let stat = |key| Some(profile.stat_value(key)).filter(|value| *value > 0);
    let interval = |key| stat(key).unwrap_or(first);
    let cost = profile.stat_value("budget.cost_ns");
    let program = stat("budget.cpu_ns").map(|cpu| cpu.saturating_sub(cost).max(1));
    Some(BudgetSummary {
        percent,
        mode: "samples",
        cost_percent: program.map(|program| cost as f64 * 100.0 / program as f64),
        interval_bytes: interval("budget.interval"),
        least_bytes: interval("budget.interval_least"),
        most_bytes: interval("budget.interval_most"),
    })
}

/// `one every 65,536 bytes on average`. `None`: allocations are not sampled.
#[must_use]
pub fn describe_sampling(profile: &Profile) -> Option<String> {
    let text = match summarize_budget(profile) {
        Some(budget) => format!(
            "one every {} to {} bytes (budget={}%)",
            grouped(budget.least_bytes),
            grouped(budget.most_bytes),
            budget.percent
        ),
        None => {
            let bytes = read_sampled_bytes(profile)?;
            format!("one every {} bytes on average", grouped(bytes))
        }
    };
    Some(text)
}

/// `samples may cost 10% of the program's CPU time, and took 8.4%: allocations are estimates, without hooks`
impl fmt::Display for BudgetSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "samples may cost {}% of the program's CPU time",
            self.percent
        )?;
        if let Some(cost) = self.cost_percent {
            write!(f, ", and took {cost:.1}%")?;
        }
        f.write_str(": allocations are estimates, without hooks")
    }
}

#[cfg(test)]
mod sample_errors_tests {
    use lucce_testkit::random::Random;

    use super::*;

    fn errors(interval: u64, variances: Option<&[(u64, u64, u64)]>) -> SampleErrors {
        let variances = variances.map(|sums| {
            let sums = sums.iter().map(|(id, samples, variance)| {
                let (samples, variance) = (*samples, *variance);
                (ContextId(*id), VarianceSum { samples, variance })
            });
            sums.collect()
        });
        SampleErrors {
            interval,
            variances,
            bias_percent: 0.0,
        }
    }

    /// 100 samples, each of which stands for 64 KB: two deviations are 2 · 10 · 64 KB, and 1% for the unknown variance.
    #[test]
    fn fixed_and_varying_intervals_have_the_same_error() {
        let (samples, interval) = (100, 65_536);
        let unit = (interval * interval / 65_536, samples * interval);
        let varying = [(7, samples, samples * unit.0)];
        let varying = errors(interval, Some(&varying));
        let fixed = errors(interval, None);
        let counters = [(ContextId(7), unit.1 / 16, unit.1)];
        let expected = 2.0 * (samples as f64 * 1.02).sqrt() * interval as f64;
        for errors in [varying, fixed] {
            let error = errors.chance_error(counters.into_iter());
            assert_eq!(error.samples, samples);
            let distance = error.error_bytes as f64 / expected - 1.0;
            assert!(distance.abs() < 0.001, "{error:?}, expected {expected}");
        }
    }

    /// The truth of an estimate that is a quarter too low is a third above it.
    #[test]
    fn the_error_contains_the_bias() {
        let errors = SampleErrors {
            bias_percent: LARGEST_BIAS,
            ..errors(0, None)
        };
        let truth = 1_600_000;
        let estimate = truth * 3 / 4;
        let counters = [(ContextId(7), 1200, estimate)];
        let error = errors.counter_error(counters.into_iter());
        assert_eq!(error.error_bytes, truth - estimate);
    }

    /// A context without a variance has the error of the largest interval.
    #[test]
    fn no_context_is_exact_because_its_variance_is_missing() {
        let interval = 65_536;
        let (one, two) = ((ContextId(1), 100, 1600), (ContextId(2), 4096, 65_536));
        let unit = 65_536;
        let varying = errors(interval, Some(&[(1, 50, 50 * unit)]));
        let alone = varying.chance_error([two].into_iter());
        let fixed = errors(interval, None).chance_error([two].into_iter());
        assert_eq!(alone, fixed);
        assert!(alone.error_bytes > 65_536, "{alone:?}");
        let both = varying.chance_error([one, two, one].into_iter());
        let expected = 2.0 * (51.0_f64 * 53.0 / 51.0).sqrt() * interval as f64;
        assert_eq!(both.samples, 51);
        let distance = both.error_bytes as f64 / expected - 1.0;
        assert!(distance.abs() < 0.001, "{both:?}, expected {expected}");
        // Aliases have no bytes of their own.
        let aliased = [one, (ContextId(3), 0, 0)];
        let aliased = varying.chance_error(aliased.into_iter());
        assert_eq!(aliased, varying.chance_error([one].into_iter()));
    }

    /// Draws samples like the VM and rounds them like the agent, many times. The remainder is that of other contexts.
    #[test]
    fn sums_of_all_sizes_are_within_their_errors_in_95_of_100_runs() {
        const ROUNDS: u32 = 1000;
        let interval = 65_536_u64;
        let mut random = Random(7);
        let cases = [
            (0.1_f64, 2000_u64),
            (1.0, 400),
            (2.0, 400),
            (3.0, 400),
            (5.0, 400),
        ];
        for (relative, objects) in cases {
            let size = (relative * interval as f64).round() as u64;
            let chance = 1.0 - (-relative).exp();
            let mut within = 0;
            for _ in 0..ROUNDS {
                let mut counted = 0_u64;
                for _ in 0..objects {
                    if random.uniform() < chance {
                        counted += (1.0 / chance + random.uniform()).floor() as u64;
                    }
                }
                let counter = (ContextId(1), counted, counted * size);
                let error = errors(interval, None).chance_error([counter].into_iter());
                within += u32::from(objects.abs_diff(counted) * size <= error.error_bytes);
            }
            let is_right = within >= ROUNDS * 93 / 100;
            assert!(is_right, "{relative} intervals: {within} of {ROUNDS}");
        }
    }

    #[test]
    fn samples_may_cost_what_the_user_has_said() {
        let mut summary = BudgetSummary {
            percent: 10,
            mode: "samples",
            cost_percent: Some(8.42),
            interval_bytes: 1024,
            least_bytes: 1024,
            most_bytes: 1024,
        };
        let text = "samples may cost 10% of the program's CPU time";
        let end = ": allocations are estimates, without hooks";
        assert_eq!(summary.to_string(), format!("{text}, and took 8.4%{end}"));
        summary.cost_percent = None;
        assert_eq!(summary.to_string(), format!("{text}{end}"));
    }

    #[test]
    fn variances_of_contexts_add_up_once() {
        let sums = [(1, 2, 300), (2, 2, 400), (3, 50, 5)];
        let errors = errors(1, Some(&sums));
        let counters = [1, 2, 1].map(|id| (ContextId(id), 1, 1));
        let error = errors.chance_error(counters.into_iter());
        let expected = 2.0 * (700.0 * 65_536.0 * 6.0 / 4.0_f64).sqrt();
        assert_eq!(error.samples, 4);
        assert!((error.error_bytes as f64 - expected).abs() <= 1.0);
    }
}
