//! Readers that tolerate damage: they return everything up to the first damage, then its place and cause.
//!
//! The log of a JVM that was killed or still runs is valid: its last block is open, and the disk space allocated in
//! advance is zeros. A sealed block must match its checksum.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use lucce_callgraph::ContextId;

use crate::block_file::content_checksum;
use crate::byte_fields::{u32_at, u64_at};
use crate::counters::VmCounter;
use crate::error::{LogDamage, OpenError};
use crate::files::{next_data, open_file};
use crate::layout::{
    AT_COMMITTED, AT_CRC, AT_SEALED, BLOCK_HEADER, BLOCK_MAGIC, CELL, COUNTERS, EVENT_CELL,
    EVENT_COUNTERS, FILE_HEADER, LogBlockHead, LogHeader, RECORDS, TOTAL, TOTAL_KEY, TOTALS,
    VM_CELL, VM_COUNTERS, cells_size, unseal_header,
};
use crate::limits::{MAX_CAPACITY, MAX_CELLS, MAX_RECORDS_BLOCK, MAX_ROOM};
use crate::record::{EventTypeId, LogRecord, RecordKind, ThreadId};
use crate::record_codec::{MalformedRecord, RecordDecoder};

/// A log in memory, as it was when it was read.
pub struct InMemoryLog {
    header: LogHeader,
    bytes: Vec<u8>,
}

impl InMemoryLog {
    /// Reads a log file into memory.
    ///
    /// # Errors
    /// See [`OpenError`]. Damage after the header is no error: see [`InMemoryLog::items`].
    pub fn open(path: impl AsRef<Path>) -> Result<InMemoryLog, OpenError> {
        let mut file = open_file(path)?;
        let mut bytes = Vec::new();
        file.by_ref().take(FILE_HEADER).read_to_end(&mut bytes)?;
        // The header is checked first, so that a huge foreign file is not read.
        LogHeader::decode(&bytes)?;
        file.read_to_end(&mut bytes)?;
        let mut again = || {
            let mut bytes = Vec::new();
            file.rewind()?;
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read_settled(bytes, &mut again)?;
        Self::from_bytes(bytes)
    }

    /// Takes the bytes of a log.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<InMemoryLog, OpenError> {
        let header = LogHeader::decode(&bytes)?;
        Ok(InMemoryLog { header, bytes })
    }

    #[must_use]
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// Returns the file's size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns all items in the order of the file. An `Err` is the last item.
    #[must_use]
    pub fn items(&self) -> LogItems<'_> {
        LogItems::from_bytes(&self.bytes, 0, FILE_HEADER)
    }
}

/// A log that is read block by block.
///
/// One block is in memory at a time, together with the counters of a log to which records may still be appended.
pub struct LogFile {
    header: LogHeader,
    storage: LogStorage,
    /// For a stream an estimate, until it was read to its end.
    size: AtomicU64,
    /// When its counters were read, or could first be read.
    counters_read_at: Instant,
    /// `None`: nothing is appended any more.
    counters: Option<CountersByOffset>,
}

/// Opens a log's bytes at the first byte, each time it is called.
pub type OpenStream = Box<dyn Fn() -> io::Result<Box<dyn Read>> + Send + Sync>;

/// Where a log's bytes are stored.
enum LogStorage {
    File(File),
    Memory(Vec<u8>),
    /// Bytes that can only be read in order, such as those of a packed log.
    Stream(OpenStream),
}

