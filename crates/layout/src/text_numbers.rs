//! A table of permanent texts with their numbers, read by Java code.
//!
//! `tests/loom` tries every interleaving.

use crate::sync::{AtomicU32, Mutex, MutexGuard, Ordering, PoisonError};

/// The numbers of the texts, by slot.
pub struct TextNumbers {
    /// 0: none.
    numbers: Box<[AtomicU32]>,
    /// Number of used slots; a thread holds the lock to take one.
    used: Mutex<usize>,
}

impl TextNumbers {
    pub fn new(places: usize) -> TextNumbers {
        TextNumbers {
            numbers: (0..places).map(|_| AtomicU32::new(0)).collect(),
            used: Mutex::new(0),
        }
    }

    /// Address of the numbers, of four bytes each.
    pub fn numbers_address(&self) -> usize {
        self.numbers.as_ptr() as usize
    }

    /// While the guard lives, no thread takes a slot.
    pub fn lock(&self) -> MutexGuard<'_, usize> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the slot's number, which is not 0, before the slot gets its text. `None`: another thread has taken the slot,
    /// or half of all slots are used. The other half stays empty.
    pub fn claim_place(&self, place: i32, number: u32) -> Option<()> {
        let mut taken = self.lock();
        let slot = self.numbers.get(usize::try_from(place).ok()?)?;
        // Relaxed: Java code that sees the text without the number calls the agent again.
        let is_free = slot.load(Ordering::Relaxed) == 0 && *taken < self.numbers.len() / 2;
        is_free.then(|| {
            slot.store(number, Ordering::Relaxed);
            *taken += 1;
        })
    }

    /// As Java code reads it; for tests.
    pub fn get_number(&self, place: usize) -> u32 {
        self.numbers[place].load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod text_numbers_tests {
    use super::*;

    #[test]
    fn a_place_is_taken_once_and_half_of_them_stay_empty() {
        const PLACES: i32 = 64;
        let places = TextNumbers::new(PLACES as usize);
        assert_eq!(places.claim_place(7, 3), Some(()));
        assert_eq!(places.claim_place(7, 4), None);
        assert_eq!(places.get_number(7), 3);
        for place in [-1, PLACES, i32::MIN, i32::MAX] {
            assert_eq!(places.claim_place(place, 5), None);
        }
        let more = (8..PLACES).filter(|place| places.claim_place(*place, 6).is_some());
        assert_eq!(more.count(), PLACES as usize / 2 - 1);
    }
}
