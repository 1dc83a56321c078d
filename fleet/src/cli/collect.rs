//! `lucce fleet collect`: takes the logs that JVMs send.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lucce_options::units::{parse_duration, parse_interval};
use lucce_ship::wire::{CollectorGeneration, MAX_PART_BYTES};

use crate::cli::access::AccessArgs;
use crate::cli::{engine_args, print_error};
use crate::collect::{
    BatchIngester, BatchReport, LogSpool, PartOutcome, SpoolError, SpoolLimits, parse_run_id,
};
use crate::commits::CommitLog;
use crate::error::FleetError;
use crate::http::{self, HttpServer, ServerMetrics, ServerRequest, ServerResponse};
use crate::store::open_store;
use lucce_command::{CommandStatus, format_plural};

/// Take the logs that JVMs send (`push=` of the agent, `lucce push`): to this disk first, into the dataset by batches.
#[derive(clap::Args)]
pub struct FleetCollectArgs {
    /// Dataset, a folder or a URL as of `add`, which is created if missing
    #[arg(value_name = "DATASET")]
    dataset: PathBuf,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4327")]
    listen: SocketAddr,
    #[command(flatten)]
    access: AccessArgs,
    /// Time between batches
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = parse_interval)]
    interval: Duration,
    /// Name of programs that give none
    #[arg(long, value_name = "NAME", default_value = "unnamed")]
    service: String,
    /// Folder where logs wait; needed for a dataset with a URL [default: `collect` in the dataset]
    #[arg(long, value_name = "FOLDER")]
    spool: Option<PathBuf>,
    /// Maximum size of the waiting logs; beyond it JVMs keep theirs
    #[arg(long, value_name = "SIZE", default_value = "10g", value_parser = engine_args::parse_memory_size)]
    spool_limit: usize,
    /// Maximum size of one JVM's log
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = engine_args::parse_memory_size)]
    largest: usize,
    /// Remove a log from the spool if nothing came for this time; the dataset keeps its data
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = parse_duration)]
    idle: Duration,
    /// Keep the programs' arguments, if their senders show them, instead of `*`
    #[arg(long)]
    arguments: bool,
    /// Add the waiting logs, and end
    #[arg(long)]
    drain: bool,
}

pub fn run(args: &FleetCollectArgs) -> Result<CommandStatus, FleetError> {
    let limits = SpoolLimits {
        log: args.largest as u64,
        all: args.spool_limit as u64,
    };
    let store = open_store(&args.dataset)?;
    let folder = match &args.spool {
        Some(spool) => spool.clone(),
        None => {
            let what = "--spool: which folder? An object store keeps no waiting logs";
            let folder = store.local_folder();
            let folder = folder.ok_or_else(|| FleetError::Usage(what.into()))?;
            folder.join("collect")
        }
    };
    // First: a folder that is no dataset gets no spool.
    CommitLog::open_or_create(&store)?;
    let spool = Arc::new(LogSpool::open(&folder, limits)?);
    let batches = BatchIngester::new(Arc::clone(&spool), &store, &args.service)?;
    let mut batches = batches.with_arguments(args.arguments);
    if args.drain {
        let done = batches.add_waiting_runs(&mut |why| print_error(why));
        println!("{}", describe_batch(&done));
        return Ok(match (done.refused, done.waiting) {
            (0, 0) => CommandStatus::Fine,
            (0, _) => CommandStatus::Unusable,
            (_, _) => CommandStatus::Damaged,
        });
    }
    let token = args.access.load_token()?;
    let token_line = args.access.describe_generated_token(token.as_ref());
    let server = HttpServer::bind(args.listen, token, http::ServerLimits::default())?;
    println!("logs are taken at {}", server.base_url());
    if let Some(token_line) = token_line {
        println!("{token_line}");
    }
    let (every, idle) = (args.interval, args.idle);
    std::thread::Builder::new()
        .name("batches".into())
        .spawn(move || run_batches(&mut batches, every, idle))
        .map_err(FleetError::Output)?;
    let metrics = ServerMetrics::new("lucce_collect");
    let shown = metrics.clone();
    server.run_until_signal(metrics, move |request| {
        handle_request(&spool, &shown, request)
    })?;
    // What was taken is on the disk: the next collector adds it.
    Ok(CommandStatus::Fine)
}

/// For as long as the process lives.
fn run_batches(batches: &mut BatchIngester, every: Duration, idle: Duration) {
    const SWEEP: Duration = Duration::from_secs(3600);
    let mut last = String::new();
    let mut since = SWEEP;
    loop {
        // What failed is tried again, and reported once.
        let mut latest = String::new();
        let mut tell = |why: String| {
            if why != last {
                print_error(&why);
            }
            latest = why;
        };
        let done = batches.add_waiting_runs(&mut tell);
        if since >= SWEEP {
            batches.remove_idle_runs(idle, &mut tell);
            since = Duration::ZERO;
        }
        last = latest;
        if done.runs > 0 {
            // Logs are taken whether somebody reads this or not.
            let _ = writeln!(std::io::stdout(), "{}", describe_batch(&done));
        }
        std::thread::sleep(every);
        since += every;
    }
}

fn describe_batch(done: &BatchReport) -> String {
    let BatchReport {
        runs,
        events,
        ended,
        refused,
        waiting,
    } = done;
    format!(
        "added {} of {}, {ended} ended, {refused} refused, {waiting} wait",
        format_plural(*events, "event"),
        format_plural(*runs, "run")
    )
}

fn handle_request(
    spool: &LogSpool,
    metrics: &ServerMetrics,
    request: &mut ServerRequest,
) -> ServerResponse {
    let method = request.method().to_owned();
    let parts: Vec<String> = request
        .path_parts()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match (method.as_str(), parts.as_slice()) {
        ("GET", ["metrics"]) => ServerResponse::from_metrics(metrics).with_route("metrics"),
        (method, ["v1", "logs", name]) => {
            let Some(run) = parse_run_id(name) else {
                return ServerResponse::from_message(400, "a run is 16 hexadecimal digits")
                    .with_route("logs");
            };
            let answered = match method {
                "GET" => spool.last_generation(run).map(PartOutcome::Stored),
                "POST" => match request.read_body(MAX_PART_BYTES) {
                    Ok(bytes) => spool.store_part(run, &bytes),
                    Err(refused) => return refused.with_route("logs"),
                },
                _ => {
                    return ServerResponse::from_message(
                        405,
                        "GET and POST are what can be done here",
                    )
                    .with_header("Allow", "GET, HEAD, POST")
                    .with_route("logs");
                }
            };
            logs_response(answered).with_route("logs")
        }
        _ => ServerResponse::from_message(404, "there is nothing here"),
    }
}

fn logs_response(answered: Result<PartOutcome, SpoolError>) -> ServerResponse {
    let text =
        |status, known: CollectorGeneration| ServerResponse::from_text(status, known.to_text());
    match answered {
        Ok(PartOutcome::Stored(known)) => text(200, known),
        Ok(PartOutcome::WrongGeneration(known)) => text(409, known),
        Err(SpoolError::Malformed(why)) => ServerResponse::from_message(400, why),
        Err(SpoolError::TooLarge(why)) => ServerResponse::from_message(413, why),
        Err(SpoolError::Full(why)) => {
            ServerResponse::from_message(507, why).with_header("Retry-After", "30")
        }
        Err(SpoolError::Failed(error)) => {
            print_error(format_args!("the spool: {error}"));
            ServerResponse::from_message(500, "the collector cannot keep it")
        }
    }
}
