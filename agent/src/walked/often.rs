//! Whether events are so many that hooks would take less than asking the VM for stacks.
//!
//! A hook is paid for by every call, a walk of the stack by every event, and the deeper the stack the more. Where
//! the line lies depends on the program; what can be measured while it runs is the part of its CPU time that
//! walks take.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lucce_vm::clock;

use crate::counting::Counting;
use crate::memory::locks::WatchedMutex;
use crate::options::Level;

/// Of the process's CPU time, in percent: what hooks take, or more.
const LINE: u64 = 20;
/// Nanoseconds between two looks.
const WINDOW: u64 = 5_000_000_000;
/// One of so many walks is timed, by a clock that is a call of the system.
const TIMED: u64 = 8;
/// Only after so many walks the other clocks are looked at.
const BATCH: u64 = 1024;

/// What walks took so far.
static WALKS: AtomicU64 = AtomicU64::new(0);
static FRAMES: AtomicU64 = AtomicU64::new(0);
static NANOS: AtomicU64 = AtomicU64::new(0);
static TOLD: AtomicBool = AtomicBool::new(false);

/// Where the last window ended.
static LAST: WatchedMutex<Option<Sums>> = WatchedMutex::new(None);

#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Sums {
    walks: u64,
    frames: u64,
    /// Nanoseconds of CPU time in walks and of the whole process, and those that have passed.
    walking: u64,
    cpu: u64,
    time: u64,
}

/// An agent begins: what an earlier one has measured means nothing.
pub fn begins() {
    for sum in [&WALKS, &FRAMES, &NANOS] {
        sum.store(0, Ordering::Relaxed);
    }
    TOLD.store(false, Ordering::Relaxed);
    *LAST.lock() = None;
}

/// The stack of the current thread is about to be asked for: what the thread has worked until now, if this walk is timed.
pub fn begin() -> Option<u64> {
    let is_timed = WALKS.load(Ordering::Relaxed).is_multiple_of(TIMED);
    is_timed.then(clock::thread_time)
}

/// The stack was asked for, with so many frames, at `since`.
pub fn walked(counting: &Counting, frames: usize, since: Option<u64>) {
    // Relaxed: sums that nothing depends on.
    FRAMES.fetch_add(frames as u64, Ordering::Relaxed);
    if let Some(since) = since {
        let worked = clock::thread_time().saturating_sub(since);
        NANOS.fetch_add(TIMED * worked, Ordering::Relaxed);
    }
    let walks = WALKS.fetch_add(1, Ordering::Relaxed) + 1;
    if walks.is_multiple_of(BATCH) && !TOLD.load(Ordering::Relaxed) {
        look(counting, walks);
    }
}

fn look(counting: &Counting, walks: u64) {
    let now = Sums {
        walks,
        frames: FRAMES.load(Ordering::Relaxed),
        walking: NANOS.load(Ordering::Relaxed),
        cpu: clock::cpu_time(),
        time: clock::nano_time(),
    };
    let passed = {
        let mut last = LAST.lock();
        let before = *last.get_or_insert(now);
        if now.time.saturating_sub(before.time) < WINDOW {
            return;
        }
        *last = Some(now);
        now.since(before)
    };
    if let Some(text) = passed.warning()
        && !TOLD.swap(true, Ordering::Relaxed)
    {
        let advice = match counting.came_later() {
            true => "ask for fewer events (--opt alloc=SIZE), or start the JVM with the agent",
            false => "ask for fewer events, or start the JVM with tracking=lazy",
        };
        counting.say(Level::Warn, &format!("{text}: {advice}"));
    }
}

impl Sums {
    fn since(self, before: Sums) -> Sums {
        Sums {
            walks: self.walks.saturating_sub(before.walks),
            frames: self.frames.saturating_sub(before.frames),
            walking: self.walking.saturating_sub(before.walking),
            cpu: self.cpu.saturating_sub(before.cpu),
            time: self.time.saturating_sub(before.time),
        }
    }

    fn warning(self) -> Option<String> {
        let share = 100 * self.walking / self.cpu.max(1);
        let a_second = self.walks * 1_000_000_000 / self.time.max(1);
        let depth = self.frames / self.walks.max(1);
        (share > LINE).then(|| {
            format!(
                "walking stacks takes {share}% of the CPU time ({a_second} events a second, {depth} frames each): \
                 hooks would take less"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_told_beyond_the_line_only() {
        let at = |walking| Sums {
            walks: 50_000,
            frames: 2_000_000,
            walking,
            cpu: 6_000_000_000,
            time: 5_000_000_000,
        };
        assert_eq!(at(1_200_000_000).warning(), None);
        let text = at(1_500_000_000).warning().unwrap();
        assert!(
            text.contains("25%") && text.contains("10000 events a second, 40 frames each"),
            "{text}"
        );
        assert_eq!(at(1).since(at(1)), Sums::default());
        assert_eq!(Sums::default().warning(), None);
    }
}
