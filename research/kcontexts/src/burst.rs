//! Static bursting (Section 5.2): calls are heard for a short while in every interval only.
//!
//! Outside of bursts nothing is passed on. A burst begins with a walk of the stack: the frames that
//! are there are entered without being counted. What is still there from the burst before is not
//! walked again, so the walks together enter no more frames than were called.

use std::fmt;
use std::str::FromStr;

use lucce_options::units::parse_duration;
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::ids::{Callee, Thread};
use crate::listener::Listener;

/// A burst's length and how often one begins: `0.2ms/2ms`, or `200/2000` in calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bursts {
    /// Nanoseconds or calls.
    pub length: u64,
    /// Nanoseconds or calls.
    pub interval: u64,
    pub unit: Unit,
}

/// What a burst is measured by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// The stream's clock, in nanoseconds.
    Time,
    /// Calls of all threads, for streams without a clock.
    Calls,
}

impl Bursts {
    /// The paper's: 0.2 ms in every 2 ms.
    pub const PAPER: Bursts = Bursts {
        length: 200_000,
        interval: 2_000_000,
        unit: Unit::Time,
    };

    /// In calls, one of which is taken for each microsecond.
    #[must_use]
    pub fn in_calls(self) -> Bursts {
        let calls = |nanos: u64| (nanos / 1000).max(1);
        match self.unit {
            Unit::Calls => self,
            Unit::Time => Bursts {
                length: calls(self.length),
                interval: calls(self.interval),
                unit: Unit::Calls,
            },
        }
    }
}

impl FromStr for Bursts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(length, interval)| {
            let ((length, unit), (interval, same)) = (parse_span(length)?, parse_span(interval)?);
            (unit == same && 0 < length && length <= interval).then_some(Bursts {
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
fn parse_span(text: &str) -> Option<(u64, Unit)> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some((text.parse().ok()?, Unit::Calls));
    }
    // A time without a unit would be a number of calls.
    let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    let time = parse_duration(text).ok().filter(|_| has_unit)?;
    Some((u64::try_from(time.as_nanos()).ok()?, Unit::Time))
}

impl fmt::Display for Bursts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bursts {
            length, interval, ..
        } = self;
        match self.unit {
            Unit::Calls => write!(f, "{length} of every {interval} calls"),
            Unit::Time => {
                let ms = |nanos: &u64| *nanos as f64 / 1e6;
                write!(f, "{} ms of every {} ms", ms(length), ms(interval))
            }
        }
    }
}

/// Passes on what happens in bursts.
pub struct Bursting<L> {
    bursts: Bursts,
    now: u64,
    threads: FxHashMap<Thread, Walked>,
    listener: L,
}

/// A thread's stack, and what the listener knows of it.
#[derive(Default)]
struct Walked {
    stack: Vec<Callee>,
    /// Calls that the listener has entered and not left.
    known: usize,
    /// The first so many of them are still on the stack.
    same: usize,
}

impl<L: Listener> Bursting<L> {
    pub fn new(bursts: Bursts, listener: L) -> Self {
        Bursting {
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

impl Walked {
    /// Walks what the listener does not know.
    fn tell(&mut self, thread: Thread, listener: &mut impl Listener) -> Result<(), Error> {
        while self.known > self.same {
            listener.leave(thread)?;
            self.known -= 1;
        }
        let news = self.stack.iter().skip(self.same);
        for callee in news {
            listener.enter(thread, *callee)?;
        }
        self.known = self.stack.len();
        self.same = self.known;
        Ok(())
    }
}

impl<L: Listener> Listener for Bursting<L> {
    fn enter(&mut self, thread: Thread, callee: Callee) -> Result<(), Error> {
        self.threads.entry(thread).or_default().stack.push(callee);
        Ok(())
    }

    fn count(&mut self, thread: Thread, weight: u64) -> Result<(), Error> {
        let is_burst = self.is_burst();
        let walked = self.threads.entry(thread).or_default();
        if walked.stack.is_empty() {
            return Err(Error::NothingEntered(thread));
        }
        if is_burst {
            walked.tell(thread, &mut self.listener)?;
            self.listener.count(thread, weight)?;
        }
        if self.bursts.unit == Unit::Calls {
            self.now += 1;
        }
        Ok(())
    }

    fn leave(&mut self, thread: Thread) -> Result<(), Error> {
        let walked = self.threads.entry(thread).or_default();
        let left = walked.stack.pop();
        walked.same = walked.same.min(walked.stack.len());
        left.map(drop).ok_or(Error::NothingToLeave(thread))
    }

    fn time(&mut self, nanos: u64) {
        if self.bursts.unit == Unit::Time {
            self.now = nanos;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_read_as_they_are_written() {
        let paper = "0.2ms/2ms".parse::<Bursts>();
        assert_eq!(paper, Ok(Bursts::PAPER));
        assert_eq!("200us/2ms".parse::<Bursts>(), paper);
        assert_eq!(Bursts::PAPER.to_string(), "0.2 ms of every 2 ms");
        let calls = "200/2000".parse::<Bursts>();
        assert_eq!(calls, Ok(Bursts::PAPER.in_calls()));
        assert_eq!(
            Bursts::PAPER.in_calls().to_string(),
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
            assert!(text.parse::<Bursts>().is_err(), "{text}");
        }
    }
}
