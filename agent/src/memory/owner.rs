//! The method that a site lies in, as one word, which Java code reads plainly.
//!
//! `models/` has this file, too, with atomics of its own: it runs through what threads may see.

use super::sync::{AtomicU32, Ordering};

/// 0: there is no such site.
pub fn load_method(owner: &AtomicU32) -> u32 {
    // Acquire: pairs with the Release in `set_method`.
    owner.load(Ordering::Acquire)
}

/// The site's code has not run yet: a thread that loads the word got the code after this store.
pub fn set_method(owner: &AtomicU32, method: u32) {
    owner.store(method, Ordering::Release);
}
