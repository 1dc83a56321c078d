//! Allocation coverage: bytes in the log's counters, divided by the bytes that threads allocated by the VM's own count.

use std::collections::BTreeMap;
use std::fmt;

use lucce_callgraph::{ContextId, MethodId};
use lucce_tracelog::{CountedSum, ThreadId, VmCounterValue};
use serde::Serialize;

use lucce_command::grouped;

use crate::kinds::{ALLOC, ALLOCATION};
use crate::profile::Profile;
use crate::sample_errors::{SampleError, SampleErrors};
use crate::tags::has_tags;

/// Counted and allocated bytes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AllocationCoverage {
    #[serde(flatten)]
    pub sum: CoverageBytes,
    /// Whether the counted bytes are an estimate from samples.
    pub estimated: bool,
    /// The error of the estimate. `None`: it is no estimate.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub samples: Option<SampleError>,
    /// Time of the VM's last count, in milliseconds since 1970; the counted bytes are of the same moment. `None`: the end
    /// of the run.
    #[serde(rename = "asked", skip_serializing_if = "Option::is_none")]
    pub counted_at_ms: Option<u64>,
    /// Milliseconds from the start of the run to that moment.
    #[serde(skip)]
    pub counted_after_ms: u64,
    /// Why coverage is not near 100%, if the reason is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Threads, largest allocations first.
    pub threads: Vec<ThreadCoverage>,
}

/// Coverage of one thread, or of several threads with one id in the log.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ThreadCoverage {
    pub thread: String,
    #[serde(flatten)]
    pub bytes: CoverageBytes,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CoverageBytes {
    pub counted: u64,
    /// By the VM's count.
    pub allocated: u64,
    /// Counted bytes as a percentage of allocated ones. `None`: the VM counted nothing.
    pub percent: Option<f64>,
}

/// Threads whose bytes are compared as one: the VM adds a virtual thread's allocations to its carrier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CoverageThreadGroup {
    Thread(ThreadId),
    Virtual,
    /// Threads without events, which have no id.
    WithoutEvents,
}

const VIRTUAL: &str = "virtual threads and their carriers";
const WITHOUT_EVENTS: &str = "threads without events";
const NO_VM_COUNTS: &str = "the log does not say what the VM allocated";
const NO_EARLIER_COUNTS: &str = "the JVM was killed or still runs, and its agent is too old to say what had been counted when the VM was last asked";
const REASON_ABOVE: &str =
    "compiled code need not allocate what its bytecode says (escape analysis), and it is counted";
const REASON_DROPPED: &str = "events were lost";
const REASON_BELOW: &str = "what the VM makes by itself is not counted";
const REASON_ATTACHED_LATE: &str = "the agent was attached: of a thread that ran before the VM tells nothing until it has allocated some 512 KB";
/// Largest difference from 100% that needs no explanation, in percent.
const MAX_UNEXPLAINED_PERCENT: f64 = 0.5;

