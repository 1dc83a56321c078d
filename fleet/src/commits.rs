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

use crate::error::Error;
use crate::layout::{COMMITS, MARK, Part, TEMPORARY, Table, VERSION, file};

/// After so many commits one says the sum of all.
const STATE_EVERY: u64 = 64;

/// A file of the dataset.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    pub table: Table,
    /// Below the dataset, with `/` between folders.
    pub path: String,
    pub rows: u64,
    pub bytes: u64,
    /// Of tables that are parted.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Of files that have one run only, and that are replaced when the run has gone on: whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// What the dataset knows of a run beside its tables.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Known {
    pub part: Part,
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
    pub add: Vec<Entry>,
    pub remove: Vec<String>,
    /// Files that were removed by earlier commits, and are now gone from the disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// By the run's id.
    pub runs: BTreeMap<String, Known>,
}

/// The sum of all commits.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub struct State {
    pub version: u32,
    /// Of the last commit; 0: there is none yet.
    pub number: u64,
    /// By path.
    pub files: BTreeMap<String, Entry>,
    pub runs: BTreeMap<String, Known>,
    /// Files that were removed, and when: milliseconds since 1970.
    pub removed: BTreeMap<String, u64>,
}

impl State {
    fn apply(&mut self, number: u64, commit: Commit) {
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

    pub fn of(&self, table: Table) -> impl Iterator<Item = &Entry> {
        self.files
            .values()
            .filter(move |entry| entry.table == table)
    }
}

/// The folder of commits.
#[derive(Clone, Debug)]
pub struct Log {
    dataset: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Mark {
    schema: String,
    version: u32,
}

const SCHEMA: &str = "lucce-fleet";

impl Log {
    /// A dataset that is there.
    ///
    /// # Errors
    /// The folder is none, or one of a later version.
    pub fn open(dataset: &Path) -> Result<Log, Error> {
        let path = dataset.join(MARK);
        let text = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let what = format!("no dataset of lucce fleet: there is no {MARK}");
                return Err(Error::Dataset(dataset.to_owned(), what));
            }
            read => read.map_err(Error::of(&path))?,
        };
        let mark = serde_json::from_slice::<Mark>(&text).ok();
        let mark = mark.filter(|mark| mark.schema == SCHEMA);
        let mark = mark.ok_or_else(|| Error::Dataset(path.clone(), "not of lucce fleet".into()))?;
        known(&path, mark.version)?;
        let dataset = dataset.to_owned();
        Ok(Log { dataset })
    }

    /// A dataset that is there, or a new one in a folder that is not there or empty.
    ///
    /// # Errors
    /// The folder has something else in it, or cannot be written to.
    pub fn open_or_create(dataset: &Path) -> Result<Log, Error> {
        if dataset.join(MARK).exists() {
            return Log::open(dataset);
        }
        // What runs say is their user's, unless that opens it to others.
        let mut folder = fs::DirBuilder::new();
        let made = folder.recursive(true).mode(0o700).create(dataset);
        made.map_err(Error::of(dataset))?;
        let mut there = fs::read_dir(dataset).map_err(Error::of(dataset))?;
        let is_ours =
            |name: &std::ffi::OsStr| [COMMITS, TEMPORARY, MARK].iter().any(|own| *own == name);
        if there.any(|entry| entry.is_ok_and(|entry| !is_ours(&entry.file_name()))) {
            let what = "not empty, and no dataset of lucce fleet".to_owned();
            return Err(Error::Dataset(dataset.to_owned(), what));
        }
        for folder in [COMMITS, TEMPORARY] {
            let folder = dataset.join(folder);
            fs::create_dir_all(&folder).map_err(Error::of(&folder))?;
        }
        let log = Log {
            dataset: dataset.to_owned(),
        };
        let mark = Mark {
            schema: SCHEMA.into(),
            version: VERSION,
        };
        // Another writer may be first: its commit says what this one would.
        log.publish(&json(&mark)?, MARK)?;
        Log::open(dataset)
    }

    #[must_use]
    pub fn dataset(&self) -> &Path {
        &self.dataset
    }

