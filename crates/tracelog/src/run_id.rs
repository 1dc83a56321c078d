//! Run ids, and context numbers together with their run.
//!
//! ```text
//! lucce:0123456789abcdef:0x400024000c77cb
//!       └ run id ────────┘ └ context id: 1 to 16 hexadecimal digits
//! ```
//!
//! A context id is valid only in the log of its own run: other runs give it to other contexts. The full form can be
//! found in any text (see [`ContextNumber::find_in`]), and a reader can refuse ids of other runs. The run id always has
//! 16 digits. Both parts are written in lower case and read in either case.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;

use lucce_callgraph::ContextId;

/// A run of a program under the agent: 64 random bits, never 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RunId(NonZeroU64);

impl RunId {
    /// `None` for 0, which means that a log has no run id.
    #[must_use]
    pub const fn new(bits: u64) -> Option<RunId> {
        match NonZeroU64::new(bits) {
            Some(bits) => Some(RunId(bits)),
            None => None,
        }
    }

    /// Returns a new run id, from the system's source of randomness.
    #[must_use]
    pub fn random() -> RunId {
        RunId::new(random_bits()).unwrap_or(RunId(NonZeroU64::MAX))
    }

    #[must_use]
    pub fn bits(self) -> u64 {
        self.0.get()
    }
}

/// 16 hexadecimal digits.
impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

fn random_bits() -> u64 {
    let mut bytes = [0; 8];
    let (no_flags, length): (libc::c_long, usize) = (0, bytes.len());
    // The system call is used directly: glibc has a function for it only since 2.25.
    #[allow(unsafe_code, reason = "a system call that fills our own bytes")]
    // SAFETY: the pointer and the length are those of the array.
    let filled =
        unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), length, no_flags) };
    match usize::try_from(filled) == Ok(bytes.len()) {
        true => u64::from_ne_bytes(bytes),
        false => fallback_bits(),
    }
}

/// Fallback if the system call is forbidden: no two live processes of one machine share a process id.
#[cold]
fn fallback_bits() -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (std::process::id(), std::time::SystemTime::now()).hash(&mut hasher);
    hasher.finish()
}

/// A context id, and the run that it belongs to, if known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ContextNumber {
    /// `None`: a bare context id, or one from a log without a run id.
    pub run: Option<RunId>,
    pub id: ContextId,
}

const PREFIX: &str = "lucce:";
const RUN_DIGITS: usize = 16;

impl ContextNumber {
    /// The longest text form in bytes.
    pub const MAX_TEXT: usize = PREFIX.len() + RUN_DIGITS + ":0x".len() + 16;

    /// Parses input of a user or program: a single bare context id, or any text that contains full ones.
    #[must_use]
    pub fn parse_all(text: &str) -> Vec<ContextNumber> {
        match Self::parse_bare(text.trim()) {
            Some(number) => vec![number],
            None => Self::find_in(text).collect(),
        }
    }

    /// Returns every id in the form `lucce:RUN:0x…` in the text, in order.
    pub fn find_in(text: &str) -> impl Iterator<Item = ContextNumber> {
        Self::places_in(text).map(|(_, number)| number)
    }

    /// As [`ContextNumber::find_in`], with the position of each id in the text.
    pub fn places_in(text: &str) -> impl Iterator<Item = (Range<usize>, ContextNumber)> {
        text.match_indices(PREFIX).filter_map(|(at, prefix)| {
            let start = at + prefix.len();
            let (number, length) = Self::parse_after_prefix(text.get(start..)?)?;
            Some((at..start + length, number))
        })
    }

    /// Parses the run id and context id at the begin of `text`; returns them with their length.
    fn parse_after_prefix(text: &str) -> Option<(ContextNumber, usize)> {
        let (run, rest) = (text.get(..RUN_DIGITS)?, text.get(RUN_DIGITS..)?);
        let run = RunId::new(parse_hexadecimal(run)?)?;
        let rest = rest.strip_prefix(":0x").or(rest.strip_prefix(":0X"))?;
        let end = rest.find(|c: char| !c.is_ascii_hexdigit());
        let (digits, behind) = rest.split_at(end.unwrap_or(rest.len()));
        // If more word characters follow, it is not an id.
        if behind.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            return None;
        }
        let id = ContextId(parse_hexadecimal(digits)?);
        let number = ContextNumber { run: Some(run), id };
        Some((number, text.len() - behind.len()))
    }

    /// Parses a bare context id: decimal, also as Java prints a `long`, or 0x and hexadecimal digits.
    fn parse_bare(text: &str) -> Option<ContextNumber> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let id = match digits {
            Some(digits) => parse_hexadecimal(digits)?,
            // Java's `long` is signed: the largest ids are negative there.
            None => {
                let signed = || text.parse().map(i64::cast_unsigned);
                text.parse().or_else(|_| signed()).ok()?
            }
        };
        let id = ContextId(id);
        Some(ContextNumber { run: None, id })
    }
}

