//! Content ids: the id of a calling context that is the same in every run.
//!
//! A context's number is an address in the graph of one run. Its content id is a hash of what a person
//! reads in the trace: class, method, descriptor and line of each frame, from the thread's entry on.
//! Runs, versions of a program and machines are joined by it.
//!
//! ```text
//! FrameId = XXH3_128( text(class) text(method) text(descriptor) [line: i32 little-endian] )
//! text(t) = length in bytes: u32 little-endian, then UTF-8
//! StackId = 0 for no frame; XXH3_128( StackId of the callers: 16 bytes, FrameId: 16 bytes )
//! ```
//! XXH3 has seed 0 and its standard secret; ids are little-endian where they are hashed, and 32
//! hexadecimal digits, the highest first, where they are shown. Class names have dots. A line is that of
//! `StackTraceElement`: -1 unknown, -2 native.
//!
//! An id [`ContentDetail::ByMethod`] leaves lines out, so it survives edits elsewhere in a file. Names that
//! generators number anew in each run lose these numbers first, see [`generated_names`]. The definition is frozen:
//! `tests/vectors.rs` has ids that another implementation of XXH3 has computed.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs
)]

pub mod generated_names;

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// What two contexts must have in common to be the same one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ContentDetail {
    /// Every frame's class, method, descriptor and line.
    #[default]
    ByLine,
    /// Every frame's class, method and descriptor.
    ByMethod,
}

/// One frame, wherever it stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameId(pub u128);

/// A path of frames from the thread's entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StackId(pub u128);

/// What a frame shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameText<'a> {
    /// `a.b.C$D`
    pub class: &'a str,
    /// The method's name.
    pub method: &'a str,
    /// `(I)V`; empty: the log does not know it.
    pub descriptor: &'a str,
    /// As `StackTraceElement` has it.
    pub line: i32,
}

impl FrameId {
    /// The frame's id. Its names lose what differs from run to run.
    #[must_use]
    pub fn from_frame(frame: FrameText<'_>, detail: ContentDetail) -> Self {
        let mut hash = Xxh3::new();
        let method = match detail {
            ContentDetail::ByLine => frame.method.into(),
            ContentDetail::ByMethod => generated_names::normalize_method(frame.method),
        };
        hash_text(&mut hash, &generated_names::normalize_class(frame.class));
        hash_text(&mut hash, &method);
        hash_text(
            &mut hash,
            &generated_names::normalize_descriptor(frame.descriptor),
        );
        if detail == ContentDetail::ByLine {
            hash.update(&frame.line.to_le_bytes());
        }
        FrameId(hash.digest128())
    }
}

fn hash_text(hash: &mut Xxh3, text: &str) {
    // A name in a class file has at most 65,535 bytes (JVMS 4.4.7).
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    hash.update(&length.to_le_bytes());
    hash.update(text.as_bytes());
}

impl StackId {
    /// No frame at all.
    pub const EMPTY: StackId = StackId(0);

    /// These frames and one that the last of them calls.
    #[must_use]
    pub fn with_callee(self, callee: FrameId) -> StackId {
        let [high, low] = [self.0.to_le_bytes(), callee.0.to_le_bytes()];
        let mut both = [0; 32];
        let (first, second) = both.split_at_mut(16);
        first.copy_from_slice(&high);
        second.copy_from_slice(&low);
        StackId(xxh3_128(&both))
    }
}

impl fmt::Display for StackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The text is no content id: 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseStackIdError;

impl fmt::Display for ParseStackIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no content id: 32 hexadecimal digits")
    }
}

impl std::error::Error for ParseStackIdError {}

impl FromStr for StackId {
    type Err = ParseStackIdError;

    fn from_str(text: &str) -> Result<Self, ParseStackIdError> {
        let is_hex = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let id = is_hex
            .then(|| u128::from_str_radix(text, 16).ok())
            .flatten();
        id.map(StackId).ok_or(ParseStackIdError)
    }
}
