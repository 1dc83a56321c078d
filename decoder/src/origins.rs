//! Where a thread's trace goes on: in the context that started it, and a task's in the one that submitted it.

use std::collections::HashMap;

use lucce_callgraph::{ContextFrame, ContextId, MethodId, SiteId};
use lucce_tracelog::ThreadId;

use crate::kinds::KIND_DESCRIPTORS;
use crate::profile::{Profile, StackTrace};

/// More threads that started each other are a damaged log, not a program.
const MAX_START_CHAIN: usize = 1000;

/// What is known of who started the threads in which a context has events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StartOrigin {
    /// The log does not say: the main thread, threads of the VM, or `events=thread` was not asked for.
    Unknown,
    One(ContextId),
    /// Threads of this context were started from several places.
    Several(Vec<ContextId>),
    /// A task that was submitted by a task, and so on: the agent follows so many of them only.
    CutOff,
}

/// The numbers of places where tasks were submitted and threads started, by context and site.
pub struct SubmissionIndex(HashMap<(ContextId, SiteId), ContextId>);

/// Where a task was submitted: the submitting frame, its context, and the number if events have it.
struct TaskSubmitter {
    context: ContextId,
    frame: ContextFrame,
    number: Option<ContextId>,
}

/// What is behind a thread's own frames.
enum TraceContinuation {
    /// The thread's first frame.
    Nothing,
    Submitted(TaskSubmitter),
    CutOff,
}

impl Profile {
    /// Where tasks were submitted, for [`submitter_traces`](Self::submitter_traces).
    #[must_use]
    pub fn index_submissions(&self) -> SubmissionIndex {
        let kinds = KIND_DESCRIPTORS.iter().filter(|kind| kind.starts);
        let numbers = kinds.flat_map(|kind| self.events_of_kind(kind.name).context_ids());
        let place = |number: ContextId| {
            let (context, frame) = self.graph.find_caller(number, MethodId::EVENT).ok()??;
            Some(((context, frame.site), number))
        };
        SubmissionIndex(numbers.filter_map(place).collect())
    }

    /// Who started the threads that have events of this context.
    #[must_use]
    pub fn start_origin(&self, id: ContextId) -> StartOrigin {
        let mut threads: Vec<ThreadId> = self
            .events
            .counters_of_context(id)
            .iter()
            .map(|s| s.thread)
            .collect();
        threads.dedup();
        let mut origins = Vec::new();
        for thread in &threads {
            match self.origins.get(thread) {
                Some(of) => origins.extend(of),
                None => return StartOrigin::Unknown,
            }
        }
        origins.sort_unstable();
        origins.dedup();
        match origins.as_slice() {
            [] => StartOrigin::Unknown,
            [one] => StartOrigin::One(*one),
            _ => StartOrigin::Several(origins),
        }
    }

    /// The traces of the thread that submitted the task or started the thread, of the one that started that one, and so
    /// on, as far as each is one; and what ends the row. A trace's number is 0 if no event has it.
    #[must_use]
    pub fn submitter_traces(
        &self,
        submissions: &SubmissionIndex,
        id: ContextId,
    ) -> (Vec<StackTrace>, StartOrigin) {
        let mut traces = Vec::new();
        let mut at = (id, MethodId::EVENT);
        let mut number = Some(id);
        while traces.len() < MAX_START_CHAIN {
            let next = match self.find_continuation(submissions, at) {
                TraceContinuation::CutOff => return (traces, StartOrigin::CutOff),
                TraceContinuation::Submitted(place) => place,
                TraceContinuation::Nothing => {
                    let origin =
                        number.map_or(StartOrigin::Unknown, |number| self.start_origin(number));
                    let StartOrigin::One(next) = origin else {
                        return (traces, origin);
                    };
                    let Ok(Some((context, frame))) = self.graph.find_caller(next, MethodId::EVENT)
                    else {
                        return (traces, StartOrigin::Unknown);
                    };
                    let number = Some(next);
                    TaskSubmitter {
                        context,
                        frame,
                        number,
                    }
                }
            };
            traces.push(self.submitter_trace(&next));
            at = (next.context, next.frame.method);
            number = next.number;
        }
        (traces, StartOrigin::Unknown)
    }

    /// What is behind the frames of the thread in which a method has a context.
    fn find_continuation(
        &self,
        submissions: &SubmissionIndex,
        mut at: (ContextId, MethodId),
    ) -> TraceContinuation {
        while let Ok(Some((context, frame))) = self.graph.find_caller(at.0, at.1) {
            at = (context, frame.method);
            if !self.code.is_submission_frame(frame) {
                continue;
            }
            let Ok(Some((context, frame))) = self.graph.find_caller(at.0, at.1) else {
                return TraceContinuation::CutOff;
            };
            let number = submissions.0.get(&(context, frame.site)).copied();
            return TraceContinuation::Submitted(TaskSubmitter {
                context,
                frame,
                number,
            });
        }
        TraceContinuation::Nothing
    }

    fn submitter_trace(&self, place: &TaskSubmitter) -> StackTrace {
        let mut frames = vec![place.frame];
        let mut at = (place.context, place.frame.method);
        while let Ok(Some((context, frame))) = self.graph.find_caller(at.0, at.1) {
            if self.code.is_submission_frame(frame) {
                break;
            }
            frames.push(frame);
            at = (context, frame.method);
        }
        self.resolve_trace(place.number.unwrap_or(ContextId::UNKNOWN), frames)
    }
}
