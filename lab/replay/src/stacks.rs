//! The plain stacks of all threads: what every number is compared with.

use lucce_callgraph::{CallEdge, ContextFrame, SiteId};
use lucce_recording::ProgramThreadId;

#[derive(Default)]
pub struct ReplayStacks(Vec<Vec<CallEdge>>);

impl ReplayStacks {
    pub fn stack_mut(&mut self, thread: ProgramThreadId) -> &mut Vec<CallEdge> {
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

    /// The thread's current position; its site is not known between its calls.
    pub fn top_frame(&mut self, thread: ProgramThreadId) -> Option<ContextFrame> {
        let top = self.stack_mut(thread).last()?;
        Some(ContextFrame {
            site: SiteId::NONE,
            method: top.callee,
        })
    }

    /// Innermost first, `place` being the first.
    pub fn plain_frames(
        &mut self,
        thread: ProgramThreadId,
        place: ContextFrame,
    ) -> Vec<ContextFrame> {
        let callers = self.stack_mut(thread).iter().rev();
        let callers = callers
            .filter(|edge| !edge.is_entry())
            .map(|edge| edge.caller_frame());
        [place].into_iter().chain(callers).collect()
    }
}