/// Compares the counted bytes with the VM's count.
///
/// # Errors
/// The reason why they cannot be compared.
pub fn compute_coverage(profile: &Profile) -> Result<AllocationCoverage, &str> {
    if let Some(reason) = profile.meta.get("coverage.none") {
        return Err(reason);
    }
    if profile.vm_counts.is_empty() {
        return Err(NO_VM_COUNTS);
    }
    if !profile.ended && profile.counted_sums.is_empty() {
        return Err(NO_EARLIER_COUNTS);
    }
    let mut of: BTreeMap<CoverageThreadGroup, CoverageBytes> = BTreeMap::new();
    let virtual_events = add_counted_bytes(profile, &mut of);
    for count in &profile.vm_counts {
        let who = thread_group(count, virtual_events);
        let covered = of.entry(who).or_insert(CoverageBytes::NONE);
        covered.allocated = covered.allocated.saturating_add(count.bytes);
    }
    let sum = of
        .values()
        .copied()
        .fold(CoverageBytes::NONE, CoverageBytes::saturating_add);
    let sum = sum.with_percent();
    let samples = SampleErrors::read(profile).map(|errors| {
        let allocations = profile.events.as_slice().iter();
        let allocations =
            allocations.filter(|share| profile.is_event_of_kind(share.event, ALLOC.name));
        let counters = allocations.map(|share| (share.id, share.count, share.value));
        let bytes = counters.clone().map(|(_, _, value)| value);
        let bytes = bytes.fold(0, u64::saturating_add);
        let error = errors.chance_error(counters);
        let error_percent = match bytes {
            0 => 0.0,
            bytes => error.error_bytes as f64 * 100.0 / bytes as f64,
        };
        let samples = error.samples;
        SampleError {
            samples,
            error_percent,
        }
        .scale_to_percent(sum.percent)
    });
    let counted_at_ms = profile.vm_counts.iter().map(|count| count.at / 1_000_000);
    let counted_at_ms = counted_at_ms.max().filter(|_| !profile.ended);
    let start = profile.header.start / 1_000_000;
    Ok(AllocationCoverage {
        sum,
        estimated: samples.is_some(),
        samples,
        counted_at_ms,
        counted_after_ms: counted_at_ms
            .map_or(0, |counted_at_ms| counted_at_ms.saturating_sub(start)),
        reason: sum.percent.and_then(|percent| {
            explain_percent(profile, percent, samples).or_else(|| {
                let silent = of
                    .get(&CoverageThreadGroup::WithoutEvents)
                    .map_or(0, |silent| silent.allocated);
                let missing = sum.allocated.saturating_sub(sum.counted);
                let is_late = profile.meta.contains_key("attached") && samples.is_none();
                // These threads have most of the missing bytes.
                (is_late && percent < 100.0 - MAX_UNEXPLAINED_PERCENT && silent > missing / 2)
                    .then_some(REASON_ATTACHED_LATE)
            })
        }),
        threads: coverage_by_name(profile, of),
    })
}

/// Coverage by thread name, largest allocations first.
fn coverage_by_name(
    profile: &Profile,
    of: BTreeMap<CoverageThreadGroup, CoverageBytes>,
) -> Vec<ThreadCoverage> {
    let mut by_name: BTreeMap<String, CoverageBytes> = BTreeMap::new();
    for (who, bytes) in of {
        let sum = by_name
            .entry(group_name(profile, who))
            .or_insert(CoverageBytes::NONE);
        *sum = sum.saturating_add(bytes);
    }
    let threads = by_name.into_iter().map(|(thread, bytes)| ThreadCoverage {
        thread,
        bytes: bytes.with_percent(),
    });
    let mut threads: Vec<_> = threads
        .filter(|thread| thread.bytes != CoverageBytes::NONE)
        .collect();
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.bytes.allocated));
    threads
}

/// Adds each thread's bytes, counted until the VM's last count. Returns whether any thread is virtual.
fn add_counted_bytes(
    profile: &Profile,
    of: &mut BTreeMap<CoverageThreadGroup, CoverageBytes>,
) -> bool {
    let mut last = None;
    let mut virtual_events = false;
    let mut by_thread: BTreeMap<ThreadId, AllocationSum> = BTreeMap::new();
    let allocations = profile.events.as_slice().iter();
    for share in allocations.filter(|share| profile.is_event_of_kind(share.event, ALLOC.name)) {
        let sum = by_thread.entry(share.thread).or_default();
        if share.event == ALLOCATION && share.value == 0 {
            let each = object_size_in(profile, share.id, &mut last);
            let bytes = share.count.saturating_mul(each);
            sum.object_bytes = sum.object_bytes.saturating_add(bytes);
            sum.objects = sum.objects.saturating_add(share.count);
        } else {
            sum.bytes = sum.bytes.saturating_add(share.value);
        }
    }
    if !profile.ended {
        let mut then: BTreeMap<ThreadId, CountedSum> = BTreeMap::new();
        for counted in &profile.counted_sums {
            then.insert(counted.thread, *counted);
        }
        for (thread, sum) in &mut by_thread {
            *sum = sum.estimate_earlier_sum(then.get(thread));
        }
    }
    for (thread, sum) in by_thread {
        let info = profile.threads.get(&thread);
        let is_virtual = info.is_some_and(|thread| thread.is_virtual);
        virtual_events |= is_virtual;
        let who = match is_virtual {
            true => CoverageThreadGroup::Virtual,
            false => CoverageThreadGroup::Thread(thread),
        };
        let covered = of.entry(who).or_insert(CoverageBytes::NONE);
        covered.counted = covered.counted.saturating_add(sum.all_bytes());
    }
    virtual_events
}

