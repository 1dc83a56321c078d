//! Requests to a collector: which ones are made again, and after how long.
//!
//! ```text
//! taken ─────────────────────────────► the next request
//! not reached, 429, 502, 503, 504 ───► the same request again, after 1 s, 2 s, … 60 s, or what the collector asks for
//! 408, 500, … ────────────────────────► likewise, but no more than 5 times: it may be this request that the collector cannot take
//! 413, and several rows ─────────────► half as many rows
//! anything else ─────────────────────► the next request; the rows are counted as refused
//! ```
//! A request whose answer was lost is made again with the profiles' ids that it had, so a collector can know it. Meanwhile nothing is
//! read and nothing is kept: what the program does is counted in its log.

use std::io::{self, Write};
use std::time::Duration;

use lucce_formats::{Gzip, OtlpAnswer, OtlpRequest, OtlpRequests, Run};
use lucce_ship::http::{self, Answer};
use lucce_ship::{Endpoint, Pace};
use serde::Serialize;

use super::super::complain;
use super::ledger::Ledger;
use super::patience::Patience;

/// Collectors take so much with gRPC, and more with HTTP.
const REQUEST: usize = 4 << 20;
/// How often a request is made again that may itself be the cause of an error in the collector.
const MOST_RETRIES: u32 = 5;

/// What has become of all requests.
#[derive(Default, Serialize)]
pub struct Told {
    /// Those that were taken.
    pub requests: u64,
    /// Of those, before they were packed.
    pub bytes: u64,
    /// Attempts that were in vain and made again.
    pub retries: u64,
    pub delivered: Ledger,
    pub refused: Ledger,
    /// Profiles of requests that were taken, without these.
    pub rejected_profiles: u64,
    /// Of the last look: the collector was away until the end.
    pub undelivered: Ledger,
}

pub struct Delivery {
    to: Endpoint,
    headers: Vec<(String, String)>,
    limit: usize,
    pace: Pace,
    /// Since the collector has last answered, requests were in vain, and that was told.
    is_away: bool,
    pub told: Told,
}

/// How a look's delivery ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Every row was taken or refused.
    Done,
    /// The end came first: the rows from this one on.
    GaveUp(usize),
    /// The collector takes nothing at all.
    Useless,
}

/// What to do about an answer.
#[derive(PartialEq, Eq, Debug)]
enum Next {
    Taken(OtlpAnswer),
    Later(String, Option<Duration>),
    /// As `Later`, a few times; then it is refused.
    Retry(String, Option<Duration>),
    Smaller,
    Refused(String),
}

impl Delivery {
    pub fn new(to: Endpoint, mut headers: Vec<(String, String)>) -> Self {
        let own = [
            ("Content-Type", "application/x-protobuf"),
            ("Content-Encoding", "gzip"),
        ];
        headers.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Delivery {
            to,
            headers,
            limit: REQUEST,
            pace: Pace::default(),
            is_away: false,
            told: Told::default(),
        }
    }

    /// Delivers a look.
    ///
    /// # Errors
    /// Memory cannot be packed.
    pub fn deliver(&mut self, run: &Run, patience: &mut Patience) -> io::Result<End> {
        let mut part = 0;
        let mut done = 0;
        let mut requests = OtlpRequests::new(run, done, part);
        while let Some(request) = requests.next(self.limit) {
            let rows = run.rows.get(done..done + request.rows).unwrap_or_default();
            match self.send(&request, patience)? {
                Some(Next::Taken(answer)) => {
                    self.told.requests += 1;
                    self.told.bytes += request.bytes.len() as u64;
                    self.told.delivered.add(run, rows);
                    self.tell(&answer);
                }
                Some(Next::Smaller) if request.rows > 1 => {
                    self.limit = request.bytes.len() / 2;
                    requests = OtlpRequests::new(run, done, part);
                    continue;
                }
                Some(Next::Refused(why)) if self.told.requests == 0 => {
                    complain(format_args!("{} takes no profiles: {why}", self.to));
                    return Ok(End::Useless);
                }
                Some(Next::Refused(why)) => {
                    let rows_text = super::super::output::plural(request.rows as u64, "row");
                    complain(format_args!("{} has refused {rows_text}: {why}", self.to));
                    self.told.refused.add(run, rows);
                }
                Some(Next::Smaller | Next::Later(..) | Next::Retry(..)) => {
                    complain(format_args!(
                        "{} takes no request of {} bytes",
                        self.to,
                        request.bytes.len()
                    ));
                    self.told.refused.add(run, rows);
                }
                None => {
                    self.told
                        .undelivered
                        .add(run, run.rows.get(done..).unwrap_or_default());
                    return Ok(End::GaveUp(done));
                }
            }
            done += request.rows;
            part += 1;
        }
        Ok(End::Done)
    }

