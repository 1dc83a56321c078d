//! The encoder's policy: the width of new ranges, and when to anchor.
//!
//! The values were chosen with recorded calls of ten applications, with every allocation as an event, and with the six
//! sparse recordings of the first design. `lab/docs/encodings.md` has the tables and the commands that print them.
//! Results:
//!
//! - Callees use up wide ranges. Small growth anchors less and costs nodes, until versions run out: then deep recursion
//!   anchors. 20% and a slack of 1 balance the two.
//! - A limit on unroll costs most. So nearly all versions belong to the first base; the rest is reserved for fresh
//!   bases when anchors run out.
//! - callId bits are worth more than anchor bits, until 2^16 anchors per base are too few.
//! - A program that keeps generating classes uses up all versions and anchors of the first base. So later bases have
//!   room for more anchors than memory holds.
//! - A planned number leaves little room for later calls: 2^10 per planned node are enough, larger needs are numbered
//!   lazily. 32 bits anchor five to twelve times as often.
//! - Renumbering (`ADAPTIVE`) seldom pays: every context of the new version is anchored once more, and the old nodes
//!   stay.

/// The parameters of the versioned graph. Any setting is correct; settings differ in numbers and speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncodingPolicy {
    /// A new node gets this percentage more than its first caller needs.
    pub growth_percent: u32,
    /// And this many numbers more.
    pub slack: u64,
    /// How many versions after the caller's are tried before anchoring.
    pub unroll: u32,
    /// No node other than EVENT's owns more than `2^max_node_bits` numbers.
    pub max_node_bits: u32,
    /// As `max_node_bits`, for nodes that are planned or renumbered.
    pub plan_bits: u32,
    /// A base version may unroll into this percentage of the remaining versions.
    pub epoch_percent: u32,
    /// This many bits move from callIds to anchors in every base after the first.
    pub more_anchor_bits: u32,
    /// The anchor table forgets all entries when it holds this many. The budget doubles whenever forgotten entries were
    /// needed again.
    pub anchor_budget: usize,
    /// Whether a call that no plan knows may add; otherwise it anchors.
    pub lazy: bool,
    /// The graph is renumbered after this many anchors, then after twice as many, and so on; 0: never.
    pub adapt_after: u64,
}

impl EncodingPolicy {
    /// The default: numbers are given when calls are first seen.
    pub const LUCCE: EncodingPolicy = EncodingPolicy {
        growth_percent: 20,
        slack: 1,
        unroll: u32::MAX,
        max_node_bits: 32,
        plan_bits: 10,
        epoch_percent: 94,
        more_anchor_bits: 10,
        anchor_budget: 1 << 18,
        lazy: true,
        adapt_after: 0,
    };

    /// Renumbered when it anchors often (DACCE).
    pub const ADAPTIVE: EncodingPolicy = EncodingPolicy {
        epoch_percent: 50,
        adapt_after: 4096,
        ..EncodingPolicy::LUCCE
    };

    /// Numbered once, from a given graph (PCCE); calls that this lacks or has no room for are numbered as by `LUCCE`.
    pub const STATIC: EncodingPolicy = EncodingPolicy::LUCCE;

    /// The calling context tree: every call anchors, and only events are added.
    pub const CCT: EncodingPolicy = EncodingPolicy {
        growth_percent: 0,
        slack: 0,
        unroll: 0,
        max_node_bits: 0,
        plan_bits: 0,
        ..EncodingPolicy::LUCCE
    };

    /// Returns the capacity of a new node whose first caller needs `need`, at most `limit`.
    pub(crate) fn new_node_capacity(&self, need: u64, limit: u64) -> u64 {
        let least = u128::from(need) + 1;
        let grown = least * (100 + u128::from(self.growth_percent)) / 100;
        u64::try_from(grown + u128::from(self.slack))
            .unwrap_or(u64::MAX)
            .min(limit)
    }
}

impl Default for EncodingPolicy {
    fn default() -> Self {
        Self::LUCCE
    }
}
