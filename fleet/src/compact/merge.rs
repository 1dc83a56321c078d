//! Many files of a table and a part as one.

use crate::commits::{Entry, State};
use crate::compact::sorted::{Change, Plan, Room};
use crate::compact::{Work, shared};
use crate::error::Error;
use crate::files::{Rows, Target};
use crate::layout::{Part, Table, file};

/// Those tables whose files become one: symbols are files of their own.
const MERGED: [Table; 7] = Table::ALL;

/// # Errors
/// A file cannot be read or written.
pub fn all(work: &mut Work<'_>, state: &mut State) -> Result<(), Error> {
    for table in MERGED {
        for (part, entries) in shared(state, table) {
            if entries.len() > 1 {
                let merged = one(work, table, part.as_ref(), &entries, &Ok)?;
                let mut commit = work.commit();
                commit.add.extend(merged);
                commit.remove = entries.into_iter().map(|entry| entry.path).collect();
                // If it could not be done, another one has done it.
                work.publish(state, commit)?;
            }
        }
    }
    Ok(())
}

/// The rows of these files as one file; none of no rows.
pub fn one(
    work: &Work<'_>,
    table: Table,
    part: Option<&Part>,
    entries: &[Entry],
    change: &Change<'_>,
) -> Result<Option<Entry>, Error> {
    let room = Room::of(work.limits);
    let plan = Plan::new(work.dataset(), table, table.order(), room, change)?;
    let files = entries
        .iter()
        .map(|entry| file(work.dataset(), &entry.path));
    ended(plan.merge(files, || target(work, table, part))?)
}

/// A file that is not in memory while it is written.
pub fn target(work: &Work<'_>, table: Table, part: Option<&Part>) -> Result<Rows, Error> {
    let target = Target::new(work.dataset(), table, part.cloned(), None)?;
    Ok(target.rows()?.bounded(Room::of(work.limits).writer))
}

/// The file; none of no rows.
pub fn ended(rows: Rows) -> Result<Option<Entry>, Error> {
    match rows.count() {
        0 => rows.abandon().map(|()| None),
        _ => rows.finish().map(Some),
    }
}
