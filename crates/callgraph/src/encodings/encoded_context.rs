//! What an event keeps of its context.

use std::fmt;

use crate::{ContextFrame, DecodeError};

/// A context's number, with the numbers that some encodings need beside it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EncodedContext {
    /// Where the event happened: known at the event, and needed for decoding by all encodings but
    /// those of the versioned graph.
    pub frame: ContextFrame,
    pub id: u64,
    pub extra_numbers: Vec<u64>,
}

impl EncodedContext {
    /// How many numbers an event keeps.
    #[must_use]
    pub fn number_count(&self) -> usize {
        1 + self.extra_numbers.len()
    }

    /// The bits that all of them use, leading zeros left out.
    #[must_use]
    pub fn used_bits(&self) -> u32 {
        let bits = |number: &u64| u64::BITS - number.leading_zeros();
        bits(&self.id) + self.extra_numbers.iter().map(bits).sum::<u32>()
    }
}

/// Why a number has no context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContextDecodeError {
    /// The encoding had no number left when it was asked.
    Lost,
    /// Its numbers never decode.
    Probabilistic,
    /// The graph has no such context.
    Unknown,
    /// The versioned graph's own answer.
    Graph(DecodeError),
}

impl fmt::Display for ContextDecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContextDecodeError::Lost => f.write_str("there was no number left for this context"),
            ContextDecodeError::Probabilistic => {
                f.write_str("numbers of this encoding cannot be decoded")
            }
            ContextDecodeError::Unknown => f.write_str("the graph has no such context"),
            ContextDecodeError::Graph(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ContextDecodeError {}
