//! Runs on their way into the dataset.
//!
//! ```text
//! log ─► Decoded ─► batch of runs ─► files ─► commit
//!                                     ▲         │ another writer was faster: what it added is known now,
//!                                     └─────────┘ and the files are written anew
//! ```
//! A run is known by its id: a second time it adds nothing, or, if it went on meanwhile, what has been counted since.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::commits::{Commit, CommitLog, DatasetFile, DatasetRun, DatasetState};
use crate::decoded_run::{DecodedRun, EventKey, EventSums};
use crate::dedup::DedupIndex;
use crate::delta;
use crate::error::FleetError;
use crate::files::{FileTarget, discard_files, write_table};
use crate::frame_index::FrameIndex;
use crate::layout::{DatasetPartition, DatasetTable, VERSION};
use crate::ordered_parallel::process_in_order;
use crate::rows::{self, RunEventRows, RunRow};
use crate::store::SharedStore;

/// Rows of a commit, about: what is held in memory.
const BATCH_ROWS: usize = 2 << 20;

/// Files that are written to the disk at a time.
const PARALLEL_SYNCS: usize = 8;

/// Bytes of logs that are decoded before their turn.
const DECODE_AHEAD_BYTES: u64 = 256 << 20;

/// Rows of a long table that are made at a time.
const WRITE_ROWS: usize = 1 << 18;

/// Labels of runs in the dataset.
#[derive(Clone, Debug)]
pub struct IngestLabels {
    pub service: String,
    pub version: String,
    pub host: String,
    /// The programs' arguments are kept as the logs have them; else they are masked.
    pub arguments: bool,
}