/// One forward pass over a log's bytes.
enum LogInput<'l> {
    File(&'l File),
    Memory(&'l [u8]),
    Stream { bytes: Box<dyn Read>, at: u64 },
}

/// The counters of blocks by file offset, read before the records that explain them. Trailing zeros are omitted.
/// `None`: the block was sealed, so its counters do not change any more.
type CountersByOffset = HashMap<u64, Option<Vec<u8>>>;

/// Number of bytes read at a time.
const PIECE: usize = 1 << 20;

impl LogFile {
    /// Opens a log file and reads its counters.
    ///
    /// # Errors
    /// See [`OpenError`]; files that are not regular are refused. Damage after the header is no error.
    pub fn open(path: impl AsRef<Path>) -> Result<LogFile, OpenError> {
        let mut file = open_file(path)?;
        let mut header = Vec::new();
        file.by_ref().take(FILE_HEADER).read_to_end(&mut header)?;
        let mut log = LogFile {
            header: LogHeader::decode(&header)?,
            size: AtomicU64::new(file.metadata()?.len()),
            storage: LogStorage::File(file),
            counters_read_at: Instant::now(),
            counters: None,
        };
        if !log.is_finished()? {
            log.counters_read_at = Instant::now();
            let counters = log.read_counters()?;
            if let LogStorage::File(file) = &log.storage {
                log.size = AtomicU64::new(file.metadata()?.len());
            }
            // If the log has ended meanwhile, its last counters may be newer than these.
            log.counters = (!log.is_finished()?).then_some(counters);
        }
        Ok(log)
    }

    /// Opens a log whose bytes can only be read in order and to which nothing is appended.
    ///
    /// An error of kind `InvalidData` is damage. `size`: an estimate in bytes.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn from_stream(open: OpenStream, size: u64) -> Result<LogFile, OpenError> {
        let mut header = Vec::new();
        match open()?.take(FILE_HEADER).read_to_end(&mut header) {
            Err(e) if e.kind() != ErrorKind::InvalidData => return Err(e.into()),
            // What was read tells more than the error.
            _ => {}
        }
        Ok(LogFile {
            header: LogHeader::decode(&header)?,
            storage: LogStorage::Stream(open),
            size: AtomicU64::new(size),
            counters_read_at: Instant::now(),
            counters: None,
        })
    }

    #[must_use]
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// Returns the file's size in bytes when it was opened; for a stream not yet read, an estimate.
    #[must_use]
    pub fn size(&self) -> u64 {
        // Relaxed: no other data depends on it.
        self.size.load(Ordering::Relaxed)
    }

    /// Returns when its counters were read. They are valid for that moment, however long it takes to read the rest.
    #[must_use]
    pub fn counters_read_at(&self) -> Instant {
        self.counters_read_at
    }

    /// Whether the read records explain all counters and, if the log has ended, the counters are final.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_settled(&self) -> io::Result<bool> {
        let LogStorage::File(file) = &self.storage else {
            return Ok(true);
        };
        let is_finished = self.is_finished()?;
        Ok(match self.counters {
            None => is_finished && file.metadata()?.len() == self.size(),
            Some(_) => !is_finished,
        })
    }

    /// Passes all items in the order of the file to `each`, until it stops. An `Err` is the last item.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn for_each_item(
        &self,
        mut each: impl FnMut(Result<LogItem<'_>, LogDamage>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut at = FILE_HEADER;
        match self.for_each_block(&mut at, &mut each) {
            // The bytes behind this block's begin are damaged.
            Err(e) if e.kind() == ErrorKind::InvalidData => {
                let _ = each(Err(LogDamage::at_offset(at, e.to_string())));
                Ok(())
            }
            read => read,
        }
    }

    /// Passes each block to a function. `at`: the offset of the first block, then of the current one.
    fn for_each_block(
        &self,
        at: &mut u64,
        each: &mut impl FnMut(Result<LogItem<'_>, LogDamage>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let (mut input, mut block) = (self.open_input()?, Vec::new());
        loop {
            self.read(&mut input, *at, BLOCK_HEADER, &mut block)?;
            if u32_at(&block, 0).unwrap_or(0) == 0 {
                // A killed JVM may have left an incomplete header.
                let rest = match block.len() < 4 {
                    true => *at,
                    false => *at + BLOCK_HEADER,
                };
                if !self.is_empty_from(&mut input, rest)? {
                    let _ = each(Err(LogDamage::at_offset(*at, NO_BLOCK)));
                }
                return Ok(());
            }
            let read = match payload_used(&block) {
                Some(used) => self.read_payload(&mut input, *at + BLOCK_HEADER, used, &mut block),
                None => Ok(()),
            };
            let damage = match read {
                Err(e) if e.kind() != ErrorKind::InvalidData => return Err(e),
                read => read.err(),
            };
            let mut items = LogItems::from_bytes(&block, *at, *at);
            for item in items.by_ref() {
                let is_last = item.is_err();
                // The cause of the short block tells more than the shortness.
                let item = item.map_err(|found| match &damage {
                    Some(damage) => LogDamage::at_offset(found.offset, damage.to_string()),
                    None => found,
                });
                if each(item).is_break() || is_last {
                    return Ok(());
                }
            }
            if let Some(damage) = damage {
                return Err(damage);
            }
            *at = items.at;
        }
    }

    /// Reads the payload behind the block's header. A running JVM may have changed the header in the file meanwhile.
    fn read_payload(
        &self,
        input: &mut LogInput<'_>,
        at: u64,
        used: u64,
        block: &mut Vec<u8>,
    ) -> io::Result<()> {
        let is_counted = block_at(block, 0).is_some_and(|(_, head)| counts_events(head));
        let counters = self.counters.as_ref().filter(|_| is_counted);
        let before = counters.map(|counters| counters.get(&at));
        let cells = match before {
            None | Some(Some(None)) => return self.read_more(input, at, used, block),
            Some(None) => &[][..],
            Some(Some(Some(cells))) => cells,
        };
        let there = used.min(self.size().saturating_sub(at));
        let there = block.len() + usize::try_from(there).unwrap_or(0);
        unseal_header(block);
        block.extend_from_slice(cells);
        block.resize(there, 0);
        Ok(())
    }

    fn read_counters(&self) -> io::Result<CountersByOffset> {
        let (mut input, mut at, mut header) = (self.open_input()?, FILE_HEADER, Vec::new());
        let mut counters = CountersByOffset::new();
        loop {
            self.read(&mut input, at, BLOCK_HEADER, &mut header)?;
            let Some((_, head)) = block_at(&header, 0) else {
                return Ok(counters);
            };
            let start = at + BLOCK_HEADER;
            if counts_events(head) && is_sealed(&header) {
                counters.insert(start, None);
            } else if let Some(used) = payload_used(&header).filter(|_| counts_events(head)) {
                let mut cells = Vec::new();
                self.read(&mut input, start, used, &mut cells)?;
                let zeros = cells.iter().rev().take_while(|byte| **byte == 0).count();
                cells.truncate(cells.len() - zeros);
                cells.shrink_to_fit();
                counters.insert(start, Some(cells));
            }
            at = start + u64::from(head.capacity);
        }
    }

    fn open_input(&self) -> io::Result<LogInput<'_>> {
        Ok(match &self.storage {
            LogStorage::File(file) => LogInput::File(file),
            LogStorage::Memory(bytes) => LogInput::Memory(bytes),
            LogStorage::Stream(open) => LogInput::Stream {
                bytes: open()?,
                at: 0,
            },
        })
    }

    /// Replaces `bytes` by `len` bytes of the file, fewer at its end.
    fn read(
        &self,
        input: &mut LogInput<'_>,
        at: u64,
        size: u64,
        bytes: &mut Vec<u8>,
    ) -> io::Result<()> {
        bytes.clear();
        self.read_more(input, at, size, bytes)
    }

    /// Appends bytes of the file to `bytes`, fewer at its end.
    fn read_more(
        &self,
        input: &mut LogInput<'_>,
        at: u64,
        size: u64,
        bytes: &mut Vec<u8>,
    ) -> io::Result<()> {
        let size = match input {
            LogInput::Stream { .. } => size,
            // Bytes appended since the log was opened are not read.
            LogInput::File(_) | LogInput::Memory(_) => size.min(self.size().saturating_sub(at)),
        };
        let (start, size) = (bytes.len(), usize::try_from(size).unwrap_or(usize::MAX));
        let (mut read, mut end) = (0, None);
        while read < size && end.is_none() {
            bytes.resize(start + read + PIECE.min(size - read), 0);
            let piece = bytes.get_mut(start + read..).unwrap_or_default();
            match input.read_at(at + read as u64, piece) {
                Ok(0) => end = Some(Ok(())),
                Ok(more) => read += more,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => end = Some(Err(e)),
            }
        }
        bytes.truncate(start + read);
        if let LogInput::Stream { at, .. } = input
            && end.is_some()
        {
            // Relaxed: no other data depends on it.
            self.size.store(*at, Ordering::Relaxed);
        }
        end.unwrap_or(Ok(()))
    }

    /// As [`is_finished`], but reads headers only.
    fn is_finished(&self) -> io::Result<bool> {
        let (mut input, mut at, mut header) = (self.open_input()?, FILE_HEADER, Vec::new());
        loop {
            self.read(&mut input, at, BLOCK_HEADER, &mut header)?;
            let Some((_, head)) = block_at(&header, 0) else {
                return Ok(true);
            };
            if head.kind == RECORDS && !is_sealed(&header) {
                return Ok(false);
            }
            at += BLOCK_HEADER + u64::from(head.capacity);
        }
    }

    fn is_empty_from(&self, input: &mut LogInput<'_>, from: u64) -> io::Result<bool> {
        let (mut part, mut at) = (Vec::new(), from);
        loop {
            at = input.next_data(at)?;
            if matches!(input, LogInput::Stream { .. }) && at - from > MAX_ROOM {
                let text = format!("more than {MAX_ROOM} bytes of zeros behind the last block");
                return Err(io::Error::new(ErrorKind::InvalidData, text));
            }
            self.read(input, at, 64 << 10, &mut part)?;
            if part.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            if part.is_empty() {
                return Ok(true);
            }
            at += part.len() as u64;
        }
    }
}

