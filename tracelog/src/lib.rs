//! The write-only log: its format, writer and tolerant reader.
//!
//! A process appends records and counts in cells through a memory map: what was appended is in the
//! file even when the process is killed the next moment. What a number needs for decoding is
//! appended before the number is handed out, so a log explains every number that anybody has seen.
//!
//! Reading order: `arguments` (of the recorded program), `error`, `escape`, `fields`, `files`, `run_id`, `layout` (the file and its blocks), `record` (what blocks hold), `wire` (fields),
//! `limits`; then `map`, `cells`, `writer`; then `reader`, `spans`, `extract`.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod arguments;
mod error;
pub mod escape;
pub mod fields;
mod files;
mod layout;
pub mod limits;
mod record;
mod run_id;
mod wire;

mod cells;
mod loss;
mod map;
mod space;
mod writer;

mod reader;
mod spans;

mod extract;

pub use arguments::{COMMAND, mask_arguments};
pub use cells::{Cell, Counters, EventCell, Total, VmCell};
pub use error::{Damage, OpenError, header_of};
pub use files::{data_end, open_file};
pub use layout::{FORMAT_VERSION, Header, MAGIC};
pub use loss::survive;
pub use map::{Lost, Map as MappedFile, PIECE, file_size_limit};
pub use reader::{
    Cells, Count, CountedSum, Entry, EventCells, EventCount, Item, Items, Log, LogFile, OpenStream,
    Seal, Totals, VmCells, VmCount, each_record,
};
pub use record::*;
pub use run_id::{Number, RunId};
pub use space::{Room, Size, keep_addresses};
pub use spans::{CELLS, Content, FILE_START, Span, blocks_end};
pub use writer::{Full, NoRoom, Writer, new_file};
