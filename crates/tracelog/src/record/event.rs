//! Types of events other than allocations by bytecode, as counted by counters by type.

use std::borrow::Cow;

use super::RecordBody;
use crate::record_codec::{Parsed, RecordDecoder, RecordEncoder};

/// The id of an event type, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct EventTypeId(pub u32);

/// A kind of event and its object. It precedes the first counter with its id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventType<'a> {
    pub id: EventTypeId,
    /// `lock`, `exception`, `call`, …, or a name chosen by the program.
    pub kind: Cow<'a, str>,
    /// Unit of the values: `bytes`, `ns`, or empty.
    pub unit: Cow<'a, str>,
    /// The object of the event: a class's descriptor, `Ljava/lang/String;`, or other text in brackets; empty if none.
    pub detail: Cow<'a, str>,
}

impl<'a> RecordBody<'a> for EventType<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.id.0);
        out.put_text(&self.kind);
        out.put_text(&self.unit);
        out.put_text(&self.detail);
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(EventType {
            id: EventTypeId(input.read_small()?),
            kind: input.read_text()?.into(),
            unit: input.read_text()?.into(),
            detail: input.read_text()?.into(),
        })
    }
}
