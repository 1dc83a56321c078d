//! The agent in a JVM that runs is asked to write what lives now, behind a collection of the whole heap if the user wants one.

use lucce_control::{Command, LeaksRequest, ask};
use serde::Deserialize;

use super::report::estimated_bytes;
use crate::cli::human::human;
use crate::cli::{Failure, complain};

/// What a collection may take for each byte in use, in nanoseconds. Collections of 53 MB took up to 1.8 with the parallel
/// collector on a busy machine, where arrays of 6 KB lived; small objects take longer.
const NANOS_A_BYTE: f64 = 4.0;

#[derive(Deserialize)]
struct Answer {
    heap_bytes: Option<u64>,
    max_heap_bytes: Option<u64>,
    collection_us: Option<u64>,
}

/// The log has what lives now, if the agent can do that: one that is older or does not listen cannot.
pub fn refresh(pid: u32) {
    let _ = ask(pid, &Command::Leaks(LeaksRequest::Look));
}

/// The JVM collects its whole heap; what that costs is told before and behind.
///
/// # Errors
/// The JVM was not asked, or refused.
pub fn collect(pid: u32) -> Result<(), Failure> {
    let cost = answer(pid, LeaksRequest::Cost)?;
    let heap = match (cost.heap_bytes, cost.max_heap_bytes) {
        (Some(used), Some(most)) => format!(
            "{} of at most {} of the heap in use: the program may stand still for about {}, longer on a busy machine",
            estimated_bytes(used),
            estimated_bytes(most),
            human((used as f64 * NANOS_A_BYTE).max(1e6), "ns")
        ),
        _ => "the program stands still until it has ended".to_owned(),
    };
    complain(format!("JVM {pid} collects its whole heap now; {heap}"));
    let done = answer(pid, LeaksRequest::Collect)?;
    if let Some(micros) = done.collection_us {
        let took = human(micros as f64 * 1e3, "ns");
        complain(format!("the collection took {took}"));
    }
    Ok(())
}

fn answer(pid: u32, request: LeaksRequest) -> Result<Answer, Failure> {
    let answer = ask(pid, &Command::Leaks(request))?;
    serde_json::from_str(&answer)
        .map_err(|error| Failure::Usage(format!("the agent's answer is foreign: {error}")))
}
