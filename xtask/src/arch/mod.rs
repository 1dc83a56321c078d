//! `arch`: what may depend on what (ARCHITECTURE.md): crates, and the floors of the agent.

mod crates;
mod floors;

use crate::Outcome;

pub use floors::draw;

/// # Errors
/// Names every dependency that must not be.
pub fn check() -> Outcome {
    crates::check()?;
    floors::check()
}
