//! The writer: appends records and allocates counters.
//!
//! States of a records block; at most one block is open:
//! ```text
//! absent ──magic stored last──► open ──committed grows──► open ──sealed stored last──► sealed
//! ```
//! Each arrow is one Release store after the bytes that it publishes. A kill between any two instructions therefore
//! leaves a log that ends with the last whole record.
//!
//! Space: `end` ≤ `map.mapped()`. Ordinary records and counters leave [`RESERVE`] bytes unused. `StatRecord` and
//! `EndRecord` may use them, so that a run on a full disk can still report what it dropped. Once an ordinary record is
//! refused, all later ones are refused: a log is always a prefix of what happened.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::{error, fmt};

use lucce_callgraph::{GraphChange, GraphJournal, JournalError};

use crate::block_file::content_checksum;
use crate::block_spans::{BlockSpan, SpanContent};
use crate::counters::{CounterBlock, EventCounter, TotalCounter, VmCounter};
use crate::layout::{
    ALIGN, AT_COMMITTED, AT_CRC, AT_SEALED, BLOCK_HEADER, BLOCK_MAGIC, CELL, COUNTERS, EVENT_CELL,
    EVENT_COUNTERS, FILE_HEADER, LogBlockHead, LogHeader, RECORDS, TOTAL, TOTAL_KEY, TOTALS,
    VM_CELL, VM_COUNTERS,
};
use crate::limits::{MAX_CELLS, MAX_RECORD};
use crate::mapped_file::{FileLoss, MappedFile, PIECE, file_size_limit};
use crate::record::{LogRecord, StatRecord, ThreadId};

/// Bytes of addresses reserved for the log; it cannot become larger.
const ADDRESSES: u64 = 64 << 30;
/// Payload of an ordinary records block in bytes; one flipped bit can destroy at most this much.
const BLOCK: u64 = (64 << 10) - BLOCK_HEADER;
/// Bytes reserved for `StatRecord` and `EndRecord`.
const RESERVE: u64 = 32 << 10;
/// Least and most bytes that a log grows by before its pages are released from the process.
const KEPT: (u64, u64) = (1 << 20, 32 << 20);
/// Least and most bytes by which the file grows ahead.
const GROWTH: (u64, u64) = (1 << 20, 16 << 20);

/// Key of the number of refused records.
const REFUSED: &str = "log.refused";

/// The log accepts no more data: the disk is full, a limit is reached, or the log is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogFull;

impl fmt::Display for LogFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the log is full")
    }
}

impl error::Error for LogFull {}

/// Why a log accepts no more data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFullCause {
    /// The log's own limit, or the system's limit for a file.
    Limit,
    Disk,
}

impl LogFullCause {
    pub const ALL: [LogFullCause; 2] = [LogFullCause::Limit, LogFullCause::Disk];

    /// Returns the key of the [`StatRecord`] that reports it.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            LogFullCause::Limit => "log.limit_reached",
            LogFullCause::Disk => "log.disk_full",
        }
    }
}

impl fmt::Display for LogFullCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self {
            LogFullCause::Limit => "limit=, or the system's limit of a file's size, was reached",
            LogFullCause::Disk => "the disk had no more room",
        };
        write!(
            f,
            "the log is full: {why}; events of contexts that came later are lost"
        )
    }
}

/// Appends to a log. A process has one writer and shares it behind a mutex.
pub struct LogWriter {
    map: Arc<MappedFile>,
    /// The maximum size of the file in bytes.
    limit: u64,
    /// The offset of the next block.
    end: u64,
    /// The value of `end` when all pages were last released.
    released: u64,
    open: Option<OpenBlock>,
    refused: u64,
    /// Why the last refused data did not fit.
    full_cause: Option<LogFullCause>,
    /// The number of refused records in the file, if totals were requested.
    refused_total: Option<CounterBlock<TotalCounter>>,
    closed: bool,
    scratch: Vec<u8>,
}

/// The block to which records are appended.
#[derive(Clone, Copy)]
struct OpenBlock {
    at: u64,
    capacity: u64,
    committed: u64,
}

impl LogWriter {
    /// Creates the log.
    ///
    /// # Errors
    /// The file cannot be created, exists already (and stays as it is), or has no space.
    pub fn create(path: impl AsRef<Path>, header: &LogHeader) -> io::Result<LogWriter> {
        Self::create_with_limit(path, header, u64::MAX)
    }

