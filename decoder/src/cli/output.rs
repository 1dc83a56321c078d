//! Standard output, and how numbers and JSON look.

use std::io::{self, BufWriter, StdoutLock, Write};

use lucce_decoder::escape;
pub use lucce_replay::grouped;
use serde::Serialize;

pub fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// One line of JSON.
pub fn json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    escape::json(out, value)?;
    writeln!(out)
}

/// `1 object`, `2 objects`.
pub fn plural(number: u64, thing: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {thing}{s}", grouped(number))
}

pub fn percent(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 * 100.0 / whole as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        let texts = [0, 12, 123, 1234, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "12", "123", "1,234", "1,234,567"]);
        assert_eq!(plural(1, "node"), "1 node");
        assert_eq!(plural(1000, "node"), "1,000 nodes");
    }
}
