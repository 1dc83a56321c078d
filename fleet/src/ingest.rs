//! Runs on their way into the dataset.
//!
//! ```text
//! log ─► Decoded ─► batch of runs ─► files ─► commit
//!                                     ▲         │ another writer was faster: what it added is known now,
//!                                     └─────────┘ and the files are written anew
//! ```
//! A run is known by its id: a second time it adds nothing, or, if it went on meanwhile, what has been counted since.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::ahead::in_order;
use crate::commits::{Commit, Entry, Known as KnownRun, Log, State};
use crate::decoded::{Decoded, EventKey, Sums};
use crate::error::Error;
use crate::files::{Target, discard, write};
use crate::known::Known;
use crate::layout::{Part, Table, VERSION};
use crate::rows::{self, Counted, Labelled};
use crate::taken;
use crate::through::Through;

/// Rows of a commit, about: what is held in memory.
const BATCH: usize = 2 << 20;

/// Files that are written to the disk at a time.
const SYNCING: usize = 8;

/// Bytes of logs that are decoded before their turn.
const AHEAD: u64 = 256 << 20;

/// Rows of a long table that are made at a time.
const ROWS: usize = 1 << 18;

/// What the dataset is told of runs.
#[derive(Clone, Debug)]
pub struct Labels {
    pub service: String,
    pub version: String,
    pub host: String,
    /// The programs' arguments are kept as the logs have them; else they are masked.
    pub arguments: bool,
}

/// What became of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Added {
    New,
    /// The run went on since it was added: what was counted since.
    More,
    /// The dataset has it.
    Already,
    /// Why it is not taken.
    Refused(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    pub path: PathBuf,
    /// If it is a log.
    pub run: Option<String>,
    pub added: Added,
    /// That were added.
    pub events: u64,
    pub log_bytes: u64,
}

/// A dataset that runs are added to.
pub struct Ingest {
    log: Log,
    state: State,
    known: Known,
}

/// A run of a batch.
struct Run {
    decoded: Decoded,
    labels: Labels,
}

impl Ingest {
    /// # Errors
    /// The folder is something else, or cannot be read or written.
    pub fn open(dataset: &Path) -> Result<Ingest, Error> {
        let log = Log::open_or_create(dataset)?;
        let state = log.state()?;
        let mut known = Known::default();
        known.read(dataset, state.files.values())?;
        Ok(Ingest { log, state, known })
    }

    /// Adds runs, in commits of some megabytes each: all of a run is in one of them. Files that are no whole logs are left out, and
    /// named in the report. `tell` hears of each file once it is in the dataset, or refused.
    ///
    /// # Errors
    /// The dataset cannot be read or written: what was not told of is not in it.
    pub fn add(
        &mut self,
        logs: &[PathBuf],
        labels: &Labels,
        tell: &mut dyn FnMut(Report),
    ) -> Result<(), Error> {
        self.all(logs.iter().map(|log| (log.as_path(), labels)), tell)
    }

    /// As [`add`](Self::add), of runs that have labels each.
    ///
    /// # Errors
    /// As of `add`.
    pub fn add_each(
        &mut self,
        logs: &[(PathBuf, Labels)],
        tell: &mut dyn FnMut(Report),
    ) -> Result<(), Error> {
        let logs = logs.iter().map(|(log, labels)| (log.as_path(), labels));
        self.all(logs, tell)
    }

    /// Whether the dataset has all that there will be of a run: its JVM has ended by itself.
    #[must_use]
    pub fn has_ended(&self, run: &str) -> bool {
        self.state.runs.get(run).is_some_and(|known| known.ended)
    }

