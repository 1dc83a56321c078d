//! The options `--from`, `--to` and `--thread`: select events of a stream by time and thread.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use lucce_decoder::{
    EventStream, EventWindow, OpenError, Profile, check_same_run, count_streamed_events,
    count_unstreamed_events, events_path, read_header,
};
use lucce_options::units::parse_duration;
use regex_lite::Regex;

use super::{CommandError, CommandStatus, prefix_path, print_diagnostic, report_damage};

/// Which events of a stream are shown.
#[derive(clap::Args, Default)]
pub struct TimeWindowArgs {
    /// Show only events from this time after the start on, e.g. 12.5s (agent option stream=on)
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    from: Option<Duration>,
    /// Show only events before this time after the start
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    to: Option<Duration>,
    /// Show only events of threads with matching names
    #[arg(long, value_name = "REGEX")]
    thread: Option<Regex>,
}

impl TimeWindowArgs {
    pub fn is_unrestricted(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.thread.is_none()
    }

    /// Refuses a window that ends before it begins.
    pub fn check_order(&self) -> Result<(), CommandError> {
        match (self.from, self.to) {
            (Some(from), Some(to)) if from > to => {
                Err(CommandError::Usage("--from is later than --to".into()))
            }
            _ => Ok(()),
        }
    }

    /// Calls `what` with the selected window.
    pub fn with_window<T>(&self, what: impl FnOnce(&EventWindow<'_>) -> T) -> T {
        let is_thread = |name: &str| {
            let thread = self.thread.as_ref();
            thread.is_none_or(|thread| thread.is_match(name))
        };
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        what(&EventWindow {
            times: self.from.map_or(0, nanos)..self.to.map_or(u64::MAX, nanos),
            is_thread: &is_thread,
        })
    }

    /// The stream beside the log, if these options need it, or if it is to be counted anyway.
    pub fn open_stream(
        &self,
        log: &Path,
        is_wanted: bool,
    ) -> Result<Option<EventStream>, CommandError> {
        self.check_order()?;
        let is_wanted = is_wanted || !self.is_unrestricted();
        is_wanted.then(|| read_stream(log)).transpose()
    }

    /// Replaces the profile's events by the selected ones of the stream.
    pub fn apply(
        &self,
        log: &Path,
        profile: &mut Profile,
        stream: Option<EventStream>,
    ) -> Result<CommandStatus, CommandError> {
        let Some(stream) = stream else {
            return Ok(CommandStatus::Fine);
        };
        let end = check_stream(log, profile, &stream)?;
        let (events, unknown) =
            self.with_window(|window| count_streamed_events(profile, &stream, window));
        warn_about_unstreamed(log, profile, &stream);
        profile.events = events;
        Ok(report_damage(&events_path(log), unknown.as_ref(), end))
    }
}

/// Reads the stream beside a log. Read it before the log: while the JVM runs, the later log explains all events of the
/// earlier stream.
pub fn read_stream(log: &Path) -> Result<EventStream, CommandError> {
    let path = events_path(log);
    EventStream::open(&path).map_err(|e| match (read_header(log), e) {
        // Errors of the log come first: a file that is no log has no stream.
        (Err(of_log), _) => CommandError::Open(log.to_owned(), of_log),
        (Ok(_), OpenError::Io(e)) if e.kind() == ErrorKind::NotFound => {
            let text = "No such file or directory: events have times if the run had stream=on";
            CommandError::Usage(prefix_path(&path, text))
        }
        (Ok(_), e) => CommandError::Open(path, e),
    })
}

/// Checks that the log and the stream are of one run, for a command that reads both.
pub fn check_stream(
    log: &Path,
    profile: &Profile,
    stream: &EventStream,
) -> Result<CommandStatus, CommandError> {
    let path = events_path(log);
    match check_same_run(profile, stream) {
        Ok(()) => Ok(report_damage(&path, stream.damage(), CommandStatus::Fine)),
        Err(e) => Err(CommandError::Open(path, e)),
    }
}

/// Warns of counted events that are not in the stream.
pub fn warn_about_unstreamed(log: &Path, profile: &Profile, stream: &EventStream) {
    let Some(full) = stream.full_since() else {
        return;
    };
    let rest = count_unstreamed_events(profile, stream);
    let rest: Vec<_> = rest
        .iter()
        .map(|(kind, count)| format!("{kind} {}", super::output::grouped(*count)))
        .collect();
    let seconds = stream.since_start(full) as f64 / 1e9;
    print_diagnostic(prefix_path(
        &events_path(log),
        format_args!(
            "full since {seconds:.3} s; counted only: {}",
            rest.join(", ")
        ),
    ));
}
