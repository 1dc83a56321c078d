//! The trait.

use super::{Number, Statistics, Undecodable};
use crate::{Edge, Frame};

/// A thread of the program; they are counted from 0, in the order in which they start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ThreadId(pub u32);

/// A way to keep the current calling context of every thread.
///
/// The caller keeps the plain stacks: a thread's first call is its start, `leave` returns from
/// the innermost call that was entered, and `place` lies in the innermost frame.
pub trait Encoding {
    fn name(&self) -> &'static str;

    /// `thread` begins, started by `parent` at the place that it called last from.
    fn start(&mut self, thread: ThreadId, parent: Option<(ThreadId, Frame)>);

    fn enter(&mut self, thread: ThreadId, edge: Edge);

    /// The innermost call, `edge`, returns.
    fn leave(&mut self, thread: ThreadId, edge: Edge);

    /// An exception ends these calls, the innermost one last.
    fn unwind(&mut self, thread: ThreadId, edges: &[Edge]) {
        edges
            .iter()
            .rev()
            .for_each(|edge| self.leave(thread, *edge));
    }

    /// What an event at `place` keeps. The site is [`SiteId::NONE`](crate::SiteId::NONE) if only the
    /// frame is meant.
    fn current(&mut self, thread: ThreadId, place: Frame) -> Number;

    /// How many entries lie on the thread's encoding stack.
    fn depth(&self, thread: ThreadId) -> usize {
        let _ = thread;
        0
    }

    /// The frames of the context, innermost first; the first is the number's own place.
    ///
    /// # Errors
    /// The number is not one that this encoding gave, or it cannot be decoded at all.
    fn decode(&self, number: &Number) -> Result<Vec<Frame>, Undecodable>;

    /// Whether its numbers can be decoded.
    fn decodes(&self) -> bool {
        true
    }

    /// The context in which a thread was started, if the encoding keeps it.
    fn started(&self, thread: ThreadId) -> Option<&Number> {
        let _ = thread;
        None
    }

    fn statistics(&self) -> Statistics;
}
