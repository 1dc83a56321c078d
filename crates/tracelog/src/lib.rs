//! The append-only event log: its format, its writer, and a reader that tolerates damage.
//!
//! A process appends records and counts in counters through a memory map. Appended data is in the file even if the
//! process is killed the next moment. The records that decode a context id are appended before the id is handed out, so
//! a log explains every id that anyone has seen.
//!
//! ```text
//! agent ─► LogWriter ─┬─ records ──────► MappedFile ─► file ─► InMemoryLog, LogFile ─► decoder
//!                     └─ CounterBlock ─►                  └──► BlockSpan (copies), extract_records (symbols)
//! ```
//!
//! Reading order: `arguments` (of the recorded program), `error`, `escape`, `byte_fields`, `block_file`, `files`, `run_id`; `layout`
//! (the file and its blocks), `record` (the content of blocks), `record_codec` (its fields), `limits`; then
//! `mapped_file`, `counters`, `writer`; then `reader`, `block_spans`, `extract`.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod arguments;
pub mod block_file;
pub mod byte_fields;
mod error;
pub mod escape;
mod files;
mod layout;
pub mod limits;
mod record;
mod record_codec;
mod run_id;

mod counters;
mod mapped_file;
mod memory_limit;
mod page_loss;
mod writer;

mod block_spans;
mod reader;

mod extract;

pub use arguments::{COMMAND, mask_arguments};
pub use block_spans::{BlockSpan, CELLS, FILE_START, SpanContent, blocks_end};
pub use counters::{AllocationCounter, CounterBlock, EventCounter, TotalCounter, VmCounter};
pub use error::{LogDamage, OpenError, header_bytes};
pub use files::{data_end, open_file};
pub use layout::{FORMAT_VERSION, LogHeader, MAGIC};
pub use mapped_file::{FileLoss, MappedFile, PIECE, file_size_limit};
pub use memory_limit::{ByteSize, MemoryLimit, keep_addresses};
pub use page_loss::install_sigbus_handler;
pub use reader::{
    AllocationCount, AllocationCounters, CountedSum, EventCount, EventCounters, InMemoryLog,
    LogEntry, LogFile, LogItem, LogItems, LogTotals, OpenStream, SealState, VmCounterValue,
    VmCounters, for_each_record,
};
pub use record::*;
pub use run_id::{ContextNumber, RunId};
pub use writer::{LogFull, LogFullCause, LogWriter, new_file};
