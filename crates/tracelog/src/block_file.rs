//! What the log, the stream of events and the recording of calls have in common: a file header with magic, version and
//! checksum, and block headers and contents with checksums.
//!
//! ```text
//! file header   +0 magic, 8 bytes   +8 u16 version   … fields …   u32 CRC32 of all bytes before it
//! block header  +0 u8 kind   +1 u8 flags   +2 u16 0   +4 fields, u32 each   u32 CRC32 of all bytes before it
//! content       the bytes of the block
//! ```
//! Everything is little-endian. Each format has its own fields. Two things differ by necessity:
//!
//! * Blocks of log and stream grow in a mapped file. A magic word before the header is stored last, so that a block exists whole
//!   or not at all. Words behind the header say how far the block is filled, and have the content's checksum once it is full.
//! * Blocks of a recording are written whole. They need neither, and the header's checksum covers the content as well.

use crate::byte_fields::{array_at, put_bytes, u32_at};
use crate::error::{LogDamage, OpenError, header_bytes};

/// The file header of a format.
#[derive(Clone, Copy, Debug)]
pub struct FileFormat {
    pub magic: [u8; 8],
    /// The version that is written, and the newest version that is read.
    pub version: u16,
    /// Size of the header in bytes.
    pub header_bytes: usize,
    /// Offset of the header's checksum, which covers all bytes before it.
    pub checksum_at: usize,
    /// For messages, such as "a lucce log".
    pub description: &'static str,
}

/// Offset of the version in a file header.
const AT_VERSION: usize = 8;

impl FileFormat {
    /// Writes magic, version and checksum into a header that has all other fields.
    pub fn seal_header(&self, header: &mut [u8]) {
        put_bytes(header, 0, &self.magic);
        put_bytes(header, AT_VERSION, &self.version.to_le_bytes());
        put_checksum(header, self.checksum_at, &[]);
    }

    /// Returns the header at the begin of a file.
    ///
    /// # Errors
    /// The bytes are of another kind of file or of a newer version, or the header is damaged.
    pub fn check_header<'b>(&self, bytes: &'b [u8]) -> Result<&'b [u8], OpenError> {
        let header = header_bytes(bytes, &self.magic, self.header_bytes, self.description)?;
        if !has_checksum(header, self.checksum_at, &[]) {
            return Err(damaged_header());
        }
        let version = array_at(header, AT_VERSION).ok_or_else(damaged_header)?;
        match u16::from_le_bytes(version) {
            version if version > self.version => Err(OpenError::Newer {
                version,
                known: self.version,
            }),
            _ => Ok(header),
        }
    }
}

/// The header of a block: see the module's description. `FIELDS`: the number of fields, which the format names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHeader<const FIELDS: usize> {
    pub kind: u8,
    pub flags: u8,
    pub fields: [u32; FIELDS],
}

impl<const FIELDS: usize> BlockHeader<FIELDS> {
    const FIELDS_AT: usize = 4;
    const CHECKSUM_AT: usize = Self::FIELDS_AT + 4 * FIELDS;
    /// Size of the header in bytes, with its checksum.
    pub const BYTES: usize = Self::CHECKSUM_AT + 4;

    /// Writes the header into [`Self::BYTES`] bytes. `content`: what the checksum covers as well; empty for log and stream.
    pub fn encode(&self, bytes: &mut [u8], content: &[u8]) {
        put_bytes(bytes, 0, &[self.kind, self.flags, 0, 0]);
        for (index, field) in self.fields.iter().enumerate() {
            put_bytes(bytes, Self::FIELDS_AT + 4 * index, &field.to_le_bytes());
        }
        put_checksum(bytes, Self::CHECKSUM_AT, content);
    }

    /// Reads the header; its checksum may be wrong. `None`: `bytes` is too short.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..Self::BYTES)?;
        let mut fields = [0; FIELDS];
        for (index, field) in fields.iter_mut().enumerate() {
            *field = u32_at(bytes, Self::FIELDS_AT + 4 * index)?;
        }
        let [kind, flags] = array_at(bytes, 0)?;
        Some(BlockHeader {
            kind,
            flags,
            fields,
        })
    }

    /// Whether the bytes begin with a header whose checksum is right. `content`: as for [`Self::encode`].
    #[must_use]
    pub fn is_intact(bytes: &[u8], content: &[u8]) -> bool {
        has_checksum(bytes, Self::CHECKSUM_AT, content)
    }
}

/// Splits a field of 64 bits into two of a [`BlockHeader`].
#[must_use]
pub fn split_field(long: u64) -> [u32; 2] {
    [long as u32, (long >> 32) as u32]
}

