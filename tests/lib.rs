//! What the whole-system tests stand on: the JDKs, the agent, the command, one run of either.

pub mod cpu_time;
mod json_rows;
mod lucce;
mod run;
mod setup;
mod times;

pub use lucce::{Lucce, head_and_tail};
pub use run::{ALL_REPEATS, COMPILE_PROGRAMS, Ended, Java, LAB_OPTIONS, LIGHT_VM, PATIENCE};
pub use setup::{Jdk, Setup};
pub use times::Times;

/// Why a test failed, in words.
pub type Checked = Result<(), String>;

/// # Errors
/// `message`, if the condition does not hold.
pub fn ensure(condition: bool, message: impl FnOnce() -> String) -> Checked {
    if condition { Ok(()) } else { Err(message()) }
}
