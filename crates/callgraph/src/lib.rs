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
//! given again, so it keeps its meaning for ever. What is [`DeadCode`] may leave the encoder; the journal has it.

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
mod table_memory;

mod anchor_table;
mod transition_table;

mod adaptive_re_encoding;
mod encoder;
mod encoder_stats;
mod forgotten_anchors;
mod full_nodes;
mod learner;
mod tables;

pub mod encodings;

pub use edge::CallEdge;
pub use encoder::ContextEncoder;
pub use encoder_stats::EncoderStats;
pub use error::{DecodeError, GraphError, MissingReference};
pub use graph::{ContextFrame, DeadCode, VersionedGraph};
pub use ids::*;
pub use journal::*;
pub use layout::ContextLayout;
pub use lock_wait::LockWait;
pub use plan::NumberingPlan;
pub use policy::EncodingPolicy;
pub use table_memory::TableMemory;
pub use tables::RawTables;
