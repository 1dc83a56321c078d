//! Records of sampled objects that are still alive.
//!
//! Collections are counted from 1; an object made before the first one has generation 0. A snapshot has only objects
//! that a collection of the old generation has proven alive. A census has all objects whose death no collection has
//! shown yet.

use std::borrow::Cow;

use lucce_callgraph::ContextId;

use super::RecordBody;
use crate::record_codec::{MalformedRecord, Parsed, RecordDecoder, RecordEncoder};

/// The context and type of a key; precedes its first `SurvivorsRecord`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FollowedKeyRecord<'a> {
    pub key: u32,
    pub context: ContextId,
    /// The type of the objects, as a descriptor.
    pub type_name: Cow<'a, str>,
}

impl<'a> RecordBody<'a> for FollowedKeyRecord<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.key);
        out.put_fixed(self.context.0);
        out.put_text(&self.type_name);
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(FollowedKeyRecord {
            key: input.read_small()?,
            context: ContextId(input.read_fixed()?),
            type_name: input.read_text()?.into(),
        })
    }
}

/// The objects that survived a collection of the old generation. `rows` records [`SurvivorsRecord`] follow; without all
/// of them the snapshot is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SnapshotRecord {
    pub rows: u32,
    /// Milliseconds since objects were first followed.
    pub millis: u64,
    /// Number of collections so far.
    pub collections: u64,
    /// Number of noticed collections of the old generation so far.
    pub old: u64,
    /// Objects born before this collection were tested by the last collection of the old generation.
    pub tested: u64,
    /// Number of objects that the VM sampled so far.
    pub sampled: u64,
    /// Number of objects that are followed now.
    pub following: u64,
    /// How many times half of the objects were dropped to make room. Each followed object stands for 2^thinned sampled
    /// ones.
    pub thinned: u32,
    /// Number of objects whose context is unknown.
    pub lost: u64,
}

impl RecordBody<'_> for SnapshotRecord {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.rows);
        for n in [self.millis, self.collections, self.old, self.tested] {
            out.put_number(n);
        }
        out.put_number(self.sampled);
        out.put_number(self.following);
        out.put_number(self.thinned);
        out.put_number(self.lost);
    }

    fn decode_fields(input: &mut RecordDecoder<'_>) -> Parsed<Self> {
        Ok(SnapshotRecord {
            rows: input.read_small()?,
            millis: input.read_number()?,
            collections: input.read_number()?,
            old: input.read_number()?,
            tested: input.read_number()?,
            sampled: input.read_number()?,
            following: input.read_number()?,
            thinned: input.read_small()?,
            lost: input.read_number()?,
        })
    }
}

/// Why a census was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CensusCause {
    /// At a regular interval or on request.
    #[default]
    Regular,
    /// The VM reported that the Java heap is exhausted.
    HeapExhausted,
    /// After a full collection, in a JVM that exits at once if its heap is exhausted.
    FullCollection,
    /// A cause that this version does not know.
    Unknown,
}

impl CensusCause {
    fn to_code(self) -> u32 {
        match self {
            CensusCause::Regular => 0,
            CensusCause::HeapExhausted => 1,
            CensusCause::FullCollection => 2,
            CensusCause::Unknown => u32::MAX,
        }
    }

    fn from_code(code: u64) -> CensusCause {
        match code {
            0 => CensusCause::Regular,
            1 => CensusCause::HeapExhausted,
            2 => CensusCause::FullCollection,
            _ => CensusCause::Unknown,
        }
    }
}

