//! Records: what the log says, one after the other.
//!
//! A record is `kind: u8`, `length: LEB128`, then `length` bytes of body. A reader skips kinds that
//! it does not know and bytes that follow the fields it knows: both may be added without a new
//! format version.
//!
//! Field types: `n` LEB128; `z` zigzag LEB128; `q` eight bytes, little-endian; `t` text: `n` length
//! and UTF-8; `o` optional text: `n` 0, or length + 1 and UTF-8; `[..]` repeated.
//!
//! | kind | record | body |
//! |---|---|---|
//! | 1 | `Meta` | t key, t value |
//! | 2 | `Class` | n id, n loader, t name, o source file |
//! | 3 | `Method` | n id, n class, t name, t descriptor, n access, n lines, [z bci step, z line step] |
//! | 4 | `Site` | n id, n method, z bci, n 0 or 1, z line if 1, n what, t descriptor if what is 2 or 3 |
//! | 5 | `SiteSize` | n site, n bytes |
//! | 6 | `Change::Base` | n version |
//! | 7 | `Change::Node` | n version, n method, n capacity |
//! | 8 | `Change::Transition` | n version, n site, n caller, n callee, n effect: 0 anchoring; 1 additive: n to, n av |
//! | 9 | `Change::Anchor` | n base, n id, n head, n 0: a thread's first frame; 1: q parent context, n site, n its method |
//! | 10 | `Thread` | n id, t name, n 1 if virtual |
//! | 11 | `ThreadEnd` | n id |
//! | 12 | `Mismatch` | q id, n event number, t expected, t decoded |
//! | 13 | `Skipped` | t class, o method, t reason |
//! | 14 | `Warning` | t text |
//! | 15 | `Stat` | t key, n value |
//! | 16 | `End` | |
//! | 17 | `EventType` | n id, t kind, t unit, t detail |
//! | 18 | `Followed` | n key, q context, t type |
//! | 19 | `Snapshot` | n rows, n milliseconds, n collections, n old collections, n tested, n sampled, n following, n thinned, n lost |
//! | 20 | `Survivors` | n key, n objects, n bytes, n generations, [n born after the one before, n objects] |
//! | 21 | `ThreadOrigin` | n thread, q context |
//! | 22 | `Change::Base` | n version, n bits of anchors from here on, where the header says otherwise |
//! | 23 | `ThreadTag` | n thread, t key, t value |
//! | 24 | `HeapCensus` | n rows, n cause, t detail, n milliseconds, n collections, n full collections + 1 or 0, n survived, n tested, n sampled, n following, n thinned, n used bytes + 1 or 0, n largest bytes + 1 or 0 |
//!
//! `what` of a site: 1 call, 2 new, 3 array, 4 native, 5 current, 6 other.
//!
//! Example: thread 1 "main", then a clean end:
//! ```text
//! 0a 07 01 04 6d 61 69 6e 00    Thread, 7 bytes: id 1, text of 4 bytes "main", not virtual
//! 10 00                         End, 0 bytes
//! ```

mod code;
mod event;
mod graph;
mod leak;
mod run;

pub use code::{Class, ClassId, LoaderId, Method, Site, SiteKind, SiteSize};
pub use event::{EventType, EventTypeId};
pub use leak::{CensusCause, Followed, Generation, HeapCensus, Snapshot, Survivors};
use lucce_callgraph::{Anchor, Base, Change, Node, Transition};
pub use run::{
    End, Meta, Mismatch, Skipped, Stat, Thread, ThreadEnd, ThreadId, ThreadOrigin, ThreadTag,
    Warning,
};

use self::graph::Divided;
use crate::limits::MAX_RECORD;
use crate::wire::{In, Malformed, Out, Parsed};

