//! `lucce fleet decode`: a number of any run.

use std::path::PathBuf;

use lucce_decoder::ContextId;
use lucce_tracelog::Number;

use crate::cli::End;
use crate::commits::Log;
use crate::error::Error;
use crate::numbers;

/// Prints the traces of numbers of any runs that are in the dataset.
#[derive(clap::Args)]
pub struct Args {
    /// The dataset's folder.
    #[arg(long, env = "LUCCE_FLEET")]
    dataset: PathBuf,
    /// As a program printed them: lucce:RUN:0xNUMBER.
    #[arg(required = true)]
    numbers: Vec<String>,
}

pub fn run(args: &Args) -> Result<End, Error> {
    let state = Log::open(&args.dataset)?.state()?;
    let mut end = End::Fine;
    for text in &args.numbers {
        let (run, number) = parse(text)?;
        match numbers::trace(&args.dataset, &state, &run, number) {
            Ok(trace) => print!("{text}  {}\n{trace}", trace.stack),
            Err(error @ Error::Absent(_)) => {
                crate::cli::complain(format_args!("{text}: {error}"));
                end = End::Finding;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(end)
}

/// Run and number.
fn parse(text: &str) -> Result<(String, ContextId), Error> {
    let found = Number::places_in(text).next();
    let whole = found.filter(|(at, _)| *at == (0..text.len()));
    match whole.and_then(|(_, number)| Some((number.run?.to_string(), number.id))) {
        Some(found) => Ok(found),
        None => Err(Error::Usage(format!(
            "{text}: no number as lucce:RUN:0xNUMBER"
        ))),
    }
}
