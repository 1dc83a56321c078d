//! `lucce push --collector`: logs that JVMs have left, to a collector of `lucce fleet`.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lucce_control::stop;
use lucce_ship::spool::{Mark, host, marked};
use lucce_ship::wire::Labels;
use lucce_ship::{Collector, Endpoint, Pace, Sender, token, token_text};
use lucce_tracelog::{Header, OpenError, open_file};

use super::super::output::{plural, tell_open};
use super::super::{End, Failure, about, complain, process};
use super::log;

/// Between two looks at whether to end.
const LOOK: Duration = Duration::from_millis(100);

/// What the dataset is told, where the log's mark does not say it, and how long to wait.
pub struct Wish<'w> {
    pub service: &'w str,
    pub version: &'w str,
    pub token_file: Option<&'w Path>,
    pub patience: Duration,
    /// The program's arguments are sent as they are.
    pub arguments: bool,
}

/// Sends what is in these logs now; of a folder those that were not pushed.
pub fn push(to: &Endpoint, what: &[String], wish: &Wish<'_>) -> Result<End, Failure> {
    stop::listen()?;
    tell_open(wish.token_file);
    let text = token_text(wish.token_file, "LUCCE_PUSH_TOKEN").map_err(Failure::Usage)?;
    let token = text
        .as_deref()
        .map(token)
        .transpose()
        .map_err(Failure::Usage)?;
    let mut collector = Collector::new(to.clone(), token);
    let until = Instant::now() + wish.patience;
    let mut end = End::Fine;
    let logs = logs(what)?;
    let mut events = 0_u64;
    for path in &logs {
        match one(path, wish, &mut collector, until)? {
            Ok(more) => events = events.saturating_add(more),
            Err(why) => {
                complain(about(path, format_args!("not pushed: {why}")));
                end = End::Finding;
            }
        }
    }
    let logs = plural(logs.len() as u64, "log");
    complain(format_args!(
        "{to} has {} of {logs}",
        plural(events, "event")
    ));
    Ok(end)
}

fn logs(what: &[String]) -> Result<Vec<PathBuf>, Failure> {
    let mut logs = Vec::new();
    for asked in what {
        let path = Path::new(asked);
        match path.is_dir() {
            true => logs.extend(
                marked(path).map_err(|error| Failure::Open(path.to_owned(), error.into()))?,
            ),
            false => logs.push(log(asked)?),
        }
    }
    Ok(logs)
}

/// The events that the collector has of a log, or why it does not have them.
fn one(
    path: &Path,
    wish: &Wish<'_>,
    collector: &mut Collector,
    until: Instant,
) -> Result<Result<u64, String>, Failure> {
    let unread = |error: std::io::Error| Failure::Open(path.to_owned(), error.into());
    let file = open_file(path).map_err(unread)?;
    let (run, pid) = match Header::of(&file) {
        Ok(header) => (header.run, header.pid),
        Err(OpenError::Io(error)) => return Ok(Err(error.to_string())),
        Err(error) => return Err(Failure::Open(path.to_owned(), error)),
    };
    let Some(run) = run else {
        return Ok(Err("a log without a run's id".to_owned()));
    };
    let mark = Mark::take(path);
    let labels = mark.as_ref().map(|mark| mark.labels.clone());
    let mut labels = labels.unwrap_or(Labels {
        host: host(),
        ..Labels::default()
    });
    if !wish.service.is_empty() {
        wish.service.clone_into(&mut labels.service);
    }
    if !wish.version.is_empty() {
        wish.version.clone_into(&mut labels.version);
    }
    let mut sender = Sender::new(run, labels);
    if wish.arguments {
        sender = sender.with_arguments();
    }
    let mut pace = Pace::default();
    loop {
        let round = sender.round(&mut |at, to| file.read_exact_at(to, at).is_ok(), collector);
        let fault = match round {
            Ok(round) if round.ended && !process::is_gone(pid, path) => {
                let why = "the collector says that it has this run to its end, and its JVM runs: nothing more was sent";
                return Ok(Err(why.to_owned()));
            }
            Ok(round) => {
                // Of a JVM that runs the mark is its own.
                if let Some(mark) = mark {
                    mark.done();
                }
                return Ok(Ok(round.events));
            }
            Err(fault) => fault,
        };
        let again = Instant::now() + pace.in_vain(fault.asked);
        while Instant::now() < again {
            if stop::is_asked() || Instant::now() >= until {
                return Ok(Err(fault.why));
            }
            std::thread::sleep(LOOK);
        }
    }
}
