//! The event mask: which kinds of events count now.
//!
//! One word beside the scratch memory, which Java code reads at each event (its position is `shared_layout::EVENT_MASK`):
//! one bit for each kind. A closed mask changes nothing else, so contexts are still tracked.
//!
//! `tests/loom` tries every interleaving.

use std::time::{Duration, Instant};

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};

pub use crate::event_bits::{FOLLOW, ORIGINS, OWN, TAGS};

/// The requested kinds, and whether they count now.
pub struct EventMask {
    state: Mutex<EventMaskState>,
    word: Option<&'static AtomicU64>,
}

struct EventMaskState {
    request: EventMaskRequest,
    burst_timer: Option<BurstTimer>,
}

#[derive(Clone, Copy)]
struct EventMaskRequest {
    kinds: u64,
    /// By `lucce ctl`, which overrides bursts.
    stopped: bool,
    /// Between two bursts.
    paused: bool,
    /// Counting has not begun (agent option `delay=`): the bits that are set meanwhile.
    delay: Option<u64>,
    /// Counting ended for good, at this time.
    ended: Option<Instant>,
    /// Whether submissions to other threads are reported to the agent.
    follows_tasks: bool,
    /// Bits that are set even while nothing counts: what hooks do besides counting.
    permanent: u64,
}

/// The time during which the mask was open.
#[derive(Clone, Copy)]
struct BurstTimer {
    since: Instant,
    open: Duration,
    bursts: u64,
    /// Start of the current open period.
    opened: Option<Instant>,
}

/// The result of [`EventMask::burst_times`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BurstTimes {
    pub bursts: u64,
    pub open: Duration,
    pub total: Duration,
}

impl EventMask {
    /// A mask for these kinds. `word` is what Java code reads; `None`: the agent has no memory for it.
    pub fn new(kinds: u64, word: Option<&'static AtomicU64>) -> EventMask {
        let request = EventMaskRequest {
            kinds,
            stopped: false,
            paused: false,
            delay: None,
            ended: None,
            follows_tasks: false,
            permanent: 0,
        };
        request.publish_mask(word);
        EventMask {
            state: Mutex::new(EventMaskState {
                request,
                burst_timer: None,
            }),
            word,
        }
    }

    /// Closes the mask until [`EventMask::start_counting`], as `lucce ctl` requests.
    pub fn stop_counting(&self) {
        self.change_request(|request| request.stopped = true);
    }

    /// Whether submissions to other threads are reported to the agent from now on.
    pub fn follow_tasks(&self, is_so: bool) {
        self.change_request(|request| request.follows_tasks = is_so);
    }

    /// Closes the mask until [`EventMask::end_delay`]. `waited_for`: bits that stay set, of events that may end the delay.
    pub fn delay_counting(&self, waited_for: u64) {
        self.change_request(|request| request.delay = Some(waited_for));
    }

    /// Ends the delay. Returns whether this call has ended it.
    pub fn end_delay(&self) -> bool {
        let mut was_delayed = false;
        self.change_request(|request| was_delayed = request.delay.take().is_some());
        was_delayed
    }

    /// Sets bits that stay set while nothing counts.
    pub fn set_permanent(&self, bits: u64) {
        self.change_request(|request| request.permanent |= bits);
    }

    /// Ends a stop. The mask opens unless a pause between bursts closes it.
    pub fn start_counting(&self) {
        self.change_request(|request| request.stopped = false);
    }

    /// Selects the kinds that count from now on.
    pub fn set_kinds(&self, kinds: u64) {
        self.change_request(|request| request.kinds = kinds);
    }

    /// From now on, measures the time during which events count.
    pub fn measure_bursts(&self) {
        let mut state = self.lock();
        let now = Instant::now();
        state.burst_timer = Some(BurstTimer {
            since: now,
            open: Duration::ZERO,
            bursts: 0,
            opened: state.request.is_counting().then_some(now),
        });
    }

    /// Begins a burst; `lucce ctl` may have stopped counting.
    pub fn begin_burst(&self) {
        self.change_request(|request| request.paused = false);
        let mut state = self.lock();
        if let (true, Some(measured)) = (state.request.is_counting(), &mut state.burst_timer) {
            measured.bursts += 1;
        }
    }

    /// Begins the pause after a burst.
    pub fn pause_counting(&self) {
        self.change_request(|request| request.paused = true);
    }