/// Encode and decode of one kind of record, side by side.
trait Body<'a>: Sized {
    fn encode(&self, out: &mut Out<'_>);
    fn decode(input: &mut In<'a>) -> Parsed<Self>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    Meta(Meta<'a>),
    Class(Class<'a>),
    Method(Method<'a>),
    Site(Site<'a>),
    SiteSize(SiteSize),
    Change(Change),
    Thread(Thread<'a>),
    ThreadEnd(ThreadEnd),
    Mismatch(Mismatch<'a>),
    Skipped(Skipped<'a>),
    Warning(Warning<'a>),
    Stat(Stat<'a>),
    End(End),
    EventType(EventType<'a>),
    Followed(Followed<'a>),
    Snapshot(Snapshot),
    Survivors(Survivors<'a>),
    ThreadOrigin(ThreadOrigin),
    ThreadTag(ThreadTag<'a>),
    HeapCensus(HeapCensus<'a>),
}

/// A record's kind: the first byte of the record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RecordKind(pub u8);

impl RecordKind {
    const META: u8 = 1;
    const CLASS: u8 = 2;
    const METHOD: u8 = 3;
    const SITE: u8 = 4;
    const SITE_SIZE: u8 = 5;
    const BASE: u8 = 6;
    const NODE: u8 = 7;
    const TRANSITION: u8 = 8;
    const ANCHOR: u8 = 9;
    const THREAD: u8 = 10;
    const THREAD_END: u8 = 11;
    const MISMATCH: u8 = 12;
    const SKIPPED: u8 = 13;
    const WARNING: u8 = 14;
    const STAT: u8 = 15;
    const END: u8 = 16;
    const EVENT_TYPE: u8 = 17;
    const FOLLOWED: u8 = 18;
    const SNAPSHOT: u8 = 19;
    const SURVIVORS: u8 = 20;
    const THREAD_ORIGIN: u8 = 21;
    const DIVIDED_BASE: u8 = 22;
    const THREAD_TAG: u8 = 23;
    const HEAP_CENSUS: u8 = 24;

    /// The kind's name, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Self::META => "meta",
            Self::CLASS => "class",
            Self::METHOD => "method",
            Self::SITE => "site",
            Self::SITE_SIZE => "site-size",
            Self::BASE => "base",
            Self::NODE => "node",
            Self::TRANSITION => "transition",
            Self::ANCHOR => "anchor",
            Self::THREAD => "thread",
            Self::THREAD_END => "thread-end",
            Self::MISMATCH => "mismatch",
            Self::SKIPPED => "skipped",
            Self::WARNING => "warning",
            Self::STAT => "stat",
            Self::END => "end",
            Self::EVENT_TYPE => "event-type",
            Self::FOLLOWED => "followed",
            Self::SNAPSHOT => "snapshot",
            Self::SURVIVORS => "survivors",
            Self::THREAD_ORIGIN => "thread-origin",
            Self::DIVIDED_BASE => "divided-base",
            Self::THREAD_TAG => "thread-tag",
            Self::HEAP_CENSUS => "heap-census",
            _ => "unknown",
        }
    }
}

impl Record<'_> {
    #[must_use]
    pub fn kind(&self) -> RecordKind {
        RecordKind(match self {
            Record::Meta(_) => RecordKind::META,
            Record::Class(_) => RecordKind::CLASS,
            Record::Method(_) => RecordKind::METHOD,
            Record::Site(_) => RecordKind::SITE,
            Record::SiteSize(_) => RecordKind::SITE_SIZE,
            Record::Change(Change::Base(base)) if base.anchor_bits.is_some() => {
                RecordKind::DIVIDED_BASE
            }
            Record::Change(Change::Base(_)) => RecordKind::BASE,
            Record::Change(Change::Node(_)) => RecordKind::NODE,
            Record::Change(Change::Transition(_)) => RecordKind::TRANSITION,
            Record::Change(Change::Anchor(_)) => RecordKind::ANCHOR,
            Record::Thread(_) => RecordKind::THREAD,
            Record::ThreadEnd(_) => RecordKind::THREAD_END,
            Record::Mismatch(_) => RecordKind::MISMATCH,
            Record::Skipped(_) => RecordKind::SKIPPED,
            Record::Warning(_) => RecordKind::WARNING,
            Record::Stat(_) => RecordKind::STAT,
            Record::End(_) => RecordKind::END,
            Record::EventType(_) => RecordKind::EVENT_TYPE,
            Record::Followed(_) => RecordKind::FOLLOWED,
            Record::Snapshot(_) => RecordKind::SNAPSHOT,
            Record::Survivors(_) => RecordKind::SURVIVORS,
            Record::ThreadOrigin(_) => RecordKind::THREAD_ORIGIN,
            Record::ThreadTag(_) => RecordKind::THREAD_TAG,
            Record::HeapCensus(_) => RecordKind::HEAP_CENSUS,
        })
    }

    /// What tells how a run ended: it is written even when the disk is full.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(self, Record::Stat(_) | Record::End(_))
    }

    pub(crate) fn encode_body(&self, bytes: &mut Vec<u8>) {
        let out = &mut Out(bytes);
        match self {
            Record::Meta(r) => r.encode(out),
            Record::Class(r) => r.encode(out),
            Record::Method(r) => r.encode(out),
            Record::Site(r) => r.encode(out),
            Record::SiteSize(r) => r.encode(out),
            Record::Change(Change::Base(r)) => r.encode(out),
            Record::Change(Change::Node(r)) => r.encode(out),
            Record::Change(Change::Transition(r)) => r.encode(out),
            Record::Change(Change::Anchor(r)) => r.encode(out),
            Record::Thread(r) => r.encode(out),
            Record::ThreadEnd(r) => r.encode(out),
            Record::Mismatch(r) => r.encode(out),
            Record::Skipped(r) => r.encode(out),
            Record::Warning(r) => r.encode(out),
            Record::Stat(r) => r.encode(out),
            Record::End(r) => r.encode(out),
            Record::EventType(r) => r.encode(out),
            Record::Followed(r) => r.encode(out),
            Record::Snapshot(r) => r.encode(out),
            Record::Survivors(r) => r.encode(out),
            Record::ThreadOrigin(r) => r.encode(out),
            Record::ThreadTag(r) => r.encode(out),
            Record::HeapCensus(r) => r.encode(out),
        }
    }
}

/// For other files that tell what code is called in the log's own words.
impl<'a> Record<'a> {
    /// RecordKind, length and body, as in a log.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        let before = bytes.len();
        self.encode_body(bytes);
        let body = bytes.len() - before;
        let mut out = Out(bytes);
        out.byte(self.kind().0);
        out.num(body as u64);
        if let Some(record) = bytes.get_mut(before..) {
            record.rotate_left(body);
        }
    }

    /// The first record of `bytes`, which then begin behind it; `None`: a kind that this version
    /// does not know.
    ///
    /// # Errors
    /// Why the bytes are not a record.
    pub fn take_from(bytes: &mut &'a [u8]) -> Result<Option<Record<'a>>, &'static str> {
        let mut input = In(bytes);
        let (_, record) = Self::parse(&mut input).map_err(|Malformed(reason)| reason)?;
        *bytes = input.0;
        Ok(record)
    }

    pub(crate) fn parse(input: &mut In<'a>) -> Parsed<(RecordKind, Option<Self>)> {
        let kind = RecordKind(input.byte()?);
        let len = input.num()?;
        if len > MAX_RECORD as u64 {
            return Err(Malformed("record longer than the format allows"));
        }
        let body = input.take(len)?;
        Ok((kind, Record::decode_body(kind, body)?))
    }
}

impl<'a> Record<'a> {
    /// `None`: a kind that this version does not know.
    pub(crate) fn decode_body(kind: RecordKind, body: &'a [u8]) -> Parsed<Option<Self>> {
        let input = &mut In(body);
        let record = match kind.0 {
            0 => return Err(Malformed("record of kind 0")),
            RecordKind::META => Record::Meta(Meta::decode(input)?),
            RecordKind::CLASS => Record::Class(Class::decode(input)?),
            RecordKind::METHOD => Record::Method(Method::decode(input)?),
            RecordKind::SITE => Record::Site(Site::decode(input)?),
            RecordKind::SITE_SIZE => Record::SiteSize(SiteSize::decode(input)?),
            RecordKind::BASE => Record::Change(Change::Base(Base::decode(input)?)),
            RecordKind::NODE => Record::Change(Change::Node(Node::decode(input)?)),
            RecordKind::TRANSITION => {
                Record::Change(Change::Transition(Transition::decode(input)?))
            }
            RecordKind::ANCHOR => Record::Change(Change::Anchor(Anchor::decode(input)?)),
            RecordKind::THREAD => Record::Thread(Thread::decode(input)?),
            RecordKind::THREAD_END => Record::ThreadEnd(ThreadEnd::decode(input)?),
            RecordKind::MISMATCH => Record::Mismatch(Mismatch::decode(input)?),
            RecordKind::SKIPPED => Record::Skipped(Skipped::decode(input)?),
            RecordKind::WARNING => Record::Warning(Warning::decode(input)?),
            RecordKind::STAT => Record::Stat(Stat::decode(input)?),
            RecordKind::END => Record::End(End::decode(input)?),
            RecordKind::EVENT_TYPE => Record::EventType(EventType::decode(input)?),
            RecordKind::FOLLOWED => Record::Followed(Followed::decode(input)?),
            RecordKind::SNAPSHOT => Record::Snapshot(Snapshot::decode(input)?),
            RecordKind::SURVIVORS => Record::Survivors(Survivors::decode(input)?),
            RecordKind::THREAD_ORIGIN => Record::ThreadOrigin(ThreadOrigin::decode(input)?),
            RecordKind::THREAD_TAG => Record::ThreadTag(ThreadTag::decode(input)?),
            RecordKind::HEAP_CENSUS => Record::HeapCensus(HeapCensus::decode(input)?),
            RecordKind::DIVIDED_BASE => Record::Change(Change::Base(Divided::decode(input)?)),
            _ => return Ok(None),
        };
        Ok(Some(record))
    }
}

/// `From<Class>` and so on, so that `writer.append(&class.into())` reads well.
macro_rules! into_record {
    ($($variant:ident($content:ty)),*) => {
        $(impl<'a> From<$content> for Record<'a> {
            fn from(record: $content) -> Self {
                Record::$variant(record)
            }
        })*
    };
}

into_record!(
    Meta(Meta<'a>),
    Class(Class<'a>),
    Method(Method<'a>),
    Site(Site<'a>),
    SiteSize(SiteSize),
    Change(Change),
    Thread(Thread<'a>),
    ThreadEnd(ThreadEnd),
    Mismatch(Mismatch<'a>),
    Skipped(Skipped<'a>),
    Warning(Warning<'a>),
    Stat(Stat<'a>),
    End(End),
    EventType(EventType<'a>),
    Followed(Followed<'a>),
    Snapshot(Snapshot),
    Survivors(Survivors<'a>),
    ThreadOrigin(ThreadOrigin),
    ThreadTag(ThreadTag<'a>),
    HeapCensus(HeapCensus<'a>)
);

#[cfg(test)]
mod tests;
