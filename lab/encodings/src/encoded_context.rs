//! The encoded context of an event.

use std::fmt;

use lucce_callgraph::{ContextFrame, DecodeError};

/// A context's number, with the additional numbers of some encodings.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EncodedContext {
    /// The place of the event. It is known at the event. All encodings except the versioned graph need it for decoding.
    pub frame: ContextFrame,
    pub id: u64,
    pub extra_numbers: Vec<u64>,
}

impl EncodedContext {
    /// A context of an event that keeps one number.
    #[must_use]
    pub fn single(frame: ContextFrame, id: u64) -> EncodedContext {
        EncodedContext {
            frame,
            id,
            extra_numbers: Vec::new(),
        }
    }

    /// Returns how many numbers an event keeps.
    #[must_use]
    pub fn number_count(&self) -> usize {
        1 + self.extra_numbers.len()
    }

    /// Returns the bits that all numbers use together, without leading zeros.
    #[must_use]
    pub fn used_bits(&self) -> u32 {
        let bits = |number: &u64| u64::BITS - number.leading_zeros();
        bits(&self.id) + self.extra_numbers.iter().map(bits).sum::<u32>()
    }
}

/// Why a number has no context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContextDecodeError {
    /// The encoding had no number left at the event.
    Lost,
    /// The encoding's numbers never decode.
    Probabilistic,
    /// The graph has no such context.
    Unknown,
    /// The versioned graph's own error.
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
