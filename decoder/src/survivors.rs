//! What the log says of sampled objects that are still alive: snapshots in the order of time.

use std::collections::HashMap;

use lucce_callgraph::ContextId;
use lucce_tracelog::{Followed, Generation, Snapshot, Survivors};

use crate::code::type_name;

/// See [`Moment`].
#[derive(Clone, Default, Debug)]
pub struct Following {
    names: HashMap<u32, (ContextId, String)>,
    moments: Vec<Moment>,
    /// A snapshot whose rows are not all there yet: that of a JVM that was killed then, or that runs.
    begun: Option<Moment>,
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
        self.begun = Some(Moment { at, rows });
        self.complete();
    }

    pub(crate) fn survivors(&mut self, record: Survivors<'_>) {
        let Some(begun) = &mut self.begun else {
            return;
        };
        begun.rows.push(Row {
            key: record.key,
            objects: record.objects,
            bytes: record.bytes,
            generations: record.generations.into_owned(),
        });
        self.complete();
    }

    fn complete(&mut self) {
        let whole = |moment: &mut Moment| moment.rows.len() as u64 >= u64::from(moment.at.rows);
        self.moments.extend(self.begun.take_if(whole));
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
}
