//! Living threads by the context that started them, in counters of the log.
//!
//! A counter's value is the thread's start, in milliseconds since 1970.

use lucce_callgraph::ContextId;
use lucce_tracelog::EventTypeId;

use crate::core::AgentCore;
use crate::memory::locks::WatchedMutex;
use crate::thread::alive_counters::{AliveCounter, AliveCounters, milliseconds_now};

/// Maximum number of counters. Further threads are not listed as living.
const MAX_COUNTERS: usize = 1 << 16;

/// The event types of the counters.
#[derive(Clone, Copy, Debug)]
pub struct AliveThreadTypes {
    pub thread: EventTypeId,
    /// Of the counter with the time.
    pub clock: EventTypeId,
}

/// The living threads with a known origin.
#[derive(Default)]
pub struct AliveThreads(WatchedMutex<Option<RecordedThreads>>);

/// `None`: living threads are not recorded.
struct RecordedThreads {
    types: AliveThreadTypes,
    counters: AliveCounters,
}

/// The counter of a living thread.
#[derive(Clone, Copy, Debug)]
pub struct AliveThread(AliveCounter);

impl AliveThreads {
    /// Records threads that begin from now on.
    pub fn start_recording(&self, types: AliveThreadTypes) {
        let counters = AliveCounters::with_capacity(MAX_COUNTERS);
        *self.0.lock() = Some(RecordedThreads { types, counters });
    }

    /// A thread begins that was started in the context `origin`. `None`: it is not recorded.
    pub fn add_thread(&self, core: &AgentCore, origin: ContextId) -> Option<AliveThread> {
        if origin == ContextId::UNKNOWN {
            return None;
        }
        let mut threads = self.0.lock();
        let RecordedThreads { types, counters } = threads.as_mut()?;
        let now = milliseconds_now();
        let counter = counters.add_counter(core, (origin, types.thread), now)?;
        counters.set_clock(core, (origin, types.clock), now);
        Some(AliveThread(counter))
    }

    /// The thread ends.
    pub fn remove_thread(&self, core: &AgentCore, AliveThread(counter): AliveThread) {
        let mut threads = self.0.lock();
        if let Some(RecordedThreads { types, counters }) = threads.as_mut() {
            counters.remove_counter(counter);
            counters.set_clock(core, (counter.context(), types.clock), milliseconds_now());
        }
    }
}
