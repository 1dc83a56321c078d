//! Counting events: event types, the counters of a location, and streams of single events.
//!
//! ```text
//! event ─► counter_lookup, or site_counter from Java's fast path ─► counter of the thread ─► log's mapped pages
//!                 └► event_types: kind + detail ─► id                └► stream: one entry with its time
//! ```
//!
//! Read `event_types` first, then `counter_lookup` and `site_counter`. `object_types` and `object_sizes` find classes and
//! sizes, `program_kinds` the program's own kinds, `method_times` counters of times. What lives: `class_unloads`,
//! `living_blocks` (memory outside of the heap), `open_resources`. `own_lines` sums allocations for the program itself.

mod block_order;
pub mod class_unloads;
pub mod counter_lookup;
pub mod event_types;
pub mod living_blocks;
pub mod method_times;
pub mod object_sizes;
pub mod object_types;
pub mod open_resources;
pub mod own_lines;
pub mod program_kinds;
pub mod site_counter;
pub mod stream;

use crate::core::AgentCore;
use crate::stack::{StackParts, StackTracker};
use crate::thread::{CounterStore, ThreadParts};

use class_unloads::ClassUnloads;
use event_types::EventTypes;
use living_blocks::LivingBlocks;
use method_times::MethodTimes;
use object_types::ObjectTypes;
use open_resources::OpenResources;
use own_lines::OwnLineCache;
use program_kinds::ProgramKinds;

/// The parts of the agent that the layer of counting uses: its own, and those of the layers below.
#[derive(Clone, Copy)]
pub struct CountingParts<'a> {
    pub core: &'a AgentCore,
    pub counters: &'a CounterStore,
    pub stack: &'a StackTracker,
    pub counting: &'a EventCounting,
}

impl<'a> CountingParts<'a> {
    pub fn thread_parts(self) -> ThreadParts<'a> {
        self.stack_parts().thread_parts()
    }

    pub fn stack_parts(self) -> StackParts<'a> {
        StackParts {
            core: self.core,
            counters: self.counters,
            stack: self.stack,
        }
    }
}

/// Types of events and of objects, and classes that live.
#[derive(Default)]
pub struct EventCounting {
    pub event_types: EventTypes,
    /// Only with `events=native`.
    pub living_blocks: LivingBlocks,
    pub program_kinds: ProgramKinds,
    pub method_times: MethodTimes,
    pub object_types: ObjectTypes,
    pub class_unloads: ClassUnloads,
    pub open_resources: OpenResources,
    pub own_lines: OwnLineCache,
}