    /// `None`: nothing was measured.
    pub fn burst_times(&self) -> Option<BurstTimes> {
        let state = self.lock();
        let measured = state.burst_timer?;
        // The time after the VM's end is not a pause.
        let now = state.request.ended.unwrap_or_else(Instant::now);
        let opened = measured.opened.map(|opened| now.duration_since(opened));
        Some(BurstTimes {
            bursts: measured.bursts,
            open: measured.open + opened.unwrap_or_default(),
            total: now.duration_since(measured.since),
        })
    }

    /// Ends counting for good. After its end (JVMTI's dead phase) the VM no longer reports what threads do,
    /// exceptions and VM entries included. So slots are not corrected, and numbers would be wrong.
    pub fn end_counting(&self) {
        self.change_request(|request| {
            request.ended.get_or_insert_with(Instant::now);
        });
    }

    /// The requested kinds, and whether they count, in bursts or always.
    pub fn requested_state(&self) -> (u64, bool) {
        let request = self.lock().request;
        (request.kinds, !request.stopped && request.delay.is_none())
    }

    /// Whether events of a kind count now.
    pub fn is_enabled(&self, kind: u64) -> bool {
        // Relaxed: like in `publish_mask()`.
        self.word
            .is_some_and(|open| open.load(Ordering::Relaxed) & kind != 0)
    }

    fn change_request(&self, how: impl FnOnce(&mut EventMaskRequest)) {
        let mut state = self.lock();
        how(&mut state.request);
        state.request.publish_mask(self.word);
        let open = state.request.is_counting();
        let now = state.request.ended.unwrap_or_else(Instant::now);
        if let Some(measured) = &mut state.burst_timer {
            measured.record_switch(open, now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, EventMaskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BurstTimer {
    fn record_switch(&mut self, open: bool, now: Instant) {
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

impl EventMaskRequest {
    fn is_counting(self) -> bool {
        !self.stopped && !self.paused && self.delay.is_none() && self.ended.is_none()
    }

    fn publish_mask(self, word: Option<&AtomicU64>) {
        let follow = if self.follows_tasks { FOLLOW } else { 0 };
        let open = if self.is_counting() {
            self.kinds | follow
        } else {
            let waited_for = self.delay.filter(|_| self.ended.is_none());
            waited_for.unwrap_or(0)
        };
        // Relaxed: no other memory depends on it. Threads see it soon.
        if let Some(word) = word {
            word.store(open | self.permanent, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod event_mask_tests {
    use super::*;

    /// A kind's bit.
    const ALLOC: u64 = 1;

    #[test]
    fn what_is_set_while_stopped_counts_from_the_start_on() {
        let word: &'static AtomicU64 = Box::leak(Box::default());
        let open = || word.load(Ordering::Relaxed);
        let mask = EventMask::new(ALLOC, Some(word));
        assert_eq!(open(), ALLOC);
        mask.stop_counting();
        assert_eq!((open(), mask.requested_state()), (0, (ALLOC, false)));
        mask.set_kinds(6);
        assert_eq!(open(), 0);
        mask.start_counting();
        assert_eq!((open(), mask.requested_state()), (6, (6, true)));

        // A delay ends once, and no burst ends it.
        mask.delay_counting(2);
        mask.begin_burst();
        assert_eq!((open(), mask.requested_state()), (2, (6, false)));
        assert!(mask.end_delay());
        assert!(!mask.end_delay());
        assert_eq!((open(), mask.requested_state()), (6, (6, true)));

        // Bursts do not override a stop, and only the next burst ends a pause.
        assert_eq!(mask.burst_times(), None);
        mask.measure_bursts();
        mask.pause_counting();
        assert_eq!((open(), mask.requested_state()), (0, (6, true)));
        let before = mask.burst_times().unwrap();
        mask.stop_counting();
        mask.begin_burst();
        assert_eq!(open(), 0);
        mask.pause_counting();
        mask.start_counting();
        assert_eq!(open(), 0);
        // The mask was closed all the time.
        let after = mask.burst_times().unwrap();
        assert_eq!((after.bursts, after.open), (0, before.open));
        mask.begin_burst();
        assert_eq!((open(), mask.burst_times().unwrap().bursts), (6, 1));
        let last = mask.burst_times().unwrap();
        assert!(before.open <= last.open && last.open <= last.total);

        mask.end_counting();
        // The measurement ends here, so a program of one burst was counted from its start to its end.
        let ended = mask.burst_times();
        mask.start_counting();
        mask.set_kinds(ALLOC);
        mask.begin_burst();
        mask.end_counting();
        assert_eq!(open(), 0);
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(mask.burst_times(), ended);
    }
}
