//! From the spool into the dataset.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::collect::spool::{Mirror, Refusal, Spool};
use crate::error::Error;
use crate::ingest::{Added, Ingest, Labels};

/// Runs of a batch: so many are in one commit at most.
const RUNS: usize = 500;

/// What a batch has done.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Done {
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
pub struct Batches {
    spool: Arc<Spool>,
    dataset: PathBuf,
    ingest: Ingest,
    /// Of runs that do not say it.
    service: String,
    /// The programs' arguments, if they are in what was sent, are in the dataset.
    arguments: bool,
}

impl Batches {
    /// # Errors
    /// The dataset cannot be opened or made.
    pub fn new(spool: Arc<Spool>, dataset: &Path, service: &str) -> Result<Self, Error> {
        Ok(Batches {
            spool,
            dataset: dataset.to_owned(),
            ingest: Ingest::open(dataset)?,
            service: service.to_owned(),
            arguments: false,
        })
    }

    /// Keeps the arguments of programs whose senders show them.
    #[must_use]
    pub fn with_arguments(self, arguments: bool) -> Self {
        Batches { arguments, ..self }
    }

    /// Adds everything that waits. `complain` hears of what cannot be done; that is tried again, but for logs that are refused.
    pub fn round(&mut self, complain: &mut dyn FnMut(String)) -> Done {
        let mut done = Done::default();
        let mut mirrors = Vec::new();
        for run in self.spool.waiting() {
            match self.spool.apply(run) {
                Ok(mirror) => mirrors.extend(mirror),
                Err(Refusal::Malformed(why)) => {
                    complain(format!("{why}; the whole log is asked for again"));
                }
                Err(Refusal::TooLarge(why) | Refusal::Full(why)) => {
                    self.wait(run, &mut done);
                    complain(why);
                }
                Err(Refusal::Failed(error)) => {
                    self.wait(run, &mut done);
                    complain(format!("run {run}: {error}"));
                }
            }
        }
        for mirrors in mirrors.chunks(RUNS) {
            self.add(mirrors, &mut done, complain);
        }
        // What is not known is counted by the next round.
        let _ = self.spool.count();
        done
    }

    fn wait(&self, run: lucce_tracelog::RunId, done: &mut Done) {
        self.spool.again(run);
        done.waiting += 1;
    }

    fn add(&mut self, mirrors: &[Mirror], done: &mut Done, complain: &mut dyn FnMut(String)) {
        let mut left: HashMap<&Path, &Mirror> = HashMap::new();
        let mut logs = Vec::new();
        for mirror in mirrors {
            left.insert(&mirror.log, mirror);
            logs.push((mirror.log.clone(), self.labels(mirror)));
        }
        let mut added = Vec::new();
        let all = self.ingest.add_each(&logs, &mut |report| {
            added.extend(
                left.remove(report.path.as_path())
                    .map(|mirror| (mirror, report)),
            );
        });
        for (mirror, report) in added {
            let ended = self.ingest.has_ended(&mirror.run.to_string());
            match report.added {
                Added::New | Added::More => {
                    done.runs += 1;
                    done.events += report.events;
                }
                Added::Already => {}
                Added::Refused(why) => {
                    done.refused += 1;
                    complain(format!("{}: refused: {why}", mirror.log.display()));
                }
            }
            done.ended += u64::from(ended);
            if let Err(error) = self.spool.added(mirror, ended) {
                complain(format!("{}: {error}", mirror.log.display()));
                self.wait(mirror.run, done);
            }
        }
        if let Err(error) = all {
            complain(format!("{error}; what was sent waits on the disk"));
            // What another writer has done is read again.
            match Ingest::open(&self.dataset) {
                Ok(ingest) => self.ingest = ingest,
                Err(error) => complain(error.to_string()),
            }
        }
        for mirror in left.into_values() {
            self.wait(mirror.run, done);
        }
    }

    fn labels(&self, mirror: &Mirror) -> Labels {
        let labels = &mirror.labels;
        let service = match labels.service.is_empty() {
            true => &self.service,
            false => &labels.service,
        };
        Labels {
            service: service.clone(),
            version: labels.version.clone(),
            host: labels.host.clone(),
            arguments: self.arguments,
        }
    }

    /// See [`Spool::sweep`].
    pub fn sweep(&self, idle: Duration, complain: &mut dyn FnMut(String)) {
        if let Err(error) = self.spool.sweep(idle) {
            complain(format!("the spool: {error}"));
        }
    }
}
