//! Which contexts leak: all of a log's, judged together.

use std::collections::{BTreeMap, HashMap};

use lucce_callgraph::ContextId;
use lucce_contentid::StackId;
use lucce_tracelog::{LogDamage, SnapshotRecord};

use crate::evidence::{LeakEvidence, MIN_GENERATIONS, SnapshotPoint};
use crate::followed_objects::{LiveObjectRow, LiveObjectSnapshot};
use crate::profile::{Profile, ProgressTick};
use crate::sufficiency::{
    EvidenceSufficiency, LiveCourse, MissingEvidence, judge_course, judge_sufficiency,
};

/// A log's leaks, and what they were looked for in.
#[derive(Debug, Default)]
pub struct LeakAnalysis {
    /// The strongest evidence first.
    pub findings: Vec<LeakFinding>,
    /// Of what else lives, that with most bytes first: it may leak, or not.
    pub suspects: Vec<LeakSuspect>,
    /// Contexts and types of which something was proven alive at the end.
    pub alive: u64,
    /// Of those, with enough generations to say something.
    pub judged: u64,
    /// How often what was alive was written down.
    pub snapshots: u64,
    /// The last of them.
    pub last_snapshot: Option<SnapshotRecord>,
    /// Whether the snapshots suffice to say that nothing leaks.
    pub sufficiency: Option<EvidenceSufficiency>,
    /// The log's, or that it names a number that it does not explain.
    pub damage: Option<LogDamage>,
}

/// Objects of one type, made in one context, of which ever more live.
#[derive(Clone, PartialEq, Debug)]
pub struct LeakFinding {
    /// The smallest number of the trace.
    pub id: ContextId,
    /// Its other numbers.
    pub aliases: Vec<ContextId>,
    /// The type of the objects, as Java writes it.
    pub type_name: String,
    pub evidence: LeakEvidence,
    /// The chance that any of the judged contexts looks like this without growing.
    pub chance: f64,
}

/// Objects of one type, made in one context, that lived at the end; nothing is proven of them.
#[derive(Clone, PartialEq, Debug)]
pub struct LeakSuspect {
    /// The smallest number of the trace.
    pub id: ContextId,
    /// The type of the objects, as Java writes it.
    pub type_name: String,
    /// What lives of them.
    pub objects: u64,
    pub bytes: u64,
    /// Objects of so many ages live.
    pub generations: u64,
    pub verdict: SuspectVerdict,
    /// More live than at an earlier snapshot, of however few ages.
    pub has_grown: bool,
}

/// How far one is from knowing whether it is a leak.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SuspectVerdict {
    /// Objects of too few ages live for anything to be said. If more come at the pace until now, about so many collections of the
    /// old generation are enough.
    Open { old_collections: u64 },
    /// Objects of enough ages live, and what is known of the amount.
    Aged(LiveCourse),
}

impl LeakAnalysis {
    /// Why it cannot be said that nothing leaks. `None`: nothing is missing, or leaks were found.
    #[must_use]
    pub fn missing_evidence(&self) -> Option<MissingEvidence> {
        match self.sufficiency? {
            EvidenceSufficiency::Sufficient => None,
            EvidenceSufficiency::Missing(missing) => Some(missing),
        }
    }
}

impl LeakSuspect {
    /// How many ages must be alive before anything is said.
    pub const NEEDED_GENERATIONS: u64 = MIN_GENERATIONS.0;
}

/// A finding is worse than this chance of an error.
const MAX_ERROR_CHANCE: f64 = 0.01;
/// Evidence beyond one in a million counts as one in a million.
const MIN_COMPARED_CHANCE: f64 = 1e-6;

/// A stack trace's content id, and a type.
pub(crate) type TracedType = (StackId, String);

/// One place's rows over all snapshots, and its numbers.
struct SnapshotSeries {
    ids: Vec<ContextId>,
    type_name: String,
    /// By the index of the snapshot; those without a row are left out.
    points: BTreeMap<usize, SnapshotPoint>,
}

