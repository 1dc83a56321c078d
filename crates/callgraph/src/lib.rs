//! The versioned graph: encoder and decoder of calling contexts. No I/O, no JVM.
//!
//! ```text
//! ContextEncoder ─► TransitionTable, AnchorTable              lock-free, shared with foreign readers
//!   └─ miss ─► GraphLearner ──► GraphJournal                  one mutex: choose, log, apply, publish
//!                 └──────► VersionedGraph ◄── GraphChange     the decoder builds the same graph from the log
//! ```
//!
//! *Architecture invariant*: a number is handed out only after the journal accepted every change that gives it its
//! meaning. Changes are never revised and numbers are never reused, so a number keeps its meaning for ever. Dead code
//! ([`DeadCode`]) may leave the encoder; the journal keeps it.
//!
//! Reading order: `ids`, `layout`, `journal`, `graph`; then `encoder`, `learner`, `policy`; then `tables`,
//! `transition_table`, `anchor_table`. `numbering` numbers a graph in advance.

mod ids;
mod journal;
mod layout;
mod policy;
pub mod raw;

mod error;
mod graph;

mod edge;
pub mod numbering;
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
