//! Counting events: their types, the cells for a place, streams of single events.

pub mod event_types;
pub mod found;
pub mod insert;
pub mod own_kinds;
mod places;
pub mod sizes;
pub mod stream;
pub mod types;

use std::ops::Deref;

use crate::memory::sync;
use crate::stack::Stack;

use event_types::EventTypes;
use own_kinds::OwnKinds;
use types::Types;

pub struct Counting {
    pub stack: Stack,
    pub event_types: EventTypes,
    pub own_kinds: OwnKinds,
    pub types: Types,
}

impl Deref for Counting {
    type Target = Stack;

    fn deref(&self) -> &Stack {
        &self.stack
    }
}

impl Counting {
    pub fn new(stack: Stack) -> Counting {
        Counting {
            stack,
            event_types: EventTypes::default(),
            own_kinds: OwnKinds::default(),
            types: Types::default(),
        }
    }
}
