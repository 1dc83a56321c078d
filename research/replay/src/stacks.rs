//! The plain stacks of all threads: what every number is compared with.

use lucce_callgraph::{Edge, Frame, SiteId};
use lucce_recording::ThreadId;

#[derive(Default)]
pub struct Stacks(Vec<Vec<Edge>>);

impl Stacks {
    pub fn of(&mut self, thread: ThreadId) -> &mut Vec<Edge> {
        let index = thread.0 as usize;
        if index >= self.0.len() {
            self.0.resize_with(index + 1, Vec::new);
        }
        match self.0.get_mut(index) {
            Some(stack) => stack,
            // The vector was just made long enough.
            None => unreachable!(),
        }
    }

    /// Where the thread stands; its site is not known between its calls.
    pub fn top(&mut self, thread: ThreadId) -> Option<Frame> {
        let top = self.of(thread).last()?;
        Some(Frame {
            site: SiteId::NONE,
            method: top.callee,
        })
    }

    /// Innermost first, `place` being the first.
    pub fn frames(&mut self, thread: ThreadId, place: Frame) -> Vec<Frame> {
        let callers = self.of(thread).iter().rev();
        let callers = callers
            .filter(|edge| !edge.is_entry())
            .map(|edge| edge.place());
        [place].into_iter().chain(callers).collect()
    }
}
