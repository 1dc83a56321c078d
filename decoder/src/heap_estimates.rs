//! What of the counted allocations reached the heap: estimates from the VM's samples, beside exact counts.
//!
//! Hooks count what the bytecode creates. Compiled code creates less, because escape analysis removes objects. With
//! `events=alloc+heap` the log also has samples of what reached the heap. Both are joined by trace and type.
//!
//! Some traces differ in their innermost frame: samples show the native frame that allocates, and compiled code omits a
//! frame whose allocation is counted. Such samples are joined by their callers ([`CallerIndex`]). Of the others only the
//! type is known here, and reports sum them up by own line.

use std::collections::HashMap;

use lucce_contentid::StackId;
use lucce_options::kinds::{SURVIVE, SURVIVED_COLLECTIONS, TENURING_THRESHOLD};
use lucce_tracelog::EventTypeId;
use serde::Serialize;

use crate::contexts::EventContext;
use crate::kinds::HEAP;
use crate::profile::Profile;
use crate::sample_errors::{SampleError, read_heap_interval};
use crate::traces::TraceTree;

/// A trace and a type.
type ContextKey = (StackId, Option<String>);

/// Estimates of what reached the heap, by context.
pub struct HeapEstimates {
    interval: u64,
    /// Whether the run has numbers of `events=survive`.
    has_survival: bool,
    by_context: HashMap<ContextKey, SampledSum>,
    /// Samples in contexts without exact counts, by type.
    unjoined: HashMap<Option<String>, SampledSum>,
}

/// Estimated objects and bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct SampledSum {
    objects: u64,
    bytes: u64,
    /// Bytes of the kinds of `events=survive`, in their order.
    survival: [u64; SURVIVAL_KINDS],
}

/// The number of kinds of `events=survive`: old, died young, and an entry for each number of survived collections.
pub const SURVIVAL_KINDS: usize = 2 + SURVIVED_COLLECTIONS.len();

/// What of the sampled objects lives how long: bytes. What is neither old nor dead was alive and young at last, or was not
/// followed: see [`lucce_options::kinds::UNFOLLOWED_SAMPLES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SurvivalAmount {
    /// Bytes that died before they were old.
    pub died_bytes: u64,
    /// Bytes that 1, 2, 4 and 8 young collections have not freed.
    pub lived_bytes: [u64; SURVIVED_COLLECTIONS.len()],
    /// Bytes in the old generation.
    pub old_bytes: u64,
}

impl SurvivalAmount {
    fn from_kinds([old, died, one, two, four, eight]: [u64; SURVIVAL_KINDS]) -> SurvivalAmount {
        SurvivalAmount {
            died_bytes: died,
            lived_bytes: [one, two, four, eight],
            old_bytes: old,
        }
    }
}

/// Whether the run has numbers of survivors (agent option `events=survive`). Those of an interval are not known: samples of
/// earlier times die in it.
#[must_use]
pub fn has_survival(profile: &Profile) -> bool {
    profile.meta.contains_key(TENURING_THRESHOLD) && profile.interval.is_none()
}

/// The contexts of samples of the heap, and of how long they live.
#[must_use]
pub fn list_sampled_contexts(profile: &Profile) -> Vec<EventContext> {
    let kinds = std::iter::once(HEAP).chain(SURVIVE.log_kinds.iter().copied());
    let contexts = kinds.flat_map(|kind| {
        let events = profile.events_of_kind(kind.name);
        profile.list_contexts_of(&events, &|_| ()).list
    });
    contexts.collect()
}

/// What an event type says about samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SampleRole {
    /// What reached the heap.
    Heap,
    /// A kind of `events=survive`, by its place in [`SURVIVE`].
    Survival(usize),
}

/// The role of an event type. `None`: its events are no samples beside exact counts.
#[must_use]
pub fn find_sample_role(profile: &Profile, event: EventTypeId) -> Option<SampleRole> {
    let is_kind = |name| profile.is_event_of_kind(event, name);
    let survival = || {
        let mut kinds = SURVIVE.log_kinds.iter();
        kinds.position(|kind| is_kind(kind.name))
    };
    match is_kind(HEAP.name) {
        true => Some(SampleRole::Heap),
        false => survival().map(SampleRole::Survival),
    }
}

