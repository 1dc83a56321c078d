//! Many files of a table and a part as one.

use crate::commits::{DatasetFile, DatasetState};
use crate::compact::sorted_merge::{BatchTransform, MergeMemory, MergePlan};
use crate::compact::{CompactionJob, shared_files};
use crate::error::FleetError;
use crate::files::{FileTarget, TableFileWriter};
use crate::layout::{DatasetPartition, DatasetTable};

/// Those tables whose files become one: symbols are files of their own.
const MERGED: [DatasetTable; 7] = DatasetTable::ALL;

/// # Errors
/// A file cannot be read or written.
pub fn merge_tables(
    work: &mut CompactionJob<'_>,
    state: &mut DatasetState,
) -> Result<(), FleetError> {
    for table in MERGED {
        for (part, entries) in shared_files(state, table) {
            if entries.len() > 1 {
                let merged = merge_files(work, table, part.as_ref(), &entries, &Ok)?;
                let mut commit = work.new_commit();
                commit.add.extend(merged);
                commit.remove = entries.into_iter().map(|entry| entry.path).collect();
                // If it could not be done, another one has done it.
                work.publish_commit(state, commit)?;
            }
        }
    }
    Ok(())
}

/// The rows of these files as one file; none of no rows.
pub fn merge_files(
    work: &CompactionJob<'_>,
    table: DatasetTable,
    part: Option<&DatasetPartition>,
    entries: &[DatasetFile],
    change: &BatchTransform<'_>,
) -> Result<Option<DatasetFile>, FleetError> {
    let room = MergeMemory::from_limits(work.limits);
    let plan = MergePlan::new(work.store(), table, table.sort_columns(), room, change)?;
    let files = entries.iter().map(|entry| entry.path.as_str());
    finish_file(plan.merge_files(files, || create_target(work, table, part))?)
}

/// A file that is not in memory while it is written.
pub fn create_target(
    work: &CompactionJob<'_>,
    table: DatasetTable,
    part: Option<&DatasetPartition>,
) -> Result<TableFileWriter, FleetError> {
    let target = FileTarget::new(work.store(), table, part.cloned(), None)?;
    Ok(target
        .open_table_writer()?
        .with_memory_limit(MergeMemory::from_limits(work.limits).writer))
}

/// The file; none of no rows.
pub fn finish_file(rows: TableFileWriter) -> Result<Option<DatasetFile>, FleetError> {
    match rows.row_count() {
        0 => Ok(None),
        _ => rows.finish().map(Some),
    }
}
