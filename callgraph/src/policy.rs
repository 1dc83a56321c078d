//! What the encoder may decide freely: how wide new ranges are and when to anchor.

/// The knobs of the versioned graph. Any setting is correct; they differ in numbers and speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// A new node gets this much more than its first caller needs.
    pub growth_percent: u32,
    /// And this many numbers more.
    pub slack: u64,
    /// How many versions after the caller's are tried before anchoring.
    pub unroll: u32,
    /// No node other than EVENT's owns more than `2^max_node_bits` numbers.
    pub max_node_bits: u32,
    /// A base version may unroll into one part in `epoch_share` of the versions that remain.
    pub epoch_share: u32,
    /// The intern table of anchors forgets everything when it holds this many.
    pub anchor_budget: usize,
}

impl Policy {
    pub const LUCCE: Policy = Policy {
        growth_percent: 15,
        slack: 4,
        unroll: u32::MAX,
        max_node_bits: 30,
        epoch_share: 2,
        anchor_budget: 1 << 18,
    };

    /// The calling context tree as one setting: every call anchors, only events are added.
    pub const CCT: Policy = Policy {
        growth_percent: 0,
        slack: 0,
        unroll: 0,
        max_node_bits: 0,
        ..Policy::LUCCE
    };

    /// The capacity of a new node whose first caller needs `need`, at most `limit`.
    pub(crate) fn capacity(&self, need: u64, limit: u64) -> u64 {
        let least = u128::from(need) + 1;
        let grown = least * (100 + u128::from(self.growth_percent)) / 100;
        u64::try_from(grown + u128::from(self.slack))
            .unwrap_or(u64::MAX)
            .min(limit)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::LUCCE
    }
}
