//! Warnings and errors in the log, because a reader of the log may not have seen standard error. Their number and
//! length are limited to save space in the log.

use std::sync::atomic::{AtomicU32, Ordering};

use lucce_tracelog::WarningRecord;

const MAX_WARNINGS: u32 = 100;
const MAX_WARNING_BYTES: usize = 500;

/// The number of warnings so far.
#[derive(Default)]
pub struct LoggedWarnings(AtomicU32);

impl LoggedWarnings {
    /// The record for a warning. `None`: the log has enough warnings.
    pub fn admit_warning<'t>(&self, text: &'t str) -> Option<WarningRecord<'t>> {
        // Relaxed: a statistic; no other memory depends on it.
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let text = match before {
            ..MAX_WARNINGS => truncate_text(text).into(),
            MAX_WARNINGS => "more warnings went to standard error".into(),
            _ => {
                // Never wraps around to the first values.
                self.0.store(MAX_WARNINGS + 1, Ordering::Relaxed);
                return None;
            }
        };
        Some(WarningRecord { text })
    }
}

fn truncate_text(text: &str) -> &str {
    let mut end = text.len().min(MAX_WARNING_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod warnings_tests {
    use super::*;

    #[test]
    fn warnings_are_few_and_short() {
        let warnings = LoggedWarnings::default();
        let long = "é".repeat(MAX_WARNING_BYTES);
        let first = warnings.admit_warning(&long).unwrap();
        assert_eq!(first.text, "é".repeat(MAX_WARNING_BYTES / 2));
        assert_eq!(
            warnings.admit_warning("a warning").unwrap().text,
            "a warning"
        );
        let rest: Vec<_> = (0..1000)
            .filter_map(|_| warnings.admit_warning("w"))
            .collect();
        assert_eq!(rest.len() as u32, MAX_WARNINGS - 2 + 1);
        assert!(rest.last().unwrap().text.starts_with("more"));
    }
}
