//! The method that contains a site, as one word, which Java code reads plainly.
//!
//! `models/` includes this file with atomics of loom, and tries every interleaving.

use super::sync::{AtomicU32, Ordering};

/// The method of a site. 0: there is no such site.
pub fn load_method(owner: &AtomicU32) -> u32 {
    // Acquire: pairs with the Release in `set_method`.
    owner.load(Ordering::Acquire)
}

/// Sets the method of a site whose code has not run yet. A thread that loads the word got the code after this store.
pub fn set_method(owner: &AtomicU32, method: u32) {
    owner.store(method, Ordering::Release);
}
