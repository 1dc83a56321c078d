//! The file format: a header, then blocks, each at a multiple of 64 bytes. Everything is little-endian.
//!
//! File header, 64 bytes:
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 8 | magic `LUCCEEVT` |
//! | 8 | 2 | format version |
//! | 10 | 6 | zero |
//! | 16 | 4 | process id, as in the log |
//! | 20 | 4 | zero |
//! | 24 | 8 | start, nanoseconds since 1970, as in the log |
//! | 32 | 8 | clock: `System.nanoTime` (CLOCK_MONOTONIC) at the start |
//! | 40 | 4 | CRC32 of bytes 0..40 |
//! | 44 | 4 | zero |
//! | 48 | 8 | full: the clock when an event first found no room; 0: not yet |
//! | 56 | 8 | ended: the clock at the end of the JVM; 0: not yet, or killed |
//!
//! Block header, 64 bytes, then `capacity` bytes:
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic `LEVB`, stored last: a block without it does not exist yet |
//! | 4 | 1 | kind: 1 events, 2 a thread |
//! | 5 | 1 | of a thread: 1 if it is virtual |
//! | 6 | 2 | zero |
//! | 8 | 4 | capacity: a multiple of 64 |
//! | 12 | 4 | the log's thread id, of its counters |
//! | 16 | 4 | the thread, numbered from 1, whose events these are until a SWITCH |
//! | 20 | 4 | zero |
//! | 24 | 8 | of events: the clock that is the origin of their times |
//! | 32 | 4 | CRC32 of bytes 4..32 |
//! | 36 | 4 | used: bytes of entries or of the name; 0: the block is open, see `entry` |
//! | 40 | 4 | CRC32 of the used bytes, stored before `used` |
//! | 44 | 20 | zero |
//!
//! Format versions:
//! * 1 (2026-11-21): the first.

use lucce_tracelog::OpenError;
use lucce_tracelog::block_file::{
    BlockHeader, FileFormat, damaged_header, join_fields, split_field,
};
use lucce_tracelog::byte_fields::{put_bytes, u32_at, u64_at};

/// The version that this crate writes, and the newest version that it reads.
pub const FORMAT_VERSION: u16 = 1;
/// The first bytes of every file.
pub const MAGIC: [u8; 8] = *b"LUCCEEVT";

const FORMAT: FileFormat = FileFormat {
    magic: MAGIC,
    version: FORMAT_VERSION,
    header_bytes: FILE_HEADER as usize,
    checksum_at: 40,
    description: "a stream of events",
};

pub(crate) const FILE_HEADER: u64 = 64;
pub(crate) const BLOCK_HEADER: u64 = 64;
pub(crate) const ALIGN: u64 = 64;
pub(crate) const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"LEVB");
pub(crate) const AT_FULL: u64 = 48;
pub(crate) const AT_ENDED: u64 = 56;
pub(crate) const AT_USED: u64 = 36;
pub(crate) const AT_SUM: u64 = 40;

/// The run of the events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamHeader {
    pub pid: u32,
    /// Nanoseconds since 1970.
    pub start: u64,
    /// The clock of the events at the start.
    pub clock: u64,
}

impl StreamHeader {
    pub(crate) fn encode(&self) -> [u8; FILE_HEADER as usize] {
        let mut bytes = [0; FILE_HEADER as usize];
        put_bytes(&mut bytes, 16, &self.pid.to_le_bytes());
        put_bytes(&mut bytes, 24, &self.start.to_le_bytes());
        put_bytes(&mut bytes, 32, &self.clock.to_le_bytes());
        FORMAT.seal_header(&mut bytes);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, OpenError> {
        let bytes = FORMAT.check_header(bytes)?;
        Ok(StreamHeader {
            pid: u32_at(bytes, 16).ok_or_else(damaged_header)?,
            start: u64_at(bytes, 24).ok_or_else(damaged_header)?,
            clock: u64_at(bytes, 32).ok_or_else(damaged_header)?,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockKind {
    Events = 1,
    Thread = 2,
}

/// The part of a block header that never changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StreamBlockHeader {
    pub kind: BlockKind,
    pub is_virtual: bool,
    pub capacity: u32,
    pub log_thread: u32,
    pub thread: u32,
    pub clock: u64,
}

impl StreamBlockHeader {
    /// Returns bytes 4..36: everything but the magic and the fields that are stored later.
    pub fn encode(&self) -> [u8; 32] {
        let [low, high] = split_field(self.clock);
        let header = BlockHeader {
            kind: self.kind as u8,
            flags: self.is_virtual.into(),
            fields: [self.capacity, self.log_thread, self.thread, 0, low, high],
        };
        let mut bytes = [0; BlockHeader::<6>::BYTES];
        header.encode(&mut bytes, &[]);
        bytes
    }

    /// Decodes bytes 4..36 of a block.
    ///
    /// # Errors
    /// Why the bytes are no header.
    pub fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let header = BlockHeader::<6>::parse(bytes).ok_or("a block header ends early")?;
        if !BlockHeader::<6>::is_intact(bytes, &[]) {
            return Err("block header: wrong checksum");
        }
        let kind = match header.kind {
            1 => BlockKind::Events,
            2 => BlockKind::Thread,
            _ => return Err("no such kind of block"),
        };
        let [capacity, log_thread, thread, _, low, high] = header.fields;
        let head = StreamBlockHeader {
            kind,
            is_virtual: header.flags == 1,
            capacity,
            log_thread,
            thread,
            clock: join_fields([low, high]),
        };
        match u64::from(head.capacity).is_multiple_of(ALIGN) && head.capacity > 0 {
            true => Ok(head),
            false => Err("a block of a size that none has"),
        }
    }
}
