//! `lucce leaks PID`: what lives is written into the log now.

use lucce_control::LeaksRequest;
use lucce_control::json::Object;
use lucce_vm::Failed;

use crate::session::{Agent, holders};

/// Writes what lives, as far as that is asked for, and says how large the heap is. Sizes are bytes.
///
/// # Errors
/// One line for the user.
pub fn answer(agent: &Agent, request: LeaksRequest) -> Result<String, String> {
    let leaks = agent
        .leaks
        .as_ref()
        .ok_or("no objects are followed: start the JVM with events=leak, or `lucce attach PID --opt events=leak`")?;
    let (used, most) = leaks.heap_bytes();
    let number =
        |number: Option<u64>| number.map_or("null".to_owned(), |number| number.to_string());
    let object = Object::default()
        .raw("heap_bytes", number(used))
        .raw("max_heap_bytes", number(most));
    if request == LeaksRequest::Cost {
        return Ok(object.end());
    }
    let vm = holders::vm().ok_or("the agent does not know its VM")?;
    let failed = |Failed(code)| format!("the VM does not collect (error {code})");
    let collects = request == LeaksRequest::Collect;
    let times = vm
        .in_thread(|env| leaks.look_now(agent, agent.env(env), collects))
        .and_then(|times| times)
        .map_err(failed)?;
    let collection = times.collection.map(|took| took.as_micros() as u64);
    Ok(object
        .raw("millis", times.now.as_millis())
        .raw("collection_us", number(collection))
        .end())
}
