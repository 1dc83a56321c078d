//! `pcc`: probabilistic calling contexts (Bond and McKinley, OOPSLA 2007), as the contrast.
//!
//! At a call site `cs`, `V` becomes `3 * V + cs`, modulo 2 to the power of its bits. That is all a
//! program has to do, and all it knows: two contexts may get the same value, and no value can be
//! turned back. To count collisions, every context is also given a fingerprint of 128 bits.

use std::collections::HashSet;

use super::threads::Threads;
use super::{Encoding, Number, Statistics, ThreadId, Undecodable};
use crate::numbering::FastMap;
use crate::{Edge, Frame, SiteId};

/// See the module's description.
pub struct Pcc {
    mask: u64,
    threads: Threads<Vec<Value>>,
    contexts: HashSet<u128>,
    values: FastMap<u64, ()>,
}

#[derive(Clone, Copy, Default)]
struct Value {
    value: u64,
    print: u128,
}

impl Pcc {
    /// Values of `bits` bits, at most 64; the paper's have 32.
    #[must_use]
    pub fn new(bits: u32) -> Pcc {
        Pcc {
            mask: u64::MAX >> (64 - bits.clamp(1, 64)),
            threads: Threads::default(),
            contexts: HashSet::new(),
            values: FastMap::default(),
        }
    }

    fn call(&self, from: Value, site: SiteId, callee: u32) -> Value {
        let value = from.value.wrapping_mul(3).wrapping_add(identity(site)) & self.mask;
        let place = u128::from(site.0) << 32 | u128::from(callee);
        let print = (from.print ^ place).wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645);
        Value {
            value,
            print: print ^ print >> 64,
        }
    }

    fn top(&self, thread: ThreadId) -> Value {
        let stack = self.threads.get(thread);
        stack
            .and_then(|stack| stack.last().copied())
            .unwrap_or_default()
    }
}

/// The paper's call sites are numbers drawn at random.
fn identity(site: SiteId) -> u64 {
    let mixed = (u64::from(site.0) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 7
}

impl Encoding for Pcc {
    fn name(&self) -> &'static str {
        "pcc"
    }

    fn start(&mut self, thread: ThreadId, _: Option<(ThreadId, Frame)>) {
        self.threads.at(thread).clear();
    }

    fn enter(&mut self, thread: ThreadId, edge: Edge) {
        let value = self.call(self.top(thread), edge.site, edge.callee.0);
        self.threads.at(thread).push(value);
    }

    fn leave(&mut self, thread: ThreadId, _: Edge) {
        self.threads.at(thread).pop();
    }

    fn current(&mut self, thread: ThreadId, place: Frame) -> Number {
        let Value { value, print } = self.call(self.top(thread), place.site, place.method.0);
        self.contexts.insert(print);
        self.values.insert(value, ());
        Number {
            place,
            id: value,
            beside: Vec::new(),
        }
    }

    fn decode(&self, _: &Number) -> Result<Vec<Frame>, Undecodable> {
        Err(Undecodable::Probabilistic)
    }

    fn decodes(&self) -> bool {
        false
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            max_id: self.mask,
            collisions: (self.contexts.len() - self.values.len()) as u64,
            ..Statistics::default()
        }
    }
}
