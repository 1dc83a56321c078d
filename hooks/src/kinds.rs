//! The kinds of events that code tells by its hooks.

/// Which of them hooks are wanted for. Other kinds are told by the VM.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Kinds {
    /// Allocations by Java code.
    pub alloc: bool,
    /// Entries of methods.
    pub call: bool,
    /// Reading and writing files and sockets.
    pub io: bool,
    /// Waiting: parks and monitors.
    pub lock: bool,
    /// Starts of threads, and tasks of executors.
    pub thread: bool,
}
