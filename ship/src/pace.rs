//! How long to wait: so that a server which was away is not asked by everybody at once, nor again and again.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// From half of it to all of it: those that failed together do not come back together.
#[must_use]
pub fn jittered(delay: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) as u32;
    delay.mul_f64(0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX))
}

/// Attempts of one sender.
#[derive(Clone, Debug)]
pub struct Pace {
    delay: Duration,
}

impl Pace {
    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);
    /// A server that asks for more than this is asked again earlier.
    const MOST_ASKED: Duration = Duration::from_secs(300);
    /// A server that asks for less is asked again later.
    const LEAST_ASKED: Duration = Duration::from_millis(100);

    /// It has gone well.
    pub fn well(&mut self) {
        *self = Pace::default();
    }

    /// It was in vain: how long to wait, unless the server has asked for another time. Twice as long each time, up to a minute.
    pub fn in_vain(&mut self, asked: Option<Duration>) -> Duration {
        let delay = self.delay;
        self.delay = Self::LONGEST.min(delay * 2);
        asked.map_or_else(
            || jittered(delay),
            |asked| asked.clamp(Self::LEAST_ASKED, Self::MOST_ASKED),
        )
    }
}

impl Default for Pace {
    fn default() -> Self {
        Pace { delay: Self::FIRST }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_differ_and_stay_in_bounds() {
        let second = Duration::from_secs(1);
        let delays: Vec<_> = (0..50).map(|_| jittered(second)).collect();
        assert!(
            delays
                .iter()
                .all(|delay| (second / 2..=second).contains(delay))
        );
        assert!(delays.iter().any(|delay| *delay != delays[0]));
    }

    #[test]
    fn they_become_longer_until_it_goes_well() {
        let mut pace = Pace::default();
        let longest = (0..20).map(|_| pace.in_vain(None)).max().unwrap();
        assert!((Pace::LONGEST / 2..=Pace::LONGEST).contains(&longest));
        assert_eq!(
            pace.in_vain(Some(Duration::from_secs(7))),
            Duration::from_secs(7)
        );
        assert_eq!(pace.in_vain(Some(Duration::MAX)), Pace::MOST_ASKED);
        assert_eq!(pace.in_vain(Some(Duration::ZERO)), Pace::LEAST_ASKED);
        pace.well();
        assert!(pace.in_vain(None) <= Pace::FIRST);
    }
}
