//! Types of events beside allocations by bytecode: what a counter by type counts.

use std::borrow::Cow;

use super::RecordBody;
use crate::record_codec::{Parsed, RecordDecoder, RecordEncoder};

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
