//! `pcc`: probabilistic calling contexts (Bond and McKinley, OOPSLA 2007), for comparison.
//!
//! At a call site `cs`, `V` becomes `3 * V + cs`, modulo 2 to the power of its bits. Two contexts may get the same
//! value, and no value can be decoded. To count collisions, every context also gets a fingerprint of 128 bits.

use std::collections::HashSet;

use super::thread_table::ThreadTable;
use super::{ContextDecodeError, ContextEncoding, EncodedContext, EncodingStatistics};
use lucce_callgraph::ProgramThreadId;
use lucce_callgraph::numbering::FastMap;
use lucce_callgraph::{CallEdge, ContextFrame, SiteId};

/// See the module's description.
pub struct PccEncoding {
    mask: u64,
    threads: ThreadTable<Vec<PccValue>>,
    contexts: HashSet<u128>,
    values: FastMap<u64, ()>,
}

#[derive(Clone, Copy, Default)]
struct PccValue {
    value: u64,
    fingerprint: u128,
}

impl PccEncoding {
    /// Values have `bits` bits, at most 64; the paper's have 32.
    #[must_use]
    pub fn new(bits: u32) -> PccEncoding {
        PccEncoding {
            mask: u64::MAX >> (64 - bits.clamp(1, 64)),
            threads: ThreadTable::default(),
            contexts: HashSet::new(),
            values: FastMap::default(),
        }
    }

    fn extend_value(&self, from: PccValue, site: SiteId, callee: u32) -> PccValue {
        let value = from.value.wrapping_mul(3).wrapping_add(site_number(site)) & self.mask;
        let place = u128::from(site.0) << 32 | u128::from(callee);
        let print =
            (from.fingerprint ^ place).wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645);
        PccValue {
            value,
            fingerprint: print ^ print >> 64,
        }
    }

    fn top_value(&self, thread: ProgramThreadId) -> PccValue {
        let stack = self.threads.get(thread);
        stack
            .and_then(|stack| stack.last().copied())
            .unwrap_or_default()
    }
}

/// In the paper, call sites are random numbers.
fn site_number(site: SiteId) -> u64 {
    let mixed = (u64::from(site.0) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 7
}

impl ContextEncoding for PccEncoding {
    fn name(&self) -> &'static str {
        "pcc"
    }

    fn start_thread(
        &mut self,
        thread: ProgramThreadId,
        _: Option<(ProgramThreadId, ContextFrame)>,
    ) {
        self.threads.get_or_create(thread).clear();
    }

    fn enter_call(&mut self, thread: ProgramThreadId, edge: CallEdge) {
        let value = self.extend_value(self.top_value(thread), edge.site, edge.callee.0);
        self.threads.get_or_create(thread).push(value);
    }

    fn leave_call(&mut self, thread: ProgramThreadId, _: CallEdge) {
        self.threads.get_or_create(thread).pop();
    }

    fn current_context(&mut self, thread: ProgramThreadId, place: ContextFrame) -> EncodedContext {
        let PccValue {
            value,
            fingerprint: print,
        } = self.extend_value(self.top_value(thread), place.site, place.method.0);
        self.contexts.insert(print);
        self.values.insert(value, ());
        EncodedContext::single(place, value)
    }

    fn decode_context(&self, _: &EncodedContext) -> Result<Vec<ContextFrame>, ContextDecodeError> {
        Err(ContextDecodeError::Probabilistic)
    }

    fn is_decodable(&self) -> bool {
        false
    }

    fn collect_statistics(&self) -> EncodingStatistics {
        EncodingStatistics {
            max_id: self.mask,
            collisions: (self.contexts.len() - self.values.len()) as u64,
            ..EncodingStatistics::default()
        }
    }
}
