//! Many files of a table and a part as one.

use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::SchemaRef;

use crate::commits::{Entry, State};
use crate::compact::{Work, shared};
use crate::engine::Engine;
use crate::error::Error;
use crate::files::Target;
use crate::layout::{Part, Table, file};

/// Those tables whose files become one: symbols are files of their own.
const MERGED: [Table; 7] = Table::ALL;

/// # Errors
/// A file cannot be read or written.
pub fn all(work: &mut Work<'_>, state: &mut State) -> Result<(), Error> {
    for table in MERGED {
        for (part, entries) in shared(state, table) {
            if entries.len() > 1 {
                one(work, state, table, part.as_ref(), &entries)?;
            }
        }
    }
    Ok(())
}

fn one(
    work: &Work<'_>,
    state: &mut State,
    table: Table,
    part: Option<&Part>,
    entries: &[Entry],
) -> Result<(), Error> {
    let engine = Engine::of(work.dataset(), state, work.limits)?;
    open(&engine, work, table, entries)?;
    let sql = format!("SELECT * FROM many ORDER BY {}", order(table));
    let mut commit = work.commit();
    commit
        .add
        .extend(written(&engine, work, table, part, &sql)?);
    commit.remove = entries.iter().map(|entry| entry.path.clone()).collect();
    // If it could not be done, another one has done it.
    work.publish(state, commit).map(|_| ())
}

/// The table `many`.
pub fn open(
    engine: &Engine,
    work: &Work<'_>,
    table: Table,
    entries: &[Entry],
) -> Result<(), Error> {
    let dataset = work.dataset();
    let dataset = dataset.canonicalize().map_err(Error::of(dataset))?;
    let paths = entries.iter().map(|entry| file(&dataset, &entry.path));
    engine.register("many", table, paths.collect())
}

#[must_use]
pub fn order(table: Table) -> String {
    let names: Vec<_> = table
        .order()
        .iter()
        .map(|name| format!("\"{name}\""))
        .collect();
    names.join(", ")
}

/// The answer as a file of the table; none of no rows.
pub fn written(
    engine: &Engine,
    work: &Work<'_>,
    table: Table,
    part: Option<&Part>,
    sql: &str,
) -> Result<Option<Entry>, Error> {
    let mut rows = Target::new(work.dataset(), table, part.cloned(), None)?.rows()?;
    let schema = table.schema();
    let mut count = 0;
    engine.ask(sql, &mut |_, batch| match batch {
        None => Ok(()),
        Some(batch) => {
            count += batch.num_rows();
            rows.write(&as_stored(batch, &schema)?)
        }
    })?;
    match count {
        0 => rows.abandon().map(|()| None),
        _ => rows.finish().map(Some),
    }
}

/// The engine has other forms of text than files have.
fn as_stored(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Error> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns: Result<Vec<_>, _> = columns
        .map(|(column, field)| cast(column, field.data_type()))
        .collect();
    Ok(RecordBatch::try_new(schema.clone(), columns?)?)
}
