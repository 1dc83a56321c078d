//! `lucce fleet decode`: a number of any run.

use std::path::PathBuf;

use lucce_decoder::ContextId;
use lucce_tracelog::ContextNumber;

use lucce_command::CommandStatus;

use crate::commits::CommitLog;
use crate::error::FleetError;
use crate::numbers;
use crate::store::open_store;

/// Print the stack traces of numbers of any runs in the dataset.
#[derive(clap::Args)]
pub struct FleetDecodeArgs {
    /// Dataset: a folder, or a URL as of `add`
    #[arg(long, value_name = "DATASET", env = "LUCCE_FLEET")]
    dataset: PathBuf,
    /// Numbers as a program printed them: lucce:RUN:0xNUMBER
    #[arg(required = true, value_name = "ID")]
    numbers: Vec<String>,
}

pub fn run(args: &FleetDecodeArgs) -> Result<CommandStatus, FleetError> {
    let store = open_store(&args.dataset)?;
    let state = CommitLog::open(&store)?.read_state()?;
    let mut end = CommandStatus::Fine;
    for text in &args.numbers {
        let (run, number) = parse_number(text)?;
        match numbers::decode_trace(&store, &state, &run, number) {
            Ok(trace) => print!("{text}  {}\n{trace}", trace.stack),
            Err(error @ FleetError::Absent(_)) => {
                crate::cli::print_error(format_args!("{text}: {error}"));
                end = CommandStatus::Finding;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(end)
}

/// Run and number.
fn parse_number(text: &str) -> Result<(String, ContextId), FleetError> {
    let place = ContextNumber::places_in(text).next();
    let whole = place.filter(|(at, _)| *at == (0..text.len()));
    match whole.and_then(|(_, number)| Some((number.run?.to_string(), number.id))) {
        Some(number) => Ok(number),
        None => Err(FleetError::Usage(format!(
            "{text}: no number as lucce:RUN:0xNUMBER"
        ))),
    }
}
