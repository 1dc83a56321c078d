//! What was sent, as files, until it is in the dataset.
//!
//! ```text
//! SPOOL/RUN/in-NUMBER-TOKEN/PART     parts of a generation whose last one has not come
//! SPOOL/RUN/g-NUMBER-TOKEN/PART      a generation that counts: renamed as a whole
//! SPOOL/RUN/log.lucce                all generations up to the state's, in place
//! SPOOL/RUN/state                    which one that is, and which one the dataset has; replaced as a whole
//! ```
//! Names are of numbers only: 16 hexadecimal digits each, whatever a client calls a run. Requests only make files and rename folders, one
//! at a time for each run; the log and the state are the batches' alone. A generation that was applied in part is applied again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use lucce_ship::wire::{Head, Known, Labels, Part};
use lucce_tracelog::{RunId, blocks_end};

use super::coverage::PieceCoverage;
use crate::error::Error;

/// What a file takes of a disk is a multiple of this.
const DISK_BLOCK: u64 = 4 << 10;

/// What a client may have kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one log.
    pub log: u64,
    /// Bytes of all that waits.
    pub all: u64,
}

/// What became of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// It is on the disk, or was before; the last generation that counts.
    Yes(Known),
    /// The spool has another generation than the part belongs to.
    Other(Known),
}

/// Why nothing was done.
#[derive(Debug)]
pub enum Refusal {
    /// It is no part.
    Malformed(String),
    TooLarge(String),
    /// There is no room: the client keeps what it has.
    Full(String),
    Failed(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => {
                Refusal::Full(format!("the collector's disk: {error}"))
            }
            _ => Refusal::Failed(error),
        }
    }
}

/// A log whose generations were applied.
#[derive(Clone, Debug)]
pub struct Mirror {
    pub run: RunId,
    pub log: PathBuf,
    pub labels: Labels,
    /// The last generation.
    pub number: u64,
}

/// What is known of a run, once it was read.
type Slot = Arc<Mutex<Option<Known>>>;

/// The folder.
pub struct Spool {
    folder: PathBuf,
    limits: Limits,
    /// Bytes, about: counted anew by `sweep`.
    used: AtomicU64,
    runs: Mutex<HashMap<RunId, Slot>>,
    /// Runs with generations that the dataset does not have.
    waiting: Mutex<BTreeSet<RunId>>,
    /// Another collector must not have the folder.
    _lock: File,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Spool {
    /// # Errors
    /// The folder cannot be read or written, or another collector has it.
    pub fn open(folder: &Path, limits: Limits) -> Result<Spool, Error> {
        // Logs are their users' alone.
        let mut maker = fs::DirBuilder::new();
        let made = maker.recursive(true).mode(0o700).create(folder);
        made.map_err(Error::of(folder))?;
        let path = folder.join("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let file = file.map_err(Error::of(&path))?;
        if !lucce_ship::spool::lock(&file) {
            let folder = folder.display();
            return Err(Error::Usage(format!("{folder}: another collector has it")));
        }
        let spool = Spool {
            folder: folder.to_owned(),
            limits,
            used: AtomicU64::new(0),
            runs: Mutex::default(),
            waiting: Mutex::default(),
            _lock: file,
        };
        for run in spool.all_runs().map_err(Error::of(folder))? {
            let own = spool.of(run);
            let state = State::read(&own).map_err(Error::of(&own))?;
            let generations = generations(&own, "g-").map_err(Error::of(&own))?;
            if !generations.is_empty() || state.taken < state.known.number {
                lock(&spool.waiting).insert(run);
            }
        }
        spool.count().map_err(Error::of(folder))?;
        Ok(spool)
    }

    fn of(&self, run: RunId) -> PathBuf {
        self.folder.join(run.to_string())
    }

    fn all_runs(&self) -> io::Result<Vec<RunId>> {
        let mut runs = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            runs.extend(name.to_str().and_then(run));
        }
        Ok(runs)
    }

    fn slot(&self, run: RunId) -> Slot {
        Arc::clone(lock(&self.runs).entry(run).or_default())
    }

    /// What a client asks for and has nothing of takes no memory: the slot goes, unless somebody else uses it.
    fn release(&self, run: RunId, slot: Slot) {
        let mut runs = lock(&self.runs);
        // This one's and the map's own; clones are made under the lock.
        if Arc::strong_count(&slot) <= 2 && !self.of(run).exists() {
            runs.remove(&run);
        }
    }

    /// Of how many runs something is kept in memory.
    #[must_use]
    pub fn slots(&self) -> usize {
        lock(&self.runs).len()
    }

    /// The last generation of a run that counts.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub fn known(&self, run: RunId) -> Result<Known, Refusal> {
        let slot = self.slot(run);
        let known = self.look(run, &mut lock(&slot));
        self.release(run, slot);
        Ok(known?)
    }

