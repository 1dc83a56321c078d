//! Few large files instead of many small ones, and what is old as sums.
//!
//! ```text
//! events of a service and a day: many files ─► one, sorted ─► (old) one in which runs of a version and a JVM are one
//! numbers, symbols, stream: many files ─► one ─► (old) none
//! ```
//! Each step is a commit: readers see the dataset before it or behind it. Files that were replaced stay until the grace is over,
//! for readers who began before.

mod merge;
mod old;
mod rubbish;
mod sorted;
mod sums;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::commits::{Commit, Entry, Log, State};
use crate::engine::Limits;
use crate::error::Error;
use crate::files::discard;
use crate::ingest::{day, millis};
use crate::layout::{Part, Table, VERSION};

/// What stays how long.
#[derive(Clone, Debug)]
pub struct Policy {
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
pub struct Done {
    /// Files of tables before and behind.
    pub before: u64,
    pub behind: u64,
    pub bytes_before: u64,
    pub bytes_behind: u64,
    /// Runs that became sums.
    pub summed: u64,
    /// Files that are gone from the disk.
    pub gone: u64,
}

impl Policy {
    /// The first day that is kept; the last of all if all are kept.
    fn first(&self, days: Option<u32>) -> Option<String> {
        let days = Duration::from_secs(u64::from(days?) * 86_400);
        let at = self.now.checked_sub(days).unwrap_or(SystemTime::UNIX_EPOCH);
        Some(day(at))
    }
}

/// # Errors
/// A file cannot be read or written; what was committed until then holds.
pub fn compact(dataset: &Path, policy: &Policy, limits: &Limits) -> Result<Done, Error> {
    let log = Log::open(dataset)?;
    let mut state = log.state()?;
    let mut done = Done::default();
    (done.before, done.bytes_before) = size(&state);
    let mut work = Work {
        log,
        limits,
        policy,
    };
    old::drop_parts(&mut work, &mut state)?;
    done.summed = old::sum_runs(&mut work, &mut state)?;
    merge::all(&mut work, &mut state)?;
    (done.behind, done.bytes_behind) = size(&state);
    done.gone = rubbish::remove(&mut work, &mut state)?;
    Ok(done)
}

fn size(state: &State) -> (u64, u64) {
    let files = state.files.values();
    files.fold((0, 0), |(files, bytes), entry| {
        (files + 1, bytes + entry.bytes)
    })
}

struct Work<'w> {
    log: Log,
    limits: &'w Limits,
    policy: &'w Policy,
}

impl Work<'_> {
    fn dataset(&self) -> &Path {
        self.log.dataset()
    }

    fn commit(&self) -> Commit {
        Commit {
            version: VERSION,
            at: millis(self.policy.now),
            ..Commit::default()
        }
    }

    /// `false`: another writer has replaced or removed what this replaces: nothing was done.
    fn publish(&self, state: &mut State, commit: Commit) -> Result<bool, Error> {
        loop {
            self.log.refresh(state)?;
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
                discard(self.dataset(), &commit.add);
                return Ok(false);
            }
            if self.log.commit(state, commit.clone())? {
                return Ok(true);
            }
        }
    }
}

/// Files of several runs, by part; those of a run that goes on are its own.
fn shared(state: &State, table: Table) -> BTreeMap<Option<Part>, Vec<Entry>> {
    let mut parts: BTreeMap<Option<Part>, Vec<Entry>> = BTreeMap::new();
    for entry in state.of(table).filter(|entry| entry.run.is_none()) {
        parts
            .entry(entry.part.clone())
            .or_default()
            .push(entry.clone());
    }
    parts
}