    /// As [`LogWriter::create`], for a file of at most `limit` bytes; at the limit the writer behaves as on a full
    /// disk.
    ///
    /// # Errors
    /// As [`LogWriter::create`].
    pub fn create_with_limit(
        path: impl AsRef<Path>,
        header: &LogHeader,
        limit: u64,
    ) -> io::Result<LogWriter> {
        Self::from_file(new_file(path.as_ref())?, header, limit)
    }

    /// Creates a log in a new, empty file.
    ///
    /// # Errors
    /// The file has no space.
    pub fn from_file(file: File, header: &LogHeader, limit: u64) -> io::Result<LogWriter> {
        let limit = limit.min(file_size_limit()).min(ADDRESSES) / PIECE * PIECE;
        // Written before any space is allocated: another process finds a log or an empty file.
        if limit > 0 {
            file.write_all_at(&header.encode(), 0)?;
        }
        let map = MappedFile::new(file, limit)?;
        let mut writer = LogWriter {
            limit: limit.min(map.reserved()),
            map: Arc::new(map),
            end: FILE_HEADER,
            released: FILE_HEADER,
            open: None,
            refused: 0,
            full_cause: None,
            refused_total: None,
            closed: false,
            scratch: Vec::with_capacity(1 << 10),
        };
        let room = writer.ensure_space(FILE_HEADER, RESERVE);
        if room.is_err() || !writer.map.write(0, &header.encode()) {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "no room for the log",
            ));
        }
        Ok(writer)
    }

    /// Appends a record. When this returns, the record survives the process.
    ///
    /// # Errors
    /// [`LogFull`]: the record was not appended. Later ones will not be either, except `StatRecord` and `EndRecord`,
    /// for which space is reserved.
    pub fn append<'a>(&mut self, record: impl Into<LogRecord<'a>>) -> Result<(), LogFull> {
        let record = record.into();
        // Data appended to a lost file is in no file.
        let is_over = self.closed || self.map.known_loss().is_some();
        if is_over || (self.refused > 0 && !record.is_closing()) {
            return self.refuse_record();
        }
        let mut bytes = std::mem::take(&mut self.scratch);
        encode_record(&record, &mut bytes);
        let appended = self.append_bytes(&bytes, record.is_closing());
        bytes.clear();
        bytes.shrink_to(BLOCK as usize);
        self.scratch = bytes;
        appended.or_else(|LogFull| self.refuse_record())
    }

    #[cold]
    fn refuse_record(&mut self) -> Result<(), LogFull> {
        self.refused += 1;
        let total = self.refused_total.as_ref().and_then(|total| total.first());
        if let Some(total) = total {
            total.increment();
        }
        Err(LogFull)
    }

    /// Allocates counters for `thread`, all zero.
    ///
    /// # Errors
    /// [`LogFull`]: no space; smaller requests may still succeed.
    pub fn add_counters(&mut self, thread: ThreadId, cells: u32) -> Result<CounterBlock, LogFull> {
        let at = self.add_counter_block((COUNTERS, CELL), thread, cells)?;
        CounterBlock::new(&self.map, at, (thread, cells)).ok_or(LogFull)
    }

    /// Allocates counters by type for `thread`, all zero.
    ///
    /// # Errors
    /// As [`LogWriter::add_counters`].
    pub fn add_event_counters(
        &mut self,
        thread: ThreadId,
        cells: u32,
    ) -> Result<CounterBlock<EventCounter>, LogFull> {
        let at = self.add_counter_block((EVENT_COUNTERS, EVENT_CELL), thread, cells)?;
        CounterBlock::new(&self.map, at, (thread, cells)).ok_or(LogFull)
    }

    /// Allocates counters of the VM, all zero.
    ///
    /// # Errors
    /// As [`LogWriter::add_counters`].
    pub fn add_vm_counters(&mut self, cells: u32) -> Result<CounterBlock<VmCounter>, LogFull> {
        let thread = ThreadId::default();
        let at = self.add_counter_block((VM_COUNTERS, VM_CELL), thread, cells)?;
        CounterBlock::new(&self.map, at, (thread, cells)).ok_or(LogFull)
    }

    /// Allocates totals with these keys, all zero. From now on the file also counts refused records.
    ///
    /// A key has at most 56 bytes.
    ///
    /// # Errors
    /// As [`LogWriter::add_counters`].
    pub fn add_totals(&mut self, keys: &[&str]) -> Result<CounterBlock<TotalCounter>, LogFull> {
        let count = u32::try_from(keys.len()).map_err(|_| LogFull)?;
        let at = self.add_counter_block((TOTALS, TOTAL), ThreadId(0), count + 1)?;
        for (cell, key) in (at..)
            .step_by(TOTAL as usize)
            .zip(keys.iter().chain(&[REFUSED]))
        {
            let is_written = key.len() as u64 <= TOTAL_KEY && self.map.write(cell, key.as_bytes());
            is_written.then_some(()).ok_or(LogFull)?;
        }
        self.refused_total = CounterBlock::new(
            &self.map,
            at + u64::from(count) * TOTAL,
            (ThreadId::default(), 1),
        );
        CounterBlock::new(&self.map, at, (ThreadId::default(), count)).ok_or(LogFull)
    }

    /// Allocates a block of counters and returns its offset.
    fn add_counter_block(
        &mut self,
        (kind, size): (u8, u64),
        thread: ThreadId,
        cells: u32,
    ) -> Result<u64, LogFull> {
        let is_over = self.closed || self.map.known_loss().is_some();
        if is_over || self.refused > 0 || cells > MAX_CELLS {
            return Err(LogFull);
        }
        let used = u64::from(cells) * size;
        let capacity = used.next_multiple_of(ALIGN);
        self.release_pages();
        let at = self.begin_block(kind, capacity, (thread, cells), used, RESERVE)?;
        Ok(at + BLOCK_HEADER)
    }

    /// Releases the pages of all counters whenever the log has grown by a part of its size.
    ///
    /// Most counters count only at the start, and it is unknown which. Pages in use are read back.
    fn release_pages(&mut self) {
        if self.end - self.released >= (self.released / 8).clamp(KEPT.0, KEPT.1) {
            self.map.release_pages(0, self.end);
            self.released = self.end;
        }
    }

    /// Returns the log's size in bytes.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.open.map_or(self.end, |open| match self.is_last(open) {
            true => open.at + BLOCK_HEADER + open.committed,
            false => self.end,
        })
    }

    /// Returns the number of refused records.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns why the last refused data had no space; smaller data may have fit since.
    #[must_use]
    pub fn full_cause(&self) -> Option<LogFullCause> {
        self.full_cause
    }

    /// Seals the records appended so far and returns their size in bytes. These first bytes of the file are a valid log
    /// from now on; only their counters change.
    pub fn checkpoint(&mut self) -> u64 {
        if !self.closed {
            self.seal_block();
        }
        self.bytes_written()
    }

    /// Returns a handle of the log's file for reading.
    ///
    /// # Errors
    /// The system's error.
    pub fn clone_file(&self) -> io::Result<File> {
        self.map.file().try_clone()
    }

    /// Returns what happened to the file, if it is not as written.
    #[must_use]
    pub fn check_loss(&self) -> Option<FileLoss> {
        self.map.check_loss()
    }

    /// Waits until everything is on the disk, for protection against a failure of the machine.
    ///
    /// A process that is killed loses nothing without this.
    ///
    /// # Errors
    /// The disk's error.
    pub fn flush(&self) -> io::Result<()> {
        self.map.file().sync_data()
    }

    /// Seals the last block and all counters, and frees unused disk space. Later appends fail, and later counts are not
    /// in the file.
    ///
    /// # Errors
    /// The file could not be shortened, or its counters could not be sealed; the log is valid nevertheless.
    pub fn close(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        if self.refused > 0 {
            let refused = StatRecord {
                key: REFUSED.into(),
                value: self.refused,
            };
            // On failure the missing `EndRecord` still shows that the log is full.
            let _ = self.append(refused);
        }
        self.closed = true;
        let used = self.bytes_written();
        self.seal_block();
        let sealed = self.seal_counters();
        self.map.close(used).and(sealed)
    }

    /// Writes the checksum of each block of counters. Threads that count meanwhile or later do so in private memory.
    fn seal_counters(&self) -> io::Result<()> {
        self.map.make_private()?;
        let file = self.map.file();
        let mut part = Vec::new();
        let mut at = FILE_HEADER;
        while let Some(span) =
            BlockSpan::read_at(at, &mut |at, to| file.read_exact_at(to, at).is_ok())
        {
            if let SpanContent::Counters { bytes } = span.content {
                let crc = compute_checksum(file, (span.content_start(), bytes), &mut part)?;
                // Both words at once: a reader sees neither or both.
                let seal = u64::from(crc) | 1 << 32;
                file.write_all_at(&seal.to_le_bytes(), span.at + AT_CRC)?;
            }
            at = span.next_block();
        }
        Ok(())
    }

    fn append_bytes(&mut self, bytes: &[u8], closing: bool) -> Result<(), LogFull> {
        let len = bytes.len() as u64;
        let open = match self.open {
            Some(open) if open.capacity - open.committed >= len => open,
            _ => self.next_block(len, closing)?,
        };
        let committed = open.committed + len;
        let written = self
            .map
            .write(open.at + BLOCK_HEADER + open.committed, bytes)
            && self.map.publish_u64(open.at + AT_COMMITTED, committed);
        self.open = Some(OpenBlock { committed, ..open });
        written.then_some(()).ok_or(LogFull)
    }

    fn next_block(&mut self, len: u64, closing: bool) -> Result<OpenBlock, LogFull> {
        let least = len.next_multiple_of(ALIGN);
        let sizes = match closing {
            true => [least.max(4 << 10), least],
            false => [least.max(BLOCK), least],
        };
        let reserve = if closing { 0 } else { RESERVE };
        let begun = sizes.into_iter().find_map(|capacity| {
            let at = self
                .begin_block(RECORDS, capacity, Default::default(), 0, reserve)
                .ok()?;
            Some(OpenBlock {
                at,
                capacity,
                committed: 0,
            })
        });
        let open = begun.ok_or(LogFull)?;
        self.seal_block();
        self.open = Some(open);
        Ok(open)
    }

    /// Writes a block header at the end of the log and returns its offset.
    fn begin_block(
        &mut self,
        kind: u8,
        capacity: u64,
        (thread, cells): (ThreadId, u32),
        committed: u64,
        reserve: u64,
    ) -> Result<u64, LogFull> {
        let at = self.end;
        let next = at + BLOCK_HEADER + capacity;
        self.ensure_space(next, reserve)?;
        let capacity = u32::try_from(capacity).map_err(|_| LogFull)?;
        let head = LogBlockHead {
            kind,
            capacity,
            thread: thread.0,
            cells,
        };
        let written = self.map.write(at + 4, &head.encode())
            && self.map.publish_u64(at + AT_COMMITTED, committed)
            && self.map.publish_u32(at, BLOCK_MAGIC);
        self.end = next;
        written.then_some(at).ok_or(LogFull)
    }

    /// Ensures that `reserve` bytes are left after `end`.
    fn ensure_space(&mut self, end: u64, reserve: u64) -> Result<(), LogFull> {
        let need = (end + reserve).next_multiple_of(PIECE);
        let mapped = self.map.mapped();
        if need <= mapped {
            return Ok(());
        }
        let ahead = mapped.clamp(GROWTH.0, GROWTH.1);
        let most = need.max(mapped + ahead).min(self.limit);
        if need > self.limit {
            self.full_cause = Some(LogFullCause::Limit);
            return Err(LogFull);
        }
        let grown = self.map.grow_to(most).or_else(|_| self.map.grow_to(need));
        grown.map_err(|_| {
            // A truncated file does not grow either.
            if self.map.known_loss().is_none() {
                self.full_cause = Some(LogFullCause::Disk);
            }
            LogFull
        })
    }

    fn seal_block(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let crc = self
            .map
            .read(open.at + BLOCK_HEADER, open.committed, content_checksum);
        if let Some(crc) = crc
            && self.map.publish_u32(open.at + AT_CRC, crc)
        {
            // On failure the block stays open, which is valid as well.
            let _ = self.map.publish_u32(open.at + AT_SEALED, 1);
        }
        self.map
            .release_pages(open.at, BLOCK_HEADER + open.capacity);
    }

    fn is_last(&self, open: OpenBlock) -> bool {
        open.at + BLOCK_HEADER + open.capacity == self.end
    }
}

/// For an encoder that has the log to itself.
impl GraphJournal for LogWriter {
    fn append_change(&mut self, change: GraphChange) -> Result<(), JournalError> {
        self.append(LogRecord::Change(change))
            .map_err(|LogFull| JournalError)
    }
}

/// Computes the checksum of a range of the file. `part`: a reused buffer.
fn compute_checksum(
    file: &File,
    (start, bytes): (u64, u64),
    part: &mut Vec<u8>,
) -> io::Result<u32> {
    let mut crc = crc32fast::Hasher::new();
    let end = start + bytes;
    for at in (start..end).step_by(PIECE as usize) {
        part.resize(PIECE.min(end - at) as usize, 0);
        file.read_exact_at(part, at)?;
        crc.update(part);
    }
    Ok(crc.finalize())
}

/// `kind`, length, body.
fn encode_record(record: &LogRecord<'_>, bytes: &mut Vec<u8>) {
    bytes.clear();
    record.append_to(bytes);
    debug_assert!(bytes.len() <= MAX_RECORD + 6);
}

/// Creates a new file for reading and writing, accessible to its user only: it holds the program's arguments.
///
/// # Errors
/// `AlreadyExists`: the name is taken; that file stays as it is. Or the file cannot be created.
pub fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}
