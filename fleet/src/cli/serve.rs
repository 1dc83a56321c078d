//! `lucce fleet serve`: the decoding service.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::access::Access;
use crate::cli::{End, limits};
use crate::engine;
use crate::error::Error;
use crate::http::{Limits, Metrics, Server};
use crate::serve::Service;

/// Serves traces of numbers, answers to questions and their pages by HTTP, until SIGTERM or Ctrl-C. GET /openapi.json says what there is.
#[derive(clap::Args)]
pub struct Args {
    /// The dataset's folder.
    #[arg(env = "LUCCE_FLEET")]
    dataset: PathBuf,
    /// Where it listens; other addresses than those of this machine alone need a token. Port 0: one that is free.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7070")]
    listen: SocketAddr,
    #[command(flatten)]
    access: Access,
    /// Requests that are answered at a time; others are refused with 503.
    #[arg(long, default_value = "4", value_parser = clap::value_parser!(u16).range(1..=256))]
    requests: u16,
    /// Seconds that a question may take.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(1..=3600))]
    time: u32,
    /// What the rows of an answer may have: 64m, 500k; others are refused with 507.
    #[arg(long, value_parser = limits::size, default_value = "64m")]
    answer: usize,
    /// What all questions at a time may use, about: 2g, 500m; what has no room goes to files.
    #[arg(long, value_parser = limits::bytes, default_value = "1g")]
    memory: usize,
    /// Where such files go; else where the system has temporary files.
    #[arg(long)]
    spill: Option<PathBuf>,
    /// Processors that one question uses; else all.
    #[arg(long)]
    threads: Option<usize>,
}

pub fn run(args: &Args) -> Result<End, Error> {
    let token = args.access.token()?;
    let made = args.access.made(token.as_ref());
    let requests = usize::from(args.requests);
    let time = Duration::from_secs(args.time.into());
    let each = engine::Limits {
        memory: Some(args.memory / requests),
        spill: args.spill.clone(),
        threads: args.threads,
        time: Some(time),
    };
    let metrics = Metrics::new("lucce_fleet");
    let service = Service::new(&args.dataset, each, args.answer, metrics.clone())?;
    let limits = Limits {
        requests,
        request: time.max(Limits::default().request),
        ..Limits::default()
    };
    let server = Server::bind(args.listen, token, limits)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", server.address())
        .and_then(|()| made.map_or(Ok(()), |made| writeln!(out, "{made}")))
        .and_then(|()| out.flush())
        .map_err(Error::Output)?;
    drop(out);
    server.run(metrics, move |request| service.answer(request))?;
    Ok(End::Fine)
}