/// What became of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IngestOutcome {
    New,
    /// The run went on since it was added: what was counted since.
    Extended,
    /// The dataset has it.
    Unchanged,
    /// Why it is not taken.
    Refused(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IngestReport {
    pub path: PathBuf,
    /// If it is a log.
    pub run: Option<String>,
    pub outcome: IngestOutcome,
    /// That were added.
    pub events: u64,
    pub log_bytes: u64,
}

/// A dataset that runs are added to.
pub struct RunIngester {
    log: CommitLog,
    state: DatasetState,
    index: DedupIndex,
}

/// A run of a batch.
struct BatchRun {
    decoded: DecodedRun,
    labels: IngestLabels,
}

impl RunIngester {
    /// # Errors
    /// Something else is there, or the dataset cannot be read or written.
    pub fn open(store: &SharedStore) -> Result<RunIngester, FleetError> {
        let log = CommitLog::open_or_create(store)?;
        let state = log.read_state()?;
        let mut dedup = DedupIndex::default();
        dedup.read_files(store, state.files.values())?;
        Ok(RunIngester {
            log,
            state,
            index: dedup,
        })
    }

    /// Adds runs, in commits of some megabytes each: all of a run is in one of them. Files that are no whole logs are left out, and
    /// named in the report. `tell` hears of each file once it is in the dataset, or refused.
    ///
    /// # Errors
    /// The dataset cannot be read or written: what was not reported is not in it.
    pub fn add_runs(
        &mut self,
        logs: &[PathBuf],
        labels: &IngestLabels,
        tell: &mut dyn FnMut(IngestReport),
    ) -> Result<(), FleetError> {
        self.ingest_logs(logs.iter().map(|log| (log.as_path(), labels)), tell)
    }

    /// As [`add`](Self::add), of runs that have labels each.
    ///
    /// # Errors
    /// As of `add`.
    pub fn add_labelled_runs(
        &mut self,
        logs: &[(PathBuf, IngestLabels)],
        tell: &mut dyn FnMut(IngestReport),
    ) -> Result<(), FleetError> {
        let logs = logs.iter().map(|(log, labels)| (log.as_path(), labels));
        self.ingest_logs(logs, tell)
    }

    /// Whether the dataset has all that there will be of a run: its JVM has ended by itself.
    #[must_use]
    pub fn has_ended(&self, run: &str) -> bool {
        self.state.runs.get(run).is_some_and(|entry| entry.ended)
    }

    fn ingest_logs<'l>(
        &mut self,
        logs: impl Iterator<Item = (&'l Path, &'l IngestLabels)>,
        tell: &mut dyn FnMut(IngestReport),
    ) -> Result<(), FleetError> {
        let logs: Vec<(&Path, &IngestLabels)> = logs.collect();
        let mut batch: Vec<BatchRun> = Vec::new();
        let mut rows = 0;
        let decode =
            |(path, labels): &(&Path, &IngestLabels)| DecodedRun::read_log(path, labels.arguments);
        // The next ones are decoded while a batch is written.
        process_in_order(
            &logs,
            decode_threads(&logs),
            decode,
            |(path, labels), decoded| {
                let decoded = match decoded {
                    Ok(decoded) => decoded,
                    Err(refused) => {
                        tell(IngestReport::from_refusal(path, &refused));
                        return Ok::<(), FleetError>(());
                    }
                };
                // Two files of one run: each must see what the other one added.
                let is_there = |run: &BatchRun| run.decoded.run == decoded.run;
                if rows > BATCH_ROWS || batch.iter().any(is_there) {
                    self.flush_batch(&mut batch, tell)?;
                    rows = 0;
                }
                rows += decoded.events.len()
                    + decoded.numbers.len()
                    + decoded.stacks.len()
                    + decoded.stream.len();
                let labels = (*labels).clone();
                batch.push(BatchRun { decoded, labels });
                Ok(())
            },
        )?;
        self.flush_batch(&mut batch, tell)
    }

    fn flush_batch(
        &mut self,
        batch: &mut Vec<BatchRun>,
        tell: &mut dyn FnMut(IngestReport),
    ) -> Result<(), FleetError> {
        let reports = self.commit_batch(batch)?;
        batch.clear();
        reports.into_iter().for_each(tell);
        Ok(())
    }

    fn commit_batch(&mut self, batch: &[BatchRun]) -> Result<Vec<IngestReport>, FleetError> {
        loop {
            self.refresh_state()?;
            let mut writing = CommitWriter::new(self.log.store());
            let written = writing.write_batch(&self.state, &mut self.index, batch);
            let reports = match written {
                Ok(reports) => reports,
                Err(error) => {
                    discard_files(self.log.store(), &writing.commit.add);
                    // What is not in the dataset must not be taken for known.
                    self.reload_index()?;
                    return Err(error);
                }
            };
            let commit = std::mem::take(&mut writing.commit);
            if commit.runs.is_empty() {
                return Ok(reports);
            }
            let added = commit.add.clone();
            if self.log.append_commit(&mut self.state, commit)? {
                return Ok(reports);
            }
            discard_files(self.log.store(), &added);
            self.reload_index()?;
        }
    }

    fn refresh_state(&mut self) -> Result<(), FleetError> {
        let new = self.log.refresh_state(&mut self.state)?;
        self.index.read_files(self.log.store(), &new)
    }

    fn reload_index(&mut self) -> Result<(), FleetError> {
        self.index = DedupIndex::default();
        self.index
            .read_files(self.log.store(), self.state.files.values())
    }
}

/// As many as there are processors; fewer if the logs are large, for each thread has one in memory.
fn decode_threads(logs: &[(&Path, &IngestLabels)]) -> usize {
    let sizes = logs
        .iter()
        .map(|(path, _)| fs::metadata(path).map_or(0, |data| data.len()));
    let room = DECODE_AHEAD_BYTES / sizes.max().unwrap_or_default().max(1);
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    processors.min(usize::try_from(room).unwrap_or(usize::MAX))
}

impl IngestReport {
    fn from_refusal(path: &Path, refused: &crate::decoded_run::IngestError) -> IngestReport {
        IngestReport {
            path: path.to_owned(),
            run: None,
            outcome: IngestOutcome::Refused(refused.to_string()),
            events: 0,
            log_bytes: 0,
        }
    }
}

/// The files of a commit.
struct CommitWriter<'s> {
    store: &'s SharedStore,
    commit: Commit,
}

