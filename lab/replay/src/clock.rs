//! What a call costs: the same steps, from memory, with and without the encoding.

use std::time::Instant;

use lucce_callgraph::ContextFrame;
use lucce_encodings::{ContextDecodeError, ContextEncoding, EncodedContext, EncodingStatistics};
use lucce_recording::{CallEdge, ProgramThreadId, RecordedStep};

use crate::feed::{ReplayObserver, ReplayPosition, replay_steps};
use crate::{RecordingSurvey, create_encoding};

/// The beginning of a recording: what fits a hundred megabytes.
pub struct EncodingClock {
    steps: Vec<(ProgramThreadId, RecordedStep)>,
    calls: u64,
    at_events: bool,
}

/// So many steps are timed.
const STEPS: usize = 2_000_000;
/// Other programs only ever make a round slower: the fastest counts.
const ROUNDS: usize = 3;

impl EncodingClock {
    pub fn new(
        steps: impl Iterator<Item = (ProgramThreadId, RecordedStep)>,
        at_events: bool,
    ) -> EncodingClock {
        let steps: Vec<_> = steps.take(STEPS).collect();
        let is_call =
            |(_, step): &&(ProgramThreadId, RecordedStep)| matches!(step, RecordedStep::Enter(_));
        let calls = steps.iter().filter(is_call).count();
        EncodingClock {
            calls: calls.max(1) as u64,
            steps,
            at_events,
        }
    }

    /// Nanoseconds per call beyond keeping the plain stacks; none if no encoding has this name.
    pub fn time_encoding(&self, name: &str, survey: &RecordingSurvey) -> Option<f64> {
        let (mut with, mut without) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            with = with.min(self.time_round(create_encoding(name, survey)?.as_mut()));
            without = without.min(self.time_round(&mut NoEncoding));
        }
        Some((with - without).max(0.0) / self.calls as f64)
    }

    fn time_round(&self, encoding: &mut dyn ContextEncoding) -> f64 {
        let began = Instant::now();
        replay_steps(
            self.steps.iter().copied(),
            encoding,
            self.at_events,
            &mut ContextQueries,
            &|_| (),
        );
        began.elapsed().as_nanos() as f64
    }
}

/// Only asks.
struct ContextQueries;

impl ReplayObserver for ContextQueries {
    fn thread_started(
        &mut self,
        _: &mut ReplayPosition<'_>,
        _: Option<(ProgramThreadId, ContextFrame)>,
    ) {
    }

    fn call_entered(&mut self, _: &mut ReplayPosition<'_>) {}

    fn event_reached(&mut self, at: &mut ReplayPosition<'_>, place: ContextFrame) {
        std::hint::black_box(at.encoding.current_context(at.thread, place));
    }
}

/// The encoding that does nothing.
struct NoEncoding;

impl ContextEncoding for NoEncoding {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn start_thread(&mut self, _: ProgramThreadId, _: Option<(ProgramThreadId, ContextFrame)>) {}

    fn enter_call(&mut self, _: ProgramThreadId, _: CallEdge) {}

    fn leave_call(&mut self, _: ProgramThreadId, _: CallEdge) {}

    fn unwind_calls(&mut self, _: ProgramThreadId, _: &[CallEdge]) {}

    fn current_context(&mut self, _: ProgramThreadId, place: ContextFrame) -> EncodedContext {
        EncodedContext::single(place, 0)
    }

    fn decode_context(&self, _: &EncodedContext) -> Result<Vec<ContextFrame>, ContextDecodeError> {
        Err(ContextDecodeError::Unknown)
    }

    fn collect_statistics(&self) -> EncodingStatistics {
        EncodingStatistics::default()
    }
}
