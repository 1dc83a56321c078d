//! Why a file is not read, or not to its end. Recordings of calls are read in the same way.

use std::borrow::Cow;
use std::{error, fmt, io};

/// The first thing in a file that cannot be right. What precedes it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// In the file; of the block, if that is packed.
    pub offset: u64,
    /// In a packed block's unpacked bytes, if it could be unpacked.
    pub within: Option<usize>,
    pub reason: Cow<'static, str>,
}

impl Damage {
    #[cold]
    pub fn at(offset: u64, reason: impl Into<Cow<'static, str>>) -> Damage {
        Damage {
            offset,
            within: None,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "damaged at offset {}", self.offset)?;
        if let Some(within) = self.within {
            write!(f, " (byte {within} of the unpacked block)")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl error::Error for Damage {}

/// Why a file is not read at all.
#[derive(Debug)]
pub enum OpenError {
    Io(io::Error),
    /// Some other kind of file; what it should be: "a lucce log".
    Foreign(&'static str),
    /// Written by a newer version of this program.
    Newer {
        version: u16,
        known: u16,
    },
    /// The right kind of file, but its header is not whole.
    Damaged(Damage),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Io(e) => e.fmt(f),
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

impl From<io::Error> for OpenError {
    fn from(e: io::Error) -> Self {
        OpenError::Io(e)
    }
}
