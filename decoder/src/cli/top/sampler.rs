//! Reads the log of a JVM that runs, again and again: what its counters have more than the last time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lucce_decoder::{ContextCounters, KindTotal, MergedProfile, OpenError, Profile, RunId};

use crate::cli::CommandError;
use crate::cli::classes::ClassFilterArgs;

/// What was counted between two readings.
pub struct SampleWindow {
    /// One run, with what was counted meanwhile.
    pub joined: MergedProfile,
    pub run: Option<RunId>,
    pub seconds: f64,
    /// What was counted since the JVM started.
    pub totals: Vec<KindTotal>,
    /// The kind that is shown if none is asked for.
    pub main_kind: String,
}

pub struct LogSampler {
    path: PathBuf,
    requested_interval: Duration,
    /// What the last reading took.
    read_duration: Duration,
    before: ContextCounters,
    read_at: Instant,
    /// Of what was counted or asked for.
    kinds: Vec<String>,
}

impl LogSampler {
    /// # Errors
    /// The log cannot be read, or has no counters.
    pub fn new(path: &Path, interval: Duration) -> Result<LogSampler, CommandError> {
        let begun = Instant::now();
        let profile = ClassFilterArgs::default().open_log(path)?;
        let counted = profile.counted_kinds().into_iter().map(|kind| kind.name);
        let mut kinds: Vec<_> = counted.collect();
        for asked in profile.recorded_kinds() {
            if kinds.iter().all(|kind| kind != asked) {
                kinds.push(asked.to_owned());
            }
        }
        Ok(LogSampler {
            kinds,
            path: path.to_owned(),
            requested_interval: interval,
            read_duration: begun.elapsed(),
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
    pub fn poll_interval(&self) -> Duration {
        self.requested_interval.max(self.read_duration * 4)
    }

    /// # Errors
    /// The log cannot be read any more.
    pub fn read_window(&mut self) -> Result<SampleWindow, OpenError> {
        let begun = Instant::now();
        let mut profile = Profile::open(&self.path)?;
        let (totals, main_kind) = (profile.counted_kinds(), profile.main_kind().name);
        let more = profile.events.subtract_earlier(&self.before);
        self.before = std::mem::replace(&mut profile.events, more);
        let mut joined = MergedProfile::default();
        joined.add_profile(&profile, &|_| ());
        // Not since readings began: on a busy machine that is something else.
        let seconds = (profile.counted_at - self.read_at).as_secs_f64();
        self.read_at = profile.counted_at;
        self.read_duration = begun.elapsed();
        Ok(SampleWindow {
            joined,
            run: profile.header.run,
            seconds,
            totals,
            main_kind,
        })
    }
}
