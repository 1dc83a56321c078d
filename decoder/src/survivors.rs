//! What the log says of sampled objects that are still alive: snapshots in the order of time.

use std::collections::HashMap;

use lucce_callgraph::ContextId;
use lucce_tracelog::{CensusCause, Followed, Generation, HeapCensus, Snapshot, Survivors};

use crate::code::type_name;

/// See [`Moment`].
#[derive(Clone, Default, Debug)]
pub struct Following {
    names: HashMap<u32, (ContextId, String)>,
    moments: Vec<Moment>,
    last_census: Option<Census>,
    exhaustion: Option<Census>,
    /// What lacks rows: of a JVM that was killed then, or that runs.
    begun: Option<Begun>,
}

/// A snapshot or a census whose rows are not all there yet.
#[derive(Clone, Debug)]
enum Begun {
    Moment(Moment),
    Census(Census),
}

/// All followed objects that were not known to be dead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Census {
    pub at: HeapCensus<'static>,
    /// Rows of one key differ in the class of their ages.
    pub rows: Vec<Row>,
}

/// What was alive after a collection of the old generation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moment {
    pub at: Snapshot,
    pub rows: Vec<Row>,
}

/// The living objects of one context and type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub key: u32,
    /// Objects and bytes that the followed ones stand for.
    pub objects: u64,
    pub bytes: u64,
    pub generations: Vec<Generation>,
}

impl Following {
    pub(crate) fn followed(&mut self, record: Followed<'_>) {
        let name = (record.context, type_name(&record.of));
        self.names.insert(record.key, name);
    }

    pub(crate) fn snapshot(&mut self, at: Snapshot) {
        let rows = Vec::new();
        self.begun = Some(Begun::Moment(Moment { at, rows }));
        self.complete();
    }

    pub(crate) fn census(&mut self, at: HeapCensus<'_>) {
        let at = HeapCensus {
            detail: at.detail.into_owned().into(),
            ..at
        };
        let rows = Vec::new();
        self.begun = Some(Begun::Census(Census { at, rows }));
        self.complete();
    }

    pub(crate) fn survivors(&mut self, record: Survivors<'_>) {
        let Some(begun) = &mut self.begun else {
            return;
        };
        begun.rows_mut().push(Row {
            key: record.key,
            objects: record.objects,
            bytes: record.bytes,
            generations: record.generations.into_owned(),
        });
        self.complete();
    }

    fn complete(&mut self) {
        match self.begun.take_if(|begun| begun.is_whole()) {
            Some(Begun::Moment(moment)) => self.moments.push(moment),
            Some(Begun::Census(census)) => {
                if census.at.cause == CensusCause::HeapExhausted {
                    self.exhaustion = Some(census.clone());
                }
                self.last_census = Some(census);
            }
            None => {}
        }
    }

    /// The last census.
    #[must_use]
    pub fn last_census(&self) -> Option<&Census> {
        self.last_census.as_ref()
    }

    /// What lived when the VM said for the last time that the heap was exhausted.
    #[must_use]
    pub fn exhaustion(&self) -> Option<&Census> {
        self.exhaustion.as_ref()
    }

    #[must_use]
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// Context and type of a row.
    #[must_use]
    pub fn name(&self, key: u32) -> Option<&(ContextId, String)> {
        self.names.get(&key)
    }
}

impl Begun {
    fn is_whole(&self) -> bool {
        let (rows, wanted) = match self {
            Begun::Moment(moment) => (moment.rows.len(), moment.at.rows),
            Begun::Census(census) => (census.rows.len(), census.at.rows),
        };
        rows as u64 >= u64::from(wanted)
    }

    fn rows_mut(&mut self) -> &mut Vec<Row> {
        match self {
            Begun::Moment(moment) => &mut moment.rows,
            Begun::Census(census) => &mut census.rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(rows: u32) -> Snapshot {
        Snapshot {
            rows,
            ..Snapshot::default()
        }
    }

    fn row(key: u32) -> Survivors<'static> {
        Survivors {
            key,
            objects: 1,
            bytes: 8,
            generations: Vec::new().into(),
        }
    }

    #[test]
    fn a_snapshot_counts_once_it_is_whole() {
        let mut following = Following::default();
        following.snapshot(snapshot(2));
        following.survivors(row(1));
        assert!(following.moments().is_empty());
        following.survivors(row(2));
        assert_eq!(following.moments().len(), 1);
        // Rows of no snapshot, and a snapshot that another one follows.
        following.survivors(row(3));
        following.snapshot(snapshot(1));
        following.snapshot(snapshot(0));
        let rows: Vec<_> = following.moments().iter().map(|m| m.rows.len()).collect();
        assert_eq!(rows, [2, 0]);
    }

    #[test]
    fn a_census_is_no_snapshot() {
        let mut following = Following::default();
        let census = |rows, cause| HeapCensus {
            rows,
            cause,
            ..HeapCensus::default()
        };
        following.census(census(1, CensusCause::HeapExhausted));
        assert!(following.exhaustion().is_none());
        following.survivors(row(1));
        following.census(census(0, CensusCause::Regular));
        following.snapshot(snapshot(1));
        following.survivors(row(2));
        let rows = |census: Option<&Census>| census.map(|census| census.rows.len());
        assert_eq!(rows(following.last_census()), Some(0));
        assert_eq!(rows(following.exhaustion()), Some(1));
        assert_eq!(following.moments().len(), 1);
    }
}
