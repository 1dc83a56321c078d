//! A recording's steps, handed to an encoding.

use lucce_callgraph::{ContextFrame, SiteId};
use lucce_encodings::ContextEncoding;
use lucce_recording::{ProgramThreadId, Step};

use crate::Tick;
use crate::stacks::Stacks;
use crate::survey::TICK;

/// What is done beside: the encoding has taken the step already.
pub trait Observer {
    fn started(&mut self, at: &mut At<'_>, parent: Option<(ProgramThreadId, ContextFrame)>);

    fn entered(&mut self, at: &mut At<'_>);

    /// A number is asked for.
    fn asked(&mut self, at: &mut At<'_>, place: ContextFrame);
}

/// Where the program is.
pub struct At<'a> {
    pub encoding: &'a mut dyn ContextEncoding,
    pub stacks: &'a mut Stacks,
    pub thread: ProgramThreadId,
}

/// Asks for numbers at events, or at every call.
pub fn feed(
    all: impl Iterator<Item = (ProgramThreadId, Step)>,
    encoding: &mut dyn ContextEncoding,
    at_events: bool,
    observer: &mut impl Observer,
    tick: Tick<'_>,
) {
    let mut stacks = Stacks::default();
    let mut steps = 0u64;
    for (thread, step) in all {
        steps += 1;
        if steps.is_multiple_of(TICK) {
            tick(TICK);
        }
        let mut at = At {
            encoding: &mut *encoding,
            stacks: &mut stacks,
            thread,
        };
        at.take(step, at_events, observer);
    }
}

impl At<'_> {
    fn take(&mut self, step: Step, at_events: bool, observer: &mut impl Observer) {
        match step {
            Step::Start(start) => {
                let parent = start.parent;
                let parent = parent.and_then(|parent| Some((parent, self.stacks.top(parent)?)));
                self.encoding.start_thread(self.thread, parent);
                observer.started(self, parent);
            }
            Step::Enter(edge) => {
                self.encoding.enter_call(self.thread, edge);
                self.stacks.of(self.thread).push(edge);
                observer.entered(self);
                if !at_events {
                    self.ask(SiteId::NONE, observer);
                }
            }
            Step::Event(edge) => self.ask(edge.site, observer),
            Step::Exit => {
                if let Some(edge) = self.stacks.of(self.thread).pop() {
                    self.encoding.leave_call(self.thread, edge);
                }
            }
            Step::Unwind(frames) => {
                let stack = self.stacks.of(self.thread);
                let left = stack.len().saturating_sub(frames as usize);
                let ended = stack.get(left..).unwrap_or_default();
                self.encoding.unwind_calls(self.thread, ended);
                stack.truncate(left);
            }
        }
    }

    fn ask(&mut self, site: SiteId, observer: &mut impl Observer) {
        if let Some(top) = self.stacks.top(self.thread) {
            observer.asked(self, ContextFrame { site, ..top });
        }
    }
}
