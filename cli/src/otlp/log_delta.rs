//! Reads what a log has counted since the last reading, as a run of its own.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use lucce_decoder::{
    DeltaTracker, ExportOptions, FollowedObjects, LogSource, OpenError, export_run,
};
use lucce_export::ExportRun;
use lucce_options::kinds::OPEN_RESOURCES;

use crate::selection::CountSelection;

/// Reads a log repeatedly, without contact to its JVM.
pub struct LogDeltaReader<'a> {
    log: PathBuf,
    selection: &'a CountSelection,
    contents: bool,
    delta_tracker: DeltaTracker,
    /// Number of reported snapshots of live objects.
    snapshots: usize,
    /// End of the reported time, in nanoseconds since 1970. `None`: nothing was reported.
    until: Option<u64>,
    /// Duration of the last reading.
    read_duration: Duration,
}

/// The result of one reading.
pub struct LogDelta {
    /// The new events.
    pub run: ExportRun,
    /// Number of events whose context ids the log does not explain: it is damaged.
    pub unexplained: u64,
    pub damage: Option<String>,
    /// Number of dropped events.
    pub lost: u64,
    pub pid: u32,
    /// Whether the log has its end.
    pub ended: bool,
}

impl<'a> LogDeltaReader<'a> {
    pub fn new(log: PathBuf, selection: &'a CountSelection, contents: bool) -> Self {
        LogDeltaReader {
            log,
            selection,
            contents,
            delta_tracker: DeltaTracker::default(),
            snapshots: 0,
            until: None,
            read_duration: Duration::ZERO,
        }
    }

    /// The time between readings: a large log is read less often, so that reading takes at most a quarter of a processor.
    pub fn poll_interval(&self, interval: Duration) -> Duration {
        interval.max(self.read_duration * 4)
    }

    /// # Errors
    /// The log cannot be read.
    pub fn read_delta(&mut self) -> Result<LogDelta, OpenError> {
        let begun = Instant::now();
        let now = nanos_since_1970();
        let mut profile = LogSource::open(&self.log)?.read_profile(&|_| ())?;
        let snapshots = profile.followed_objects.snapshots().len();
        profile.count_open_resources();
        self.selection.limit_counters(&mut profile);
        // What is open is no difference: each request has all of it.
        let (open, events) = std::mem::take(&mut profile.events).partition_counters(|counter| {
            profile.is_event_of_kind(counter.event, OPEN_RESOURCES.name)
        });
        profile.events = events;
        profile.events = self.delta_tracker.next_delta(&profile).join_counters(&open);
        // Live objects at a snapshot are not a difference, so each snapshot is reported once, as it is.
        if snapshots == self.snapshots {
            profile.followed_objects = FollowedObjects::default();
        }
        self.snapshots = snapshots;
        let options = ExportOptions {
            kind: self.selection.event.as_deref(),
            value: None,
            leaf_type: false,
            content_ids: self.contents,
            admits: &|_, _| true,
        };
        let exported = export_run(&profile, &options, None, &|_| ());
        let unknown = exported.left_out.unknown.iter();
        let counts = unknown
            .flat_map(|(id, _)| profile.events.counters_of_context(*id))
            .map(|share| share.count);
        let unexplained = counts.fold(0, u64::saturating_add);
        let damage = exported.left_out.damage.as_ref().map(ToString::to_string);
        let mut run = exported.run;
        let end = run
            .duration_ns
            .map(|lasted| run.start_ns.saturating_add(lasted));
        let until = end.filter(|_| profile.ended).unwrap_or(now);
        run.start_ns = self.until.unwrap_or(run.start_ns);
        run.duration_ns = Some(until.saturating_sub(run.start_ns));
        self.until = Some(until.max(run.start_ns));
        self.read_duration = begun.elapsed();
        Ok(LogDelta {
            run,
            unexplained,
            damage,
            lost: profile.dropped_events(),
            pid: profile.header.pid,
            ended: profile.ended,
        })
    }
}

fn nanos_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod log_delta_tests {
    use clap::Parser;
    use lucce_options::kinds::OPENINGS;

    use super::*;

    #[derive(clap::Parser)]
    struct SelectionCommand {
        #[command(flatten)]
        selection: CountSelection,
    }

    /// Sums of a kind by type and number of frames.
    fn counts(delta: &LogDelta, kind: &str) -> Vec<u64> {
        let rows = delta.run.rows.iter();
        let rows = rows.filter(|row| {
            let of = delta.run.event_kind(row);
            of.is_some_and(|of| of.name == kind)
        });
        let mut counts: Vec<_> = rows.map(|row| row.count).collect();
        counts.sort_unstable();
        counts
    }

    #[test]
    fn each_request_has_what_is_open_and_events_once() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("open.log");
        let _run = lucce_testkit::open::open(&log, false);
        let SelectionCommand { selection } = SelectionCommand::parse_from(["otlp"]);
        let mut reader = LogDeltaReader::new(log, &selection, false);
        let [first, second] = [(); 2].map(|()| reader.read_delta().unwrap());
        assert_eq!(counts(&first, OPENINGS.name), [3, 3, 4]);
        assert_eq!(counts(&second, OPENINGS.name), [0; 0]);
        for delta in [first, second] {
            assert_eq!(counts(&delta, OPEN_RESOURCES.name), [1, 2]);
        }
    }
}
