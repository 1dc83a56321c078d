//! Few large files instead of many small ones, and what is old as sums.
//!
//! ```text
//! events of a service and a day: many files ─► one, sorted ─► (old) one in which runs of a version and a JVM are one
//! numbers, symbols, stream: many files ─► one ─► (old) none
//! ```
//! Each step is a commit: readers see the dataset before it or behind it. Files that were replaced stay until the grace is over,
//! for readers who began before.

mod event_sums;
mod garbage;
mod merge;
mod retention;
mod sorted_merge;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::commits::{Commit, CommitLog, DatasetFile, DatasetState};
use crate::engine::QueryLimits;
use crate::error::FleetError;
use crate::files::discard_files;
use crate::ingest::{format_day, unix_millis};
use crate::layout::{DatasetPartition, DatasetTable, VERSION};
use crate::store::SharedStore;

/// What stays how long.
#[derive(Clone, Debug)]
pub struct RetentionPolicy {
    /// Days for which numbers, symbols and single events are kept.
    pub numbers: Option<u32>,
    /// Days for which each run is kept for itself; then only sums are.
    pub runs: Option<u32>,
    /// Days for which sums are kept.
    pub sums: Option<u32>,
    /// For how long files stay that were replaced.
    pub grace: Duration,
    pub now: SystemTime,
}

/// What was done.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct CompactReport {
    /// Files of tables before and behind.
    pub files_before: u64,
    pub files_after: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// Runs that became sums.
    pub runs_summed: u64,
    /// Files that are gone from the disk.
    pub files_removed: u64,
}

impl RetentionPolicy {
    /// The first day that is kept; the last of all if all are kept.
    fn first_kept_day(&self, days: Option<u32>) -> Option<String> {
        let days = Duration::from_secs(u64::from(days?) * 86_400);
        let at = self.now.checked_sub(days).unwrap_or(SystemTime::UNIX_EPOCH);
        Some(format_day(at))
    }
}

/// # Errors
/// A file cannot be read or written; what was committed until then holds.
pub fn compact_dataset(
    store: &SharedStore,
    policy: &RetentionPolicy,
    limits: &QueryLimits,
) -> Result<CompactReport, FleetError> {
    let log = CommitLog::open(store)?;
    let mut state = log.read_state()?;
    let mut done = CompactReport::default();
    (done.files_before, done.bytes_before) = file_totals(&state);
    let mut work = CompactionJob {
        log,
        limits,
        policy,
    };
    retention::drop_parts(&mut work, &mut state)?;
    done.runs_summed = retention::sum_runs(&mut work, &mut state)?;
    merge::merge_tables(&mut work, &mut state)?;
    (done.files_after, done.bytes_after) = file_totals(&state);
    done.files_removed = garbage::remove_garbage(&mut work, &mut state)?;
    Ok(done)
}

fn file_totals(state: &DatasetState) -> (u64, u64) {
    let files = state.files.values();
    files.fold((0, 0), |(files, bytes), entry| {
        (files + 1, bytes + entry.bytes)
    })
}

struct CompactionJob<'w> {
    log: CommitLog,
    limits: &'w QueryLimits,
    policy: &'w RetentionPolicy,
}

impl CompactionJob<'_> {
    fn store(&self) -> &SharedStore {
        self.log.store()
    }

    fn new_commit(&self) -> Commit {
        Commit {
            version: VERSION,
            at: unix_millis(self.policy.now),
            ..Commit::default()
        }
    }

    /// `false`: another writer has replaced or removed what this replaces: nothing was done.
    fn publish_commit(&self, state: &mut DatasetState, commit: Commit) -> Result<bool, FleetError> {
        loop {
            self.log.refresh_state(state)?;
            let runs = commit.runs.iter();
            let is_as_it_was = commit
                .remove
                .iter()
                .all(|path| state.files.contains_key(path))
                && runs.clone().all(|(run, known)| {
                    state
                        .runs
                        .get(run)
                        .is_some_and(|now| now.events == known.events)
                });
            if !is_as_it_was {
                discard_files(self.store(), &commit.add);
                return Ok(false);
            }
            if self.log.append_commit(state, commit.clone())? {
                return Ok(true);
            }
        }
    }
}

/// Files of several runs, by part; those of a run that goes on are its own.
fn shared_files(
    state: &DatasetState,
    table: DatasetTable,
) -> BTreeMap<Option<DatasetPartition>, Vec<DatasetFile>> {
    let mut parts: BTreeMap<Option<DatasetPartition>, Vec<DatasetFile>> = BTreeMap::new();
    for entry in state.files_of(table).filter(|entry| entry.run.is_none()) {
        parts
            .entry(entry.part.clone())
            .or_default()
            .push(entry.clone());
    }
    parts
}
