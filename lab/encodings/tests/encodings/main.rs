//! The encodings: the papers' worked examples with the papers' numbers, and random programs against
//! the plain stack.

mod feed;

mod example_contrast;
mod example_dacce;
mod example_lucce;
mod example_pcce;
mod identity;
