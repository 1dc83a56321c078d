//! Compresses a stream by gzip (RFC 1952), and decompresses it.

use std::io::{self, Read, Write};

use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

/// Deflate, no name, no time: equal input gives equal output.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];
const BEST: i32 = 9;
/// The value for zlib: raw data without its own header.
const RAW: i32 = -15;

/// Compresses everything that is written to it.
pub struct GzipWriter<W> {
    out: W,
    state: Box<CompressorOxide>,
    sum: crc32fast::Hasher,
    size: u64,
    input: Vec<u8>,
    output: Vec<u8>,
}

const BLOCK: usize = 64 << 10;

impl<W: Write> GzipWriter<W> {
    /// Writes the header to `out`.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&HEAD)?;
        Ok(GzipWriter {
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
    /// Errors of the output.
    pub fn finish(mut self) -> io::Result<()> {
        self.compress_input(MZFlush::Finish)?;
        let sum = self.sum.finalize();
        self.out.write_all(&sum.to_le_bytes())?;
        // The size modulo 2^32, as the format requires.
        self.out.write_all(&(self.size as u32).to_le_bytes())?;
        self.out.flush()
    }

    fn compress_input(&mut self, flush: MZFlush) -> io::Result<()> {
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

impl<W: Write> Write for GzipWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sum.update(bytes);
        self.size += bytes.len() as u64;
        self.input.extend_from_slice(bytes);
        if self.input.len() >= BLOCK {
            self.compress_input(MZFlush::None)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Maximum sizes of an unpacked file in bytes; larger content is damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnpackLimits {
    /// Of all bytes.
    pub bytes: u64,
    /// Of all bytes except runs of zeros, which need no memory.
    pub content: u64,
}

/// Unpacks the first member of a gzip file while it is read, in constant memory.
///
/// An error of kind [`InvalidData`](io::ErrorKind::InvalidData) is damage; everything before it was read.
pub struct GzipReader<R> {
    input: R,
    /// Input that was read and not unpacked yet: `buffer[at..]`.
    buffer: Vec<u8>,
    at: usize,
    state: Box<InflateState>,
    part: GzipPart,
    sum: crc32fast::Hasher,
    bytes: u64,
    content: u64,
    limits: UnpackLimits,
}

/// The position of a reader in a gzip file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GzipPart {
    Header,
    Body,
    Trailer,
    End,
}

impl<R: Read> GzipReader<R> {
    pub fn new(input: R, limits: UnpackLimits) -> Self {
        GzipReader {
            input,
            buffer: Vec::new(),
            at: 0,
            state: InflateState::new_boxed(DataFormat::Raw),
            part: GzipPart::Header,
            sum: crc32fast::Hasher::new(),
            bytes: 0,
            content: 0,
            limits,
        }
    }

    /// Returns the input that was read and not unpacked yet.
    fn unread_input(&self) -> &[u8] {
        self.buffer.get(self.at..).unwrap_or_default()
    }

    /// Reads more input. `false`: there is no more.
    fn fill_buffer(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let before = self.buffer.len();
        let mut more = (&mut self.input).take(BLOCK as u64);
        Ok(more.read_to_end(&mut self.buffer)? > 0 || self.buffer.len() > before)
    }

    fn read_header(&mut self) -> io::Result<()> {
        // A header has a text of at most 64 KB, and two names.
        while header_length(self.unread_input()).is_none()
            && self.unread_input().len() < 4 * BLOCK
            && self.fill_buffer()?
        {}
        self.at = header_length(self.unread_input())
            .ok_or_else(|| damage_error("a head that gzip does not write"))?;
        self.part = GzipPart::Body;
        Ok(())
    }

    /// Reads some bytes; 0: the body has ended.
    fn read_body(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let rest = self.buffer.get(self.at..).unwrap_or_default();
            let result = inflate(&mut self.state, rest, to, MZFlush::None);
            self.at += result.bytes_consumed;
            match result.status {
                Ok(MZStatus::StreamEnd) => self.part = GzipPart::Trailer,
                Ok(_) | Err(MZError::Buf) => {}
                Err(_) => return Err(damage_error("the packed file is damaged")),
            }
            if result.bytes_written > 0 || self.part == GzipPart::Trailer {
                let written = to.get(..result.bytes_written).unwrap_or_default();
                self.count_output(written)?;
                return Ok(written.len());
            }
            if self.unread_input().is_empty() {
                if !self.fill_buffer()? {
                    return Err(damage_error("the packed file ends too early"));
                }
            } else if result.bytes_consumed == 0 {
                return Err(damage_error("the packed file is damaged"));
            }
        }
    }

    fn count_output(&mut self, written: &[u8]) -> io::Result<()> {
        const RUN: usize = 64;
        self.sum.update(written);
        self.bytes += written.len() as u64;
        let content = written
            .chunks(RUN)
            .filter(|run| run.iter().any(|byte| *byte != 0));
        self.content += content.map(|run| run.len() as u64).sum::<u64>();
        let UnpackLimits { bytes, content } = self.limits;
        if self.bytes > bytes || self.content > content {
            let limit = match self.content > content {
                true => format!("{content} bytes of content"),
                false => format!("{bytes} bytes"),
            };
            return Err(damage_error(format!(
                "the packed file becomes more than {limit}, which is more than a log of its size has; \
                 if it is one, unpack it with gunzip and name the result"
            )));
        }
        Ok(())
    }

    fn read_trailer(&mut self) -> io::Result<()> {
        const TAIL: usize = 8;
        while self.unread_input().len() < TAIL && self.fill_buffer()? {}
        let sum = self.sum.clone().finalize().to_le_bytes();
        // The size modulo 2^32, as the format requires.
        let size = (self.bytes as u32).to_le_bytes();
        self.part = GzipPart::End;
        match self.unread_input().get(..TAIL) == Some([sum, size].as_flattened()) {
            true => Ok(()),
            false => Err(damage_error("the packed file's checksum is wrong")),
        }
    }
}

impl<R: Read> Read for GzipReader<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        loop {
            match self.part {
                GzipPart::Header => self.read_header()?,
                GzipPart::Body => match self.read_body(to)? {
                    0 => {}
                    read => return Ok(read),
                },
                GzipPart::Trailer => self.read_trailer()?,
                GzipPart::End => return Ok(0),
            }
        }
    }
}

fn damage_error(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

#[must_use]
pub fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b, 8])
}