/// What of counted allocations reached the heap.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct HeapAmount {
    /// Estimated number of objects and their bytes.
    pub count: u64,
    pub bytes: u64,
    /// Approximate number of samples.
    pub samples: u64,
    /// Two standard deviations of the bytes: 95 of 100 runs are within.
    pub error_bytes: u64,
    /// Whether the compiler removed all of these allocations, with a certainty of 99.9%.
    pub removed: bool,
    /// How long they live, if the run has followed its samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survival: Option<SurvivalAmount>,
}

impl SampledSum {
    fn from_context(profile: &Profile, context: &EventContext) -> SampledSum {
        let mut sum = SampledSum::default();
        match find_sample_role(profile, context.event) {
            Some(SampleRole::Survival(kind)) => {
                sum.survival
                    .iter_mut()
                    .skip(kind)
                    .take(1)
                    .for_each(|bytes| *bytes = context.value);
            }
            Some(SampleRole::Heap) | None => {
                (sum.objects, sum.bytes) = (context.count, context.value);
            }
        }
        sum
    }

    fn add(&mut self, more: SampledSum) {
        self.objects = self.objects.saturating_add(more.objects);
        self.bytes = self.bytes.saturating_add(more.bytes);
        for (sum, more) in self.survival.iter_mut().zip(more.survival) {
            *sum = sum.saturating_add(more);
        }
    }
}

impl HeapEstimates {
    /// Joins sampled contexts to exact ones. `None`: the run has no samples of the heap.
    #[must_use]
    pub fn new(
        profile: &Profile,
        exact: &[EventContext],
        sampled: &[EventContext],
    ) -> Option<HeapEstimates> {
        let interval = read_heap_interval(profile)?;
        let key = |context: &EventContext| {
            let detail = profile.context_detail(context).map(str::to_owned);
            (context.stack, detail)
        };
        let mut by_context: HashMap<ContextKey, SampledSum> = exact
            .iter()
            .map(|context| (key(context), SampledSum::default()))
            .collect();
        let mut unjoined: HashMap<Option<String>, SampledSum> = HashMap::new();
        let mut others = Vec::new();
        for context in sampled {
            match by_context.get_mut(&key(context)) {
                Some(sum) => sum.add(SampledSum::from_context(profile, context)),
                None => others.push(context),
            }
        }
        let mut index = match others.is_empty() {
            true => CallerIndex::empty(profile),
            false => CallerIndex::new(profile, exact),
        };
        for context in others {
            let exact = index.find_exact(context);
            let more = SampledSum::from_context(profile, context);
            match exact.and_then(|exact| by_context.get_mut(&key(exact))) {
                Some(sum) => sum.add(more),
                None => unjoined.entry(key(context).1).or_default().add(more),
            }
        }
        Some(HeapEstimates {
            interval,
            has_survival: has_survival(profile),
            by_context,
            unjoined,
        })
    }

    /// The mean number of bytes between two samples.
    #[must_use]
    pub fn interval(&self) -> u64 {
        self.interval
    }

    /// What of a context with exact counts reached the heap.
    #[must_use]
    pub fn context_amount(&self, profile: &Profile, context: &EventContext) -> HeapAmount {
        let detail = profile.context_detail(context).map(str::to_owned);
        let key = (context.stack, detail);
        let sum = self.by_context.get(&key).copied().unwrap_or_default();
        let elsewhere = self.unjoined.get(&key.1).copied().unwrap_or_default();
        HeapAmount {
            removed: sum.objects == 0 && self.is_certain(context, elsewhere),
            ..self.estimate(&[sum])
        }
    }

    /// What reached the heap of a line of own code: `exact` and `sampled` are its contexts.
    #[must_use]
    pub fn line_amount(
        &self,
        profile: &Profile,
        exact: &[&EventContext],
        sampled: &[&EventContext],
    ) -> HeapAmount {
        let sums = sampled.iter();
        let sums = sums.map(|context| SampledSum::from_context(profile, context));
        let sums: Vec<_> = sums.collect();
        let expected = exact
            .iter()
            .map(|context| self.expected_samples(context.count, context.value));
        HeapAmount {
            removed: sampled.is_empty() && is_improbable(expected.sum(), 0.0),
            ..self.estimate(&sums)
        }
    }

