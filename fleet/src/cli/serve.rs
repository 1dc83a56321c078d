//! `lucce fleet serve`: the decoding service.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use lucce_options::units::parse_duration_within;

use crate::cli::access::AccessArgs;
use crate::cli::engine_args;
use crate::engine;
use crate::error::FleetError;
use crate::http::{HttpServer, ServerLimits, ServerMetrics};
use crate::serve::DecodeService;
use crate::store::open_store;
use lucce_command::CommandStatus;

/// Serve traces of numbers, answers to questions and their pages by HTTP, until SIGTERM or Ctrl-C; GET /openapi.json describes it.
#[derive(clap::Args)]
pub struct FleetServeArgs {
    /// Dataset: a folder, or a URL as of `add`
    #[arg(value_name = "DATASET", env = "LUCCE_FLEET")]
    dataset: PathBuf,
    /// Address to listen on; addresses that other machines reach need a token; port 0: a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7070")]
    listen: SocketAddr,
    #[command(flatten)]
    access: AccessArgs,
    /// Maximum number of requests at a time; others are refused with 503
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u16).range(1..=256))]
    requests: u16,
    /// Maximum time of a question, from 1s to 1h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_timeout)]
    timeout: Duration,
    /// Maximum size of an answer's rows; larger ones are refused with 507
    #[arg(long, value_name = "SIZE", value_parser = engine_args::parse_size, default_value = "64m")]
    answer: usize,
    /// Maximum memory of all questions together, about; data beyond it go to files
    #[arg(long, value_name = "SIZE", value_parser = engine_args::parse_memory_size, default_value = "1g")]
    memory: usize,
    /// Folder for these files [default: the system's folder for temporary files]
    #[arg(long, value_name = "FOLDER")]
    spill: Option<PathBuf>,
    /// Number of processors for one question [default: all]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    let range = Duration::from_secs(1)..=Duration::from_secs(3600);
    parse_duration_within(text, range, "from 1s to 1h")
}

pub fn run(args: &FleetServeArgs) -> Result<CommandStatus, FleetError> {
    let token = args.access.load_token()?;
    let token_line = args.access.describe_generated_token(token.as_ref());
    let requests = usize::from(args.requests);
    let time = args.timeout;
    let each = engine::QueryLimits {
        memory: Some(args.memory / requests),
        spill: args.spill.clone(),
        threads: args.threads,
        time: Some(time),
    };
    let metrics = ServerMetrics::new("lucce_fleet");
    let service = DecodeService::new(
        &open_store(&args.dataset)?,
        each,
        args.answer,
        metrics.clone(),
    )?;
    let limits = ServerLimits {
        requests,
        request: time.max(ServerLimits::default().request),
        ..ServerLimits::default()
    };
    let server = HttpServer::bind(args.listen, token, limits)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", server.base_url())
        .and_then(|()| token_line.map_or(Ok(()), |token_line| writeln!(out, "{token_line}")))
        .and_then(|()| out.flush())
        .map_err(FleetError::Output)?;
    drop(out);
    server.run_until_signal(metrics, move |request| service.answer_request(request))?;
    Ok(CommandStatus::Fine)
}
