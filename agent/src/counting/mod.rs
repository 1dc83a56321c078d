//! Counting events: event types, the counters of a location, and streams of single events.
//!
//! ```text
//! event ─► counter_lookup, or site_counter from Java's fast path ─► counter of the thread ─► log's mapped pages
//!                 └► event_types: kind + detail ─► id                └► stream: one entry with its time
//! ```
//!
//! Read `event_types` first, then `counter_lookup` and `site_counter`. `object_types` and `object_sizes` find classes and
//! sizes, `program_kinds` the program's own kinds.

pub mod counter_lookup;
pub mod event_types;
pub mod object_sizes;
pub mod object_types;
pub mod program_kinds;
pub mod site_counter;
pub mod stream;

use std::ops::Deref;

use crate::stack::StackTracker;

use event_types::EventTypes;
use object_types::ObjectTypes;
use program_kinds::ProgramKinds;

/// The layer of counting, on top of stack tracking.
pub struct AgentCounting {
    pub stack: StackTracker,
    pub event_types: EventTypes,
    pub program_kinds: ProgramKinds,
    pub object_types: ObjectTypes,
}

impl Deref for AgentCounting {
    type Target = StackTracker;

    fn deref(&self) -> &StackTracker {
        &self.stack
    }
}

impl AgentCounting {
    pub fn new(stack: StackTracker) -> AgentCounting {
        AgentCounting {
            stack,
            event_types: EventTypes::default(),
            program_kinds: ProgramKinds::default(),
            object_types: ObjectTypes::default(),
        }
    }
}