/// Returns the length of the header: ten bytes and the fields of its flags. `None`: it is incomplete or no header.
fn header_length(bytes: &[u8]) -> Option<usize> {
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
    at += if flags & SUM != 0 { 2 } else { 0 };
    (at <= bytes.len()).then_some(at)
}

#[cfg(test)]
mod gzip_tests {
    use super::*;

    /// In any portions.
    #[test]
    fn what_is_packed_is_what_was_written() {
        for (size, portion) in [(0, 1), (5, 2), (300_000, 7), (300_000, 100_000)] {
            let bytes: Vec<u8> = (0..size)
                .map(|i: u32| (i.wrapping_mul(i) >> 7) as u8)
                .collect();
            let mut packed = Vec::new();
            let mut gzip = GzipWriter::new(&mut packed).unwrap();
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
        let mut gzip = GzipWriter::new(&mut packed).unwrap();
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap();
        packed
    }

    fn text() -> Vec<u8> {
        let lines = (0..20_000).map(|i| format!("line {i}\n"));
        lines.collect::<String>().into_bytes()
    }

    fn limits(bytes: u64, content: u64) -> UnpackLimits {
        UnpackLimits { bytes, content }
    }

    /// Returns the unpacked bytes, and the error behind them.
    fn unpacked(packed: &[u8], limits: UnpackLimits) -> (Vec<u8>, Option<String>) {
        let mut bytes = Vec::new();
        let read = GzipReader::new(packed, limits).read_to_end(&mut bytes);
        let damage = read.err().map(|error| {
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            error.to_string()
        });
        (bytes, damage)
    }

    const ALL: UnpackLimits = UnpackLimits {
        bytes: u64::MAX,
        content: u64::MAX,
    };

    #[test]
    fn what_was_packed_is_unpacked() {
        for bytes in [Vec::new(), b"x".to_vec(), text()] {
            assert_eq!(unpacked(&packed(&bytes), ALL), (bytes, None));
        }
    }

    #[test]
    fn names_and_comments_of_other_writers_are_passed_over() {
        let plain = packed(b"text");
        let mut named = plain[..10].to_vec();
        named[3] = 2 | 4 | 8 | 16;
        named.extend(b"\x03\x00ext\x61.log\0a comment\0\x12\x34");
        named.extend(&plain[10..]);
        assert_eq!(unpacked(&named, ALL), (b"text".to_vec(), None));
    }

    #[test]
    fn any_cut_and_any_flipped_byte_is_noticed_or_harmless() {
        let text = text();
        let whole = packed(&text);
        for at in (0..20).chain((20..whole.len()).step_by(97)) {
            let (cut, damage) = unpacked(&whole[..at], ALL);
            assert!(damage.is_some() && text.starts_with(&cut));
            let mut flipped = whole.clone();
            flipped[at] ^= 0x41;
            let (bytes, damage) = unpacked(&flipped, limits(1 << 20, 1 << 20));
            assert!(damage.is_some() || bytes == text, "{at}");
        }
    }

    #[test]
    fn no_more_is_unpacked_than_the_limit() {
        let of = |byte: u8| packed(&vec![byte; 10 << 20]);
        let [zeros, ones] = [of(0), of(1)];
        assert!(zeros.len() < 20_000 && ones.len() < 20_000);
        let mega = 1 << 20;
        for (bomb, limits, message) in [
            (
                &zeros,
                limits(mega, u64::MAX),
                Some("more than 1048576 bytes,"),
            ),
            (&zeros, limits(u64::MAX, 0), None),
            (
                &ones,
                limits(u64::MAX, mega),
                Some("more than 1048576 bytes of content"),
            ),
            (&ones, ALL, None),
        ] {
            let (bytes, damage) = unpacked(bomb, limits);
            match message {
                None => assert_eq!((bytes.len(), damage), (10 << 20, None)),
                Some(message) => {
                    // The earlier content is present, and at most one buffer beyond it.
                    assert!(bytes.len() < 2 << 20, "{}", bytes.len());
                    assert!(damage.unwrap().contains(message));
                }
            }
        }
    }
}
