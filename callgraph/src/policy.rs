//! What the encoder may decide freely: how wide new ranges are and when to anchor.
//!
//! Measured on contexts recorded at every 61st allocation, `Layout::DEFAULT` and `Policy::LUCCE`:
//! `cargo run --release -p lucce-callgraph --example contexts -- FILE.zst…`, no number unknown,
//! every 17th number decoded to the plain stack.
//!
//! | program | events | CCT nodes | nodes | transitions | anchors | versions | anchoring | MiB |
//! |---|---|---|---|---|---|---|---|---|
//! | javac | 900,001 | 1,114,113 | 103,603 | 159,610 | 38,154 | 2,048 | 2.456% | 33.6 |
//! | fop | 878,014 | 50,680 | 22,998 | 32,179 | 167 | 266 | 0.076% | 3.8 |
//! | xalan | 366,607 | 16,907 | 7,984 | 11,500 | 12 | 85 | 0.000% | 1.6 |
//! | jython | 900,001 | 37,067 | 10,470 | 15,109 | 206 | 115 | 0.003% | 1.8 |
//! | h2 | 900,001 | 13,004 | 7,956 | 10,354 | 11 | 98 | 0.000% | 1.6 |
//! | lusearch | 476,231 | 13,465 | 5,601 | 7,904 | 12 | 102 | 0.000% | 1.0 |
//!
//! "anchoring" is the share of encoded calls (not of transitions) that anchor. The hardest two,
//! with `max_node_bits` two less than the callId's bits:
//!
//! | layout | growth | javac nodes | javac anchoring | javac MiB | fop anchoring |
//! |---|---|---|---|---|---|
//! | 12, 20, 32 | 5% | 378,143 | 1.2% | 101.8 | 0.00% |
//! | 12, 20, 32 | 10% | 220,833 | 1.8% | 57.9 | 0.00% |
//! | 12, 20, 32 | 15% | 103,603 | 2.5% | 33.6 | 0.08% |
//! | 12, 20, 32 | 25% | 44,835 | 3.3% | 21.1 | 2.5% |
//! | 12, 20, 32 | 50% | 21,712 | 6.0% | 24.8 | 4.1% |
//! | 12, 18, 34 | 15% | 99,016 | 2.1% | 28.5 | 0.00% |
//! | 12, 16, 36 | 15% | 112,143 | 1.8% | 29.5 | 0.00% |
//! | 12, 12, 40 | 25% | 113,632 | 2.7% | 34.1 | 0.05% |
//!
//! Wide ranges are used up by being handed on, so small growth anchors less and costs nodes.
//! A limit on unroll costs most: with 128 versions javac has nearly twice the anchors. 20 anchor bits leave room
//! for a million anchors per base where the recorded programs need up to 38,000.

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
    /// Whether a call that no plan knows may add; otherwise it anchors.
    pub lazy: bool,
    /// The graph is numbered anew after this many anchors, then after twice as many, and so on;
    /// 0: never.
    pub adapt_after: u64,
}

impl Policy {
    pub const LUCCE: Policy = Policy {
        growth_percent: 15,
        slack: 4,
        unroll: u32::MAX,
        max_node_bits: 30,
        epoch_share: 2,
        anchor_budget: 1 << 18,
        lazy: true,
        adapt_after: 0,
    };

    /// Numbered anew when it anchors often (DACCE).
    pub const ADAPTIVE: Policy = Policy {
        unroll: 16,
        epoch_share: 8,
        adapt_after: 1024,
        ..Policy::LUCCE
    };

    /// Numbered once, from a graph that is given in advance; every other call anchors (PCCE).
    pub const STATIC: Policy = Policy {
        growth_percent: 0,
        slack: 0,
        unroll: 0,
        lazy: false,
        ..Policy::LUCCE
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
