//! Static bursting (Section 5.2): calls are heard for a short while in every interval only.
//!
//! Outside of bursts nothing is passed on. A burst begins with a walk of the stack: the frames that
//! are there are entered without being counted. What is still there from the burst before is not
//! walked again, so the walks together enter no more frames than were called.

use std::fmt;
use std::str::FromStr;

use lucce_options::units::parse_duration;
use rustc_hash::FxHashMap;

use crate::error::KContextError;
use crate::ids::{LabeledCallee, TraceThreadId};
use crate::listener::CallListener;

/// A burst's length and how often one begins: `0.2ms/2ms`, or `200/2000` in calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BurstIntervals {
    /// Nanoseconds or calls.
    pub length: u64,
    /// Nanoseconds or calls.
    pub interval: u64,
    pub unit: IntervalUnit,
}

/// What a burst is measured by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntervalUnit {
    /// The stream's clock, in nanoseconds.
    Time,
    /// Calls of all threads, for streams without a clock.
    Calls,
}

impl BurstIntervals {
    /// The paper's: 0.2 ms in every 2 ms.
    pub const PAPER: BurstIntervals = BurstIntervals {
        length: 200_000,
        interval: 2_000_000,
        unit: IntervalUnit::Time,
    };

    /// In calls, one of which is taken for each microsecond.
    #[must_use]
    pub fn in_calls(self) -> BurstIntervals {
        let calls = |nanos: u64| (nanos / 1000).max(1);
        match self.unit {
            IntervalUnit::Calls => self,
            IntervalUnit::Time => BurstIntervals {
                length: calls(self.length),
                interval: calls(self.interval),
                unit: IntervalUnit::Calls,
            },
        }
    }
}

impl FromStr for BurstIntervals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(length, interval)| {
            let ((length, unit), (interval, same)) =
                (parse_interval(length)?, parse_interval(interval)?);
            (unit == same && 0 < length && length <= interval).then_some(BurstIntervals {
                length,
                interval,
                unit,
            })
        });
        parts.ok_or_else(|| {
            format!("{text}: a burst and its interval were expected, such as 0.2ms/2ms or 200/2000 (calls)")
        })
    }
}

/// A number of calls, or a time with its unit.
fn parse_interval(text: &str) -> Option<(u64, IntervalUnit)> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some((text.parse().ok()?, IntervalUnit::Calls));
    }
    // A time without a unit would be a number of calls.
    let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    let time = parse_duration(text).ok().filter(|_| has_unit)?;
    Some((u64::try_from(time.as_nanos()).ok()?, IntervalUnit::Time))
}

impl fmt::Display for BurstIntervals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BurstIntervals {
            length, interval, ..
        } = self;
        match self.unit {
            IntervalUnit::Calls => write!(f, "{length} of every {interval} calls"),
            IntervalUnit::Time => {
                let ms = |nanos: &u64| *nanos as f64 / 1e6;
                write!(f, "{} ms of every {} ms", ms(length), ms(interval))
            }
        }
    }
}

/// Passes on what happens in bursts.
pub struct BurstListener<L> {
    bursts: BurstIntervals,
    now: u64,
    threads: FxHashMap<TraceThreadId, ReportedStack>,
    listener: L,
}

/// A thread's stack, and what the listener knows of it.
#[derive(Default)]
struct ReportedStack {
    stack: Vec<LabeledCallee>,
    /// Calls that the listener has entered and not left.
    known: usize,
    /// The first so many of them are still on the stack.
    same: usize,
}

impl<L: CallListener> BurstListener<L> {
    pub fn new(bursts: BurstIntervals, listener: L) -> Self {
        BurstListener {
            bursts,
            now: 0,
            threads: FxHashMap::default(),
            listener,
        }
    }

    #[must_use]
    pub fn into_inner(self) -> L {
        self.listener
    }

    fn is_burst(&self) -> bool {
        self.now % self.bursts.interval.max(1) < self.bursts.length
    }
}

impl ReportedStack {
    /// Walks what the listener does not know.
    fn report_calls(
        &mut self,
        thread: TraceThreadId,
        listener: &mut impl CallListener,
    ) -> Result<(), KContextError> {
        while self.known > self.same {
            listener.leave_call(thread)?;
            self.known -= 1;
        }
        let news = self.stack.iter().skip(self.same);
        for callee in news {
            listener.enter_call(thread, *callee)?;
        }
        self.known = self.stack.len();
        self.same = self.known;
        Ok(())
    }
}

impl<L: CallListener> CallListener for BurstListener<L> {
    fn enter_call(
        &mut self,
        thread: TraceThreadId,
        callee: LabeledCallee,
    ) -> Result<(), KContextError> {
        self.threads.entry(thread).or_default().stack.push(callee);
        Ok(())
    }

    fn add_count(&mut self, thread: TraceThreadId, weight: u64) -> Result<(), KContextError> {
        let is_burst = self.is_burst();
        let walked = self.threads.entry(thread).or_default();
        if walked.stack.is_empty() {
            return Err(KContextError::NothingEntered(thread));
        }
        if is_burst {
            walked.report_calls(thread, &mut self.listener)?;
            self.listener.add_count(thread, weight)?;
        }
        if self.bursts.unit == IntervalUnit::Calls {
            self.now += 1;
        }
        Ok(())
    }

    fn leave_call(&mut self, thread: TraceThreadId) -> Result<(), KContextError> {
        let walked = self.threads.entry(thread).or_default();
        let left = walked.stack.pop();
        walked.same = walked.same.min(walked.stack.len());
        left.map(drop).ok_or(KContextError::NothingToLeave(thread))
    }

    fn set_time(&mut self, nanos: u64) {
        if self.bursts.unit == IntervalUnit::Time {
            self.now = nanos;
        }
    }
}

#[cfg(test)]
mod burst_tests {
    use super::*;

    #[test]
    fn bursts_are_read_as_they_are_written() {
        let paper = "0.2ms/2ms".parse::<BurstIntervals>();
        assert_eq!(paper, Ok(BurstIntervals::PAPER));
        assert_eq!("200us/2ms".parse::<BurstIntervals>(), paper);
        assert_eq!(BurstIntervals::PAPER.to_string(), "0.2 ms of every 2 ms");
        let calls = "200/2000".parse::<BurstIntervals>();
        assert_eq!(calls, Ok(BurstIntervals::PAPER.in_calls()));
        assert_eq!(
            BurstIntervals::PAPER.in_calls().to_string(),
            "200 of every 2000 calls"
        );
    }

    #[test]
    fn what_is_no_burst_is_refused() {
        for text in [
            "",
            "1",
            "1ms/2",
            "2ms/1ms",
            "0/5",
            "-1ms/2ms",
            "1w/2w",
            "xms/2ms",
            "1e999s/1e999s",
            "ms/ms",
        ] {
            assert!(text.parse::<BurstIntervals>().is_err(), "{text}");
        }
    }
}
