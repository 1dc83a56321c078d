//! `lucce fleet serve`: the decoding service.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::access::AccessArgs;
use crate::cli::{FleetExitStatus, engine_args};
use crate::engine;
use crate::error::FleetError;
use crate::http::{HttpServer, ServerLimits, ServerMetrics};
use crate::serve::DecodeService;

/// Serves traces of numbers, answers to questions and their pages by HTTP, until SIGTERM or Ctrl-C. GET /openapi.json says what there is.
#[derive(clap::Args)]
pub struct FleetServeArgs {
    /// The dataset's folder.
    #[arg(env = "LUCCE_FLEET")]
    dataset: PathBuf,
    /// Where it listens; other addresses than those of this machine alone need a token. Port 0: one that is free.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7070")]
    listen: SocketAddr,
    #[command(flatten)]
    access: AccessArgs,
    /// Requests that are answered at a time; others are refused with 503.
    #[arg(long, default_value = "4", value_parser = clap::value_parser!(u16).range(1..=256))]
    requests: u16,
    /// Seconds that a question may take.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(1..=3600))]
    time: u32,
    /// What the rows of an answer may have: 64m, 500k; others are refused with 507.
    #[arg(long, value_parser = engine_args::parse_size, default_value = "64m")]
    answer: usize,
    /// What all questions at a time may use, about: 2g, 500m; what has no room goes to files.
    #[arg(long, value_parser = engine_args::parse_memory_size, default_value = "1g")]
    memory: usize,
    /// Where such files go; else where the system has temporary files.
    #[arg(long)]
    spill: Option<PathBuf>,
    /// Processors that one question uses; else all.
    #[arg(long)]
    threads: Option<usize>,
}

pub fn run(args: &FleetServeArgs) -> Result<FleetExitStatus, FleetError> {
    let token = args.access.load_token()?;
    let made = args.access.describe_generated_token(token.as_ref());
    let requests = usize::from(args.requests);
    let time = Duration::from_secs(args.time.into());
    let each = engine::QueryLimits {
        memory: Some(args.memory / requests),
        spill: args.spill.clone(),
        threads: args.threads,
        time: Some(time),
    };
    let metrics = ServerMetrics::new("lucce_fleet");
    let service = DecodeService::new(&args.dataset, each, args.answer, metrics.clone())?;
    let limits = ServerLimits {
        requests,
        request: time.max(ServerLimits::default().request),
        ..ServerLimits::default()
    };
    let server = HttpServer::bind(args.listen, token, limits)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", server.base_url())
        .and_then(|()| made.map_or(Ok(()), |made| writeln!(out, "{made}")))
        .and_then(|()| out.flush())
        .map_err(FleetError::Output)?;
    drop(out);
    server.run_until_signal(metrics, move |request| service.answer_request(request))?;
    Ok(FleetExitStatus::Fine)
}
