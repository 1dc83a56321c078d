//! Counters of the log that belong to no thread: their owner decides which thread writes them.

use lucce_callgraph::ContextId;
use lucce_tracelog::{CounterBlock, EventCounter, EventTypeId, ThreadId};

use crate::core::AgentCore;

/// Counters of the first block; each further block has twice as many as there are.
const FIRST_COUNTERS: usize = 64;

/// Counters in blocks of the log.
pub struct SharedCounters {
    /// Maximum number of counters.
    capacity: usize,
    blocks: Vec<CounterBlock<EventCounter>>,
    /// Counters of the last block that no context has.
    rest: &'static [EventCounter],
    used: usize,
}

impl SharedCounters {
    pub fn with_capacity(capacity: usize) -> SharedCounters {
        SharedCounters {
            capacity,
            blocks: Vec::new(),
            rest: &[],
            used: 0,
        }
    }

    /// A new counter of this context and type. `None`: there are too many, or the log is full.
    pub fn new_counter(
        &mut self,
        core: &AgentCore,
        context: ContextId,
        event: EventTypeId,
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
}
