//! Sampled objects that are still alive: what is known of leaks.
//!
//! Collections are counted from 1; an object that was made before the first one was born at 0. Only
//! objects that a collection of the old generation has proven alive are in a snapshot. A census has all
//! objects whose death no collection has shown yet.

use std::borrow::Cow;

use lucce_callgraph::ContextId;

use super::Body;
use crate::wire::{In, Malformed, Out, Parsed};

/// The name of a pair of context and type; written before its first `Survivors`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Followed<'a> {
    pub key: u32,
    pub context: ContextId,
    /// The type of the objects, as a descriptor.
    pub of: Cow<'a, str>,
}

impl<'a> Body<'a> for Followed<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.key);
        out.fixed(self.context.0);
        out.text(&self.of);
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        Ok(Followed {
            key: input.small()?,
            context: ContextId(input.fixed()?),
            of: input.text()?.into(),
        })
    }
}

/// What a collection of the old generation has left. `rows` records [`Survivors`] follow; without all
/// of them it does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Snapshot {
    pub rows: u32,
    /// Since objects were first followed.
    pub millis: u64,
    /// Collections so far.
    pub collections: u64,
    /// Collections of the old generation so far, as far as they were noticed.
    pub old: u64,
    /// Objects born before this collection were tested by the last of those.
    pub tested: u64,
    /// Objects that the VM sampled so far.
    pub sampled: u64,
    /// Objects that are followed now.
    pub following: u64,
    /// How many times half of the objects were let go, to make room: each one that is followed stands
    /// for 2^thinned sampled ones.
    pub thinned: u32,
    /// Objects whose context could not be told.
    pub lost: u64,
}

impl Body<'_> for Snapshot {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.rows);
        for n in [self.millis, self.collections, self.old, self.tested] {
            out.num(n);
        }
        out.num(self.sampled);
        out.num(self.following);
        out.num(self.thinned);
        out.num(self.lost);
    }

    fn decode(input: &mut In<'_>) -> Parsed<Self> {
        Ok(Snapshot {
            rows: input.small()?,
            millis: input.num()?,
            collections: input.num()?,
            old: input.num()?,
            tested: input.num()?,
            sampled: input.num()?,
            following: input.num()?,
            thinned: input.small()?,
            lost: input.num()?,
        })
    }
}

/// What a census was taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CensusCause {
    /// Time has passed, or somebody asked.
    #[default]
    Regular,
    /// The VM said that the Java heap is exhausted.
    HeapExhausted,
    /// A full collection, in a JVM that ends at once when its heap is exhausted.
    FullCollection,
    /// A cause that this version does not know.
    Unknown,
}

impl CensusCause {
    fn code(self) -> u32 {
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

/// All followed objects that no collection has taken yet. `rows` records [`Survivors`] follow, one for
/// each context, type and class of ages; without all of them it does not count.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeapCensus<'a> {
    pub rows: u32,
    pub cause: CensusCause,
    /// The VM's words for what is exhausted; empty for other causes.
    pub detail: Cow<'a, str>,
    /// Since objects were first followed.
    pub millis: u64,
    /// Collections so far.
    pub collections: u64,
    /// Collections of the whole heap so far, as the VM counts them. `None`: it does not.
    pub full: Option<u64>,
    /// Objects born before this collection have survived a collection.
    pub survived: u64,
    /// Objects born before this collection have survived one of the old generation; at most `survived`.
    pub tested: u64,
    /// Objects that the VM sampled so far.
    pub sampled: u64,
    /// Objects that are followed now.
    pub following: u64,
    /// Each followed object stands for 2^thinned sampled ones.
    pub thinned: u32,
    /// Bytes of the heap in use after the last collection. `None`: unknown.
    pub used_bytes: Option<u64>,
    /// The heap's largest size. `None`: unknown.
    pub max_bytes: Option<u64>,
}

/// 0: none.
fn put_optional(out: &mut Out<'_>, number: Option<u64>) {
    out.num(number.map_or(0, |number| number.saturating_add(1)));
}

impl<'a> Body<'a> for HeapCensus<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.rows);
        out.num(self.cause.code());
        out.text(&self.detail);
        out.num(self.millis);
        out.num(self.collections);
        put_optional(out, self.full);
        for n in [self.survived, self.tested, self.sampled, self.following] {
            out.num(n);
        }
        out.num(self.thinned);
        put_optional(out, self.used_bytes);
        put_optional(out, self.max_bytes);
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        Ok(HeapCensus {
            rows: input.small()?,
            cause: CensusCause::from_code(input.num()?),
            detail: input.text()?.into(),
            millis: input.num()?,
            collections: input.num()?,
            full: input.num()?.checked_sub(1),
            survived: input.num()?,
            tested: input.num()?,
            sampled: input.num()?,
            following: input.num()?,
            thinned: input.small()?,
            used_bytes: input.num()?.checked_sub(1),
            max_bytes: input.num()?.checked_sub(1),
        })
    }
}

/// How many objects were born at one collection and live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Generation {
    /// Collections before they were born.
    pub born: u64,
    /// Followed objects; at least 1.
    pub objects: u32,
}

/// The followed objects of one context and type that are alive, by age.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Survivors<'a> {
    pub key: u32,
    /// Objects and bytes that they stand for.
    pub objects: u64,
    pub bytes: u64,
    /// The oldest first.
    pub generations: Cow<'a, [Generation]>,
}

impl<'a> Body<'a> for Survivors<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.key);
        out.num(self.objects);
        out.num(self.bytes);
        out.num(self.generations.len() as u64);
        let mut before = 0;
        for generation in &*self.generations {
            out.num(generation.born.saturating_sub(before));
            out.num(generation.objects);
            before = generation.born;
        }
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        let (key, objects, bytes) = (input.small()?, input.num()?, input.num()?);
        let count: usize = input.small()?;
        // Each takes two bytes or more.
        if count > input.0.len() / 2 {
            return Err(Malformed("record ends early"));
        }
        let mut born = 0_u64;
        let generations = (0..count).map(|index| {
            let step = input.num()?;
            let next = born.checked_add(step).filter(|_| index == 0 || step > 0);
            born = next.ok_or(Malformed("generations out of order"))?;
            let objects = input.small()?;
            match objects {
                0 => Err(Malformed("generation without objects")),
                _ => Ok(Generation { born, objects }),
            }
        });
        Ok(Survivors {
            key,
            objects,
            bytes,
            generations: generations.collect::<Parsed<Vec<_>>>()?.into(),
        })
    }
}
