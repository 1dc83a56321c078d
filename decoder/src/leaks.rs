//! Judges which contexts of a log leak, all of them together.
//!
//! ```text
//! snapshots ──► SnapshotSeries by (StackId, type) ──► LeakEvidence ──► LeakFinding
//!                                                 └─► LiveCourse   ──► LeakSuspect
//! ```

use std::collections::{BTreeMap, HashMap};

use lucce_callgraph::ContextId;
use lucce_contentid::StackId;
use lucce_tracelog::{LogDamage, SnapshotRecord};

use crate::evidence::{LeakEvidence, MIN_GENERATIONS, SnapshotPoint};
use crate::fingerprint::fold_stacks;
use crate::followed_objects::{LiveObjectRow, LiveObjectSnapshot};
use crate::profile::{Profile, ProgressTick};
use crate::sufficiency::{
    EvidenceSufficiency, LiveCourse, MissingEvidence, judge_course, judge_sufficiency,
};

/// The leaks of a log, and the data that was judged.
#[derive(Debug, Default)]
pub struct LeakAnalysis {
    /// The strongest evidence first.
    pub findings: Vec<LeakFinding>,
    /// Other live objects, most bytes first: they may leak or not.
    pub suspects: Vec<LeakSuspect>,
    /// Number of (context, type) pairs with objects proven live at the end.
    pub alive: u64,
    /// Number of these with enough generations to be judged.
    pub judged: u64,
    /// Number of snapshots.
    pub snapshots: u64,
    /// The last snapshot.
    pub last_snapshot: Option<SnapshotRecord>,
    /// Whether the snapshots suffice to exclude a leak.
    pub sufficiency: Option<EvidenceSufficiency>,
    /// The log's damage, or a context id that the log does not explain.
    pub damage: Option<LogDamage>,
}

/// A leak: objects of one type, allocated in one context, of which more and more stay live.
#[derive(Clone, PartialEq, Debug)]
pub struct LeakFinding {
    /// The smallest context id of the trace.
    pub id: ContextId,
    /// Its other context ids.
    pub aliases: Vec<ContextId>,
    /// The Java name of the objects' type.
    pub type_name: String,
    pub evidence: LeakEvidence,
    /// The probability that any of the judged contexts looks like this without growing.
    pub chance: f64,
}

/// Objects of one type, allocated in one context, that were live at the end, without proof of a leak.
#[derive(Clone, PartialEq, Debug)]
pub struct LeakSuspect {
    /// The smallest context id of the trace.
    pub id: ContextId,
    /// The Java name of the objects' type.
    pub type_name: String,
    /// Number of live objects.
    pub objects: u64,
    pub bytes: u64,
    /// Number of generations with live objects.
    pub generations: u64,
    pub verdict: SuspectVerdict,
    /// Whether more objects live than at an earlier snapshot, regardless of their ages.
    pub has_grown: bool,
}

/// What is known about a suspect.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SuspectVerdict {
    /// Objects of too few generations are live. At the pace of the run, this number of old collections would suffice.
    Open { old_collections: u64 },
    /// Objects of enough generations are live; the course of their amount.
    Aged(LiveCourse),
}

impl LeakAnalysis {
    /// Why a leak cannot be excluded. `None`: nothing is missing, or leaks were found.
    #[must_use]
    pub fn missing_evidence(&self) -> Option<MissingEvidence> {
        match self.sufficiency? {
            EvidenceSufficiency::Sufficient => None,
            EvidenceSufficiency::Missing(missing) => Some(missing),
        }
    }
}

impl LeakSuspect {
    /// Number of generations that must be live before a context is judged.
    pub const NEEDED_GENERATIONS: u64 = MIN_GENERATIONS.0;
}

/// A finding has a smaller probability of error than this.
const MAX_ERROR_CHANCE: f64 = 0.01;
/// Smaller probabilities compare as equal to this.
const MIN_COMPARED_CHANCE: f64 = 1e-6;

/// A stack trace's content id, and a type.
pub(crate) type TracedType = (StackId, String);

/// The rows of one context and type in all snapshots, and their context ids.
struct SnapshotSeries {
    ids: Vec<ContextId>,
    type_name: String,
    /// Rows by index of their snapshot; snapshots without a row are left out.
    points: BTreeMap<usize, SnapshotPoint>,
}

