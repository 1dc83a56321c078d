//! One file per verb. Exit codes are those of `lucce`: 0 fine, 1 what was asked for is not there, 2 usage or a file that cannot be read
//! or written, 3 a damaged or foreign log, or a damaged dataset.

mod access;
mod add;
mod ask;
mod collect;
mod compact;
mod decode;
mod limits;
mod query;
mod serve;
mod views;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lucce_decoder::escape::Line;

use crate::error::Error;

/// Many runs as one dataset: tables in Parquet files, asked by SQL.
#[derive(Parser)]
#[command(
    name = "lucce fleet",
    bin_name = "lucce fleet",
    version,
    after_help = "Exit codes: 0 fine; 1 what was asked for is not there; 2 usage; 3 damaged or foreign log."
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Add(add::Args),
    Collect(collect::Args),
    Compact(compact::Args),
    Query(query::Args),
    Serve(serve::Args),
    Ask(ask::Args),
    Decode(decode::Args),
    Views(views::Args),
}

/// How a verb ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Fine = 0,
    Finding = 1,
    Unusable = 2,
    Damaged = 3,
}

pub fn main() -> ExitCode {
    let ended = match Cli::parse().verb {
        Verb::Add(args) => add::run(&args),
        Verb::Collect(args) => collect::run(&args),
        Verb::Compact(args) => compact::run(&args),
        Verb::Query(args) => query::run(&args),
        Verb::Serve(args) => serve::run(&args),
        Verb::Ask(args) => ask::run(&args),
        Verb::Decode(args) => decode::run(&args),
        Verb::Views(args) => views::run(&args),
    };
    let ended = ended.unwrap_or_else(|error| {
        let end = match &error {
            // The reader of a pipe has seen enough.
            Error::Output(e) if e.kind() == io::ErrorKind::BrokenPipe => return End::Fine,
            Error::Engine(what) if what.contains("Broken pipe") => return End::Fine,
            Error::Absent(_) => End::Finding,
            Error::Dataset(..) | Error::Collision(_) => End::Damaged,
            Error::File(..)
            | Error::Usage(_)
            | Error::Engine(_)
            | Error::Time(_)
            | Error::Output(_) => End::Unusable,
        };
        complain(error);
        end
    });
    ExitCode::from(ended as u8)
}

/// On standard error, whatever names it holds; what the engine says may have several lines.
fn complain(message: impl std::fmt::Display) {
    let message = message.to_string();
    for line in message.lines() {
        // No reader is left to hear of it if this fails.
        let _ = writeln!(io::stderr(), "lucce fleet: {}", Line(line));
    }
}

fn plural(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