    /// The sum of all commits so far.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn state(&self) -> Result<State, Error> {
        let mut state = self.last_sum()?.unwrap_or_default();
        self.refresh(&mut state)?;
        Ok(state)
    }

    /// What was committed since.
    ///
    /// # Errors
    /// A commit cannot be read.
    pub fn refresh(&self, state: &mut State) -> Result<Vec<Entry>, Error> {
        let mut new = Vec::new();
        while let Some(commit) = self.read::<Commit>(&commit_name(state.number + 1))? {
            known(&self.dataset, commit.version)?;
            new.extend(commit.add.iter().cloned());
            state.apply(state.number + 1, commit);
        }
        Ok(new)
    }

    fn last_sum(&self) -> Result<Option<State>, Error> {
        let folder = self.dataset.join(COMMITS);
        let names = fs::read_dir(&folder).map_err(Error::of(&folder))?;
        let names = names
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        let sums: BTreeSet<String> = names.filter(|name| name.ends_with(".state.json")).collect();
        let Some(last) = sums.last() else {
            return Ok(None);
        };
        let state = self.read::<State>(&format!("{COMMITS}/{last}"))?;
        if let Some(state) = &state {
            known(&folder, state.version)?;
        }
        Ok(state)
    }

    fn read<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Result<Option<T>, Error> {
        let path = file(&self.dataset, name);
        match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            read => {
                let text = read.map_err(Error::of(&path))?;
                let value = serde_json::from_slice(&text);
                value
                    .map(Some)
                    .map_err(|e| Error::Dataset(path, format!("damaged: {e}")))
            }
        }
    }

    /// Makes it the next commit. `false`: another writer was faster; the state has to be refreshed.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn commit(&self, state: &mut State, commit: Commit) -> Result<bool, Error> {
        let number = state.number + 1;
        self.sync_folders(&commit.add)?;
        if !self.publish(&json(&commit)?, &commit_name(number))? {
            return Ok(false);
        }
        state.apply(number, commit);
        if number.is_multiple_of(STATE_EVERY) {
            self.publish(&json(state)?, &state_name(number))?;
        }
        Ok(true)
    }

    /// What the folders of these files say stays when the machine stops. A new folder is an entry of the one above, and so on.
    fn sync_folders(&self, entries: &[Entry]) -> Result<(), Error> {
        let mut folders = BTreeSet::new();
        for entry in entries {
            let path = file(&self.dataset, &entry.path);
            let above = path.ancestors().skip(1);
            let above = above.take_while(|folder| folder.starts_with(&self.dataset));
            folders.extend(above.map(Path::to_owned));
        }
        folders.iter().try_for_each(|folder| sync_folder(folder))
    }

    /// A whole new file, on the disk. `false`: there is one of this name.
    fn publish(&self, text: &[u8], name: &str) -> Result<bool, Error> {
        let staged = self
            .dataset
            .join(TEMPORARY)
            .join(format!("{}.json", unique()));
        let written = File::create_new(&staged).and_then(|mut file| {
            file.write_all(text)?;
            file.sync_all()
        });
        written.map_err(Error::of(&staged))?;
        let path = file(&self.dataset, name);
        let linked = fs::hard_link(&staged, &path);
        fs::remove_file(&staged).map_err(Error::of(&staged))?;
        match linked {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            linked => {
                linked.map_err(Error::of(&path))?;
                sync_folder(path.parent().unwrap_or(&self.dataset))?;
                Ok(true)
            }
        }
    }
}

fn known(path: &Path, version: u32) -> Result<(), Error> {
    match version > VERSION {
        true => {
            let what =
                format!("of version {version}; this is lucce-fleet for versions up to {VERSION}");
            Err(Error::Dataset(path.to_owned(), what))
        }
        false => Ok(()),
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|e| Error::Output(e.into()))
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
fn sync_folder(folder: &Path) -> Result<(), Error> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(Error::of(folder))
}

/// A name that no other writer has: 16 hexadecimal digits from the system's randomness.
#[must_use]
pub fn unique() -> String {
    lucce_tracelog::RunId::random().to_string()
}
