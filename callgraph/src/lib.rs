//! The versioned graph: encoder and decoder of calling contexts. No I/O, no JVM.
//!
//! ```text
//! step ──► TransitionTable, AnchorTable      lock-free, shared with foreign readers
//!   └─ miss ─► Learner ──► Journal           one mutex: choose, log, apply, publish
//!                └──────► Graph ◄── Change   the decoder builds the same graph from the log
//! ```
//!
//! *Architecture Invariant*: a number is handed out only after every change that gives it its
//! meaning was accepted by the journal. Nothing is ever changed, and a number that was given is never
//! given again, so it keeps its meaning for ever. What is [`Gone`] may leave the encoder; the journal has it.

mod ids;
mod journal;
mod layout;
mod policy;
pub mod raw;

mod error;
mod graph;

mod edge;
mod numbering;
mod plan;

mod lock_wait;
mod sync;
mod words;

mod anchor_table;
mod transition_table;

mod adaptation;
mod encoder;
mod forgotten;
mod full;
mod learner;
mod stats;
mod tables;

pub mod encodings;

pub use edge::Edge;
pub use encoder::Encoder;
pub use error::{DecodeError, GraphError, Missing};
pub use graph::{Frame, Gone, Graph};
pub use ids::*;
pub use journal::*;
pub use layout::Layout;
pub use lock_wait::LockWait;
pub use plan::Plan;
pub use policy::Policy;
pub use stats::Stats;
pub use tables::RawTables;
pub use words::TableMemory;
