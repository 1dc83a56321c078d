//! Whether the objects of one context leak: the statistics.
//!
//! Objects that leak keep being made and are never let go. So, of all that was made there, objects of
//! ever more ages are found alive (Šor and Srirama, "Memory leak detection in Plumbr", Software:
//! Practice and Experience, 2014). What is looked at here are followed objects that a collection of the
//! old generation has proven alive: garbage that lies there uncollected looks like a leak otherwise.
//!
//! ```text
//! start ─────────────── one third ─────────────── two thirds ─────────────── end     in collections
//!      some born here live      and some born here         and some born here      1. all ages
//!                      n1 alive  <                n2 alive  <              n3 alive 2. ever more
//! ```
//! `start` is the birth of the first object of the context that was ever proven alive. A cache that is full
//! fails in 1 and in 2: it has nothing left from the beginning. What only the start-up made fails in both, too:
//! nothing of it is young. What comes and goes in waves has nothing left from earlier waves.
//!
//! The number beside 2 is the chance that counts of n1 and n3 objects come from one that does not grow: if
//! each of the n1 + n3 falls on either side alike, how often n3 or more fall on one (the conditional test of two
//! Poisson means, Przyborowski and Wilenski, Biometrika 31, 1940).

use lucce_tracelog::SurvivorGeneration;

/// The objects of one context and type after one collection of the old generation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SnapshotPoint {
    pub collections: u64,
    pub millis: u64,
    /// Objects born before this collection were tested.
    pub tested: u64,
    /// Objects that the VM had sampled, of whatever context: how much was allocated until then.
    pub sampled: u64,
    /// Each followed object stands for 2^thinned sampled ones.
    pub thinned: u32,
    /// Objects and bytes that the followed ones stand for.
    pub objects: u64,
    pub bytes: u64,
    /// The oldest first.
    pub generations: Vec<SurvivorGeneration>,
}

/// Why it is a leak.
#[derive(Clone, PartialEq, Debug)]
pub struct LeakEvidence {
    /// How likely a number of living objects that does not grow would look like this.
    pub chance: f64,
    /// Collections before the first and the last of the generations.
    pub span: (u64, u64),
    /// Generations with living objects, born in each third of that time.
    pub thirds: [u64; 3],
    /// After a third, two thirds and all of that time.
    pub live: [LiveAmount; 3],
    /// Of the objects alive after the first third, how many still are, from 0 to 1.
    pub kept_fraction: f64,
}

/// What was alive at a time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LiveAmount {
    pub collections: u64,
    pub millis: u64,
    /// Generations with living objects.
    pub generations: u64,
    /// Objects that were followed.
    pub followed: u64,
    /// Objects and bytes that they stand for.
    pub objects: u64,
    pub bytes: u64,
}

/// Fewer generations than this say nothing, neither in all nor from one third of the time.
pub const MIN_GENERATIONS: (u64, u64) = (12, 3);

impl LeakEvidence {
    /// `None`: nothing speaks for a leak. The chance is that of this one context: who looks at many must
    /// expect more.
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

    /// Bytes by which what is alive has grown since the first third.
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

/// Each third has left at least half of what it would have left if all thirds left equally much.
fn has_all_ages(thirds: [u64; 3]) -> bool {
    let all: u64 = thirds.iter().sum();
    all >= MIN_GENERATIONS.0
        && thirds
            .iter()
            .all(|n| *n >= MIN_GENERATIONS.1.max(all.div_ceil(6)))
}

/// The point that tested what was born before `end`, more or less.
pub(crate) fn nearest_point(
    course: &[SnapshotPoint],
    end: u64,
    at_most: u64,
) -> Option<&SnapshotPoint> {
    let distance = |point: &&SnapshotPoint| point.tested.abs_diff(end);
    let nearest = course.iter().min_by_key(distance)?;
    (distance(&nearest) <= at_most).then_some(nearest)
}

/// Followed objects, as if they had been thinned out as often as those of the last point.
fn scale_followed_objects(point: &SnapshotPoint, thinned: u32) -> f64 {
    let more = thinned.saturating_sub(point.thinned);
    count_followed_objects(&point.generations) as f64 / f64::from(more.min(63)).exp2()
}

/// The chance, if the numbers grow, and by a third of all growth or more in the second half.
fn growth_chance([first, second, last]: [f64; 3]) -> Option<f64> {
    let grow = first < second && second < last && last - second >= (last - first) / 3.0;
    grow.then(|| upper_tail(first.ceil() as u64, last.floor() as u64))
}

/// How likely `last` or more of first + last fall on one of two sides, if each falls on either alike.
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
mod tests {
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
