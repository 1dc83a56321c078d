//! The versioned graph: encoder and decoder of calling contexts. No I/O, no JVM.

mod ids;
mod journal;

pub use ids::*;
pub use journal::*;
