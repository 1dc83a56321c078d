//! From the spool into the dataset.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::collect::spool::{LogMirror, LogSpool, SpoolError};
use crate::error::FleetError;
use crate::ingest::{IngestLabels, IngestOutcome, RunIngester};
use crate::store::SharedStore;

/// Runs of a batch: so many are in one commit at most.
const MAX_BATCH_RUNS: usize = 500;

/// What a batch has done.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct BatchReport {
    /// Runs that were new, or went on.
    pub runs: u64,
    pub events: u64,
    /// Runs that the dataset has to their end now.
    pub ended: u64,
    /// Logs that the dataset does not take.
    pub refused: u64,
    /// Runs that must wait: something cannot be read or written.
    pub waiting: u64,
}

/// What adds to the dataset; there is one.
pub struct BatchIngester {
    spool: Arc<LogSpool>,
    store: SharedStore,
    ingest: RunIngester,
    /// Of runs that do not say it.
    service: String,
    /// The programs' arguments, if they are in what was sent, are in the dataset.
    arguments: bool,
}

impl BatchIngester {
    /// # Errors
    /// The dataset cannot be opened or made.
    pub fn new(
        spool: Arc<LogSpool>,
        store: &SharedStore,
        service: &str,
    ) -> Result<Self, FleetError> {
        Ok(BatchIngester {
            spool,
            store: SharedStore::clone(store),
            ingest: RunIngester::open(store)?,
            service: service.to_owned(),
            arguments: false,
        })
    }

    /// Keeps the arguments of programs whose senders show them.
    #[must_use]
    pub fn with_arguments(self, arguments: bool) -> Self {
        BatchIngester { arguments, ..self }
    }

    /// Adds everything that waits. `complain` hears of what cannot be done; that is tried again, but for logs that are refused.
    pub fn add_waiting_runs(&mut self, complain: &mut dyn FnMut(String)) -> BatchReport {
        let mut done = BatchReport::default();
        let mut mirrors = Vec::new();
        for run in self.spool.take_waiting_runs() {
            match self.spool.apply_generations(run) {
                Ok(mirror) => mirrors.extend(mirror),
                Err(SpoolError::Malformed(why)) => {
                    complain(format!("{why}; the whole log is asked for again"));
                }
                Err(SpoolError::TooLarge(why) | SpoolError::Full(why)) => {
                    self.requeue_run(run, &mut done);
                    complain(why);
                }
                Err(SpoolError::Failed(error)) => {
                    self.requeue_run(run, &mut done);
                    complain(format!("run {run}: {error}"));
                }
            }
        }
        for mirrors in mirrors.chunks(MAX_BATCH_RUNS) {
            self.add_mirrors(mirrors, &mut done, complain);
        }
        // What is not known is counted by the next round.
        let _ = self.spool.update_used_bytes();
        done
    }

    fn requeue_run(&self, run: lucce_tracelog::RunId, done: &mut BatchReport) {
        self.spool.requeue_run(run);
        done.waiting += 1;
    }

    fn add_mirrors(
        &mut self,
        mirrors: &[LogMirror],
        done: &mut BatchReport,
        complain: &mut dyn FnMut(String),
    ) {
        let mut left: HashMap<&Path, &LogMirror> = HashMap::new();
        let mut logs = Vec::new();
        for mirror in mirrors {
            left.insert(&mirror.log, mirror);
            logs.push((mirror.log.clone(), self.resolve_labels(mirror)));
        }
        let mut added = Vec::new();
        let all = self.ingest.add_labelled_runs(&logs, &mut |report| {
            added.extend(
                left.remove(report.path.as_path())
                    .map(|mirror| (mirror, report)),
            );
        });
        for (mirror, report) in added {
            let ended = self.ingest.has_ended(&mirror.run.to_string());
            match report.outcome {
                IngestOutcome::New | IngestOutcome::Extended => {
                    done.runs += 1;
                    done.events += report.events;
                }
                IngestOutcome::Unchanged => {}
                IngestOutcome::Refused(why) => {
                    done.refused += 1;
                    complain(format!("{}: refused: {why}", mirror.log.display()));
                }
            }
            done.ended += u64::from(ended);
            if let Err(error) = self.spool.mark_ingested(mirror, ended) {
                complain(format!("{}: {error}", mirror.log.display()));
                self.requeue_run(mirror.run, done);
            }
        }
        if let Err(error) = all {
            complain(format!("{error}; what was sent waits on the disk"));
            // What another writer has done is read again.
            match RunIngester::open(&self.store) {
                Ok(ingest) => self.ingest = ingest,
                Err(error) => complain(error.to_string()),
            }
        }
        for mirror in left.into_values() {
            self.requeue_run(mirror.run, done);
        }
    }

    fn resolve_labels(&self, mirror: &LogMirror) -> IngestLabels {
        let labels = &mirror.labels;
        let service = match labels.service.is_empty() {
            true => &self.service,
            false => &labels.service,
        };
        IngestLabels {
            service: service.clone(),
            version: labels.version.clone(),
            host: labels.host.clone(),
            arguments: self.arguments,
        }
    }

    /// See [`LogSpool::remove_idle_runs`].
    pub fn remove_idle_runs(&self, idle: Duration, complain: &mut dyn FnMut(String)) {
        if let Err(error) = self.spool.remove_idle_runs(idle) {
            complain(format!("the spool: {error}"));
        }
    }
}
