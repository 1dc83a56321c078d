//! What the log, the stream of events and the recording of calls have in common: a file header with magic, version and
//! checksum, and block headers and contents with checksums.
//!
//! ```text
//! file header   +0 magic, 8 bytes   +8 u16 version   … fields …   u32 CRC32 of all bytes before it
//! block header  … fields …          u32 CRC32 of the fields
//! content       its CRC32 is a field of the block header
//! ```
//! Everything is little-endian. Each format has its own fields and its own position of the checksums.

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
        put_checksum(header, self.checksum_at);
    }

    /// Returns the header at the begin of a file.
    ///
    /// # Errors
    /// The bytes are of another kind of file or of a newer version, or the header is damaged.
    pub fn check_header<'b>(&self, bytes: &'b [u8]) -> Result<&'b [u8], OpenError> {
        let header = header_bytes(bytes, &self.magic, self.header_bytes, self.description)?;
        if !has_checksum(header, self.checksum_at) {
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

/// A file header whose checksum is wrong, or that lacks a field.
#[cold]
#[must_use]
pub fn damaged_header() -> OpenError {
    OpenError::Damaged(LogDamage::at_offset(0, "file header: wrong checksum"))
}

/// Writes the checksum of all bytes before `at`. If `bytes` is too short, it stays unchanged.
pub fn put_checksum(bytes: &mut [u8], at: usize) {
    let checksum = bytes.get(..at).map(content_checksum);
    if let Some(checksum) = checksum {
        put_bytes(bytes, at, &checksum.to_le_bytes());
    }
}

/// Whether the checksum at `at` is that of all bytes before it.
#[must_use]
pub fn has_checksum(bytes: &[u8], at: usize) -> bool {
    let checksum = bytes.get(..at).map(content_checksum);
    checksum.is_some() && checksum == u32_at(bytes, at)
}

/// Returns the checksum of a block's content, or of all parts that one checksum covers.
#[must_use]
pub fn content_checksum(content: &[u8]) -> u32 {
    crc32fast::hash(content)
}

/// Returns the checksum of two parts that follow each other.
#[must_use]
pub fn joint_checksum(first: &[u8], second: &[u8]) -> u32 {
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
    fn short_bytes_have_no_checksum() {
        let mut short = [1, 2, 3];
        put_checksum(&mut short, 2);
        assert_eq!(short, [1, 2, 3]);
        assert!(!has_checksum(&short, 2) && !has_checksum(&short, 9));
        assert_eq!(joint_checksum(b"ab", b"c"), content_checksum(b"abc"));
    }
}
