//! The statistics of leaks: whether the objects of one context leak.
//!
//! Leaking objects keep being allocated and are never released. So, of all objects allocated in a context, more and more
//! generations are live (Šor and Srirama, "Memory leak detection in Plumbr", Software: Practice and Experience, 2014).
//! Only sampled objects that a collection of the old generation has proven live count: uncollected garbage would look like
//! a leak.
//! ```text
//! start ─────────────── one third ─────────────── two thirds ─────────────── end     in collections
//!      some born here live      and some born here         and some born here      1. all ages
//!                      n1 alive  <                n2 alive  <              n3 alive 2. ever more
//! ```
//! `start` is the allocation of the context's first object that was ever proven live. A full cache fails 1 and 2: none of
//! its objects is from the beginning. Objects of the start-up also fail both: none of them is young. Objects that come and
//! go in waves fail because none is left of earlier waves.
//! The reported probability belongs to 2: that the counts n1 and n3 come from a number that does not grow. If each of the
//! n1 + n3 objects falls on either side with equal probability, it is the probability of n3 or more on one side (the
//! conditional test of two Poisson means, Przyborowski and Wilenski, Biometrika 31, 1940).

use lucce_tracelog::SurvivorGeneration;

/// The objects of one context and type after one collection of the old generation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SnapshotPoint {
    pub collections: u64,
    pub millis: u64,
    /// Objects allocated before this collection were tested.
    pub tested: u64,
    /// Number of objects that the VM had sampled in all contexts: a measure of the allocated bytes until then.
    pub sampled: u64,
    /// Each followed object stands for 2^thinned samples.
    pub thinned: u32,
    /// Estimated objects; `bytes`: estimated bytes.
    pub objects: u64,
    pub bytes: u64,
    /// Generations of live objects, oldest first.
    pub generations: Vec<SurvivorGeneration>,
}

/// The evidence for a leak.
#[derive(Clone, PartialEq, Debug)]
pub struct LeakEvidence {
    /// The probability that a constant number of live objects looks like this.
    pub chance: f64,
    /// Number of collections before the first and before the last generation.
    pub span: (u64, u64),
    /// Generations with live objects, allocated in each third of that span.
    pub thirds: [u64; 3],
    /// Live objects after one third, two thirds and all of that span.
    pub live: [LiveAmount; 3],
    /// The fraction of objects live after the first third that are still live, from 0 to 1.
    pub kept_fraction: f64,
}

/// The live objects at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LiveAmount {
    pub collections: u64,
    pub millis: u64,
    /// Generations with live objects.
    pub generations: u64,
    /// Number of followed objects.
    pub followed: u64,
    /// Estimated objects; `bytes`: estimated bytes.
    pub objects: u64,
    pub bytes: u64,
}

/// The minimum numbers of generations for a judgement: in all, and from one third of the span.
pub const MIN_GENERATIONS: (u64, u64) = (12, 3);

impl LeakEvidence {
    /// Judges one context. `None`: no evidence for a leak. The probability is for this context alone; a caller that judges
    /// many contexts must correct for their number.
    #[must_use]
    pub fn from_course(course: &[SnapshotPoint]) -> Option<LeakEvidence> {
        let born = course.iter().filter_map(|point| point.generations.first());
        let start = born.map(|generation| generation.born).min()?;
        let last = course.last()?;
        let third = last.tested.checked_sub(start)? / 3;
        let ends = [start + third, start + 2 * third];
        let thirds = count_by_third(last, ends);
        if !has_all_ages(thirds) {
            return None;
        }
        let near = |end| nearest_point(course, end, third / 2);
        let points = [near(ends[0])?, near(ends[1])?, last];
        let counts = points.map(|point| scale_followed_objects(point, last.thinned));
        let chance = growth_chance(counts)?;
        let bytes = points.map(|point| point.bytes);
        if bytes.last() <= bytes.first() {
            return None;
        }
        Some(LeakEvidence {
            chance,
            span: (start, last.generations.last()?.born),
            thirds,
            live: points.map(LiveAmount::from_point),
            kept_fraction: kept_fraction(points[0], last, counts[0]),
        })
    }

