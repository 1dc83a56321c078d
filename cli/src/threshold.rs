//! The options `--min-share` and `--min-value`: sum up small contexts in one line. Also announces large outputs.

use lucce_decoder::StackFrame;
use lucce_options::units::parse_size;

use super::output::{format_plural, grouped};
use super::print_diagnostic;

/// What is too small to be shown by itself.
#[derive(clap::Args, Default)]
pub struct ThresholdArgs {
    /// Sum up contexts below this percentage of all in one line
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    min_share: Option<f64>,
    /// Sum up contexts below this value (64k, 1m), or number of events, in one line
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    min_value: Option<u64>,
}

/// Outputs below 256 MB are not announced.
const LARGE: u64 = 256 << 20;

impl ThresholdArgs {
    pub fn is_set(&self) -> bool {
        self.min_share.is_some() || self.min_value.is_some()
    }

    /// The minimum amount of `whole` that is shown by itself.
    pub fn min_amount(&self, whole: u64) -> u64 {
        let share = self.min_share.unwrap_or_default();
        let by_share = (whole as f64 * share / 100.0).ceil() as u64;
        by_share.max(self.min_value.unwrap_or_default())
    }

    /// Whether a context with `value` of `whole` is shown by itself.
    pub fn admits(&self, value: u64, whole: u64) -> bool {
        let share = super::output::percent_of(value, whole);
        self.min_share.is_none_or(|least| share >= least)
            && self.min_value.is_none_or(|least| value >= least)
    }
}

/// Announces the size of traces, and how to reduce it. `is_packed`: the file will be smaller.
pub fn warn_if_traces_are_large(bytes: u64, traces: u64, is_packed: bool) {
    let traces = format_plural(traces, "trace");
    let packed = match is_packed {
        true => ", packed, which takes less in the file and not in its readers",
        false => "",
    };
    let less = "--min-share 0.1 sums up what makes less than 0.1%";
    warn_if_large(bytes, &format!("{traces}{packed}; {less}"));
}

/// Announces the size of an output, `what` in words, and how to reduce it.
pub fn warn_if_large(bytes: u64, what: &str) {
    if bytes >= LARGE {
        let megabytes = grouped(bytes / 1_000_000);
        print_diagnostic(format_args!("about {megabytes} MB will be written: {what}"));
    }
}

/// Approximate bytes of a frame in a list.
pub fn estimate_frame_bytes(frame: &StackFrame, as_json: bool) -> u64 {
    match as_json {
        true => serde_json::to_string(frame).map_or(0, |text| text.len() as u64 + 1),
        false => frame.to_string().len() as u64 + "\tat \n".len() as u64,
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').parse::<f64>().ok();
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| "a percentage is a number from 0 to 100".to_owned())
}

#[cfg(test)]
mod threshold_tests {
    use super::*;

    #[test]
    fn thresholds_are_read() {
        assert_eq!(
            ["0.5", "0.5%", "100"].map(|text| parse_percent(text).unwrap()),
            [0.5, 0.5, 100.0]
        );
        assert!(
            ["", "-1", "101", "NaN"]
                .iter()
                .all(|text| parse_percent(text).is_err())
        );
    }

    #[test]
    fn both_must_be_reached() {
        let both = ThresholdArgs {
            min_share: Some(10.0),
            min_value: Some(50),
        };
        assert!(both.admits(50, 500) && !both.admits(49, 100) && !both.admits(60, 1000));
        assert!(ThresholdArgs::default().admits(0, 0) && !ThresholdArgs::default().is_set());
    }
}
