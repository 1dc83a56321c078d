//! A table by ascending ids. Ids without gaps are found as in an array, others by binary search; memory grows with the
//! entries only.

use std::collections::HashMap;

/// Entries by ids that mostly arrive in ascending order.
pub(super) struct AscendingIdTable<T> {
    /// Ascending ids; `values` has each entry at the same index.
    numbers: Vec<u32>,
    values: Vec<T>,
    /// Entries whose id arrived after a greater one.
    late: HashMap<u32, T>,
}

impl<T> Default for AscendingIdTable<T> {
    fn default() -> Self {
        AscendingIdTable {
            numbers: Vec::new(),
            values: Vec::new(),
            late: HashMap::new(),
        }
    }
}

impl<T> AscendingIdTable<T> {
    /// Adds an entry, or replaces the entry of the same id.
    pub(super) fn insert(&mut self, number: u32, value: T) {
        if self.numbers.last().is_none_or(|last| *last < number) {
            grow_by_quarter(&mut self.numbers);
            grow_by_quarter(&mut self.values);
            self.numbers.push(number);
            self.values.push(value);
        } else if let Some(known) = self
            .find_position(number)
            .and_then(|at| self.values.get_mut(at))
        {
            *known = value;
        } else {
            self.late.insert(number, value);
        }
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        match self.find_position(number) {
            Some(place) => self.values.get(place),
            None => self.late.get(&number),
        }
    }

    fn find_position(&self, number: u32) -> Option<usize> {
        // The position if the ids below have no gap.
        let first = *self.numbers.first()?;
        let guess = number.checked_sub(first)? as usize;
        match self.numbers.get(guess) {
            Some(found) if *found == number => Some(guess),
            _ => self.numbers.binary_search(&number).ok(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len() + self.late.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let late = self.late.iter().map(|(number, value)| (*number, value));
        self.numbers.iter().copied().zip(&self.values).chain(late)
    }

    /// The entries in the order of [`iter`](Self::iter).
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut().chain(self.late.values_mut())
    }
}

/// Makes room for one more element: grows by a quarter, where a vector would double.
pub(super) fn grow_by_quarter<T>(vector: &mut Vec<T>) {
    if vector.len() == vector.capacity() {
        vector.reserve_exact(vector.len() / 4 + 16);
    }
}

#[cfg(test)]
mod id_table_tests {
    use super::*;

    #[test]
    fn numbers_may_come_in_any_order_and_again() {
        let mut table = AscendingIdTable::default();
        let mut expected = HashMap::new();
        for (value, number) in [7, 8, 9, 12, 3, 10, 9, 3, 4_000_000_000, 11, 12, 0]
            .into_iter()
            .enumerate()
        {
            table.insert(number, value);
            expected.insert(number, value);
        }
        assert_eq!(table.len(), expected.len());
        let all: HashMap<u32, usize> = table
            .iter()
            .map(|(number, value)| (number, *value))
            .collect();
        assert_eq!(all, expected);
        for number in (0..20).chain([4_000_000_000, u32::MAX]) {
            assert_eq!(table.get(number), expected.get(&number), "{number}");
        }
        assert_eq!(AscendingIdTable::<u8>::default().get(1), None);
    }
}
