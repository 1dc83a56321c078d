//! Opens streams: everything up to the first damage, then where and what it is.
//!
//! The file of a JVM that was killed or still runs is whole: its blocks are open, and the disk space
//! obtained in advance is zeros. A block that was sealed must match its checksum.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use lucce_tracelog::fields::{u32_at, u64_at};
use lucce_tracelog::{Damage, OpenError, ThreadId, data_end, open_file};

use crate::StreamThread;
use crate::entry::{Entry, LONGEST, SWITCH};
use crate::layout::{
    AT_ENDED, AT_FULL, AT_SUM, AT_USED, BLOCK_HEADER, BLOCK_MAGIC, BlockHead, BlockKind,
    FILE_HEADER, Header,
};
use crate::limits::{LARGEST_BLOCK, MAX_NAME};
use crate::merge::Events;

/// A stream in memory, as it was at one moment.
pub struct Stream {
    header: Header,
    bytes: Vec<u8>,
    threads: Vec<ThreadInfo>,
    lanes: BTreeMap<ThreadId, Vec<Part>>,
    events: u64,
    /// The clock then.
    full: Option<u64>,
    ended: Option<u64>,
    damage: Option<Damage>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadInfo {
    pub name: String,
    pub is_virtual: bool,
    /// Of the log's counters.
    pub lane: ThreadId,
}

/// The entries of one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Of the first one.
    pub offset: usize,
    pub used: usize,
    pub clock: u64,
    pub thread: StreamThread,
}

/// A block of events as its header says.
#[derive(Clone, Copy)]
struct Found {
    at: usize,
    head: BlockHead,
}

impl Stream {
    /// # Errors
    /// See [`OpenError`]. Damage after the header is not one: see [`damage`](Self::damage).
    pub fn open(path: impl AsRef<Path>) -> Result<Stream, OpenError> {
        let mut file = open_file(path)?;
        let mut bytes = Vec::new();
        file.by_ref().take(FILE_HEADER).read_to_end(&mut bytes)?;
        // First, so that a huge foreign file is not read.
        Header::decode(&bytes)?;
        // Behind its last block, a stream may have room that is a hole: it is not read.
        let end = data_end(&file)?;
        file.take(end.saturating_sub(FILE_HEADER))
            .read_to_end(&mut bytes)?;
        Self::from_bytes(bytes)
    }