/// Bytes of an object allocated in a context; 0: sizes vary, or the log does not explain the id. `last`: the previous
/// result, because counters of one id are adjacent.
pub(crate) fn object_size_in(
    profile: &Profile,
    id: ContextId,
    last: &mut Option<(ContextId, u64)>,
) -> u64 {
    if let Some((known, size)) = last
        && *known == id
    {
        return *size;
    }
    let leaf = profile
        .graph
        .find_caller(id, MethodId::EVENT)
        .ok()
        .flatten();
    let size = leaf.and_then(|(_, leaf)| profile.code.object_size(leaf.site));
    let size = size.unwrap_or(0);
    *last = Some((id, size));
    size
}

fn group_name(profile: &Profile, who: CoverageThreadGroup) -> String {
    match who {
        CoverageThreadGroup::Virtual => VIRTUAL.into(),
        CoverageThreadGroup::WithoutEvents => WITHOUT_EVENTS.into(),
        // The VM does not count by tags, so per-thread counters with different tags are merged.
        CoverageThreadGroup::Thread(id) if has_tags(profile) => {
            mask_digits(&profile.thread_name(id))
        }
        CoverageThreadGroup::Thread(id) => profile.thread_name(id),
    }
}

/// Whether at least one event in a thousand was dropped.
fn has_dropped_many(profile: &Profile) -> bool {
    let counted = profile.events.as_slice().iter().map(|share| share.count);
    let counted = counted.fold(0, u64::saturating_add);
    profile.dropped_events() > counted / 1000
}

/// Why coverage is not near 100%. `None`: it needs no reason, or no known reason applies.
fn explain_percent(
    profile: &Profile,
    percent: f64,
    samples: Option<SampleError>,
) -> Option<&'static str> {
    let near = samples.map_or(MAX_UNEXPLAINED_PERCENT, |samples| {
        samples.error_percent.max(MAX_UNEXPLAINED_PERCENT)
    });
    if (percent - 100.0).abs() <= near {
        return None;
    }
    if percent < 100.0 && has_dropped_many(profile) {
        return Some(REASON_DROPPED);
    }
    // Samples and an attached agent's events come from the VM: they include compiled code and the VM's own
    // allocations. If the JVM was killed, the two sums are of slightly different moments.
    let is_exact = samples.is_none() && profile.ended && !has_no_hooks(profile);
    match percent > 100.0 {
        _ if !is_exact => None,
        true => Some(REASON_ABOVE),
        false => Some(REASON_BELOW),
    }
}

/// Whether the VM reported each event: the agent was attached, or no class had hooks.
fn has_no_hooks(profile: &Profile) -> bool {
    profile.meta.contains_key("attached")
        || profile
            .meta
            .get("tracking")
            .is_some_and(|how| how == "none")
}

/// The sum of the counters of one context id.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct AllocationSum {
    /// Bytes of counters that have bytes.
    bytes: u64,
    /// Number of objects whose size is that of their site; `object_bytes`: their bytes.
    objects: u64,
    object_bytes: u64,
}

impl AllocationSum {
    fn all_bytes(self) -> u64 {
        self.bytes.saturating_add(self.object_bytes)
    }

    /// Estimates the sum at an earlier moment, assuming that the mean object size was the same then.
    fn estimate_earlier_sum(self, then: Option<&CountedSum>) -> AllocationSum {
        let Some(then) = then else {
            // The first events of this context id are later.
            return AllocationSum::default();
        };
        let objects = then.objects.min(self.objects);
        let part = u128::from(self.object_bytes) * u128::from(objects);
        let part = part.checked_div(u128::from(self.objects)).unwrap_or(0);
        AllocationSum {
            bytes: then.bytes.min(self.bytes),
            objects,
            object_bytes: u64::try_from(part).unwrap_or(u64::MAX),
        }
    }
}

