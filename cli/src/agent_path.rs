//! The agent's file that is installed with this program.

use std::env;
use std::path::PathBuf;

use super::CommandError;

const AGENT: &str = "liblucce.so";

/// The path of the agent.
///
/// # Errors
/// It does not exist.
pub fn agent_path() -> Result<PathBuf, CommandError> {
    let agent = agent_beside()?;
    if agent.is_file() {
        return Ok(agent);
    }
    let agent = agent.display();
    Err(CommandError::Usage(format!(
        "{agent} is missing: build it with `cargo build --release`"
    )))
}

/// The path of the agent, if it exists.
pub fn agent_beside() -> Result<PathBuf, CommandError> {
    let program = env::current_exe().and_then(|program| program.canonicalize());
    let program = program
        .map_err(|e| CommandError::Usage(format!("cannot find this program's directory: {e}")))?;
    let beside = program.with_file_name(AGENT);
    // The installed layout: the command in `bin`, the agent in `lib`.
    let installed = program.parent().and_then(|bin| bin.parent());
    let installed = installed.map(|root| root.join("lib").join(AGENT));
    match installed.filter(|agent| !beside.is_file() && agent.is_file()) {
        Some(agent) => Ok(agent),
        None => Ok(beside),
    }
}
