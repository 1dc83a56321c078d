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
use lucce_tracelog::block_file::{BlockHeader, FileFormat, join_fields, split_field};

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
pub(crate) const BLOCK_HEADER: usize = BlockHeader::<5>::BYTES;

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
        let [low, high] = split_field(self.nanos);
        let header = BlockHeader {
            kind: self.kind as u8,
            flags: 0,
            fields: [self.thread, low, high, self.unpacked, self.packed],
        };
        let mut bytes = vec![0; BLOCK_HEADER];
        header.encode(&mut bytes, packed);
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
        let head = RecordingBlockHead::parse(header).ok_or("no such kind of block")?;
        let (packed, rest) = rest
            .split_at_checked(head.packed as usize)
            .ok_or("a block ends early")?;
        match BlockHeader::<5>::is_intact(header, packed) {
            true => Ok((head, packed, rest)),
            false => Err("a block's checksum is wrong"),
        }
    }

    fn parse(header: &[u8]) -> Option<RecordingBlockHead> {
        let header = BlockHeader::parse(header)?;
        let [thread, low, high, unpacked, packed] = header.fields;
        Some(RecordingBlockHead {
            kind: RecordingBlockKind::from_byte(header.kind)?,
            thread,
            nanos: join_fields([low, high]),
            unpacked,
            packed,
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
