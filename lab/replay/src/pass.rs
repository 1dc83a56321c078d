//! One pass of a recording through an encoding, checked against the plain stacks.

use lucce_callgraph::ContextFrame;
use lucce_encodings::{ContextDecodeError, ContextEncoding, EncodedContext, EncodingStatistics};
use lucce_recording::{ProgramThreadId, Recording};

use crate::clock::EncodingClock;
use crate::feed::{ReplayObserver, ReplayPosition, replay_steps};
use crate::{DepthDistribution, RecordingSurvey, Tick, create_encoding};

/// What a pass does beside encoding.
#[derive(Clone, Copy, Debug)]
pub struct ReplaySettings {
    /// Every so many numbers one is decoded; 0: none.
    pub check_every: u64,
    /// Whether calls are timed; it takes several times as long as everything else.
    pub timed: bool,
}

/// What an encoding made of a recording.
pub struct EncodingOutcome {
    pub name: &'static str,
    pub request_count: u64,
    /// Numbers that events keep: on average and at most.
    pub numbers_mean: f64,
    pub numbers_max: usize,
    /// Bits that they use.
    pub bits_mean: f64,
    pub bits_max: u32,
    /// Beyond keeping the plain stacks; 0 if it was not timed.
    pub nanos_per_call: f64,
    /// Of the encoding stack, at every call.
    pub depths: DepthDistribution,
    /// Whether numbers can be decoded at all.
    pub decodes: bool,
    pub checked: u64,
    pub mismatches: u64,
    /// The first of them.
    pub first: Option<ContextMismatch>,
    pub statistics: EncodingStatistics,
}

/// A number that did not decode to the plain stack.
#[derive(Clone, Debug)]
pub struct ContextMismatch {
    /// Index of the request, from 1.
    pub at: u64,
    pub number: EncodedContext,
    /// The plain stack, innermost first.
    pub plain: Vec<ContextFrame>,
    pub decoded: Result<Vec<ContextFrame>, ContextDecodeError>,
}

/// Feeds the encoding of this name, and times it.
#[must_use]
pub fn run(
    name: &str,
    recording: &Recording,
    survey: &RecordingSurvey,
    settings: ReplaySettings,
    tick: Tick<'_>,
) -> Option<EncodingOutcome> {
    let clock = create_clock(recording, survey, settings);
    run_timed(name, recording, survey, settings, clock.as_ref(), tick)
}

/// For several encodings of one recording.
pub(crate) fn create_clock(
    recording: &Recording,
    survey: &RecordingSurvey,
    settings: ReplaySettings,
) -> Option<EncodingClock> {
    let steps = recording.steps().map_while(Result::ok);
    settings
        .timed
        .then(|| EncodingClock::new(steps, survey.asks_at_events()))
}

pub(crate) fn run_timed(
    name: &str,
    recording: &Recording,
    survey: &RecordingSurvey,
    settings: ReplaySettings,
    clock: Option<&EncodingClock>,
    tick: Tick<'_>,
) -> Option<EncodingOutcome> {
    let nanos_per_call = match clock {
        Some(clock) => clock.time_encoding(name, survey)?,
        None => 0.0,
    };
    let mut encoding = create_encoding(name, survey)?;
    let mut checks = ContextChecks {
        every: settings.check_every,
        ..ContextChecks::default()
    };
    let steps = recording.steps().map_while(Result::ok);
    replay_steps(
        steps,
        encoding.as_mut(),
        survey.asks_at_events(),
        &mut checks,
        tick,
    );
    checks.compare_kept(encoding.as_ref());
    Some(checks.into_outcome(encoding.as_ref(), nanos_per_call))
}

/// Numbers that are decoded again at the end.
const KEPT: usize = 2_000;

#[derive(Default)]
struct ContextChecks {
    every: u64,
    depths: DepthDistribution,
    request_count: u64,
    numbers: (u64, usize),
    bits: (u64, u32),
    checked: u64,
    mismatches: u64,
    first: Option<ContextMismatch>,
    kept: Vec<(u64, EncodedContext, Vec<ContextFrame>)>,
}

impl ReplayObserver for ContextChecks {
    /// The context in which a thread was started, if the encoding keeps it.
    fn thread_started(
        &mut self,
        at: &mut ReplayPosition<'_>,
        parent: Option<(ProgramThreadId, ContextFrame)>,
    ) {
        let kept = at.encoding.start_context(at.thread).cloned();
        if let Some(((parent, place), number)) = parent.zip(kept) {
            let plain = at.stacks.plain_frames(parent, place);
            self.compare_context(at.encoding, 0, number, plain);
        }
    }

    fn call_entered(&mut self, at: &mut ReplayPosition<'_>) {
        self.depths.add_depth(at.encoding.stack_depth(at.thread));
    }

    fn event_reached(&mut self, at: &mut ReplayPosition<'_>, place: ContextFrame) {
        let number = at.encoding.current_context(at.thread, place);
        self.request_count += 1;
        self.numbers.0 += number.number_count() as u64;
        self.numbers.1 = self.numbers.1.max(number.number_count());
        self.bits.0 += u64::from(number.used_bits());
        self.bits.1 = self.bits.1.max(number.used_bits());
        if self.every > 0
            && self.request_count.is_multiple_of(self.every)
            && at.encoding.is_decodable()
        {
            let plain = at.stacks.plain_frames(at.thread, place);
            self.keep_sample(&number, &plain);
            self.compare_context(at.encoding, self.request_count, number, plain);
        }
    }
}