/// A run of the batch that has something to add.
struct PendingRun<'b> {
    run: &'b BatchRun,
    /// Of the run.
    part: DatasetPartition,
    /// Of what it counted since it was added last.
    counted_in: DatasetPartition,
    new: Vec<(&'b EventKey, EventSums)>,
}

impl PendingRun<'_> {
    /// A run that goes on has files of its own, which are replaced when it has gone on.
    fn own_file_run(&self) -> Option<&str> {
        (!self.run.decoded.ended).then_some(self.run.decoded.run.as_str())
    }

    fn event_rows<'d>(
        &'d self,
        part: &'d DatasetPartition,
        rows: Vec<(&'d EventKey, EventSums)>,
    ) -> RunEventRows<'d> {
        RunEventRows {
            run: &self.run.decoded.run,
            part,
            decoded: &self.run.decoded,
            rows,
        }
    }
}

impl<'s> CommitWriter<'s> {
    fn new(store: &'s SharedStore) -> Self {
        let commit = Commit {
            version: VERSION,
            at: unix_millis(SystemTime::now()),
            ..Commit::default()
        };
        CommitWriter { store, commit }
    }

    fn write_batch(
        &mut self,
        state: &DatasetState,
        dedup: &mut DedupIndex,
        batch: &[BatchRun],
    ) -> Result<Vec<IngestReport>, FleetError> {
        let mut reports = Vec::with_capacity(batch.len());
        let mut due = Vec::new();
        let own_files = list_own_files(state, batch.iter().map(|run| run.decoded.run.as_str()));
        for run in batch {
            let own_files = own_files.get(run.decoded.run.as_str());
            let own_files = own_files.map_or(&[][..], Vec::as_slice);
            let (added, new) = self.prepare_run(state, run, own_files)?;
            let events = new
                .as_ref()
                .map_or(0, |due| due.new.iter().map(|(_, sums)| sums.count).sum());
            reports.push(IngestReport {
                path: run.decoded.path.clone(),
                run: Some(run.decoded.run.clone()),
                outcome: added,
                events,
                log_bytes: run.decoded.log_bytes,
            });
            due.extend(new);
        }
        // Those that have ended share files.
        due.sort_by_key(|due| due.own_file_run().is_some());
        self.write_paths(dedup, &due)?;
        self.write_events(&due)?;
        for own in due.chunk_by(|a, b| a.own_file_run().is_none() && b.own_file_run().is_none()) {
            self.write_run_facts(own)?;
        }
        Ok(reports)
    }