impl From<InMemoryLog> for LogFile {
    fn from(log: InMemoryLog) -> LogFile {
        LogFile {
            header: log.header,
            size: AtomicU64::new(log.size()),
            storage: LogStorage::Memory(log.bytes),
            counters_read_at: Instant::now(),
            counters: None,
        }
    }
}

impl LogInput<'_> {
    /// Reads bytes at `at` and returns how many; 0 at the end. A stream is read forwards: it skips the bytes before
    /// `at`.
    fn read_at(&mut self, at: u64, to: &mut [u8]) -> io::Result<usize> {
        match self {
            LogInput::File(file) => file.read_at(to, at),
            LogInput::Memory(all) => {
                let from = usize::try_from(at).ok().and_then(|at| all.get(at..));
                from.unwrap_or_default().read(to)
            }
            LogInput::Stream { bytes, at: reached } => {
                let before = at.checked_sub(*reached).ok_or(ErrorKind::Unsupported)?;
                let mut before = bytes.by_ref().take(before);
                *reached += io::copy(&mut before, &mut io::sink())?;
                if *reached < at {
                    return Ok(0);
                }
                let read = bytes.read(to)?;
                *reached += read as u64;
                Ok(read)
            }
        }
    }

    /// Returns the first offset from `at` on that may hold something other than zeros. A file may have holes that are
    /// larger than any disk.
    fn next_data(&self, at: u64) -> io::Result<u64> {
        match self {
            LogInput::File(file) => next_data(file, at),
            LogInput::Memory(_) | LogInput::Stream { .. } => Ok(at),
        }
    }
}

