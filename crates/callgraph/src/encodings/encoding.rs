//! The trait.

use super::{ContextDecodeError, EncodedContext, EncodingStatistics};
use crate::{CallEdge, ContextFrame};

/// A thread of the program; they are counted from 0, in the order in which they start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ProgramThreadId(pub u32);

/// A way to keep the current calling context of every thread.
///
/// The caller keeps the plain stacks: a thread's first call is its start, `leave` returns from
/// the innermost call that was entered, and `place` lies in the innermost frame.
pub trait ContextEncoding {
    fn name(&self) -> &'static str;

    /// `thread` begins, started by `parent` at the place that it called last from.
    fn start_thread(
        &mut self,
        thread: ProgramThreadId,
        parent: Option<(ProgramThreadId, ContextFrame)>,
    );

    fn enter_call(&mut self, thread: ProgramThreadId, edge: CallEdge);

    /// The innermost call, `edge`, returns.
    fn leave_call(&mut self, thread: ProgramThreadId, edge: CallEdge);

    /// An exception ends these calls, the innermost one last.
    fn unwind_calls(&mut self, thread: ProgramThreadId, edges: &[CallEdge]) {
        edges
            .iter()
            .rev()
            .for_each(|edge| self.leave_call(thread, *edge));
    }

    /// What an event at `place` keeps. The site is [`SiteId::NONE`](crate::SiteId::NONE) if only the
    /// frame is meant.
    fn current_context(&mut self, thread: ProgramThreadId, place: ContextFrame) -> EncodedContext;

    /// How many entries lie on the thread's encoding stack.
    fn stack_depth(&self, thread: ProgramThreadId) -> usize {
        let _ = thread;
        0
    }

    /// The frames of the context, innermost first; the first is the number's own place.
    ///
    /// # Errors
    /// The number is not one that this encoding gave, or it cannot be decoded at all.
    fn decode_context(
        &self,
        number: &EncodedContext,
    ) -> Result<Vec<ContextFrame>, ContextDecodeError>;

    /// Whether its numbers can be decoded.
    fn is_decodable(&self) -> bool {
        true
    }

    /// The context in which a thread was started, if the encoding keeps it.
    fn start_context(&self, thread: ProgramThreadId) -> Option<&EncodedContext> {
        let _ = thread;
        None
    }

    fn collect_statistics(&self) -> EncodingStatistics;
}
