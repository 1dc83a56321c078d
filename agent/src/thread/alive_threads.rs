//! Living threads by the context that started them, in counters of the log: the log of a killed JVM has them too.
//!
//! A counter belongs to one thread at a time: its count is 1 while the thread lives, and its value is the thread's start, in
//! milliseconds since 1970. The next thread of the same context takes it over. One more counter has the time of the last start
//! or end of a thread.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use lucce_callgraph::ContextId;
use lucce_tracelog::{EventCounter, EventTypeId};

use crate::core::AgentCore;
use crate::memory::locks::WatchedMutex;
use crate::thread::shared_counters::SharedCounters;

/// The event types of the counters.
#[derive(Clone, Copy, Debug)]
pub struct AliveThreadTypes {
    pub thread: EventTypeId,
    /// Of the counter with the time.
    pub clock: EventTypeId,
}

/// The living threads with a known origin.
#[derive(Default)]
pub struct AliveThreads(WatchedMutex<AliveCounters>);

#[derive(Default)]
struct AliveCounters {
    /// `None`: living threads are not recorded.
    types: Option<AliveThreadTypes>,
    free: HashMap<ContextId, Vec<&'static EventCounter>>,
    shared: SharedCounters,
    clock: Option<&'static EventCounter>,
}

/// The counter of a living thread.
#[derive(Clone, Copy, Debug)]
pub struct AliveThread {
    context: ContextId,
    counter: &'static EventCounter,
}

impl AliveThreads {
    /// Records threads that begin from now on.
    pub fn start_recording(&self, types: AliveThreadTypes) {
        self.0.lock().types = Some(types);
    }

    /// A thread begins that was started in the context `origin`. `None`: it is not recorded.
    pub fn add_thread(&self, core: &AgentCore, origin: ContextId) -> Option<AliveThread> {
        if origin == ContextId::UNKNOWN {
            return None;
        }
        let mut counters = self.0.lock();
        let types = counters.types?;
        let free = counters.free.get_mut(&origin).and_then(Vec::pop);
        let counter = match free {
            Some(counter) => counter,
            None => counters.shared.new_counter(core, origin, types.thread)?,
        };
        let now = milliseconds_now();
        counters.set_clock(core, (origin, types.clock), now);
        counter.value.store(now.to_le(), Ordering::Relaxed);
        counter.count.store(1_u64.to_le(), Ordering::Relaxed);
        Some(AliveThread {
            context: origin,
            counter,
        })
    }

    /// The thread ends.
    pub fn remove_thread(&self, core: &AgentCore, AliveThread { context, counter }: AliveThread) {
        counter.count.store(0, Ordering::Relaxed);
        let mut counters = self.0.lock();
        counters.free.entry(context).or_default().push(counter);
        if let Some(types) = counters.types {
            counters.set_clock(core, (context, types.clock), milliseconds_now());
        }
    }
}

impl AliveCounters {
    fn set_clock(
        &mut self,
        core: &AgentCore,
        (context, event): (ContextId, EventTypeId),
        now: u64,
    ) {
        if self.clock.is_none() {
            self.clock = self.shared.new_counter(core, context, event);
        }
        if let Some(clock) = self.clock {
            clock.value.store(now.to_le(), Ordering::Relaxed);
            clock.count.store(1_u64.to_le(), Ordering::Relaxed);
        }
    }
}

/// Milliseconds since 1970.
pub fn milliseconds_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as u64)
}