const NO_BLOCK: &str = "no block where one must begin";

/// Whether the block's counters may be explained by later records of the file.
fn counts_events(head: LogBlockHead) -> bool {
    matches!(head.kind, COUNTERS | EVENT_COUNTERS | VM_COUNTERS)
}

/// Returns the number of used payload bytes by the header; `None`: the header itself is wrong.
fn payload_used(header: &[u8]) -> Option<u64> {
    let (_, head) = block_at(header, 0)?;
    let used = used_bytes(header, head)?;
    (used <= u64::from(head.capacity) && is_within_limits(head)).then_some(used)
}

/// Whether the block has a size that the format allows.
fn is_within_limits(head: LogBlockHead) -> bool {
    let most = match head.kind {
        RECORDS => MAX_RECORDS_BLOCK,
        _ => MAX_CAPACITY,
    };
    head.capacity <= most && head.cells <= MAX_CELLS
}

/// Returns the used bytes of a block. `None`: a kind of block that this version does not know.
fn used_bytes(header: &[u8], head: LogBlockHead) -> Option<u64> {
    match head.kind {
        RECORDS => Some(u64_at(header, AT_COMMITTED as usize).unwrap_or(0)),
        COUNTERS | EVENT_COUNTERS | TOTALS | VM_COUNTERS => Some(cells_size(head)),
        _ => None,
    }
}

/// Combines readings until the log explains its counters and, if it has ended, its counters are final.
fn read_settled(
    first: Vec<u8>,
    again: &mut dyn FnMut() -> io::Result<Vec<u8>>,
) -> io::Result<Vec<u8>> {
    if is_finished(&first) {
        return Ok(first);
    }
    let mut now = again()?;
    // The log has ended meanwhile: its last counters may be newer than in both readings.
    if is_finished(&now) {
        return again();
    }
    keep_counters(&first, &mut now);
    Ok(now)
}

/// Passes the records in the first `bytes` bytes of a log that is being written, up to the first damage.
///
/// One block is in memory at a time. `read` fills a buffer with the bytes at an offset; it returns whether it could.
pub fn for_each_record(
    bytes: u64,
    read: impl Fn(u64, &mut [u8]) -> bool,
    mut each: impl FnMut(LogRecord<'_>),
) {
    let mut at = FILE_HEADER;
    let mut block = Vec::new();
    loop {
        let mut header = [0; BLOCK_HEADER as usize];
        if at + BLOCK_HEADER > bytes || !read(at, &mut header) {
            return;
        }
        let head = header.get(4..24).and_then(LogBlockHead::decode);
        let Some(head) = head.filter(|_| u32_at(&header, 0) == Some(BLOCK_MAGIC)) else {
            return;
        };
        if head.kind == RECORDS {
            let committed = u64_at(&header, AT_COMMITTED as usize).unwrap_or(0);
            let used = committed.min(u64::from(head.capacity.min(MAX_CAPACITY)));
            block.resize(used as usize, 0);
            if !read(at + BLOCK_HEADER, &mut block) {
                return;
            }
            let mut records = RecordDecoder(&block);
            while !records.0.is_empty() {
                match LogRecord::parse(&mut records) {
                    Ok((_, record)) => record.into_iter().for_each(&mut each),
                    Err(MalformedRecord(_)) => return,
                }
            }
        }
        at += BLOCK_HEADER + u64::from(head.capacity);
    }
}

/// An item of the log.
#[derive(Clone, Debug)]
pub enum LogItem<'a> {
    Record(LogEntry<'a>),
    Counters(AllocationCounters<'a>),
    EventCounters(EventCounters<'a>),
    Totals(LogTotals<'a>),
    VmCounters(VmCounters<'a>),
}

/// A record and its place in the file.
#[derive(Clone, Debug)]
pub struct LogEntry<'a> {
    pub offset: u64,
    /// Size in the file, in bytes.
    pub size: u64,
    pub kind: RecordKind,
    /// `None`: a kind that this version does not know.
    pub record: Option<LogRecord<'a>>,
    /// The bytes in the file: kind, length and body.
    pub(crate) bytes: &'a [u8],
}

/// Whether the checksum of a block's counters is right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SealState {
    /// There is no checksum: the JVM was killed or still runs, or the log is older than version 4.
    Absent,
    Right,
    /// The counters or their checksum were changed.
    Wrong,
}

/// The counters of one thread id.
#[derive(Clone, Copy, Debug)]
pub struct AllocationCounters<'a> {
    pub offset: u64,
    pub thread: ThreadId,
    pub seal: SealState,
    bytes: &'a [u8],
}

/// The value of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllocationCount {
    /// The file offset of the counter.
    pub offset: u64,
    pub id: ContextId,
    pub count: u64,
    pub bytes: u64,
}

impl<'a> AllocationCounters<'a> {
    /// Returns the size in the file, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the counters in use.
    pub fn iter(&self) -> impl Iterator<Item = AllocationCount> + use<'a> {
        let used = used_counters(self.bytes, self.offset, CELL);
        used.filter_map(|(offset, id, cell)| {
            Some(AllocationCount {
                offset,
                id,
                count: u64_at(cell, 8)?,
                bytes: u64_at(cell, 16)?,
            })
        })
    }
}