/// Judges all contexts and types. Calls `tick` with the number of decoded ids.
#[must_use]
pub fn analyze_leaks(profile: &Profile, tick: ProgressTick<'_>) -> LeakAnalysis {
    let moments = profile.followed_objects.snapshots();
    let rows = moments.iter().flat_map(|moment| &moment.rows);
    let (places, unknown) = resolve_object_keys(profile, rows.map(|row| row.key), tick);
    let courses = collect_series(moments, &places);
    let last = moments.len().wrapping_sub(1);
    let alive = courses
        .values()
        .filter_map(|course| course.points.get(&last));
    let (alive, judged) = alive.fold((0, 0), |(alive, judged), point| {
        let enough = point.generations.len() as u64 >= MIN_GENERATIONS.0;
        (alive + 1, judged + u64::from(enough))
    });
    let leaks = courses
        .values()
        .filter_map(|course| find_leak(course, moments, judged));
    let mut findings: Vec<LeakFinding> = leaks
        .filter(|leak| leak.chance <= MAX_ERROR_CHANCE)
        .collect();
    findings.sort_by(compare_leaks);
    let run = RunExtent {
        snapshots: moments,
        collections: count_followed_collections(profile),
    };
    let suspects = find_suspects(&courses, &findings, &run);
    LeakAnalysis {
        findings,
        suspects,
        alive,
        judged,
        snapshots: moments.len() as u64,
        last_snapshot: moments.last().map(|moment| moment.record),
        sufficiency: Some(run.judge_snapshots()),
        damage: profile.damage.clone().or(unknown),
    }
}

/// Number of collections until the end of the run, or until the last write of the log.
#[must_use]
pub fn count_followed_collections(profile: &Profile) -> u64 {
    let moment = profile.followed_objects.snapshots().last();
    let census = profile.followed_objects.last_census();
    [
        moment.map(|moment| moment.record.collections),
        census.map(|census| census.record.collections),
        Some(profile.stat_value("leak.collections")),
    ]
    .into_iter()
    .flatten()
    .max()
    .unwrap_or(0)
}

/// Resolves each key to a trace and a type. A trace may have several context ids, and a class defined by several
/// loaders has several ids; both are merged by names.
pub(crate) fn resolve_object_keys(
    profile: &Profile,
    keys: impl Iterator<Item = u32>,
    tick: ProgressTick<'_>,
) -> (HashMap<u32, (ContextId, TracedType)>, Option<LogDamage>) {
    let mut keys: Vec<u32> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    let named: Vec<_> = keys
        .iter()
        .filter_map(|key| Some((*key, profile.followed_objects.context_and_type(*key)?)))
        .collect();
    let ids: Vec<ContextId> = named.iter().map(|(_, (id, _))| *id).collect();
    let prints = fold_stacks(profile, &ids, tick, |printed| printed);
    let mut unknown = (named.len() < keys.len()).then(|| "living objects of no context".into());
    let mut places = HashMap::new();
    for ((key, (id, of)), printed) in named.into_iter().zip(prints) {
        match printed {
            // No frame of the trace is in scope.
            Ok(printed) if profile.is_restricted() && printed.is_empty() => {}
            Ok(printed) => {
                places.insert(key, (*id, (printed.fingerprint, of.clone())));
            }
            Err(error) => {
                unknown.get_or_insert_with(|| {
                    let id = profile.context_number(*id);
                    format!("living objects of {id}, which the log does not explain ({error})")
                });
            }
        }
    }
    let damage = unknown.map(|reason| LogDamage::at_offset(profile.size, reason));
    (places, damage)
}

fn collect_series<'p>(
    moments: &[LiveObjectSnapshot],
    places: &'p HashMap<u32, (ContextId, TracedType)>,
) -> HashMap<&'p TracedType, SnapshotSeries> {
    let mut courses: HashMap<&TracedType, SnapshotSeries> = HashMap::new();
    for (index, moment) in moments.iter().enumerate() {
        for row in &moment.rows {
            let Some((id, place)) = places.get(&row.key) else {
                continue;
            };
            let course = courses.entry(place).or_insert_with(|| SnapshotSeries {
                ids: Vec::new(),
                type_name: place.1.clone(),
                points: BTreeMap::new(),
            });
            course.ids.push(*id);
            let point = course
                .points
                .entry(index)
                .or_insert_with(|| self::empty_point(moment));
            add_row_to_point(point, row);
        }
    }
    courses
}

fn empty_point(LiveObjectSnapshot { record: at, .. }: &LiveObjectSnapshot) -> SnapshotPoint {
    SnapshotPoint {
        collections: at.collections,
        millis: at.millis,
        tested: at.tested,
        sampled: at.sampled,
        thinned: at.thinned,
        ..SnapshotPoint::default()
    }
}

fn add_row_to_point(point: &mut SnapshotPoint, row: &LiveObjectRow) {
    point.objects = point.objects.saturating_add(row.objects);
    point.bytes = point.bytes.saturating_add(row.bytes);
    point.generations.extend(&row.generations);
    point.generations.sort_by_key(|generation| generation.born);
    point.generations.dedup_by(|later, first| {
        let same = later.born == first.born;
        if same {
            first.objects = first.objects.saturating_add(later.objects);
        }
        same
    });
}