/// All followed objects that no collection has taken yet.
///
/// `rows` records [`SurvivorsRecord`] follow, one for each context, type and age class; without all of them the census
/// is invalid.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeapCensus<'a> {
    pub rows: u32,
    pub cause: CensusCause,
    /// The VM's name of the exhausted resource; empty for other causes.
    pub detail: Cow<'a, str>,
    /// Milliseconds since objects were first followed.
    pub millis: u64,
    /// Number of collections so far.
    pub collections: u64,
    /// Number of collections of the whole heap so far, by the VM's count. `None`: the VM does not count them.
    pub full: Option<u64>,
    /// Objects born before this collection have survived a collection.
    pub survived: u64,
    /// Objects born before this collection have survived one of the old generation; at most `survived`.
    pub tested: u64,
    /// Number of objects that the VM sampled so far.
    pub sampled: u64,
    /// Number of objects that are followed now.
    pub following: u64,
    /// Each followed object stands for 2^thinned sampled ones.
    pub thinned: u32,
    /// Bytes of the heap in use after the last collection. `None`: unknown.
    pub used_bytes: Option<u64>,
    /// The maximum size of the heap in bytes. `None`: unknown.
    pub max_bytes: Option<u64>,
}

/// Writes the number plus 1, or 0 for `None`.
fn put_optional(out: &mut RecordEncoder<'_>, number: Option<u64>) {
    out.put_number(number.map_or(0, |number| number.saturating_add(1)));
}

impl<'a> RecordBody<'a> for HeapCensus<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.rows);
        out.put_number(self.cause.to_code());
        out.put_text(&self.detail);
        out.put_number(self.millis);
        out.put_number(self.collections);
        put_optional(out, self.full);
        for n in [self.survived, self.tested, self.sampled, self.following] {
            out.put_number(n);
        }
        out.put_number(self.thinned);
        put_optional(out, self.used_bytes);
        put_optional(out, self.max_bytes);
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(HeapCensus {
            rows: input.read_small()?,
            cause: CensusCause::from_code(input.read_number()?),
            detail: input.read_text()?.into(),
            millis: input.read_number()?,
            collections: input.read_number()?,
            full: input.read_number()?.checked_sub(1),
            survived: input.read_number()?,
            tested: input.read_number()?,
            sampled: input.read_number()?,
            following: input.read_number()?,
            thinned: input.read_small()?,
            used_bytes: input.read_number()?.checked_sub(1),
            max_bytes: input.read_number()?.checked_sub(1),
        })
    }
}

/// The number of live objects that were born between two collections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SurvivorGeneration {
    /// Number of collections before they were born.
    pub born: u64,
    /// Number of followed objects, at least 1.
    pub objects: u32,
}

/// The live followed objects of one context and type, by age.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SurvivorsRecord<'a> {
    pub key: u32,
    /// Objects and bytes that they stand for.
    pub objects: u64,
    pub bytes: u64,
    /// The oldest first.
    pub generations: Cow<'a, [SurvivorGeneration]>,
}

impl<'a> RecordBody<'a> for SurvivorsRecord<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.key);
        out.put_number(self.objects);
        out.put_number(self.bytes);
        out.put_number(self.generations.len() as u64);
        let mut before = 0;
        for generation in &*self.generations {
            out.put_number(generation.born.saturating_sub(before));
            out.put_number(generation.objects);
            before = generation.born;
        }
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        let (key, objects, bytes) = (
            input.read_small()?,
            input.read_number()?,
            input.read_number()?,
        );
        let count: usize = input.read_small()?;
        // Each entry has at least two bytes.
        if count > input.0.len() / 2 {
            return Err(MalformedRecord("record ends early"));
        }
        let mut born = 0_u64;
        let generations = (0..count).map(|index| {
            let step = input.read_number()?;
            let next = born.checked_add(step).filter(|_| index == 0 || step > 0);
            born = next.ok_or(MalformedRecord("generations out of order"))?;
            let objects = input.read_small()?;
            match objects {
                0 => Err(MalformedRecord("generation without objects")),
                _ => Ok(SurvivorGeneration { born, objects }),
            }
        });
        Ok(SurvivorsRecord {
            key,
            objects,
            bytes,
            generations: generations.collect::<Parsed<Vec<_>>>()?.into(),
        })
    }
}
