//! Commits: what makes files of a dataset count.
//!
//! ```text
//! 1. files are written below `temporary/`, synced, and moved to where they belong
//! 2. the commit that names them is written below `temporary/`, synced, and linked as the next number: this either
//!    happens as a whole, or fails because another writer has taken the number
//! ```
//! What a crash leaves behind is in no commit, so that no reader sees it. Readers sum up all commits once, and have the same
//! dataset until they do it again: files that a commit removes stay for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::FleetError;
use crate::layout::{
    COMMITS, DatasetPartition, DatasetTable, MARKER_FILE, TEMPORARY, VERSION, resolve_path,
};

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

/// The folder of commits.
#[derive(Clone, Debug)]
pub struct CommitLog {
    dataset: PathBuf,
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
    /// The folder is none, or one of a later version.
    pub fn open(dataset: &Path) -> Result<CommitLog, FleetError> {
        let path = dataset.join(MARKER_FILE);
        let text = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let what = format!("no dataset of lucce fleet: there is no {MARKER_FILE}");
                return Err(FleetError::Dataset(dataset.to_owned(), what));
            }
            read => read.map_err(FleetError::for_path(&path))?,
        };
        let mark = serde_json::from_slice::<DatasetMarker>(&text).ok();
        let mark = mark.filter(|mark| mark.schema == SCHEMA);
        let mark =
            mark.ok_or_else(|| FleetError::Dataset(path.clone(), "not of lucce fleet".into()))?;
        check_version(&path, mark.version)?;
        let dataset = dataset.to_owned();
        Ok(CommitLog { dataset })
    }

    /// A dataset that is there, or a new one in a folder that is not there or empty.
    ///
    /// # Errors
    /// The folder has something else in it, or cannot be written to.
    pub fn open_or_create(dataset: &Path) -> Result<CommitLog, FleetError> {
        if dataset.join(MARKER_FILE).exists() {
            return CommitLog::open(dataset);
        }
        // What runs say is their user's, unless that opens it to others.
        let mut folder = fs::DirBuilder::new();
        let created = folder.recursive(true).mode(0o700).create(dataset);
        created.map_err(FleetError::for_path(dataset))?;
        let mut there = fs::read_dir(dataset).map_err(FleetError::for_path(dataset))?;
        let is_ours = |name: &std::ffi::OsStr| {
            [COMMITS, TEMPORARY, MARKER_FILE]
                .iter()
                .any(|own| *own == name)
        };
        if there.any(|entry| entry.is_ok_and(|entry| !is_ours(&entry.file_name()))) {
            let what = "not empty, and no dataset of lucce fleet".to_owned();
            return Err(FleetError::Dataset(dataset.to_owned(), what));
        }
        for folder in [COMMITS, TEMPORARY] {
            let folder = dataset.join(folder);
            fs::create_dir_all(&folder).map_err(FleetError::for_path(&folder))?;
        }
        let log = CommitLog {
            dataset: dataset.to_owned(),
        };
        let mark = DatasetMarker {
            schema: SCHEMA.into(),
            version: VERSION,
        };
        // Another writer may be first: its commit says what this one would.
        log.publish_file(&encode_json(&mark)?, MARKER_FILE)?;
        CommitLog::open(dataset)
    }

    #[must_use]
    pub fn dataset(&self) -> &Path {
        &self.dataset
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
            check_version(&self.dataset, commit.version)?;
            new.extend(commit.add.iter().cloned());
            state.apply_commit(state.number + 1, commit);
        }
        Ok(new)
    }

    fn last_state(&self) -> Result<Option<DatasetState>, FleetError> {
        let folder = self.dataset.join(COMMITS);
        let names = fs::read_dir(&folder).map_err(FleetError::for_path(&folder))?;
        let names = names
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        let sums: BTreeSet<String> = names.filter(|name| name.ends_with(".state.json")).collect();
        let Some(last) = sums.last() else {
            return Ok(None);
        };
        let state = self.read_json::<DatasetState>(&format!("{COMMITS}/{last}"))?;
        if let Some(state) = &state {
            check_version(&folder, state.version)?;
        }
        Ok(state)
    }

    fn read_json<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Result<Option<T>, FleetError> {
        let path = resolve_path(&self.dataset, name);
        match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            read => {
                let text = read.map_err(FleetError::for_path(&path))?;
                let value = serde_json::from_slice(&text);
                value
                    .map(Some)
                    .map_err(|e| FleetError::Dataset(path, format!("damaged: {e}")))
            }
        }
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
        self.sync_folders(&commit.add)?;
        if !self.publish_file(&encode_json(&commit)?, &commit_name(number))? {
            return Ok(false);
        }
        state.apply_commit(number, commit);
        if number.is_multiple_of(STATE_EVERY) {
            self.publish_file(&encode_json(state)?, &state_name(number))?;
        }
        Ok(true)
    }

    /// What the folders of these files say stays when the machine stops. A new folder is an entry of the one above, and so on.
    fn sync_folders(&self, entries: &[DatasetFile]) -> Result<(), FleetError> {
        let mut folders = BTreeSet::new();
        for entry in entries {
            let path = resolve_path(&self.dataset, &entry.path);
            let above = path.ancestors().skip(1);
            let above = above.take_while(|folder| folder.starts_with(&self.dataset));
            folders.extend(above.map(Path::to_owned));
        }
        folders.iter().try_for_each(|folder| sync_folder(folder))
    }

    /// A whole new file, on the disk. `false`: there is one of this name.
    fn publish_file(&self, text: &[u8], name: &str) -> Result<bool, FleetError> {
        let staged = self
            .dataset
            .join(TEMPORARY)
            .join(format!("{}.json", unique_name()));
        let written = File::create_new(&staged).and_then(|mut file| {
            file.write_all(text)?;
            file.sync_all()
        });
        written.map_err(FleetError::for_path(&staged))?;
        let path = resolve_path(&self.dataset, name);
        let linked = fs::hard_link(&staged, &path);
        fs::remove_file(&staged).map_err(FleetError::for_path(&staged))?;
        match linked {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            linked => {
                linked.map_err(FleetError::for_path(&path))?;
                sync_folder(path.parent().unwrap_or(&self.dataset))?;
                Ok(true)
            }
        }
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

/// What entries of a folder say stays when the machine stops.
///
/// # Errors
/// The system's.
fn sync_folder(folder: &Path) -> Result<(), FleetError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(FleetError::for_path(folder))
}

/// A name that no other writer has: 16 hexadecimal digits from the system's randomness.
#[must_use]
pub fn unique_name() -> String {
    lucce_tracelog::RunId::random().to_string()
}
