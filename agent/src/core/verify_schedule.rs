//! Which events `verify=N` compares: every N-th of the run, without memory that threads write together.
//!
//! Each thread counts its own events down, from a number between 1 and N. The first such numbers are those of a sequence
//! that fills the range evenly (Weyl's, of the golden ratio), and a thread that ends leaves what is left to a thread
//! that begins. So a run of M events has M / N comparisons, give or take one for each thread of those that lived at once,
//! however few events each thread has.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use rustc_hash::FxHashMap;

use crate::memory::locks::WatchedMutex;

/// The golden ratio's part behind the point, times 2⁶⁴.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A thread's events until the next comparison. Only that thread counts; others read.
#[derive(Debug)]
#[repr(C)]
pub struct VerifyCountdown {
    /// Java code counts it down, too.
    left: AtomicI32,
    /// What `left` was when the thread began.
    first: i32,
    /// How often the count reached zero.
    compared: AtomicU64,
}

impl VerifyCountdown {
    /// `first`: the event that is compared first, counted from 1.
    pub fn new(first: u32) -> VerifyCountdown {
        let first = i32::try_from(first).unwrap_or(i32::MAX);
        VerifyCountdown {
            left: AtomicI32::new(first),
            first,
            compared: AtomicU64::new(0),
        }
    }

    /// One more event of the current thread: whether it is the one to compare, of `interval` events; 0: none is.
    pub fn count_event(&self, interval: u32) -> bool {
        // Relaxed, here and below: each number stands for itself, and only the current thread writes.
        let must = interval > 0 && self.left.fetch_sub(1, Ordering::Relaxed) <= 1;
        if must {
            self.restart(interval);
        }
        must
    }

    /// The current thread's event is the one to compare: the next one comes `interval` events later.
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

/// Of how many events some were compared.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct VerifySums {
    /// Events of which every N-th was to be compared.
    pub events: u64,
    /// Threads with such events.
    pub threads: u64,
    /// Of them, those no event of which was to be compared.
    pub threads_not_compared: u64,
}

impl VerifySums {
    fn add_sums(&mut self, more: VerifySums) {
        self.events += more.events;
        self.threads += more.threads;
        self.threads_not_compared += more.threads_not_compared;
    }
}

/// Of a run.
pub struct VerifySchedule {
    /// `N`; 0: nothing is compared.
    interval: u32,
    threads: WatchedMutex<ScheduledThreads>,
}

#[derive(Default, Debug)]
struct ScheduledThreads {
    /// What was left of the countdowns of threads that ended, and that no thread goes on with.
    left: Vec<u32>,
    /// How many countdowns went on with no other.
    fresh: u64,
    /// Of the threads that ended.
    ended: VerifySums,
    /// Countdowns that others may read, by address.
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

    /// As [`begin_thread`](VerifySchedule::begin_thread), for a thread that no other list knows.
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

    /// As [`end_thread`](VerifySchedule::end_thread), for what `begin_shared` made.
    pub fn end_shared(&self, countdown: &Arc<VerifyCountdown>) {
        let mut threads = self.lock_threads();
        threads.end_thread(countdown, self.interval);
        let key = Arc::as_ptr(countdown).addr();
        threads.shared.remove(&key);
    }

    /// The countdown of a thread that ends: a thread that begins later goes on with it.
    pub fn end_thread(&self, countdown: &VerifyCountdown) {
        self.lock_threads().end_thread(countdown, self.interval);
    }

    /// Of the threads that ended, and of those that live: `living` are the countdowns that are not shared. No thread of
    /// theirs ends meanwhile.
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

    /// How many of a thread's events are compared.
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
