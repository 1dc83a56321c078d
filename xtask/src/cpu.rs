//! CPU time of the processes that this one has started: it tells what a step costs, however busy the machine is.

use std::fs;
use std::time::Duration;

/// Of all that have ended, with their own children.
pub fn of_children() -> Duration {
    fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|stat| parse(&stat, 13))
        .unwrap_or_default()
}

/// Of a process that goes on, without its children.
pub fn of_process(id: u32) -> Duration {
    fs::read_to_string(format!("/proc/{id}/stat"))
        .ok()
        .and_then(|stat| parse(&stat, 11))
        .unwrap_or_default()
}

/// `PID (NAME) STATE …`: the fields `utime` and `stime` behind 11 others, or `cutime` and `cstime` behind 13, in hundredths of a second.
fn parse(stat: &str, others: usize) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(others);
    let mut hundredths = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (hundredths()? + hundredths()?)))
}

#[cfg(test)]
mod cpu_tests {
    use super::*;

    #[test]
    fn names_may_hold_anything() {
        let stat = "12 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 500 600 150 25 20 0 1 0 999";
        assert_eq!(parse(stat, 13), Some(Duration::from_millis(1750)));
        assert_eq!(parse(stat, 11), Some(Duration::from_millis(11_000)));
    }
}
