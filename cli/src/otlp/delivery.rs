//! Sends requests to a collector, and repeats failed ones.
//!
//! ```text
//! accepted ──────────────────────────► the next request
//! not reached, 429, 502, 503, 504 ───► the same request again, after 1 s, 2 s, … 60 s, or the collector's Retry-After
//! 408, 500, … ───────────────────────► likewise, at most 5 times: the request itself may be the cause
//! 413, and several rows ─────────────► half as many rows
//! anything else ─────────────────────► the next request; the rows are counted as refused
//! ```
//! A repeated request has the same profile ids, so a collector can recognize it. Meanwhile nothing is read and nothing is
//! buffered: the log counts on.

use std::io::{self, Write};
use std::time::Duration;

use lucce_export::{ExportRun, GzipWriter, OtlpAnswer, OtlpRequest, OtlpRequests};
use lucce_ship::http::{self, HttpResponse};
use lucce_ship::{HttpEndpoint, RetryBackoff};
use serde::Serialize;

use super::super::print_diagnostic;
use super::delivery_deadline::DeliveryDeadline;
use super::ledger::EventLedger;

/// Maximum size of a request: collectors accept it with gRPC, and more with HTTP.
const MAX_REQUEST_BYTES: usize = 4 << 20;
/// Maximum number of retries of a request that may itself cause the collector's error.
const MAX_RETRIES: u32 = 5;

/// The outcome of all requests.
#[derive(Default, Serialize)]
pub struct PushReport {
    /// Number of accepted requests.
    pub requests: u64,
    /// Their bytes before packing.
    pub bytes: u64,
    /// Number of failed attempts that were repeated.
    pub retries: u64,
    pub delivered: EventLedger,
    pub refused: EventLedger,
    /// Number of profiles that the collector rejected in accepted requests.
    pub rejected_profiles: u64,
    /// Events of the last delta that were not delivered because the collector was away.
    pub undelivered: EventLedger,
}

pub struct OtlpDelivery {
    to: HttpEndpoint,
    headers: Vec<(String, String)>,
    limit: usize,
    pace: RetryBackoff,
    /// Whether requests have failed since the last answer, which was reported.
    is_away: bool,
    pub report: PushReport,
}

/// The end of a delta's delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryEnd {
    /// Every row was accepted or refused.
    Done,
    /// The command ended first; rows from this index were not delivered.
    GaveUp(usize),
    /// The collector accepts nothing at all.
    Useless,
}

/// The next step after an answer.
#[derive(PartialEq, Eq, Debug)]
enum DeliveryStep {
    Accepted(OtlpAnswer),
    RetryUnlimited(String, Option<Duration>),
    /// As `RetryUnlimited`, a few times; then the request counts as refused.
    RetryLimited(String, Option<Duration>),
    SplitRequest,
    Refused(String),
}

impl OtlpDelivery {
    pub fn new(to: HttpEndpoint, mut headers: Vec<(String, String)>) -> Self {
        let own = [
            ("Content-Type", "application/x-protobuf"),
            ("Content-Encoding", "gzip"),
        ];
        headers.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
        OtlpDelivery {
            to,
            headers,
            limit: MAX_REQUEST_BYTES,
            pace: RetryBackoff::default(),
            is_away: false,
            report: PushReport::default(),
        }
    }

    /// Delivers a delta.
    ///
    /// # Errors
    /// Packing failed.
    pub fn deliver_run(
        &mut self,
        run: &ExportRun,
        patience: &mut DeliveryDeadline,
    ) -> io::Result<DeliveryEnd> {
        let mut part = 0;
        let mut done = 0;
        let mut requests = OtlpRequests::new(run, done, part);
        while let Some(request) = requests.next_request(self.limit) {
            let rows = run.rows.get(done..done + request.rows).unwrap_or_default();
            match self.send_request(&request, patience)? {
                Some(DeliveryStep::Accepted(answer)) => {
                    self.report.requests += 1;
                    self.report.bytes += request.bytes.len() as u64;
                    self.report.delivered.add_rows(run, rows);
                    self.report_rejections(&answer);
                }
                Some(DeliveryStep::SplitRequest) if request.rows > 1 => {
                    self.limit = request.bytes.len() / 2;
                    requests = OtlpRequests::new(run, done, part);
                    continue;
                }
                Some(DeliveryStep::Refused(why)) if self.report.requests == 0 => {
                    print_diagnostic(format_args!("{} takes no profiles: {why}", self.to));
                    return Ok(DeliveryEnd::Useless);
                }
                Some(DeliveryStep::Refused(why)) => {
                    let rows_text = super::super::output::format_plural(request.rows as u64, "row");
                    print_diagnostic(format_args!("{} has refused {rows_text}: {why}", self.to));
                    self.report.refused.add_rows(run, rows);
                }
                Some(
                    DeliveryStep::SplitRequest
                    | DeliveryStep::RetryUnlimited(..)
                    | DeliveryStep::RetryLimited(..),
                ) => {
                    print_diagnostic(format_args!(
                        "{} takes no request of {} bytes",
                        self.to,
                        request.bytes.len()
                    ));
                    self.report.refused.add_rows(run, rows);
                }
                None => {
                    self.report
                        .undelivered
                        .add_rows(run, run.rows.get(done..).unwrap_or_default());
                    return Ok(DeliveryEnd::GaveUp(done));
                }
            }
            done += request.rows;
            part += 1;
        }
        Ok(DeliveryEnd::Done)
    }

