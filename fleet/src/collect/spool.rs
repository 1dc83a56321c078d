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

use lucce_ship::wire::{CollectorGeneration, GenerationPart, PartHeader, RunLabels};
use lucce_tracelog::{RunId, blocks_end};

use super::piece_coverage::PieceCoverage;
use crate::error::FleetError;

/// What a file takes of a disk is a multiple of this.
const DISK_BLOCK: u64 = 4 << 10;

/// What a client may have kept.
#[derive(Clone, Copy, Debug)]
pub struct SpoolLimits {
    /// Bytes of one log.
    pub log: u64,
    /// Bytes of all that waits.
    pub all: u64,
}

/// What became of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartOutcome {
    /// It is on the disk, or was before; the last generation that counts.
    Stored(CollectorGeneration),
    /// The spool has another generation than the part belongs to.
    WrongGeneration(CollectorGeneration),
}

/// Why nothing was done.
#[derive(Debug)]
pub enum SpoolError {
    /// It is no part.
    Malformed(String),
    TooLarge(String),
    /// There is no room: the client keeps what it has.
    Full(String),
    Failed(io::Error),
}

impl From<io::Error> for SpoolError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => {
                SpoolError::Full(format!("the collector's disk: {error}"))
            }
            _ => SpoolError::Failed(error),
        }
    }
}

/// A log whose generations were applied.
#[derive(Clone, Debug)]
pub struct LogMirror {
    pub run: RunId,
    pub log: PathBuf,
    pub labels: RunLabels,
    /// The last generation.
    pub number: u64,
}

/// What is known of a run, once it was read.
type GenerationSlot = Arc<Mutex<Option<CollectorGeneration>>>;

/// The folder.
pub struct LogSpool {
    folder: PathBuf,
    limits: SpoolLimits,
    /// Bytes, about: counted anew by `sweep`.
    used: AtomicU64,
    runs: Mutex<HashMap<RunId, GenerationSlot>>,
    /// Runs with generations that the dataset does not have.
    waiting: Mutex<BTreeSet<RunId>>,
    /// Another collector must not have the folder.
    _lock: File,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LogSpool {
    /// # Errors
    /// The folder cannot be read or written, or another collector has it.
    pub fn open(folder: &Path, limits: SpoolLimits) -> Result<LogSpool, FleetError> {
        // Logs are their users' alone.
        let mut maker = fs::DirBuilder::new();
        let created = maker.recursive(true).mode(0o700).create(folder);
        created.map_err(FleetError::for_path(folder))?;
        let path = folder.join("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let file = file.map_err(FleetError::for_path(&path))?;
        if !lucce_ship::push_mark::lock_file(&file) {
            let folder = folder.display();
            return Err(FleetError::Usage(format!(
                "{folder}: another collector has it"
            )));
        }
        let spool = LogSpool {
            folder: folder.to_owned(),
            limits,
            used: AtomicU64::new(0),
            runs: Mutex::default(),
            waiting: Mutex::default(),
            _lock: file,
        };
        for run in spool.all_runs().map_err(FleetError::for_path(folder))? {
            let own = spool.run_folder(run);
            let state = SpoolRunState::read(&own).map_err(FleetError::for_path(&own))?;
            let generations = list_generations(&own, "g-").map_err(FleetError::for_path(&own))?;
            if !generations.is_empty() || state.ingested_number < state.applied.number {
                lock(&spool.waiting).insert(run);
            }
        }
        spool
            .update_used_bytes()
            .map_err(FleetError::for_path(folder))?;
        Ok(spool)
    }

    fn run_folder(&self, run: RunId) -> PathBuf {
        self.folder.join(run.to_string())
    }

    fn all_runs(&self) -> io::Result<Vec<RunId>> {
        let mut runs = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            runs.extend(name.to_str().and_then(parse_run_id));
        }
        Ok(runs)
    }

    fn run_slot(&self, run: RunId) -> GenerationSlot {
        Arc::clone(lock(&self.runs).entry(run).or_default())
    }

    /// What a client asks for and has nothing of takes no memory: the slot goes, unless somebody else uses it.
    fn release_slot(&self, run: RunId, slot: GenerationSlot) {
        let mut runs = lock(&self.runs);
        // This one's and the map's own; clones are made under the lock.
        if Arc::strong_count(&slot) <= 2 && !self.run_folder(run).exists() {
            runs.remove(&run);
        }
    }

    /// Of how many runs something is kept in memory.
    #[must_use]
    pub fn slot_count(&self) -> usize {
        lock(&self.runs).len()
    }

    /// The last generation of a run that counts.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub fn last_generation(&self, run: RunId) -> Result<CollectorGeneration, SpoolError> {
        let slot = self.run_slot(run);
        let generation = self.read_generation(run, &mut lock(&slot));
        self.release_slot(run, slot);
        Ok(generation?)
    }

