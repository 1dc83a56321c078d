//! The writer: appends records, hands out counters.
//!
//! States of a records block, of which one at most is open:
//! ```text
//! absent ──magic stored last──► open ──committed grows──► open ──sealed stored last──► sealed
//! ```
//! Each arrow is one Release store after the bytes that it stands for, so that a kill between any
//! two instructions leaves a log that ends with the last whole record.
//!
//! Space: `end` ≤ `map.mapped()`. Ordinary records and counters leave [`RESERVE`] bytes of it
//! alone; `StatRecord` and `EndRecord` may use them, so that a run on a full disk can still say what it lost.
//! Once an ordinary record is refused, all later ones are: a log is always a prefix of what
//! happened.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::{error, fmt};

use lucce_callgraph::{GraphChange, GraphJournal, JournalError};

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

/// Addresses reserved for the log; it cannot become larger.
const ADDRESSES: u64 = 64 << 30;
/// Payload of an ordinary records block: what one flipped bit can cost.
const BLOCK: u64 = (64 << 10) - BLOCK_HEADER;
/// Kept back for `StatRecord` and `EndRecord`.
const RESERVE: u64 = 32 << 10;
/// What a log grows by, at least and at most, before its pages leave the process.
const KEPT: (u64, u64) = (1 << 20, 32 << 20);
/// The file grows by at least and at most this much ahead.
const GROWTH: (u64, u64) = (1 << 20, 16 << 20);

/// How many records found no room.
const REFUSED: &str = "log.refused";

/// The log takes no more: disk full, limit reached, or closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogFull;

impl fmt::Display for LogFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the log is full")
    }
}

impl error::Error for LogFull {}

/// Why a log took no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFullCause {
    /// Its own limit, or the system's for a file.
    Limit,
    Disk,
}

impl LogFullCause {
    pub const ALL: [LogFullCause; 2] = [LogFullCause::Limit, LogFullCause::Disk];

    /// Of the [`StatRecord`] that says so.
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

/// Appends to a log. One per process; share it behind a mutex.
pub struct LogWriter {
    map: Arc<MappedFile>,
    /// The file may not grow beyond this.
    limit: u64,
    /// Where the next block begins.
    end: u64,
    /// Where one began when all pages left the process.
    released: u64,
    open: Option<OpenBlock>,
    refused: u64,
    /// Why something did not fit the last time.
    full_cause: Option<LogFullCause>,
    /// The count of what was refused in the file, where totals were asked for.
    refused_total: Option<CounterBlock<TotalCounter>>,
    closed: bool,
    scratch: Vec<u8>,
}

/// The block that is appended to.
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
    /// The file cannot be created there, exists already (and stays as it is), or has no room.
    pub fn create(path: impl AsRef<Path>, header: &LogHeader) -> io::Result<LogWriter> {
        Self::create_with_limit(path, header, u64::MAX)
    }

    /// As `create`, for a file of at most `limit` bytes: beyond it the writer behaves as on a full
    /// disk.
    ///
    /// # Errors
    /// As `create`.
    pub fn create_with_limit(
        path: impl AsRef<Path>,
        header: &LogHeader,
        limit: u64,
    ) -> io::Result<LogWriter> {
        Self::from_file(new_file(path.as_ref())?, header, limit)
    }

