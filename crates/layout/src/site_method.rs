//! The method that contains a site, as one word, which Java code reads plainly.
//!
//! `tests/loom` tries every interleaving.

use crate::sync::{AtomicU32, Ordering};

/// The method of a site. 0: there is no such site.
pub fn load_method(word: &AtomicU32) -> u32 {
    // Acquire: pairs with the Release in `set_method`.
    word.load(Ordering::Acquire)
}

/// Sets the method of a site whose code has not run yet. A thread that loads the word got the code after this store.
pub fn set_method(word: &AtomicU32, method: u32) {
    word.store(method, Ordering::Release);
}
