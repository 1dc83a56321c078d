//! Counters of the log for what exists now, one for each thread or resource: the log of a killed JVM has them too.
//!
//! The count is 1 while the thing exists. The next one of the same context and type takes the counter over. One more counter has
//! the time of the last change.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use lucce_callgraph::ContextId;
use lucce_tracelog::{EventCounter, EventTypeId};

use crate::core::AgentCore;
use crate::thread::shared_counters::SharedCounters;

/// A context and an event type.
pub type AliveKey = (ContextId, EventTypeId);

/// Counters in the log of things that exist now.
pub struct AliveCounters {
    free: HashMap<AliveKey, Vec<&'static EventCounter>>,
    shared: SharedCounters,
    clock: Option<&'static EventCounter>,
}

/// The counter of something that exists.
#[derive(Clone, Copy, Debug)]
pub struct AliveCounter {
    key: AliveKey,
    counter: &'static EventCounter,
}

impl AliveCounter {
    pub fn context(&self) -> ContextId {
        self.key.0
    }
}

impl AliveCounters {
    pub fn with_capacity(capacity: usize) -> AliveCounters {
        AliveCounters {
            free: HashMap::new(),
            shared: SharedCounters::with_capacity(capacity),
            clock: None,
        }
    }

    /// Counts one more. `None`: there is no room.
    pub fn add_counter(
        &mut self,
        core: &AgentCore,
        key: AliveKey,
        value: u64,
    ) -> Option<AliveCounter> {
        let free = self.free.get_mut(&key).and_then(Vec::pop);
        let counter = match free {
            Some(counter) => counter,
            None => self.new_counter(core, key)?,
        };
        counter.value.store(value.to_le(), Ordering::Relaxed);
        counter.count.store(1_u64.to_le(), Ordering::Relaxed);
        Some(AliveCounter { key, counter })
    }

    /// It does not exist any more.
    pub fn remove_counter(&mut self, AliveCounter { key, counter }: AliveCounter) {
        counter.count.store(0, Ordering::Relaxed);
        self.free.entry(key).or_default().push(counter);
    }

    /// A new counter, which is never freed. `None`: there is no room.
    pub fn new_counter(
        &mut self,
        core: &AgentCore,
        (context, event): AliveKey,
    ) -> Option<&'static EventCounter> {
        self.shared.new_counter(core, context, event)
    }

    /// Keeps the time of the last change, in milliseconds since 1970.
    pub fn set_clock(&mut self, core: &AgentCore, key: AliveKey, now: u64) {
        if self.clock.is_none() {
            self.clock = self.new_counter(core, key);
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
