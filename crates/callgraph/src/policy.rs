//! What the encoder may decide freely: how wide new ranges are and when to anchor.
//!
//! Chosen with recorded calls of ten applications, every allocation an event, and the six sparse
//! recordings of the first design: the tables, and the commands that print them, are in
//! `research/docs/encodings.md`. What they taught:
//!
//! - Wide ranges are used up by being handed on. Small growth anchors less and costs nodes, until
//!   versions run out: then deep recursion anchors. 20% and a slack of 1 balance the two.
//! - A limit on unroll costs most. So nearly all versions belong to the first base; the rest is kept
//!   for fresh bases when anchors run out.
//! - callId bits are worth more than anchor bits, until 2^16 anchors per base are too few.
//! - A program that makes classes for ever uses up all versions and anchors of the first base. So the
//!   bases after it have room for more anchors than memory holds.
//! - A number that is planned leaves little room for what is met later: 2^10 per planned node are
//!   enough, what needs more is numbered lazily. 32 bits anchor five to twelve times as often.
//! - Numbering anew (`ADAPTIVE`) seldom pays: every context of the new version is anchored once more,
//!   and the old nodes stay.

/// The knobs of the versioned graph. Any setting is correct; they differ in numbers and speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncodingPolicy {
    /// A new node gets this much more than its first caller needs.
    pub growth_percent: u32,
    /// And this many numbers more.
    pub slack: u64,
    /// How many versions after the caller's are tried before anchoring.
    pub unroll: u32,
    /// No node other than EVENT's owns more than `2^max_node_bits` numbers.
    pub max_node_bits: u32,
    /// As `max_node_bits`, for nodes that are numbered in advance or anew.
    pub plan_bits: u32,
    /// A base version may unroll into so many percent of the versions that remain.
    pub epoch_percent: u32,
    /// So many bits of callIds become bits of anchors in every base after the first.
    pub more_anchor_bits: u32,
    /// The intern table of anchors forgets everything when it holds this many, or twice, four times … as many
    /// where what it forgot was needed again.
    pub anchor_budget: usize,
    /// Whether a call that no plan knows may add; otherwise it anchors.
    pub lazy: bool,
    /// The graph is numbered anew after this many anchors, then after twice as many, and so on;
    /// 0: never.
    pub adapt_after: u64,
}

impl EncodingPolicy {
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

    /// Numbered anew when it anchors often (DACCE).
    pub const ADAPTIVE: EncodingPolicy = EncodingPolicy {
        epoch_percent: 50,
        adapt_after: 4096,
        ..EncodingPolicy::LUCCE
    };

    /// Numbered once, from a graph that is given in advance (PCCE); what that does not know, or leaves
    /// no room for, as by `LUCCE`.
    pub const STATIC: EncodingPolicy = EncodingPolicy::LUCCE;

    /// The calling context tree as one setting: every call anchors, only events are added.
    pub const CCT: EncodingPolicy = EncodingPolicy {
        growth_percent: 0,
        slack: 0,
        unroll: 0,
        max_node_bits: 0,
        plan_bits: 0,
        ..EncodingPolicy::LUCCE
    };

    /// The capacity of a new node whose first caller needs `need`, at most `limit`.
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
