//! Reads lines of any bytes and any length, with the context ids in them. A very long line is read in pieces.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;

use lucce_decoder::ContextNumber;

/// Maximum bytes of a piece.
const PIECE: usize = 1 << 20;
/// Bytes at the end of a piece that may belong to an id of the next piece.
const HELD: usize = ContextNumber::MAX_TEXT + 1;

pub struct LineReader<R> {
    input: BufReader<R>,
    piece: usize,
    /// The last returned piece, and the bytes read after it.
    buffer: Vec<u8>,
    returned: usize,
}

/// A whole line with its line break, or a part of one.
pub struct LinePiece<'b> {
    bytes: Cow<'b, [u8]>,
    numbers: Vec<(Range<usize>, ContextNumber)>,
}

impl<R: Read> LineReader<R> {
    pub fn new(input: R) -> Self {
        Self::with_piece_size(input, PIECE)
    }

    fn with_piece_size(input: R, piece: usize) -> Self {
        LineReader {
            input: BufReader::with_capacity(64 << 10, input),
            piece,
            buffer: Vec::new(),
            returned: 0,
        }
    }

    /// Whether the next line is not buffered: reading may block.
    pub fn would_wait(&self) -> bool {
        !self.input.buffer().contains(&b'\n')
    }

    /// Reads the next piece; `None`: the end.
    pub fn next_piece(&mut self) -> io::Result<Option<LinePiece<'_>>> {
        self.buffer.drain(..self.returned);
        let room = self.piece.saturating_sub(self.buffer.len()) as u64;
        let mut input = self.input.by_ref().take(room);
        input.read_until(b'\n', &mut self.buffer)?;
        let is_long = self.buffer.len() >= self.piece && !self.buffer.ends_with(b"\n");
        let mut numbers: Vec<_> = find_numbers(&self.buffer).collect();
        self.returned = match is_long {
            true => piece_end(self.buffer.len(), &numbers),
            false => self.buffer.len(),
        };
        numbers.retain(|(place, _)| place.end <= self.returned);
        let bytes = self.buffer.get(..self.returned).unwrap_or_default();
        let bytes = Cow::Borrowed(bytes);
        Ok((!bytes.is_empty()).then_some(LinePiece { bytes, numbers }))
    }
}

/// The end of a long piece: never inside an id, even one that is not read completely.
fn piece_end(length: usize, numbers: &[(Range<usize>, ContextNumber)]) -> usize {
    let at = length - HELD;
    let across = numbers.iter().find(|(place, _)| place.contains(&at));
    across.map_or(at, |(place, _)| place.end)
}

impl LinePiece<'_> {
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn ends_line(&self) -> bool {
        self.bytes.ends_with(b"\n")
    }

    pub fn into_owned(self) -> LinePiece<'static> {
        LinePiece {
            bytes: Cow::Owned(self.bytes.into_owned()),
            numbers: self.numbers,
        }
    }

    pub fn bytes_in(&self, place: Range<usize>) -> &[u8] {
        self.bytes.get(place).unwrap_or_default()
    }

    /// The context ids and their ranges.
    pub fn numbers(&self) -> &[(Range<usize>, ContextNumber)] {
        &self.numbers
    }
}

/// Finds context ids in the UTF-8 parts of the bytes.
fn find_numbers(bytes: &[u8]) -> impl Iterator<Item = (Range<usize>, ContextNumber)> {
    let mut at = 0;
    bytes.utf8_chunks().flat_map(move |chunk| {
        let start = at;
        at += chunk.valid().len() + chunk.invalid().len();
        let places = ContextNumber::places_in(chunk.valid());
        places.map(move |(place, number)| (start + place.start..start + place.end, number))
    })
}

#[cfg(test)]
mod line_reader_tests {
    use super::*;

    /// However a text is split into pieces, the output is the text with its ids.
    #[test]
    fn pieces_are_the_text_and_no_number_is_cut() {
        let number = |n: u64| format!("lucce:0123456789abcdef:0x{n:x}");
        let mut text = Vec::new();
        for n in 1..200u64 {
            text.extend(b"word \xff".repeat((n % 7) as usize));
            text.extend(number(n * n * n * n * n).into_bytes());
            text.extend(if n % 3 == 0 { "g" } else { ", " }.bytes());
            if n % 50 == 0 {
                text.push(b'\n');
            }
        }
        text.extend(number(7).into_bytes());
        let expected: Vec<_> = find_numbers(&text).map(|(_, number)| number).collect();
        assert!(expected.len() > 50);
        for piece in [100, 101, 150, 1000, 1 << 20] {
            let mut lines = LineReader::with_piece_size(&text[..], piece);
            let (mut read, mut found) = (Vec::new(), Vec::new());
            while let Some(piece) = lines.next_piece().unwrap() {
                for (place, number) in piece.numbers() {
                    let shown = piece.bytes_in(place.clone());
                    assert_eq!(shown, number.to_string().as_bytes());
                    found.push(*number);
                }
                read.extend_from_slice(piece.bytes_in(0..piece.len()));
            }
            assert_eq!(read, text, "{piece}");
            assert_eq!(found, expected, "{piece}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_whole() {
        let mut lines = LineReader::new(io::repeat(b'x').take(50 << 20));
        let mut bytes = 0;
        while let Some(piece) = lines.next_piece().unwrap() {
            assert!(piece.len() <= PIECE);
            bytes += piece.len();
        }
        assert_eq!(bytes, 50 << 20);
        assert!(lines.buffer.capacity() <= 4 * PIECE);
    }
}
