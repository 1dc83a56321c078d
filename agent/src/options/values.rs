//! Values of options, and errors for malformed ones.

use std::fmt;
use std::path::PathBuf;

use lucce_filter::PatternList;

/// An error in the options, because of which the VM must not start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionError(pub String);

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Parses one of several named values.
pub fn parse_choice<T: Copy>(
    what: &str,
    value: &str,
    known: &[(&str, T)],
) -> Result<T, OptionError> {
    let found = known.iter().find(|(name, _)| *name == value);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        unknown_name(what, value, &names, "")
    })
}

/// Parses a path, which must not be empty.
pub fn parse_file(key: &str, value: &str) -> Result<PathBuf, OptionError> {
    match value {
        "" => Err(malformed_value(key, value, "a file name")),
        name => Ok(name.into()),
    }
}

/// Parses a list of patterns.
pub fn parse_patterns(key: &str, value: &str) -> Result<PatternList, OptionError> {
    PatternList::parse(value).map_err(|why| OptionError(format!("option {key}: {why}")))
}

/// Parses a number from 0 to 2³¹ − 1.
pub fn parse_number(key: &str, value: &str) -> Result<u32, OptionError> {
    let parsed = value
        .parse()
        .ok()
        .filter(|n: &u32| i32::try_from(*n).is_ok());
    parsed.ok_or_else(|| malformed_value(key, value, "a number from 0 to 2147483647"))
}

/// Parses a size in bytes: `4096`, `64k`, `512m`, `2g`. Units are powers of 1024.
pub fn parse_size(key: &str, value: &str) -> Result<u64, OptionError> {
    let lower = value.to_ascii_lowercase();
    let (digits, unit) = match lower.as_bytes().last() {
        Some(b'k') => (&lower[..lower.len() - 1], 1 << 10),
        Some(b'm') => (&lower[..lower.len() - 1], 1 << 20),
        Some(b'g') => (&lower[..lower.len() - 1], 1 << 30),
        _ => (&lower[..], 1_u64),
    };
    let parsed = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    parsed.ok_or_else(|| malformed_value(key, value, "a size such as 4096, 64k, 512m or 2g"))
}

/// The error for a malformed value; `wanted`: the expected form.
pub fn malformed_value(key: &str, value: &str, wanted: &str) -> OptionError {
    OptionError(format!(
        "option {key}={value} is malformed: expected {wanted}"
    ))
}

/// The error for an unknown name, with the nearest known name.
pub fn unknown_name(what: &str, given: &str, known: &[&str], more: &str) -> OptionError {
    let nearest = known
        .iter()
        .min_by_key(|k| edit_distance(given, k))
        .unwrap_or(&"");
    OptionError(format!(
        "unknown {what} '{given}', did you mean '{nearest}'?{more}"
    ))
}

/// Levenshtein distance in bytes.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let best = (diagonal + usize::from(x != y))
                .min(row[j] + 1)
                .min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], best);
        }
    }
    row[b.len()]
}
