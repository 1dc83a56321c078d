//! Chooses the events that `verify=N` compares: every N-th of the run, without memory that threads share for writing.
//!
//! Each thread counts its own events down from a number between 1 and N. The first such numbers are a sequence that
//! fills the range evenly (a Weyl sequence of the golden ratio). A thread that ends leaves the rest of its countdown
//! to a thread that begins. So a run of M events has M / N comparisons, plus or minus one for each thread that lived
//! at the same time. This holds however few events each thread has.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use rustc_hash::FxHashMap;

use crate::memory::locks::WatchedMutex;

/// The fractional part of the golden ratio, times 2⁶⁴.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A thread's events until the next comparison. Only that thread writes; others read.
#[derive(Debug)]
#[repr(C)]
pub struct VerifyCountdown {
    /// Java code counts it down as well.
    left: AtomicI32,
    /// The value of `left` when the thread began.
    first: i32,
    /// The number of times that the countdown reached zero.
    compared: AtomicU64,
}

impl VerifyCountdown {
    /// `first`: the first event to compare, counted from 1.
    pub fn new(first: u32) -> VerifyCountdown {
        let first = i32::try_from(first).unwrap_or(i32::MAX);
        VerifyCountdown {
            left: AtomicI32::new(first),
            first,
            compared: AtomicU64::new(0),
        }
    }

    /// Counts one event of the current thread. Returns whether to compare it. `interval`: N; 0: compare none.
    pub fn count_event(&self, interval: u32) -> bool {
        // Relaxed, here and below: each value is used by itself, and only the current thread writes.
        let must = interval > 0 && self.left.fetch_sub(1, Ordering::Relaxed) <= 1;
        if must {
            self.restart(interval);
        }
        must
    }

    /// Restarts the countdown: the current event is compared, and the next one comes `interval` events later.
    pub fn restart(&self, interval: u32) {
        self.left.store(interval as i32, Ordering::Relaxed);
        let reached = self.compared.load(Ordering::Relaxed);
        self.compared.store(reached + 1, Ordering::Relaxed);
    }

    fn sum_events(&self, interval: u32) -> VerifySums {
        let reached = self.compared.load(Ordering::Relaxed);
        let rest = i64::from(self.first) - i64::from(self.left.load(Ordering::Relaxed));
        let events = (reached * u64::from(interval)).saturating_add_signed(rest);
        VerifySums {
            events,
            threads: u64::from(events > 0),
            threads_not_compared: u64::from(events > 0 && reached == 0),
        }
    }
}

/// Numbers of events and threads from which comparisons were chosen.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct VerifySums {
    /// Events of which every N-th was chosen.
    pub events: u64,
    /// Threads with such events.
    pub threads: u64,
    /// Threads of which no event was chosen; included in `threads`.
    pub threads_not_compared: u64,
}

impl VerifySums {
    fn add_sums(&mut self, more: VerifySums) {
        self.events += more.events;
        self.threads += more.threads;
        self.threads_not_compared += more.threads_not_compared;
    }
}

/// The schedule of a run.
pub struct VerifySchedule {
    /// `N`; 0: nothing is compared.
    interval: u32,
    threads: WatchedMutex<ScheduledThreads>,
}

#[derive(Default, Debug)]
struct ScheduledThreads {
    /// Rests of countdowns of ended threads that no other thread has continued.
    left: Vec<u32>,
    /// The number of countdowns that continued no other.
    fresh: u64,
    /// Sums of ended threads.
    ended: VerifySums,
    /// Countdowns that other threads may read, by address.
    shared: FxHashMap<usize, Arc<VerifyCountdown>>,
}

impl ScheduledThreads {
    fn end_thread(&mut self, countdown: &VerifyCountdown, interval: u32) {
        if interval == 0 {
            return;
        }
        let left = countdown.left.load(Ordering::Relaxed);
        let left = u32::try_from(left).unwrap_or(0).clamp(1, interval);
        self.left.push(left);
        self.ended.add_sums(countdown.sum_events(interval));
    }
}

impl VerifySchedule {
    pub fn new(interval: u32) -> VerifySchedule {
        VerifySchedule {
            interval,
            threads: WatchedMutex::default(),
        }
    }

    /// The countdown of a thread that begins.
    pub fn begin_thread(&self) -> VerifyCountdown {
        if self.interval == 0 {
            return VerifyCountdown::new(0);
        }
        let mut threads = self.lock_threads();
        let first = threads.left.pop().unwrap_or_else(|| {
            let part = threads.fresh.wrapping_mul(GOLDEN);
            threads.fresh += 1;
            let scaled = u128::from(part) * u128::from(self.interval);
            (scaled >> 64) as u32 + 1
        });
        VerifyCountdown::new(first)
    }

    /// Like [`begin_thread`](VerifySchedule::begin_thread), for a thread that is in no other list.
    pub fn begin_shared(&self) -> Arc<VerifyCountdown> {
        let countdown = Arc::new(self.begin_thread());
        if self.interval > 0 {
            let key = Arc::as_ptr(&countdown).addr();
            self.lock_threads()
                .shared
                .insert(key, Arc::clone(&countdown));
        }
        countdown
    }

