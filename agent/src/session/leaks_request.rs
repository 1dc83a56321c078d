//! `lucce leaks PID`: writes the living objects to the log now.

use lucce_control::LeaksRequest;
use lucce_control::json::ReplyObject;
use lucce_jvmti::JvmError;

use crate::session::{Agent, holders_request};

/// Writes the living objects if the request asks for it, and answers with the size of the heap in bytes.
///
/// # Errors
/// One line for the user.
pub fn answer_leaks(agent: &Agent, request: LeaksRequest) -> Result<String, String> {
    let leaks = agent
        .leaks
        .as_ref()
        .ok_or("no objects are followed: start the JVM with events=leak, or `lucce attach PID --events leak`")?;
    let (used, most) = leaks.heap_bytes();
    let number =
        |number: Option<u64>| number.map_or("null".to_owned(), |number| number.to_string());
    let object = ReplyObject::default()
        .with_raw("heap_bytes", number(used))
        .with_raw("max_heap_bytes", number(most));
    if request == LeaksRequest::Cost {
        return Ok(object.into_json());
    }
    let vm = holders_request::loading_vm().ok_or("the agent does not know its VM")?;
    let failed = |JvmError(code)| format!("the VM does not collect (error {code})");
    let collects = request == LeaksRequest::Collect;
    let times = vm
        .run_attached(|env| {
            leaks.write_live_objects(agent.counting_parts(), agent.core.jni_env(env), collects)
        })
        .and_then(|times| times)
        .map_err(failed)?;
    let collection = times.collection.map(|took| took.as_micros() as u64);
    Ok(object
        .with_raw("millis", times.now.as_millis())
        .with_raw("collection_us", number(collection))
        .into_json())
}
