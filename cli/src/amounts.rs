//! Formats amounts for people: `4.2 GB`, `1 min 27 s`.

use lucce_decoder::{ALLOC, KindTotal, Profile, read_sampled_bytes};

use super::output::grouped;

/// Formats an amount in a unit; units other than bytes and ns follow the number.
pub fn format_amount(amount: f64, unit: &str) -> String {
    let sign = if amount < 0.0 { "-" } else { "" };
    let size = amount.abs();
    let text = match unit {
        "bytes" => format_bytes(size, false),
        "ns" => format_nanos(size),
        "" => format_number(size),
        unit => format!("{} {unit}", format_number(size)),
    };
    format!("{sign}{text}")
}

/// Formats bytes that are estimated from samples, with three significant digits.
pub fn format_estimated_bytes(bytes: u64) -> String {
    format_bytes(round_estimate(bytes) as f64, true)
}

/// Rounds an estimate to three significant digits.
pub fn round_estimate(amount: u64) -> u64 {
    let digits = amount.checked_ilog10().map_or(1, |log| log + 1);
    let unit = 10_u64.pow(digits.saturating_sub(3));
    let halves = amount.saturating_add(unit / 2);
    halves - halves % unit
}

/// How amounts of a kind are shown: estimates have three digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AmountFormat {
    is_estimate: bool,
}

impl AmountFormat {
    /// Allocations are estimates if they were sampled.
    pub fn for_kind(profile: &Profile, kind: &KindTotal) -> AmountFormat {
        let is_sampled = read_sampled_bytes(profile).is_some();
        Self::for_estimates(is_sampled && ALLOC.is_kind(&kind.name))
    }

    pub fn for_estimates(is_estimate: bool) -> AmountFormat {
        AmountFormat { is_estimate }
    }

    pub fn round_amount(self, amount: u64) -> u64 {
        match self.is_estimate {
            true => round_estimate(amount),
            false => amount,
        }
    }

    pub fn format_amount(self, amount: u64, unit: &str) -> String {
        match (self.is_estimate, unit) {
            (true, "bytes") => format_estimated_bytes(amount),
            _ => format_amount(self.round_amount(amount) as f64, unit),
        }
    }

    pub fn format_count(self, count: u64) -> String {
        grouped(self.round_amount(count))
    }
}

/// Formats an amount with its sign, also `+`.
pub fn format_change(amount: f64, unit: &str) -> String {
    let plus = if amount > 0.0 { "+" } else { "" };
    format!("{plus}{}", format_amount(amount, unit))
}

/// Formats a growth in percent or as a factor; `new` if the old amount is zero.
pub fn format_growth(old: f64, new: f64) -> String {
    match old {
        0.0 if new == 0.0 => "0%".to_owned(),
        0.0 => "new".to_owned(),
        // A percentage of more than four digits is hard to read.
        old if new / old >= 100.0 => format!("{} times", grouped((new / old).round() as u64)),
        old => {
            let percent = (new - old) / old * 100.0;
            let plus = if percent > 0.0 { "+" } else { "" };
            format!("{plus}{percent:.1}%")
        }
    }
}

/// `is_estimate`: amounts of hundreds have no decimals.
fn format_bytes(size: f64, is_estimate: bool) -> String {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let mut shown = size;
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if shown < 1000.0 {
            break;
        }
        (shown, unit) = (shown / 1000.0, larger);
    }
    match unit {
        "bytes" if shown == 1.0 => "1 byte".to_owned(),
        "bytes" => format!("{} bytes", format_number(shown)),
        unit if shown < 10.0 => format!("{shown:.2} {unit}"),
        unit if shown >= 100.0 && is_estimate => format!("{shown:.0} {unit}"),
        unit => format!("{shown:.1} {unit}"),
    }
}

fn format_nanos(nanos: f64) -> String {
    let seconds = nanos / 1e9;
    let whole = seconds.round() as u64;
    match seconds {
        _ if seconds >= 3600.0 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ if seconds >= 60.0 => format!("{} min {} s", whole / 60, whole % 60),
        _ if seconds >= 1.0 => format!("{seconds:.2} s"),
        _ if nanos >= 1e6 => format!("{:.1} ms", nanos / 1e6),
        _ if nanos >= 1e3 => format!("{:.1} µs", nanos / 1e3),
        _ => format!("{} ns", format_number(nanos)),
    }
}

fn format_number(size: f64) -> String {
    match size.fract() == 0.0 && size < 9e15 {
        true => grouped(size as u64),
        false if size < 10.0 => format!("{size:.3}"),
        false => format!("{size:.1}"),
    }
}

#[cfg(test)]
mod amounts_tests {
    use super::*;

    #[test]
    fn amounts_are_formatted_with_readable_units() {
        let cases = [
            (0.0, "bytes", "0 bytes"),
            (999.0, "bytes", "999 bytes"),
            (4_200_000_000.0, "bytes", "4.20 GB"),
            (68_900_000.0, "bytes", "68.9 MB"),
            (-1500.0, "bytes", "-1.50 kB"),
            (87e9, "ns", "1 min 27 s"),
            (7260e9, "ns", "2 h 1 min"),
            (1.5e9, "ns", "1.50 s"),
            (2_500.0, "ns", "2.5 µs"),
            (12_345.0, "", "12,345"),
            (0.25, "", "0.250"),
            (7.0, "rows", "7 rows"),
        ];
        for (amount, unit, text) in cases {
            assert_eq!(format_amount(amount, unit), text);
        }
    }

    #[test]
    fn estimates_have_three_digits() {
        for (amount, rounded) in [
            (0, 0),
            (7, 7),
            (999, 999),
            (1_234, 1_230),
            (1_235, 1_240),
            (9_996, 10_000),
            (123_456_789, 123_000_000),
            (u64::MAX, 18_400_000_000_000_000_000),
        ] {
            assert_eq!(round_estimate(amount), rounded);
        }
        for (bytes, text) in [
            (0, "0 bytes"),
            (812, "812 bytes"),
            (1_239, "1.24 kB"),
            (12_345, "12.3 kB"),
            (144_499, "144 kB"),
            (999_600, "1.00 MB"),
        ] {
            assert_eq!(format_estimated_bytes(bytes), text);
        }
    }

    #[test]
    fn exact_amounts_keep_their_digits() {
        let [exact, estimated] = [false, true].map(|is_estimate| AmountFormat { is_estimate });
        for (format, count, bytes, value) in [
            (exact, "1,234,567", "144.5 kB", "98,765 rows"),
            (estimated, "1,230,000", "144 kB", "98,800 rows"),
        ] {
            assert_eq!(format.format_count(1_234_567), count);
            assert_eq!(format.format_amount(144_499, "bytes"), bytes);
            assert_eq!(format.format_amount(98_765, "rows"), value);
        }
    }

    #[test]
    fn changes_have_signs() {
        assert_eq!(format_change(5.0, ""), "+5");
        assert_eq!(format_change(-5.0, ""), "-5");
        assert_eq!(format_growth(100.0, 107.2), "+7.2%");
        assert_eq!(format_growth(100.0, 50.0), "-50.0%");
        assert_eq!(format_growth(1.0, 99.9), "+9890.0%");
        assert_eq!(format_growth(264.0, 1_080_264.0), "4,092 times");
        assert_eq!(format_growth(0.0, 1.0), "new");
    }
}