    fn all<'l>(
        &mut self,
        logs: impl Iterator<Item = (&'l Path, &'l Labels)>,
        tell: &mut dyn FnMut(Report),
    ) -> Result<(), Error> {
        let logs: Vec<(&Path, &Labels)> = logs.collect();
        let mut batch: Vec<Run> = Vec::new();
        let mut rows = 0;
        let decode = |(path, labels): &(&Path, &Labels)| Decoded::read(path, labels.arguments);
        // The next ones are decoded while a batch is written.
        in_order(&logs, threads(&logs), decode, |(path, labels), decoded| {
            let decoded = match decoded {
                Ok(decoded) => decoded,
                Err(refused) => {
                    tell(Report::refused(path, &refused));
                    return Ok::<(), Error>(());
                }
            };
            // Two files of one run: each must see what the other one added.
            let is_there = |run: &Run| run.decoded.run == decoded.run;
            if rows > BATCH || batch.iter().any(is_there) {
                self.flush(&mut batch, tell)?;
                rows = 0;
            }
            rows += decoded.events.len()
                + decoded.numbers.len()
                + decoded.stacks.len()
                + decoded.stream.len();
            let labels = (*labels).clone();
            batch.push(Run { decoded, labels });
            Ok(())
        })?;
        self.flush(&mut batch, tell)
    }

    fn flush(&mut self, batch: &mut Vec<Run>, tell: &mut dyn FnMut(Report)) -> Result<(), Error> {
        let reports = self.commit(batch)?;
        batch.clear();
        reports.into_iter().for_each(tell);
        Ok(())
    }

    fn commit(&mut self, batch: &[Run]) -> Result<Vec<Report>, Error> {
        loop {
            self.refresh()?;
            let mut writing = Writing::new(self.log.dataset(), &self.state);
            let written = writing.batch(&self.state, &mut self.known, batch);
            let reports = match written {
                Ok(reports) => reports,
                Err(error) => {
                    discard(self.log.dataset(), &writing.commit.add);
                    // What is not in the dataset must not be taken for known.
                    self.forget()?;
                    return Err(error);
                }
            };
            let commit = std::mem::take(&mut writing.commit);
            if commit.runs.is_empty() {
                return Ok(reports);
            }
            let added = commit.add.clone();
            if self.log.commit(&mut self.state, commit)? {
                return Ok(reports);
            }
            discard(self.log.dataset(), &added);
            self.forget()?;
        }
    }

    fn refresh(&mut self) -> Result<(), Error> {
        let new = self.log.refresh(&mut self.state)?;
        self.known.read(self.log.dataset(), &new)
    }

    fn forget(&mut self) -> Result<(), Error> {
        self.known = Known::default();
        self.known
            .read(self.log.dataset(), self.state.files.values())
    }
}

/// As many as there are processors; fewer if the logs are large, for each thread has one in memory.
fn threads(logs: &[(&Path, &Labels)]) -> usize {
    let sizes = logs
        .iter()
        .map(|(path, _)| fs::metadata(path).map_or(0, |data| data.len()));
    let room = AHEAD / sizes.max().unwrap_or_default().max(1);
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    processors.min(usize::try_from(room).unwrap_or(usize::MAX))
}

impl Report {
    fn refused(path: &Path, refused: &crate::decoded::Refused) -> Report {
        Report {
            path: path.to_owned(),
            run: None,
            added: Added::Refused(refused.to_string()),
            events: 0,
            log_bytes: 0,
        }
    }
}

/// The files of a commit.
struct Writing<'s> {
    dataset: &'s Path,
    commit: Commit,
}

/// A run of the batch that has something to add.
struct Due<'b> {
    run: &'b Run,
    /// Of the run.
    part: Part,
    /// Of what it counted since it was added last.
    counted_in: Part,
    new: Vec<(&'b EventKey, Sums)>,
}

impl Due<'_> {
    /// A run that goes on has files of its own, which are replaced when it has gone on.
    fn own(&self) -> Option<&str> {
        (!self.run.decoded.ended).then_some(self.run.decoded.run.as_str())
    }

    fn counted<'d>(&'d self, part: &'d Part, rows: Vec<(&'d EventKey, Sums)>) -> Counted<'d> {
        Counted {
            run: &self.run.decoded.run,
            part,
            decoded: &self.run.decoded,
            rows,
        }
    }
}

