//! Reads streams up to the first damage, and returns its place and cause.
//!
//! The file of a JVM that was killed or still runs is valid: its blocks are open, and the disk space allocated in
//! advance is zeros. A sealed block must match its checksum.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use lucce_tracelog::block_file::content_checksum;
use lucce_tracelog::byte_fields::{u32_at, u64_at};
use lucce_tracelog::{LogDamage, OpenError, ThreadId, data_end, open_file};

use crate::StreamThread;
use crate::entry::{LONGEST, StreamEntry, THREAD_SWITCH};
use crate::layout::{
    AT_ENDED, AT_FULL, AT_SUM, AT_USED, BLOCK_HEADER, BLOCK_MAGIC, BlockKind, FILE_HEADER,
    StreamBlockHeader, StreamHeader,
};
use crate::limits::{LARGEST_BLOCK, MAX_NAME};
use crate::merge::{BlockEntries, StreamEventIter};

/// A stream in memory, as it was when it was read.
pub struct EventStream {
    header: StreamHeader,
    bytes: Vec<u8>,
    threads: Vec<StreamThreadInfo>,
    log_threads: BTreeMap<ThreadId, Vec<BlockEntries>>,
    event_count: u64,
    /// The clock when an event first found no room.
    full_since: Option<u64>,
    end_clock: Option<u64>,
    damage: Option<LogDamage>,
}

/// A thread of the stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamThreadInfo {
    pub name: String,
    pub is_virtual: bool,
    /// The thread id of the log's counters.
    pub log_thread: ThreadId,
}

/// A block of events, from its header.
#[derive(Clone, Copy)]
struct BlockLocation {
    at: usize,
    head: StreamBlockHeader,
}

/// Reads of a file that grows. A block may begin in what was read, and end in what was added since: then it seems damaged.
const MAX_READS: usize = 4;

impl EventStream {
    /// Reads a stream file into memory.
    ///
    /// # Errors
    /// See [`OpenError`]. Damage after the header is no error: see [`damage`](Self::damage).
    pub fn open(path: impl AsRef<Path>) -> Result<EventStream, OpenError> {
        let mut file = open_file(path)?;
        let mut header = Vec::new();
        file.by_ref().take(FILE_HEADER).read_to_end(&mut header)?;
        // The header is checked first, so that a huge foreign file is not read.
        StreamHeader::decode(&header)?;
        for _ in 1..MAX_READS {
            let (stream, end) = read_whole(&mut file)?;
            if stream.damage.is_none() || data_end(&file)? <= end {
                return Ok(stream);
            }
        }
        read_whole(&mut file).map(|(stream, _)| stream)
    }

