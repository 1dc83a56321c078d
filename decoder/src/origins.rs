//! Continues traces across threads: from a thread to the context that started it, from a task to the context that
//! submitted it.

use std::collections::HashMap;

use lucce_callgraph::{ContextFrame, ContextId, MethodId, SiteId};
use lucce_options::KindDescriptor;
use lucce_tracelog::ThreadId;

use crate::profile::{Profile, StackTrace};

/// Maximum length of a chain of thread starts; a longer one is a damaged log.
const MAX_START_CHAIN: usize = 1000;

/// The contexts that started the threads in which a context has events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StartOrigin {
    /// The log has no origin: the main thread, a thread of the VM, or a run without `events=thread`.
    Unknown,
    One(ContextId),
    /// Threads of this context were started from several places.
    Several(Vec<ContextId>),
    /// A chain of submissions that the agent truncated.
    CutOff,
}

/// Context ids of task submissions and thread starts, by the submitter's context and site.
pub struct SubmissionIndex(HashMap<(ContextId, SiteId), ContextId>);

/// The submitting frame of a task, its context, and its context id if events have it.
struct TaskSubmitter {
    context: ContextId,
    frame: ContextFrame,
    number: Option<ContextId>,
}

/// How a trace continues above a thread's own frames.
enum TraceContinuation {
    /// The thread's first frame.
    Nothing,
    Submitted(TaskSubmitter),
    CutOff,
}

/// Indexes submissions and thread starts, for [`submitter_traces`](Self::submitter_traces).
#[must_use]
pub fn index_submissions(profile: &Profile) -> SubmissionIndex {
    let kinds = KindDescriptor::iter_all().filter(|kind| kind.starts);
    let numbers = kinds.flat_map(|kind| profile.events_of_kind(kind.name).context_ids());
    let place = |number: ContextId| {
        let (context, frame) = profile.graph.find_caller(number, MethodId::EVENT).ok()??;
        Some(((context, frame.site), number))
    };
    SubmissionIndex(numbers.filter_map(place).collect())
}

/// The origin of the threads that have events of this context.
#[must_use]
pub fn find_start_origin(profile: &Profile, id: ContextId) -> StartOrigin {
    let mut threads: Vec<ThreadId> = profile
        .events
        .counters_of_context(id)
        .iter()
        .map(|s| s.thread)
        .collect();
    threads.dedup();
    let mut origins = Vec::new();
    for thread in &threads {
        match profile.origins.get(thread) {
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

/// The traces of the submitting or starting thread, of that thread's submitter, and so on, while each is unique. Also
/// returns what ends the chain. A trace has id 0 if no event has its id.
#[must_use]
pub fn trace_submitters(
    profile: &Profile,
    submissions: &SubmissionIndex,
    id: ContextId,
) -> (Vec<StackTrace>, StartOrigin) {
    let mut traces = Vec::new();
    let mut at = (id, MethodId::EVENT);
    let mut number = Some(id);
    while traces.len() < MAX_START_CHAIN {
        let next = match find_continuation(profile, submissions, at) {
            TraceContinuation::CutOff => return (traces, StartOrigin::CutOff),
            TraceContinuation::Submitted(place) => place,
            TraceContinuation::Nothing => {
                let origin = number.map_or(StartOrigin::Unknown, |number| {
                    find_start_origin(profile, number)
                });
                let StartOrigin::One(next) = origin else {
                    return (traces, origin);
                };
                let Ok(Some((context, frame))) = profile.graph.find_caller(next, MethodId::EVENT)
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
        traces.push(trace_submitter(profile, &next));
        at = (next.context, next.frame.method);
        number = next.number;
    }
    (traces, StartOrigin::Unknown)
}

/// How the trace of a method in a context continues above its thread's frames.
fn find_continuation(
    profile: &Profile,
    submissions: &SubmissionIndex,
    mut at: (ContextId, MethodId),
) -> TraceContinuation {
    while let Ok(Some((context, frame))) = profile.graph.find_caller(at.0, at.1) {
        at = (context, frame.method);
        if !profile.code.is_submission_frame(frame) {
            continue;
        }
        let Ok(Some((context, frame))) = profile.graph.find_caller(at.0, at.1) else {
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

fn trace_submitter(profile: &Profile, place: &TaskSubmitter) -> StackTrace {
    let mut frames = vec![place.frame];
    let mut at = (place.context, place.frame.method);
    while let Ok(Some((context, frame))) = profile.graph.find_caller(at.0, at.1) {
        if profile.code.is_submission_frame(frame) {
            break;
        }
        frames.push(frame);
        at = (context, frame.method);
    }
    profile.resolve_trace(place.number.unwrap_or(ContextId::UNKNOWN), frames)
}