    /// The sum of samples in contexts without exact counts.
    #[must_use]
    pub fn unjoined_amount(&self) -> HeapAmount {
        let sums: Vec<_> = self.unjoined.values().copied().collect();
        self.estimate(&sums)
    }

    /// The sum of all samples.
    #[must_use]
    pub fn total_amount(&self) -> HeapAmount {
        let sums = self.by_context.values().chain(self.unjoined.values());
        let sums: Vec<_> = sums.copied().collect();
        self.estimate(&sums)
    }

    fn estimate(&self, sums: &[SampledSum]) -> HeapAmount {
        let mut total = SampledSum::default();
        sums.iter().for_each(|sum| total.add(*sum));
        let amounts = sums.iter().filter(|sum| sum.objects > 0);
        let amounts = amounts.map(|sum| (sum.objects, sum.bytes));
        let survival = SurvivalAmount::from_kinds(total.survival);
        HeapAmount {
            survival: self.has_survival.then_some(survival),
            ..HeapAmount::from_sums(amounts, self.interval)
        }
    }

    /// Whether so few samples show that the context's objects did not reach the heap. `elsewhere`: samples of the same
    /// type without exact counts, which may be the context's.
    fn is_certain(&self, context: &EventContext, elsewhere: SampledSum) -> bool {
        let expected = self.expected_samples(context.count, context.value);
        let seen = self.expected_samples(elsewhere.objects, elsewhere.bytes);
        is_improbable(expected, seen)
    }

    /// The mean number of samples of so many objects and bytes on the heap.
    fn expected_samples(&self, objects: u64, bytes: u64) -> f64 {
        let size = bytes as f64 / objects.max(1) as f64;
        objects as f64 * -(-size / self.interval as f64).exp_m1()
    }
}

/// Exact counts by traces and by callers of traces, for samples whose innermost frame differs. `None`: several contexts.
struct CallerIndex<'p> {
    profile: &'p Profile,
    traces: TraceTree<'p>,
    by_trace: HashMap<(StackId, Option<&'p str>), Option<&'p EventContext>>,
    by_callers: HashMap<(StackId, Option<&'p str>), Option<&'p EventContext>>,
    /// Contexts by trace, whatever their type.
    of_any_type: HashMap<StackId, Option<&'p EventContext>>,
}

impl<'p> CallerIndex<'p> {
    fn empty(profile: &'p Profile) -> CallerIndex<'p> {
        CallerIndex {
            profile,
            traces: TraceTree::new(profile),
            by_trace: HashMap::new(),
            by_callers: HashMap::new(),
            of_any_type: HashMap::new(),
        }
    }

    fn new(profile: &'p Profile, exact: &'p [EventContext]) -> CallerIndex<'p> {
        let mut index = CallerIndex::empty(profile);
        for context in exact {
            let Ok(trace) = index.traces.insert_trace(context.id) else {
                continue;
            };
            let (stack, callers) = (
                index.traces.stack_id(trace),
                index.traces.callers_stack_id(trace),
            );
            let class = profile.context_detail(context);
            let add = |known: &mut Option<&'p EventContext>| *known = None;
            let by_trace = index.by_trace.entry((stack, class));
            by_trace.and_modify(add).or_insert(Some(context));
            let by_callers = index.by_callers.entry((callers, class));
            by_callers.and_modify(add).or_insert(Some(context));
            let of_any_type = index.of_any_type.entry(stack);
            of_any_type.and_modify(add).or_insert(Some(context));
        }
        index
    }

    /// The exact count that a sample belongs to: of its callers, or of another line of its innermost frame.
    fn find_exact(&mut self, sample: &EventContext) -> Option<&'p EventContext> {
        let trace = self.traces.insert_trace(sample.id).ok()?;
        let callers = self.traces.callers_stack_id(trace);
        let class = self.profile.context_detail(sample);
        let of_type = |index: &HashMap<_, Option<&'p EventContext>>| {
            index.get(&(callers, class)).copied().flatten()
        };
        of_type(&self.by_trace)
            .or_else(|| of_type(&self.by_callers))
            .or_else(|| self.of_any_type.get(&callers).copied().flatten())
    }
}

