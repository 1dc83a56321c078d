//! Files that no reader needs: those that were replaced long enough ago, and what crashes left behind.

use std::collections::HashSet;
use std::time::Duration;

use crate::commits::DatasetState;
use crate::compact::CompactionJob;
use crate::error::FleetError;
use crate::ingest::unix_millis;
use crate::layout::{DatasetTable, TEMPORARY};

/// A writer that still lives has not taken so long for a commit.
const ABANDONED_AFTER: Duration = Duration::from_secs(86_400);

/// How many are gone.
pub fn remove_garbage(
    work: &mut CompactionJob<'_>,
    state: &mut DatasetState,
) -> Result<u64, FleetError> {
    let mut commit = work.new_commit();
    let grace = u64::try_from(work.policy.grace.as_millis()).unwrap_or(u64::MAX);
    let now = unix_millis(work.policy.now);
    let over = state
        .removed
        .iter()
        .filter(|(_, at)| at.saturating_add(grace) <= now);
    for (path, _) in over {
        work.store().remove_file(path)?;
        commit.gone.push(path.clone());
    }
    let mut gone = commit.gone.len() as u64;
    if gone > 0 {
        work.publish_commit(state, commit)?;
    }
    let known: HashSet<&String> = state.files.keys().chain(state.removed.keys()).collect();
    let tables = DatasetTable::ALL
        .into_iter()
        .chain([DatasetTable::Symbols, DatasetTable::Taken])
        .map(DatasetTable::name);
    for folder in tables.chain([TEMPORARY]) {
        for file in work.store().list_files(folder)? {
            let age = file.modified;
            let age = age.and_then(|written| work.policy.now.duration_since(written).ok());
            let is_old = age.is_some_and(|age| age > ABANDONED_AFTER.max(work.policy.grace));
            if is_old && !known.contains(&file.path) {
                work.store().remove_file(&file.path)?;
                gone += 1;
            }
        }
    }
    Ok(gone)
}
