//! Types of events beside allocations by bytecode: what a counter by type counts.

use std::borrow::Cow;

use super::Body;
use crate::wire::{In, Out, Parsed};

/// Counts from 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct EventTypeId(pub u32);

/// A kind of event, and what it happened to. In the log before the first counter of its id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventType<'a> {
    pub id: EventTypeId,
    /// `lock`, `exception`, `call`, …, or a name that the program gave.
    pub kind: Cow<'a, str>,
    /// What values are in: `bytes`, `ns`, or empty.
    pub unit: Cow<'a, str>,
    /// What it happened to: a class's descriptor, `Ljava/lang/String;`, or other text in brackets;
    /// empty: nothing.
    pub detail: Cow<'a, str>,
}

impl<'a> Body<'a> for EventType<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.id.0);
        out.text(&self.kind);
        out.text(&self.unit);
        out.text(&self.detail);
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        Ok(EventType {
            id: EventTypeId(input.small()?),
            kind: input.text()?.into(),
            unit: input.text()?.into(),
            detail: input.text()?.into(),
        })
    }
}
