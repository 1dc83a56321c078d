//! What a call costs: the same steps, from memory, with and without the encoding.

use std::time::Instant;

use lucce_callgraph::Frame;
use lucce_callgraph::encodings::{Encoding, Number, Statistics, Undecodable};
use lucce_recording::{Edge, Step, ThreadId};

use crate::feed::{At, Observer, feed};
use crate::{Survey, make};

/// The beginning of a recording: what fits a hundred megabytes.
pub struct Clock {
    steps: Vec<(ThreadId, Step)>,
    calls: u64,
    at_events: bool,
}

/// So many steps are timed.
const STEPS: usize = 2_000_000;
/// Other programs only ever make a round slower: the fastest counts.
const ROUNDS: usize = 3;

impl Clock {
    pub fn new(steps: impl Iterator<Item = (ThreadId, Step)>, at_events: bool) -> Clock {
        let steps: Vec<_> = steps.take(STEPS).collect();
        let is_call = |(_, step): &&(ThreadId, Step)| matches!(step, Step::Enter(_));
        let calls = steps.iter().filter(is_call).count();
        Clock {
            calls: calls.max(1) as u64,
            steps,
            at_events,
        }
    }

    /// Nanoseconds per call beyond keeping the plain stacks; none if no encoding has this name.
    pub fn of(&self, name: &str, survey: &Survey) -> Option<f64> {
        let (mut with, mut without) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            with = with.min(self.round(make(name, survey)?.as_mut()));
            without = without.min(self.round(&mut Nothing));
        }
        Some((with - without).max(0.0) / self.calls as f64)
    }

    fn round(&self, encoding: &mut dyn Encoding) -> f64 {
        let began = Instant::now();
        feed(
            self.steps.iter().copied(),
            encoding,
            self.at_events,
            &mut Asks,
            &|_| (),
        );
        began.elapsed().as_nanos() as f64
    }
}

/// Only asks.
struct Asks;

impl Observer for Asks {
    fn started(&mut self, _: &mut At<'_>, _: Option<(ThreadId, Frame)>) {}

    fn entered(&mut self, _: &mut At<'_>) {}

    fn asked(&mut self, at: &mut At<'_>, place: Frame) {
        std::hint::black_box(at.encoding.current(at.thread, place));
    }
}

/// The encoding that does nothing.
struct Nothing;

impl Encoding for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn start(&mut self, _: ThreadId, _: Option<(ThreadId, Frame)>) {}

    fn enter(&mut self, _: ThreadId, _: Edge) {}

    fn leave(&mut self, _: ThreadId, _: Edge) {}

    fn unwind(&mut self, _: ThreadId, _: &[Edge]) {}

    fn current(&mut self, _: ThreadId, place: Frame) -> Number {
        let (id, beside) = (0, Vec::new());
        Number { place, id, beside }
    }

    fn decode(&self, _: &Number) -> Result<Vec<Frame>, Undecodable> {
        Err(Undecodable::Unknown)
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}