    /// Writes to a new, empty file.
    ///
    /// # Errors
    /// The file has no room.
    pub fn from_file(file: File, header: &LogHeader, limit: u64) -> io::Result<LogWriter> {
        let limit = limit.min(file_size_limit()).min(ADDRESSES) / PIECE * PIECE;
        // Before there is room: a process that finds the file sees a log, or a file that is still empty.
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
    /// [`LogFull`]: it was not appended, nor will any later one be, except `StatRecord` and `EndRecord`, for which
    /// some room is kept.
    pub fn append<'a>(&mut self, record: impl Into<LogRecord<'a>>) -> Result<(), LogFull> {
        let record = record.into();
        // What is appended to a lost file is in no file.
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

    /// Cells for `thread`, all zero.
    ///
    /// # Errors
    /// [`LogFull`]: no room; smaller requests may still succeed.
    pub fn add_counters(&mut self, thread: ThreadId, cells: u32) -> Result<CounterBlock, LogFull> {
        let at = self.add_counter_block((COUNTERS, CELL), thread, cells)?;
        CounterBlock::new(&self.map, at, (thread, cells)).ok_or(LogFull)
    }

    /// Cells by type for `thread`, all zero.
    ///
    /// # Errors
    /// As `counters`.
    pub fn add_event_counters(
        &mut self,
        thread: ThreadId,
        cells: u32,
    ) -> Result<CounterBlock<EventCounter>, LogFull> {
        let at = self.add_counter_block((EVENT_COUNTERS, EVENT_CELL), thread, cells)?;
        CounterBlock::new(&self.map, at, (thread, cells)).ok_or(LogFull)
    }

    /// Cells for what the VM counts, all zero.
    ///
    /// # Errors
    /// As `counters`.
    pub fn add_vm_counters(&mut self, cells: u32) -> Result<CounterBlock<VmCounter>, LogFull> {
        let thread = ThreadId::default();
        let at = self.add_counter_block((VM_COUNTERS, VM_CELL), thread, cells)?;
        CounterBlock::new(&self.map, at, (thread, cells)).ok_or(LogFull)
    }

    /// Totals with these keys, all zero; from now on the file says, too, how many records were refused. A key has at
    /// most 56 bytes.
    ///
    /// # Errors
    /// As `counters`.
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

    /// Where they are.
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

    /// Most counters count at the start and never again, and which is not known: the process does without the pages
    /// of all of them whenever the log has grown by a part of its size. Those that are in use come back.
    fn release_pages(&mut self) {
        if self.end - self.released >= (self.released / 8).clamp(KEPT.0, KEPT.1) {
            self.map.release_pages(0, self.end);
            self.released = self.end;
        }
    }

    /// How long the log is.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.open.map_or(self.end, |open| match self.is_last(open) {
            true => open.at + BLOCK_HEADER + open.committed,
            false => self.end,
        })
    }

    /// How many records were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Why something had no room; smaller things may have had since.
    #[must_use]
    pub fn full_cause(&self) -> Option<LogFullCause> {
        self.full_cause
    }

    /// Seals what was appended so far. The file's first so many bytes are a whole log from now on: of
    /// them only counters change.
    pub fn checkpoint(&mut self) -> u64 {
        if !self.closed {
            self.seal_block();
        }
        self.bytes_written()
    }

    /// The log's file, to be read.
    ///
    /// # Errors
    /// The system's.
    pub fn clone_file(&self) -> io::Result<File> {
        self.map.file().try_clone()
    }

    /// What has become of the file, if it is not what was written.
    #[must_use]
    pub fn check_loss(&self) -> Option<FileLoss> {
        self.map.check_loss()
    }

    /// Waits until everything is on the disk: for losing nothing when the machine fails. A process
    /// that is killed loses nothing without it.
    ///
    /// # Errors
    /// The disk's.
    pub fn flush(&self) -> io::Result<()> {
        self.map.file().sync_data()
    }

    /// Seals the last block and all counters, and gives back the disk space that is not used. Nothing can be appended
    /// any more. What counters go on counting is not in the file.
    ///
    /// # Errors
    /// The file could not be shortened, or its counters could not be sealed; it is whole nevertheless.
    pub fn close(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        if self.refused > 0 {
            let refused = StatRecord {
                key: REFUSED.into(),
                value: self.refused,
            };
            // On failure: the log says "full" by having no End.
            let _ = self.append(refused);
        }
        self.closed = true;
        let used = self.bytes_written();
        self.seal_block();
        let sealed = self.seal_counters();
        self.map.close(used).and(sealed)
    }

    /// Gives each block of counters its checksum. Threads that count meanwhile, or later, do so in memory of the process.
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
                // Both words at once: a reader finds none of them or both.
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

    /// Writes a block header at the end of the log and returns where it is.
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

    /// Makes sure that `reserve` bytes are left after `end`.
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
            // A file that was truncated does not grow either.
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
            .read(open.at + BLOCK_HEADER, open.committed, crc32fast::hash);
        if let Some(crc) = crc
            && self.map.publish_u32(open.at + AT_CRC, crc)
        {
            // On failure the block stays open, which is as good.
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

/// Of so many bytes of the file from an offset on. `part`: memory that is used again.
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

/// A new file, to be read and written, for its user alone: it holds what the program was started with.
///
/// # Errors
/// `AlreadyExists`: something has the name, and stays as it is. Or the file cannot be made.
pub fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}
