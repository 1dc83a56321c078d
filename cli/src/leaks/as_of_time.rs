//! The time of reported data.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::output::format_plural;

/// A time of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AsOfTime {
    /// The time in UTC.
    at: String,
    /// Seconds since then. `None`: the JVM has ended.
    age_seconds: Option<u64>,
}

impl AsOfTime {
    /// The time `millis` after `start`, which is in nanoseconds since 1970. `now`: set if the JVM runs.
    pub fn new(start: u64, millis: u64, now: Option<SystemTime>) -> AsOfTime {
        let at = UNIX_EPOCH + Duration::from_nanos(start) + Duration::from_millis(millis);
        let age = now.map(|now| now.duration_since(at).unwrap_or_default());
        AsOfTime {
            at: humantime::format_rfc3339_seconds(at).to_string(),
            age_seconds: age.map(|age| age.as_secs()),
        }
    }
}

impl fmt::Display for AsOfTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, time) = self.at.split_once('T').unwrap_or_default();
        let time = time.trim_end_matches('Z');
        match self.age_seconds {
            Some(seconds) => write!(f, "as of {time} UTC, {}", format_age(seconds)),
            None => write!(f, "as of {date} {time} UTC"),
        }
    }
}

fn format_age(seconds: u64) -> String {
    match seconds {
        0 => "just now".to_owned(),
        1..=119 => format!("{} ago", format_plural(seconds, "second")),
        120..=7_199 => format!("{} ago", format_plural(seconds / 60, "minute")),
        7_200..=172_799 => format!("{} ago", format_plural(seconds / 3_600, "hour")),
        _ => format!("{} ago", format_plural(seconds / 86_400, "day")),
    }
}

#[cfg(test)]
mod as_of_time_tests {
    use super::*;

    #[test]
    fn a_time_has_its_age_as_long_as_the_jvm_runs() {
        let start = 1_795_701_000_u64;
        let as_of = |age: Option<u64>| {
            let now = age.map(|age| UNIX_EPOCH + Duration::from_secs(start + 731 + age));
            AsOfTime::new(start * 1_000_000_000, 731_000, now).to_string()
        };
        assert_eq!(as_of(None), "as of 2026-11-26 14:02:11 UTC");
        assert_eq!(as_of(Some(0)), "as of 14:02:11 UTC, just now");
        assert_eq!(as_of(Some(1)), "as of 14:02:11 UTC, 1 second ago");
        assert_eq!(as_of(Some(180)), "as of 14:02:11 UTC, 3 minutes ago");
        assert_eq!(as_of(Some(7_300)), "as of 14:02:11 UTC, 2 hours ago");
        assert_eq!(as_of(Some(200_000)), "as of 14:02:11 UTC, 2 days ago");
        // The clock was set back.
        let early = AsOfTime::new(start * 1_000_000_000, 0, Some(UNIX_EPOCH));
        assert_eq!(early.age_seconds, Some(0));
    }
}
