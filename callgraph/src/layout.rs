//! How a context number's bits are used.
//!
//! ```text
//!  63          52 51                  34 33                           0
//! +--------------+----------------------+------------------------------+
//! |   version    |        anchor        |            callId            |   DEFAULT
//! +--------------+----------------------+------------------------------+
//! ```
//!
//! A layout may use fewer than 64 bits (the tests' layouts do); the bits above are then 0.
//!
//! A base may move the border between anchor and callId for all versions that follow it: see
//! [`Base`](crate::Base). The version's place is the same in all numbers.

use crate::{AnchorId, ContextId, Version};

/// The widths of the three fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    version_bits: u32,
    anchor_bits: u32,
    call_bits: u32,
}

impl Layout {
    /// Chosen by measurement, see [`Policy`](crate::Policy).
    pub const DEFAULT: Layout = Layout::new(12, 18, 34);

    /// The transition key has room for this many version bits.
    pub const MAX_VERSION_BITS: u32 = 12;

    /// # Panics
    /// If a field is empty or too wide, or the sum exceeds 64 bits.
    #[must_use]
    pub const fn new(version_bits: u32, anchor_bits: u32, call_bits: u32) -> Layout {
        assert!(version_bits >= 1 && version_bits <= Self::MAX_VERSION_BITS);
        assert!(anchor_bits >= 1 && anchor_bits <= 32);
        assert!(call_bits >= 1 && call_bits <= 56);
        assert!(version_bits + anchor_bits + call_bits <= 64);
        Layout {
            version_bits,
            anchor_bits,
            call_bits,
        }
    }

    /// This layout with another border between anchor and callId; none if that leaves no room for one.
    #[must_use]
    pub const fn with_anchor_bits(self, anchor_bits: u32) -> Option<Layout> {
        let shift = self.version_shift();
        if anchor_bits < 1 || anchor_bits > 32 || anchor_bits >= shift || shift - anchor_bits > 56 {
            return None;
        }
        Some(Layout {
            anchor_bits,
            call_bits: shift - anchor_bits,
            ..self
        })
    }

    #[must_use]
    pub const fn anchor_bits(self) -> u32 {
        self.anchor_bits
    }

    /// The fields must fit: they come from this layout's own graph.
    #[must_use]
    pub const fn pack(self, version: Version, anchor: AnchorId, call: u64) -> ContextId {
        debug_assert!(version.0 <= self.max_version().0 && call < self.calls());
        let anchor = (anchor.0 as u64) << self.call_bits;
        ContextId((version.0 as u64) << self.version_shift() | anchor | call)
    }

    #[must_use]
    pub const fn version(self, id: ContextId) -> Version {
        Version((id.0 >> self.version_shift()) as u32 & self.max_version().0)
    }

    #[must_use]
    pub const fn anchor(self, id: ContextId) -> AnchorId {
        AnchorId((id.0 >> self.call_bits & (self.anchors() - 1)) as u32)
    }

    #[must_use]
    pub const fn call(self, id: ContextId) -> u64 {
        id.0 & (self.calls() - 1)
    }

    /// Whether `id` can be a number of this layout at all.
    #[must_use]
    pub const fn fits(self, id: ContextId) -> bool {
        let version = id.0 >> self.version_shift();
        version != 0 && version <= self.max_version().0 as u64
    }

    /// The position of the version field.
    #[must_use]
    pub const fn version_shift(self) -> u32 {
        self.anchor_bits + self.call_bits
    }

    #[must_use]
    pub const fn max_version(self) -> Version {
        Version((1 << self.version_bits) - 1)
    }

    /// How many anchors one base version can count.
    #[must_use]
    pub const fn anchors(self) -> u64 {
        1 << self.anchor_bits
    }

    /// How many callIds there are: the largest capacity a node can have.
    #[must_use]
    pub const fn calls(self) -> u64 {
        1 << self.call_bits
    }

    /// What an additive transition adds to the whole number.
    pub(crate) const fn delta(self, from: Version, to: Version, av: u64) -> u64 {
        ((to.0 - from.0) as u64) << self.version_shift() | av
    }
}

impl Default for Layout {
    fn default() -> Self {
        Self::DEFAULT
    }
}
