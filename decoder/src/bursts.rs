//! Bursts: the part of a run's time during which events were counted.

use std::fmt;

use serde::Serialize;

use crate::profile::Profile;
use crate::recorded_options::read_recorded_options;

/// Result of the agent's option `burst=ON/PERIOD`. Counts are of the bursts only, without scaling.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BurstSummary {
    /// `ON/PERIOD`
    #[serde(rename = "asked")]
    pub option_value: String,
    /// Measured times; `None`: the JVM was killed or still runs.
    pub measured: Option<BurstMeasurement>,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct BurstMeasurement {
    pub bursts: u64,
    /// Nanoseconds during which events were counted.
    pub open: u64,
    /// Nanoseconds from the VM's initialization to its end.
    pub of: u64,
    /// The first time as a percentage of the second.
    pub share: f64,
}

/// The run's bursts. `None`: events were counted all the time.
#[must_use]
pub fn summarize_bursts(profile: &Profile) -> Option<BurstSummary> {
    let option_value = profile.meta.get("burst")?.clone();
    let of = profile.stat_value("bursts.of_ns");
    let open = profile.stat_value("bursts.open_ns");
    let measured = (of > 0).then(|| BurstMeasurement {
        bursts: profile.stat_value("bursts"),
        open,
        of,
        share: 100.0 * open as f64 / of as f64,
    });
    Some(BurstSummary {
        option_value,
        measured,
    })
}

/// When counting began, if the run had a delay (agent option `delay=`).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CountingDelay {
    /// The option's value: a time, or `ready`.
    pub delay: String,
    /// Milliseconds after the start; `None`: counting did not begin.
    pub began_ms: Option<u64>,
}

/// The run's delay. `None`: events were counted from the start.
#[must_use]
pub fn read_counting_delay(profile: &Profile) -> Option<CountingDelay> {
    let delay = read_recorded_options(profile)?.delay?;
    Some(CountingDelay {
        delay: delay.to_text(),
        began_ms: profile.stats.get("counting.began_ms").copied(),
    })
}

impl fmt::Display for CountingDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.began_ms {
            Some(millis) => write!(
                f,
                "counted from {:.1} s after the start on (delay={})",
                millis as f64 / 1e3,
                self.delay
            ),
            None => write!(
                f,
                "nothing was counted: the delay did not end (delay={})",
                self.delay
            ),
        }
    }
}

impl fmt::Display for BurstSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "counted in bursts (burst={}) only", self.option_value)?;
        match self.measured {
            Some(measured) => write!(
                f,
                ", during {:.1}% of the run; counts are not scaled",
                measured.share
            ),
            None => f.write_str("; counts are not scaled"),
        }
    }
}

#[cfg(test)]
mod bursts_tests {
    use super::*;

    #[test]
    fn unknown_times_are_not_printed() {
        let mut bursts = BurstSummary {
            option_value: "1ms/4ms".into(),
            measured: None,
        };
        let text = "counted in bursts (burst=1ms/4ms) only; counts are not scaled";
        assert_eq!(bursts.to_string(), text);
        bursts.measured = Some(BurstMeasurement {
            bursts: 3,
            open: 5,
            of: 16,
            share: 31.25,
        });
        let text = bursts.to_string();
        assert!(text.contains("during 31.2% of the run"), "{text}");
    }
}
