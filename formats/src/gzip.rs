//! gzip (RFC 1952) of what is written, as it is written; and back.

use std::io::{self, Write};

use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

/// Deflate, no name, no time: equal input is equal output.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];
const BEST: i32 = 9;
/// zlib's: raw data without its own head.
const RAW: i32 = -15;

pub struct Gzip<W> {
    out: W,
    state: Box<CompressorOxide>,
    sum: crc32fast::Hasher,
    size: u64,
    input: Vec<u8>,
    output: Vec<u8>,
}

const BLOCK: usize = 64 << 10;

impl<W: Write> Gzip<W> {
    /// # Errors
    /// The output's.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&HEAD)?;
        Ok(Gzip {
            out,
            state: Box::new(CompressorOxide::new(create_comp_flags_from_zip_params(
                BEST, RAW, 0,
            ))),
            sum: crc32fast::Hasher::new(),
            size: 0,
            input: Vec::with_capacity(BLOCK),
            output: vec![0; BLOCK],
        })
    }

    /// Writes the end.
    ///
    /// # Errors
    /// The output's.
    pub fn finish(mut self) -> io::Result<()> {
        self.press(MZFlush::Finish)?;
        let sum = self.sum.finalize();
        self.out.write_all(&sum.to_le_bytes())?;
        // The size modulo 2^32, as the format has it.
        self.out.write_all(&(self.size as u32).to_le_bytes())?;
        self.out.flush()
    }

    fn press(&mut self, flush: MZFlush) -> io::Result<()> {
        let mut rest = self.input.as_slice();
        loop {
            let result = deflate(&mut self.state, rest, &mut self.output, flush);
            let status = result.status.map_err(|_| io::Error::other("deflate"))?;
            rest = rest.get(result.bytes_consumed..).unwrap_or_default();
            let written = self.output.get(..result.bytes_written);
            self.out.write_all(written.unwrap_or_default())?;
            let is_done = match flush {
                MZFlush::Finish => status == MZStatus::StreamEnd,
                _ => rest.is_empty(),
            };
            if is_done {
                break;
            }
        }
        self.input.clear();
        Ok(())
    }
}

impl<W: Write> Write for Gzip<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sum.update(bytes);
        self.size += bytes.len() as u64;
        self.input.extend_from_slice(bytes);
        if self.input.len() >= BLOCK {
            self.press(MZFlush::None)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What was unpacked, and what is wrong with the rest.
pub struct Unpacked {
    pub bytes: Vec<u8>,
    pub damage: Option<&'static str>,
}

#[must_use]
pub fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b, 8])
}

/// The first member of a gzip file, at most `limit` bytes of it. A file that is cut or damaged is unpacked as far as
/// possible.
#[must_use]
pub fn unpacked(bytes: &[u8], limit: usize) -> Unpacked {
    let Some(packed) = head_of(bytes).and_then(|head| bytes.get(head..)) else {
        return Unpacked {
            bytes: Vec::new(),
            damage: Some("a head that gzip does not write"),
        };
    };
    match inflated(packed, limit) {
        (bytes, Ok(read)) => {
            let tail = packed.get(read..).unwrap_or_default();
            let sum = crc32fast::hash(&bytes).to_le_bytes();
            let size = (bytes.len() as u32).to_le_bytes();
            let is_whole = tail.get(..8) == Some([sum, size].as_flattened());
            let damage = (!is_whole).then_some("the packed file's checksum is wrong");
            Unpacked { bytes, damage }
        }
        (bytes, Err(reason)) => Unpacked {
            bytes,
            damage: Some(reason),
        },
    }
}

/// What came out, and how much of the input that took.
fn inflated(packed: &[u8], limit: usize) -> (Vec<u8>, Result<usize, &'static str>) {
    let mut state = InflateState::new_boxed(DataFormat::Raw);
    let (mut bytes, mut block, mut read) = (Vec::new(), vec![0; BLOCK], 0);
    loop {
        let rest = packed.get(read..).unwrap_or_default();
        let result = inflate(&mut state, rest, &mut block, MZFlush::None);
        read += result.bytes_consumed;
        let more = block.get(..result.bytes_written).unwrap_or_default();
        if bytes.len() + more.len() > limit {
            return (bytes, Err("the packed file holds more than any log"));
        }
        bytes.extend_from_slice(more);
        match result.status {
            Ok(MZStatus::StreamEnd) => return (bytes, Ok(read)),
            Ok(_) if result.bytes_consumed + result.bytes_written > 0 => {}
            Err(MZError::Buf) | Ok(_) => return (bytes, Err("the packed file ends too early")),
            Err(_) => return (bytes, Err("the packed file is damaged")),
        }
    }
}

