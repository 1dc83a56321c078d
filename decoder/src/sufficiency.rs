//! Whether snapshots suffice to say that objects do not leak.
//!
//! Who denies a leak says that the number of living objects did not grow. That takes the number at several times that
//! are spread over the run, and one of them near its end:
//!
//! ```text
//! start ─────────────── one third ─────────────── two thirds ─────────────── end     in collections
//!                      a snapshot                a snapshot              a snapshot
//! ```
//! A JVM whose old generation is collected for the first time when the heap is full has all its snapshots at the end:
//! they say what lives, and nothing of how it came to be. Collections alone do not measure a run: one that is short of
//! memory collects again and again, and hardly allocates. So the snapshots must be spread over what was allocated, too.

use crate::evidence::{SnapshotPoint, nearest_point};

/// Snapshots without which nothing is denied.
const MIN_SNAPSHOTS: u64 = 4;
/// What grows by more than this part of itself is not said to be as much as before.
const TOLERANCE: f64 = 0.1;

/// Whether a leak can be denied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EvidenceSufficiency {
    Sufficient,
    Missing(MissingEvidence),
}

/// Why a leak cannot be denied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingEvidence {
    /// There are too few snapshots of the objects.
    Snapshots { seen: u64, needed: u64 },
    /// There were too few collections: objects of `needed` ages take as many.
    Collections { seen: u64, needed: u64 },
    /// No snapshot shows how much lived earlier: the first one is of so many percent of the run.
    EarlySnapshots { first_percent: u64 },
    /// The last snapshot is old: of so many percent of the run.
    LateSnapshots { last_percent: u64 },
}

/// How much lived, and at which times that is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LiveCourse {
    /// At the end of the run about as much as at one third and at two thirds of it.
    Steady,
    /// So many bytes more than at an earlier time.
    Growing { more_bytes: u64 },
    /// That is not known.
    Unknown(MissingEvidence),
}

/// Whether these snapshots of a run suffice to deny a leak of objects the first of which were born behind `start` collections.
/// `collections` is how many there were until the end of the run.
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

/// What the snapshots of one context and type say of the amount that lives. `course` has all snapshots of the run, in order;
/// `collections` is how many there were until its end.
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

/// By objects or by bytes.
fn has_grown(before: &SnapshotPoint, last: &SnapshotPoint) -> bool {
    let grows = |before: u64, after: u64| after as f64 > before as f64 * (1.0 + TOLERANCE);
    grows(before.bytes, last.bytes) || grows(before.objects, last.objects)
}

/// The points near one third and two thirds of the time from `start` on, which differ.
fn early_points(course: &[SnapshotPoint], start: u64, last: u64) -> Option<[&SnapshotPoint; 2]> {
    let third = last.checked_sub(start)? / 3;
    let near = |end| nearest_point(course, end, third / 2);
    let points = [near(start + third)?, near(start + 2 * third)?];
    let [first, second] = points.map(|point| point.tested);
    let is_spread = start < first && first < second && second < last;
    (is_spread && are_spread_over_allocations(course, start, points)).then_some(points)
}

/// Until the first point no more than half of what was allocated since `start`, and until the second no more than five sixths.
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
    // Nothing was allocated, and no part is a number: nothing can be said.
    let [first, second] = points.map(part);
    first <= 1.0 / 2.0 && second <= 5.0 / 6.0
}
