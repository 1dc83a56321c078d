//! Arrays that only grow, in address space of their own. They never move: nothing is copied, no old memory stays
//! behind, and unused pages cost addresses only. Rows that no reader needs are never reused. A page of such rows goes
//! back to the system.
#![allow(
    unsafe_code,
    reason = "maps memory and gives out slices of what was written there"
)]

use std::marker::PhantomData;
use std::ops::Range as Span;
use std::ptr;

use crate::memory::address_space::{MappedRange, PAGE, release_pages, reserve_memory};

/// An array of rows without a destructor.
pub struct GrowOnlyArray<T: Copy> {
    range: Option<MappedRange>,
    len: usize,
    row_counts: PageRowCounts,
    element: PhantomData<T>,
}

/// For each page of an array, the number of needed rows that lie there at least in part.
#[derive(Default)]
pub struct PageRowCounts(Vec<u16>);

impl PageRowCounts {
    /// Counts these rows of `size` bytes as needed.
    pub fn add_rows(&mut self, size: usize, rows: Span<usize>) {
        let end = (rows.end * size).div_ceil(PAGE);
        if end > self.0.len() {
            self.0.resize(end, 0);
        }
        for (page, rows) in row_pages(size, rows) {
            if let Some(needed) = self.0.get_mut(page) {
                *needed += rows;
            }
        }
    }

    /// Counts these rows, of an array of `len`, as no longer needed. Returns the pages of which no row is needed, now
    /// or later.
    pub fn remove_rows(&mut self, size: usize, rows: Span<usize>, len: usize) -> Vec<usize> {
        let whole = len * size / PAGE;
        let mut free = Vec::new();
        for (page, rows) in row_pages(size, rows) {
            if let Some(needed) = self.0.get_mut(page) {
                *needed = needed.saturating_sub(rows);
                if *needed == 0 && page < whole {
                    free.push(page);
                }
            }
        }
        free
    }
}

/// The pages of these rows, each with the number of rows there.
fn row_pages(size: usize, rows: Span<usize>) -> impl Iterator<Item = (usize, u16)> {
    let first = rows.start * size / PAGE;
    let end = match rows.is_empty() {
        true => first,
        false => (rows.end * size).div_ceil(PAGE),
    };
    (first..end).map(move |page| {
        let from = (page * PAGE / size).max(rows.start);
        let to = ((page + 1) * PAGE).div_ceil(size).min(rows.end);
        (page, (to - from) as u16)
    })
}

