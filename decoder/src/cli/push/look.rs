//! What a log's counters have more than the last time, as a run of its own: from the last look to this one.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use lucce_decoder::{Following, OpenError, Source, Taken, Wish};
use lucce_formats::Run;

/// Reads a log again and again. Its JVM hears nothing of that.
pub struct Looker {
    log: PathBuf,
    /// Events of this kind only.
    kind: Option<String>,
    contents: bool,
    arguments: bool,
    taken: Taken,
    /// How many snapshots of living objects were told.
    snapshots: usize,
    /// Until when events were taken, in nanoseconds since 1970. `None`: none were.
    until: Option<u64>,
    /// What the last look took.
    took: Duration,
}

/// One look.
pub struct Look {
    /// What is new.
    pub run: Run,
    /// Events whose numbers the log does not explain: it is damaged.
    pub unexplained: u64,
    pub damage: Option<String>,
    /// Events that the agent could not count.
    pub lost: u64,
    pub pid: u32,
    /// The JVM has written the log's end.
    pub ended: bool,
}

impl Looker {
    pub fn new(log: PathBuf, kind: Option<String>, contents: bool) -> Self {
        Looker {
            log,
            kind,
            contents,
            arguments: false,
            taken: Taken::default(),
            snapshots: 0,
            until: None,
            took: Duration::ZERO,
        }
    }

    /// The program's arguments are in what is looked at.
    pub fn show_arguments(&mut self) {
        self.arguments = true;
    }

    /// A large log is read less often, so that this takes a quarter of a processor at most.
    pub fn interval(&self, asked: Duration) -> Duration {
        asked.max(self.took * 4)
    }

    /// # Errors
    /// The log cannot be read.
    pub fn look(&mut self) -> Result<Look, OpenError> {
        let begun = Instant::now();
        let now = nanos_since_1970();
        let mut profile = Source::open(&self.log)?.profile(&|_| ())?;
        if self.arguments {
            profile.show_arguments();
        }
        profile.events = self.taken.more(&profile);
        // What lived at a snapshot is no difference to the one before, so it is told once, as it was.
        let snapshots = profile.following.moments().len();
        if snapshots == self.snapshots {
            profile.following = Following::default();
        }
        self.snapshots = snapshots;
        let wish = Wish {
            kind: self.kind.as_deref(),
            value: None,
            leaf_type: false,
            contents: self.contents,
            admits: &|_, _| true,
        };
        let exported = profile.exported(&wish, None, &|_| ());
        let unknown = exported.left_out.unknown.iter();
        let counts = unknown
            .flat_map(|(id, _)| profile.events.of(*id))
            .map(|share| share.count);
        let unexplained = counts.fold(0, u64::saturating_add);
        let damage = exported.left_out.damage.as_ref().map(ToString::to_string);
        let mut run = exported.run;
        let end = run.lasted.map(|lasted| run.start.saturating_add(lasted));
        let until = end.filter(|_| profile.ended).unwrap_or(now);
        run.start = self.until.unwrap_or(run.start);
        run.lasted = Some(until.saturating_sub(run.start));
        self.until = Some(until.max(run.start));
        self.took = begun.elapsed();
        Ok(Look {
            run,
            unexplained,
            damage,
            lost: profile.lost(),
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
