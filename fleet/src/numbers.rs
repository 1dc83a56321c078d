//! From a number in any line of a log to its trace.

use std::path::Path;

use lucce_decoder::{ContextId, Profile, StackTrace};

use crate::commits::DatasetState;
use crate::error::FleetError;
use crate::layout::{DatasetTable, resolve_path};

/// The symbols of a run, which turn each of its numbers into a trace.
///
/// # Errors
/// The dataset does not know the run or does not keep its numbers any more, or the file cannot be read.
pub fn read_symbols(
    dataset: &Path,
    state: &DatasetState,
    run: &str,
) -> Result<Profile, FleetError> {
    let run = run.to_ascii_lowercase();
    if !state.runs.contains_key(&run) {
        return Err(FleetError::Absent(format!(
            "run {run} is not in the dataset"
        )));
    }
    let mut own = state
        .files_of(DatasetTable::Symbols)
        .filter(|entry| entry.run.as_deref() == Some(&run));
    let Some(entry) = own.next() else {
        let what = format!("the numbers of run {run} are not kept any more");
        return Err(FleetError::Absent(what));
    };
    let path = resolve_path(dataset, &entry.path);
    let profile =
        Profile::open(&path).map_err(|e| FleetError::Dataset(path.clone(), e.to_string()))?;
    match &profile.damage {
        Some(damage) => Err(FleetError::Dataset(path, damage.to_string())),
        None => Ok(profile),
    }
}

/// # Errors
/// As [`read_symbols`], or the run has no such number.
pub fn decode_trace(
    dataset: &Path,
    state: &DatasetState,
    run: &str,
    number: ContextId,
) -> Result<StackTrace, FleetError> {
    let profile = read_symbols(dataset, state, run)?;
    profile
        .decode_trace(number)
        .map_err(|e| FleetError::Absent(format!("{}: {e}", profile.context_number(number))))
}