impl HeapAmount {
    /// Sums up estimated objects and bytes, with the error of the sum. `interval`: the sampling interval in bytes.
    #[must_use]
    pub fn from_sums(sums: impl Iterator<Item = (u64, u64)> + Clone, interval: u64) -> HeapAmount {
        let error = SampleError::new(sums.clone(), interval);
        let add = |(count, bytes): (u64, u64), (more, size): (u64, u64)| {
            (count.saturating_add(more), bytes.saturating_add(size))
        };
        let (count, bytes) = sums.fold((0, 0), add);
        HeapAmount {
            count,
            bytes,
            samples: error.samples,
            error_bytes: (bytes as f64 * error.error_percent / 100.0).round() as u64,
            removed: false,
            survival: None,
        }
    }

    /// Adds how long the objects live: bytes of the kinds of [`SURVIVE`], in their order.
    #[must_use]
    pub fn with_survival(self, bytes: [u64; SURVIVAL_KINDS]) -> HeapAmount {
        HeapAmount {
            survival: Some(SurvivalAmount::from_kinds(bytes)),
            ..self
        }
    }
}

/// Whether at most `seen` samples have a probability below 0.1% if `expected` are expected (Chernoff's bound of the
/// Poisson distribution).
fn is_improbable(expected: f64, seen: f64) -> bool {
    /// The natural logarithm of 0.1%.
    const LIMIT: f64 = -6.907_755;
    let bound = match seen > 0.0 {
        _ if seen >= expected => 0.0,
        true => seen * (1.0 + (expected / seen).ln()) - expected,
        false => -expected,
    };
    bound < LIMIT
}

#[cfg(test)]
mod heap_estimates_tests {
    use super::*;

    fn estimates(elsewhere: SampledSum) -> HeapEstimates {
        HeapEstimates {
            interval: 1_000,
            has_survival: false,
            by_context: HashMap::new(),
            unjoined: HashMap::from([(None, elsewhere)]),
        }
    }

    fn context(count: u64, value: u64) -> EventContext {
        EventContext {
            longest: 0,
            id: Default::default(),
            aliases: Vec::new(),
            stack: StackId::EMPTY,
            site: Default::default(),
            event: Default::default(),
            count,
            value,
        }
    }

    /// Seven samples are expected of 7,000 bytes in small objects: none comes by chance in e⁻⁷ = 0.09% of all runs.
    #[test]
    fn objects_are_removed_if_samples_are_certain() {
        let none = estimates(SampledSum::default());
        assert!(none.is_certain(&context(7_000, 7_000), SampledSum::default()));
        assert!(!none.is_certain(&context(6_900, 6_900), SampledSum::default()));
        // Large objects are always samples, but each is one.
        assert!(!none.is_certain(&context(6, 6_000_000), SampledSum::default()));
        assert!(none.is_certain(&context(8, 8_000_000), SampledSum::default()));
    }

    #[test]
    fn samples_elsewhere_may_be_of_the_context() {
        let some = SampledSum {
            objects: 7_000,
            bytes: 7_000,
            ..SampledSum::default()
        };
        let with = estimates(some);
        assert!(!with.is_certain(&context(10_000, 10_000), some));
        assert!(with.is_certain(&context(40_000, 40_000), some));
        assert_eq!(with.unjoined_amount().samples, 7);
    }

    /// The bound is never below the distribution's own value.
    #[test]
    fn the_bound_is_not_below_the_probability() {
        for expected in [1.0_f64, 5.0, 7.0, 12.0, 30.0, 100.0] {
            for seen in 0..expected as u32 {
                let mut term = (-expected).exp();
                let mut sum = term;
                for n in 1..=seen {
                    term *= expected / f64::from(n);
                    sum += term;
                }
                assert!(!is_improbable(expected, f64::from(seen)) || sum < 0.001);
            }
        }
    }

    /// Of n samples of small objects, two standard deviations are 2 ÷ √n.
    #[test]
    fn the_error_is_of_the_number_of_samples() {
        let estimate = |objects, bytes| {
            let sum = SampledSum {
                objects,
                bytes,
                ..SampledSum::default()
            };
            estimates(SampledSum::default()).estimate(&[sum])
        };
        let amount = estimate(400_000, 400_000);
        assert_eq!(amount.samples, 400);
        assert!(amount.error_bytes.abs_diff(40_000) < 100, "{amount:?}");
        let large = estimate(3, 3_000_000);
        assert_eq!((large.samples, large.error_bytes), (3, 0));
    }
}
