//! Reads the log of a JVM that runs, again and again: what its counters have more than the last time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lucce_decoder::{Events, Joined, KindTotal, OpenError, Profile, RunId};

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
}

impl Sampler {
    /// # Errors
    /// The log cannot be read.
    pub fn new(path: &Path, interval: Duration) -> Result<Sampler, OpenError> {
        let begun = Instant::now();
        let profile = Profile::open(path)?;
        Ok(Sampler {
            path: path.to_owned(),
            asked: interval,
            took: begun.elapsed(),
            before: profile.events,
            read_at: begun,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
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
        let seconds = (begun - self.read_at).as_secs_f64();
        self.read_at = begun;
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
