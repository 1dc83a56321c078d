//! `burst=ON/PERIOD`: the part of each period during which events are counted.

use std::time::Duration;

use crate::{OptionError, units};

/// The option's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BurstOptions {
    /// Counting time at the beginning of each period.
    pub on: Duration,
    pub period: Duration,
    /// The value as written.
    pub text: String,
}

/// No sleep is more precise.
const SHORTEST: Duration = Duration::from_micros(50);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl BurstOptions {
    /// Parses `0.2ms/2ms`; see [`units::parse_duration`].
    ///
    /// # Errors
    /// The value is malformed, or events would never or always be counted.
    pub fn parse(text: &str) -> Result<BurstOptions, OptionError> {
        let bad = |why: &str| {
            OptionError(format!(
                "option burst={text} is malformed: expected {why}, such as 0.2ms/2ms"
            ))
        };
        let (on, period) = text.split_once('/').ok_or_else(|| bad("ON/PERIOD"))?;
        let both =
            units::parse_duration(on).and_then(|on| Ok((on, units::parse_duration(period)?)));
        let (on, period) = both.map_err(|_| bad("two times"))?;
        if on >= period {
            return Err(bad("a burst that is shorter than its period"));
        }
        if on < SHORTEST || period - on < SHORTEST {
            return Err(bad("bursts and pauses of at least 50us"));
        }
        if period > LONGEST {
            return Err(bad("a period of a day at most"));
        }
        let text = text.to_owned();
        Ok(BurstOptions { on, period, text })
    }
}

#[cfg(test)]
mod burst_tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, on, period) in [
            ("0.2ms/2ms", 200, 2_000),
            ("200us/.5s", 200, 500_000),
            ("1s/24s", 1_000_000, 24_000_000),
        ] {
            let burst = BurstOptions::parse(text).unwrap();
            let (on, period) = (Duration::from_micros(on), Duration::from_micros(period));
            assert_eq!((burst.on, burst.period), (on, period));
            assert_eq!(burst.text, text);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for (bad, why) in [
            ("", "ON/PERIOD"),
            ("2ms", "ON/PERIOD"),
            ("-1ms/2ms", "two times"),
            ("1e3us/2s", "two times"),
            ("infs/2s", "two times"),
            ("ms/2ms", "two times"),
            ("1ms/2ms/3ms", "two times"),
            ("2ms/2ms", "shorter than its period"),
            ("3ms/2ms", "shorter than its period"),
            ("0ms/2ms", "at least 50us"),
            ("1.99ms/2ms", "at least 50us"),
            ("1s/90000s", "a day"),
            ("1s/99999999999999999999999s", "two times"),
        ] {
            let error = BurstOptions::parse(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
