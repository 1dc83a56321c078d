//! `lucce otlp`: sends what a JVM counts to a collector, while the JVM runs.
//!
//! ```text
//! log ─► LogDelta: new events ─► requests of 4 MB ─► collector
//!  ▲              the next reading starts after all were answered
//! JVM, which is not contacted
//! ```
//! The log is the queue: it holds undelivered events, however long the collector is away. Memory holds only the reported
//! counters and one delta.

mod delivery;
mod delivery_deadline;
mod ledger;
mod log_delta;

use std::path::{Path, PathBuf};
use std::time::Duration;

use lucce_control::stop_signal;
use lucce_options::units::{parse_duration, parse_interval};
use lucce_ship::HttpEndpoint;

use self::delivery::{DeliveryEnd, OtlpDelivery};
use self::delivery_deadline::DeliveryDeadline;
use self::log_delta::{LogDelta, LogDeltaReader};
use super::output::{format_plural, lock_stdout, warn_if_readable, write_json};
use super::selection::CountSelection;
use super::target::{TargetArgs, resolve_log};
use super::{CommandError, CommandStatus, prefix_path, print_diagnostic};

/// Send what a JVM counts to an OpenTelemetry collector, until the JVM ends.
///
/// Each request (the profiles signal, v1development, over HTTP) has the counts since the request before; the first has the counts since
/// the start of the JVM. Together they are what `lucce report` prints; live objects and open resources are states. The command reads the log and does not ask the JVM. While the
/// collector is away, the log keeps what is to be sent; the command prints what was not delivered.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce otlp --endpoint http://localhost:4318 1234
  lucce otlp --endpoint http://localhost:4318 --interval 10s com.acme.Server
  lucce otlp --endpoint http://localhost:4318 --event lock --include 'com.acme.*' 1234
  lucce otlp --endpoint http://localhost:4318 run-1234.lucce       sends the counts of an earlier run")]
pub struct OtlpArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Send to this collector: http://HOST:PORT [path: /v1development/profiles]
    #[arg(long, value_name = "URL", value_parser = parse_otlp_url)]
    endpoint: HttpEndpoint,
    /// Time between requests; longer if reading takes over a quarter of it
    #[arg(short, long, value_name = "TIME", default_value = "60s", value_parser = parse_interval)]
    interval: Duration,
    /// Send what was counted until now, and end
    #[arg(long)]
    once: bool,
    /// Maximum time to wait for a collector that is away, after the JVM has ended
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    patience: Duration,
    #[command(flatten)]
    selection: CountSelection,
    /// Add contexts' content ids, equal in every run
    #[arg(long)]
    content_ids: bool,
    /// Add a header to each request; repeatable
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = parse_header)]
    headers: Vec<(String, String)>,
    /// Add the headers of this file, one NAME=VALUE per line; other users can read command lines, and secrets in them
    #[arg(long, value_name = "FILE")]
    header_file: Option<PathBuf>,
    /// Print at the end what was delivered, as one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &OtlpArgs) -> Result<CommandStatus, CommandError> {
    if args.selection.interval.is_named() {
        let text = "--since and --until are for reports: each delivery has what was counted since the last one";
        return Err(CommandError::Usage(text.into()));
    }
    let log = resolve_log(&args.target.jvm)?;
    stop_signal::handle_stop_signals()?;
    let mut looker = LogDeltaReader::new(log.clone(), &args.selection, args.content_ids);
    let mut patience = DeliveryDeadline::new(log.clone(), args.patience);
    let mut headers = args.headers.clone();
    if let Some(file) = &args.header_file {
        headers.extend(read_headers(file)?);
    }
    let mut delivery = OtlpDelivery::new(args.endpoint.clone(), headers);
    let every = args.interval;
    print_diagnostic(format_args!("{} goes to {}", log.display(), args.endpoint));
    let last = loop {
        let is_last = patience.is_over();
        let look = looker
            .read_delta()
            .map_err(|error| CommandError::Open(log.clone(), error))?;
        patience.set_pid(look.pid);
        if args.once || look.ended {
            patience.end_now();
        }
        match delivery.deliver_run(&look.run, &mut patience)? {
            DeliveryEnd::Done => {}
            DeliveryEnd::Useless => return Ok(CommandStatus::Unusable),
            DeliveryEnd::GaveUp(_) => break count_undelivered(&mut looker, &mut delivery, look),
        }
        if is_last || args.once || look.ended {
            break look;
        }
        patience.wait_for_next(looker.poll_interval(every));
    };
    report_delivery(args, &log, &delivery, &last)
}

