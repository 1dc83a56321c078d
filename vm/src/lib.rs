//! The VM's interfaces, wrapped as far as the agent uses them. Nothing here knows what the agent is for.

mod field;
mod jvm;

pub mod clock;
pub mod flags;
pub mod gc_counters;
pub mod signals;
pub mod thread_count;

pub use field::Field;
pub use jvm::heap;
pub use jvm::tool_table;
pub use jvm::{Env, Failed, FrameInfo, Jvmti, Vm, c_string, is_slot_cleared};