/// A thread's name with `*` for each sequence of digits: the name of a group of threads.
fn mask_digits(name: &str) -> String {
    let mut kind = String::with_capacity(name.len());
    for character in name.chars() {
        match character.is_ascii_digit() {
            true if kind.ends_with('*') => {}
            true => kind.push('*'),
            false => kind.push(character),
        }
    }
    kind
}

fn thread_group(count: &VmCounterValue, virtual_events: bool) -> CoverageThreadGroup {
    match count.thread {
        _ if count.carriers && virtual_events => CoverageThreadGroup::Virtual,
        ThreadId(0) => CoverageThreadGroup::WithoutEvents,
        thread => CoverageThreadGroup::Thread(thread),
    }
}

impl CoverageBytes {
    const NONE: CoverageBytes = CoverageBytes {
        counted: 0,
        allocated: 0,
        percent: None,
    };

    fn saturating_add(self, more: CoverageBytes) -> CoverageBytes {
        CoverageBytes {
            counted: self.counted.saturating_add(more.counted),
            allocated: self.allocated.saturating_add(more.allocated),
            percent: None,
        }
    }

    fn with_percent(self) -> CoverageBytes {
        let percent = self.counted as f64 * 100.0 / self.allocated as f64;
        CoverageBytes {
            percent: (self.allocated > 0).then_some(percent),
            ..self
        }
    }
}

impl AllocationCoverage {
    /// Number of decimal digits for a percentage.
    #[must_use]
    pub fn percent_digits(&self) -> usize {
        let is_exact = self
            .samples
            .is_none_or(|samples| samples.error_percent < 1.0);
        usize::from(is_exact)
    }
}

