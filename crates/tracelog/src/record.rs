//! Records: the content of a log, one after the other.
//!
//! A record is `kind: u8`, `length: LEB128`, then `length` bytes of body. A reader skips unknown kinds, and unknown
//! bytes behind the known fields: both may be added without a new format version.
//!
//! Field types: `n` LEB128; `z` zigzag LEB128; `q` eight bytes, little-endian; `t` text: `n` length
//! and UTF-8; `o` optional text: `n` 0, or length + 1 and UTF-8; `[..]` repeated.
//!
//! | kind | record | body |
//! |---|---|---|
//! | 1 | `MetaRecord` | t key, t value |
//! | 2 | `ClassRecord` | n id, n loader, t name, o source file |
//! | 3 | `MethodRecord` | n id, n class, t name, t descriptor, n access, n lines, [z bci step, z line step] |
//! | 4 | `SiteRecord` | n id, n method, z bci, n 0 or 1, z line if 1, n what, t descriptor if what is 2 or 3 |
//! | 5 | `SiteSize` | n site, n bytes |
//! | 6 | `GraphChange::Base` | n version |
//! | 7 | `GraphChange::Node` | n version, n method, n capacity |
//! | 8 | `GraphChange::Transition` | n version, n site, n caller, n callee, n effect: 0 anchoring; 1 additive: n to, n addition value |
//! | 9 | `GraphChange::Anchor` | n base, n id, n head, n 0: a thread's first frame; 1: q parent context, n site, n its method |
//! | 10 | `ThreadRecord` | n id, t name, n 1 if virtual |
//! | 11 | `ThreadEnd` | n id |
//! | 12 | `MismatchRecord` | q id, n event number, t expected, t decoded |
//! | 13 | `SkippedRecord` | t class, o method, t reason |
//! | 14 | `WarningRecord` | t text |
//! | 15 | `StatRecord` | t key, n value |
//! | 16 | `EndRecord` | |
//! | 17 | `EventType` | n id, t kind, t unit, t detail |
//! | 18 | `FollowedKeyRecord` | n key, q context, t type |
//! | 19 | `SnapshotRecord` | n rows, n milliseconds, n collections, n old collections, n tested, n sampled, n following, n thinned, n lost |
//! | 20 | `SurvivorsRecord` | n key, n objects, n bytes, n generations, [n born after the one before, n objects] |
//! | 21 | `ThreadOrigin` | n thread, q context |
//! | 22 | `GraphChange::Base` | n version, n bits of anchors from here on, if the header differs |
//! | 23 | `ThreadTag` | n thread, t key, t value |
//! | 24 | `HeapCensus` | n rows, n cause, t detail, n milliseconds, n collections, n full collections + 1 or 0, n survived, n tested, n sampled, n following, n thinned, n used bytes + 1 or 0, n largest bytes + 1 or 0 |
//! | 25 | `CodeSourceRecord` | n id, t location |
//! | 26 | `ClassSource` | n class, n code source |
//! | 27 | `MarkedCounters` | n mark, n thread, n counters, [q context, n event type or 0, n count, n value] |
//! | 28 | `MarkRecord` | n id, n 1 if a reset, n nanoseconds since the start, n counters, t name |
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
mod mark;
mod run;

pub use code::{
    ClassId, ClassRecord, ClassSource, CodeSourceId, CodeSourceRecord, LoaderId, MethodRecord,
    SiteKind, SiteRecord, SiteSize,
};
pub use event::{EventType, EventTypeId, lock_holder_detail, split_lock_holder_detail};
pub use leak::{
    CensusCause, FollowedKeyRecord, HeapCensus, SnapshotRecord, SurvivorGeneration, SurvivorsRecord,
};
use lucce_callgraph::{Anchor, Base, GraphChange, GraphNode, Transition};
pub use mark::{MarkRecord, MarkedCounter, MarkedCounters};
pub use run::{
    EndRecord, MetaRecord, MismatchRecord, SkippedRecord, StatRecord, ThreadEnd, ThreadId,
    ThreadOrigin, ThreadRecord, ThreadTag, WarningRecord,
};

use self::graph::DividedBase;
use crate::limits::MAX_RECORD;
use crate::record_codec::{MalformedRecord, Parsed, RecordDecoder, RecordEncoder};