    /// What of a run is to be added. `own_files`: the run's in the dataset.
    fn prepare_run<'b>(
        &mut self,
        state: &DatasetState,
        run: &'b BatchRun,
        own_files: &[&DatasetFile],
    ) -> Result<(IngestOutcome, Option<PendingRun<'b>>), FleetError> {
        let decoded = &run.decoded;
        let part = DatasetPartition {
            service: run.labels.service.clone(),
            day: format_day(UNIX + Duration::from_millis(decoded.start_ms)),
        };
        let events = decoded.event_count();
        let recorded = state.runs.get(&decoded.run);
        let (part, counted_in, taken) = match recorded {
            None => (part.clone(), part, None),
            Some(recorded) => {
                let has_gone_on =
                    events > recorded.events || decoded.ended && events == recorded.events;
                if recorded.ended || recorded.summed || !has_gone_on {
                    return Ok((IngestOutcome::Unchanged, None));
                }
                let part = recorded.part.clone();
                let counted_in = DatasetPartition {
                    day: format_day(SystemTime::now()).max(part.day.clone()),
                    ..part.clone()
                };
                (
                    part,
                    counted_in,
                    Some(delta::read_ingested_sums(self.store, own_files)?),
                )
            }
        };
        let old = own_files.iter().map(|entry| entry.path.clone());
        self.commit.remove.extend(old);
        let updated = DatasetRun {
            part: part.clone(),
            last: counted_in.day.clone(),
            events,
            ended: decoded.ended,
            summed: false,
        };
        self.commit.runs.insert(decoded.run.clone(), updated);
        let added = match taken {
            None => IngestOutcome::New,
            Some(_) => IngestOutcome::Extended,
        };
        let new = delta::subtract_ingested(decoded, taken.as_ref());
        Ok((
            added,
            Some(PendingRun {
                run,
                part,
                counted_in,
                new,
            }),
        ))
    }

    /// Frames, stacks and what goes through them, of which the dataset knows nothing yet.
    fn write_paths(
        &mut self,
        dedup: &mut DedupIndex,
        due: &[PendingRun<'_>],
    ) -> Result<(), FleetError> {
        let (mut frames, mut stacks) = (Vec::new(), Vec::new());
        let mut through = FrameIndex::default();
        for decoded in due.iter().map(|due| &due.run.decoded) {
            for frame in &decoded.frames {
                if dedup.insert_frame(frame)? {
                    frames.push(frame);
                }
            }
            for stack in &decoded.stacks {
                if dedup.insert_stack(stack)? {
                    stacks.push(*stack);
                }
            }
            through.add_run(decoded, dedup);
        }
        for (table, batch) in [
            (DatasetTable::Frames, rows::frame_batch(&frames)?),
            (DatasetTable::Stacks, rows::stack_batch(&stacks)?),
        ] {
            self.write_file(table, None, None, &batch)?;
        }
        self.write_frame_index(through)
    }

    /// A file that is written some rows at a time: there are as many as contexts are deep.
    fn write_frame_index(&mut self, through: FrameIndex<'_>) -> Result<(), FleetError> {
        if through.is_empty() {
            return Ok(());
        }
        let mut file =
            FileTarget::new(self.store, DatasetTable::Through, None, None)?.open_table_writer()?;
        through.write_rows(WRITE_ROWS, &mut |rows| {
            file.write_batch(&rows::frame_index_batch(rows)?)
        })?;
        self.commit.add.push(file.finish()?);
        Ok(())
    }

    fn write_events(&mut self, due: &[PendingRun<'_>]) -> Result<(), FleetError> {
        let mut parts: BTreeMap<&DatasetPartition, Vec<RunEventRows<'_>>> = BTreeMap::new();
        for due in due {
            let counted = due.event_rows(&due.counted_in, due.new.clone());
            parts.entry(&due.counted_in).or_default().push(counted);
        }
        for (part, counted) in parts {
            self.write_file(
                DatasetTable::Events,
                Some(part),
                None,
                &rows::event_batch(DatasetTable::Events, &counted)?,
            )?;
        }
        for due in due {
            // They may become fewer: only the last ones are there.
            let alive = due.event_rows(&due.part, due.run.decoded.live_object_rows());
            let alive = rows::event_batch(DatasetTable::Events, &[alive])?;
            self.write_file(
                DatasetTable::Events,
                Some(&due.part),
                due.own_file_run(),
                &alive,
            )?;
        }
        for due in due.iter().filter(|due| due.own_file_run().is_some()) {
            let all = due.event_rows(&due.part, due.run.decoded.counter_rows());
            let all = rows::event_batch(DatasetTable::Taken, &[all])?;
            self.write_file(
                DatasetTable::Taken,
                Some(&due.part),
                due.own_file_run(),
                &all,
            )?;
        }
        Ok(())
    }

    /// What is there once of each run: of several that have ended, or of one that goes on.
    fn write_run_facts(&mut self, due: &[PendingRun<'_>]) -> Result<(), FleetError> {
        let own = due.first().and_then(PendingRun::own_file_run);
        let labelled: Vec<RunRow<'_>> = due
            .iter()
            .map(|due| RunRow {
                decoded: &due.run.decoded,
                part: &due.part,
                version: &due.run.labels.version,
                host: &due.run.labels.host,
            })
            .collect();
        self.write_file(DatasetTable::Runs, None, own, &rows::run_batch(&labelled)?)?;
        let mut parts: BTreeMap<&DatasetPartition, Vec<(&DecodedRun, &DatasetPartition)>> =
            BTreeMap::new();
        for due in due {
            parts
                .entry(&due.part)
                .or_default()
                .push((&due.run.decoded, &due.part));
        }
        for (part, runs) in parts {
            self.write_file(
                DatasetTable::Numbers,
                Some(part),
                own,
                &rows::number_batch(&runs)?,
            )?;
            self.write_file(
                DatasetTable::Stream,
                Some(part),
                own,
                &rows::stream_batch(&runs)?,
            )?;
        }
        let store = self.store;
        let symbols = |due: &PendingRun<'_>| {
            let run = Some(due.run.decoded.run.clone());
            let target =
                FileTarget::new(store, DatasetTable::Symbols, Some(due.part.clone()), run)?;
            target.write_bytes(&due.run.decoded.symbols)
        };
        // Each file waits for the disk or the store, so several do at a time.
        process_in_order(
            due,
            PARALLEL_SYNCS,
            symbols,
            |_, written: Result<DatasetFile, FleetError>| {
                self.commit.add.push(written?);
                Ok(())
            },
        )
    }

    fn write_file(
        &mut self,
        table: DatasetTable,
        part: Option<&DatasetPartition>,
        run: Option<&str>,
        batch: &arrow::array::RecordBatch,
    ) -> Result<(), FleetError> {
        let entry: Option<DatasetFile> = write_table(self.store, table, part, run, batch)?;
        self.commit.add.extend(entry);
        Ok(())
    }
}

/// The files of runs of the dataset that have one run only, by run. It reads the list of all files once, however many runs there are.
fn list_own_files<'s>(
    state: &'s DatasetState,
    runs: impl Iterator<Item = &'s str>,
) -> HashMap<&'s str, Vec<&'s DatasetFile>> {
    let known: HashSet<&str> = runs.filter(|run| state.runs.contains_key(*run)).collect();
    let mut own_files = HashMap::<_, Vec<_>>::new();
    // Most batches have new runs only.
    if known.is_empty() {
        return own_files;
    }
    for entry in state.files.values() {
        if let Some(run) = entry.run.as_deref().filter(|run| known.contains(run)) {
            own_files.entry(run).or_default().push(entry);
        }
    }
    own_files
}

