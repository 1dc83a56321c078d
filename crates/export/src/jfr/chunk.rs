//! The bytes of a chunk. Numbers are LEB128 of at most nine bytes, the last of which has eight bits.
//!
//! | offset in the header | field | meaning |
//! |---|---|---|
//! | 0 | `FLR\0` | |
//! | 4 | u16 2, u16 1 | version |
//! | 8 | u64 | size of the chunk |
//! | 16 | u64 | offset of the pools |
//! | 24 | u64 | offset of the metadata |
//! | 32 | u64 | start, nanoseconds since 1970 |
//! | 40 | u64 | duration in nanoseconds |
//! | 48 | u64 | ticks at the start; a tick here is a nanosecond since the run's start |
//! | 56 | u64 | ticks per second |
//! | 64 | u32 | 1: numbers are compressed |

use std::io::{self, Write};
use std::ops::Range;

const HEADER: u64 = 68;

#[derive(Default)]
pub struct JfrChunk {
    pub events: JfrBuffer,
    pub pools: JfrBuffer,
    pub metadata: JfrBuffer,
}

#[derive(Default)]
pub struct JfrBuffer(Vec<u8>);

impl JfrChunk {
    pub fn write_chunk(self, start: u64, ticks: Range<u64>, out: &mut dyn Write) -> io::Result<()> {
        let pools = HEADER + self.events.len() as u64;
        let metadata = pools + self.pools.len() as u64;
        let size = metadata + self.metadata.len() as u64;
        out.write_all(b"FLR\0\0\x02\0\x01")?;
        let lasted = ticks.end.saturating_sub(ticks.start).max(1);
        for number in [
            size,
            pools,
            metadata,
            start,
            lasted,
            ticks.start,
            1_000_000_000,
        ] {
            out.write_all(&number.to_be_bytes())?;
        }
        out.write_all(&1_u32.to_be_bytes())?;
        [self.events, self.pools, self.metadata]
            .iter()
            .try_for_each(|bytes| out.write_all(&bytes.0))
    }
}

impl JfrBuffer {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn push_number(&mut self, mut number: u64) {
        for _ in 0..8 {
            if number < 0x80 {
                break;
            }
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub fn push_byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// Appends a text in place: 1 is an empty one, 3 is UTF-8.
    pub fn push_text(&mut self, text: &str) {
        if text.is_empty() {
            return self.push_byte(1);
        }
        self.push_byte(3);
        self.push_number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Appends an unknown text.
    pub fn push_null_text(&mut self) {
        self.push_byte(0);
    }

    /// Appends `bytes` with their size in front, which counts itself.
    pub fn push_sized(&mut self, bytes: &JfrBuffer) {
        let length = |size: u64| (1..9).find(|bytes| size >> (7 * bytes) == 0).unwrap_or(9);
        let mut size = bytes.0.len() as u64 + 1;
        while size != bytes.0.len() as u64 + length(size) {
            size = bytes.0.len() as u64 + length(size);
        }
        self.push_number(size);
        self.push_buffer(bytes);
    }

    pub fn push_buffer(&mut self, bytes: &JfrBuffer) {
        self.0.extend_from_slice(&bytes.0);
    }
}

#[cfg(test)]
mod chunk_tests {
    use super::*;

    #[test]
    fn numbers_have_nine_bytes_at_most() {
        let bytes = |number| {
            let mut bytes = JfrBuffer::default();
            bytes.push_number(number);
            bytes.0
        };
        assert_eq!(bytes(0), [0]);
        assert_eq!(bytes(0x7f), [0x7f]);
        assert_eq!(bytes(0x80), [0x80, 1]);
        assert_eq!(bytes(u64::MAX), [0xff; 9]);
    }

    #[test]
    fn sizes_count_themselves() {
        for (length, size) in [
            (0, 1),
            (126, 127),
            (127, 129),
            (16_381, 16_383),
            (16_382, 16_385),
        ] {
            let mut bytes = JfrBuffer::default();
            bytes.push_sized(&JfrBuffer(vec![0; length]));
            assert_eq!(bytes.len(), size, "{length}");
        }
    }
}