/// The counters by type of one thread id.
#[derive(Clone, Copy, Debug)]
pub struct EventCounters<'a> {
    pub offset: u64,
    pub thread: ThreadId,
    pub seal: SealState,
    bytes: &'a [u8],
}

/// The value of a counter by type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventCount {
    /// The file offset of the counter.
    pub offset: u64,
    pub id: ContextId,
    pub event: EventTypeId,
    /// Bytes 12..16: not 0 if the counter was overwritten.
    pub zero: u32,
    pub count: u64,
    pub value: u64,
}

impl<'a> EventCounters<'a> {
    /// Returns the size in the file, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the counters in use.
    pub fn iter(&self) -> impl Iterator<Item = EventCount> + use<'a> {
        let used = used_counters(self.bytes, self.offset, EVENT_CELL);
        used.filter_map(|(offset, id, cell)| {
            Some(EventCount {
                offset,
                id,
                event: EventTypeId(u32_at(cell, 8)?),
                zero: u32_at(cell, 12)?,
                count: u64_at(cell, 16)?,
                value: u64_at(cell, 24)?,
            })
        })
    }
}

/// Totals over all threads.
#[derive(Clone, Copy, Debug)]
pub struct LogTotals<'a> {
    pub offset: u64,
    pub seal: SealState,
    bytes: &'a [u8],
}

impl<'a> LogTotals<'a> {
    /// Returns the size in the file, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns keys and values. A total without a key was not created yet, or is damaged.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, u64)> + use<'a> {
        let cells = self.bytes.chunks_exact(TOTAL as usize);
        cells.filter_map(|cell| {
            let (key, _) = cell.split_at_checked(TOTAL_KEY as usize)?;
            let end = key.iter().position(|byte| *byte == 0);
            let key = key.get(..end.unwrap_or(key.len()))?;
            let key = std::str::from_utf8(key)
                .ok()
                .filter(|key| !key.is_empty())?;
            Some((key, u64_at(cell, TOTAL_KEY as usize)?))
        })
    }
}

/// The allocated bytes that the VM reports for threads.
#[derive(Clone, Copy, Debug)]
pub struct VmCounters<'a> {
    pub offset: u64,
    pub seal: SealState,
    bytes: &'a [u8],
}

/// The value of a counter of the VM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VmCounterValue {
    /// The file offset of the counter.
    pub offset: u64,
    /// 0: threads in which nothing was counted.
    pub thread: ThreadId,
    /// The threads carry virtual threads.
    pub carriers: bool,
    pub bytes: u64,
    /// Time of the VM's report, nanoseconds since 1970.
    pub at: u64,
}

/// What the counters of one thread id had counted at the VM's last report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountedSum {
    /// The file offset of the counter.
    pub offset: u64,
    pub thread: ThreadId,
    /// The sum of the counters' bytes.
    pub bytes: u64,
    /// Events of counters without bytes: each object has the size of its site.
    pub objects: u64,
}

impl<'a> VmCounters<'a> {
    /// Returns the size in the file, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn iter_cells(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let cells = (self.offset..).step_by(VM_CELL as usize);
        cells.zip(self.bytes.chunks_exact(VM_CELL as usize))
    }

    /// Returns what the counters had counted at the VM's reports. Logs from before November 2026 have none.
    pub fn iter_counted(&self) -> impl Iterator<Item = CountedSum> + use<'a> {
        self.iter_cells().filter_map(|(offset, cell)| {
            let flags = u32_at(cell, 4)?;
            (flags == VmCounter::COUNTED).then_some(CountedSum {
                offset,
                thread: ThreadId(u32_at(cell, 0)?),
                bytes: u64_at(cell, 8)?,
                objects: u64_at(cell, 16)?,
            })
        })
    }

    /// Returns the counters in use.
    pub fn iter(&self) -> impl Iterator<Item = VmCounterValue> + use<'a> {
        self.iter_cells().filter_map(|(offset, cell)| {
            let flags = u32_at(cell, 4)?;
            (flags & VmCounter::IN_USE != 0).then_some(VmCounterValue {
                offset,
                thread: ThreadId(u32_at(cell, 0)?),
                carriers: flags & VmCounter::CARRIERS != 0,
                bytes: u64_at(cell, 8)?,
                at: u64_at(cell, 16)?,
            })
        })
    }
}