    /// Takes the bytes of a stream.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<EventStream, OpenError> {
        let clock = |at| u64_at(&bytes, at as usize).filter(|clock| *clock != 0);
        let mut stream = EventStream {
            header: StreamHeader::decode(&bytes)?,
            threads: Vec::new(),
            log_threads: BTreeMap::new(),
            event_count: 0,
            full_since: clock(AT_FULL),
            end_clock: clock(AT_ENDED),
            damage: None,
            bytes: Vec::new(),
        };
        let mut blocks = Vec::new();
        let surveyed = stream.scan_blocks(&bytes, &mut blocks);
        let mut last = BTreeMap::new();
        let read = blocks
            .iter()
            .try_for_each(|block| stream.read_block_events(&bytes, block, &mut last));
        // These entries precede the unreadable block header.
        stream.damage = read.err().or(surveyed.err());
        stream.bytes = bytes;
        Ok(stream)
    }

    #[must_use]
    pub fn header(&self) -> &StreamHeader {
        &self.header
    }

    /// Returns all events in the order of their times; events of one thread keep their order.
    #[must_use]
    pub fn iter_events(&self) -> StreamEventIter<'_> {
        StreamEventIter::new(&self.bytes, self.log_threads.iter())
    }

    /// Returns the number of events.
    #[must_use]
    pub fn event_count(&self) -> u64 {
        self.event_count
    }

    #[must_use]
    pub fn threads(&self) -> &[StreamThreadInfo] {
        &self.threads
    }

    #[must_use]
    pub fn thread_info(&self, thread: StreamThread) -> Option<&StreamThreadInfo> {
        self.threads.get((thread.0 as usize).checked_sub(1)?)
    }

    /// Returns the file's size in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the clock when the limit was reached or the disk was full: all earlier events are present.
    #[must_use]
    pub fn full_since(&self) -> Option<u64> {
        self.full_since
    }

    /// Returns the clock at the end of the JVM; `None`: it was killed or still runs.
    #[must_use]
    pub fn end_clock(&self) -> Option<u64> {
        self.end_clock
    }

    /// Returns the nanoseconds from the start to `clock`.
    #[must_use]
    pub fn since_start(&self, clock: u64) -> u64 {
        clock.saturating_sub(self.header.clock)
    }

    /// Returns the place and cause of the damage at which reading stopped.
    #[must_use]
    pub fn damage(&self) -> Option<&LogDamage> {
        self.damage.as_ref()
    }

    /// Reads the headers of blocks and threads.
    fn scan_blocks(
        &mut self,
        bytes: &[u8],
        blocks: &mut Vec<BlockLocation>,
    ) -> Result<(), LogDamage> {
        let mut at = FILE_HEADER as usize;
        while at < bytes.len() {
            let failed = |reason| LogDamage::at_offset(at as u64, reason);
            match u32_at(bytes, at) {
                Some(BLOCK_MAGIC) => {}
                // Space that was allocated in advance.
                Some(0) if self.end_clock.is_none() => return Ok(()),
                _ => return Err(failed("no block begins here")),
            }
            let head = bytes.get(at + 4..).unwrap_or_default();
            let head = StreamBlockHeader::decode(head).map_err(failed)?;
            let first = at + BLOCK_HEADER as usize;
            let next = first + head.capacity as usize;
            if next > bytes.len() {
                return Err(failed("a block ends early"));
            }
            match head.kind {
                BlockKind::Thread => self.add_thread(bytes, at, &head).map_err(failed)?,
                BlockKind::Events => blocks.push(BlockLocation { at, head }),
            }
            at = next;
        }
        Ok(())
    }

    fn add_thread(
        &mut self,
        bytes: &[u8],
        at: usize,
        head: &StreamBlockHeader,
    ) -> Result<(), &'static str> {
        if head.thread as usize != self.threads.len() + 1 {
            return Err("threads are not numbered in order");
        }
        let used = sealed_bytes(bytes, at, head)?;
        let name = used.unwrap_or_default();
        if name.len() > MAX_NAME {
            return Err("a name is longer than the format allows");
        }
        let name = std::str::from_utf8(name).map_err(|_| "a name is not UTF-8")?;
        self.threads.push(StreamThreadInfo {
            name: name.to_owned(),
            is_virtual: head.is_virtual,
            log_thread: ThreadId(head.log_thread),
        });
        Ok(())
    }

    fn read_block_events(
        &mut self,
        bytes: &[u8],
        block: &BlockLocation,
        last: &mut BTreeMap<u32, u64>,
    ) -> Result<(), LogDamage> {
        let BlockLocation { at, head } = block;
        let failed = |reason| LogDamage::at_offset(*at as u64, reason);
        if u64::from(head.capacity) > LARGEST_BLOCK {
            return Err(failed("a block is larger than the format allows"));
        }
        if !self.is_thread(head.thread.into()) {
            return Err(failed("events of a thread that has not started"));
        }
        let sealed = sealed_bytes(bytes, *at, head).map_err(failed)?;
        let first = at + BLOCK_HEADER as usize;
        let room = bytes.get(first..first + head.capacity as usize);
        let entries = sealed.or(room).unwrap_or_default();
        let last = last.entry(head.log_thread).or_insert(0);
        let (used, checked) = self.check_entries(entries, head.clock, last);
        let part = BlockEntries {
            offset: first,
            used,
            clock: head.clock,
            thread: StreamThread(head.thread),
        };
        self.log_threads
            .entry(ThreadId(head.log_thread))
            .or_default()
            .push(part);
        let checked = checked.and(match sealed {
            Some(sealed) if used != sealed.len() => Err("a sealed block ends early"),
            _ => Ok(()),
        });
        checked.map_err(|reason| LogDamage::at_offset((first + used) as u64, reason))
    }

    /// Returns how many bytes of a block are entries, and the damage behind them.
    fn check_entries(
        &mut self,
        entries: &[u8],
        clock: u64,
        last: &mut u64,
    ) -> (usize, Result<(), &'static str>) {
        let mut at = 0;
        loop {
            let rest = entries.get(at..).unwrap_or_default();
            let (entry, length) = match StreamEntry::decode_first(rest) {
                Ok(Some(found)) => found,
                Ok(None) => return (at, self.check_unused_bytes(rest)),
                Err(reason) => return (at, Err(reason)),
            };
            let Some(time) = clock.checked_add(entry.elapsed_ns) else {
                return (at, Err("an event behind the end of time"));
            };
            if time < *last {
                return (at, Err("an event before the one before it"));
            }
            if entry.kind != THREAD_SWITCH {
                self.event_count += 1;
            } else if !self.is_thread(entry.number) {
                // A copy of a running JVM's file may have the entry and lack the thread, which began just then.
                let ended = self.end_clock.is_some();
                let failed = Err("events of a thread that has not started");
                return (at, if ended { failed } else { Ok(()) });
            }
            *last = time;
            at += length;
        }
    }

    /// Checks that after the end of the JVM only words of an unfinished entry follow the entries.
    fn check_unused_bytes(&self, rest: &[u8]) -> Result<(), &'static str> {
        let behind = rest.get(LONGEST..).unwrap_or_default();
        match self.end_clock.is_none() || behind.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => Err("an event behind the end of its block's entries"),
        }
    }

    fn is_thread(&self, number: u64) -> bool {
        (1..=self.threads.len() as u64).contains(&number)
    }
}

/// Reads a stream up to its last block, and returns also the offset where its data end.
///
/// A block into which little was written ends in a hole, so one block more than the data is read of it.
fn read_whole(file: &mut File) -> Result<(EventStream, u64), OpenError> {
    let end = data_end(file)?;
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(end.saturating_add(LARGEST_BLOCK))
        .read_to_end(&mut bytes)?;
    Ok((EventStream::from_bytes(bytes)?, end))
}

/// Returns the bytes of a sealed block. `Ok(None)`: it is open.
fn sealed_bytes<'b>(
    bytes: &'b [u8],
    at: usize,
    head: &StreamBlockHeader,
) -> Result<Option<&'b [u8]>, &'static str> {
    let used = u32_at(bytes, at + AT_USED as usize).unwrap_or(0);
    if used == 0 {
        return Ok(None);
    }
    if used > head.capacity {
        return Err("a block that uses more than it has");
    }
    let first = at + BLOCK_HEADER as usize;
    let sealed = bytes
        .get(first..first + used as usize)
        .ok_or("a block ends early")?;
    match u32_at(bytes, at + AT_SUM as usize) == Some(content_checksum(sealed)) {
        true => Ok(Some(sealed)),
        false => Err("a block's checksum is wrong"),
    }
}