    fn look(&self, run: RunId, slot: &mut Option<Known>) -> io::Result<Known> {
        if let Some(known) = slot {
            return Ok(*known);
        }
        let own = self.of(run);
        let mut known = State::read(&own)?.known;
        if let Some(((number, token), _)) = generations(&own, "g-")?.pop_last()
            && number > known.number
        {
            (known.number, known.token) = (number, token);
        }
        *slot = Some(known);
        Ok(known)
    }

    /// Takes a part that a client says to be of `run`.
    ///
    /// # Errors
    /// It is none, or cannot be kept.
    pub fn take(&self, run: RunId, bytes: &[u8]) -> Result<Taken, Refusal> {
        let part = Part::parse(bytes).map_err(Refusal::Malformed)?;
        let head = &part.head;
        if head.run != run {
            return Err(Refusal::Malformed(format!("a part of run {}", head.run)));
        }
        let ends = part
            .pieces()
            .map(|(at, piece)| at.saturating_add(piece.len() as u64));
        if ends.chain([head.size]).any(|end| end > self.limits.log) {
            let most = self.limits.log;
            return Err(Refusal::TooLarge(format!(
                "a log of more than {most} bytes"
            )));
        }
        let slot = self.slot(run);
        let taken = self.take_part(bytes, &part, &mut lock(&slot));
        self.release(run, slot);
        taken
    }

    fn take_part(
        &self,
        bytes: &[u8],
        part: &Part<'_>,
        slot: &mut Option<Known>,
    ) -> Result<Taken, Refusal> {
        let head = &part.head;
        let run = head.run;
        let known = self.look(run, slot)?;
        if known.ended || (head.number, head.token) == (known.number, known.token) {
            return Ok(Taken::Yes(known));
        }
        let is_next = known.number.checked_add(1) == Some(head.number);
        if !is_next || head.base != 0 && head.base != known.token {
            return Ok(Taken::Other(known));
        }
        let more = (bytes.len() as u64).next_multiple_of(DISK_BLOCK);
        if self.used.load(Ordering::Relaxed).saturating_add(more) > self.limits.all {
            let most = self.limits.all;
            return Err(Refusal::Full(format!(
                "more than {most} bytes wait for the dataset"
            )));
        }
        let own = self.of(run);
        let name = format!("{:016x}-{:016x}", head.number, head.token);
        let parts = own.join(format!("in-{name}"));
        if !parts.exists() {
            self.make(&own, &parts)?;
        }
        whole(&parts, &part_name(head.part), bytes)?;
        self.used.fetch_add(more, Ordering::Relaxed);
        if !head.last {
            return Ok(Taken::Yes(known));
        }
        if !(0..=head.part).all(|part| parts.join(part_name(part)).exists()) {
            // Some were sent to a collector that did not keep them.
            return Ok(Taken::Other(known));
        }
        if head.base == 0
            && let Err(why) = check_pieces(&parts, head)
        {
            fs::remove_dir_all(&parts)?;
            self.used.fetch_sub(more, Ordering::Relaxed);
            // Fails if the run has something else.
            let _ = fs::remove_dir(&own);
            return Err(Refusal::Malformed(why));
        }
        sync(&parts)?;
        fs::rename(&parts, own.join(format!("g-{name}")))?;
        sync(&own)?;
        let now = Known {
            number: head.number,
            token: head.token,
            ended: false,
        };
        *slot = Some(now);
        lock(&self.waiting).insert(run);
        // Beginnings of this generation that others, or earlier attempts, have sent.
        for (_, beginning) in generations(&own, "in-").unwrap_or_default() {
            let _ = fs::remove_dir_all(beginning);
        }
        Ok(Taken::Yes(now))
    }

    fn make(&self, own: &Path, parts: &Path) -> io::Result<()> {
        let is_new = !own.exists();
        fs::create_dir_all(parts)?;
        if is_new {
            sync(&self.folder)?;
        }
        Ok(())
    }