    /// Like [`end_thread`](VerifySchedule::end_thread), for a countdown from `begin_shared`.
    pub fn end_shared(&self, countdown: &Arc<VerifyCountdown>) {
        let mut threads = self.lock_threads();
        threads.end_thread(countdown, self.interval);
        let key = Arc::as_ptr(countdown).addr();
        threads.shared.remove(&key);
    }

    /// Ends a thread's countdown. A thread that begins later continues it.
    pub fn end_thread(&self, countdown: &VerifyCountdown) {
        self.lock_threads().end_thread(countdown, self.interval);
    }

    /// Sums of ended and live threads. `living`: the countdowns that are not shared. None of their threads ends
    /// meanwhile.
    pub fn sum_threads<'c>(&self, living: impl Iterator<Item = &'c VerifyCountdown>) -> VerifySums {
        let threads = self.lock_threads();
        let mut sums = threads.ended;
        living.for_each(|countdown| sums.add_sums(countdown.sum_events(self.interval)));
        for countdown in threads.shared.values() {
            sums.add_sums(countdown.sum_events(self.interval));
        }
        sums
    }

    fn lock_threads(&self) -> MutexGuard<'_, ScheduledThreads> {
        self.threads.lock()
    }
}

#[cfg(test)]
mod verify_schedule_tests {
    use super::*;

    /// The number of a thread's events that are compared.
    fn run_thread(schedule: &VerifySchedule, events: u64, interval: u32) -> u64 {
        let countdown = schedule.begin_thread();
        let compared = (0..events).filter(|_| countdown.count_event(interval));
        let compared = compared.count() as u64;
        schedule.end_thread(&countdown);
        compared
    }

    #[test]
    fn threads_with_few_events_are_compared_as_often_as_one_with_many() {
        for interval in [1, 2, 7, 1000, 400_000] {
            let schedule = VerifySchedule::new(interval);
            let compared: u64 = (0..16_000)
                .map(|_| run_thread(&schedule, 51, interval))
                .sum();
            let wanted = 16_000 * 51 / u64::from(interval);
            assert!(compared.abs_diff(wanted) <= 1, "{interval}: {compared}");
            let sums = schedule.sum_threads([].into_iter());
            assert_eq!((sums.events, sums.threads), (16_000 * 51, 16_000));
            let least = 16_000_u64.saturating_sub(compared);
            assert!(sums.threads_not_compared >= least, "{interval}: {sums:?}");
            assert_eq!(run_thread(&schedule, 0, interval), 0);
            assert_eq!(schedule.sum_threads([].into_iter()).threads, 16_000);
        }
    }

    #[test]
    fn threads_that_live_at_once_are_compared_as_often() {
        let interval = 1000;
        let schedule = VerifySchedule::new(interval);
        let living: Vec<_> = (0..16_000).map(|_| schedule.begin_thread()).collect();
        let events = |thread: usize| [3, 51, 99][thread % 3];
        let mut compared = 0_u64;
        for (thread, countdown) in living.iter().enumerate() {
            let each = (0..events(thread)).filter(|_| countdown.count_event(interval));
            compared += each.count() as u64;
        }
        let sums = schedule.sum_threads(living.iter());
        let all: u64 = (0..living.len()).map(events).sum();
        assert_eq!((sums.events, sums.threads), (all, 16_000));
        assert_eq!(sums.threads_not_compared, 16_000 - compared);
        let wanted = all / u64::from(interval);
        assert!(
            compared.abs_diff(wanted) <= wanted / 20,
            "{compared} of {wanted}"
        );
    }

    #[test]
    fn threads_that_no_list_knows_are_in_the_sums() {
        let schedule = VerifySchedule::new(10);
        let [one, other] = [schedule.begin_shared(), schedule.begin_shared()];
        let compared = (0..25).filter(|_| one.count_event(10)).count();
        assert_eq!(compared, 3);
        let sums = || {
            let sums = schedule.sum_threads([].into_iter());
            (sums.events, sums.threads, sums.threads_not_compared)
        };
        assert_eq!(sums(), (25, 1, 0));
        assert!(!other.count_event(10));
        assert_eq!(sums(), (26, 2, 1));
        schedule.end_shared(&one);
        schedule.end_shared(&other);
        assert_eq!(sums(), (26, 2, 1));
        assert!(schedule.lock_threads().shared.is_empty());
    }

    #[test]
    fn every_event_is_compared_if_that_is_wanted_and_none_if_not() {
        let all = VerifySchedule::new(1);
        assert_eq!(run_thread(&all, 100, 1), 100);
        assert_eq!(all.sum_threads([].into_iter()).threads_not_compared, 0);
        let none = VerifySchedule::new(0);
        assert_eq!(run_thread(&none, 100, 0), 0);
        assert_eq!(none.sum_threads([].into_iter()), VerifySums::default());
    }
}
