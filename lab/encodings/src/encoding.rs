//! The trait of all encodings.

use super::{ContextDecodeError, EncodedContext, EncodingStatistics};
use lucce_callgraph::{CallEdge, ContextFrame, ProgramThreadId};

/// An encoding, which keeps the current calling context of every thread.
///
/// The caller keeps the plain stacks. A thread's first call is its start. `leave_call` returns from the innermost call
/// that was entered. `place` is in the innermost frame.
pub trait ContextEncoding {
    fn name(&self) -> &'static str;

    /// Begins `thread`, started by `parent` at the place of the parent's last call.
    fn start_thread(
        &mut self,
        thread: ProgramThreadId,
        parent: Option<(ProgramThreadId, ContextFrame)>,
    );

    fn enter_call(&mut self, thread: ProgramThreadId, edge: CallEdge);

    /// Returns from `edge`, the innermost call.
    fn leave_call(&mut self, thread: ProgramThreadId, edge: CallEdge);

    /// Ends these calls by an exception; the innermost one is the last of `edges`.
    fn unwind_calls(&mut self, thread: ProgramThreadId, edges: &[CallEdge]) {
        edges
            .iter()
            .rev()
            .for_each(|edge| self.leave_call(thread, *edge));
    }

    /// Returns the encoded context of an event at `place`. The site is [`SiteId::NONE`](lucce_callgraph::SiteId::NONE) if only
    /// the frame is meant.
    fn current_context(&mut self, thread: ProgramThreadId, place: ContextFrame) -> EncodedContext;

    /// Returns the number of entries on the thread's encoding stack.
    fn stack_depth(&self, thread: ProgramThreadId) -> usize {
        let _ = thread;
        0
    }

    /// Returns the frames of the context, innermost first; the first frame is the number's own place.
    ///
    /// # Errors
    /// This encoding did not give the number, or it cannot be decoded.
    fn decode_context(
        &self,
        number: &EncodedContext,
    ) -> Result<Vec<ContextFrame>, ContextDecodeError>;

    /// Whether the encoding's numbers can be decoded.
    fn is_decodable(&self) -> bool {
        true
    }

    /// Returns the context in which a thread was started, if the encoding keeps it.
    fn start_context(&self, thread: ProgramThreadId) -> Option<&EncodedContext> {
        let _ = thread;
        None
    }

    fn collect_statistics(&self) -> EncodingStatistics;
}
