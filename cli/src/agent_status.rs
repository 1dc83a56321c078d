//! What the agent in a process says of itself.

use std::path::PathBuf;

use lucce_control::{ControlCommand, send_command};
use serde_json::Value;

use crate::CommandError;

/// The path of the log, from the agent in a process.
pub fn log_path_of(pid: u32) -> Result<PathBuf, CommandError> {
    let status = send_command(pid, &ControlCommand::Status)?;
    let status = serde_json::from_str::<Value>(&status).unwrap_or_default();
    read_log_path(&status).ok_or_else(|| {
        CommandError::Usage(format!(
            "the agent in process {pid} does not say where its log is"
        ))
    })
}

/// The path of the log in the agent's status.
pub fn read_log_path(status: &Value) -> Option<PathBuf> {
    status["log"]["file"].as_str().map(PathBuf::from)
}

/// The number of dropped events so far, from the agent in a process. `None`: it does not answer.
pub fn count_dropped_events(pid: u32) -> Option<u64> {
    let status = send_command(pid, &ControlCommand::Status).ok()?;
    let status = serde_json::from_str::<Value>(&status).ok()?;
    status["lost"].as_u64()
}
