//! What happened in a run, one thing after the other.

pub use lucce_callgraph::CallEdge;
pub use lucce_callgraph::ProgramThreadId;

/// Where a thread comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedStart {
    /// The thread that started it. That thread's stack, at this point of the recording, is the
    /// context of the start. `None`: the VM started it, or the context is not known.
    pub parent: Option<ProgramThreadId>,
    /// How many steps the parent had made.
    pub position: u64,
}

/// One step of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordedStep {
    /// The thread's first step.
    Start(RecordedStart),
    Enter(CallEdge),
    /// Something that wants to know its context; the edge's callee is [`MethodId::EVENT`].
    Event(CallEdge),
    /// The innermost frame returns.
    Exit,
    /// An exception ended this many frames, at least 1.
    Unwind(u32),
}
