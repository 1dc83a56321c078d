//! Durations and sizes, as the agent's options and all commands accept them: `500ms`, `2h`, `64k`.

use std::time::Duration;

/// Time units in nanoseconds. A unit precedes the units that are a suffix of it.
const TIME_UNITS: [(&str, f64); 7] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3_600e9),
    ("d", 86_400e9),
];
const SIZE_UNITS: [(&str, u64); 3] = [("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30)];

/// Parses `20us`, `300ms`, `1.5s`, `2m`, `1h` or `7d`; a number without a unit is in seconds.
///
/// # Errors
/// The text is not a duration, or more than 500 years; the message describes the format.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let unit = TIME_UNITS
        .iter()
        .find_map(|(unit, nanos)| Some((text.strip_suffix(unit)?, *nanos)));
    let (number, unit_nanos) = unit.unwrap_or((text, 1e9));
    let is_plain = |c: char| c.is_ascii_digit() || c == '.';
    let number = Some(number).filter(|number| number.chars().all(is_plain));
    let number = number.and_then(|number| number.parse::<f64>().ok());
    let nanos = number.map(|number| (number * unit_nanos).round());
    let nanos = nanos.filter(|nanos| (0.0..500.0 * 365.0 * 86_400e9).contains(nanos));
    match nanos {
        Some(nanos) => Ok(Duration::from_nanos(nanos as u64)),
        None => {
            Err("a time is a number with ns, us, ms, s, m, h or d, such as 500ms or 2s".to_owned())
        }
    }
}

/// Writes a duration with the largest unit that needs no fraction; [`parse_duration`] returns the same duration.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let mut units = TIME_UNITS.iter().rev();
    let whole = units.find(|(_, unit_nanos)| nanos.is_multiple_of(*unit_nanos as u128));
    let (unit, unit_nanos) = whole.copied().unwrap_or(("ns", 1.0));
    format!("{}{unit}", nanos / unit_nanos as u128)
}

/// Parses a duration of at least a millisecond; see [`parse_duration`].
///
/// # Errors
/// The text is not a duration, or too short.
pub fn parse_interval(text: &str) -> Result<Duration, String> {
    parse_duration_within(
        text,
        Duration::from_millis(1)..=Duration::MAX,
        "at least 1ms",
    )
}

/// Parses a duration within `range`, which `words` describes; see [`parse_duration`].
///
/// # Errors
/// The text is not a duration, or outside of the range.
pub fn parse_duration_within(
    text: &str,
    range: std::ops::RangeInclusive<Duration>,
    words: &str,
) -> Result<Duration, String> {
    let duration = parse_duration(text)?;
    match range.contains(&duration) {
        true => Ok(duration),
        false => Err(format!("the time must be {words}")),
    }
}

/// Parses `64k`, `1m` or `2g`, which are powers of 1024; a number without a unit is in bytes.
///
/// # Errors
/// The text is not a size, or 2^64 bytes or more; the message describes the format.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let unit = SIZE_UNITS
        .iter()
        .find_map(|(unit, bytes)| Some((lower.strip_suffix(unit)?, *bytes)));
    let (number, unit_bytes) = unit.unwrap_or((&lower, 1));
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse::<u64>().ok().filter(|_| is_number);
    let bytes = number.and_then(|number| number.checked_mul(unit_bytes));
    bytes.ok_or_else(|| "a size is a number with k, m or g, or of bytes, such as 64k".to_owned())
}

/// Writes a size with the largest unit that needs no fraction; [`parse_size`] returns the same size.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    let mut units = SIZE_UNITS.iter().rev();
    match units.find(|(_, unit_bytes)| bytes > 0 && bytes.is_multiple_of(*unit_bytes)) {
        Some((unit, unit_bytes)) => format!("{}{unit}", bytes / unit_bytes),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod units_tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, nanos) in [
            ("1.5s", 1_500_000_000),
            ("2", 2_000_000_000),
            ("0.25", 250_000_000),
            ("300ms", 300_000_000),
            ("20us", 20_000),
            ("7ns", 7),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("7d", 604_800_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_nanos(nanos)),
                "{text}"
            );
        }
        for bad in [
            "",
            "s",
            "-1s",
            "+1s",
            "1w",
            "NaN",
            "inf",
            "1e999",
            "1e3us",
            "1 2s",
            " 2s",
            ".",
            "1.2.3s",
            "999999d",
            "99999999999999999999999s",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn intervals_are_not_empty() {
        assert_eq!(parse_interval("1ms"), Ok(Duration::from_millis(1)));
        for bad in ["0", "0s", "999us", "x"] {
            assert!(parse_interval(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("7", 7),
            ("64k", 64 << 10),
            ("1M", 1 << 20),
            ("2g", 2 << 30),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "k", "-1", "+1", "1t", "2gb", "99999999999g"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn amounts_are_written_with_the_largest_unit() {
        for text in ["7", "64k", "1m", "3g", "1025", "0"] {
            assert_eq!(format_size(parse_size(text).unwrap()), text);
        }
        for text in ["60s", "500ms", "90s", "1h", "7ns", "2d"] {
            let duration = parse_duration(text).unwrap();
            let written = format_duration(duration);
            assert_eq!(parse_duration(&written), Ok(duration), "{written}");
        }
        assert_eq!(format_duration(Duration::from_secs(60)), "1m");
        assert_eq!(format_duration(Duration::ZERO), "0d");
    }
}