/// Returns the counters of `size` bytes that have an id, with their file offsets; the first is at `start`.
fn used_counters(
    bytes: &[u8],
    start: u64,
    size: u64,
) -> impl Iterator<Item = (u64, ContextId, &[u8])> {
    let cells = (start..)
        .step_by(size as usize)
        .zip(bytes.chunks_exact(size as usize));
    cells.filter_map(|(offset, cell)| {
        let id = ContextId(u64_at(cell, 0)?);
        (id != ContextId::UNKNOWN).then_some((offset, id, cell))
    })
}

/// See [`InMemoryLog::items`].
pub struct LogItems<'a> {
    bytes: &'a [u8],
    /// The file offset of the bytes.
    base: u64,
    /// The offset of the next block.
    at: u64,
    /// The rest of the current records block, and its offset.
    records: RecordDecoder<'a>,
    records_at: u64,
    /// Damage behind the current block's records.
    then: Option<LogDamage>,
}

/// What to do with a block.
enum BlockStep<'a> {
    Records,
    Counters(AllocationCounters<'a>),
    EventCounters(EventCounters<'a>),
    Totals(LogTotals<'a>),
    VmCounters(VmCounters<'a>),
    Skip,
    End,
}

impl<'a> Iterator for LogItems<'a> {
    type Item = Result<LogItem<'a>, LogDamage>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if !self.records.0.is_empty() {
                return Some(
                    self.parse_record()
                        .map(LogItem::Record)
                        .inspect_err(|_| self.stop_reading()),
                );
            }
            if let Some(damage) = self.then.take() {
                self.stop_reading();
                return Some(Err(damage));
            }
            match self.parse_block() {
                Ok(BlockStep::Records | BlockStep::Skip) => {}
                Ok(BlockStep::Counters(cells)) => return Some(Ok(LogItem::Counters(cells))),
                Ok(BlockStep::EventCounters(cells)) => {
                    return Some(Ok(LogItem::EventCounters(cells)));
                }
                Ok(BlockStep::Totals(totals)) => return Some(Ok(LogItem::Totals(totals))),
                Ok(BlockStep::VmCounters(cells)) => return Some(Ok(LogItem::VmCounters(cells))),
                Ok(BlockStep::End) => return None,
                Err(damage) => {
                    self.stop_reading();
                    return Some(Err(damage));
                }
            }
        }
    }
}

impl<'a> LogItems<'a> {
    /// `base`: the file offset of the bytes; `at`: the file offset of the first block.
    fn from_bytes(bytes: &'a [u8], base: u64, at: u64) -> LogItems<'a> {
        LogItems {
            bytes,
            base,
            at,
            records: RecordDecoder(&[]),
            records_at: 0,
            then: None,
        }
    }

    fn parse_record(&mut self) -> Result<LogEntry<'a>, LogDamage> {
        let offset = self.records_at;
        let before = self.records.0;
        let entry = LogRecord::parse(&mut self.records);
        let size = before.len() - self.records.0.len();
        self.records_at += size as u64;
        let (kind, record) =
            entry.map_err(|MalformedRecord(reason)| LogDamage::at_offset(offset, reason))?;
        Ok(LogEntry {
            offset,
            size: size as u64,
            kind,
            record,
            bytes: before.get(..size).unwrap_or_default(),
        })
    }

