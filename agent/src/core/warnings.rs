//! What was said as a warning or an error is in the log as well, for a reader of the log may not have seen standard error. A few
//! of them, each cut off: a log has better use for its bytes.

use std::sync::atomic::{AtomicU32, Ordering};

use lucce_tracelog::Warning;

const MOST: u32 = 100;
const LONGEST: usize = 500;

/// How many there were.
#[derive(Default)]
pub struct Warnings(AtomicU32);

impl Warnings {
    /// What the log says of a warning. `None`: it has said enough.
    pub fn record<'t>(&self, text: &'t str) -> Option<Warning<'t>> {
        // Relaxed: a number, nothing is read by it.
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let text = match before {
            ..MOST => cut(text).into(),
            MOST => "more warnings went to standard error".into(),
            _ => {
                // Never wraps to the first ones.
                self.0.store(MOST + 1, Ordering::Relaxed);
                return None;
            }
        };
        Some(Warning { text })
    }
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_few_and_short() {
        let warnings = Warnings::default();
        let long = "é".repeat(LONGEST);
        let first = warnings.record(&long).unwrap();
        assert_eq!(first.text, "é".repeat(LONGEST / 2));
        assert_eq!(warnings.record("a warning").unwrap().text, "a warning");
        let rest: Vec<_> = (0..1000).filter_map(|_| warnings.record("w")).collect();
        assert_eq!(rest.len() as u32, MOST - 2 + 1);
        assert!(rest.last().unwrap().text.starts_with("more"));
    }
}
