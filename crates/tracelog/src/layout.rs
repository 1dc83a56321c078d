//! The file format: a header, then blocks, each at a multiple of 64 bytes. Everything is little-endian.
//!
//! File header, 64 bytes:
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 8 | magic `LUCCELOG` |
//! | 8 | 2 | format version |
//! | 10 | 1, 1, 1 | bits of a context id: version, anchor, callId |
//! | 13 | 3 | zero |
//! | 16 | 4 | process id |
//! | 20 | 4 | zero |
//! | 24 | 8 | start, nanoseconds since 1970 |
//! | 32 | 8 | random run id, see `run_id`; 0 before version 3 |
//! | 40 | 20 | zero |
//! | 60 | 4 | CRC32 of bytes 0..60 |
//!
//! Block header, 64 bytes, then `capacity` bytes of payload (the file may end after the used part
//! of its last block):
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic `LBLK`, stored last: a block without it does not exist yet |
//! | 4 | 1 | kind: 1 records, 2 counters, 3 counters by type, 4 totals, 5 counters of the VM; others are skipped |
//! | 5 | 3 | zero |
//! | 8 | 4 | capacity: a multiple of 64 |
//! | 12 | 4 | counters: their thread id |
//! | 16 | 4 | counters: how many |
//! | 20 | 4 | CRC32 of bytes 4..20 |
//! | 24 | 8 | committed: bytes of whole records, stored after them |
//! | 32 | 4 | seal: CRC32 of the committed bytes, or of all counters |
//! | 36 | 4 | 1 when sealed, stored after the CRC: nothing will be appended or counted |
//! | 40 | 24 | zero |
//!
//! A records block is sealed when the next one begins. Since version 4, blocks of counters are sealed when the log is
//! closed; both words are stored at once. Counters without a seal have no checksum: the JVM was killed, still runs, or
//! wrote an older version.
//!
//! A records block holds records (see `record`).
//!
//! A counters block (2) holds counters of 24 bytes that their thread changes in place: `id: u64`, `count: u64`,
//! `bytes: u64`; id 0 means not used yet. They count allocations by bytecode.
//!
//! A block of counters by type (3) holds counters of 32 bytes: `id: u64`, `type: u32` (see the record `EventType`),
//! `zero: u32`, `count: u64`, `value: u64`, the sum in the type's unit.
//!
//! A block of totals (4) holds counters of 64 bytes: a key, 56 bytes of UTF-8 padded with zeros, and `value: u64`,
//! which changes in place. It means the same as a `StatRecord` of this key, and survives if the JVM is killed before it
//! writes its `StatRecord`s. Once written, the `StatRecord`s take precedence.
//!
//! A block of counters of the VM (5) holds counters of 24 bytes, each with its own thread id: `thread: u32` (0: threads
//! without an id because nothing was counted in them), `flags: u32` (1 in use, 2 carriers of virtual threads),
//! `bytes: u64` (what these threads allocated while they were followed, as the VM reports it), `at: u64` (the time of
//! the report, nanoseconds since 1970). A counter with the flags 4 holds what the counters of `thread` had counted at that
//! time: the sum of their `bytes`, and in place of `at` `objects: u64`, the events of counters whose `bytes` are 0.
//! Readers that do not know the flag skip the counter.
//!
//! Format versions:
//! * 1 (2026-11-21): the first. Later additions, which older readers skip: blocks of kind 3 and records of kinds 17
//!   to 21.
//! * 2 (2026-11-22): a base may set the width of anchors; a reader that skips this misreads context ids.
//! * 3 (2026-11-23): the header has the run id; a reader that skips it takes ids of other runs for this run's.
//!   Later additions, which older readers skip: blocks of kinds 4 and 5, records of kind 23 (such a reader adds up
//!   events with different tags).
//! * 4 (2026-11-26): blocks of counters are sealed when the log is closed; a reader that skips this takes damaged counters
//!   for valid ones. Later additions, which older readers skip: records of kinds 24
//!   to 28 (such a reader counts from the start of the run, whatever was reset).

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::block_file::{BlockHeader, FileFormat, damaged_header};
use crate::byte_fields::{array_at, put_bytes, u32_at, u64_at};
use crate::error::OpenError;
use crate::run_id::RunId;

/// The version that this crate writes, and the newest version that it reads.
pub const FORMAT_VERSION: u16 = 4;
/// The first bytes of every log.
pub const MAGIC: [u8; 8] = *b"LUCCELOG";

const FORMAT: FileFormat = FileFormat {
    magic: MAGIC,
    version: FORMAT_VERSION,
    header_bytes: FILE_HEADER as usize,
    checksum_at: 60,
    description: "a lucce log",
};

