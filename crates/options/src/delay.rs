//! `delay=TIME` and `delay=ready`: when counting begins.

use std::time::Duration;

use crate::{OptionError, units};

/// The option's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartDelay {
    /// After this time.
    Time(Duration),
    /// When the program calls `CallContext.ready()`, or receives its first request.
    Ready,
}

const READY: &str = "ready";
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

impl StartDelay {
    /// Parses `30s` or `ready`; see [`units::parse_duration`].
    ///
    /// # Errors
    /// It is neither a time of a week at most nor `ready`.
    pub fn parse(text: &str) -> Result<StartDelay, OptionError> {
        if text == READY {
            return Ok(StartDelay::Ready);
        }
        let time = units::parse_duration(text).ok();
        let time = time.filter(|time| !time.is_zero() && *time <= LONGEST);
        time.map(StartDelay::Time).ok_or_else(|| {
            OptionError(format!(
                "option delay={text} is malformed: expected a time of a week at most, such as 30s, or {READY}"
            ))
        })
    }

    /// The value as it is written.
    #[must_use]
    pub fn to_text(self) -> String {
        match self {
            StartDelay::Time(time) => units::format_duration(time),
            StartDelay::Ready => READY.to_owned(),
        }
    }
}

#[cfg(test)]
mod delay_tests {
    use super::*;

    #[test]
    fn a_delay_is_a_time_or_a_call() {
        assert_eq!(StartDelay::parse("ready"), Ok(StartDelay::Ready));
        let half = StartDelay::Time(Duration::from_millis(1500));
        assert_eq!(StartDelay::parse("1.5s"), Ok(half));
        assert_eq!(StartDelay::parse(&half.to_text()), Ok(half));
        for wrong in ["", "0s", "8d", "soon", "-1s"] {
            let message = StartDelay::parse(wrong).unwrap_err().to_string();
            assert!(message.contains("such as 30s"), "{wrong}: {message}");
        }
    }
}
