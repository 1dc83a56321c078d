//! One file per verb. Exit codes are those of `lucce` ([`CommandStatus`]).

mod access;
mod add;
mod ask;
mod collect;
mod compact;
mod decode;
mod engine_args;
mod query;
mod serve;
mod views;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lucce_command::exit_codes::exit_codes_help;
use lucce_command::{CommandStatus, is_closed_pipe, print_message};

use crate::error::FleetError;

/// Keep many runs as one dataset: tables in Parquet files, queried by SQL.
#[derive(Parser)]
#[command(
    name = "lucce fleet",
    bin_name = "lucce fleet",
    version,
    after_help = exit_codes_help()
)]
struct FleetCli {
    #[command(subcommand)]
    verb: FleetCommand,
}

#[derive(Subcommand)]
enum FleetCommand {
    Add(add::FleetAddArgs),
    Collect(collect::FleetCollectArgs),
    Compact(compact::FleetCompactArgs),
    Query(query::FleetQueryArgs),
    Serve(serve::FleetServeArgs),
    Ask(ask::FleetAskArgs),
    Decode(decode::FleetDecodeArgs),
    Views(views::FleetViewsArgs),
}

pub fn main() -> ExitCode {
    let ended = match FleetCli::parse().verb {
        FleetCommand::Add(args) => add::run(&args),
        FleetCommand::Collect(args) => collect::run(&args),
        FleetCommand::Compact(args) => compact::run(&args),
        FleetCommand::Query(args) => query::run(&args),
        FleetCommand::Serve(args) => serve::run(&args),
        FleetCommand::Ask(args) => ask::run(&args),
        FleetCommand::Decode(args) => decode::run(&args),
        FleetCommand::Views(args) => views::run(&args),
    };
    let ended = ended.unwrap_or_else(|error| {
        let end = match &error {
            // The reader of a pipe has seen enough.
            FleetError::Output(e) if is_closed_pipe(e) => {
                return CommandStatus::Fine;
            }
            FleetError::Engine(what) if what.contains("Broken pipe") => {
                return CommandStatus::Fine;
            }
            FleetError::Absent(_) => CommandStatus::Finding,
            FleetError::Dataset(..) | FleetError::Collision(_) => CommandStatus::Damaged,
            FleetError::File(..)
            | FleetError::Usage(_)
            | FleetError::Engine(_)
            | FleetError::Time(_)
            | FleetError::Output(_) => CommandStatus::Unusable,
        };
        print_error(error);
        end
    });
    ended.into()
}

/// Prints a message, which may have several lines.
fn print_error(message: impl std::fmt::Display) {
    let message = message.to_string();
    message
        .lines()
        .for_each(|line| print_message("lucce fleet", line));
}