/// Counts events that arrived during a failed delivery as undelivered also.
fn count_undelivered(
    looker: &mut LogDeltaReader<'_>,
    delivery: &mut OtlpDelivery,
    look: LogDelta,
) -> LogDelta {
    let Ok(more) = looker.read_delta() else {
        return look;
    };
    delivery
        .report
        .undelivered
        .add_rows(&more.run, &more.run.rows);
    more
}

fn report_delivery(
    args: &OtlpArgs,
    log: &Path,
    delivery: &OtlpDelivery,
    last: &LogDelta,
) -> Result<CommandStatus, CommandError> {
    let report = &delivery.report;
    let requests = format_plural(report.requests, "request");
    print_diagnostic(format_args!(
        "delivered by {requests}: {}",
        report.delivered
    ));
    for (what, ledger) in [
        ("not delivered", &report.undelivered),
        ("refused", &report.refused),
    ] {
        if !ledger.is_empty() {
            print_diagnostic(format_args!("{what}: {ledger}"));
        }
    }
    if last.lost > 0 {
        print_diagnostic(prefix_path(
            log,
            format_args!(
                "lacks {} itself (lucce stats)",
                format_plural(last.lost, "event")
            ),
        ));
    }
    if args.json {
        write_json(&mut lock_stdout(), report)?;
    }
    if let Some(damage) = &last.damage {
        print_diagnostic(prefix_path(log, damage));
    }
    if last.unexplained > 0 {
        let events = format_plural(last.unexplained, "event");
        print_diagnostic(prefix_path(
            log,
            format_args!("left out {events} that the log does not explain"),
        ));
    }
    let is_whole =
        report.undelivered.is_empty() && report.refused.is_empty() && report.rejected_profiles == 0;
    Ok(match (&last.damage, is_whole) {
        (Some(_), _) => CommandStatus::Damaged,
        (None, true) => CommandStatus::Fine,
        (None, false) => CommandStatus::Finding,
    })
}

/// Parses a collector's URL; the path defaults to OpenTelemetry's for profiles.
fn parse_otlp_url(url: &str) -> Result<HttpEndpoint, String> {
    HttpEndpoint::parse(url, "/v1development/profiles")
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let is_value = |c: char| c == ' ' || c.is_ascii_graphic();
    if name.is_empty() || !name.chars().all(is_name) || !value.chars().all(is_value) {
        return Err("is no header that a request may have".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn read_headers(file: &Path) -> Result<Vec<(String, String)>, CommandError> {
    let failed = |why: String| CommandError::Usage(prefix_path(file, why));
    let text = std::fs::read_to_string(file).map_err(|e| failed(e.to_string()))?;
    warn_if_readable(Some(file));
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    // A line may be a secret, so it is not printed.
    let parsed =
        lines.map(|line| parse_header(line).map_err(|why| failed(format!("a line {why}"))));
    parsed.collect()
}

#[cfg(test)]
mod otlp_tests {
    use super::*;

    #[test]
    fn headers_are_one_line() {
        let own = ("Authorization".to_owned(), "Basic a=b".to_owned());
        assert_eq!(parse_header("Authorization=Basic a=b"), Ok(own));
        for bad in ["", "a", "=b", "a b=c", "a=b\r\nc: d", "a:=b"] {
            assert!(parse_header(bad).is_err(), "{bad:?}");
        }
    }
}
