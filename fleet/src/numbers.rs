//! From a number in any line of a log to its trace.

use std::path::Path;

use lucce_decoder::{ContextId, Profile, StackTrace};

use crate::commits::State;
use crate::error::Error;
use crate::layout::{Table, file};

/// The symbols of a run, which turn each of its numbers into a trace.
///
/// # Errors
/// The dataset does not know the run or does not keep its numbers any more, or the file cannot be read.
pub fn symbols(dataset: &Path, state: &State, run: &str) -> Result<Profile, Error> {
    let run = run.to_ascii_lowercase();
    if !state.runs.contains_key(&run) {
        return Err(Error::Absent(format!("run {run} is not in the dataset")));
    }
    let mut own = state
        .of(Table::Symbols)
        .filter(|entry| entry.run.as_deref() == Some(&run));
    let Some(entry) = own.next() else {
        let what = format!("the numbers of run {run} are not kept any more");
        return Err(Error::Absent(what));
    };
    let path = file(dataset, &entry.path);
    let profile = Profile::open(&path).map_err(|e| Error::Dataset(path.clone(), e.to_string()))?;
    match &profile.damage {
        Some(damage) => Err(Error::Dataset(path, damage.to_string())),
        None => Ok(profile),
    }
}

/// # Errors
/// As [`symbols`], or the run has no such number.
pub fn trace(
    dataset: &Path,
    state: &State,
    run: &str,
    number: ContextId,
) -> Result<StackTrace, Error> {
    let profile = symbols(dataset, state, run)?;
    profile
        .trace(number)
        .map_err(|e| Error::Absent(format!("{}: {e}", profile.number(number))))
}
