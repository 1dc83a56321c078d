//! Whether the pieces of a whole log are one: a few bytes must not claim the room of a large log.

use std::collections::BTreeMap;

use lucce_ship::wire::GenerationPart;
use lucce_tracelog::{FILE_START, blocks_end};

/// Bytes of a header, of the file and of a block.
const HEADER_BYTES: usize = FILE_START as usize;

/// What the pieces of a log cover. Zeros are not sent, so cells may have gaps; headers and records have none.
#[derive(Default)]
pub struct PieceCoverage {
    /// Where a run of bytes begins and where it ends; runs do not touch each other.
    runs: BTreeMap<u64, u64>,
    /// What may be headers, by offset.
    headers: BTreeMap<u64, [u8; HEADER_BYTES]>,
}

impl PieceCoverage {
    /// The pieces of one part.
    pub fn add_part(&mut self, part: &GenerationPart<'_>) {
        for (at, piece) in part.pieces() {
            if let Some(header) = piece.first_chunk().filter(|_| piece.len() == HEADER_BYTES) {
                self.headers.insert(at, *header);
            }
            self.cover_range(at, at.saturating_add(piece.len() as u64));
        }
    }

    fn cover_range(&mut self, start: u64, end: u64) {
        let (mut start, mut end) = (start, end);
        while let Some((begun, ended)) = self.runs.range(..=end).next_back().map(|(a, b)| (*a, *b))
            && ended >= start
        {
            self.runs.remove(&begun);
            (start, end) = (start.min(begun), end.max(ended));
        }
        self.runs.insert(start, end);
    }

    fn is_covered(&self, start: u64, bytes: u64) -> bool {
        let run = self.runs.range(..=start).next_back();
        bytes == 0 || run.is_some_and(|(_, end)| *end >= start.saturating_add(bytes))
    }

    /// # Errors
    /// In words: the pieces are no log of `size` bytes.
    pub fn check_size(&self, size: u64) -> Result<(), String> {
        let mut read = |at: u64, to: &mut [u8]| match self.headers.get(&at) {
            Some(header) if to.len() == HEADER_BYTES => {
                to.copy_from_slice(header);
                true
            }
            _ => false,
        };
        let end = blocks_end(&mut read, &|start, bytes| self.is_covered(start, bytes));
        match end == Some(size) && self.is_covered(0, FILE_START) {
            true => Ok(()),
            false => Err(format!("its pieces are no log of {size} bytes")),
        }
    }
}

#[cfg(test)]
mod piece_coverage_tests {
    use super::*;

    #[test]
    fn runs_grow_together() {
        let mut coverage = PieceCoverage::default();
        for (start, end) in [(10, 20), (30, 40), (20, 25), (0, 5), (24, 31), (100, 100)] {
            coverage.cover_range(start, end);
        }
        let runs: Vec<_> = coverage.runs.clone().into_iter().collect();
        assert_eq!(runs, [(0, 5), (10, 40), (100, 100)]);
        assert!(
            coverage.is_covered(10, 30) && coverage.is_covered(3, 2) && coverage.is_covered(50, 0)
        );
        assert!(
            !coverage.is_covered(10, 31)
                && !coverage.is_covered(9, 1)
                && !coverage.is_covered(4, 2)
        );
    }
}