    /// Growth of live bytes since the first third.
    #[must_use]
    pub fn byte_growth(&self) -> u64 {
        let [first, _, last] = self.live;
        last.bytes.saturating_sub(first.bytes)
    }
}

impl LiveAmount {
    fn from_point(point: &SnapshotPoint) -> LiveAmount {
        LiveAmount {
            collections: point.collections,
            millis: point.millis,
            generations: point.generations.len() as u64,
            followed: count_followed_objects(&point.generations),
            objects: point.objects,
            bytes: point.bytes,
        }
    }
}

fn count_followed_objects(generations: &[SurvivorGeneration]) -> u64 {
    let objects = generations.iter().map(|g| u64::from(g.objects));
    objects.sum()
}

fn count_by_third(point: &SnapshotPoint, [first, second]: [u64; 2]) -> [u64; 3] {
    let mut thirds = [0; 3];
    for generation in &point.generations {
        let index = usize::from(generation.born >= first) + usize::from(generation.born >= second);
        if let Some(count) = thirds.get_mut(index) {
            *count += 1;
        }
    }
    thirds
}

/// Whether each third left at least half of an equal share of the generations.
fn has_all_ages(thirds: [u64; 3]) -> bool {
    let all: u64 = thirds.iter().sum();
    all >= MIN_GENERATIONS.0
        && thirds
            .iter()
            .all(|n| *n >= MIN_GENERATIONS.1.max(all.div_ceil(6)))
}

/// The point whose tested generations end nearest to `end`, at a distance of at most `at_most` collections.
pub(crate) fn nearest_point(
    course: &[SnapshotPoint],
    end: u64,
    at_most: u64,
) -> Option<&SnapshotPoint> {
    let distance = |point: &&SnapshotPoint| point.tested.abs_diff(end);
    let nearest = course.iter().min_by_key(distance)?;
    (distance(&nearest) <= at_most).then_some(nearest)
}

/// The number of followed objects, scaled to the thinning of the last point.
fn scale_followed_objects(point: &SnapshotPoint, thinned: u32) -> f64 {
    let more = thinned.saturating_sub(point.thinned);
    count_followed_objects(&point.generations) as f64 / f64::from(more.min(63)).exp2()
}

/// The probability, if the numbers grow, and at least a third of the growth is in the second half.
fn growth_chance([first, second, last]: [f64; 3]) -> Option<f64> {
    let grow = first < second && second < last && last - second >= (last - first) / 3.0;
    grow.then(|| upper_tail(first.ceil() as u64, last.floor() as u64))
}

/// The probability that at least `last` of first + last objects fall on one of two equally likely sides.
fn upper_tail(first: u64, last: u64) -> f64 {
    let all = first + last;
    // ln of (all choose k) / 2^all, from k = all downwards.
    let mut ln = -(all as f64) * std::f64::consts::LN_2;
    let mut sum = 0.0;
    for k in (last..=all).rev() {
        sum += ln.exp();
        ln += (k as f64).ln() - ((all - k + 1) as f64).ln();
    }
    sum.min(1.0)
}

fn kept_fraction(first: &SnapshotPoint, last: &SnapshotPoint, before: f64) -> f64 {
    let old = last.generations.partition_point(|g| g.born < first.tested);
    let old = last.generations.get(..old).unwrap_or_default();
    match before > 0.0 {
        true => (count_followed_objects(old) as f64 / before).min(1.0),
        false => 0.0,
    }
}

#[cfg(test)]
mod evidence_tests {
    use super::*;

    #[test]
    fn the_tail_of_the_binomial_distribution() {
        // By hand: 4 of 4: 1/16; 3 or more of 4: 5/16; 2 or more of 4: 11/16.
        for (first, last, expected) in [(0, 4, 1.0), (1, 3, 5.0), (2, 2, 11.0)] {
            assert!((upper_tail(first, last) - expected / 16.0).abs() < 1e-12);
        }
        assert!((upper_tail(5, 0) - 1.0).abs() < 1e-12);
        // By exact arithmetic: 10^-23.887.
        let tail = upper_tail(100, 300).log10();
        assert!((tail + 23.887_414).abs() < 1e-5, "{tail}");
        // However many there are.
        assert!(upper_tail(16_000, 16_400).is_finite());
    }
}
