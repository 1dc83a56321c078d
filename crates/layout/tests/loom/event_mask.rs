//! Model of the event mask, which hooks read at each event while other threads switch kinds, stop, start and end.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

use lucce_layout::event_mask::EventMask;

/// Bits of two kinds.
const ALLOC: u64 = 1;
const LOCK: u64 = 1 << 3;

loom::lazy_static! {
    /// In the agent, the word beside the scratch memory.
    static ref WORD: AtomicU64 = AtomicU64::new(0);
}

fn new_mask() -> Arc<EventMask> {
    Arc::new(EventMask::new(ALLOC, Some(&WORD)))
}

/// Reads the mask like a hook.
fn read_mask() -> u64 {
    WORD.load(Ordering::Relaxed)
}

#[test]
fn the_mask_ends_as_all_requests_together() {
    loom::model(|| {
        let mask = new_mask();
        let [stops, sets] = [mask.clone(), mask.clone()];
        let stopping = loom::thread::spawn(move || stops.stop_counting());
        let setting = loom::thread::spawn(move || sets.set_kinds(LOCK));
        // A reader sees only masks that were in force at some time, never a mix.
        let seen = read_mask();
        assert!([ALLOC, LOCK, 0].contains(&seen), "{seen}");
        stopping.join().unwrap();
        setting.join().unwrap();
        assert_eq!((read_mask(), mask.requested_state()), (0, (LOCK, false)));
        mask.start_counting();
        assert_eq!(read_mask(), LOCK);
    });
}

#[test]
fn nothing_is_counted_once_counting_has_ended() {
    loom::model(|| {
        let mask = new_mask();
        let [ends, pauses] = [mask.clone(), mask.clone()];
        let ending = loom::thread::spawn(move || {
            ends.end_counting();
            // The thread that ended counting reads its own store, or a later one.
            assert_eq!(read_mask(), 0);
        });
        let pausing = loom::thread::spawn(move || {
            pauses.pause_counting();
            pauses.begin_burst();
        });
        mask.set_kinds(LOCK);
        ending.join().unwrap();
        pausing.join().unwrap();
        assert_eq!(read_mask(), 0);
    });
}