/// `99.8% of the bytes that the VM allocated`, and the reason for the difference.
impl fmt::Display for AllocationCoverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(percent) = self.sum.percent else {
            return f.write_str("the VM allocated nothing");
        };
        match self.samples {
            None => write!(f, "{percent:.1}% of the bytes that the VM allocated")?,
            Some(SampleError {
                samples,
                error_percent,
            }) => {
                let digits = self.percent_digits();
                write!(
                    f,
                    "about {percent:.digits$}% of the bytes that the VM allocated, from {} sample{}, ±{error_percent:.digits$}%",
                    grouped(samples),
                    if samples == 1 { "" } else { "s" },
                )?;
            }
        }
        if self.counted_at_ms.is_some() {
            let seconds = self.counted_after_ms as f64 / 1000.0;
            write!(
                f,
                ", when it was last asked, {seconds:.1} s after the start"
            )?;
        }
        match self.reason {
            Some(reason) => write!(f, "; {reason}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod coverage_tests {
    use lucce_testkit::random::Random;

    use super::*;

    fn coverage(counted: u64, allocated: u64) -> AllocationCoverage {
        let sum = CoverageBytes {
            counted,
            allocated,
            percent: None,
        };
        AllocationCoverage {
            sum: sum.with_percent(),
            estimated: false,
            samples: None,
            counted_at_ms: None,
            counted_after_ms: 0,
            reason: None,
            threads: Vec::new(),
        }
    }

    fn estimate(samples: u64, error_percent: f64) -> AllocationCoverage {
        AllocationCoverage {
            estimated: true,
            samples: Some(SampleError {
                samples,
                error_percent,
            }),
            ..coverage(1083, 1000)
        }
    }

    #[test]
    fn coverage_is_formatted_as_text() {
        let text = "99.8% of the bytes that the VM allocated";
        assert_eq!(coverage(998, 1000).to_string(), text);
        let below = AllocationCoverage {
            reason: Some(REASON_BELOW),
            ..coverage(998, 1000)
        };
        assert_eq!(below.to_string(), format!("{text}; {REASON_BELOW}"));
        let counted_at_ms = AllocationCoverage {
            counted_at_ms: Some(1),
            counted_after_ms: 15_240,
            ..coverage(998, 1000)
        };
        let when = "when it was last asked, 15.2 s after the start";
        assert_eq!(counted_at_ms.to_string(), format!("{text}, {when}"));
        assert_eq!(coverage(5, 0).to_string(), "the VM allocated nothing");
    }

    #[test]
    fn an_estimate_has_its_error_and_only_significant_digits() {
        assert_eq!(
            estimate(451, 9.2).to_string(),
            "about 108% of the bytes that the VM allocated, from 451 samples, ±9%"
        );
        assert_eq!(
            estimate(145_100, 0.52).to_string(),
            "about 108.3% of the bytes that the VM allocated, from 145,100 samples, ±0.5%"
        );
    }

    /// The oracle draws samples like the VM, many times, and measures the distance of the sums from the true value.
    #[test]
    fn the_error_is_that_of_drawn_samples() {
        let (interval, objects) = (1000_u64, [(40_u64, 5000_u64), (700, 300), (20_000, 10)]);
        let truth: u64 = objects.iter().map(|(size, count)| size * count).sum();
        let mut random = Random(1);
        let (mut within, mut stated, mut squares) = (0, 0.0, 0.0);
        let rounds = 400;
        for _ in 0..rounds {
            let mut counters = Vec::new();
            for (size, count) in objects {
                let chance = 1.0 - (-(size as f64) / interval as f64).exp();
                let drawn = (0..count).filter(|_| random.uniform() < chance).count();
                let objects = (drawn as f64 / chance).round() as u64;
                counters.push((objects, objects * size));
            }
            let sum: u64 = counters.iter().map(|(_, bytes)| bytes).sum();
            let error = SampleError::new(counters.into_iter(), interval);
            let off = 100.0 * (sum as f64 - truth as f64) / truth as f64;
            within += u32::from(off.abs() <= error.error_percent);
            stated += error.error_percent / f64::from(rounds);
            squares += off * off / f64::from(rounds);
        }
        let seen = 2.0 * f64::sqrt(squares);
        assert!(
            (stated / seen - 1.0).abs() < 0.15,
            "stated ±{stated}%, seen ±{seen}%"
        );
        assert!(within > rounds * 9 / 10, "{within} of {rounds}");
    }

    #[test]
    fn what_was_counted_at_an_earlier_moment_is_exact_but_for_the_mean_size_of_objects() {
        let all = AllocationSum {
            bytes: 5000,
            objects: 100,
            object_bytes: 2400,
        };
        let then = CountedSum {
            offset: 0,
            thread: ThreadId(1),
            bytes: 4000,
            objects: 50,
        };
        assert_eq!(
            all.estimate_earlier_sum(Some(&then)).all_bytes(),
            4000 + 1200
        );
        assert_eq!(all.estimate_earlier_sum(None).all_bytes(), 0);
        let more = CountedSum {
            bytes: 9000,
            objects: 900,
            ..then
        };
        assert_eq!(all.estimate_earlier_sum(Some(&more)), all);
    }

    #[test]
    fn threads_of_one_kind_have_names_that_differ_in_digits_only() {
        assert_eq!(mask_digits("pool-12-thread-3"), "pool-*-thread-*");
        assert_eq!(mask_digits("main"), "main");
    }

    #[test]
    fn carriers_count_for_virtual_threads_if_there_are_any() {
        let count = |thread, carriers| VmCounterValue {
            offset: 0,
            thread: ThreadId(thread),
            carriers,
            bytes: 1,
            at: 0,
        };
        assert!(thread_group(&count(3, true), true) == CoverageThreadGroup::Virtual);
        assert!(thread_group(&count(3, true), false) == CoverageThreadGroup::Thread(ThreadId(3)));
        assert!(thread_group(&count(3, false), true) == CoverageThreadGroup::Thread(ThreadId(3)));
        assert!(thread_group(&count(0, false), true) == CoverageThreadGroup::WithoutEvents);
    }
}
