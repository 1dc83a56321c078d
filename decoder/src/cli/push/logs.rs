//! `lucce push --collector`: logs that JVMs have left, to a collector of `lucce fleet`.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lucce_control::stop_signal;
use lucce_ship::push_mark::{PushMark, host_name, list_marked_logs};
use lucce_ship::wire::RunLabels;
use lucce_ship::{
    HttpCollectorClient, HttpEndpoint, LogSender, RetryBackoff, parse_token, read_token_text,
};
use lucce_tracelog::{LogHeader, OpenError, open_file};

use super::super::output::{format_plural, warn_if_readable};
use super::super::{CommandError, CommandStatus, prefix_path, print_diagnostic, process};
use super::resolve_log;

/// Between two looks at whether to end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// What the dataset is told, where the log's mark does not say it, and how long to wait.
pub struct LogPushOptions<'w> {
    pub service: &'w str,
    pub version: &'w str,
    pub token_file: Option<&'w Path>,
    pub patience: Duration,
    /// The program's arguments are sent as they are.
    pub arguments: bool,
}

/// Sends what is in these logs now; of a folder those that were not pushed.
pub fn push_logs(
    to: &HttpEndpoint,
    what: &[String],
    wish: &LogPushOptions<'_>,
) -> Result<CommandStatus, CommandError> {
    stop_signal::handle_stop_signals()?;
    warn_if_readable(wish.token_file);
    let text = read_token_text(wish.token_file, "LUCCE_PUSH_TOKEN").map_err(CommandError::Usage)?;
    let token = text
        .as_deref()
        .map(parse_token)
        .transpose()
        .map_err(CommandError::Usage)?;
    let mut collector = HttpCollectorClient::new(to.clone(), token);
    let until = Instant::now() + wish.patience;
    let mut end = CommandStatus::Fine;
    let logs = collect_logs(what)?;
    let mut events = 0_u64;
    for path in &logs {
        match push_log(path, wish, &mut collector, until)? {
            Ok(more) => events = events.saturating_add(more),
            Err(why) => {
                print_diagnostic(prefix_path(path, format_args!("not pushed: {why}")));
                end = CommandStatus::Finding;
            }
        }
    }
    let logs = format_plural(logs.len() as u64, "log");
    print_diagnostic(format_args!(
        "{to} has {} of {logs}",
        format_plural(events, "event")
    ));
    Ok(end)
}

fn collect_logs(what: &[String]) -> Result<Vec<PathBuf>, CommandError> {
    let mut logs = Vec::new();
    for asked in what {
        let path = Path::new(asked);
        match path.is_dir() {
            true => logs.extend(
                list_marked_logs(path)
                    .map_err(|error| CommandError::Open(path.to_owned(), error.into()))?,
            ),
            false => logs.push(resolve_log(asked)?),
        }
    }
    Ok(logs)
}

/// The events that the collector has of a log, or why it does not have them.
fn push_log(
    path: &Path,
    wish: &LogPushOptions<'_>,
    collector: &mut HttpCollectorClient,
    until: Instant,
) -> Result<Result<u64, String>, CommandError> {
    let unread = |error: std::io::Error| CommandError::Open(path.to_owned(), error.into());
    let file = open_file(path).map_err(unread)?;
    let (run, pid) = match LogHeader::read_from(&file) {
        Ok(header) => (header.run, header.pid),
        Err(OpenError::Io(error)) => return Ok(Err(error.to_string())),
        Err(error) => return Err(CommandError::Open(path.to_owned(), error)),
    };
    let Some(run) = run else {
        return Ok(Err("a log without a run's id".to_owned()));
    };
    let mark = PushMark::claim_mark(path);
    let labels = mark.as_ref().map(|mark| mark.labels.clone());
    let mut labels = labels.unwrap_or(RunLabels {
        host: host_name(),
        ..RunLabels::default()
    });
    if !wish.service.is_empty() {
        wish.service.clone_into(&mut labels.service);
    }
    if !wish.version.is_empty() {
        wish.version.clone_into(&mut labels.version);
    }
    let mut sender = LogSender::new(run, labels);
    if wish.arguments {
        sender = sender.with_arguments();
    }
    let mut pace = RetryBackoff::default();
    loop {
        let round =
            sender.send_changes(&mut |at, to| file.read_exact_at(to, at).is_ok(), collector);
        let fault = match round {
            Ok(round) if round.ended && !process::is_gone(pid, path) => {
                let why = "the collector says that it has this run to its end, and its JVM runs: nothing more was sent";
                return Ok(Err(why.to_owned()));
            }
            Ok(round) => {
                // Of a JVM that runs the mark is its own.
                if let Some(mark) = mark {
                    mark.remove_mark();
                }
                return Ok(Ok(round.events));
            }
            Err(fault) => fault,
        };
        let again = Instant::now() + pace.next_delay(fault.retry_after);
        while Instant::now() < again {
            if stop_signal::is_stop_requested() || Instant::now() >= until {
                return Ok(Err(fault.why));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}
