//! `arch`: what may depend on what (ARCHITECTURE.md): crates, the floors of the agent, files inside crates; and whether
//! documents name files that are there.

mod circles;
mod crates;
mod documents;
mod floors;

use serde_json::Value;

use crate::{Outcome, paths, tools};

pub use floors::{draw, files as source_files};

/// # Errors
/// Names every dependency that must not be, and every file that is not there.
pub fn check() -> Outcome {
    crates::check()?;
    floors::check()?;
    circles::check()?;
    documents::check()
}

/// What cargo says of the workspace's packages.
///
/// # Errors
/// cargo fails.
pub fn metadata() -> Result<Vec<Value>, String> {
    let mut metadata = paths::cargo();
    metadata.args(["metadata", "--no-deps", "--format-version=1"]);
    let mut metadata: Value =
        serde_json::from_slice(&tools::output(&mut metadata)?).map_err(|e| e.to_string())?;
    match metadata["packages"].take() {
        Value::Array(packages) => Ok(packages),
        _ => Err("cargo metadata: no packages".into()),
    }
}
