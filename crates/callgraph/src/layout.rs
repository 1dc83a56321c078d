//! The use of a context number's bits.
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
//! A base may move the border between anchor and callId for all later versions: see [`Base`](crate::Base). The
//! version's bits are the same in all numbers.

use crate::{AnchorId, ContextId, Version};

/// The widths of the three fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContextLayout {
    version_bits: u32,
    anchor_bits: u32,
    call_id_bits: u32,
}

impl ContextLayout {
    /// Chosen by measurement, see [`EncodingPolicy`](crate::EncodingPolicy).
    pub const DEFAULT: ContextLayout = ContextLayout::new(12, 18, 34);

    /// The largest width of a version that fits into a transition key.
    pub const MAX_VERSION_BITS: u32 = 12;

    /// Creates a layout.
    ///
    /// # Panics
    /// A field is empty or too wide, or the sum exceeds 64 bits.
    #[must_use]
    pub const fn new(version_bits: u32, anchor_bits: u32, call_bits: u32) -> ContextLayout {
        assert!(version_bits >= 1 && version_bits <= Self::MAX_VERSION_BITS);
        assert!(anchor_bits >= 1 && anchor_bits <= 32);
        assert!(call_bits >= 1 && call_bits <= 56);
        assert!(version_bits + anchor_bits + call_bits <= 64);
        ContextLayout {
            version_bits,
            anchor_bits,
            call_id_bits: call_bits,
        }
    }

    /// Returns this layout with another number of anchor bits; none if that leaves no bits for the anchor or the
    /// callId.
    #[must_use]
    pub const fn with_anchor_bits(self, anchor_bits: u32) -> Option<ContextLayout> {
        let shift = self.version_shift();
        if anchor_bits < 1 || anchor_bits > 32 || anchor_bits >= shift || shift - anchor_bits > 56 {
            return None;
        }
        Some(ContextLayout {
            anchor_bits,
            call_id_bits: shift - anchor_bits,
            ..self
        })
    }

    #[must_use]
    pub const fn anchor_bits(self) -> u32 {
        self.anchor_bits
    }

    /// Packs the fields, which must fit: they come from this layout's own graph.
    #[must_use]
    pub const fn pack_context(self, version: Version, anchor: AnchorId, call: u64) -> ContextId {
        debug_assert!(version.0 <= self.max_version().0 && call < self.call_id_count());
        let anchor = (anchor.0 as u64) << self.call_id_bits;
        ContextId((version.0 as u64) << self.version_shift() | anchor | call)
    }

    #[must_use]
    pub const fn version_of(self, id: ContextId) -> Version {
        Version((id.0 >> self.version_shift()) as u32 & self.max_version().0)
    }

    #[must_use]
    pub const fn anchor_of(self, id: ContextId) -> AnchorId {
        AnchorId((id.0 >> self.call_id_bits & (self.anchor_count() - 1)) as u32)
    }

    #[must_use]
    pub const fn call_id_of(self, id: ContextId) -> u64 {
        id.0 & (self.call_id_count() - 1)
    }

    /// Whether `id` can be a number of this layout at all.
    #[must_use]
    pub const fn fits_context(self, id: ContextId) -> bool {
        let version = id.0 >> self.version_shift();
        version != 0 && version <= self.max_version().0 as u64
    }

    /// Returns the position of the version field.
    #[must_use]
    pub const fn version_shift(self) -> u32 {
        self.anchor_bits + self.call_id_bits
    }

    #[must_use]
    pub const fn max_version(self) -> Version {
        Version((1 << self.version_bits) - 1)
    }

    /// Returns how many anchors a base version can have.
    #[must_use]
    pub const fn anchor_count(self) -> u64 {
        1 << self.anchor_bits
    }

    /// Returns the number of callIds: the largest capacity of a node.
    #[must_use]
    pub const fn call_id_count(self) -> u64 {
        1 << self.call_id_bits
    }

    /// Returns what an additive transition adds to the whole number.
    pub(crate) const fn transition_delta(self, from: Version, to: Version, av: u64) -> u64 {
        ((to.0 - from.0) as u64) << self.version_shift() | av
    }
}

impl Default for ContextLayout {
    fn default() -> Self {
        Self::DEFAULT
    }
}
