//! What an event keeps of its context.

use std::fmt;

use crate::{DecodeError, Frame};

/// A context's number, with the numbers that some encodings need beside it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Number {
    /// Where the event happened: known at the event, and needed for decoding by all encodings but
    /// those of the versioned graph.
    pub place: Frame,
    pub id: u64,
    pub beside: Vec<u64>,
}

impl Number {
    /// How many numbers an event keeps.
    #[must_use]
    pub fn numbers(&self) -> usize {
        1 + self.beside.len()
    }

    /// The bits that all of them use, leading zeros left out.
    #[must_use]
    pub fn bits(&self) -> u32 {
        let bits = |number: &u64| u64::BITS - number.leading_zeros();
        bits(&self.id) + self.beside.iter().map(bits).sum::<u32>()
    }
}

/// Why a number has no context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Undecodable {
    /// The encoding had no number left when it was asked.
    Lost,
    /// Its numbers never decode.
    Probabilistic,
    /// The graph has no such context.
    Unknown,
    /// The versioned graph's own answer.
    Graph(DecodeError),
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undecodable::Lost => f.write_str("there was no number left for this context"),
            Undecodable::Probabilistic => f.write_str("numbers of this encoding cannot be decoded"),
            Undecodable::Unknown => f.write_str("the graph has no such context"),
            Undecodable::Graph(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Undecodable {}
