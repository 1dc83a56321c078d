//! Why a file could not be opened, or could not be read to its end. Streams use these errors as well.

use std::borrow::Cow;
use std::{error, fmt, io};

/// The first invalid place of a file. Everything before it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogDamage {
    /// Offset in the file; for a packed block, the offset of the block.
    pub offset: u64,
    /// Offset in the unpacked bytes of a packed block, if unpacking succeeded.
    pub within: Option<usize>,
    pub reason: Cow<'static, str>,
}

impl LogDamage {
    #[cold]
    pub fn at_offset(offset: u64, reason: impl Into<Cow<'static, str>>) -> LogDamage {
        LogDamage {
            offset,
            within: None,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for LogDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "damaged at offset {}", self.offset)?;
        if let Some(within) = self.within {
            write!(f, " (byte {within} of the unpacked block)")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl error::Error for LogDamage {}

/// Why a file could not be opened.
#[derive(Debug)]
pub enum OpenError {
    Io(io::Error),
    /// The file is empty. The text names the expected file, such as "a lucce log".
    Empty(&'static str),
    /// Another kind of file. The text names the expected file.
    Foreign(&'static str),
    /// Written by a newer version of this program.
    Newer {
        version: u16,
        known: u16,
    },
    /// The right kind of file, but its header is damaged.
    Damaged(LogDamage),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Io(e) => e.fmt(f),
            OpenError::Empty(what) => write!(f, "empty, and not {what}"),
            OpenError::Foreign(what) => write!(f, "not {what} (offset 0: wrong magic)"),
            OpenError::Newer { version, known } => {
                write!(
                    f,
                    "format version {version}; this program reads up to {known}"
                )
            }
            OpenError::Damaged(damage) => damage.fmt(f),
        }
    }
}

impl error::Error for OpenError {}

/// Returns the first `size` bytes, the header of a file. `what` names the expected file, such as "a lucce log".
///
/// # Errors
/// The file is empty, of another kind, or ends inside its header.
pub fn header_bytes<'b>(
    bytes: &'b [u8],
    magic: &[u8],
    size: usize,
    what: &'static str,
) -> Result<&'b [u8], OpenError> {
    if bytes.is_empty() {
        return Err(OpenError::Empty(what));
    }
    if !bytes.starts_with(magic) && !magic.starts_with(bytes) {
        return Err(OpenError::Foreign(what));
    }
    bytes.get(..size).ok_or_else(|| {
        let reason = format!("file ends inside its header of {size} bytes");
        OpenError::Damaged(LogDamage::at_offset(bytes.len() as u64, reason))
    })
}

impl From<io::Error> for OpenError {
    fn from(e: io::Error) -> Self {
        OpenError::Io(e)
    }
}
