//! Files that no reader needs: those that were replaced long enough ago, and what crashes left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::commits::DatasetState;
use crate::compact::CompactionJob;
use crate::error::FleetError;
use crate::ingest::unix_millis;
use crate::layout::{DatasetTable, TEMPORARY, resolve_path};

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
        match fs::remove_file(resolve_path(work.dataset(), path)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(FleetError::File(resolve_path(work.dataset(), path), e));
            }
            _ => commit.gone.push(path.clone()),
        }
    }
    let mut gone = commit.gone.len() as u64;
    if gone > 0 {
        work.publish_commit(state, commit)?;
    }
    let known: std::collections::HashSet<PathBuf> = state
        .files
        .keys()
        .chain(state.removed.keys())
        .map(|path| resolve_path(work.dataset(), path))
        .collect();
    let tables = DatasetTable::ALL
        .into_iter()
        .chain([DatasetTable::Symbols, DatasetTable::Taken])
        .map(DatasetTable::name);
    for folder in tables.chain([TEMPORARY]) {
        gone += remove_abandoned(work, &work.dataset().join(folder), &|path| {
            known.contains(path)
        })?;
    }
    Ok(gone)
}

fn remove_abandoned(
    work: &CompactionJob<'_>,
    folder: &Path,
    is_known: &dyn Fn(&Path) -> bool,
) -> Result<u64, FleetError> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(FleetError::for_path(folder))?,
    };
    let mut gone = 0;
    for entry in entries {
        let entry = entry.map_err(FleetError::for_path(folder))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(FleetError::for_path(&path))?;
        if kind.is_dir() {
            gone += remove_abandoned(work, &path, is_known)?;
            continue;
        }
        let written = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok();
        let age = written.and_then(|written| work.policy.now.duration_since(written).ok());
        if age.is_some_and(|age| age > ABANDONED_AFTER.max(work.policy.grace)) && !is_known(&path) {
            fs::remove_file(&path).map_err(FleetError::for_path(&path))?;
            gone += 1;
        }
    }
    Ok(gone)
}
