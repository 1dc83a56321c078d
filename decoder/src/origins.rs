//! Where a thread's trace goes on: in the context that started it, and a task's in the one that submitted it.

use std::collections::HashMap;

use lucce_callgraph::{ContextId, Frame, MethodId, SiteId};
use lucce_tracelog::ThreadId;

use crate::kinds::KNOWN;
use crate::profile::{Profile, StackTrace};

/// More threads that started each other are a damaged log, not a program.
const MOST_THREADS: usize = 1000;

/// What is known of who started the threads in which a context has events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StartedFrom {
    /// The log does not say: the main thread, threads of the VM, or `events=thread` was not asked for.
    Unknown,
    One(ContextId),
    /// Threads of this context were started from several places.
    Several(Vec<ContextId>),
    /// A task that was submitted by a task, and so on: the agent follows so many of them only.
    CutOff,
}

/// The numbers of places where tasks were submitted and threads started, by context and site.
pub struct Submissions(HashMap<(ContextId, SiteId), ContextId>);

/// Where a task was submitted: the submitting frame, its context, and the number if events have it.
struct Submitter {
    context: ContextId,
    frame: Frame,
    number: Option<ContextId>,
}

/// What is behind a thread's own frames.
enum Behind {
    /// The thread's first frame.
    Nothing,
    Submitted(Submitter),
    CutOff,
}

impl Profile {
    /// Where tasks were submitted, for [`started_by`](Self::started_by).
    #[must_use]
    pub fn submissions(&self) -> Submissions {
        let kinds = KNOWN.iter().filter(|kind| kind.starts);
        let numbers = kinds.flat_map(|kind| self.events_of(kind.name).ids());
        let place = |number: ContextId| {
            let (context, frame) = self.graph.caller(number, MethodId::EVENT).ok()??;
            Some(((context, frame.site), number))
        };
        Submissions(numbers.filter_map(place).collect())
    }

    /// Who started the threads that have events of this context.
    #[must_use]
    pub fn origin(&self, id: ContextId) -> StartedFrom {
        let mut threads: Vec<ThreadId> = self.events.of(id).iter().map(|s| s.thread).collect();
        threads.dedup();
        let mut origins = Vec::new();
        for thread in &threads {
            match self.origins.get(thread) {
                Some(of) => origins.extend(of),
                None => return StartedFrom::Unknown,
            }
        }
        origins.sort_unstable();
        origins.dedup();
        match origins.as_slice() {
            [] => StartedFrom::Unknown,
            [one] => StartedFrom::One(*one),
            _ => StartedFrom::Several(origins),
        }
    }

    /// The traces of the thread that submitted the task or started the thread, of the one that started that one, and so
    /// on, as far as each is one; and what ends the row. A trace's number is 0 if no event has it.
    #[must_use]
    pub fn started_by(
        &self,
        submissions: &Submissions,
        id: ContextId,
    ) -> (Vec<StackTrace>, StartedFrom) {
        let mut traces = Vec::new();
        let mut at = (id, MethodId::EVENT);
        let mut number = Some(id);
        while traces.len() < MOST_THREADS {
            let next = match self.behind(submissions, at) {
                Behind::CutOff => return (traces, StartedFrom::CutOff),
                Behind::Submitted(place) => place,
                Behind::Nothing => {
                    let origin = number.map_or(StartedFrom::Unknown, |number| self.origin(number));
                    let StartedFrom::One(next) = origin else {
                        return (traces, origin);
                    };
                    let Ok(Some((context, frame))) = self.graph.caller(next, MethodId::EVENT)
                    else {
                        return (traces, StartedFrom::Unknown);
                    };
                    let number = Some(next);
                    Submitter {
                        context,
                        frame,
                        number,
                    }
                }
            };
            traces.push(self.trace_of(&next));
            at = (next.context, next.frame.method);
            number = next.number;
        }
        (traces, StartedFrom::Unknown)
    }

    /// What is behind the frames of the thread in which a method has a context.
    fn behind(&self, submissions: &Submissions, mut at: (ContextId, MethodId)) -> Behind {
        while let Ok(Some((context, frame))) = self.graph.caller(at.0, at.1) {
            at = (context, frame.method);
            if !self.code.is_between(frame) {
                continue;
            }
            let Ok(Some((context, frame))) = self.graph.caller(at.0, at.1) else {
                return Behind::CutOff;
            };
            let number = submissions.0.get(&(context, frame.site)).copied();
            return Behind::Submitted(Submitter {
                context,
                frame,
                number,
            });
        }
        Behind::Nothing
    }

    fn trace_of(&self, place: &Submitter) -> StackTrace {
        let mut frames = vec![place.frame];
        let mut at = (place.context, place.frame.method);
        while let Ok(Some((context, frame))) = self.graph.caller(at.0, at.1) {
            if self.code.is_between(frame) {
                break;
            }
            frames.push(frame);
            at = (context, frame.method);
        }
        self.shown(place.number.unwrap_or(ContextId::UNKNOWN), frames)
    }
}