pub(crate) const FILE_HEADER: u64 = 64;
pub(crate) const BLOCK_HEADER: u64 = 64;
pub(crate) const ALIGN: u64 = 64;
pub(crate) const CELL: u64 = 24;
pub(crate) const EVENT_CELL: u64 = 32;
pub(crate) const TOTAL: u64 = 64;
pub(crate) const TOTAL_KEY: u64 = 56;
pub(crate) const VM_CELL: u64 = 24;
pub(crate) const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"LBLK");
pub(crate) const RECORDS: u8 = 1;
pub(crate) const COUNTERS: u8 = 2;
pub(crate) const EVENT_COUNTERS: u8 = 3;
pub(crate) const TOTALS: u8 = 4;
pub(crate) const VM_COUNTERS: u8 = 5;

pub(crate) const AT_COMMITTED: u64 = 24;
pub(crate) const AT_CRC: u64 = 32;
pub(crate) const AT_SEALED: u64 = 36;

/// The content of the file header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogHeader {
    /// How the bits of a context id are divided.
    pub version_bits: u8,
    pub anchor_bits: u8,
    pub call_bits: u8,
    pub pid: u32,
    /// Nanoseconds since 1970.
    pub start: u64,
    /// `None`: a log from before version 3.
    pub run: Option<RunId>,
}

impl LogHeader {
    pub(crate) fn encode(&self) -> [u8; FILE_HEADER as usize] {
        let mut bytes = [0; FILE_HEADER as usize];
        put_bytes(
            &mut bytes,
            10,
            &[self.version_bits, self.anchor_bits, self.call_bits],
        );
        put_bytes(&mut bytes, 16, &self.pid.to_le_bytes());
        put_bytes(&mut bytes, 24, &self.start.to_le_bytes());
        let run = self.run.map_or(0, RunId::bits);
        put_bytes(&mut bytes, 32, &run.to_le_bytes());
        FORMAT.seal_header(&mut bytes);
        bytes
    }

    /// Reads the header at the file's begin; the read position does not change.
    ///
    /// # Errors
    /// The file cannot be read or is shorter than a header; else as [`LogHeader::decode`].
    pub fn read_from(file: &File) -> Result<Self, OpenError> {
        let mut bytes = [0; FILE_HEADER as usize];
        file.read_exact_at(&mut bytes, 0)?;
        LogHeader::decode(&bytes)
    }

    /// Decodes the first 64 bytes of a log.
    ///
    /// # Errors
    /// The bytes are no log, a log of a newer version, or damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, OpenError> {
        let bytes = FORMAT.check_header(bytes)?;
        let [version_bits, anchor_bits, call_bits] =
            array_at(bytes, 10).ok_or_else(damaged_header)?;
        Ok(LogHeader {
            version_bits,
            anchor_bits,
            call_bits,
            pid: u32_at(bytes, 16).ok_or_else(damaged_header)?,
            start: u64_at(bytes, 24).ok_or_else(damaged_header)?,
            run: RunId::new(u64_at(bytes, 32).ok_or_else(damaged_header)?),
        })
    }
}

/// The part of a block header that never changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LogBlockHead {
    pub kind: u8,
    pub capacity: u32,
    pub thread: u32,
    pub cells: u32,
}

impl LogBlockHead {
    /// Returns bytes 4..24: everything but the magic.
    pub fn encode(&self) -> [u8; 20] {
        let header = BlockHeader {
            kind: self.kind,
            flags: 0,
            fields: [self.capacity, self.thread, self.cells],
        };
        let mut bytes = [0; BlockHeader::<3>::BYTES];
        header.encode(&mut bytes, &[]);
        bytes
    }

    /// `None`: the checksum is wrong.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if !BlockHeader::<3>::is_intact(bytes, &[]) {
            return None;
        }
        let header = BlockHeader::parse(bytes)?;
        let [capacity, thread, cells] = header.fields;
        Some(LogBlockHead {
            kind: header.kind,
            capacity,
            thread,
            cells,
        })
    }
}

/// Returns the number of bytes of a counters block that are whole counters.
pub(crate) fn cells_size(head: LogBlockHead) -> u64 {
    let each = match head.kind {
        COUNTERS => CELL,
        TOTALS => TOTAL,
        VM_COUNTERS => VM_CELL,
        _ => EVENT_CELL,
    };
    u64::from(head.cells) * each
}

/// Removes the seal from a block's header.
pub(crate) fn unseal_header(header: &mut [u8]) {
    let seal = AT_CRC as usize..AT_SEALED as usize + 4;
    if let Some(seal) = header.get_mut(seal) {
        seal.fill(0);
    }
}
