//! Numbers as text.

/// 1234567 is `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 object`, `2 objects`, `2 classes`.
#[must_use]
pub fn format_plural(number: u64, thing: &str) -> String {
    let is_consonant = |before: &str| !before.ends_with(['a', 'e', 'i', 'o', 'u']);
    let stem = thing
        .strip_suffix('y')
        .filter(|before| is_consonant(before));
    let (stem, ending) = match (number, stem) {
        (1, _) => (thing, ""),
        (_, Some(stem)) => (stem, "ies"),
        _ if thing.ends_with('s') => (thing, "es"),
        _ => (thing, "s"),
    };
    format!("{} {stem}{ending}", grouped(number))
}

/// The part in percent; 0 of nothing.
#[must_use]
pub fn percent_of(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 * 100.0 / whole as f64,
    }
}

#[cfg(test)]
mod numbers_tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        let texts = [0, 12, 123, 1234, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "12", "123", "1,234", "1,234,567"]);
        assert_eq!(format_plural(1, "node"), "1 node");
        assert_eq!(format_plural(1000, "node"), "1,000 nodes");
        assert_eq!(format_plural(0, "class"), "0 classes");
        assert_eq!(format_plural(2, "entry"), "2 entries");
        assert_eq!(format_plural(2, "day"), "2 days");
    }
}