    /// Sends a request until the collector accepts or refuses it. `None`: the command ended first.
    fn send_request(
        &mut self,
        request: &OtlpRequest,
        patience: &mut DeliveryDeadline,
    ) -> io::Result<Option<DeliveryStep>> {
        let packed = gzip_bytes(&request.bytes)?;
        let request = http::HttpRequest {
            method: "POST",
            path: "",
            headers: &self.headers,
            body: &packed,
        };
        let mut failures = 0;
        loop {
            let next = match http::send_request(&self.to, &request, http::REQUEST_TIMEOUT) {
                Ok(answer) => classify_answer(answer),
                Err(error) => DeliveryStep::RetryUnlimited(error.to_string(), None),
            };
            let (why, retry_after) = match next {
                DeliveryStep::RetryUnlimited(why, retry_after) => (why, retry_after),
                DeliveryStep::RetryLimited(why, _) if failures == MAX_RETRIES => {
                    self.mark_reachable();
                    return Ok(Some(DeliveryStep::Refused(why)));
                }
                DeliveryStep::RetryLimited(why, retry_after) => {
                    failures += 1;
                    (why, retry_after)
                }
                next => {
                    self.mark_reachable();
                    return Ok(Some(next));
                }
            };
            if !self.is_away {
                self.is_away = true;
                print_diagnostic(format_args!(
                    "{}: {why}; trying again, and the counters wait in the log",
                    self.to
                ));
            }
            self.report.retries += 1;
            let delay = self.pace.next_delay(retry_after);
            if !patience.wait_for_retry(delay) {
                return Ok(None);
            }
        }
    }

    fn mark_reachable(&mut self) {
        self.pace.reset_delay();
        if self.is_away {
            self.is_away = false;
            print_diagnostic(format_args!("{} answers again", self.to));
        }
    }

    fn report_rejections(&mut self, answer: &OtlpAnswer) {
        self.report.rejected_profiles += answer.rejected;
        if answer.rejected > 0 || !answer.message.is_empty() {
            let (rejected, message) = (answer.rejected, &answer.message);
            print_diagnostic(format_args!(
                "{}: {rejected} profiles rejected: {message}",
                self.to
            ));
        }
    }
}

fn classify_answer(answer: HttpResponse) -> DeliveryStep {
    let HttpResponse {
        status,
        reason,
        retry_after,
        body,
    } = answer;
    let why = || {
        let message = OtlpAnswer::refusal_message(&body);
        let message = message.map_or_else(String::new, |message| format!(": {message}"));
        format!("{status} {reason}{message}")
    };
    match status {
        200..=299 => DeliveryStep::Accepted(OtlpAnswer::from_response_body(&body)),
        429 | 502 | 503 | 504 => {
            DeliveryStep::RetryUnlimited(why(), retry_after.map(Duration::from_secs))
        }
        501 | 505 => DeliveryStep::Refused(why()),
        408 | 500..=599 => DeliveryStep::RetryLimited(why(), retry_after.map(Duration::from_secs)),
        413 => DeliveryStep::SplitRequest,
        _ => DeliveryStep::Refused(why()),
    }
}

fn gzip_bytes(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = Vec::new();
    let mut gzip = GzipWriter::new(&mut packed)?;
    gzip.write_all(bytes)?;
    gzip.finish()?;
    Ok(packed)
}

#[cfg(test)]
mod delivery_tests {
    use super::*;

    fn answer(status: u16, retry_after: Option<u64>) -> HttpResponse {
        HttpResponse {
            status,
            reason: "Why".into(),
            retry_after,
            body: Vec::new(),
        }
    }

    #[test]
    fn answers_say_what_to_do() {
        assert!(matches!(
            classify_answer(answer(200, None)),
            DeliveryStep::Accepted(_)
        ));
        let later = DeliveryStep::RetryUnlimited("503 Why".into(), Some(Duration::from_secs(7)));
        assert_eq!(classify_answer(answer(503, Some(7))), later);
        for status in [429, 502, 504] {
            assert!(matches!(
                classify_answer(answer(status, None)),
                DeliveryStep::RetryUnlimited(_, None)
            ));
        }
        assert_eq!(
            classify_answer(answer(413, None)),
            DeliveryStep::SplitRequest
        );
        for status in [408, 500, 507, 599] {
            let again =
                DeliveryStep::RetryLimited(format!("{status} Why"), Some(Duration::from_secs(7)));
            assert_eq!(classify_answer(answer(status, Some(7))), again);
        }
        for status in [301, 400, 401, 404, 501, 505] {
            assert!(matches!(
                classify_answer(answer(status, Some(1))),
                DeliveryStep::Refused(_)
            ));
        }
    }
}