/// Parses digits only: `from_str_radix` would accept a sign.
fn parse_hexadecimal(digits: &str) -> Option<u64> {
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    are_digits.then(|| u64::from_str_radix(digits, 16).ok())?
}

/// Displays `lucce:RUN:0x…`, or `0x…` if the run is unknown.
impl fmt::Display for ContextNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(run) = self.run {
            write!(f, "{PREFIX}{run}:")?;
        }
        self.id.fmt(f)
    }
}

#[cfg(test)]
mod run_id_tests {
    use super::*;

    const RUN: RunId = RunId(NonZeroU64::new(0x0123_4567_89ab_cdef).unwrap());

    fn of_run(id: u64) -> ContextNumber {
        let run = Some(RUN);
        ContextNumber {
            run,
            id: ContextId(id),
        }
    }

    #[test]
    fn a_number_is_read_as_it_is_written() {
        for number in [of_run(1), of_run(u64::MAX), of_run(0x0040_0024_000c_77cb)] {
            let text = number.to_string();
            assert!(text.len() <= ContextNumber::MAX_TEXT);
            assert_eq!(ContextNumber::parse_all(&text), [number]);
        }
        assert_eq!(of_run(u64::MAX).to_string().len(), ContextNumber::MAX_TEXT);
        assert_eq!(of_run(42).to_string(), "lucce:0123456789abcdef:0x2a");
    }

    #[test]
    fn bare_numbers_are_decimal_or_hexadecimal() {
        let bare = |id| {
            vec![ContextNumber {
                run: None,
                id: ContextId(id),
            }]
        };
        assert_eq!(ContextNumber::parse_all("12"), bare(12));
        assert_eq!(ContextNumber::parse_all(" 0xFf\n"), bare(255));
        assert_eq!(ContextNumber::parse_all("0Xff"), bare(255));
        assert_eq!(
            ContextNumber::parse_all("18446744073709551615"),
            bare(u64::MAX)
        );
        assert_eq!(ContextNumber::parse_all("-1"), bare(u64::MAX));
        let bad = [
            "",
            "0x",
            "0x+1",
            "0x-1",
            "ff",
            "1.0",
            "18446744073709551616",
        ];
        assert!(
            bad.iter()
                .all(|text| ContextNumber::parse_all(text).is_empty())
        );
    }

    #[test]
    fn numbers_are_found_inside_of_lines() {
        let line = "\u{1b}[33mWARN\u{1b}[0m pool \u{fc}: lucce:0123456789abcdef:0x2a\u{1b}[0m leaked, \
                    (lucce:0123456789ABCDEF:0X2B), ctx=lucce:0123456789abcdef:0x2c.";
        assert_eq!(
            ContextNumber::parse_all(line),
            [of_run(42), of_run(43), of_run(44)]
        );
        let texts = ContextNumber::places_in(line).map(|(place, _)| &line[place]);
        let expected = ["cdef:0x2a", "CDEF:0X2B", "cdef:0x2c"];
        for (text, end) in texts.zip(expected) {
            assert!(text.starts_with(PREFIX) && text.ends_with(end), "{text}");
        }
    }

    #[test]
    fn what_is_nearly_a_number_is_none() {
        let texts = [
            "lucce: 12 allocations",
            "lucce:0123456789abcdef",
            "lucce:0123456789abcdef:2a",
            "lucce:0123456789abcdef:0x",
            "lucce:0123456789abcde:0x2a",
            "lucce:0123456789abcdef0:0x2a",
            "lucce:0000000000000000:0x2a",
            "lucce:+123456789abcdef:0x2a",
            "lucce:0123456789abcdef:0x2ag",
            "lucce:0123456789abcdef:0x2a_",
            "lucce:0123456789abcdef:0x12345678123456780",
            "lucce:0123456789abcde\u{fc}:0x2a",
            "LUCCE:0123456789abcdef:0x2a",
        ];
        for text in texts {
            assert_eq!(ContextNumber::parse_all(text), [], "{text}");
        }
        // An incomplete prefix does not hide what follows.
        let numbers = ContextNumber::parse_all("lucce:lucce:0123456789abcdef:0x2a");
        assert_eq!(numbers, [of_run(42)]);
    }

    #[test]
    fn different_runs_have_different_ids() {
        let runs: std::collections::BTreeSet<_> = (0..1000).map(|_| RunId::random()).collect();
        assert_eq!(runs.len(), 1000);
        assert_eq!(RunId::new(0), None);
        assert_ne!(fallback_bits(), 0);
    }
}
