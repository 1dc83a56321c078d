//! Arrays that only grow, in address space of their own: they never move, so nothing is copied when they
//! grow, no outgrown memory is left behind, and what is not used yet costs addresses only.
#![allow(
    unsafe_code,
    reason = "maps memory and gives out slices of what was written there"
)]

use std::marker::PhantomData;
use std::ptr;

use crate::memory::{Range, reserve};

/// Rows without a destructor.
pub struct Rows<T: Copy> {
    range: Option<Range>,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Copy> Rows<T> {
    /// With room for up to `most` rows, fewer if the system refuses.
    pub fn new(most: usize) -> Rows<T> {
        const LEAST: usize = 4 << 20;
        // Mappings begin at a page.
        const { assert!(align_of::<T>() <= 4096 && size_of::<T>() > 0) }
        let bytes = most.saturating_mul(size_of::<T>()).max(LEAST);
        Rows {
            range: reserve(bytes, LEAST),
            len: 0,
            of: PhantomData,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// How many there is room for.
    pub fn room(&self) -> usize {
        self.range.map_or(0, |range| range.bytes / size_of::<T>())
    }

    /// `None`, and nothing has changed: there is no room.
    pub fn extend(&mut self, rows: &[T]) -> Option<()> {
        let range = self.range?;
        if rows.len() > self.room() - self.len {
            return None;
        }
        let start = ptr::with_exposed_provenance_mut::<T>(range.start);
        // SAFETY: the mapping is writable, has room behind `len` rows, and is nobody else's.
        unsafe { ptr::copy_nonoverlapping(rows.as_ptr(), start.add(self.len), rows.len()) };
        self.len += rows.len();
        Some(())
    }

    /// As `extend`.
    pub fn push(&mut self, row: T) -> Option<()> {
        self.extend(&[row])
    }

    pub fn all(&self) -> &[T] {
        let Some(range) = self.range else {
            return &[];
        };
        let start = ptr::with_exposed_provenance::<T>(range.start);
        // SAFETY: so many rows were written; nobody changes them while they are borrowed.
        unsafe { std::slice::from_raw_parts(start, self.len) }
    }

    pub fn get(&self, index: usize) -> Option<&T> {
        self.all().get(index)
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let range = self.range.filter(|_| index < self.len)?;
        let start = ptr::with_exposed_provenance_mut::<T>(range.start);
        // SAFETY: the row was written, and `self` is borrowed for as long as it is.
        Some(unsafe { &mut *start.add(index) })
    }
}

impl<T: Copy> Drop for Rows<T> {
    fn drop(&mut self) {
        if let Some(range) = self.range {
            let start = ptr::with_exposed_provenance_mut(range.start);
            // SAFETY: the mapping was made here, and all that was borrowed from it has been given back.
            unsafe { libc::munmap(start, range.bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_where_they_are_until_there_is_no_room() {
        let mut rows = Rows::new(1);
        assert_eq!((rows.len(), rows.get(0), rows.all()), (0, None, &[][..]));
        rows.push((1_u16, 2_u16)).unwrap();
        let first = rows.all().as_ptr();
        for n in 1..rows.room() {
            rows.push((n as u16, 7)).unwrap();
        }
        assert_eq!(rows.all().as_ptr(), first);
        assert_eq!((rows.push((3, 3)), rows.extend(&[])), (None, Some(())));
        let last = rows.len() - 1;
        assert_eq!(rows.get(last), Some(&(last as u16, 7)));
        *rows.get_mut(0).unwrap() = (5, 6);
        assert_eq!(rows.all()[..2], [(5, 6), (1, 7)]);
        assert!(rows.get_mut(last + 1).is_none());
    }
}
