//! Files that no reader needs: those that were replaced long enough ago, and what crashes left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::commits::State;
use crate::compact::Work;
use crate::error::Error;
use crate::ingest::millis;
use crate::layout::{TEMPORARY, Table, file};

/// A writer that still lives has not taken so long for a commit.
const ABANDONED: Duration = Duration::from_secs(86_400);

/// How many are gone.
pub fn remove(work: &mut Work<'_>, state: &mut State) -> Result<u64, Error> {
    let mut commit = work.commit();
    let grace = u64::try_from(work.policy.grace.as_millis()).unwrap_or(u64::MAX);
    let now = millis(work.policy.now);
    let over = state
        .removed
        .iter()
        .filter(|(_, at)| at.saturating_add(grace) <= now);
    for (path, _) in over {
        match fs::remove_file(file(work.dataset(), path)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::File(file(work.dataset(), path), e));
            }
            _ => commit.gone.push(path.clone()),
        }
    }
    let mut gone = commit.gone.len() as u64;
    if gone > 0 {
        work.publish(state, commit)?;
    }
    let known: std::collections::HashSet<PathBuf> = state
        .files
        .keys()
        .chain(state.removed.keys())
        .map(|path| file(work.dataset(), path))
        .collect();
    let tables = Table::ALL
        .into_iter()
        .chain([Table::Symbols, Table::Taken])
        .map(Table::name);
    for folder in tables.chain([TEMPORARY]) {
        gone += abandoned(work, &work.dataset().join(folder), &|path| {
            known.contains(path)
        })?;
    }
    Ok(gone)
}

fn abandoned(
    work: &Work<'_>,
    folder: &Path,
    is_known: &dyn Fn(&Path) -> bool,
) -> Result<u64, Error> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(Error::of(folder))?,
    };
    let mut gone = 0;
    for entry in entries {
        let entry = entry.map_err(Error::of(folder))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(Error::of(&path))?;
        if kind.is_dir() {
            gone += abandoned(work, &path, is_known)?;
            continue;
        }
        let written = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok();
        let age = written.and_then(|written| work.policy.now.duration_since(written).ok());
        if age.is_some_and(|age| age > ABANDONED.max(work.policy.grace)) && !is_known(&path) {
            fs::remove_file(&path).map_err(Error::of(&path))?;
            gone += 1;
        }
    }
    Ok(gone)
}
