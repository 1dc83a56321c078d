//! What calls are: the interface between a program's run and what is built from it.

use crate::error::Error;
use crate::ids::{Callee, Label, Thread};

/// Something that hears a program's calls and returns (Section 2), thread by thread.
///
/// Recorded calls are `call` and `leave`. Counted events under known stacks are `context`.
pub trait Listener {
    /// A call begins; by itself it counts nothing.
    ///
    /// # Errors
    /// See [`Error`]; so for all that follows.
    fn enter(&mut self, thread: Thread, callee: Callee) -> Result<(), Error>;

    /// `weight` events happen in the innermost call.
    ///
    /// # Errors
    /// Nothing was entered.
    fn count(&mut self, thread: Thread, weight: u64) -> Result<(), Error>;

    /// The innermost call ends, by a return or an exception.
    ///
    /// # Errors
    /// Nothing was entered.
    fn leave(&mut self, thread: Thread) -> Result<(), Error>;

    /// The stream's clock in nanoseconds since its start. Streams without a clock never say.
    fn time(&mut self, _nanos: u64) {}

    /// `call(x)` of the paper: an activation, which counts 1.
    ///
    /// # Errors
    /// Those of `enter`.
    fn call(&mut self, thread: Thread, callee: Callee) -> Result<(), Error> {
        self.enter(thread, callee)?;
        self.count(thread, 1)
    }

    /// `weight` events under the stack `path`, outermost first.
    ///
    /// # Errors
    /// Those of `enter`; the path is empty.
    fn context(&mut self, thread: Thread, path: &[Label], weight: u64) -> Result<(), Error> {
        for &label in path {
            self.enter(thread, label.into())?;
        }
        self.count(thread, weight)?;
        path.iter().try_for_each(|_| self.leave(thread))
    }
}