const UNIX: SystemTime = SystemTime::UNIX_EPOCH;

/// `2026-11-24`, UTC.
#[must_use]
pub fn format_day(at: SystemTime) -> String {
    // Years of more than four digits are no time of a run.
    let last = UNIX + Duration::from_secs(253_402_300_799);
    let text = humantime::format_rfc3339_seconds(at.clamp(UNIX, last)).to_string();
    text.get(..10).unwrap_or_default().to_owned()
}

/// Since 1970.
#[must_use]
pub fn unix_millis(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod ingest_tests {
    use super::*;

    #[test]
    fn files_of_a_run_are_found_by_its_id() {
        let mut state = DatasetState::default();
        let part = DatasetPartition {
            service: "shop".into(),
            day: "2026-11-01".into(),
        };
        for run in ["a", "b"] {
            let known = DatasetRun {
                part: part.clone(),
                last: part.day.clone(),
                events: 1,
                ended: false,
                summed: false,
            };
            state.runs.insert(run.into(), known);
        }
        for (path, run) in [
            ("1", Some("a")),
            ("2", Some("b")),
            ("3", None),
            ("4", Some("a")),
        ] {
            let entry = DatasetFile {
                table: DatasetTable::Events,
                path: path.into(),
                rows: 1,
                bytes: 1,
                part: Some(part.clone()),
                run: run.map(str::to_owned),
            };
            state.files.insert(path.into(), entry);
        }
        let found = list_own_files(&state, ["a", "new"].into_iter());
        let paths = found["a"].iter().map(|entry| entry.path.as_str());
        assert_eq!(paths.collect::<Vec<_>>(), ["1", "4"]);
        assert_eq!(found.len(), 1);
        assert!(list_own_files(&state, ["new"].into_iter()).is_empty());
    }
}
