//! The protocol between sender and collector, and the collector's storage format: the parts of a generation.
//!
//! A generation holds what changed in a log since the previous generation, at one moment. It has one part or more:
//!
//! | at | size | part, little endian |
//! |---|---|---|
//! | 0 | 8 | magic `LUCCEGEN` |
//! | 8 | 2 | version of this format, 1 |
//! | 10 | 1 | 1: the last part; else 0 |
//! | 11 | 1 | zero |
//! | 12 | 4 | index of the part, from 0 |
//! | 16 | 8 | the log's run id |
//! | 24 | 8 | the generation's number, from 1: one more than the previous one |
//! | 32 | 8 | its token: chosen at random by the sender |
//! | 40 | 8 | the token of the generation that it changes; 0: it is the whole log |
//! | 48 | 8 | the log's size at that moment; only that of the last part is valid |
//! | 56 | | service, version, host: each a length (2 bytes) and UTF-8 |
//! | | | pieces: offset (8), length (4), bytes |
//! | -4 | 4 | CRC32 of everything before it |
//!
//! `POST /v1/logs/RUN` sends a part; RUN is 16 hexadecimal digits. A generation becomes valid as a whole, when its last
//! part was accepted. `GET /v1/logs/RUN` returns the last valid generation. Answers are lines of text, see
//! [`CollectorGeneration`].

use lucce_tracelog::RunId;
use lucce_tracelog::byte_fields::{array_at, u32_at, u64_at};

pub const VERSION: u16 = 1;
const MAGIC: [u8; 8] = *b"LUCCEGEN";
const LABELS_AT: usize = 56;
/// The largest part in bytes.
pub const MAX_PART_BYTES: usize = 1 << 20;
/// The largest number of parts of a generation.
pub const MAX_PARTS: u32 = 1 << 18;
/// The longest label in bytes.
pub const MAX_LABEL_BYTES: usize = 255;

/// The path for logs, without the run id.
pub const LOGS_PATH: &str = "/v1/logs/";

/// Labels of a run in the dataset.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RunLabels {
    pub service: String,
    pub version: String,
    pub host: String,
}

/// The header of a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartHeader {
    pub run: RunId,
    pub number: u64,
    pub token: u64,
    /// 0: none.
    pub base: u64,
    pub part: u32,
    pub last: bool,
    pub size: u64,
    pub labels: RunLabels,
}

/// The bytes of a part under construction.
pub struct PartBuilder {
    bytes: Vec<u8>,
}

impl PartBuilder {
    #[must_use]
    pub fn new(head: &PartHeader) -> Self {
        let mut writing = PartBuilder { bytes: Vec::new() };
        writing.start_part(head);
        writing
    }

    /// Starts another part in the same buffer.
    pub fn start_part(&mut self, head: &PartHeader) {
        let bytes = &mut self.bytes;
        bytes.clear();
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([u8::from(head.last), 0]);
        bytes.extend(head.part.to_le_bytes());
        for number in [
            head.run.bits(),
            head.number,
            head.token,
            head.base,
            head.size,
        ] {
            bytes.extend(number.to_le_bytes());
        }
        let RunLabels {
            service,
            version,
            host,
        } = &head.labels;
        for label in [service, version, host] {
            let label = truncate_label(label);
            bytes.extend((label.len() as u16).to_le_bytes());
            bytes.extend(label.as_bytes());
        }
    }

    /// Appends a piece: `piece` replaces the log's bytes at `offset`.
    pub fn push_piece(&mut self, offset: u64, piece: &[u8]) {
        self.bytes.extend(offset.to_le_bytes());
        self.bytes.extend((piece.len() as u32).to_le_bytes());
        self.bytes.extend(piece);
    }

    /// Returns the size so far in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Makes this the last part, of a log of `size` bytes.
    pub fn mark_last(&mut self, size: u64) {
        if let Some(last) = self.bytes.get_mut(10) {
            *last = 1;
        }
        if let Some(at) = self.bytes.get_mut(48..56) {
            at.copy_from_slice(&size.to_le_bytes());
        }
    }

    /// Returns the part as it is sent.
    pub fn finish_part(&mut self) -> &[u8] {
        let crc = crc32fast::hash(&self.bytes);
        self.bytes.extend(crc.to_le_bytes());
        &self.bytes
    }
}

/// Cuts a label to the maximum length.
fn truncate_label(label: &str) -> &str {
    let mut end = label.len().min(MAX_LABEL_BYTES);
    while !label.is_char_boundary(end) {
        end -= 1;
    }
    label.get(..end).unwrap_or(label)
}

/// A received part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GenerationPart<'p> {
    pub head: PartHeader,
    pieces: &'p [u8],
}

