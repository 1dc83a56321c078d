//! `lucce fleet collect`: takes the logs that JVMs send.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lucce_ship::wire::{Known, MOST_BYTES};

use crate::cli::access::Access;
use crate::cli::{End, complain, limits, plural};
use crate::collect::{Batches, Done, Limits, Refusal, Spool, Taken, run as run_of};
use crate::error::Error;
use crate::http::{self, Metrics, Request, Response, Server};

/// Takes the logs that JVMs send (`push=` of the agent, `lucce push --collector`): to this disk first, into the dataset by batches.
#[derive(clap::Args)]
pub struct Args {
    /// The dataset's folder, which is made if it is not there.
    dataset: PathBuf,
    /// Where JVMs find the collector.
    #[arg(long, default_value = "127.0.0.1:4327")]
    listen: SocketAddr,
    #[command(flatten)]
    access: Access,
    /// From one batch to the next: 10s, 500ms, 5m.
    #[arg(long, default_value = "10s", value_parser = duration)]
    every: Duration,
    /// What programs are called that do not say it.
    #[arg(long, default_value = "unnamed")]
    service: String,
    /// Where logs wait; else a folder `collect` in the dataset.
    #[arg(long)]
    spool: Option<PathBuf>,
    /// What may wait there; then JVMs keep what they have.
    #[arg(long, default_value = "10g", value_parser = limits::bytes)]
    spool_limit: usize,
    /// The largest log of one JVM.
    #[arg(long, default_value = "1g", value_parser = limits::bytes)]
    largest: usize,
    /// Logs of which nothing came for so long leave the spool: the dataset has what they say.
    #[arg(long, default_value = "7d", value_parser = duration)]
    idle: Duration,
    /// Keep the programs' arguments, if their senders show them; without it `*` stands for each.
    #[arg(long)]
    arguments: bool,
    /// Add what waits, and end.
    #[arg(long)]
    drain: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|why| why.to_string())
}

pub fn run(args: &Args) -> Result<End, Error> {
    let limits = Limits {
        log: args.largest as u64,
        all: args.spool_limit as u64,
    };
    // First: a folder that is no dataset gets no spool.
    crate::commits::Log::open_or_create(&args.dataset)?;
    let folder = match &args.spool {
        Some(spool) => spool.clone(),
        None => args.dataset.join("collect"),
    };
    let spool = Arc::new(Spool::open(&folder, limits)?);
    let batches = Batches::new(Arc::clone(&spool), &args.dataset, &args.service)?;
    let mut batches = batches.with_arguments(args.arguments);
    if args.drain {
        let done = batches.round(&mut |why| complain(why));
        println!("{}", told(&done));
        return Ok(match (done.refused, done.waiting) {
            (0, 0) => End::Fine,
            (0, _) => End::Unusable,
            (_, _) => End::Damaged,
        });
    }
    let token = args.access.token()?;
    let made = args.access.made(token.as_ref());
    let server = Server::bind(args.listen, token, http::Limits::default())?;
    println!("logs are taken at {}", server.address());
    if let Some(made) = made {
        println!("{made}");
    }
    let (every, idle) = (args.every, args.idle);
    std::thread::Builder::new()
        .name("batches".into())
        .spawn(move || add(&mut batches, every, idle))
        .map_err(Error::Output)?;
    let metrics = Metrics::new("lucce_collect");
    let shown = metrics.clone();
    server.run(metrics, move |request| answer(&spool, &shown, request))?;
    // What was taken is on the disk: the next collector adds it.
    Ok(End::Fine)
}

/// For as long as the process lives.
fn add(batches: &mut Batches, every: Duration, idle: Duration) {
    const SWEEP: Duration = Duration::from_secs(3600);
    let mut last = String::new();
    let mut since = SWEEP;
    loop {
        // What was in vain is tried again, and told once.
        let mut said = String::new();
        let mut tell = |why: String| {
            if why != last {
                complain(&why);
            }
            said = why;
        };
        let done = batches.round(&mut tell);
        if since >= SWEEP {
            batches.sweep(idle, &mut tell);
            since = Duration::ZERO;
        }
        last = said;
        if done.runs > 0 {
            println!("{}", told(&done));
        }
        std::thread::sleep(every);
        since += every;
    }
}

fn told(done: &Done) -> String {
    let Done {
        runs,
        events,
        ended,
        refused,
        waiting,
    } = done;
    format!(
        "added {} of {}, {ended} ended, {refused} refused, {waiting} wait",
        plural(*events, "event"),
        plural(*runs, "run")
    )
}

fn answer(spool: &Spool, metrics: &Metrics, request: &mut Request) -> Response {
    let method = request.method().to_owned();
    let parts: Vec<String> = request.parts().into_iter().map(str::to_owned).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match (method.as_str(), parts.as_slice()) {
        ("GET", ["metrics"]) => Response::metrics(metrics).of("metrics"),
        (method, ["v1", "logs", name]) => {
            let Some(run) = run_of(name) else {
                return Response::words(400, "a run is 16 hexadecimal digits").of("logs");
            };
            let answered = match method {
                "GET" => spool.known(run).map(Taken::Yes),
                "POST" => match request.body(MOST_BYTES) {
                    Ok(bytes) => spool.take(run, &bytes),
                    Err(refused) => return refused.of("logs"),
                },
                _ => {
                    return Response::words(405, "GET and POST are what can be done here")
                        .with("Allow", "GET, HEAD, POST")
                        .of("logs");
                }
            };
            logs(answered).of("logs")
        }
        _ => Response::words(404, "there is nothing here"),
    }
}

fn logs(answered: Result<Taken, Refusal>) -> Response {
    let text = |status, known: Known| Response::text(status, known.text());
    match answered {
        Ok(Taken::Yes(known)) => text(200, known),
        Ok(Taken::Other(known)) => text(409, known),
        Err(Refusal::Malformed(why)) => Response::words(400, why),
        Err(Refusal::TooLarge(why)) => Response::words(413, why),
        Err(Refusal::Full(why)) => Response::words(507, why).with("Retry-After", "30"),
        Err(Refusal::Failed(error)) => {
            complain(format_args!("the spool: {error}"));
            Response::words(500, "the collector cannot keep it")
        }
    }
}