impl Profile {
    /// `tick` is told how many numbers were decoded.
    #[must_use]
    pub fn analyze_leaks(&self, tick: ProgressTick<'_>) -> LeakAnalysis {
        let moments = self.followed_objects.snapshots();
        let rows = moments.iter().flat_map(|moment| &moment.rows);
        let (places, unknown) = self.resolve_object_keys(rows.map(|row| row.key), tick);
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
            collections: self.followed_collections(),
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
            damage: self.damage.clone().or(unknown),
        }
    }

    /// Collections until the end of the run, or until the log was written last.
    #[must_use]
    pub fn followed_collections(&self) -> u64 {
        let moment = self.followed_objects.snapshots().last();
        let census = self.followed_objects.last_census();
        [
            moment.map(|moment| moment.record.collections),
            census.map(|census| census.record.collections),
            Some(self.stat_value("leak.collections")),
        ]
        .into_iter()
        .flatten()
        .max()
        .unwrap_or(0)
    }

    /// Where the objects of each key were made. A trace may have several numbers, and a class that many
    /// loaders have defined is another one each time: what a trace shows tells traces apart here.
    pub(crate) fn resolve_object_keys(
        &self,
        keys: impl Iterator<Item = u32>,
        tick: ProgressTick<'_>,
    ) -> (HashMap<u32, (ContextId, TracedType)>, Option<LogDamage>) {
        let mut keys: Vec<u32> = keys.collect();
        keys.sort_unstable();
        keys.dedup();
        let named: Vec<_> = keys
            .iter()
            .filter_map(|key| Some((*key, self.followed_objects.context_and_type(*key)?)))
            .collect();
        let ids: Vec<ContextId> = named.iter().map(|(_, (id, _))| *id).collect();
        let prints = self.fold_stacks(&ids, tick, |printed| printed);
        let mut unknown = (named.len() < keys.len()).then(|| "living objects of no context".into());
        let mut places = HashMap::new();
        for ((key, (id, of)), printed) in named.into_iter().zip(prints) {
            match printed {
                // Made where no class is meant.
                Ok(printed) if self.is_restricted() && printed.is_empty() => {}
                Ok(printed) => {
                    places.insert(key, (*id, (printed.fingerprint, of.clone())));
                }
                Err(error) => {
                    unknown.get_or_insert_with(|| {
                        let id = self.context_number(*id);
                        format!("living objects of {id}, which the log does not explain ({error})")
                    });
                }
            }
        }
        let damage = unknown.map(|reason| LogDamage::at_offset(self.size, reason));
        (places, damage)
    }
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

/// The snapshots of a run, and how many collections there were until its end.
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
            // Not even of a leak would objects of enough ages live.
            EvidenceSufficiency::Sufficient if seen < needed => {
                EvidenceSufficiency::Missing(MissingEvidence::Collections { seen, needed })
            }
            sufficiency => sufficiency,
        }
    }
}

/// What lives and is not found to leak.
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

/// Objects of so many ages live.
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

/// How many collections of the old generation bring so many ages more, if they come as `generations` did in `snapshots`.
fn more_collections(missing: u64, generations: u64, snapshots: u64) -> u64 {
    (missing * snapshots).div_ceil(generations.max(1)).max(1)
}

impl SnapshotSeries {
    fn has_grown(&self, run: &RunExtent<'_>) -> bool {
        let judged = judge_course(&self.all_points(run.snapshots), run.collections);
        matches!(judged, LiveCourse::Growing { .. })
    }

    /// Of all snapshots of a run.
    fn all_points(&self, moments: &[LiveObjectSnapshot]) -> Vec<SnapshotPoint> {
        let points = moments.iter().enumerate().map(|(index, moment)| {
            let known = self.points.get(&index);
            known.cloned().unwrap_or_else(|| empty_point(moment))
        });
        points.collect()
    }
}

/// By chance; where that is tiny, by the growth of what is alive.
fn compare_leaks(a: &LeakFinding, b: &LeakFinding) -> std::cmp::Ordering {
    let chance = |leak: &LeakFinding| leak.chance.max(MIN_COMPARED_CHANCE);
    chance(a)
        .total_cmp(&chance(b))
        .then(b.evidence.byte_growth().cmp(&a.evidence.byte_growth()))
        .then(a.id.cmp(&b.id))
        .then(a.type_name.cmp(&b.type_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_says_what_is_missing() {
        // 9 ages in 9 collections: 3 more bring 3 more.
        assert_eq!(more_collections(3, 9, 9), 3);
        assert_eq!(more_collections(8, 4, 2), 4);
        assert_eq!(more_collections(11, 1, 14), 154);
        assert_eq!(more_collections(1, 11, 1), 1);
    }
}