impl ContextChecks {
    /// Those that are kept are spread over the run.
    fn keep_sample(&mut self, number: &EncodedContext, plain: &[ContextFrame]) {
        let kept = (self.request_count, number.clone(), plain.to_vec());
        if self.kept.len() < KEPT {
            self.kept.push(kept);
        } else if let Some(old) = self.kept.get_mut(self.checked as usize * 7919 % (4 * KEPT)) {
            *old = kept;
        }
    }

    /// A number that the encoding itself calls lost is no mismatch; it is counted there.
    fn compare_context(
        &mut self,
        encoding: &dyn ContextEncoding,
        at: u64,
        number: EncodedContext,
        plain: Vec<ContextFrame>,
    ) {
        let decoded = encoding.decode_context(&number);
        self.checked += 1;
        if decoded.as_ref() == Ok(&plain) || decoded == Err(ContextDecodeError::Lost) {
            return;
        }
        self.mismatches += 1;
        self.first.get_or_insert(ContextMismatch {
            at,
            number,
            plain,
            decoded,
        });
    }

    fn compare_kept(&mut self, encoding: &dyn ContextEncoding) {
        for (at, number, plain) in std::mem::take(&mut self.kept) {
            self.compare_context(encoding, at, number, plain);
        }
    }

    fn into_outcome(self, encoding: &dyn ContextEncoding, nanos_per_call: f64) -> EncodingOutcome {
        let request_count = self.request_count.max(1) as f64;
        EncodingOutcome {
            name: encoding.name(),
            request_count: self.request_count,
            numbers_mean: self.numbers.0 as f64 / request_count,
            numbers_max: self.numbers.1,
            bits_mean: self.bits.0 as f64 / request_count,
            bits_max: self.bits.1,
            nanos_per_call,
            depths: self.depths,
            decodes: encoding.is_decodable(),
            checked: self.checked,
            mismatches: self.mismatches,
            first: self.first,
            statistics: encoding.collect_statistics(),
        }
    }
}

#[cfg(test)]
mod pass_tests {
    use lucce_callgraph::{MethodId, SiteId};
    use lucce_encodings::PccEncoding;
    use lucce_recording::{CallEdge, RecordedStart, RecordedStep};

    use super::*;

    /// Decodes the `wrong`-th number to a trace without its caller.
    struct Wrong {
        encoding: PccEncoding,
        request_count: u64,
        wrong: u64,
    }

    impl ContextEncoding for Wrong {
        fn name(&self) -> &'static str {
            "wrong"
        }

        fn start_thread(
            &mut self,
            thread: ProgramThreadId,
            parent: Option<(ProgramThreadId, ContextFrame)>,
        ) {
            self.encoding.start_thread(thread, parent);
        }

        fn enter_call(&mut self, thread: ProgramThreadId, edge: CallEdge) {
            self.encoding.enter_call(thread, edge);
        }

        fn leave_call(&mut self, thread: ProgramThreadId, edge: CallEdge) {
            self.encoding.leave_call(thread, edge);
        }

        fn current_context(&mut self, _: ProgramThreadId, place: ContextFrame) -> EncodedContext {
            self.request_count += 1;
            EncodedContext::single(place, self.request_count)
        }

        fn decode_context(
            &self,
            number: &EncodedContext,
        ) -> Result<Vec<ContextFrame>, ContextDecodeError> {
            let caller = CallEdge::from_event_frame(CALL.caller_frame()).caller_frame();
            match number.id == self.wrong {
                true => Ok(vec![number.frame]),
                false => Ok(vec![number.frame, caller]),
            }
        }

        fn collect_statistics(&self) -> EncodingStatistics {
            EncodingStatistics::default()
        }
    }

    const CALL: CallEdge = CallEdge {
        site: SiteId(1),
        caller: MethodId(1),
        callee: MethodId(2),
    };

    #[test]
    fn a_difference_is_found_and_kept() {
        let thread = ProgramThreadId(0);
        let event = CallEdge::from_event_frame(ContextFrame {
            site: SiteId(2),
            method: MethodId(2),
        });
        let start = RecordedStep::Start(RecordedStart {
            parent: None,
            position: 0,
        });
        let mut steps = vec![
            start,
            RecordedStep::Enter(CallEdge::from_thread_entry(MethodId(1))),
            RecordedStep::Enter(CALL),
        ];
        steps.extend([RecordedStep::Event(event); 5]);
        for (wrong, every, found) in [(0, 1, 0), (3, 1, 2), (4, 2, 2), (3, 2, 0)] {
            let mut encoding = Wrong {
                encoding: PccEncoding::new(32),
                request_count: 0,
                wrong,
            };
            let mut checks = ContextChecks {
                every,
                ..ContextChecks::default()
            };
            let steps = steps.iter().map(|step| (thread, *step));
            replay_steps(steps, &mut encoding, true, &mut checks, &|_| ());
            checks.compare_kept(&encoding);
            let outcome = checks.into_outcome(&encoding, 0.0);
            // At once, and again at the end.
            assert_eq!(outcome.mismatches, found, "{wrong} of every {every}");
            let first = outcome.first.map(|first| (first.at, first.plain.len()));
            assert_eq!(first, (found > 0).then_some((wrong, 2)));
        }
    }
}