    /// Runs with generations that the dataset does not have. They wait no more, unless [`again`](Self::again) says so.
    pub fn waiting(&self) -> Vec<RunId> {
        std::mem::take(&mut *lock(&self.waiting))
            .into_iter()
            .collect()
    }

    pub fn again(&self, run: RunId) {
        lock(&self.waiting).insert(run);
    }

    /// Applies what was taken of a run. `None`: the dataset has all of it. Only one thread may do so.
    ///
    /// # Errors
    /// Files cannot be read or written: nothing is lost. A generation that is damaged on this disk is: then the client is asked for the
    /// whole log again.
    pub fn apply(&self, run: RunId) -> Result<Option<Mirror>, Refusal> {
        let own = self.of(run);
        let mut state = State::read(&own)?;
        let log = own.join("log.lucce");
        let all = generations(&own, "g-")?;
        let mut applied = Vec::new();
        for ((number, token), folder) in all {
            applied.push(folder.clone());
            if number <= state.known.number || state.known.ended {
                continue;
            }
            match apply(&log, &folder, (number, token)) {
                Ok(labels) => {
                    (state.known.number, state.known.token) = (number, token);
                    state.labels = labels;
                }
                Err(Refusal::Malformed(why)) => {
                    self.forget(run)?;
                    return Err(Refusal::Malformed(why));
                }
                Err(other) => return Err(other),
            }
        }
        if !applied.is_empty() {
            if log.exists() {
                File::open(&log)?.sync_all()?;
            }
            state.write(&own)?;
            for folder in applied {
                fs::remove_dir_all(folder)?;
            }
        }
        let is_new = state.taken < state.known.number && !state.known.ended;
        Ok(is_new.then_some(Mirror {
            run,
            log,
            labels: state.labels,
            number: state.known.number,
        }))
    }

    /// The dataset has a run up to this generation. `ended`: it has all that there will be. Only one thread may do so.
    ///
    /// # Errors
    /// It cannot be written: it will be added again, which changes nothing.
    pub fn added(&self, mirror: &Mirror, ended: bool) -> io::Result<()> {
        let own = self.of(mirror.run);
        let mut state = State::read(&own)?;
        state.taken = mirror.number;
        state.known.ended = ended;
        state.write(&own)?;
        if ended {
            fs::remove_file(&mirror.log)?;
            let slot = self.slot(mirror.run);
            if let Some(known) = &mut *lock(&slot) {
                known.ended = true;
            }
        }
        Ok(())
    }

    /// Everything of a run goes: who sends it must send all of it.
    fn forget(&self, run: RunId) -> io::Result<()> {
        let slot = self.slot(run);
        let mut slot = lock(&slot);
        *slot = None;
        fs::remove_dir_all(self.of(run))
    }

    /// Runs of which nothing came for so long and which the dataset has go. How many.
    ///
    /// # Errors
    /// The spool cannot be read or written.
    pub fn sweep(&self, idle: Duration) -> io::Result<u64> {
        let now = SystemTime::now();
        let mut gone = 0;
        for run in self.all_runs()? {
            let slot = self.slot(run);
            let known = lock(&slot);
            let own = self.of(run);
            let state = State::read(&own)?;
            let all = fs::read_dir(&own)?.collect::<io::Result<Vec<_>>>()?;
            let mut last = SystemTime::UNIX_EPOCH;
            for entry in &all {
                last = last.max(entry.metadata()?.modified()?);
            }
            let is_idle = now.duration_since(last).is_ok_and(|since| since > idle);
            let waits = state.taken < state.known.number || !generations(&own, "g-")?.is_empty();
            drop(known);
            if is_idle && !waits && !lock(&self.waiting).contains(&run) {
                self.forget(run)?;
                lock(&self.runs).remove(&run);
                gone += 1;
            }
        }
        self.count()?;
        Ok(gone)
    }

    /// How many bytes there are.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub fn count(&self) -> io::Result<u64> {
        let used = bytes_below(&self.folder)?;
        self.used.store(used, Ordering::Relaxed);
        Ok(used)
    }
}

/// 16 hexadecimal digits, in small letters; nothing else is a run.
#[must_use]
pub fn run(name: &str) -> Option<RunId> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_id = name.len() == 16 && name.bytes().all(is_hex);
    let bits = u64::from_str_radix(name, 16).ok().filter(|_| is_id)?;
    RunId::new(bits)
}

