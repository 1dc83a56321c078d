//! Single events with their times: the file that lies beside a log, its writer and reader.
//!
//! ```text
//! threads ─► Place (the next entry of a thread) ─► block of the mapped file ─► Stream ─► events in time order
//!                      └► Writer: another block, under a lock, every few thousand events
//! ```
//! An entry is two or three words, written to the file's own pages by the thread that has the event, so
//! a process that is killed loses none. What a context's number and a type's mean is in the log.
//!
//! Reading order: `layout` (the file and its blocks), `entry`, `limits`; then `event_cursor` and `writer`;
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

mod event_cursor;
mod writer;

mod merge;
mod reader;

pub use entry::{MAX_TYPE_ID, TIME_BITS};
pub use event_cursor::EventCursor;
pub use layout::{FORMAT_VERSION, MAGIC, StreamHeader};
pub use lucce_tracelog::{EventTypeId, LogDamage, OpenError, ThreadId};
pub use merge::{StreamEvent, StreamEventIter};
pub use reader::{EventStream, StreamThreadInfo};
pub use writer::{StreamWriter, events_path};

/// A thread of the program, numbered from 1 in the order of their first events. Other than a
/// [`ThreadId`] of the log, which threads of one kind may share one after the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct StreamThread(pub u32);
