//! What a log's counters have more than the last time, as a run of its own: from the last look to this one.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use lucce_decoder::{DeltaTracker, ExportOptions, FollowedObjects, LogSource, OpenError};
use lucce_export::ExportRun;

/// Reads a log again and again. Its JVM hears nothing of that.
pub struct LogDeltaReader {
    log: PathBuf,
    /// Events of this kind only.
    kind: Option<String>,
    contents: bool,
    arguments: bool,
    delta_tracker: DeltaTracker,
    /// How many snapshots of living objects were told.
    snapshots: usize,
    /// Until when events were taken, in nanoseconds since 1970. `None`: none were.
    until: Option<u64>,
    /// What the last look took.
    read_duration: Duration,
}

/// One look.
pub struct LogDelta {
    /// What is new.
    pub run: ExportRun,
    /// Events whose numbers the log does not explain: it is damaged.
    pub unexplained: u64,
    pub damage: Option<String>,
    /// Events that the agent could not count.
    pub lost: u64,
    pub pid: u32,
    /// The JVM has written the log's end.
    pub ended: bool,
}

impl LogDeltaReader {
    pub fn new(log: PathBuf, kind: Option<String>, contents: bool) -> Self {
        LogDeltaReader {
            log,
            kind,
            contents,
            arguments: false,
            delta_tracker: DeltaTracker::default(),
            snapshots: 0,
            until: None,
            read_duration: Duration::ZERO,
        }
    }

    /// The program's arguments are in what is looked at.
    pub fn show_arguments(&mut self) {
        self.arguments = true;
    }

    /// A large log is read less often, so that this takes a quarter of a processor at most.
    pub fn poll_interval(&self, asked: Duration) -> Duration {
        asked.max(self.read_duration * 4)
    }

    /// # Errors
    /// The log cannot be read.
    pub fn read_delta(&mut self) -> Result<LogDelta, OpenError> {
        let begun = Instant::now();
        let now = nanos_since_1970();
        let mut profile = LogSource::open(&self.log)?.read_profile(&|_| ())?;
        if self.arguments {
            profile.show_arguments();
        }
        profile.events = self.delta_tracker.next_delta(&profile);
        // What lived at a snapshot is no difference to the one before, so it is told once, as it was.
        let snapshots = profile.followed_objects.snapshots().len();
        if snapshots == self.snapshots {
            profile.followed_objects = FollowedObjects::default();
        }
        self.snapshots = snapshots;
        let wish = ExportOptions {
            kind: self.kind.as_deref(),
            value: None,
            leaf_type: false,
            content_ids: self.contents,
            admits: &|_, _| true,
        };
        let exported = profile.export_run(&wish, None, &|_| ());
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
