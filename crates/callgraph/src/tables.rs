//! The lock-free tables, and the block through which a foreign reader finds them.

use crate::anchor_table::{AnchorKey, AnchorTable};
use crate::raw::{ANCHORS, CALLS, EVENTS, VERSION_SHIFT};
use crate::sync::{AtomicU64, Ordering};
use crate::table_memory::MemorySource;
use crate::transition_table::{TransitionKey, TransitionTable};
use crate::{ContextId, ContextLayout, DeadCode, Version};

/// The entry point of readers in other languages. All addresses are valid while the encoder lives.
///
/// ```text
/// block: [0] address of the header of the calls' transition table    changes when it grows
///        [1] right shift that extracts a number's version
///        [2] address of the header of the anchor table               changes when it grows
///        [3] address of the header of the events' transition table   changes when it grows
/// ```
///
/// A foreign reader of `ctx` calling `callee` at `site` does, with acquiring loads throughout:
///
/// ```text
/// place = site << 24 | callee
/// key   = ctx >>> block[1] << 52 | place                      ctx = 0: slow path
/// table = block[0]; slot = key * MULTIPLIER >>> table[0]
/// loop    k = table[8 + 2 slot]                               k = 0: slow path
///         if k = key: delta = table[9 + 2 slot], stop
///         slot = slot + 1 & table[1]
/// if delta = 0: slow path                                 the table has just moved
/// if delta != -1: return ctx + delta
/// table = block[2]; slot = (ctx ^ rotate_left(place, 32)) * MULTIPLIER >>> table[0]
/// loop    to = table[10 + 3 slot]                             to = 0: slow path
///         if ctx = table[8 + 3 slot] and place = table[9 + 3 slot]
///            and to = table[10 + 3 slot]: return to
///         slot = slot + 1 & table[1]                          after mask + 1 slots: slow path
/// ```
///
/// Transitions of [`MethodId::EVENT`] are in the table of `block[3]`, read in the same way.
/// `table[i]` is the u64 at `table + 8 i`; [`raw`](crate::raw) has all numbers.
/// The slow path is [`ContextEncoder::encode_call`](crate::ContextEncoder::encode_call).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawTables {
    /// The address of the block's first word, 8-byte aligned; it never moves.
    pub block: usize,
}

pub(crate) struct EncoderTables {
    block: Box<[AtomicU64; 4]>,
    calls: TransitionTable,
    /// The transitions of [`MethodId::EVENT`], stored apart so that calls lie closer together. A foreign reader looks up
    /// each event's number once, and keeps it.
    events: TransitionTable,
    pub(crate) anchors: AnchorTable,
}

impl EncoderTables {
    pub(crate) fn new(
        layout: ContextLayout,
        anchor_budget: usize,
        source: MemorySource,
    ) -> EncoderTables {
        let block = Box::new([0, 1, 2, 3].map(|_| AtomicU64::new(0)));
        // Relaxed: no other thread sees the encoder yet.
        block[VERSION_SHIFT].store(u64::from(layout.version_shift()), Ordering::Relaxed);
        let calls = TransitionTable::new(&block[CALLS], source);
        let events = TransitionTable::new(&block[EVENTS], source);
        let anchors = AnchorTable::new(anchor_budget, &block[ANCHORS], source);
        EncoderTables {
            block,
            calls,
            events,
            anchors,
        }
    }

    pub(crate) fn as_raw(&self) -> RawTables {
        RawTables {
            block: self.block.as_ptr() as usize,
        }
    }

    #[inline]
    pub(crate) fn find_transition(&self, key: TransitionKey) -> Option<u64> {
        match key.is_event() {
            false => self.calls.find(key),
            true => self.events.find(key),
        }
    }

    /// The caller holds the encoder's mutex.
    pub(crate) fn publish_transition(&self, key: TransitionKey, delta: u64) {
        match key.is_event() {
            false => self.calls.insert(key, delta, &self.block[CALLS]),
            true => self.events.insert(key, delta, &self.block[EVENTS]),
        }
    }

    /// The caller holds the encoder's mutex.
    pub(crate) fn publish_anchor(&self, call: AnchorKey, to: ContextId) {
        self.anchors.insert(call, to, &self.block[ANCHORS]);
    }

    /// Makes every call from versions before `version` anchor again. The caller holds the encoder's mutex.
    pub(crate) fn retire_before(&self, version: Version) {
        self.calls.retire_before(version);
        self.events.retire_before(version);
        self.anchors.clear();
    }

    /// Removes calls of dead code and by dead code. The caller holds the encoder's mutex.
    pub(crate) fn sweep_dead_code(&self, gone: &dyn DeadCode) {
        self.calls.sweep_dead_code(gone, &self.block[CALLS]);
        self.events.sweep_dead_code(gone, &self.block[EVENTS]);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.calls.memory_bytes() + self.events.memory_bytes() + self.anchors.memory_bytes()
    }
}
