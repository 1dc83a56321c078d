//! Records about the run: its facts, threads, skipped classes and mismatches.

use std::borrow::Cow;

use lucce_callgraph::ContextId;

use super::RecordBody;
use crate::record_codec::{Parsed, RecordDecoder, RecordEncoder};

/// A fact about the run: `jvm`, `command`, `options`, …
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetaRecord<'a> {
    pub key: Cow<'a, str>,
    pub value: Cow<'a, str>,
}

impl<'a> RecordBody<'a> for MetaRecord<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_text(&self.key);
        out.put_text(&self.value);
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(MetaRecord {
            key: input.read_text()?.into(),
            value: input.read_text()?.into(),
        })
    }
}

/// The id of a thread's counters; 0 belongs to no thread. Threads of one kind may share it in succession.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ThreadId(pub u32);

/// The start of a thread, or its name once known. The last record of an id is valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadRecord<'a> {
    pub id: ThreadId,
    pub name: Cow<'a, str>,
    pub is_virtual: bool,
}

impl<'a> RecordBody<'a> for ThreadRecord<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.id.0);
        out.put_text(&self.name);
        out.put_byte(self.is_virtual.into());
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(ThreadRecord {
            id: ThreadId(input.read_small()?),
            name: input.read_text()?.into(),
            is_virtual: input.read_byte()? != 0,
        })
    }
}

/// The end of a thread; another thread of its kind may take over the id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadEnd {
    pub id: ThreadId,
}

impl RecordBody<'_> for ThreadEnd {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.id.0);
    }

    fn decode_fields(input: &mut RecordDecoder<'_>) -> Parsed<Self> {
        Ok(ThreadEnd {
            id: ThreadId(input.read_small()?),
        })
    }
}

/// A context that started a thread. A thread id may stand for several threads in succession.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadOrigin {
    pub thread: ThreadId,
    /// The context id of the `Thread.start` event, in the thread that called it.
    pub context: ContextId,
}

impl RecordBody<'_> for ThreadOrigin {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.thread.0);
        out.put_fixed(self.context.0);
    }

    fn decode_fields(input: &mut RecordDecoder<'_>) -> Parsed<Self> {
        Ok(ThreadOrigin {
            thread: ThreadId(input.read_small()?),
            context: ContextId(input.read_fixed()?),
        })
    }
}

/// A tag of the program under which all events of this thread id happened. A thread id may have several tags; the
/// record precedes the id's first counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadTag<'a> {
    pub thread: ThreadId,
    pub key: Cow<'a, str>,
    pub value: Cow<'a, str>,
}

impl<'a> RecordBody<'a> for ThreadTag<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.thread.0);
        out.put_text(&self.key);
        out.put_text(&self.value);
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(ThreadTag {
            thread: ThreadId(input.read_small()?),
            key: input.read_text()?.into(),
            value: input.read_text()?.into(),
        })
    }
}

/// A context id that did not decode to the JVM's own stack trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MismatchRecord<'a> {
    pub id: ContextId,
    /// The number of the compared event.
    pub at: u64,
    /// The JVM's trace, one frame per line.
    pub expected: Cow<'a, str>,
    /// The decoded trace, one frame per line.
    pub decoded: Cow<'a, str>,
}

impl<'a> RecordBody<'a> for MismatchRecord<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_fixed(self.id.0);
        out.put_number(self.at);
        out.put_text(&self.expected);
        out.put_text(&self.decoded);
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(MismatchRecord {
            id: ContextId(input.read_fixed()?),
            at: input.read_number()?,
            expected: input.read_text()?.into(),
            decoded: input.read_text()?.into(),
        })
    }
}

/// A class or method that runs unchanged, without hooks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkippedRecord<'a> {
    pub class: Cow<'a, str>,
    /// `None`: the whole class.
    pub method: Option<Cow<'a, str>>,
    pub reason: Cow<'a, str>,
}

impl<'a> RecordBody<'a> for SkippedRecord<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_text(&self.class);
        out.put_optional_text(self.method.as_deref());
        out.put_text(&self.reason);
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(SkippedRecord {
            class: input.read_text()?.into(),
            method: input.read_optional_text()?.map(Cow::from),
            reason: input.read_text()?.into(),
        })
    }
}

/// A message of the agent for the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WarningRecord<'a> {
    pub text: Cow<'a, str>,
}

impl<'a> RecordBody<'a> for WarningRecord<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_text(&self.text);
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(WarningRecord {
            text: input.read_text()?.into(),
        })
    }
}

/// A statistic of the agent; the last record of a key is valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatRecord<'a> {
    pub key: Cow<'a, str>,
    pub value: u64,
}

impl<'a> RecordBody<'a> for StatRecord<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_text(&self.key);
        out.put_number(self.value);
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(StatRecord {
            key: input.read_text()?.into(),
            value: input.read_number()?,
        })
    }
}

/// The JVM ended normally. A log without it belongs to a JVM that was killed or still runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndRecord;

impl RecordBody<'_> for EndRecord {
    fn encode_fields(&self, _: &mut RecordEncoder<'_>) {}

    fn decode_fields(_: &mut RecordDecoder<'_>) -> Parsed<Self> {
        Ok(EndRecord)
    }
}