/// How long the head is: ten bytes, and what its flags add.
fn head_of(bytes: &[u8]) -> Option<usize> {
    const SUM: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    let flags = *bytes.get(3).filter(|_| is_gzip(bytes))?;
    let mut at = HEAD.len();
    if flags & EXTRA != 0 {
        let length = bytes.get(at..)?.first_chunk()?;
        at += 2 + usize::from(u16::from_le_bytes(*length));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            at += 1 + bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
        }
    }
    Some(at + if flags & SUM != 0 { 2 } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In whatever portions it was written.
    #[test]
    fn what_is_packed_is_what_was_written() {
        for (size, portion) in [(0, 1), (5, 2), (300_000, 7), (300_000, 100_000)] {
            let bytes: Vec<u8> = (0..size)
                .map(|i: u32| (i.wrapping_mul(i) >> 7) as u8)
                .collect();
            let mut packed = Vec::new();
            let mut gzip = Gzip::new(&mut packed).unwrap();
            for part in bytes.chunks(portion) {
                gzip.write_all(part).unwrap();
            }
            gzip.finish().unwrap();
            let (head, rest) = packed.split_at(HEAD.len());
            assert_eq!(head, HEAD);
            let (raw, tail) = rest.split_at(rest.len() - 8);
            let unpacked = miniz_oxide::inflate::decompress_to_vec(raw).unwrap();
            assert_eq!(unpacked, bytes);
            assert_eq!(tail[..4], crc32fast::hash(&bytes).to_le_bytes());
            assert_eq!(tail[4..], size.to_le_bytes());
        }
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        let mut gzip = Gzip::new(&mut packed).unwrap();
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap();
        packed
    }

    fn text() -> Vec<u8> {
        let lines = (0..20_000).map(|i| format!("line {i}\n"));
        lines.collect::<String>().into_bytes()
    }

    #[test]
    fn what_was_packed_is_unpacked() {
        for bytes in [Vec::new(), b"x".to_vec(), text()] {
            let unpacked = unpacked(&packed(&bytes), usize::MAX);
            assert!(unpacked.bytes == bytes && unpacked.damage.is_none());
        }
    }

    #[test]
    fn names_and_comments_of_other_writers_are_passed_over() {
        let plain = packed(b"text");
        let mut named = plain[..10].to_vec();
        named[3] = 2 | 4 | 8 | 16;
        named.extend(b"\x03\x00ext\x61.log\0a comment\0\x12\x34");
        named.extend(&plain[10..]);
        let unpacked = unpacked(&named, usize::MAX);
        assert_eq!(
            (unpacked.bytes.as_slice(), unpacked.damage),
            (&b"text"[..], None)
        );
    }

    #[test]
    fn any_cut_and_any_flipped_byte_is_noticed_or_harmless() {
        let text = text();
        let whole = packed(&text);
        for at in (0..whole.len()).step_by(97) {
            let cut = unpacked(&whole[..at], usize::MAX);
            assert!(cut.damage.is_some() && text.starts_with(&cut.bytes));
            let mut flipped = whole.clone();
            flipped[at] ^= 0x41;
            let unpacked = unpacked(&flipped, 1 << 20);
            assert!(unpacked.damage.is_some() || unpacked.bytes == text, "{at}");
        }
    }

    #[test]
    fn no_more_is_unpacked_than_the_limit() {
        let bomb = packed(&vec![0; 10 << 20]);
        assert!(bomb.len() < 20_000);
        let unpacked = unpacked(&bomb, 1 << 20);
        assert!(unpacked.bytes.len() <= 1 << 20 && unpacked.damage.is_some());
    }
}
