//! Wall-clock time for file names and the log's header, elapsed time, and CPU time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Reads a clock, in nanoseconds.
#[allow(
    unsafe_code,
    reason = "a system call that the standard library does not offer"
)]
fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: fills in the structure. Every Linux has the clocks that are used here.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the time of `System.nanoTime`, in nanoseconds.
pub fn nano_time() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Returns the CPU time of this process, in nanoseconds.
pub fn cpu_time() -> u64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns the CPU time of the current thread, in nanoseconds.
pub fn thread_time() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Returns the nanoseconds since 1970.
pub fn unix_nanos() -> u64 {
    u64::try_from(since_epoch().as_nanos()).unwrap_or(0)
}

/// Returns a timestamp such as `20261121-134500`, in UTC.
pub fn utc_timestamp() -> String {
    let seconds = since_epoch().as_secs();
    let (days, day) = (seconds / 86_400, seconds % 86_400);
    let CivilDate {
        year,
        month,
        day: date,
    } = civil_date(days);
    let (hour, minute, second) = (day / 3600, day / 60 % 60, day % 60);
    format!("{year:04}{month:02}{date:02}-{hour:02}{minute:02}{second:02}")
}

/// A date of the Gregorian calendar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct CivilDate {
    year: u64,
    month: u64,
    day: u64,
}

/// Returns the date of days since 1970-01-01.
///
/// The calculation begins years in March, so that the leap day is the last day.
fn civil_date(days: u64) -> CivilDate {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    CivilDate {
        year: year + era * 400 + u64::from(month <= 2),
        month,
        day: date,
    }
}

#[cfg(test)]
mod clock_tests {
    use super::{CivilDate, civil_date};

    #[test]
    fn dates() {
        let date = |year, month, day| CivilDate { year, month, day };
        assert_eq!(civil_date(0), date(1970, 1, 1));
        assert_eq!(civil_date(59), date(1970, 3, 1));
        assert_eq!(civil_date(11_016), date(2000, 2, 29));
        assert_eq!(civil_date(20_778), date(2026, 11, 21));
    }
}
