//! The options `--since` and `--until`: limit counters to the events between two marks of a run.

use std::path::Path;

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{IntervalError, IntervalStart, MarkedMoment, Profile, START_NAME};

use super::{CommandError, prefix_path};

/// Between which marks events are counted.
#[derive(clap::Args, Clone, Default)]
pub struct RunIntervalArgs {
    /// Count events from this mark on; `start`: the whole run [default: the last `lucce ctl` reset, else start]
    #[arg(long, value_name = "MARK")]
    since: Option<String>,
    /// Count events up to this mark
    #[arg(long, value_name = "MARK")]
    until: Option<String>,
}

impl RunIntervalArgs {
    /// Whether an interval is named. A log with a reset has one otherwise, too.
    pub fn is_named(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }

    /// Limits a profile to the interval.
    pub fn apply(&self, log: &Path, profile: &mut Profile) -> Result<(), CommandError> {
        let since = match self.since.as_deref() {
            None => IntervalStart::LastReset,
            Some(START_NAME) => IntervalStart::RunStart,
            Some(name) => IntervalStart::Mark(name),
        };
        let restricted = profile.restrict_to_interval(since, self.until.as_deref());
        restricted.map_err(|error| {
            let text = describe_error(&error, profile);
            CommandError::Usage(prefix_path(log, text))
        })
    }

    /// Refuses named marks for what reads single events: these have times.
    pub fn refuse_marks(&self) -> Result<(), CommandError> {
        match self.is_named() {
            true => Err(CommandError::Usage(
                "--since and --until are for counters; single events have times: --from and --to select them".into(),
            )),
            false => Ok(()),
        }
    }
}

fn describe_error(error: &IntervalError, profile: &Profile) -> String {
    match error {
        IntervalError::Reversed => "--since is later than --until".to_owned(),
        IntervalError::UnknownMark(name) => {
            let name = EscapedText(name);
            let marks = profile.marks.as_slice().iter();
            let marks: Vec<_> = marks.map(|mark| describe_mark(&mark.moment)).collect();
            match marks.is_empty() {
                true => format!("no mark {name}: the log has no marks (lucce ctl PID mark NAME)"),
                false => format!("no mark {name}; the log has {}", marks.join(", ")),
            }
        }
    }
}

/// `warm (1.250 s)`
fn describe_mark(mark: &MarkedMoment) -> String {
    let seconds = mark.millis as f64 / 1e3;
    format!("{} ({seconds:.3} s)", EscapedText(&mark.name))
}
