//! The file: a header, then blocks. All numbers are little-endian.
//!
//! ```text
//! file header   magic "LUCCECAL" · u16 version · u16 0 · u32 crc of what precedes it
//! block         u8 kind · u8 0 · u16 0 · u32 thread · u64 nanoseconds since the recording began
//!               · u32 unpacked length · u32 packed length · u32 crc · packed bytes
//! ```
//! The checksum covers the block's header before it and the packed bytes. Packing is raw deflate.
//!
//! | kind | block | unpacked bytes |
//! |---|---|---|
//! | 1 | names | the log's records: classes, methods, sites |
//! | 2 | edges | n site, n caller, n callee, repeated; edges are counted from 0 over the file |
//! | 3 | start | n 0 or parent thread + 1, n the parent's position, UTF-8 name to the end |
//! | 4 | calls | tokens, see `token.rs` |
//! | 5 | cut | empty: the limit was reached, every thread ends here too early |
//! | 6 | end | empty: the program ended and everything is in the file |
//!
//! `n` is LEB128. A site always has the same caller. Edges precede the blocks that use them, a thread's start precedes its calls, and
//! what the parent did before it precedes the start. After a cut or an end nothing follows.

use lucce_tracelog::OpenError;
use lucce_tracelog::block_file::{FileFormat, joint_checksum};
use lucce_tracelog::byte_fields::u32_at;

/// 2026-11: first version.
pub const FORMAT_VERSION: u16 = 1;
pub const MAGIC: [u8; 8] = *b"LUCCECAL";

const FORMAT: FileFormat = FileFormat {
    magic: MAGIC,
    version: FORMAT_VERSION,
    header_bytes: FILE_HEADER,
    checksum_at: FILE_HEADER - 4,
    description: "a recording of calls",
};

pub(crate) const FILE_HEADER: usize = 16;
pub(crate) const BLOCK_HEADER: usize = 28;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecordingBlockKind {
    Names = 1,
    Edges = 2,
    Start = 3,
    Calls = 4,
    Cut = 5,
    End = 6,
}

impl RecordingBlockKind {
    fn from_byte(byte: u8) -> Option<RecordingBlockKind> {
        [
            RecordingBlockKind::Names,
            RecordingBlockKind::Edges,
            RecordingBlockKind::Start,
            RecordingBlockKind::Calls,
            RecordingBlockKind::Cut,
            RecordingBlockKind::End,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

/// A block's header without its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RecordingBlockHead {
    pub kind: RecordingBlockKind,
    pub thread: u32,
    pub nanos: u64,
    pub unpacked: u32,
    pub packed: u32,
}

impl RecordingBlockHead {
    /// The whole block: header, checksum, bytes.
    pub fn encode_block(&self, packed: &[u8]) -> Vec<u8> {
        let mut bytes = vec![self.kind as u8, 0, 0, 0];
        bytes.extend_from_slice(&self.thread.to_le_bytes());
        bytes.extend_from_slice(&self.nanos.to_le_bytes());
        bytes.extend_from_slice(&self.unpacked.to_le_bytes());
        bytes.extend_from_slice(&self.packed.to_le_bytes());
        bytes.extend_from_slice(&joint_checksum(&bytes, packed).to_le_bytes());
        bytes.extend_from_slice(packed);
        bytes
    }

    /// The first block of `bytes`, its packed bytes and what follows it.
    ///
    /// # Errors
    /// Why there is none.
    pub fn split_block(bytes: &[u8]) -> Result<(RecordingBlockHead, &[u8], &[u8]), &'static str> {
        let (header, rest) = bytes
            .split_at_checked(BLOCK_HEADER)
            .ok_or("a block's header ends early")?;
        let (fields, sum) = header.split_at(BLOCK_HEADER - 4);
        let head = RecordingBlockHead::parse_fields(fields).ok_or("no such kind of block")?;
        let (packed, rest) = rest
            .split_at_checked(head.packed as usize)
            .ok_or("a block ends early")?;
        match sum == joint_checksum(fields, packed).to_le_bytes() {
            true => Ok((head, packed, rest)),
            false => Err("a block's checksum is wrong"),
        }
    }

    fn parse_fields(fields: &[u8]) -> Option<RecordingBlockHead> {
        let (kind, rest) = fields.split_first()?;
        let rest = rest.get(3..)?;
        Some(RecordingBlockHead {
            kind: RecordingBlockKind::from_byte(*kind)?,
            thread: u32_at(rest, 0)?,
            nanos: u64::from(u32_at(rest, 4)?) | u64::from(u32_at(rest, 8)?) << 32,
            unpacked: u32_at(rest, 12)?,
            packed: u32_at(rest, 16)?,
        })
    }
}

pub(crate) fn file_header() -> [u8; FILE_HEADER] {
    let mut bytes = [0; FILE_HEADER];
    FORMAT.seal_header(&mut bytes);
    bytes
}

pub(crate) fn check_file_header(bytes: &[u8]) -> Result<(), OpenError> {
    FORMAT.check_header(bytes).map(|_| ())
}