    fn read_generation(
        &self,
        run: RunId,
        slot: &mut Option<CollectorGeneration>,
    ) -> io::Result<CollectorGeneration> {
        if let Some(known) = slot {
            return Ok(*known);
        }
        let own = self.run_folder(run);
        let mut applied = SpoolRunState::read(&own)?.applied;
        if let Some(((number, token), _)) = list_generations(&own, "g-")?.pop_last()
            && number > applied.number
        {
            (applied.number, applied.token) = (number, token);
        }
        *slot = Some(applied);
        Ok(applied)
    }

    /// Takes a part that a client says to be of `run`.
    ///
    /// # Errors
    /// It is none, or cannot be kept.
    pub fn store_part(&self, run: RunId, bytes: &[u8]) -> Result<PartOutcome, SpoolError> {
        let part = GenerationPart::parse(bytes).map_err(SpoolError::Malformed)?;
        let head = &part.head;
        if head.run != run {
            return Err(SpoolError::Malformed(format!("a part of run {}", head.run)));
        }
        let ends = part
            .pieces()
            .map(|(at, piece)| at.saturating_add(piece.len() as u64));
        if ends.chain([head.size]).any(|end| end > self.limits.log) {
            let most = self.limits.log;
            return Err(SpoolError::TooLarge(format!(
                "a log of more than {most} bytes"
            )));
        }
        let slot = self.run_slot(run);
        let taken = self.store_parsed_part(bytes, &part, &mut lock(&slot));
        self.release_slot(run, slot);
        taken
    }

    fn store_parsed_part(
        &self,
        bytes: &[u8],
        part: &GenerationPart<'_>,
        slot: &mut Option<CollectorGeneration>,
    ) -> Result<PartOutcome, SpoolError> {
        let head = &part.head;
        let run = head.run;
        let generation = self.read_generation(run, slot)?;
        if generation.ended || (head.number, head.token) == (generation.number, generation.token) {
            return Ok(PartOutcome::Stored(generation));
        }
        let is_next = generation.number.checked_add(1) == Some(head.number);
        if !is_next || head.base != 0 && head.base != generation.token {
            return Ok(PartOutcome::WrongGeneration(generation));
        }
        let more = (bytes.len() as u64).next_multiple_of(DISK_BLOCK);
        if self.used.load(Ordering::Relaxed).saturating_add(more) > self.limits.all {
            let most = self.limits.all;
            return Err(SpoolError::Full(format!(
                "more than {most} bytes wait for the dataset"
            )));
        }
        let own = self.run_folder(run);
        let name = format!("{:016x}-{:016x}", head.number, head.token);
        let parts = own.join(format!("in-{name}"));
        if !parts.exists() {
            self.create_part_folder(&own, &parts)?;
        }
        replace_file(&parts, &part_name(head.part), bytes)?;
        self.used.fetch_add(more, Ordering::Relaxed);
        if !head.last {
            return Ok(PartOutcome::Stored(generation));
        }
        if !(0..=head.part).all(|part| parts.join(part_name(part)).exists()) {
            // Some were sent to a collector that did not keep them.
            return Ok(PartOutcome::WrongGeneration(generation));
        }
        if head.base == 0
            && let Err(why) = check_pieces(&parts, head)
        {
            fs::remove_dir_all(&parts)?;
            self.used.fetch_sub(more, Ordering::Relaxed);
            // Fails if the run has something else.
            let _ = fs::remove_dir(&own);
            return Err(SpoolError::Malformed(why));
        }
        sync_folder(&parts)?;
        fs::rename(&parts, own.join(format!("g-{name}")))?;
        sync_folder(&own)?;
        let now = CollectorGeneration {
            number: head.number,
            token: head.token,
            ended: false,
        };
        *slot = Some(now);
        lock(&self.waiting).insert(run);
        // Beginnings of this generation that others, or earlier attempts, have sent.
        for (_, beginning) in list_generations(&own, "in-").unwrap_or_default() {
            let _ = fs::remove_dir_all(beginning);
        }
        Ok(PartOutcome::Stored(now))
    }

