//! Snapshots and censuses of sampled live objects, in order of time.

use std::collections::HashMap;

use lucce_callgraph::ContextId;
use lucce_tracelog::{
    CensusCause, FollowedKeyRecord, HeapCensus, SnapshotRecord, SurvivorGeneration, SurvivorsRecord,
};

use crate::code::type_name;

/// All sampled objects that the log records; see [`LiveObjectSnapshot`].
#[derive(Clone, Default, Debug)]
pub struct FollowedObjects {
    names: HashMap<u32, (ContextId, String)>,
    snapshots: Vec<LiveObjectSnapshot>,
    last_census: Option<LiveObjectCensus>,
    exhaustion_census: Option<LiveObjectCensus>,
    /// A record whose rows are missing: the JVM was killed then, or still runs.
    pending: Option<PendingSnapshot>,
}

/// A snapshot or a census with missing rows.
#[derive(Clone, Debug)]
enum PendingSnapshot {
    Snapshot(LiveObjectSnapshot),
    Census(LiveObjectCensus),
}

/// All sampled objects that were not known to be dead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveObjectCensus {
    pub record: HeapCensus<'static>,
    /// Rows of one key differ in their age class.
    pub rows: Vec<LiveObjectRow>,
}

/// Sampled objects that were live after a collection of the old generation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveObjectSnapshot {
    pub record: SnapshotRecord,
    pub rows: Vec<LiveObjectRow>,
}

/// The live objects of one context and type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveObjectRow {
    pub key: u32,
    /// Estimated objects; `bytes`: estimated bytes.
    pub objects: u64,
    pub bytes: u64,
    pub generations: Vec<SurvivorGeneration>,
}

impl FollowedObjects {
    pub(crate) fn add_object_key(&mut self, record: FollowedKeyRecord<'_>) {
        let name = (record.context, type_name(&record.type_name));
        self.names.insert(record.key, name);
    }

    pub(crate) fn begin_snapshot(&mut self, at: SnapshotRecord) {
        let rows = Vec::new();
        self.pending = Some(PendingSnapshot::Snapshot(LiveObjectSnapshot {
            record: at,
            rows,
        }));
        self.complete_pending();
    }

    pub(crate) fn begin_census(&mut self, at: HeapCensus<'_>) {
        let at = HeapCensus {
            detail: at.detail.into_owned().into(),
            ..at
        };
        let rows = Vec::new();
        self.pending = Some(PendingSnapshot::Census(LiveObjectCensus {
            record: at,
            rows,
        }));
        self.complete_pending();
    }

    pub(crate) fn add_survivors(&mut self, record: SurvivorsRecord<'_>) {
        let Some(begun) = &mut self.pending else {
            return;
        };
        begun.rows_mut().push(LiveObjectRow {
            key: record.key,
            objects: record.objects,
            bytes: record.bytes,
            generations: record.generations.into_owned(),
        });
        self.complete_pending();
    }

    fn complete_pending(&mut self) {
        match self.pending.take_if(|begun| begun.has_all_rows()) {
            Some(PendingSnapshot::Snapshot(moment)) => self.snapshots.push(moment),
            Some(PendingSnapshot::Census(census)) => {
                if census.record.cause == CensusCause::HeapExhausted {
                    self.exhaustion_census = Some(census.clone());
                }
                self.last_census = Some(census);
            }
            None => {}
        }
    }

    /// The last census.
    #[must_use]
    pub fn last_census(&self) -> Option<&LiveObjectCensus> {
        self.last_census.as_ref()
    }

    /// The census of the VM's last report that the heap was exhausted.
    #[must_use]
    pub fn exhaustion_census(&self) -> Option<&LiveObjectCensus> {
        self.exhaustion_census.as_ref()
    }

    #[must_use]
    pub fn snapshots(&self) -> &[LiveObjectSnapshot] {
        &self.snapshots
    }

    /// Whether the log has objects.
    #[must_use]
    pub fn has_objects(&self) -> bool {
        !self.names.is_empty()
    }

    /// The contexts of all objects.
    pub fn context_ids(&self) -> impl Iterator<Item = ContextId> {
        self.names.values().map(|(id, _)| *id)
    }

