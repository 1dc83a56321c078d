//! Blocks of memory in the order of their allocation: the oldest is known at any time.

/// No entry.
const NONE: u32 = u32::MAX;

/// The place of a block in its order. Valid until the block is removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockPlace(u32);

/// A list of blocks, each with the time of its allocation.
#[derive(Debug)]
pub struct BlockOrder {
    entries: Vec<OrderEntry>,
    oldest: u32,
    newest: u32,
    /// The first unused entry; `newer` leads to the next one.
    free: u32,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct OrderEntry {
    born: u64,
    older: u32,
    newer: u32,
}

impl Default for BlockOrder {
    fn default() -> BlockOrder {
        BlockOrder {
            entries: Vec::new(),
            oldest: NONE,
            newest: NONE,
            free: NONE,
            len: 0,
        }
    }
}

impl BlockOrder {
    /// The time of the oldest block's allocation.
    pub fn oldest(&self) -> Option<u64> {
        self.entries
            .get(self.oldest as usize)
            .map(|entry| entry.born)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a block. One that is not the newest, as a release failed, finds its place among the others.
    pub fn add_block(&mut self, born: u64) -> BlockPlace {
        let mut older = self.newest;
        while let Some(entry) = self.entries.get(older as usize)
            && entry.born > born
        {
            older = entry.older;
        }
        let newer = match self.entries.get(older as usize) {
            Some(entry) => entry.newer,
            None => self.oldest,
        };
        let place = self.take_entry(OrderEntry { born, older, newer });
        self.link(older, newer, (place, place));
        self.len += 1;
        BlockPlace(place)
    }

    /// Removes a block. Returns the time of its allocation.
    pub fn remove_block(&mut self, BlockPlace(place): BlockPlace) -> u64 {
        let Some(entry) = self.entries.get_mut(place as usize) else {
            return 0;
        };
        let OrderEntry { born, older, newer } = *entry;
        entry.newer = self.free;
        self.free = place;
        self.link(older, newer, (newer, older));
        self.len -= 1;
        born
    }

    /// Sets what follows `older` and what precedes `newer`.
    fn link(&mut self, older: u32, newer: u32, (next, previous): (u32, u32)) {
        match self.entries.get_mut(older as usize) {
            Some(entry) => entry.newer = next,
            None => self.oldest = next,
        }
        match self.entries.get_mut(newer as usize) {
            Some(entry) => entry.older = previous,
            None => self.newest = previous,
        }
    }

    fn take_entry(&mut self, entry: OrderEntry) -> u32 {
        let place = self.free;
        match self.entries.get_mut(place as usize) {
            Some(unused) => {
                self.free = unused.newer;
                *unused = entry;
                place
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        }
    }
}

#[cfg(test)]
mod block_order_tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compared with a plain list.
        #[test]
        fn the_oldest_is_known(steps in prop::collection::vec((any::<bool>(), 0..50_u64), 0..200)) {
            let mut order = BlockOrder::default();
            let mut list: Vec<(BlockPlace, u64)> = Vec::new();
            for (adds, number) in steps {
                if adds || list.is_empty() {
                    list.push((order.add_block(number), number));
                } else {
                    let (place, born) = list.remove(number as usize % list.len());
                    prop_assert_eq!(order.remove_block(place), born);
                }
                prop_assert_eq!(order.len(), list.len());
                prop_assert_eq!(order.oldest(), list.iter().map(|(_, born)| *born).min());
            }
            for (place, _) in list {
                order.remove_block(place);
            }
            prop_assert_eq!(order.oldest(), None);
            prop_assert!(order.entries.len() <= 200);
        }
    }
}