impl<'s> Writing<'s> {
    fn new(dataset: &'s Path, _: &'s State) -> Self {
        let commit = Commit {
            version: VERSION,
            at: millis(SystemTime::now()),
            ..Commit::default()
        };
        Writing { dataset, commit }
    }

    fn batch(
        &mut self,
        state: &State,
        known: &mut Known,
        batch: &[Run],
    ) -> Result<Vec<Report>, Error> {
        let mut reports = Vec::with_capacity(batch.len());
        let mut due = Vec::new();
        for run in batch {
            let (added, new) = self.due(state, run)?;
            let events = new
                .as_ref()
                .map_or(0, |due| due.new.iter().map(|(_, sums)| sums.count).sum());
            reports.push(Report {
                path: run.decoded.path.clone(),
                run: Some(run.decoded.run.clone()),
                added,
                events,
                log_bytes: run.decoded.log_bytes,
            });
            due.extend(new);
        }
        // Those that have ended share files.
        due.sort_by_key(|due| due.own().is_some());
        self.paths(known, &due)?;
        self.counted(&due)?;
        for own in due.chunk_by(|a, b| a.own().is_none() && b.own().is_none()) {
            self.facts(own)?;
        }
        Ok(reports)
    }

    /// What of a run is to be added.
    fn due<'b>(&mut self, state: &State, run: &'b Run) -> Result<(Added, Option<Due<'b>>), Error> {
        let decoded = &run.decoded;
        let part = Part {
            service: run.labels.service.clone(),
            day: day(UNIX + Duration::from_millis(decoded.start_ms)),
        };
        let events = decoded.count();
        let known = state.runs.get(&decoded.run);
        let (part, counted_in, taken) = match known {
            None => (part.clone(), part, None),
            Some(known) => {
                let has_gone_on = events > known.events || decoded.ended && events == known.events;
                if known.ended || known.summed || !has_gone_on {
                    return Ok((Added::Already, None));
                }
                let part = known.part.clone();
                let counted_in = Part {
                    day: day(SystemTime::now()).max(part.day.clone()),
                    ..part.clone()
                };
                (
                    part,
                    counted_in,
                    Some(taken::of(self.dataset, state, &decoded.run)?),
                )
            }
        };
        let old = state
            .files
            .values()
            .filter(|entry| entry.run.as_deref() == Some(&decoded.run));
        self.commit
            .remove
            .extend(old.map(|entry| entry.path.clone()));
        let known = KnownRun {
            part: part.clone(),
            last: counted_in.day.clone(),
            events,
            ended: decoded.ended,
            summed: false,
        };
        self.commit.runs.insert(decoded.run.clone(), known);
        let added = match taken {
            None => Added::New,
            Some(_) => Added::More,
        };
        let new = taken::more(decoded, taken.as_ref());
        Ok((
            added,
            Some(Due {
                run,
                part,
                counted_in,
                new,
            }),
        ))
    }

    /// Frames, stacks and what goes through them, of which the dataset knows nothing yet.
    fn paths(&mut self, known: &mut Known, due: &[Due<'_>]) -> Result<(), Error> {
        let (mut frames, mut stacks) = (Vec::new(), Vec::new());
        let mut through = Through::default();
        for decoded in due.iter().map(|due| &due.run.decoded) {
            for frame in &decoded.frames {
                if known.frame(frame)? {
                    frames.push(frame);
                }
            }
            for stack in &decoded.stacks {
                if known.stack(stack)? {
                    stacks.push(*stack);
                }
            }
            through.add(decoded, known);
        }
        for (table, batch) in [
            (Table::Frames, rows::frames(&frames)?),
            (Table::Stacks, rows::stacks(&stacks)?),
        ] {
            self.file(table, None, None, &batch)?;
        }
        self.through(through)
    }

    /// A file that is written some rows at a time: there are as many as contexts are deep.
    fn through(&mut self, through: Through<'_>) -> Result<(), Error> {
        if through.is_empty() {
            return Ok(());
        }
        let mut file = Target::new(self.dataset, Table::Through, None, None)?.rows()?;
        through.rows(ROWS, &mut |rows| file.write(&rows::through(rows)?))?;
        self.commit.add.push(file.finish()?);
        Ok(())
    }

    fn counted(&mut self, due: &[Due<'_>]) -> Result<(), Error> {
        let mut parts: BTreeMap<&Part, Vec<Counted<'_>>> = BTreeMap::new();
        for due in due {
            let counted = due.counted(&due.counted_in, due.new.clone());
            parts.entry(&due.counted_in).or_default().push(counted);
        }
        for (part, counted) in parts {
            self.file(
                Table::Events,
                Some(part),
                None,
                &rows::events(Table::Events, &counted)?,
            )?;
        }
        for due in due {
            // They may become fewer: only the last ones are there.
            let alive = due.counted(&due.part, due.run.decoded.alive());
            let alive = rows::events(Table::Events, &[alive])?;
            self.file(Table::Events, Some(&due.part), due.own(), &alive)?;
        }
        for due in due.iter().filter(|due| due.own().is_some()) {
            let all = due.counted(&due.part, due.run.decoded.counters());
            let all = rows::events(Table::Taken, &[all])?;
            self.file(Table::Taken, Some(&due.part), due.own(), &all)?;
        }
        Ok(())
    }

    /// What is there once of each run: of several that have ended, or of one that goes on.
    fn facts(&mut self, due: &[Due<'_>]) -> Result<(), Error> {
        let own = due.first().and_then(Due::own);
        let labelled: Vec<Labelled<'_>> = due
            .iter()
            .map(|due| Labelled {
                decoded: &due.run.decoded,
                part: &due.part,
                version: &due.run.labels.version,
                host: &due.run.labels.host,
            })
            .collect();
        self.file(Table::Runs, None, own, &rows::runs(&labelled)?)?;
        let mut parts: BTreeMap<&Part, Vec<(&Decoded, &Part)>> = BTreeMap::new();
        for due in due {
            parts
                .entry(&due.part)
                .or_default()
                .push((&due.run.decoded, &due.part));
        }
        for (part, runs) in parts {
            self.file(Table::Numbers, Some(part), own, &rows::of_numbers(&runs)?)?;
            self.file(Table::Stream, Some(part), own, &rows::stream(&runs)?)?;
        }
        let dataset = self.dataset;
        let symbols = |due: &Due<'_>| {
            let run = Some(due.run.decoded.run.clone());
            let target = Target::new(dataset, Table::Symbols, Some(due.part.clone()), run)?;
            target.bytes(&due.run.decoded.symbols)
        };
        // Each file waits for the disk, so several do at a time.
        in_order(due, SYNCING, symbols, |_, written: Result<Entry, Error>| {
            self.commit.add.push(written?);
            Ok(())
        })
    }

    fn file(
        &mut self,
        table: Table,
        part: Option<&Part>,
        run: Option<&str>,
        batch: &arrow::array::RecordBatch,
    ) -> Result<(), Error> {
        let entry: Option<Entry> = write(self.dataset, table, part, run, batch)?;
        self.commit.add.extend(entry);
        Ok(())
    }
}

const UNIX: SystemTime = SystemTime::UNIX_EPOCH;

/// `2026-11-24`, UTC.
#[must_use]
pub fn day(at: SystemTime) -> String {
    // Years of more than four digits are no time of a run.
    let last = UNIX + Duration::from_secs(253_402_300_799);
    let text = humantime::format_rfc3339_seconds(at.clamp(UNIX, last)).to_string();
    text.get(..10).unwrap_or_default().to_owned()
}

/// Since 1970.
#[must_use]
pub fn millis(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