    /// Until the collector says what it thinks of the request. `None`: the end came first.
    fn send(&mut self, request: &OtlpRequest, patience: &mut Patience) -> io::Result<Option<Next>> {
        let packed = packed(&request.bytes)?;
        let request = http::Request {
            method: "POST",
            path: "",
            headers: &self.headers,
            body: &packed,
        };
        let mut failures = 0;
        loop {
            let next = match http::ask(&self.to, &request, http::LIMIT) {
                Ok(answer) => next(answer),
                Err(error) => Next::Later(error.to_string(), None),
            };
            let (why, asked) = match next {
                Next::Later(why, asked) => (why, asked),
                Next::Retry(why, _) if failures == MOST_RETRIES => {
                    self.is_back();
                    return Ok(Some(Next::Refused(why)));
                }
                Next::Retry(why, asked) => {
                    failures += 1;
                    (why, asked)
                }
                next => {
                    self.is_back();
                    return Ok(Some(next));
                }
            };
            if !self.is_away {
                self.is_away = true;
                complain(format_args!(
                    "{}: {why}; trying again, and the counters wait in the log",
                    self.to
                ));
            }
            self.told.retries += 1;
            let delay = self.pace.in_vain(asked);
            if !patience.wait(delay) {
                return Ok(None);
            }
        }
    }

    fn is_back(&mut self) {
        self.pace.well();
        if self.is_away {
            self.is_away = false;
            complain(format_args!("{} answers again", self.to));
        }
    }

    fn tell(&mut self, answer: &OtlpAnswer) {
        self.told.rejected_profiles += answer.rejected;
        if answer.rejected > 0 || !answer.message.is_empty() {
            let (rejected, message) = (answer.rejected, &answer.message);
            complain(format_args!(
                "{}: {rejected} profiles rejected: {message}",
                self.to
            ));
        }
    }
}

fn next(answer: Answer) -> Next {
    let Answer {
        status,
        reason,
        retry_after,
        body,
    } = answer;
    let why = || {
        let message = OtlpAnswer::refused(&body);
        let message = message.map_or_else(String::new, |message| format!(": {message}"));
        format!("{status} {reason}{message}")
    };
    match status {
        200..=299 => Next::Taken(OtlpAnswer::taken(&body)),
        429 | 502 | 503 | 504 => Next::Later(why(), retry_after.map(Duration::from_secs)),
        501 | 505 => Next::Refused(why()),
        408 | 500..=599 => Next::Retry(why(), retry_after.map(Duration::from_secs)),
        413 => Next::Smaller,
        _ => Next::Refused(why()),
    }
}

fn packed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = Vec::new();
    let mut gzip = Gzip::new(&mut packed)?;
    gzip.write_all(bytes)?;
    gzip.finish()?;
    Ok(packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, retry_after: Option<u64>) -> Answer {
        Answer {
            status,
            reason: "Why".into(),
            retry_after,
            body: Vec::new(),
        }
    }

    #[test]
    fn answers_say_what_to_do() {
        assert!(matches!(next(answer(200, None)), Next::Taken(_)));
        let later = Next::Later("503 Why".into(), Some(Duration::from_secs(7)));
        assert_eq!(next(answer(503, Some(7))), later);
        for status in [429, 502, 504] {
            assert!(matches!(next(answer(status, None)), Next::Later(_, None)));
        }
        assert_eq!(next(answer(413, None)), Next::Smaller);
        for status in [408, 500, 507, 599] {
            let again = Next::Retry(format!("{status} Why"), Some(Duration::from_secs(7)));
            assert_eq!(next(answer(status, Some(7))), again);
        }
        for status in [301, 400, 401, 404, 501, 505] {
            assert!(matches!(next(answer(status, Some(1))), Next::Refused(_)));
        }
    }
}
