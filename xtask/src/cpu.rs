//! CPU time of the processes that this one has started: it tells what a step costs, however busy the machine is.

use std::fs;
use std::time::Duration;

/// Of all that have ended, with their own children.
pub fn of_children() -> Duration {
    fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|stat| parse(&stat))
        .unwrap_or_default()
}

/// `PID (NAME) STATE …`: the fields `cutime` and `cstime`, in hundredths of a second.
fn parse(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(13);
    let mut hundredths = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (hundredths()? + hundredths()?)))
}

#[cfg(test)]
mod cpu_tests {
    use super::*;

    #[test]
    fn names_may_hold_anything() {
        let stat = "12 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 500 600 150 25 20 0 1 0 999";
        assert_eq!(parse(stat), Some(Duration::from_millis(1750)));
    }
}
