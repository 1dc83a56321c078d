//! The VM's interfaces, wrapped as far as the agent uses them. Nothing here knows what the agent is for.

mod field_id;
mod jvm;

pub mod clock;
pub mod flags;
pub mod gc_counters;
pub mod signals;
pub mod thread_allocation;

pub use field_id::FieldId;
pub use jvm::heap;
pub use jvm::tool_table;
pub use jvm::{FrameInfo, JniEnvironment, JvmError, Jvmti, VmHandle, c_string, is_slot_cleared};