    /// The rows whose context and type are admitted, in the same snapshots and censuses.
    #[must_use]
    pub fn filter_objects(&self, admits: impl Fn(ContextId, &str) -> bool) -> FollowedObjects {
        let mut kept = self.clone();
        kept.names.retain(|_, (id, name)| admits(*id, name));
        let FollowedObjects {
            names,
            snapshots,
            last_census,
            exhaustion_census,
            pending: _,
        } = &mut kept;
        let lists = snapshots.iter_mut().map(|snapshot| &mut snapshot.rows);
        let censuses = [last_census, exhaustion_census].into_iter().flatten();
        let lists = lists.chain(censuses.map(|census| &mut census.rows));
        lists.for_each(|rows| rows.retain(|row| names.contains_key(&row.key)));
        kept
    }

    /// Context and type of a row.
    #[must_use]
    pub fn context_and_type(&self, key: u32) -> Option<&(ContextId, String)> {
        self.names.get(&key)
    }
}

impl PendingSnapshot {
    fn has_all_rows(&self) -> bool {
        let (rows, wanted) = match self {
            PendingSnapshot::Snapshot(moment) => (moment.rows.len(), moment.record.rows),
            PendingSnapshot::Census(census) => (census.rows.len(), census.record.rows),
        };
        rows as u64 >= u64::from(wanted)
    }

    fn rows_mut(&mut self) -> &mut Vec<LiveObjectRow> {
        match self {
            PendingSnapshot::Snapshot(moment) => &mut moment.rows,
            PendingSnapshot::Census(census) => &mut census.rows,
        }
    }
}

#[cfg(test)]
mod followed_objects_tests {
    use super::*;

    fn snapshot(rows: u32) -> SnapshotRecord {
        SnapshotRecord {
            rows,
            ..SnapshotRecord::default()
        }
    }

    fn row(key: u32) -> SurvivorsRecord<'static> {
        SurvivorsRecord {
            key,
            objects: 1,
            bytes: 8,
            generations: Vec::new().into(),
        }
    }

    #[test]
    fn a_snapshot_counts_once_it_is_whole() {
        let mut following = FollowedObjects::default();
        following.begin_snapshot(snapshot(2));
        following.add_survivors(row(1));
        assert!(following.snapshots().is_empty());
        following.add_survivors(row(2));
        assert_eq!(following.snapshots().len(), 1);
        // Rows without a snapshot, and a snapshot followed by another one.
        following.add_survivors(row(3));
        following.begin_snapshot(snapshot(1));
        following.begin_snapshot(snapshot(0));
        let rows: Vec<_> = following.snapshots().iter().map(|m| m.rows.len()).collect();
        assert_eq!(rows, [2, 0]);
    }

    #[test]
    fn a_filter_keeps_snapshots_and_drops_rows() {
        let mut following = FollowedObjects::default();
        for (key, name) in [(1, "La/Kept;"), (2, "La/Other;")] {
            following.add_object_key(FollowedKeyRecord {
                key,
                context: ContextId(u64::from(key) * 10),
                type_name: name.into(),
            });
        }
        following.begin_snapshot(snapshot(2));
        following.add_survivors(row(1));
        following.add_survivors(row(2));
        following.begin_snapshot(snapshot(1));
        following.add_survivors(row(2));
        let keys = |objects: &FollowedObjects| -> Vec<Vec<u32>> {
            let keys =
                |moment: &LiveObjectSnapshot| moment.rows.iter().map(|row| row.key).collect();
            objects.snapshots().iter().map(keys).collect()
        };
        let by_type = following.filter_objects(|_, name| name == "a.Kept");
        assert_eq!(keys(&by_type), [vec![1], vec![]]);
        let by_context = following.filter_objects(|id, _| id == ContextId(20));
        assert_eq!(keys(&by_context), [vec![2], vec![2]]);
        assert_eq!(keys(&following), [vec![1, 2], vec![2]]);
    }

    #[test]
    fn a_census_is_no_snapshot() {
        let mut following = FollowedObjects::default();
        let census = |rows, cause| HeapCensus {
            rows,
            cause,
            ..HeapCensus::default()
        };
        following.begin_census(census(1, CensusCause::HeapExhausted));
        assert!(following.exhaustion_census().is_none());
        following.add_survivors(row(1));
        following.begin_census(census(0, CensusCause::Regular));
        following.begin_snapshot(snapshot(1));
        following.add_survivors(row(2));
        let rows = |census: Option<&LiveObjectCensus>| census.map(|census| census.rows.len());
        assert_eq!(rows(following.last_census()), Some(0));
        assert_eq!(rows(following.exhaustion_census()), Some(1));
        assert_eq!(following.snapshots().len(), 1);
    }
}