/// Encoding and decoding of one kind of record.
trait RecordBody<'a>: Sized {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>);
    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self>;
}

/// A record of any kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogRecord<'a> {
    Meta(MetaRecord<'a>),
    CodeSource(CodeSourceRecord<'a>),
    ClassSource(ClassSource),
    Class(ClassRecord<'a>),
    Method(MethodRecord<'a>),
    Site(SiteRecord<'a>),
    SiteSize(SiteSize),
    Change(GraphChange),
    Thread(ThreadRecord<'a>),
    ThreadEnd(ThreadEnd),
    Mismatch(MismatchRecord<'a>),
    Skipped(SkippedRecord<'a>),
    Warning(WarningRecord<'a>),
    Stat(StatRecord<'a>),
    End(EndRecord),
    EventType(EventType<'a>),
    Followed(FollowedKeyRecord<'a>),
    Snapshot(SnapshotRecord),
    Survivors(SurvivorsRecord<'a>),
    ThreadOrigin(ThreadOrigin),
    ThreadTag(ThreadTag<'a>),
    HeapCensus(HeapCensus<'a>),
    MarkedCounters(MarkedCounters),
    Mark(MarkRecord<'a>),
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
    const CODE_SOURCE: u8 = 25;
    const CLASS_SOURCE: u8 = 26;
    const MARKED_COUNTERS: u8 = 27;
    const MARK: u8 = 28;

    /// Returns the kind's name for users.
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
            Self::CODE_SOURCE => "code-source",
            Self::CLASS_SOURCE => "class-source",
            Self::MARKED_COUNTERS => "marked-counters",
            Self::MARK => "mark",
            _ => "unknown",
        }
    }
}

impl LogRecord<'_> {
    #[must_use]
    pub fn kind(&self) -> RecordKind {
        RecordKind(match self {
            LogRecord::Meta(_) => RecordKind::META,
            LogRecord::Class(_) => RecordKind::CLASS,
            LogRecord::Method(_) => RecordKind::METHOD,
            LogRecord::Site(_) => RecordKind::SITE,
            LogRecord::SiteSize(_) => RecordKind::SITE_SIZE,
            LogRecord::Change(GraphChange::Base(base)) if base.anchor_bits.is_some() => {
                RecordKind::DIVIDED_BASE
            }
            LogRecord::Change(GraphChange::Base(_)) => RecordKind::BASE,
            LogRecord::Change(GraphChange::Node(_)) => RecordKind::NODE,
            LogRecord::Change(GraphChange::Transition(_)) => RecordKind::TRANSITION,
            LogRecord::Change(GraphChange::Anchor(_)) => RecordKind::ANCHOR,
            LogRecord::Thread(_) => RecordKind::THREAD,
            LogRecord::ThreadEnd(_) => RecordKind::THREAD_END,
            LogRecord::Mismatch(_) => RecordKind::MISMATCH,
            LogRecord::Skipped(_) => RecordKind::SKIPPED,
            LogRecord::Warning(_) => RecordKind::WARNING,
            LogRecord::Stat(_) => RecordKind::STAT,
            LogRecord::End(_) => RecordKind::END,
            LogRecord::EventType(_) => RecordKind::EVENT_TYPE,
            LogRecord::Followed(_) => RecordKind::FOLLOWED,
            LogRecord::Snapshot(_) => RecordKind::SNAPSHOT,
            LogRecord::Survivors(_) => RecordKind::SURVIVORS,
            LogRecord::ThreadOrigin(_) => RecordKind::THREAD_ORIGIN,
            LogRecord::ThreadTag(_) => RecordKind::THREAD_TAG,
            LogRecord::HeapCensus(_) => RecordKind::HEAP_CENSUS,
            LogRecord::CodeSource(_) => RecordKind::CODE_SOURCE,
            LogRecord::ClassSource(_) => RecordKind::CLASS_SOURCE,
            LogRecord::MarkedCounters(_) => RecordKind::MARKED_COUNTERS,
            LogRecord::Mark(_) => RecordKind::MARK,
        })
    }

    /// Whether the record reports how a run ended; such records are written even if the disk is full.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(self, LogRecord::Stat(_) | LogRecord::End(_))
    }

    pub(crate) fn encode_body(&self, bytes: &mut Vec<u8>) {
        let out = &mut RecordEncoder(bytes);
        match self {
            LogRecord::Meta(r) => r.encode_fields(out),
            LogRecord::Class(r) => r.encode_fields(out),
            LogRecord::Method(r) => r.encode_fields(out),
            LogRecord::Site(r) => r.encode_fields(out),
            LogRecord::SiteSize(r) => r.encode_fields(out),
            LogRecord::Change(GraphChange::Base(r)) => r.encode_fields(out),
            LogRecord::Change(GraphChange::Node(r)) => r.encode_fields(out),
            LogRecord::Change(GraphChange::Transition(r)) => r.encode_fields(out),
            LogRecord::Change(GraphChange::Anchor(r)) => r.encode_fields(out),
            LogRecord::Thread(r) => r.encode_fields(out),
            LogRecord::ThreadEnd(r) => r.encode_fields(out),
            LogRecord::Mismatch(r) => r.encode_fields(out),
            LogRecord::Skipped(r) => r.encode_fields(out),
            LogRecord::Warning(r) => r.encode_fields(out),
            LogRecord::Stat(r) => r.encode_fields(out),
            LogRecord::End(r) => r.encode_fields(out),
            LogRecord::EventType(r) => r.encode_fields(out),
            LogRecord::Followed(r) => r.encode_fields(out),
            LogRecord::Snapshot(r) => r.encode_fields(out),
            LogRecord::Survivors(r) => r.encode_fields(out),
            LogRecord::ThreadOrigin(r) => r.encode_fields(out),
            LogRecord::ThreadTag(r) => r.encode_fields(out),
            LogRecord::HeapCensus(r) => r.encode_fields(out),
            LogRecord::CodeSource(r) => r.encode_fields(out),
            LogRecord::ClassSource(r) => r.encode_fields(out),
            LogRecord::MarkedCounters(r) => r.encode_fields(out),
            LogRecord::Mark(r) => r.encode_fields(out),
        }
    }
}

/// For other files that describe code in the log's format.
impl<'a> LogRecord<'a> {
    /// Appends kind, length and body, as in a log.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        let before = bytes.len();
        self.encode_body(bytes);
        let body = bytes.len() - before;
        let mut out = RecordEncoder(bytes);
        out.put_byte(self.kind().0);
        out.put_number(body as u64);
        if let Some(record) = bytes.get_mut(before..) {
            record.rotate_left(body);
        }
    }

    /// Parses the first record of `bytes`, and removes it from them. `None`: a kind that this version does not know.
    ///
    /// # Errors
    /// Why the bytes are not a record.
    pub fn parse_next(bytes: &mut &'a [u8]) -> Result<Option<LogRecord<'a>>, &'static str> {
        let mut input = RecordDecoder(bytes);
        let (_, record) = Self::parse(&mut input).map_err(|MalformedRecord(reason)| reason)?;
        *bytes = input.0;
        Ok(record)
    }

    pub(crate) fn parse(input: &mut RecordDecoder<'a>) -> Parsed<(RecordKind, Option<Self>)> {
        let kind = RecordKind(input.read_byte()?);
        let len = input.read_number()?;
        if len > MAX_RECORD as u64 {
            return Err(MalformedRecord("record longer than the format allows"));
        }
        let body = input.take_bytes(len)?;
        Ok((kind, LogRecord::decode_body(kind, body)?))
    }
}

impl<'a> LogRecord<'a> {
    /// `None`: a kind that this version does not know.
    pub(crate) fn decode_body(kind: RecordKind, body: &'a [u8]) -> Parsed<Option<Self>> {
        let input = &mut RecordDecoder(body);
        let record = match kind.0 {
            0 => return Err(MalformedRecord("record of kind 0")),
            RecordKind::META => LogRecord::Meta(MetaRecord::decode_fields(input)?),
            RecordKind::CLASS => LogRecord::Class(ClassRecord::decode_fields(input)?),
            RecordKind::METHOD => LogRecord::Method(MethodRecord::decode_fields(input)?),
            RecordKind::SITE => LogRecord::Site(SiteRecord::decode_fields(input)?),
            RecordKind::SITE_SIZE => LogRecord::SiteSize(SiteSize::decode_fields(input)?),
            RecordKind::BASE => LogRecord::Change(GraphChange::Base(Base::decode_fields(input)?)),
            RecordKind::NODE => {
                LogRecord::Change(GraphChange::Node(GraphNode::decode_fields(input)?))
            }
            RecordKind::TRANSITION => {
                LogRecord::Change(GraphChange::Transition(Transition::decode_fields(input)?))
            }
            RecordKind::ANCHOR => {
                LogRecord::Change(GraphChange::Anchor(Anchor::decode_fields(input)?))
            }
            RecordKind::THREAD => LogRecord::Thread(ThreadRecord::decode_fields(input)?),
            RecordKind::THREAD_END => LogRecord::ThreadEnd(ThreadEnd::decode_fields(input)?),
            RecordKind::MISMATCH => LogRecord::Mismatch(MismatchRecord::decode_fields(input)?),
            RecordKind::SKIPPED => LogRecord::Skipped(SkippedRecord::decode_fields(input)?),
            RecordKind::WARNING => LogRecord::Warning(WarningRecord::decode_fields(input)?),
            RecordKind::STAT => LogRecord::Stat(StatRecord::decode_fields(input)?),
            RecordKind::END => LogRecord::End(EndRecord::decode_fields(input)?),
            RecordKind::EVENT_TYPE => LogRecord::EventType(EventType::decode_fields(input)?),
            RecordKind::FOLLOWED => LogRecord::Followed(FollowedKeyRecord::decode_fields(input)?),
            RecordKind::SNAPSHOT => LogRecord::Snapshot(SnapshotRecord::decode_fields(input)?),
            RecordKind::SURVIVORS => LogRecord::Survivors(SurvivorsRecord::decode_fields(input)?),
            RecordKind::THREAD_ORIGIN => {
                LogRecord::ThreadOrigin(ThreadOrigin::decode_fields(input)?)
            }
            RecordKind::THREAD_TAG => LogRecord::ThreadTag(ThreadTag::decode_fields(input)?),
            RecordKind::HEAP_CENSUS => LogRecord::HeapCensus(HeapCensus::decode_fields(input)?),
            RecordKind::CODE_SOURCE => {
                LogRecord::CodeSource(CodeSourceRecord::decode_fields(input)?)
            }
            RecordKind::CLASS_SOURCE => LogRecord::ClassSource(ClassSource::decode_fields(input)?),
            RecordKind::MARKED_COUNTERS => {
                LogRecord::MarkedCounters(MarkedCounters::decode_fields(input)?)
            }
            RecordKind::MARK => LogRecord::Mark(MarkRecord::decode_fields(input)?),
            RecordKind::DIVIDED_BASE => {
                LogRecord::Change(GraphChange::Base(DividedBase::decode_fields(input)?))
            }
            _ => return Ok(None),
        };
        Ok(Some(record))
    }
}

/// `From<Class>` and so on, so that `writer.append(&class.into())` reads well.
macro_rules! into_record {
    ($($variant:ident($content:ty)),*) => {
        $(impl<'a> From<$content> for LogRecord<'a> {
            fn from(record: $content) -> Self {
                LogRecord::$variant(record)
            }
        })*
    };
}

into_record!(
    Meta(MetaRecord<'a>),
    Class(ClassRecord<'a>),
    Method(MethodRecord<'a>),
    Site(SiteRecord<'a>),
    SiteSize(SiteSize),
    Change(GraphChange),
    Thread(ThreadRecord<'a>),
    ThreadEnd(ThreadEnd),
    Mismatch(MismatchRecord<'a>),
    Skipped(SkippedRecord<'a>),
    Warning(WarningRecord<'a>),
    Stat(StatRecord<'a>),
    End(EndRecord),
    EventType(EventType<'a>),
    Followed(FollowedKeyRecord<'a>),
    Snapshot(SnapshotRecord),
    Survivors(SurvivorsRecord<'a>),
    ThreadOrigin(ThreadOrigin),
    ThreadTag(ThreadTag<'a>),
    HeapCensus(HeapCensus<'a>),
    CodeSource(CodeSourceRecord<'a>),
    ClassSource(ClassSource),
    MarkedCounters(MarkedCounters),
    Mark(MarkRecord<'a>)
);

#[cfg(test)]
mod record_tests;
