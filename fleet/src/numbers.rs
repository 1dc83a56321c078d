//! From a number in any line of a log to its trace.

use lucce_decoder::{ContextId, Profile, StackTrace};

use crate::commits::DatasetState;
use crate::error::FleetError;
use crate::layout::DatasetTable;
use crate::store::SharedStore;

/// The symbols of a run, which turn each of its numbers into a trace.
///
/// # Errors
/// The dataset does not know the run or does not keep its numbers any more, or the file cannot be read.
pub fn read_symbols(
    store: &SharedStore,
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
    let file = store.fetch_file(&entry.path)?;
    let damaged = |what: String| FleetError::Dataset(file.name().to_owned(), what);
    let profile = Profile::open(file.path()).map_err(|e| damaged(e.to_string()))?;
    match &profile.damage {
        Some(damage) => Err(damaged(damage.to_string())),
        None => Ok(profile),
    }
}

/// # Errors
/// As [`read_symbols`], or the run has no such number.
pub fn decode_trace(
    store: &SharedStore,
    state: &DatasetState,
    run: &str,
    number: ContextId,
) -> Result<StackTrace, FleetError> {
    let profile = read_symbols(store, state, run)?;
    profile
        .decode_trace(number)
        .map_err(|e| FleetError::Absent(format!("{}: {e}", profile.context_number(number))))
}
