//! Commits: what makes files of a dataset count.
//!
//! ```text
//! 1. files are staged, synced, and published where they belong: renamed, or uploaded
//! 2. the commit that names them is made as the next number, linked or by a conditional put: this either happens as a whole, or
//!    fails because another writer has taken the number
//! ```
//! What a crash leaves behind is in no commit, so that no reader sees it. Readers sum up all commits once, and have the same
//! dataset until they do it again: files that a commit removes stay for a while.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::FleetError;
use crate::layout::{COMMITS, DatasetPartition, DatasetTable, MARKER_FILE, TEMPORARY, VERSION};
use crate::store::SharedStore;

/// After so many commits one says the sum of all.
const STATE_EVERY: u64 = 64;

/// A file of the dataset.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DatasetFile {
    pub table: DatasetTable,
    /// Below the dataset, with `/` between folders.
    pub path: String,
    pub rows: u64,
    pub bytes: u64,
    /// Of tables that are parted.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub part: Option<DatasetPartition>,
    /// Of files that have one run only, and that are replaced when the run has gone on: whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// What the dataset knows of a run beside its tables.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DatasetRun {
    pub part: DatasetPartition,
    /// The last day on which something of it was added.
    pub last: String,
    /// Events that were counted when it was added last.
    pub events: u64,
    /// The JVM had ended by itself.
    pub ended: bool,
    /// Its events are in a sum of several runs, its numbers are gone.
    #[serde(default)]
    pub summed: bool,
}

#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub struct Commit {
    pub version: u32,
    /// Milliseconds since 1970.
    pub at: u64,
    pub add: Vec<DatasetFile>,
    pub remove: Vec<String>,
    /// Files that were removed by earlier commits, and are now gone from the disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// By the run's id.
    pub runs: BTreeMap<String, DatasetRun>,
}

/// The sum of all commits.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub struct DatasetState {
    pub version: u32,
    /// Of the last commit; 0: there is none yet.
    pub number: u64,
    /// By path.
    pub files: BTreeMap<String, DatasetFile>,
    pub runs: BTreeMap<String, DatasetRun>,
    /// Files that were removed, and when: milliseconds since 1970.
    pub removed: BTreeMap<String, u64>,
}

impl DatasetState {
    fn apply_commit(&mut self, number: u64, commit: Commit) {
        self.number = number;
        self.version = commit.version;
        for path in commit.remove {
            self.files.remove(&path);
            self.removed.insert(path, commit.at);
        }
        for path in commit.gone {
            self.removed.remove(&path);
        }
        for entry in commit.add {
            self.files.insert(entry.path.clone(), entry);
        }
        self.runs.extend(commit.runs);
    }

    pub fn files_of(&self, table: DatasetTable) -> impl Iterator<Item = &DatasetFile> {
        self.files
            .values()
            .filter(move |entry| entry.table == table)
    }
}

/// The commits of a dataset.
#[derive(Clone)]
pub struct CommitLog {
    store: SharedStore,
}

#[derive(Serialize, Deserialize)]
struct DatasetMarker {
    schema: String,
    version: u32,
}

const SCHEMA: &str = "lucce-fleet";

impl CommitLog {
    /// A dataset that is there.
    ///
    /// # Errors
    /// There is none, or one of a later version.
    pub fn open(store: &SharedStore) -> Result<CommitLog, FleetError> {
        CommitLog::find(store)?.ok_or_else(|| {
            let what = format!("no dataset of lucce fleet: there is no {MARKER_FILE}");
            FleetError::Dataset(store.location().to_owned(), what)
        })
    }

    fn find(store: &SharedStore) -> Result<Option<CommitLog>, FleetError> {
        let Some(text) = store.read_file(MARKER_FILE)? else {
            return Ok(None);
        };
        let path = store.display_path(MARKER_FILE);
        let mark = serde_json::from_slice::<DatasetMarker>(&text).ok();
        let mark = mark.filter(|mark| mark.schema == SCHEMA);
        let mark =
            mark.ok_or_else(|| FleetError::Dataset(path.clone(), "not of lucce fleet".into()))?;
        check_version(&path, mark.version)?;
        let store = SharedStore::clone(store);
        Ok(Some(CommitLog { store }))
    }

