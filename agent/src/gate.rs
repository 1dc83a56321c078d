//! Which events are counted at the moment.
//!
//! One word beside the scratch memory, which Java code reads at each event ([`GATE`] says where): a bit
//! for each kind. Closing it leaves everything else as it is, so contexts go on being tracked.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use crate::memory;

/// The kinds that can be switched. The helper class has the numbers, too.
pub const ALLOC: u64 = 1;
/// Events of the program's own: only stopped.
pub const OWN: u64 = 2;
/// Objects to follow, for leaks.
pub const LEAK: u64 = 4;
pub const LOCK: u64 = 8;
pub const EXCEPTION: u64 = 16;
/// Objects that no bytecode makes.
pub const OBJECTS: u64 = 32;
/// Entries of methods.
pub const CALL: u64 = 64;
/// Starts of threads.
pub const THREAD: u64 = 128;
/// Samples of allocations.
pub const SAMPLES: u64 = 1 << 16;

/// What was asked for, and whether it is in force.
pub struct Gate(Mutex<Asked>);

#[derive(Clone, Copy)]
struct Asked {
    kinds: u64,
    stopped: bool,
}

impl Gate {
    pub fn new(kinds: u64) -> Gate {
        let asked = Asked {
            kinds,
            stopped: false,
        };
        asked.publish();
        Gate(Mutex::new(asked))
    }

    pub fn stop(&self) {
        self.change(|asked| asked.stopped = true);
    }

    pub fn start(&self) {
        self.change(|asked| asked.stopped = false);
    }

    pub fn set(&self, kinds: u64) {
        self.change(|asked| asked.kinds = kinds);
    }

    /// The kinds that were asked for, and whether they are counted.
    pub fn state(&self) -> (u64, bool) {
        let asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (asked.kinds, !asked.stopped)
    }

    /// Whether events of a kind are counted.
    pub fn is_open(&self, kind: u64) -> bool {
        // Relaxed: as in publish().
        memory::gate().load(Ordering::Relaxed) & kind != 0
    }

    fn change(&self, how: impl FnOnce(&mut Asked)) {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        how(&mut asked);
        asked.publish();
    }
}

impl Asked {
    fn publish(self) {
        let open = if self.stopped { 0 } else { self.kinds };
        // Relaxed: nothing else is told by it. Threads see it soon.
        memory::gate().store(open, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_while_stopped_counts_from_the_start_on() {
        let _stacks = memory::Stacks::new(false).unwrap();
        let open = || memory::gate().load(Ordering::Relaxed);
        let gate = Gate::new(ALLOC);
        assert_eq!(open(), ALLOC);
        gate.stop();
        assert_eq!((open(), gate.state()), (0, (ALLOC, false)));
        gate.set(6);
        assert_eq!(open(), 0);
        gate.start();
        assert_eq!((open(), gate.state()), (6, (6, true)));
    }
}