impl<'p> GenerationPart<'p> {
    /// Parses a part.
    ///
    /// # Errors
    /// Why the bytes are no part.
    pub fn parse(bytes: &'p [u8]) -> Result<GenerationPart<'p>, String> {
        let wrong = |what: &str| Err(format!("no part of a log: {what}"));
        if bytes.get(..8) != Some(&MAGIC[..]) {
            return wrong("it begins otherwise");
        }
        let version = array_at(bytes, 8).map_or(0, u16::from_le_bytes);
        if version != VERSION {
            return Err(format!(
                "version {version} of what goes over the wire; this collector knows version {VERSION}"
            ));
        }
        let Some((all, crc)) = bytes.split_last_chunk::<4>() else {
            return wrong("cut off");
        };
        if crc32fast::hash(all) != u32::from_le_bytes(*crc) {
            return wrong("its checksum differs");
        }
        match Self::read_fields(all) {
            Some(part) if has_whole_pieces(part.pieces) => Ok(part),
            _ => wrong("cut off, or too long a label"),
        }
    }

    fn read_fields(all: &'p [u8]) -> Option<GenerationPart<'p>> {
        let mut rest = all.get(LABELS_AT..)?;
        let mut label = || {
            let length = array_at(rest, 0).map(u16::from_le_bytes)?;
            let (text, more) = rest.get(2..)?.split_at_checked(length as usize)?;
            rest = more;
            let text = std::str::from_utf8(text).ok()?;
            (text.len() <= MAX_LABEL_BYTES).then(|| text.to_owned())
        };
        let labels = RunLabels {
            service: label()?,
            version: label()?,
            host: label()?,
        };
        let head = PartHeader {
            run: RunId::new(u64_at(all, 16)?)?,
            number: u64_at(all, 24)?,
            token: u64_at(all, 32)?,
            base: u64_at(all, 40)?,
            part: u32_at(all, 12)?,
            last: *all.get(10)? == 1,
            size: u64_at(all, 48)?,
            labels,
        };
        // Numbers and tokens are never 0, and the number of parts is limited.
        let is_known = head.number > 0 && head.token != 0 && head.part < MAX_PARTS;
        is_known.then_some(GenerationPart { head, pieces: rest })
    }

    /// Returns offsets and the bytes at them.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, &'p [u8])> + use<'p> {
        iter_pieces(self.pieces)
    }
}

fn iter_pieces(mut rest: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        let (offset, length) = (u64_at(rest, 0)?, u32_at(rest, 8)?);
        let (piece, more) = rest.get(12..)?.split_at_checked(length as usize)?;
        rest = more;
        Some((offset, piece))
    })
}

fn has_whole_pieces(all: &[u8]) -> bool {
    let read: usize = iter_pieces(all).map(|(_, piece)| 12 + piece.len()).sum();
    read == all.len()
}

/// The last generation of a run that a collector has.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct CollectorGeneration {
    /// 0: none.
    pub number: u64,
    pub token: u64,
    /// The dataset has the whole run: nothing more is needed.
    pub ended: bool,
}

const FIRST_LINE: &str = "lucce-collect 1";

impl CollectorGeneration {
    #[must_use]
    pub fn to_text(&self) -> String {
        let CollectorGeneration {
            number,
            token,
            ended,
        } = self;
        format!("{FIRST_LINE}\nnumber {number}\ntoken {token:016x}\nended {ended}\n")
    }

    /// `None`: the text is no generation.
    #[must_use]
    pub fn parse(text: &str) -> Option<CollectorGeneration> {
        let mut lines = text.lines();
        lines.next().filter(|line| *line == FIRST_LINE)?;
        let mut generation = CollectorGeneration::default();
        for line in lines {
            match line.split_once(' ')? {
                ("number", number) => generation.number = number.parse().ok()?,
                ("token", token) => generation.token = u64::from_str_radix(token, 16).ok()?,
                ("ended", ended) => generation.ended = ended.parse().ok()?,
                // Fields of later versions.
                _ => {}
            }
        }
        Some(generation)
    }
}

#[cfg(test)]
mod wire_tests {
    use super::*;

    fn head() -> PartHeader {
        PartHeader {
            run: RunId::new(0xaa).unwrap(),
            number: 3,
            token: 9,
            base: 8,
            part: 2,
            last: false,
            size: 0,
            labels: RunLabels {
                service: "shop".into(),
                version: String::new(),
                host: "é".repeat(200),
            },
        }
    }

    fn part() -> Vec<u8> {
        let mut writing = PartBuilder::new(&head());
        writing.push_piece(64, b"abc");
        writing.push_piece(1 << 40, b"");
        writing.mark_last(67);
        writing.finish_part().to_vec()
    }

    #[test]
    fn parts_are_read_as_they_were_written() {
        let bytes = part();
        let read = GenerationPart::parse(&bytes).unwrap();
        let mut wanted = head();
        (wanted.last, wanted.size) = (true, 67);
        // Cut at a character.
        wanted.labels.host = "é".repeat(127);
        assert_eq!(read.head, wanted);
        let pieces: Vec<_> = read.pieces().collect();
        assert_eq!(pieces, [(64, &b"abc"[..]), (1 << 40, &b""[..])]);
    }

    #[test]
    fn what_was_cut_or_changed_is_refused() {
        let bytes = part();
        for at in 0..bytes.len() {
            assert!(GenerationPart::parse(&bytes[..at]).is_err());
            let mut changed = bytes.clone();
            changed[at] ^= 0x41;
            assert!(GenerationPart::parse(&changed).is_err(), "{at}");
        }
        // With a valid checksum as well.
        let mut long = bytes[..bytes.len() - 4].to_vec();
        long.push(0);
        let crc = crc32fast::hash(&long);
        long.extend(crc.to_le_bytes());
        assert!(
            GenerationPart::parse(&long)
                .unwrap_err()
                .contains("cut off")
        );
        let mut later = bytes;
        later[8] = 2;
        assert!(
            GenerationPart::parse(&later)
                .unwrap_err()
                .contains("version 2")
        );
    }

    #[test]
    fn a_collector_reports_its_generation() {
        let generation = CollectorGeneration {
            number: 7,
            token: u64::MAX,
            ended: true,
        };
        assert_eq!(
            CollectorGeneration::parse(&generation.to_text()),
            Some(generation)
        );
        let later = format!("{}more of it\n", generation.to_text());
        assert_eq!(CollectorGeneration::parse(&later), Some(generation));
        for other in [
            "",
            "<html>",
            "lucce-collect 1\nnumber x\n",
            "lucce-collect 1\nx",
        ] {
            assert_eq!(CollectorGeneration::parse(other), None, "{other}");
        }
    }
}
