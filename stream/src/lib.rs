//! Single events with their times: the file that lies beside a log, its writer and reader.
//!
//! ```text
//! threads ─► Place (the next entry of a thread) ─► block of the mapped file ─► Stream ─► events in time order
//!                      └► Writer: another block, under a lock, every few thousand events
//! ```
//! An entry is two or three words, written to the file's own pages by the thread that has the event, so
//! a process that is killed loses none. What a context's number and a type's mean is in the log.
//!
//! Reading order: `layout` (the file and its blocks), `entry`, `limits`; then `place` and `writer`;
//! then `reader` and `merge`.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod java;

mod entry;
mod layout;
pub mod limits;

mod place;
mod writer;

mod merge;
mod reader;

pub use entry::{MOST_TYPE, TIME_BITS};
pub use layout::{FORMAT_VERSION, Header, MAGIC};
pub use lucce_tracelog::{Damage, EventTypeId, OpenError, ThreadId};
pub use merge::{Event, Events};
pub use place::Place;
pub use reader::{Stream, ThreadInfo};
pub use writer::{Writer, path_beside};

/// A thread of the program, numbered from 1 in the order of their first events. Other than a
/// [`ThreadId`] of the log, which threads of one kind may share one after the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct StreamThread(pub u32);
