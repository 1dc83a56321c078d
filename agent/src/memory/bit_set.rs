//! Sets of small numbers, one bit for each.

/// A set of small numbers.
#[derive(Clone, Default)]
pub struct BitSet(Vec<u64>);

impl BitSet {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, id: u32) -> bool {
        let word = self.0.get(id as usize / 64).copied().unwrap_or(0);
        word >> (id % 64) & 1 == 1
    }

    /// Inserts the numbers from `first` up to, but not including, `end`.
    pub fn insert_range(&mut self, first: u32, end: u32) {
        (first..end).for_each(|id| self.insert(id));
    }

    pub fn insert(&mut self, id: u32) {
        let at = id as usize / 64;
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        if let Some(word) = self.0.get_mut(at) {
            *word |= 1 << (id % 64);
        }
    }
}
