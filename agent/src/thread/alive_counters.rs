//! Counters of the log for what exists now, one for each thread or resource: the log of a killed JVM has them too.
//!
//! The count is 1 while the thing exists. The next one of the same context and type takes the counter over. One more counter has
//! the time of the last change.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use lucce_callgraph::ContextId;
use lucce_tracelog::{CounterBlock, EventCounter, EventTypeId, ThreadId};

use crate::core::AgentCore;

/// Counters of the first block; each further block has twice as many as there are.
const FIRST_COUNTERS: usize = 64;

/// A context and an event type.
pub type AliveKey = (ContextId, EventTypeId);

/// Counters in the log of things that exist now.
pub struct AliveCounters {
    /// Maximum number of counters.
    capacity: usize,
    free: HashMap<AliveKey, Vec<&'static EventCounter>>,
    blocks: Vec<CounterBlock<EventCounter>>,
    /// Counters of the last block that no context has.
    rest: &'static [EventCounter],
    used: usize,
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
            capacity,
            free: HashMap::new(),
            blocks: Vec::new(),
            rest: &[],
            used: 0,
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
        if self.rest.is_empty() {
            let more = self.used.clamp(FIRST_COUNTERS, self.capacity / 4);
            if self.used + more > self.capacity {
                return None;
            }
            let block = core
                .log
                .add_event_counters(ThreadId::default(), more as u32)
                .ok()?;
            #[allow(unsafe_code, reason = "counters in the log's mapped pages")]
            // SAFETY: the block is kept as long as the agent, and no thread counts in it later.
            let counters = unsafe { block.as_static() };
            self.rest = counters;
            self.blocks.push(block);
        }
        let (counter, rest) = self.rest.split_first()?;
        self.rest = rest;
        self.used += 1;
        counter.claim(context, event);
        Some(counter)
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

pub fn milliseconds_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as u64)
}
