//! Reads the log of a JVM that runs, again and again: what its counters have more than the last time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lucce_decoder::{Events, Joined, KindTotal, OpenError, Profile, RunId};

use crate::cli::Failure;
use crate::cli::classes::Classes;

/// What was counted between two readings.
pub struct Window {
    /// One run, with what was counted meanwhile.
    pub joined: Joined,
    pub run: Option<RunId>,
    pub seconds: f64,
    /// What was counted since the JVM started.
    pub totals: Vec<KindTotal>,
    /// The kind that is shown if none is asked for.
    pub main_kind: String,
}

pub struct Sampler {
    path: PathBuf,
    asked: Duration,
    /// What the last reading took.
    took: Duration,
    before: Events,
    read_at: Instant,
    /// Of what was counted or asked for.
    kinds: Vec<String>,
}

impl Sampler {
    /// # Errors
    /// The log cannot be read, or has no counters.
    pub fn new(path: &Path, interval: Duration) -> Result<Sampler, Failure> {
        let begun = Instant::now();
        let profile = Classes::default().open(path)?;
        let counted = profile.kinds().into_iter().map(|kind| kind.name);
        let mut kinds: Vec<_> = counted.collect();
        for asked in profile.asked_kinds() {
            if kinds.iter().all(|kind| kind != asked) {
                kinds.push(asked.to_owned());
            }
        }
        Ok(Sampler {
            kinds,
            path: path.to_owned(),
            asked: interval,
            took: begun.elapsed(),
            read_at: profile.counted_at,
            before: profile.events,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of kinds that there are, or may be soon.
    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// A large log is read less often, so that this takes a quarter of a processor at most.
    pub fn interval(&self) -> Duration {
        self.asked.max(self.took * 4)
    }

    /// # Errors
    /// The log cannot be read any more.
    pub fn look(&mut self) -> Result<Window, OpenError> {
        let begun = Instant::now();
        let mut profile = Profile::open(&self.path)?;
        let (totals, main_kind) = (profile.kinds(), profile.main_kind().name);
        let more = profile.events.since(&self.before);
        self.before = std::mem::replace(&mut profile.events, more);
        let mut joined = Joined::default();
        joined.add(&profile, &|_| ());
        // Not since readings began: on a busy machine that is something else.
        let seconds = (profile.counted_at - self.read_at).as_secs_f64();
        self.read_at = profile.counted_at;
        self.took = begun.elapsed();
        Ok(Window {
            joined,
            run: profile.header.run,
            seconds,
            totals,
            main_kind,
        })
    }
}
