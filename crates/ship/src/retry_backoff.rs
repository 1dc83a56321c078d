//! Delays before retries, so that a server that was down is not overloaded by its clients.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// Returns a random delay between half of `delay` and `delay`: clients that failed together do not return together.
#[must_use]
pub fn add_jitter(delay: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) as u32;
    delay.mul_f64(0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX))
}

/// The retries of one sender.
#[derive(Clone, Debug)]
pub struct RetryBackoff {
    delay: Duration,
}

impl RetryBackoff {
    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);
    /// A longer delay requested by a server is shortened to this.
    const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);
    /// A shorter delay requested by a server is extended to this.
    const MIN_RETRY_AFTER: Duration = Duration::from_millis(100);

    /// Resets the delay after a success.
    pub fn reset_delay(&mut self) {
        *self = RetryBackoff::default();
    }

    /// Returns the delay after a failure: the requested one, else twice the previous one, at most a minute.
    pub fn next_delay(&mut self, retry_after: Option<Duration>) -> Duration {
        let delay = self.delay;
        self.delay = Self::LONGEST.min(delay * 2);
        retry_after.map_or_else(
            || add_jitter(delay),
            |retry_after| retry_after.clamp(Self::MIN_RETRY_AFTER, Self::MAX_RETRY_AFTER),
        )
    }
}

impl Default for RetryBackoff {
    fn default() -> Self {
        RetryBackoff { delay: Self::FIRST }
    }
}

#[cfg(test)]
mod retry_backoff_tests {
    use super::*;

    #[test]
    fn delays_differ_and_stay_in_bounds() {
        let second = Duration::from_secs(1);
        let delays: Vec<_> = (0..50).map(|_| add_jitter(second)).collect();
        assert!(
            delays
                .iter()
                .all(|delay| (second / 2..=second).contains(delay))
        );
        assert!(delays.iter().any(|delay| *delay != delays[0]));
    }

    #[test]
    fn they_become_longer_until_it_goes_well() {
        let mut pace = RetryBackoff::default();
        let longest = (0..20).map(|_| pace.next_delay(None)).max().unwrap();
        assert!((RetryBackoff::LONGEST / 2..=RetryBackoff::LONGEST).contains(&longest));
        assert_eq!(
            pace.next_delay(Some(Duration::from_secs(7))),
            Duration::from_secs(7)
        );
        assert_eq!(
            pace.next_delay(Some(Duration::MAX)),
            RetryBackoff::MAX_RETRY_AFTER
        );
        assert_eq!(
            pace.next_delay(Some(Duration::ZERO)),
            RetryBackoff::MIN_RETRY_AFTER
        );
        pace.reset_delay();
        assert!(pace.next_delay(None) <= RetryBackoff::FIRST);
    }
}
