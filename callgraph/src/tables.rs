//! The lock-free tables together, and the block through which a foreign reader finds them.

use crate::anchor_table::{AnchorTable, Call};
use crate::sync::{AtomicU64, Ordering};
use crate::transition_table::{Key, TransitionTable};
use crate::{ContextId, Layout, Version};

const TRANSITIONS: usize = 0;
const VERSION_SHIFT: usize = 1;
const ANCHORS: usize = 2;

/// Where a reader in another language begins. All addresses are valid as long as the encoder is.
///
/// ```text
/// block: [0] address of the transition table's header     changes when the table grows
///        [1] how far to shift a number right to get its version
///        [2] address of the anchor table's header         changes when the table grows
///        [3] 0
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
/// if delta != -1: return ctx + delta
/// table = block[2]; slot = (ctx ^ rotate_left(place, 32)) * MULTIPLIER >>> table[0]
/// loop    to = table[10 + 4 slot]                             to = 0: slow path
///         if ctx = table[8 + 4 slot] and place = table[9 + 4 slot]
///            and to = table[10 + 4 slot]: return to
///         slot = slot + 1 & table[1]                          after mask + 1 slots: slow path
/// ```
///
/// `MULTIPLIER` is 0x9E37_79B9_7F4A_7C15; `table[i]` is the u64 at `table + 8 i`.
/// The slow path is [`Encoder::step`](crate::Encoder::step).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawTables {
    /// Of the block's first word, 8-byte aligned; it never moves.
    pub block: usize,
}

pub(crate) struct Tables {
    block: Box<[AtomicU64; 4]>,
    pub(crate) transitions: TransitionTable,
    pub(crate) anchors: AnchorTable,
}

impl Tables {
    pub(crate) fn new(layout: Layout, anchor_budget: usize) -> Tables {
        let block = Box::new([0, 1, 2, 3].map(|_| AtomicU64::new(0)));
        // Relaxed: nobody else sees the encoder yet.
        block[VERSION_SHIFT].store(u64::from(layout.version_shift()), Ordering::Relaxed);
        let transitions = TransitionTable::new(&block[TRANSITIONS]);
        let anchors = AnchorTable::new(anchor_budget, &block[ANCHORS]);
        Tables {
            block,
            transitions,
            anchors,
        }
    }

    pub(crate) fn raw(&self) -> RawTables {
        RawTables {
            block: self.block.as_ptr() as usize,
        }
    }

    /// The caller holds the encoder's mutex.
    pub(crate) fn publish_transition(&self, key: Key, delta: u64) {
        self.transitions
            .insert(key, delta, &self.block[TRANSITIONS]);
    }

    /// The caller holds the encoder's mutex.
    pub(crate) fn publish_anchor(&self, call: Call, to: ContextId) {
        self.anchors.insert(call, to, &self.block[ANCHORS]);
    }

    /// Whatever is called from versions before `version` anchors anew. The caller holds the encoder's
    /// mutex.
    pub(crate) fn retire(&self, version: Version) {
        self.transitions.retire(version);
        self.anchors.clear();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.transitions.bytes() + self.anchors.bytes()
    }
}
