//! Counting events: their types, the cells for a place, streams of single events.

pub mod counter_lookup;
pub mod event_types;
pub mod object_sizes;
pub mod object_types;
mod places;
pub mod program_kinds;
pub mod site_counter;
pub mod stream;

use std::ops::Deref;

use crate::memory::sync;
use crate::stack::StackTracker;

use event_types::EventTypes;
use object_types::ObjectTypes;
use program_kinds::ProgramKinds;

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