impl<T: Copy> GrowOnlyArray<T> {
    /// An array with room for up to `most` rows, fewer if the system refuses.
    pub fn new(most: usize) -> GrowOnlyArray<T> {
        // Miri takes time for each row.
        const LEAST: usize = if cfg!(miri) { 16 << 10 } else { 4 << 20 };
        // Mappings begin at a page.
        const { assert!(align_of::<T>() <= 4096 && size_of::<T>() > 0) }
        let bytes = most.saturating_mul(size_of::<T>()).max(LEAST);
        GrowOnlyArray {
            range: reserve_memory(bytes, LEAST),
            len: 0,
            row_counts: PageRowCounts::default(),
            element: PhantomData,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// The number of rows for which there is room.
    pub fn capacity(&self) -> usize {
        self.range.map_or(0, |range| range.bytes() / size_of::<T>())
    }

    /// Appends rows. `None`: there is no room, and nothing has changed.
    pub fn extend(&mut self, rows: &[T]) -> Option<()> {
        let range = self.range?;
        if rows.len() > self.capacity() - self.len {
            return None;
        }
        let start = ptr::with_exposed_provenance_mut::<T>(range.start());
        // SAFETY: the mapping is writable, has room after `len` rows, and has no other owner.
        unsafe { ptr::copy_nonoverlapping(rows.as_ptr(), start.add(self.len), rows.len()) };
        self.row_counts
            .add_rows(size_of::<T>(), self.len..self.len + rows.len());
        self.len += rows.len();
        Some(())
    }

    /// Drops rows that are never read again.
    pub fn drop_rows(&mut self, rows: Span<usize>) {
        let free = self.row_counts.remove_rows(size_of::<T>(), rows, self.len);
        if let Some(range) = self.range {
            release_pages(range, &free);
        }
    }

    /// Like [`GrowOnlyArray::extend`], for one row.
    pub fn push(&mut self, row: T) -> Option<()> {
        self.extend(&[row])
    }

    pub fn as_slice(&self) -> &[T] {
        let Some(range) = self.range else {
            return &[];
        };
        let start = ptr::with_exposed_provenance::<T>(range.start());
        // SAFETY: `len` rows were written; none is changed while they are borrowed.
        unsafe { std::slice::from_raw_parts(start, self.len) }
    }

    pub fn get(&self, index: usize) -> Option<&T> {
        self.as_slice().get(index)
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let range = self.range.filter(|_| index < self.len)?;
        let start = ptr::with_exposed_provenance_mut::<T>(range.start());
        // SAFETY: the row was written, and `self` is borrowed for as long as it is.
        Some(unsafe { &mut *start.add(index) })
    }
}

impl<T: Copy> Drop for GrowOnlyArray<T> {
    fn drop(&mut self) {
        if let Some(range) = self.range {
            let start = ptr::with_exposed_provenance_mut(range.start());
            // SAFETY: the mapping was made here, and nothing borrows from it any more.
            unsafe { libc::munmap(start, range.bytes()) };
        }
    }
}

#[cfg(test)]
mod grow_only_array_tests {
    use super::*;

    #[test]
    fn rows_stay_where_they_are_until_there_is_no_room() {
        let mut rows = GrowOnlyArray::new(1);
        assert_eq!(
            (rows.len(), rows.get(0), rows.as_slice()),
            (0, None, &[][..])
        );
        rows.push((1_u16, 2_u16)).unwrap();
        let first = rows.as_slice().as_ptr();
        for n in 1..rows.capacity() {
            rows.push((n as u16, 7)).unwrap();
        }
        assert_eq!(rows.as_slice().as_ptr(), first);
        assert_eq!((rows.push((3, 3)), rows.extend(&[])), (None, Some(())));
        let last = rows.len() - 1;
        assert_eq!(rows.get(last), Some(&(last as u16, 7)));
        *rows.get_mut(0).unwrap() = (5, 6);
        assert_eq!(rows.as_slice()[..2], [(5, 6), (1, 7)]);
        assert!(rows.get_mut(last + 1).is_none());
    }

    #[test]
    fn pages_go_when_none_of_their_rows_is_needed() {
        // Rows may cross a page boundary.
        type Row = [u8; 24];
        let mut rows: GrowOnlyArray<Row> = GrowOnlyArray::new(1 << 20);
        let count = 3 * PAGE / 24 + 5;
        for n in 0..count {
            rows.push([n as u8 | 1; 24]).unwrap();
        }
        let zeros = |rows: &GrowOnlyArray<Row>| {
            let bytes = rows.as_slice().as_flattened();
            let pages = bytes.chunks(PAGE);
            pages
                .map(|page| page.iter().all(|byte| *byte == 0))
                .collect::<Vec<_>>()
        };
        let second = PAGE / 24..(2 * PAGE).div_ceil(24);
        rows.drop_rows(second.start..second.end - 1);
        assert_eq!(zeros(&rows), [false; 4]);
        rows.drop_rows(second.end - 1..second.end);
        assert_eq!(zeros(&rows), [false, true, false, false]);
        rows.drop_rows(0..0);
        rows.drop_rows(0..second.start);
        assert_eq!(zeros(&rows), [true, true, false, false]);
        // The last page may still get rows.
        rows.drop_rows(second.end..count);
        assert_eq!(zeros(&rows), [true, true, true, false]);
        rows.push([7; 24]).unwrap();
        assert_eq!(rows.get(count), Some(&[7; 24]));
    }
}
