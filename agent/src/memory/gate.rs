//! Which events are counted at the moment.
//!
//! One word beside the scratch memory, which Java code reads at each event (`shared_layout::GATE` says where): a bit
//! for each kind. Closing it leaves everything else as it is, so contexts go on being tracked.
//!
//! `models/` has this file, too, with atomics and locks of its own: it runs through what threads may see.

use std::time::{Duration, Instant};

use super::slots;
use super::sync::{Mutex, MutexGuard, Ordering, PoisonError};

/// The kinds that can be switched.
pub use lucce_hooks::kinds::gate::{ALLOC, EXCEPTION, FOLLOW, LEAK, LOCK, OBJECTS, OWN, SAMPLES};

/// What was asked for, and whether it is in force.
pub struct Gate(Mutex<State>);

struct State {
    asked: Asked,
    measured: Option<Measured>,
}

#[derive(Clone, Copy)]
struct Asked {
    kinds: u64,
    /// By `lucce ctl`, which has the last word.
    stopped: bool,
    /// Between two bursts.
    paused: bool,
    /// For good, at this time.
    ended: Option<Instant>,
    /// What is handed to other threads is told to the agent.
    follows_tasks: bool,
}

/// How long the gate was open.
#[derive(Clone, Copy)]
struct Measured {
    since: Instant,
    open: Duration,
    bursts: u64,
    /// It is open since then.
    opened: Option<Instant>,
}

/// See [`Gate::bursts`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bursts {
    pub bursts: u64,
    pub open: Duration,
    pub total: Duration,
}

impl Gate {
    pub fn new(kinds: u64) -> Gate {
        let asked = Asked {
            kinds,
            stopped: false,
            paused: false,
            ended: None,
            follows_tasks: false,
        };
        asked.publish();
        let measured = None;
        Gate(Mutex::new(State { asked, measured }))
    }

    pub fn stop(&self) {
        self.change(|asked| asked.stopped = true);
    }

    /// Whether what is handed to other threads is told to the agent from now on.
    pub fn follow_tasks(&self, is_so: bool) {
        self.change(|asked| asked.follows_tasks = is_so);
    }

    pub fn start(&self) {
        self.change(|asked| asked.stopped = false);
    }

    pub fn set(&self, kinds: u64) {
        self.change(|asked| asked.kinds = kinds);
    }

    /// From now on the time is measured during which events are counted.
    pub fn measure(&self) {
        let mut state = self.lock();
        let now = Instant::now();
        state.measured = Some(Measured {
            since: now,
            open: Duration::ZERO,
            bursts: 0,
            opened: state.asked.is_open().then_some(now),
        });
    }

    /// A burst begins, unless it was stopped; a pause begins.
    pub fn burst(&self) {
        self.change(|asked| asked.paused = false);
        let mut state = self.lock();
        if let (true, Some(measured)) = (state.asked.is_open(), &mut state.measured) {
            measured.bursts += 1;
        }
    }

    pub fn pause(&self) {
        self.change(|asked| asked.paused = true);
    }

    /// `None`: nothing was measured.
    pub fn bursts(&self) -> Option<Bursts> {
        let state = self.lock();
        let measured = state.measured?;
        // The end of the VM is no pause.
        let now = state.asked.ended.unwrap_or_else(Instant::now);
        let opened = measured.opened.map(|opened| now.duration_since(opened));
        Some(Bursts {
            bursts: measured.bursts,
            open: measured.open + opened.unwrap_or_default(),
            total: now.duration_since(measured.since),
        })
    }

    /// No event is counted any more. Once the VM ends it does not tell the agent of what threads still do, exceptions and
    /// calls by the VM among them (JVMTI's dead phase), so their slots are not put right and numbers would be wrong.
    pub fn end(&self) {
        self.change(|asked| {
            asked.ended.get_or_insert_with(Instant::now);
        });
    }

    /// The kinds that were asked for, and whether they are counted, in bursts or always.
    pub fn state(&self) -> (u64, bool) {
        let asked = self.lock().asked;
        (asked.kinds, !asked.stopped)
    }

    /// Whether events of a kind are counted.
    pub fn is_open(&self, kind: u64) -> bool {
        // Relaxed: as in publish().
        slots::gate().is_some_and(|open| open.load(Ordering::Relaxed) & kind != 0)
    }

    fn change(&self, how: impl FnOnce(&mut Asked)) {
        let mut state = self.lock();
        how(&mut state.asked);
        state.asked.publish();
        let open = state.asked.is_open();
        let now = state.asked.ended.unwrap_or_else(Instant::now);
        if let Some(measured) = &mut state.measured {
            measured.switched(open, now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Measured {
    fn switched(&mut self, open: bool, now: Instant) {
        match (open, self.opened) {
            (true, None) => self.opened = Some(now),
            (false, Some(opened)) => {
                self.open += now.duration_since(opened);
                self.opened = None;
            }
            _ => {}
        }
    }
}

impl Asked {
    fn is_open(self) -> bool {
        !self.stopped && !self.paused && self.ended.is_none()
    }

    fn publish(self) {
        let follow = if self.follows_tasks { FOLLOW } else { 0 };
        let open = if self.is_open() {
            self.kinds | follow
        } else {
            0
        };
        // Relaxed: nothing else is told by it. Threads see it soon.
        if let Some(gate) = slots::gate() {
            gate.store(open, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_while_stopped_counts_from_the_start_on() {
        crate::memory::map::shared();
        let open = || slots::gate().unwrap().load(Ordering::Relaxed);
        let gate = Gate::new(ALLOC);
        assert_eq!(open(), ALLOC);
        gate.stop();
        assert_eq!((open(), gate.state()), (0, (ALLOC, false)));
        gate.set(6);
        assert_eq!(open(), 0);
        gate.start();
        assert_eq!((open(), gate.state()), (6, (6, true)));

        // Bursts: stopped is stopped, and a pause ends with the next burst only.
        assert_eq!(gate.bursts(), None);
        gate.measure();
        gate.pause();
        assert_eq!((open(), gate.state()), (0, (6, true)));
        let before = gate.bursts().unwrap();
        gate.stop();
        gate.burst();
        assert_eq!(open(), 0);
        gate.pause();
        gate.start();
        assert_eq!(open(), 0);
        // It was closed all the time.
        let after = gate.bursts().unwrap();
        assert_eq!((after.bursts, after.open), (0, before.open));
        gate.burst();
        assert_eq!((open(), gate.bursts().unwrap().bursts), (6, 1));
        let last = gate.bursts().unwrap();
        assert!(before.open <= last.open && last.open <= last.total);

        gate.end();
        // What was measured ends there, so a program of one burst was counted from its start to its end.
        let ended = gate.bursts();
        gate.start();
        gate.set(ALLOC);
        gate.burst();
        gate.end();
        assert_eq!(open(), 0);
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(gate.bursts(), ended);
    }
}
