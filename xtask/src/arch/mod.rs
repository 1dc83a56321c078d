//! `arch`: what may depend on what (ARCHITECTURE.md): crates, and the floors of the agent; and whether documents still name
//! files that are there.

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
    documents::check()
}
