//! Remembers which nodes are full.
//!
//! A program that keeps generating code fills version after version, and a search for room for one more caller would
//! examine all of them. A node that has no room now never has room later, because used numbers stay used. So one fact
//! stays true: all nodes of a method in a range of versions exist, and none has room for a given need or more.

use crate::numbering::FastMap;
use crate::{MethodId, Version};

/// Shorter ranges are examined as fast.
const LEAST: u32 = 16;

#[derive(Default)]
pub(crate) struct FullNodes(FastMap<MethodId, Vec<FullNodeRange>>);

/// No node from `first` up to `end` has room for `need`. The index in the list is the bit length of `need`.
#[derive(Clone, Copy, Default)]
struct FullNodeRange {
    need: u64,
    first: u32,
    end: u32,
}

/// Returns the index of the range for needs of this bit length.
fn size_class(need: u64) -> usize {
    (u64::BITS - need.leading_zeros()) as usize
}

impl FullNodes {
    /// Returns the first version from `from` on that may have room.
    pub(crate) fn skip_full(&self, method: MethodId, from: Version, need: u64) -> Version {
        let rows = self.0.get(&method);
        let row = rows.and_then(|rows| rows.get(size_class(need)));
        let fits =
            |row: &&FullNodeRange| need >= row.need && (row.first..row.end).contains(&from.0);
        row.filter(fits).map_or(from, |row| Version(row.end))
    }

    /// Records that the nodes from `from` up to `to` have no room.
    pub(crate) fn record_full(
        &mut self,
        method: MethodId,
        (from, to): (Version, Version),
        need: u64,
    ) {
        if to.0 - from.0 < LEAST {
            return;
        }
        let rows = self.0.entry(method).or_default();
        if rows.len() <= size_class(need) {
            rows.resize(size_class(need) + 1, FullNodeRange::default());
        }
        if let Some(row) = rows.get_mut(size_class(need)) {
            *row = FullNodeRange {
                need,
                first: from.0,
                end: to.0,
            };
        }
    }

    /// Returns the size in bytes: a table entry for each method, and its ranges.
    pub(crate) fn memory_bytes(&self) -> usize {
        let rows = self
            .0
            .values()
            .map(|rows| rows.capacity() * size_of::<FullNodeRange>());
        // A hash table keeps one entry in eight free, and a byte for each.
        let places =
            (self.0.capacity() * 8 / 7) * (size_of::<(MethodId, Vec<FullNodeRange>)>() + 1);
        rows.sum::<usize>() + places
    }

    /// Removes methods that are dead.
    pub(crate) fn sweep_dead_code(&mut self, gone: &dyn crate::DeadCode) {
        self.0.retain(|method, _| !gone.is_method_dead(*method));
    }
}

#[cfg(all(test, not(loom)))]
mod full_nodes_tests {
    use super::*;

    #[test]
    fn only_what_was_found_full_is_skipped() {
        let mut full = FullNodes::default();
        let (method, [from, to]) = (MethodId(3), [10, 90].map(Version));
        full.record_full(method, (from, to), 5);
        for need in [5, 6, 7] {
            assert_eq!(full.skip_full(method, Version(40), need), to);
        }
        // Less may fit, and more was looked for elsewhere.
        for need in [1, 4, 8] {
            assert_eq!(full.skip_full(method, from, need), from);
        }
        for outside in [Version(9), to, Version(91)] {
            assert_eq!(full.skip_full(method, outside, 5), outside);
        }
        assert_eq!(full.skip_full(MethodId(4), from, 5), from);
    }
}
