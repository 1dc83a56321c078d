//! Records of marks: what all counters had counted at one moment of the run.

use std::borrow::Cow;

use lucce_callgraph::ContextId;

use super::{EventTypeId, RecordBody, ThreadId};
use crate::record_codec::{Parsed, RecordDecoder, RecordEncoder};

/// What some counters of a thread id had counted at a mark. Its [`MarkRecord`] follows all of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MarkedCounters {
    /// The mark's id.
    pub mark: u32,
    pub thread: ThreadId,
    pub counters: Vec<MarkedCounter>,
}

/// One counter's sums at a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarkedCounter {
    pub context: ContextId,
    /// 0: allocations by bytecode.
    pub event: EventTypeId,
    pub count: u64,
    /// As in the counter: its bytes, or its value in the type's unit.
    pub value: u64,
}

impl RecordBody<'_> for MarkedCounters {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.mark);
        out.put_number(self.thread.0);
        out.put_number(self.counters.len() as u64);
        for counter in &self.counters {
            out.put_fixed(counter.context.0);
            out.put_number(counter.event.0);
            out.put_number(counter.count);
            out.put_number(counter.value);
        }
    }

    fn decode_fields(input: &mut RecordDecoder<'_>) -> Parsed<Self> {
        let (mark, thread) = (input.read_small()?, ThreadId(input.read_small()?));
        let mut counters = Vec::new();
        // A wrong number ends with the record's bytes.
        for _ in 0..input.read_number()? {
            counters.push(MarkedCounter {
                context: ContextId(input.read_fixed()?),
                event: EventTypeId(input.read_small()?),
                count: input.read_number()?,
                value: input.read_number()?,
            });
        }
        Ok(MarkedCounters {
            mark,
            thread,
            counters,
        })
    }
}

/// A named moment of the run. Written last: a mark without it was not finished, and does not exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MarkRecord<'a> {
    pub id: u32,
    /// Whether readers begin to count here, unless their user wants another start.
    pub is_reset: bool,
    /// Nanoseconds from the log's start to the mark.
    pub at_ns: u64,
    /// Number of counters in the mark's [`MarkedCounters`]; without all of them the mark is invalid.
    pub counters: u64,
    pub name: Cow<'a, str>,
}

impl<'a> RecordBody<'a> for MarkRecord<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.id);
        out.put_byte(self.is_reset.into());
        out.put_number(self.at_ns);
        out.put_number(self.counters);
        out.put_text(&self.name);
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(MarkRecord {
            id: input.read_small()?,
            is_reset: input.read_byte()? != 0,
            at_ns: input.read_number()?,
            counters: input.read_number()?,
            name: input.read_text()?.into(),
        })
    }
}
