//! `arch`: what may depend on what (ARCHITECTURE.md): crates, the floors of the agent, the modules of other crates; and whether documents still name
//! files that are there.

mod circles;
mod crates;
mod documents;
mod floors;

use crate::Outcome;

pub use floors::draw;

/// # Errors
/// Names every dependency that must not be, and every file that is not there.
pub fn check() -> Outcome {
    crates::check()?;
    floors::check()?;
    circles::check()?;
    documents::check()
}
