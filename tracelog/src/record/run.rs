//! What happened in the run: its facts, threads, losses and findings.

use std::borrow::Cow;

use lucce_callgraph::ContextId;

use super::Body;
use crate::wire::{In, Out, Parsed};

/// A fact about the run: `jvm`, `command`, `options`, …
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meta<'a> {
    pub key: Cow<'a, str>,
    pub value: Cow<'a, str>,
}

impl<'a> Body<'a> for Meta<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        out.text(&self.key);
        out.text(&self.value);
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        Ok(Meta {
            key: input.text()?.into(),
            value: input.text()?.into(),
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ThreadId(pub u32);

/// A thread began, or its name became known: the last record of an id holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thread<'a> {
    pub id: ThreadId,
    pub name: Cow<'a, str>,
    pub is_virtual: bool,
}

impl<'a> Body<'a> for Thread<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.id.0);
        out.text(&self.name);
        out.byte(self.is_virtual.into());
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        Ok(Thread {
            id: ThreadId(input.small()?),
            name: input.text()?.into(),
            is_virtual: input.byte()? != 0,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadEnd {
    pub id: ThreadId,
}

impl Body<'_> for ThreadEnd {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.id.0);
    }

    fn decode(input: &mut In<'_>) -> Parsed<Self> {
        Ok(ThreadEnd {
            id: ThreadId(input.small()?),
        })
    }
}

/// A context that started a thread. A thread id may stand for several threads, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadOrigin {
    pub thread: ThreadId,
    /// A number for an event, in the thread that called `Thread.start`.
    pub context: ContextId,
}

impl Body<'_> for ThreadOrigin {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.thread.0);
        out.fixed(self.context.0);
    }

    fn decode(input: &mut In<'_>) -> Parsed<Self> {
        Ok(ThreadOrigin {
            thread: ThreadId(input.small()?),
            context: ContextId(input.fixed()?),
        })
    }
}

/// All that is counted under this thread id happened under a tag of the program's own; a thread id may have several. It
/// comes before the id's first counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadTag<'a> {
    pub thread: ThreadId,
    pub key: Cow<'a, str>,
    pub value: Cow<'a, str>,
}

impl<'a> Body<'a> for ThreadTag<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.thread.0);
        out.text(&self.key);
        out.text(&self.value);
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        Ok(ThreadTag {
            thread: ThreadId(input.small()?),
            key: input.text()?.into(),
            value: input.text()?.into(),
        })
    }
}

/// A number that did not decode to the JVM's own stack trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch<'a> {
    pub id: ContextId,
    /// The number of the event that was compared.
    pub at: u64,
    /// The JVM's trace, one frame per line.
    pub expected: Cow<'a, str>,
    /// The number's trace, one frame per line.
    pub decoded: Cow<'a, str>,
}

impl<'a> Body<'a> for Mismatch<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        out.fixed(self.id.0);
        out.num(self.at);
        out.text(&self.expected);
        out.text(&self.decoded);
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        Ok(Mismatch {
            id: ContextId(input.fixed()?),
            at: input.num()?,
            expected: input.text()?.into(),
            decoded: input.text()?.into(),
        })
    }
}

/// A class or method that runs as it was, without hooks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skipped<'a> {
    pub class: Cow<'a, str>,
    /// `None`: the whole class.
    pub method: Option<Cow<'a, str>>,
    pub reason: Cow<'a, str>,
}

impl<'a> Body<'a> for Skipped<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        out.text(&self.class);
        out.text_or_none(self.method.as_deref());
        out.text(&self.reason);
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        Ok(Skipped {
            class: input.text()?.into(),
            method: input.text_or_none()?.map(Cow::from),
            reason: input.text()?.into(),
        })
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning<'a> {
    pub text: Cow<'a, str>,
}

impl<'a> Body<'a> for Warning<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        out.text(&self.text);
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        Ok(Warning {
            text: input.text()?.into(),
        })
    }
}

/// A counter of the agent's; the last record of a key holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stat<'a> {
    pub key: Cow<'a, str>,
    pub value: u64,
}

impl<'a> Body<'a> for Stat<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        out.text(&self.key);
        out.num(self.value);
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        Ok(Stat {
            key: input.text()?.into(),
            value: input.num()?,
        })
    }
}

/// The JVM ended by itself. A log without it is of a JVM that was killed or still runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End;

impl Body<'_> for End {
    fn encode(&self, _: &mut Out<'_>) {}

    fn decode(_: &mut In<'_>) -> Parsed<Self> {
        Ok(End)
    }
}
