//! Where a thread's trace goes on: in the context that started it.

use lucce_callgraph::ContextId;
use lucce_tracelog::ThreadId;

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
}

impl Profile {
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

    /// The traces of whoever started the thread, of whoever started that thread, and so on, as far as
    /// each is one; and what ends the row.
    #[must_use]
    pub fn started_by(&self, id: ContextId) -> (Vec<StackTrace>, StartedFrom) {
        let (mut traces, mut at) = (Vec::new(), id);
        loop {
            let origin = self.origin(at);
            let StartedFrom::One(next) = origin else {
                return (traces, origin);
            };
            let Ok(trace) = self.trace(next) else {
                return (traces, StartedFrom::Unknown);
            };
            if traces.len() == MOST_THREADS {
                return (traces, StartedFrom::Unknown);
            }
            traces.push(trace);
            at = next;
        }
    }
}
