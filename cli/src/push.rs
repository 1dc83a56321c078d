//! `lucce push`: sends the logs of ended JVMs to a collector of `lucce fleet`.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lucce_control::stop_signal;
use lucce_options::units::parse_duration;
use lucce_ship::push_mark::{PushMark, host_name, list_marked_logs};
use lucce_ship::wire::RunLabels;
use lucce_ship::{
    HttpCollectorClient, HttpEndpoint, LogSender, RetryBackoff, parse_token, read_token_text,
};
use lucce_tracelog::{LogHeader, OpenError, open_file};

use super::output::{format_plural, warn_if_readable};
use super::target::resolve_log;
use super::{CommandError, CommandStatus, prefix_path, print_diagnostic, process};

/// Time between two checks for the end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Send logs to `lucce fleet collect`, such as those that killed JVMs left.
///
/// A running JVM sends its log itself with the agent option push=URL; both send the same data, and none twice.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce push --collector http://localhost:4327 /var/log/lucce
  lucce push --collector http://localhost:4327 run-1234.lucce")]
pub struct PushArgs {
    /// Logs of runs, JVMs (process id, main class or jar, or the end of one), or folders, of which the logs are sent that were not pushed
    #[arg(value_name = "JVM|RUN|FOLDER", required = true)]
    runs: Vec<String>,
    /// Send to this collector: http://HOST:PORT
    #[arg(long, value_name = "URL", value_parser = HttpCollectorClient::parse_url)]
    collector: HttpEndpoint,
    /// Name of the program, if its agent gives none [default: none]
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    service: String,
    /// Version of the program, if its agent gives none [default: none]
    #[arg(
        long = "program-version",
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    version: String,
    /// Read the collector's token from this file [default: LUCCE_PUSH_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Maximum time to wait for a collector that is away
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    patience: Duration,
    /// Send the program's arguments instead of `*`
    #[arg(long)]
    arguments: bool,
}

/// Sends the logs as they are now; of a folder, only the logs that were not pushed.
pub fn run(args: &PushArgs) -> Result<CommandStatus, CommandError> {
    let to = &args.collector;
    stop_signal::handle_stop_signals()?;
    warn_if_readable(args.token_file.as_deref());
    let text = read_token_text(args.token_file.as_deref(), "LUCCE_PUSH_TOKEN")
        .map_err(CommandError::Usage)?;
    let token = text
        .as_deref()
        .map(parse_token)
        .transpose()
        .map_err(CommandError::Usage)?;
    let mut collector = HttpCollectorClient::new(to.clone(), token);
    let until = Instant::now() + args.patience;
    let mut end = CommandStatus::Fine;
    let logs = collect_logs(&args.runs)?;
    let mut events = 0_u64;
    for path in &logs {
        match push_log(path, args, &mut collector, until)? {
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
    for target in what {
        let path = Path::new(target);
        match path.is_dir() {
            true => logs.extend(
                list_marked_logs(path)
                    .map_err(|error| CommandError::Open(path.to_owned(), error.into()))?,
            ),
            false => logs.push(resolve_log(target)?),
        }
    }
    Ok(logs)
}

/// Sends a log. Returns the events that the collector has of it, or why it has none.
fn push_log(
    path: &Path,
    args: &PushArgs,
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
    if !args.service.is_empty() {
        args.service.clone_into(&mut labels.service);
    }
    if !args.version.is_empty() {
        args.version.clone_into(&mut labels.version);
    }
    let mut sender = LogSender::new(run, labels);
    if args.arguments {
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
                // The mark of a running JVM's log belongs to its agent.
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
