//! Single events with their times: the file beside a log, its writer and its reader.
//!
//! ```text
//! threads ─► EventCursor (next entry of a thread) ─► block of the mapped file ─► EventStream ─► events in time order
//!                 └► StreamWriter: a new block, under a lock, every few thousand events
//! ```
//! The thread that has an event writes its entry, two or three words, to the file's own pages. A killed process
//! therefore loses none. The log explains context ids and types.
//!
//! Reading order: `layout` (the file and its blocks), `entry`, `limits`; then `event_cursor` and `writer`;
//! then `reader` and `merge`.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

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

/// A thread of the program, numbered from 1 in the order of first events.
///
/// It differs from the [`ThreadId`] of the log, which threads of one kind may share in succession.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct StreamThread(pub u32);