    fn create_part_folder(&self, own: &Path, parts: &Path) -> io::Result<()> {
        let is_new = !own.exists();
        fs::create_dir_all(parts)?;
        if is_new {
            sync_folder(&self.folder)?;
        }
        Ok(())
    }

    /// Runs with generations that the dataset does not have. They wait no more, unless [`again`](Self::again) says so.
    pub fn take_waiting_runs(&self) -> Vec<RunId> {
        std::mem::take(&mut *lock(&self.waiting))
            .into_iter()
            .collect()
    }

    pub fn requeue_run(&self, run: RunId) {
        lock(&self.waiting).insert(run);
    }

    /// Applies what was taken of a run. `None`: the dataset has all of it. Only one thread may do so.
    ///
    /// # Errors
    /// Files cannot be read or written: nothing is lost. A generation that is damaged on this disk is: then the client must send the
    /// whole log again.
    pub fn apply_generations(&self, run: RunId) -> Result<Option<LogMirror>, SpoolError> {
        let own = self.run_folder(run);
        let mut state = SpoolRunState::read(&own)?;
        let log = own.join("log.lucce");
        let all = list_generations(&own, "g-")?;
        let mut applied = Vec::new();
        for ((number, token), folder) in all {
            applied.push(folder.clone());
            if number <= state.applied.number || state.applied.ended {
                continue;
            }
            match apply_generation(&log, &folder, (number, token)) {
                Ok(labels) => {
                    (state.applied.number, state.applied.token) = (number, token);
                    state.labels = labels;
                }
                Err(SpoolError::Malformed(why)) => {
                    self.remove_run(run)?;
                    return Err(SpoolError::Malformed(why));
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
        let is_new = state.ingested_number < state.applied.number && !state.applied.ended;
        Ok(is_new.then_some(LogMirror {
            run,
            log,
            labels: state.labels,
            number: state.applied.number,
        }))
    }

    /// The dataset has a run up to this generation. `ended`: it has all that there will be. Only one thread may do so.
    ///
    /// # Errors
    /// It cannot be written: it will be added again, which changes nothing.
    pub fn mark_ingested(&self, mirror: &LogMirror, ended: bool) -> io::Result<()> {
        let own = self.run_folder(mirror.run);
        let mut state = SpoolRunState::read(&own)?;
        state.ingested_number = mirror.number;
        state.applied.ended = ended;
        state.write(&own)?;
        if ended {
            fs::remove_file(&mirror.log)?;
            let slot = self.run_slot(mirror.run);
            if let Some(known) = &mut *lock(&slot) {
                known.ended = true;
            }
        }
        Ok(())
    }

    /// Everything of a run goes: who sends it must send all of it.
    fn remove_run(&self, run: RunId) -> io::Result<()> {
        let slot = self.run_slot(run);
        let mut slot = lock(&slot);
        *slot = None;
        fs::remove_dir_all(self.run_folder(run))
    }

    /// Runs of which nothing came for so long and which the dataset has go. How many.
    ///
    /// # Errors
    /// The spool cannot be read or written.
    pub fn remove_idle_runs(&self, idle: Duration) -> io::Result<u64> {
        let now = SystemTime::now();
        let mut gone = 0;
        for run in self.all_runs()? {
            let slot = self.run_slot(run);
            let known = lock(&slot);
            let own = self.run_folder(run);
            let state = SpoolRunState::read(&own)?;
            let all = fs::read_dir(&own)?.collect::<io::Result<Vec<_>>>()?;
            let mut last = SystemTime::UNIX_EPOCH;
            for entry in &all {
                last = last.max(entry.metadata()?.modified()?);
            }
            let is_idle = now.duration_since(last).is_ok_and(|since| since > idle);
            let waits = state.ingested_number < state.applied.number
                || !list_generations(&own, "g-")?.is_empty();
            drop(known);
            if is_idle && !waits && !lock(&self.waiting).contains(&run) {
                self.remove_run(run)?;
                lock(&self.runs).remove(&run);
                gone += 1;
            }
        }
        self.update_used_bytes()?;
        Ok(gone)
    }

    /// How many bytes there are.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub fn update_used_bytes(&self) -> io::Result<u64> {
        let used = bytes_below(&self.folder)?;
        self.used.store(used, Ordering::Relaxed);
        Ok(used)
    }
}

/// 16 hexadecimal digits, in small letters; nothing else is a run.
#[must_use]
pub fn parse_run_id(name: &str) -> Option<RunId> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_id = name.len() == 16 && name.bytes().all(is_hex);
    let bits = u64::from_str_radix(name, 16).ok().filter(|_| is_id)?;
    RunId::new(bits)
}

fn part_name(part: u32) -> String {
    format!("{part:08x}")
}

/// Generations of a run by number and token; not one that goes just now.
fn list_generations(own: &Path, prefix: &str) -> io::Result<BTreeMap<(u64, u64), PathBuf>> {
    let mut generations = BTreeMap::new();
    let entries = match fs::read_dir(own) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(generations),
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
            generations.insert(numbers, entry.path());
        }
    }
    Ok(generations)
}

