//! Every encoding of the papers behind one trait, so that all can be fed with the same calls.
//!
//! | name | paper | what an event keeps |
//! |---|---|---|
//! | `lucce` | `callgraph`'s versioned graph, lazily | one number |
//! | `adaptive` | as `lucce`, renumbered when it anchors often (DACCE's idea) | one number |
//! | `static` | as `lucce`, numbered in advance (PCCE's idea) | one number |
//! | `cct` | as `lucce`, every call interned: the calling context tree | one number |
//! | `lucce-paper` | Lucce, Algorithm 1 | callId and version |
//! | `pcce` | PCCE, Algorithms 1 to 3 | an id and a stack |
//! | `pcce-hybrid` | PCCE, Algorithm 4 | an offset, an id and a stack |
//! | `dacce` | DACCE, Algorithm 1 | an id, a timestamp and a stack |
//! | `pcc` | probabilistic calling contexts | one number, which cannot be decoded |
//!
//! The caller keeps the plain stack: `leave_call` gets the returning call, which the instrumented code at the call site
//! knows.
//!
//! Reading order: `encoding` (the trait), `encoded_context`, `statistics`; then one file per encoding.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod encoded_context;
mod encoding;
mod statistics;

mod thread_table;

mod dacce;
mod hybrid;
mod lucce_paper;
mod pcc;
mod pcce;
mod versioned;

pub use dacce::{DacceEncoding, DacceTuning};
pub use encoded_context::{ContextDecodeError, EncodedContext};
pub use encoding::ContextEncoding;
pub use hybrid::PcceHybridEncoding;
pub use lucce_paper::{CallIdVersion, LucceAlgorithm, LuccePaperEncoding, UpdateObserver};
pub use pcc::PccEncoding;
pub use pcce::PcceEncoding;
pub use statistics::{EncodingStatistics, ReEncodingProgress};
pub use versioned::VersionedEncoding;