    fn parse_block(&mut self) -> Result<BlockStep<'a>, LogDamage> {
        let at = self.at;
        let rest = self.bytes_from(at);
        let magic = u32_at(rest, 0);
        if magic.unwrap_or(0) == 0 {
            // A killed JVM may have left an incomplete header: bytes 4..32.
            let after = rest.get(BLOCK_HEADER as usize..).unwrap_or_default();
            let empty = if magic.is_some() { after } else { rest };
            return match empty.iter().all(|b| *b == 0) {
                true => Ok(BlockStep::End),
                false => Err(LogDamage::at_offset(at, NO_BLOCK)),
            };
        }
        if magic != Some(BLOCK_MAGIC) {
            return Err(LogDamage::at_offset(at, NO_BLOCK));
        }
        let header = rest.get(..BLOCK_HEADER as usize);
        let header =
            header.ok_or_else(|| LogDamage::at_offset(at, "file ends inside a block header"))?;
        let head = header.get(4..24).and_then(LogBlockHead::decode);
        let head = head.ok_or_else(|| LogDamage::at_offset(at, "block header: wrong checksum"))?;
        if !is_within_limits(head) {
            return Err(LogDamage::at_offset(
                at,
                "block header: larger than the format allows",
            ));
        }
        self.at = at + BLOCK_HEADER + u64::from(head.capacity);
        self.parse_payload(at, header, head)
    }

    fn parse_payload(
        &mut self,
        at: u64,
        header: &[u8],
        head: LogBlockHead,
    ) -> Result<BlockStep<'a>, LogDamage> {
        let Some(used) = used_bytes(header, head) else {
            return Ok(BlockStep::Skip);
        };
        if used > u64::from(head.capacity) {
            return Err(LogDamage::at_offset(
                at,
                "block header: more bytes used than there are",
            ));
        }
        let start = at + BLOCK_HEADER;
        let payload = self.bytes_from(start);
        let there = payload.get(..used as usize).unwrap_or(payload);
        if (there.len() as u64) < used {
            self.then = Some(LogDamage::at_offset(
                start + there.len() as u64,
                "file ends inside a block",
            ));
        }
        let (thread, offset, bytes) = (ThreadId(head.thread), start, there);
        let seal = || seal_state(header, there);
        match head.kind {
            COUNTERS => {
                return Ok(BlockStep::Counters(AllocationCounters {
                    offset,
                    thread,
                    seal: seal(),
                    bytes,
                }));
            }
            EVENT_COUNTERS => {
                return Ok(BlockStep::EventCounters(EventCounters {
                    offset,
                    thread,
                    seal: seal(),
                    bytes,
                }));
            }
            TOTALS => {
                return Ok(BlockStep::Totals(LogTotals {
                    offset,
                    seal: seal(),
                    bytes,
                }));
            }
            VM_COUNTERS => {
                return Ok(BlockStep::VmCounters(VmCounters {
                    offset,
                    seal: seal(),
                    bytes,
                }));
            }
            _ => {}
        }
        let sealed = is_sealed(header) && self.then.is_none();
        if sealed && u32_at(header, AT_CRC as usize) != Some(content_checksum(there)) {
            return Err(LogDamage::at_offset(start, "block: wrong checksum"));
        }
        (self.records, self.records_at) = (RecordDecoder(there), start);
        Ok(BlockStep::Records)
    }

    fn bytes_from(&self, at: u64) -> &'a [u8] {
        let at = at.saturating_sub(self.base);
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        self.bytes.get(at..).unwrap_or_default()
    }

    fn stop_reading(&mut self) {
        (self.records, self.then, self.at) = (RecordDecoder(&[]), None, u64::MAX);
    }
}

/// `cells`: the block's counters; fewer if the file ends.
fn seal_state(header: &[u8], cells: &[u8]) -> SealState {
    let word = |at: u64| u32_at(header, at as usize).unwrap_or(0);
    match (word(AT_SEALED), word(AT_CRC)) {
        (0, 0) => SealState::Absent,
        (1, crc) if crc == content_checksum(cells) => SealState::Right,
        _ => SealState::Wrong,
    }
}

/// Returns the blocks of a file with valid headers: offset and header.
fn iter_blocks(bytes: &[u8]) -> impl Iterator<Item = (usize, LogBlockHead)> {
    let mut at = FILE_HEADER as usize;
    std::iter::from_fn(move || {
        let (here, head) = block_at(bytes, at)?;
        at = at.checked_add(BLOCK_HEADER as usize + head.capacity as usize)?;
        Some((here, head))
    })
}

fn block_at(bytes: &[u8], at: usize) -> Option<(usize, LogBlockHead)> {
    let header = bytes.get(at..)?.get(..BLOCK_HEADER as usize)?;
    let head = header.get(4..24).and_then(LogBlockHead::decode)?;
    (u32_at(header, 0)? == BLOCK_MAGIC).then_some((at, head))
}

/// Whether the block with this header no longer changes.
fn is_sealed(header: &[u8]) -> bool {
    u32_at(header, AT_SEALED as usize) == Some(1)
}

/// Whether nothing is appended any more: all records are sealed.
fn is_finished(bytes: &[u8]) -> bool {
    let mut records = iter_blocks(bytes).filter(|(_, head)| head.kind == RECORDS);
    records.all(|(at, _)| bytes.get(at..).is_some_and(is_sealed))
}

/// Replaces the counters of `now` by those of `before`, an earlier reading of the same file.
///
/// A running JVM appends while its log is read: the records of `now` explain the counters of `before`. The seals of
/// `now` do not apply to them.
fn keep_counters(before: &[u8], now: &mut [u8]) {
    let counters: Vec<_> = iter_blocks(now)
        .filter(|(_, head)| counts_events(*head))
        // Sealed blocks do not change any more.
        .filter(|(at, _)| !before.get(*at..).is_some_and(is_sealed))
        .map(|(at, head)| (at + BLOCK_HEADER as usize, cells_size(head)))
        .collect();
    for (start, size) in counters {
        if let Some(header) = now.get_mut(start - BLOCK_HEADER as usize..start) {
            unseal_header(header);
        }
        let end = (start + size as usize).min(now.len());
        let (Some(cells), before) = (now.get_mut(start..end), before.get(start..)) else {
            continue;
        };
        let before = before.unwrap_or_default();
        let common = before.len().min(cells.len());
        let (old, new) = cells.split_at_mut(common);
        old.copy_from_slice(before.get(..common).unwrap_or_default());
        new.fill(0);
    }
}

#[cfg(test)]
mod reader_tests {
    use super::*;