/// Writes a generation to a log. What the client called the run's service, version and host.
fn apply_generation(
    log: &Path,
    folder: &Path,
    (number, token): (u64, u64),
) -> Result<RunLabels, SpoolError> {
    let damaged = |why: String| SpoolError::Malformed(format!("{}: {why}", folder.display()));
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true);
    let log = options.open(log)?;
    for number_of_part in 0.. {
        let bytes = match fs::read(folder.join(part_name(number_of_part))) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => break,
            bytes => bytes?,
        };
        let part = GenerationPart::parse(&bytes).map_err(damaged)?;
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
fn check_pieces(parts: &Path, last: &PartHeader) -> Result<(), String> {
    let mut coverage = PieceCoverage::default();
    for number in 0..=last.part {
        let bytes = fs::read(parts.join(part_name(number))).map_err(|e| e.to_string())?;
        coverage.add_part(&GenerationPart::parse(&bytes)?);
    }
    coverage.check_size(last.size)
}

/// A whole file, on the disk.
fn replace_file(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
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

fn sync_folder(folder: &Path) -> io::Result<()> {
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
struct SpoolRunState {
    applied: CollectorGeneration,
    /// The generation that the dataset has.
    ingested_number: u64,
    labels: RunLabels,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct SpoolStateFile {
    number: u64,
    token: u64,
    ended: bool,
    taken: u64,
    service: String,
    version: String,
    host: String,
}

const STATE_FILE: &str = "state";

impl SpoolRunState {
    fn read(own: &Path) -> io::Result<SpoolRunState> {
        let text = match fs::read(own.join(STATE_FILE)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(SpoolRunState::default()),
            text => text?,
        };
        let SpoolStateFile {
            number,
            token,
            ended,
            taken,
            service,
            version,
            host,
        } = serde_json::from_slice(&text)?;
        Ok(SpoolRunState {
            applied: CollectorGeneration {
                number,
                token,
                ended,
            },
            ingested_number: taken,
            labels: RunLabels {
                service,
                version,
                host,
            },
        })
    }

    fn write(&self, own: &Path) -> io::Result<()> {
        let SpoolRunState {
            applied: known,
            ingested_number: taken,
            labels,
        } = self.clone();
        let written = SpoolStateFile {
            number: known.number,
            token: known.token,
            ended: known.ended,
            taken,
            service: labels.service,
            version: labels.version,
            host: labels.host,
        };
        replace_file(own, STATE_FILE, &serde_json::to_vec(&written)?)?;
        sync_folder(own)
    }
}
