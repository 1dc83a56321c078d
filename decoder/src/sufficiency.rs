//! Judges whether snapshots suffice to exclude a leak.
//!
//! To exclude a leak, the number of live objects must be known not to grow. This needs several snapshots, spread over the
//! run, and one of them near its end:
//!
//! ```text
//! start ─────────────── one third ─────────────── two thirds ─────────────── end     in collections
//!                      a snapshot                a snapshot              a snapshot
//! ```
//! If the old generation is first collected when the heap is full, all snapshots are at the end: they show what lives, not
//! how it grew. Collections alone do not measure a run: a JVM short of memory collects again and again and hardly
//! allocates. So the snapshots must also be spread over the allocated bytes.

use crate::evidence::{SnapshotPoint, nearest_point};

/// Minimum number of snapshots to exclude a leak.
const MIN_SNAPSHOTS: u64 = 4;
/// A relative growth above this is not steady.
const TOLERANCE: f64 = 0.1;

/// Whether a leak can be excluded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EvidenceSufficiency {
    Sufficient,
    Missing(MissingEvidence),
}

/// Why a leak cannot be excluded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingEvidence {
    /// Too few snapshots.
    Snapshots { seen: u64, needed: u64 },
    /// Too few collections for objects of `needed` generations.
    Collections { seen: u64, needed: u64 },
    /// No early snapshot: the first one is at this percentage of the run.
    EarlySnapshots { first_percent: u64 },
    /// No late snapshot: the last one is at this percentage of the run.
    LateSnapshots { last_percent: u64 },
}

/// The course of the live amount over the run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LiveCourse {
    /// At the end of the run about the same as at one third and at two thirds of it.
    Steady,
    /// At the end more bytes than at an earlier time.
    Growing { more_bytes: u64 },
    /// Unknown, and why.
    Unknown(MissingEvidence),
}

/// Judges whether a run's snapshots suffice to exclude a leak of objects that were first allocated after `start`
/// collections. `collections`: the number of collections until the end of the run.
#[must_use]
pub fn judge_sufficiency(
    course: &[SnapshotPoint],
    start: u64,
    collections: u64,
) -> EvidenceSufficiency {
    use MissingEvidence::{EarlySnapshots, LateSnapshots, Snapshots};
    let tested: Vec<u64> = course.iter().map(|point| point.tested).collect();
    let of_objects = tested.iter().filter(|tested| **tested > start);
    let seen = of_objects.clone().count() as u64;
    let (Some(first), Some(last)) = (of_objects.clone().min(), of_objects.max()) else {
        return EvidenceSufficiency::Missing(Snapshots {
            seen,
            needed: MIN_SNAPSHOTS,
        });
    };
    let percent = |tested: u64| match collections.max(*last) {
        0 => 0,
        all => (tested as f64 / all as f64 * 100.0).round() as u64,
    };
    let missing = if early_points(course, start, *last).is_none() {
        EarlySnapshots {
            first_percent: percent(*first),
        }
    } else if seen < MIN_SNAPSHOTS {
        Snapshots {
            seen,
            needed: MIN_SNAPSHOTS,
        }
    } else if collections.saturating_sub(*last) > collections.saturating_sub(start) / 3 {
        LateSnapshots {
            last_percent: percent(*last),
        }
    } else {
        return EvidenceSufficiency::Sufficient;
    };
    EvidenceSufficiency::Missing(missing)
}

/// Judges how the live amount of one context and type developed. `course`: all snapshots of the run, in order;
/// `collections`: the number of collections until its end.
#[must_use]
pub fn judge_course(course: &[SnapshotPoint], collections: u64) -> LiveCourse {
    let born = course.iter().filter_map(|point| point.generations.first());
    let start = born.map(|generation| generation.born).min().unwrap_or(0);
    let Some(last) = course.last() else {
        let (seen, needed) = (0, MIN_SNAPSHOTS);
        return LiveCourse::Unknown(MissingEvidence::Snapshots { seen, needed });
    };
    let earlier = early_points(course, start, last.tested);
    let earlier: Vec<&SnapshotPoint> = match earlier {
        Some(points) => points.into(),
        None => course.iter().rev().skip(1).collect(),
    };
    let least = earlier.into_iter().min_by_key(|point| point.bytes);
    match least {
        Some(least) if has_grown(least, last) => LiveCourse::Growing {
            more_bytes: last.bytes.saturating_sub(least.bytes),
        },
        _ => match judge_sufficiency(course, start, collections) {
            EvidenceSufficiency::Sufficient => LiveCourse::Steady,
            EvidenceSufficiency::Missing(missing) => LiveCourse::Unknown(missing),
        },
    }
}

/// Whether objects or bytes have grown by more than [`TOLERANCE`].
fn has_grown(before: &SnapshotPoint, last: &SnapshotPoint) -> bool {
    let grows = |before: u64, after: u64| after as f64 > before as f64 * (1.0 + TOLERANCE);
    grows(before.bytes, last.bytes) || grows(before.objects, last.objects)
}

/// The points nearest to one third and two thirds of the time since `start`, if they differ.
fn early_points(course: &[SnapshotPoint], start: u64, last: u64) -> Option<[&SnapshotPoint; 2]> {
    let third = last.checked_sub(start)? / 3;
    let near = |end| nearest_point(course, end, third / 2);
    let points = [near(start + third)?, near(start + 2 * third)?];
    let [first, second] = points.map(|point| point.tested);
    let is_spread = start < first && first < second && second < last;
    (is_spread && are_spread_over_allocations(course, start, points)).then_some(points)
}

/// Whether at most half of the allocations since `start` precede the first point, and at most five sixths the second.
fn are_spread_over_allocations(
    course: &[SnapshotPoint],
    start: u64,
    points: [&SnapshotPoint; 2],
) -> bool {
    let before = course.iter().filter(|point| point.tested <= start);
    let begin = before.map(|point| point.sampled).max().unwrap_or(0);
    let end = course.last().map_or(0, |point| point.sampled);
    let all = end.saturating_sub(begin) as f64;
    let part = |point: &SnapshotPoint| point.sampled.saturating_sub(begin) as f64 / all;
    // Without allocations the parts are not numbers, and the answer is no.
    let [first, second] = points.map(part);
    first <= 1.0 / 2.0 && second <= 5.0 / 6.0
}