/// Joins two fields that [`split_field`] made.
#[must_use]
pub fn join_fields([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// A file header whose checksum is wrong, or that lacks a field.
#[cold]
#[must_use]
pub fn damaged_header() -> OpenError {
    OpenError::Damaged(LogDamage::at_offset(0, "file header: wrong checksum"))
}

/// Writes the checksum of all bytes before `at` and of `content`. If `bytes` is too short, it stays unchanged.
fn put_checksum(bytes: &mut [u8], at: usize, content: &[u8]) {
    let before = bytes.get(..at);
    if let Some(checksum) = before.map(|before| joint_checksum(before, content)) {
        put_bytes(bytes, at, &checksum.to_le_bytes());
    }
}

/// Whether the checksum at `at` is that of all bytes before it and of `content`.
fn has_checksum(bytes: &[u8], at: usize, content: &[u8]) -> bool {
    let before = bytes.get(..at);
    let checksum = before.map(|before| joint_checksum(before, content));
    checksum.is_some() && checksum == u32_at(bytes, at)
}

/// Returns the checksum of a block's content, or of all parts that one checksum covers.
#[must_use]
pub fn content_checksum(content: &[u8]) -> u32 {
    crc32fast::hash(content)
}

/// Returns the checksum of two parts that follow each other.
fn joint_checksum(first: &[u8], second: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(first);
    sum.update(second);
    sum.finalize()
}

#[cfg(test)]
mod block_file_tests {
    use super::*;

    const FORMAT: FileFormat = FileFormat {
        magic: *b"LUCCETST",
        version: 3,
        header_bytes: 24,
        checksum_at: 16,
        description: "a test",
    };

    fn header() -> [u8; 24] {
        let mut header = [7; 24];
        FORMAT.seal_header(&mut header);
        header
    }

    #[test]
    fn each_changed_byte_of_the_checked_part_is_refused() {
        assert!(FORMAT.check_header(&header()).is_ok());
        for at in 0..20 {
            let mut damaged = header();
            damaged[at] ^= 1;
            assert!(FORMAT.check_header(&damaged).is_err(), "byte {at}");
        }
        let mut unchecked = header();
        unchecked[23] ^= 1;
        assert!(FORMAT.check_header(&unchecked).is_ok());
    }

    #[test]
    fn older_versions_are_read_and_newer_ones_refused() {
        let with_version = |version| {
            let mut header = header();
            FileFormat { version, ..FORMAT }.seal_header(&mut header);
            FORMAT.check_header(&header).map(|_| ())
        };
        assert!(with_version(1).is_ok());
        let newer = with_version(4);
        assert!(matches!(
            newer,
            Err(OpenError::Newer {
                version: 4,
                known: 3
            })
        ));
    }

    #[test]
    fn a_block_header_is_read_as_it_was_written() {
        let [low, high] = split_field(0x0102_0304_0506_0708);
        let header = BlockHeader {
            kind: 2,
            flags: 1,
            fields: [64, low, high],
        };
        let mut bytes = [0xff; BlockHeader::<3>::BYTES + 1];
        header.encode(&mut bytes, b"content");
        let (written, behind) = bytes.split_at(BlockHeader::<3>::BYTES);
        // Written by hand: kind, flags, two zeros, then the fields with the lowest byte first.
        assert_eq!(
            written.get(..16).unwrap(),
            [2, 1, 0, 0, 64, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1]
        );
        assert_eq!(behind, [0xff]);
        assert_eq!(BlockHeader::parse(&bytes), Some(header));
        assert_eq!(join_fields([low, high]), 0x0102_0304_0506_0708);
        assert!(BlockHeader::<3>::is_intact(&bytes, b"content"));
        assert!(!BlockHeader::<3>::is_intact(&bytes, b"contents"));
        for at in 0..BlockHeader::<3>::BYTES {
            let mut damaged = bytes;
            damaged[at] ^= 1;
            assert!(
                !BlockHeader::<3>::is_intact(&damaged, b"content"),
                "byte {at}"
            );
        }
        assert_eq!(BlockHeader::<3>::parse(&bytes[..19]), None);
        assert!(!BlockHeader::<3>::is_intact(&bytes[..19], b"content"));
    }

    #[test]
    fn short_bytes_have_no_checksum() {
        let mut short = [1, 2, 3];
        put_checksum(&mut short, 2, &[]);
        assert_eq!(short, [1, 2, 3]);
        assert!(!has_checksum(&short, 2, &[]) && !has_checksum(&short, 9, &[]));
        assert_eq!(joint_checksum(b"ab", b"c"), content_checksum(b"abc"));
    }
}
