//! What calls are: the interface between a program's run and what is built from it.

use crate::error::KContextError;
use crate::ids::{CallLabel, LabeledCallee, TraceThreadId};

/// Something that hears a program's calls and returns (Section 2), thread by thread.
///
/// Recorded calls are `call` and `leave`. Counted events under known stacks are `context`.
pub trait CallListener {
    /// A call begins; by itself it counts nothing.
    ///
    /// # Errors
    /// See [`Error`]; so for all that follows.
    fn enter_call(
        &mut self,
        thread: TraceThreadId,
        callee: LabeledCallee,
    ) -> Result<(), KContextError>;

    /// `weight` events happen in the innermost call.
    ///
    /// # Errors
    /// Nothing was entered.
    fn add_count(&mut self, thread: TraceThreadId, weight: u64) -> Result<(), KContextError>;

    /// The innermost call ends, by a return or an exception.
    ///
    /// # Errors
    /// Nothing was entered.
    fn leave_call(&mut self, thread: TraceThreadId) -> Result<(), KContextError>;

    /// The stream's clock in nanoseconds since its start. Streams without a clock never say.
    fn set_time(&mut self, _nanos: u64) {}

    /// `call(x)` of the paper: an activation, which counts 1.
    ///
    /// # Errors
    /// Those of `enter`.
    fn enter_and_count(
        &mut self,
        thread: TraceThreadId,
        callee: LabeledCallee,
    ) -> Result<(), KContextError> {
        self.enter_call(thread, callee)?;
        self.add_count(thread, 1)
    }

    /// `weight` events under the stack `path`, outermost first.
    ///
    /// # Errors
    /// Those of `enter`; the path is empty.
    fn count_context(
        &mut self,
        thread: TraceThreadId,
        path: &[CallLabel],
        weight: u64,
    ) -> Result<(), KContextError> {
        for &label in path {
            self.enter_call(thread, label.into())?;
        }
        self.add_count(thread, weight)?;
        path.iter().try_for_each(|_| self.leave_call(thread))
    }
}
