//! Wrappers of the VM's interfaces that the agent uses. They do not depend on the agent's purpose.

mod field_id;
mod hidden_signature;
mod jvm;

pub mod clock;
pub mod flags;
pub mod gc_counters;
pub mod signals;
pub mod thread_allocation;
pub mod thread_state;

pub use field_id::FieldId;
pub use jvm::heap;
pub use jvm::tool_table;
pub use jvm::{FrameInfo, JniEnvironment, JvmError, Jvmti, VmHandle, c_string, is_slot_cleared};