fn part_name(part: u32) -> String {
    format!("{part:08x}")
}

/// Generations of a run by number and token; not one that goes just now.
fn generations(own: &Path, prefix: &str) -> io::Result<BTreeMap<(u64, u64), PathBuf>> {
    let mut found = BTreeMap::new();
    let entries = match fs::read_dir(own) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().and_then(|name| name.strip_prefix(prefix));
        let numbers = name.and_then(|name| name.split_once('-'));
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let numbers = numbers.and_then(|(number, token)| Some((hex(number)?, hex(token)?)));
        if let Some(numbers) = numbers {
            found.insert(numbers, entry.path());
        }
    }
    Ok(found)
}

/// Writes a generation to a log. What the client called the run's service, version and host.
fn apply(log: &Path, folder: &Path, (number, token): (u64, u64)) -> Result<Labels, Refusal> {
    let damaged = |why: String| Refusal::Malformed(format!("{}: {why}", folder.display()));
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true);
    let log = options.open(log)?;
    for number_of_part in 0.. {
        let bytes = match fs::read(folder.join(part_name(number_of_part))) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => break,
            bytes => bytes?,
        };
        let part = Part::parse(&bytes).map_err(damaged)?;
        let head = &part.head;
        if (head.number, head.token, head.part) != (number, token, number_of_part) {
            return Err(damaged("a part of something else".into()));
        }
        if head.base == 0 && head.part == 0 {
            log.set_len(0)?;
        }
        for (at, piece) in part.pieces() {
            log.write_all_at(piece, at)?;
        }
        if head.last {
            log.set_len(head.size)?;
            let mut read = |at, to: &mut [u8]| log.read_exact_at(to, at).is_ok();
            if blocks_end(&mut read, &|_, _| true) != Some(head.size) {
                return Err(damaged(format!("no log of {} bytes", head.size)));
            }
            return Ok(head.labels.clone());
        }
    }
    Err(damaged("it has no last part".into()))
}

/// # Errors
/// In words: the parts of a whole log are none of its size. Or a part cannot be read.
fn check_pieces(parts: &Path, last: &Head) -> Result<(), String> {
    let mut coverage = PieceCoverage::default();
    for number in 0..=last.part {
        let bytes = fs::read(parts.join(part_name(number))).map_err(|e| e.to_string())?;
        coverage.add(&Part::parse(&bytes)?);
    }
    coverage.check(last.size)
}

/// A whole file, on the disk.
fn whole(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let staged = folder.join(format!("{name}.new"));
    let written = File::create(&staged).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(error) = written {
        let _ = fs::remove_file(staged);
        return Err(error);
    }
    fs::rename(staged, folder.join(name))
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn bytes_below(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        match entry.metadata() {
            // A log has holes, which are on no disk.
            Ok(found) => {
                bytes += found.blocks() * 512;
                if found.is_dir() {
                    bytes += bytes_below(&entry.path())?;
                }
            }
            // It went meanwhile.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    Ok(bytes)
}

/// What was applied of a run, and what the dataset has of it.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct State {
    known: Known,
    /// The generation that the dataset has.
    taken: u64,
    labels: Labels,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Written {
    number: u64,
    token: u64,
    ended: bool,
    taken: u64,
    service: String,
    version: String,
    host: String,
}

const STATE: &str = "state";

impl State {
    fn read(own: &Path) -> io::Result<State> {
        let text = match fs::read(own.join(STATE)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(State::default()),
            text => text?,
        };
        let Written {
            number,
            token,
            ended,
            taken,
            service,
            version,
            host,
        } = serde_json::from_slice(&text)?;
        Ok(State {
            known: Known {
                number,
                token,
                ended,
            },
            taken,
            labels: Labels {
                service,
                version,
                host,
            },
        })
    }

    fn write(&self, own: &Path) -> io::Result<()> {
        let State {
            known,
            taken,
            labels,
        } = self.clone();
        let written = Written {
            number: known.number,
            token: known.token,
            ended: known.ended,
            taken,
            service: labels.service,
            version: labels.version,
            host: labels.host,
        };
        whole(own, STATE, &serde_json::to_vec(&written)?)?;
        sync(own)
    }
}
