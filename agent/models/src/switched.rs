//! The gate, which hooks read at each event while other threads switch kinds, stop, start and end.

use loom::sync::Arc;
use loom::sync::atomic::Ordering;

use crate::memory::gate::{ALLOC, Gate, LOCK};
use crate::memory::slots;

/// As a hook reads it.
fn word() -> u64 {
    slots::gate().map_or(0, |gate| gate.load(Ordering::Relaxed))
}

#[test]
fn the_word_ends_as_all_asked_together() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(ALLOC));
        let [stops, sets] = [gate.clone(), gate.clone()];
        let stopping = loom::thread::spawn(move || stops.stop());
        let setting = loom::thread::spawn(move || sets.set(LOCK));
        // Only what was in force at some time is seen, never a part of it.
        let seen = word();
        assert!([ALLOC, LOCK, 0].contains(&seen), "{seen}");
        stopping.join().unwrap();
        setting.join().unwrap();
        assert_eq!((word(), gate.state()), (0, (LOCK, false)));
        gate.start();
        assert_eq!(word(), LOCK);
    });
}

#[test]
fn nothing_is_counted_once_the_gate_has_ended() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(ALLOC));
        let [ends, pauses] = [gate.clone(), gate.clone()];
        let ending = loom::thread::spawn(move || {
            ends.end();
            // Who has ended it reads its own store, or what came behind it.
            assert_eq!(word(), 0);
        });
        let pausing = loom::thread::spawn(move || {
            pauses.pause();
            pauses.burst();
        });
        gate.set(LOCK);
        ending.join().unwrap();
        pausing.join().unwrap();
        assert_eq!(word(), 0);
    });
}
