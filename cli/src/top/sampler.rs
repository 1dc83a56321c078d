//! Reads the log of a running JVM repeatedly, and returns what was counted since the last reading.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use lucce_decoder::{
    ContextCounter, ContextCounters, KindTotal, MergedProfile, OpenError, Profile, RunId,
    RunInterval, find_sample_role, has_survival, list_recorded_kinds, read_sampled_bytes,
};

use lucce_page::FactTable;

use crate::CommandError;
use crate::classes::ClassFilterArgs;
use crate::fact_tables::list_fact_tables;
use crate::open::milliseconds_now;
use crate::process;
use crate::selection::CountSelection;

/// The events between two readings.
pub struct SampleWindow {
    /// A run with these events. If it is known how long samples live, a second run has the samples since the start.
    pub joined: MergedProfile,
    pub run: Option<RunId>,
    pub seconds: f64,
    /// The marks between which events were counted; `None`: since the last reading.
    pub interval: Option<RunInterval>,
    /// Selected events since the JVM's start.
    pub totals: Vec<KindTotal>,
    /// The kind that is shown by default.
    pub main_kind: String,
    /// Whether allocations are estimated from samples.
    pub is_sampled: bool,
    /// Tables of the whole run; empty if events are selected.
    pub facts: Vec<FactTable>,
}

impl SampleWindow {
    /// The events of a kind since the start; of a kind without events, none.
    pub fn kind_total(&self, name: &str) -> KindTotal {
        let total = self.totals.iter().find(|kind| kind.name == name);
        total.cloned().unwrap_or_else(|| KindTotal {
            name: name.to_owned(),
            unit: String::new(),
            count: 0,
        })
    }
}

pub struct LogSampler {
    path: PathBuf,
    selection: CountSelection,
    requested_interval: Duration,
    /// Duration of the last reading.
    read_duration: Duration,
    before: ContextCounters,
    read_at: Instant,
    /// Kinds that were counted, or that the run is to record.
    kinds: Vec<String>,
}

impl LogSampler {
    /// # Errors
    /// The log cannot be read, or has no counters.
    pub fn new(
        path: &Path,
        interval: Duration,
        selection: CountSelection,
    ) -> Result<LogSampler, CommandError> {
        let begun = Instant::now();
        let mut profile = ClassFilterArgs::default().open_log(path)?;
        let counted = profile.counted_kinds().into_iter().map(|kind| kind.name);
        let mut kinds: Vec<_> = counted.collect();
        for name in list_recorded_kinds(&profile) {
            if kinds.iter().all(|kind| kind != name) {
                kinds.push(name.to_owned());
            }
        }
        if selection.interval.is_named() {
            selection.interval.apply(path, &mut profile)?;
        }
        selection.limit_counters(&mut profile);
        Ok(LogSampler {
            kinds,
            selection,
            path: path.to_owned(),
            requested_interval: interval,
            read_duration: begun.elapsed(),
            read_at: profile.counters_read_at,
            before: profile.events,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn selection(&self) -> &CountSelection {
        &self.selection
    }

    /// Names of kinds that have events or may have some later.
    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// The time between readings: a large log is read less often, so that reading takes at most a quarter of a processor.
    pub fn poll_interval(&self) -> Duration {
        self.requested_interval.max(self.read_duration * 4)
    }

    /// # Errors
    /// The log cannot be read.
    pub fn read_window(&mut self) -> Result<SampleWindow, OpenError> {
        let begun = Instant::now();
        let mut profile = Profile::open(&self.path)?;
        if self.selection.interval.is_named() {
            // The marks were there at the first reading, and a log keeps them.
            let _ = self.selection.interval.apply(&self.path, &mut profile);
        }
        let facts = match self.selection.has_filters() || profile.interval.is_some() {
            true => Vec::new(),
            false => {
                let is_over = profile.ended || process::is_gone(profile.header.pid, &self.path);
                list_fact_tables(&profile, (!is_over).then(milliseconds_now))
            }
        };
        self.selection.limit_counters(&mut profile);
        let (totals, main_kind) = (profile.counted_kinds(), profile.main_kind().name);
        let interval = profile.interval.take();
        if interval.is_none() {
            let more = profile.events.subtract_earlier(&self.before);
            self.before = std::mem::replace(&mut profile.events, more);
        }
        let mut joined = MergedProfile::default();
        joined.add_profile(&profile, &|_| ());
        if interval.is_none() && has_survival(&profile) {
            let is_sample =
                |counter: &ContextCounter| find_sample_role(&profile, counter.event).is_some();
            let samples = self.before.filter_counters(is_sample);
            profile.events = samples;
            joined.add_profile(&profile, &|_| ());
        }
        // Measured between the counters' readings, not between the starts of readings: on a busy machine these differ.
        let since_reading = (profile.counters_read_at - self.read_at).as_secs_f64();
        let seconds = interval.as_ref().map_or(since_reading, |interval| {
            interval_seconds(interval, profile.header.start)
        });
        self.read_at = profile.counters_read_at;
        self.read_duration = begun.elapsed();
        Ok(SampleWindow {
            joined,
            run: profile.header.run,
            seconds,
            interval,
            totals,
            main_kind,
            is_sampled: read_sampled_bytes(&profile).is_some(),
            facts,
        })
    }
}

/// The length of an interval. `start`: of the log, in nanoseconds since 1970.
fn interval_seconds(interval: &RunInterval, start: u64) -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let elapsed = now.unwrap_or_default().as_secs_f64() - start as f64 / 1e9;
    let seconds = |millis: u64| millis as f64 / 1e3;
    let until = interval.until.as_ref();
    let until = until.map_or(elapsed, |mark| seconds(mark.millis));
    let since = interval.since.as_ref();
    until - since.map_or(0.0, |mark| seconds(mark.millis))
}