    /// # Errors
    /// See [`OpenError`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Stream, OpenError> {
        let clock = |at| u64_at(&bytes, at as usize).filter(|clock| *clock != 0);
        let mut stream = Stream {
            header: Header::decode(&bytes)?,
            threads: Vec::new(),
            lanes: BTreeMap::new(),
            events: 0,
            full: clock(AT_FULL),
            ended: clock(AT_ENDED),
            damage: None,
            bytes: Vec::new(),
        };
        let mut blocks = Vec::new();
        let surveyed = stream.survey(&bytes, &mut blocks);
        let mut last = BTreeMap::new();
        let read = blocks
            .iter()
            .try_for_each(|block| stream.events_of(&bytes, block, &mut last));
        // Entries lie before the block header that could not be read.
        stream.damage = read.err().or(surveyed.err());
        stream.bytes = bytes;
        Ok(stream)
    }

    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// All events in the order of their times; of one thread, in their own order.
    #[must_use]
    pub fn events(&self) -> Events<'_> {
        Events::new(&self.bytes, self.lanes.iter())
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.events
    }

    #[must_use]
    pub fn threads(&self) -> &[ThreadInfo] {
        &self.threads
    }

    #[must_use]
    pub fn thread(&self, thread: StreamThread) -> Option<&ThreadInfo> {
        self.threads.get((thread.0 as usize).checked_sub(1)?)
    }

    /// The file's size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The limit was reached, or the disk was full: until this clock, all events are here.
    #[must_use]
    pub fn full_since(&self) -> Option<u64> {
        self.full
    }

    /// The clock at the end of the JVM; `None`: it was killed, or still runs.
    #[must_use]
    pub fn ended(&self) -> Option<u64> {
        self.ended
    }

    /// Nanoseconds from the start to `clock`.
    #[must_use]
    pub fn since_start(&self, clock: u64) -> u64 {
        clock.saturating_sub(self.header.clock)
    }

    /// Where reading stopped.
    #[must_use]
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// Blocks and threads.
    fn survey(&mut self, bytes: &[u8], blocks: &mut Vec<Found>) -> Result<(), Damage> {
        let mut at = FILE_HEADER as usize;
        while at < bytes.len() {
            let failed = |reason| Damage::at(at as u64, reason);
            match u32_at(bytes, at) {
                Some(BLOCK_MAGIC) => {}
                // Space that was obtained in advance.
                Some(0) if self.ended.is_none() => return Ok(()),
                _ => return Err(failed("no block begins here")),
            }
            let head = bytes.get(at + 4..).unwrap_or_default();
            let head = BlockHead::decode(head).map_err(failed)?;
            let first = at + BLOCK_HEADER as usize;
            let next = first + head.capacity as usize;
            if next > bytes.len() {
                return Err(failed("a block ends early"));
            }
            match head.kind {
                BlockKind::Thread => self.add_thread(bytes, at, &head).map_err(failed)?,
                BlockKind::Events => blocks.push(Found { at, head }),
            }
            at = next;
        }
        Ok(())
    }

    fn add_thread(
        &mut self,
        bytes: &[u8],
        at: usize,
        head: &BlockHead,
    ) -> Result<(), &'static str> {
        if head.thread as usize != self.threads.len() + 1 {
            return Err("threads are not numbered in order");
        }
        let used = sealed(bytes, at, head)?;
        let name = used.unwrap_or_default();
        if name.len() > MAX_NAME {
            return Err("a name is longer than the format allows");
        }
        let name = std::str::from_utf8(name).map_err(|_| "a name is not UTF-8")?;
        self.threads.push(ThreadInfo {
            name: name.to_owned(),
            is_virtual: head.is_virtual,
            lane: ThreadId(head.lane),
        });
        Ok(())
    }

    fn events_of(
        &mut self,
        bytes: &[u8],
        block: &Found,
        last: &mut BTreeMap<u32, u64>,
    ) -> Result<(), Damage> {
        let Found { at, head } = block;
        let failed = |reason| Damage::at(*at as u64, reason);
        if u64::from(head.capacity) > LARGEST_BLOCK {
            return Err(failed("a block is larger than the format allows"));
        }
        if !self.is_thread(head.thread.into()) {
            return Err(failed("events of a thread that has not started"));
        }
        let sealed = sealed(bytes, *at, head).map_err(failed)?;
        let first = at + BLOCK_HEADER as usize;
        let room = bytes.get(first..first + head.capacity as usize);
        let entries = sealed.or(room).unwrap_or_default();
        let last = last.entry(head.lane).or_insert(0);
        let (used, checked) = self.check(entries, head.clock, last);
        let part = Part {
            offset: first,
            used,
            clock: head.clock,
            thread: StreamThread(head.thread),
        };
        self.lanes
            .entry(ThreadId(head.lane))
            .or_default()
            .push(part);
        let checked = checked.and(match sealed {
            Some(sealed) if used != sealed.len() => Err("a sealed block ends early"),
            _ => Ok(()),
        });
        checked.map_err(|reason| Damage::at((first + used) as u64, reason))
    }

    /// How many bytes of a block are entries, and why no more are.
    fn check(
        &mut self,
        entries: &[u8],
        clock: u64,
        last: &mut u64,
    ) -> (usize, Result<(), &'static str>) {
        let mut at = 0;
        loop {
            let rest = entries.get(at..).unwrap_or_default();
            let (entry, length) = match Entry::first(rest) {
                Ok(Some(found)) => found,
                Ok(None) => return (at, self.check_rest(rest)),
                Err(reason) => return (at, Err(reason)),
            };
            let Some(time) = clock.checked_add(entry.passed) else {
                return (at, Err("an event behind the end of time"));
            };
            if time < *last {
                return (at, Err("an event before the one before it"));
            }
            if entry.kind != SWITCH {
                self.events += 1;
            } else if !self.is_thread(entry.number) {
                // A copy of a running JVM's may have the entry and not the thread that began just then.
                let ended = self.ended.is_some();
                let failed = Err("events of a thread that has not started");
                return (at, if ended { failed } else { Ok(()) });
            }
            *last = time;
            at += length;
        }
    }

    /// Behind the entries of a JVM that has ended nothing follows but the words of one that had no time.
    fn check_rest(&self, rest: &[u8]) -> Result<(), &'static str> {
        let behind = rest.get(LONGEST..).unwrap_or_default();
        match self.ended.is_none() || behind.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => Err("an event behind the end of its block's entries"),
        }
    }

    fn is_thread(&self, number: u64) -> bool {
        (1..=self.threads.len() as u64).contains(&number)
    }
}

/// The bytes of a sealed block. `Ok(None)`: it is open.
fn sealed<'b>(
    bytes: &'b [u8],
    at: usize,
    head: &BlockHead,
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
    match u32_at(bytes, at + AT_SUM as usize) == Some(crc32fast::hash(sealed)) {
        true => Ok(Some(sealed)),
        false => Err("a block's checksum is wrong"),
    }
}