    fn block(kind: u8, cells: &[[u64; 3]], sealed: bool) -> Vec<u8> {
        let head = LogBlockHead {
            kind,
            capacity: 192,
            thread: 1,
            cells: cells.len() as u32,
        };
        let mut block = BLOCK_MAGIC.to_le_bytes().to_vec();
        block.extend(head.encode());
        block.resize(BLOCK_HEADER as usize, 0);
        block[AT_SEALED as usize] = u8::from(sealed);
        block.extend(cells.iter().flatten().flat_map(|word| word.to_le_bytes()));
        block.resize(BLOCK_HEADER as usize + 192, 0);
        block
    }

    fn file(blocks: &[Vec<u8>]) -> Vec<u8> {
        let mut file = LogHeader::default().encode().to_vec();
        file.extend(blocks.concat());
        file
    }

    fn counts(bytes: Vec<u8>) -> Vec<(u64, u64, u64)> {
        let log = InMemoryLog::from_bytes(bytes).unwrap();
        let cells = log.items().filter_map(|item| match item {
            Ok(LogItem::Counters(cells)) => Some(cells),
            _ => None,
        });
        cells
            .flat_map(|cells| cells.iter())
            .map(|cell| (cell.offset, cell.id.0, cell.count))
            .collect()
    }

    #[test]
    fn counters_are_those_of_the_first_reading() {
        let before = file(&[
            block(RECORDS, &[], false),
            block(COUNTERS, &[[7, 1, 0], [0; 3]], false),
        ]);
        let mut now = file(&[
            block(RECORDS, &[], true),
            block(COUNTERS, &[[7, 9, 0], [8, 2, 0]], false),
            block(COUNTERS, &[[9, 1, 0]], false),
        ]);
        keep_counters(&before, &mut now);
        assert_eq!(counts(now), [(64 + 256 + 64, 7, 1)]);
    }

    #[test]
    fn counters_that_were_cut_in_the_first_reading_are_kept_as_far_as_they_were_read() {
        let cells = [[7, 1, 0], [8, 1, 0]];
        let now = file(&[block(COUNTERS, &cells, false)]);
        let mut read = now.clone();
        keep_counters(&now[..64 + 64 + 24], &mut read);
        assert_eq!(counts(read), [(128, 7, 1)]);
    }

    #[test]
    fn a_log_that_ends_while_it_is_read_has_all_its_counters() {
        let log = |count, sealed| {
            file(&[
                block(COUNTERS, &[[7, count, 0]], false),
                block(RECORDS, &[], sealed),
            ])
        };
        let settled = |first: Vec<u8>, more: &[Vec<u8>]| {
            let mut more = more.iter().cloned();
            let bytes = read_settled(first, &mut || Ok(more.next().unwrap()));
            counts(bytes.unwrap())
        };
        // The counters of a reading are older than its records.
        let ended = [log(2, true), log(9, true)];
        assert_eq!(settled(log(1, false), &ended), [(128, 7, 9)]);
        assert_eq!(settled(log(1, false), &[log(2, false)]), [(128, 7, 1)]);
        assert_eq!(settled(log(3, true), &[]), [(128, 7, 3)]);
    }

    fn counts_in(log: &LogFile) -> Vec<(u64, u64, u64)> {
        let mut all = Vec::new();
        let read = log.for_each_item(|item| {
            if let LogItem::Counters(cells) = item.unwrap() {
                all.extend(
                    cells
                        .iter()
                        .map(|cell| (cell.offset, cell.id.0, cell.count)),
                );
            }
            ControlFlow::Continue(())
        });
        read.unwrap();
        all
    }

    #[test]
    fn of_a_file_counters_are_those_from_before_its_records_were_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let before = [
            block(RECORDS, &[], false),
            block(COUNTERS, &[[7, 1, 0], [0; 3]], false),
        ];
        std::fs::write(&path, file(&before)).unwrap();
        let log = LogFile::open(&path).unwrap();
        let counters = block(COUNTERS, &[[7, 9, 0], [8, 2, 0]], false);
        let now = |sealed| file(&[block(RECORDS, &[], sealed), counters.clone()]);
        std::fs::write(&path, now(false)).unwrap();
        assert_eq!(counts_in(&log), [(64 + 256 + 64, 7, 1)]);
        assert!(log.is_settled().unwrap());
        // The log has ended: the reading lacks its last counts.
        std::fs::write(&path, now(true)).unwrap();
        assert!(!log.is_settled().unwrap());
        let log = LogFile::open(&path).unwrap();
        assert_eq!(counts_in(&log).len(), 2);
        assert!(log.is_settled().unwrap());
    }

    #[test]
    fn a_log_is_finished_when_all_its_records_are_sealed() {
        let sealed = block(RECORDS, &[], true);
        let open = block(RECORDS, &[], false);
        let counters = block(COUNTERS, &[], false);
        assert!(is_finished(&file(&[sealed.clone(), counters.clone()])));
        assert!(!is_finished(&file(&[sealed, counters, open])));
    }
}
