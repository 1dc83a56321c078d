//! Content ids: ids of calling contexts that are equal in every run.
//!
//! A context id is an address in the graph of one run. A content id is a hash of the visible trace: class, method,
//! descriptor and line of each frame, from the thread's entry on. It joins runs, versions of a program and machines.
//!
//! ```text
//! FrameId = XXH3_128( text(class) text(method) text(descriptor) [line: i32 little-endian] )
//! text(t) = length in bytes: u32 little-endian, then UTF-8
//! StackId = 0 for no frame; XXH3_128( StackId of the callers: 16 bytes, FrameId: 16 bytes )
//! ```
//! XXH3 has seed 0 and its standard secret. Ids are hashed as little-endian bytes and shown as 32 hexadecimal digits,
//! the highest first. Class names have dots. Lines are as in `StackTraceElement`: -1 unknown, -2 native.
//!
//! An id with [`ContentDetail::ByMethod`] omits lines, so it survives edits elsewhere in a file. Numbers that
//! generators assign anew in each run are removed from names first, see [`generated_names`]. The definition is frozen:
//! `tests/vectors.rs` has ids computed by another implementation of XXH3.
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

/// What two contexts must have in common to be equal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ContentDetail {
    /// Every frame's class, method, descriptor and line.
    #[default]
    ByLine,
    /// Every frame's class, method and descriptor.
    ByMethod,
}

/// One frame, independent of its position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameId(pub u128);

/// A path of frames from the thread's entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StackId(pub u128);

/// The visible parts of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameText<'a> {
    /// `a.b.C$D`
    pub class: &'a str,
    /// The method's name.
    pub method: &'a str,
    /// Such as `(I)V`; empty if the log does not have it.
    pub descriptor: &'a str,
    /// As in `StackTraceElement`.
    pub line: i32,
}

impl FrameId {
    /// Returns the frame's id. The parts of names that differ from run to run are removed.
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
    /// The path without frames.
    pub const EMPTY: StackId = StackId(0);

    /// Returns the path that continues with `callee`.
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

/// The text is no content id, which has 32 hexadecimal digits.
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
