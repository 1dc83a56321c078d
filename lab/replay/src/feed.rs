//! A recording's steps, handed to an encoding.

use lucce_callgraph::{ContextFrame, SiteId};
use lucce_encodings::ContextEncoding;
use lucce_recording::{ProgramThreadId, RecordedStep};

use crate::Tick;
use crate::stacks::ReplayStacks;
use crate::survey::TICK;

/// What is done beside: the encoding has taken the step already.
pub trait ReplayObserver {
    fn thread_started(
        &mut self,
        at: &mut ReplayPosition<'_>,
        parent: Option<(ProgramThreadId, ContextFrame)>,
    );

    fn call_entered(&mut self, at: &mut ReplayPosition<'_>);

    /// A number is requested.
    fn event_reached(&mut self, at: &mut ReplayPosition<'_>, place: ContextFrame);
}

/// Where the program is.
pub struct ReplayPosition<'a> {
    pub encoding: &'a mut dyn ContextEncoding,
    pub stacks: &'a mut ReplayStacks,
    pub thread: ProgramThreadId,
}

/// Asks for numbers at events, or at every call.
pub fn replay_steps(
    all: impl Iterator<Item = (ProgramThreadId, RecordedStep)>,
    encoding: &mut dyn ContextEncoding,
    at_events: bool,
    observer: &mut impl ReplayObserver,
    tick: Tick<'_>,
) {
    let mut stacks = ReplayStacks::default();
    let mut steps = 0u64;
    for (thread, step) in all {
        steps += 1;
        if steps.is_multiple_of(TICK) {
            tick(TICK);
        }
        let mut at = ReplayPosition {
            encoding: &mut *encoding,
            stacks: &mut stacks,
            thread,
        };
        at.replay_step(step, at_events, observer);
    }
}

impl ReplayPosition<'_> {
    fn replay_step(
        &mut self,
        step: RecordedStep,
        at_events: bool,
        observer: &mut impl ReplayObserver,
    ) {
        match step {
            RecordedStep::Start(start) => {
                let parent = start.parent;
                let parent =
                    parent.and_then(|parent| Some((parent, self.stacks.top_frame(parent)?)));
                self.encoding.start_thread(self.thread, parent);
                observer.thread_started(self, parent);
            }
            RecordedStep::Enter(edge) => {
                self.encoding.enter_call(self.thread, edge);
                self.stacks.stack_mut(self.thread).push(edge);
                observer.call_entered(self);
                if !at_events {
                    self.report_event(SiteId::NONE, observer);
                }
            }
            RecordedStep::Event(edge) => self.report_event(edge.site, observer),
            RecordedStep::Exit => {
                if let Some(edge) = self.stacks.stack_mut(self.thread).pop() {
                    self.encoding.leave_call(self.thread, edge);
                }
            }
            RecordedStep::Unwind(frames) => {
                let stack = self.stacks.stack_mut(self.thread);
                let left = stack.len().saturating_sub(frames as usize);
                let ended = stack.get(left..).unwrap_or_default();
                self.encoding.unwind_calls(self.thread, ended);
                stack.truncate(left);
            }
        }
    }

    fn report_event(&mut self, site: SiteId, observer: &mut impl ReplayObserver) {
        if let Some(top) = self.stacks.top_frame(self.thread) {
            observer.event_reached(self, ContextFrame { site, ..top });
        }
    }
}