fn find_leak(
    course: &SnapshotSeries,
    moments: &[LiveObjectSnapshot],
    judged: u64,
) -> Option<LeakFinding> {
    let evidence = LeakEvidence::from_course(&course.all_points(moments))?;
    let mut ids = course.ids.clone();
    ids.sort_unstable();
    ids.dedup();
    let chance = (evidence.chance * judged as f64).min(1.0);
    let (id, aliases) = ids.split_first()?;
    Some(LeakFinding {
        id: *id,
        aliases: aliases.to_vec(),
        type_name: course.type_name.clone(),
        evidence,
        chance,
    })
}

/// The snapshots of a run, and its number of collections.
struct RunExtent<'m> {
    snapshots: &'m [LiveObjectSnapshot],
    collections: u64,
}

impl RunExtent<'_> {
    fn judge_snapshots(&self) -> EvidenceSufficiency {
        let points: Vec<SnapshotPoint> = self.snapshots.iter().map(empty_point).collect();
        let seen = points.iter().map(|point| point.tested).max().unwrap_or(0);
        let needed = LeakSuspect::NEEDED_GENERATIONS;
        match judge_sufficiency(&points, 0, self.collections) {
            // Even a leak would have too few generations of live objects.
            EvidenceSufficiency::Sufficient if seen < needed => {
                EvidenceSufficiency::Missing(MissingEvidence::Collections { seen, needed })
            }
            sufficiency => sufficiency,
        }
    }
}

/// Live objects that are no findings.
fn find_suspects(
    courses: &HashMap<&TracedType, SnapshotSeries>,
    findings: &[LeakFinding],
    run: &RunExtent<'_>,
) -> Vec<LeakSuspect> {
    let last = run.snapshots.len().wrapping_sub(1);
    let is_found = |id, of: &str| {
        findings
            .iter()
            .any(|leak| leak.id == id && leak.type_name == of)
    };
    let suspect = |course: &SnapshotSeries| {
        let point = course.points.get(&last)?;
        let id = *course.ids.iter().min()?;
        let generations = point.generations.len() as u64;
        let lives = generations > 0 && !is_found(id, &course.type_name);
        lives.then(|| LeakSuspect {
            id,
            type_name: course.type_name.clone(),
            objects: point.objects,
            bytes: point.bytes,
            generations,
            verdict: judge_suspect(course, generations, run),
            has_grown: course.has_grown(run),
        })
    };
    let mut suspects: Vec<_> = courses.values().filter_map(suspect).collect();
    suspects.sort_by(|a, b| (b.bytes, &a.type_name, a.id).cmp(&(a.bytes, &b.type_name, b.id)));
    suspects
}

/// Number of generations with live objects.
fn judge_suspect(course: &SnapshotSeries, generations: u64, run: &RunExtent<'_>) -> SuspectVerdict {
    match LeakSuspect::NEEDED_GENERATIONS.saturating_sub(generations) {
        0 => SuspectVerdict::Aged(judge_course(
            &course.all_points(run.snapshots),
            run.collections,
        )),
        missing => SuspectVerdict::Open {
            old_collections: more_collections(missing, generations, run.snapshots.len() as u64),
        },
    }
}

/// The number of old collections that add `missing` generations, at the rate of `generations` in `snapshots`.
fn more_collections(missing: u64, generations: u64, snapshots: u64) -> u64 {
    (missing * snapshots).div_ceil(generations.max(1)).max(1)
}

impl SnapshotSeries {
    fn has_grown(&self, run: &RunExtent<'_>) -> bool {
        let judged = judge_course(&self.all_points(run.snapshots), run.collections);
        matches!(judged, LiveCourse::Growing { .. })
    }

    /// One point for each snapshot of the run.
    fn all_points(&self, moments: &[LiveObjectSnapshot]) -> Vec<SnapshotPoint> {
        let points = moments.iter().enumerate().map(|(index, moment)| {
            let point = self.points.get(&index);
            point.cloned().unwrap_or_else(|| empty_point(moment))
        });
        points.collect()
    }
}

/// Orders by probability; if both are tiny, by growth of live bytes.
fn compare_leaks(a: &LeakFinding, b: &LeakFinding) -> std::cmp::Ordering {
    let chance = |leak: &LeakFinding| leak.chance.max(MIN_COMPARED_CHANCE);
    chance(a)
        .total_cmp(&chance(b))
        .then(b.evidence.byte_growth().cmp(&a.evidence.byte_growth()))
        .then(a.id.cmp(&b.id))
        .then(a.type_name.cmp(&b.type_name))
}

#[cfg(test)]
mod leaks_tests {
    use super::*;

    #[test]
    fn a_verdict_names_what_is_missing() {
        // 9 ages in 9 collections: 3 more bring 3 more.
        assert_eq!(more_collections(3, 9, 9), 3);
        assert_eq!(more_collections(8, 4, 2), 4);
        assert_eq!(more_collections(11, 1, 14), 154);
        assert_eq!(more_collections(1, 11, 1), 1);
    }
}
