//! gzip (RFC 1952) of what is written, as it is written.

use std::io::{self, Write};

use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;
use miniz_oxide::{MZFlush, MZStatus};

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
}