    /// A dataset that is there, or a new one where nothing is.
    ///
    /// # Errors
    /// Something else is there, or the place cannot be written to.
    pub fn open_or_create(store: &SharedStore) -> Result<CommitLog, FleetError> {
        if let Some(log) = CommitLog::find(store)? {
            return Ok(log);
        }
        let there = store.create_root()?;
        let is_ours = |name: &String| [COMMITS, TEMPORARY, MARKER_FILE].contains(&name.as_str());
        if !there.iter().all(is_ours) {
            // Another writer may have been first, and gone on.
            if let Some(log) = CommitLog::find(store)? {
                return Ok(log);
            }
            let what = "not empty, and no dataset of lucce fleet".to_owned();
            return Err(FleetError::Dataset(store.location().to_owned(), what));
        }
        for folder in [COMMITS, TEMPORARY] {
            store.create_folder(folder)?;
        }
        let mark = DatasetMarker {
            schema: SCHEMA.into(),
            version: VERSION,
        };
        // Another writer may be first: its marker says what this one would.
        store.create_file(MARKER_FILE, &encode_json(&mark)?)?;
        CommitLog::open(store)
    }

    #[must_use]
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// The sum of all commits so far.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn read_state(&self) -> Result<DatasetState, FleetError> {
        let mut state = self.last_state()?.unwrap_or_default();
        self.refresh_state(&mut state)?;
        Ok(state)
    }

    /// What was committed since.
    ///
    /// # Errors
    /// A commit cannot be read.
    pub fn refresh_state(&self, state: &mut DatasetState) -> Result<Vec<DatasetFile>, FleetError> {
        let mut new = Vec::new();
        while let Some(commit) = self.read_json::<Commit>(&commit_name(state.number + 1))? {
            check_version(self.store.location(), commit.version)?;
            new.extend(commit.add.iter().cloned());
            state.apply_commit(state.number + 1, commit);
        }
        Ok(new)
    }

    /// Whether others have committed something since.
    ///
    /// # Errors
    /// The dataset cannot be read.
    pub fn is_outdated(&self, state: &DatasetState) -> Result<bool, FleetError> {
        let next = self.store.read_file(&commit_name(state.number + 1))?;
        Ok(next.is_some())
    }

    fn last_state(&self) -> Result<Option<DatasetState>, FleetError> {
        let files = self.store.list_files(COMMITS)?;
        let paths = files.into_iter().map(|file| file.path);
        let Some(last) = paths.filter(|path| path.ends_with(".state.json")).max() else {
            return Ok(None);
        };
        let state = self.read_json::<DatasetState>(&last)?;
        if let Some(state) = &state {
            check_version(&self.store.display_path(&last), state.version)?;
        }
        Ok(state)
    }

    fn read_json<T: for<'de> Deserialize<'de>>(&self, path: &str) -> Result<Option<T>, FleetError> {
        let Some(text) = self.store.read_file(path)? else {
            return Ok(None);
        };
        serde_json::from_slice(&text).map(Some).map_err(|e| {
            FleetError::Dataset(self.store.display_path(path), format!("damaged: {e}"))
        })
    }

    /// Makes it the next commit. `false`: another writer was faster; the state has to be refreshed.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append_commit(
        &self,
        state: &mut DatasetState,
        commit: Commit,
    ) -> Result<bool, FleetError> {
        let number = state.number + 1;
        let mut paths = commit.add.iter().map(|entry| entry.path.as_str());
        self.store.sync_files(&mut paths)?;
        let text = encode_json(&commit)?;
        if !self.store.create_file(&commit_name(number), &text)? {
            return Ok(false);
        }
        state.apply_commit(number, commit);
        if number.is_multiple_of(STATE_EVERY) {
            self.store
                .create_file(&state_name(number), &encode_json(state)?)?;
        }
        Ok(true)
    }
}

fn check_version(path: &Path, version: u32) -> Result<(), FleetError> {
    match version > VERSION {
        true => {
            let what =
                format!("of version {version}; this is lucce-fleet for versions up to {VERSION}");
            Err(FleetError::Dataset(path.to_owned(), what))
        }
        false => Ok(()),
    }
}

fn encode_json(value: &impl Serialize) -> Result<Vec<u8>, FleetError> {
    serde_json::to_vec(value).map_err(|e| FleetError::Output(e.into()))
}

fn commit_name(number: u64) -> String {
    format!("{COMMITS}/{number:010}.json")
}

fn state_name(number: u64) -> String {
    format!("{COMMITS}/{number:010}.state.json")
}
