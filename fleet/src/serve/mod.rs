//! The decoding service: traces of numbers of any run, answers to the named questions, and their pages, by HTTP.
//!
//! Reading order: `routes` (what there is), this file (who answers), `numbers` (traces), `page` (rows with paths as the page of
//! `lucce view`), `openapi` (the description, of the same list of routes).

mod numbers;
mod openapi;
mod page;
mod routes;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lucce_decoder::Page;
use lucce_decoder::escape::Text;
use prometheus::{IntCounter, IntGauge};

use crate::commits::{Log, State};
use crate::engine::{Engine, Limits};
use crate::error::Error;
use crate::http::{Metrics, Request, Response};
use crate::output::{self, Form};
use crate::questions::{Parameter, Question};
use numbers::Numbers;
use routes::{Form as Shown, Route};

/// A request's body has not more.
const BODY: usize = 1 << 20;

/// What answers.
pub struct Service {
    dataset: PathBuf,
    limits: Limits,
    /// An answer has not more bytes.
    answer: usize,
    numbers: Numbers,
    metrics: Metrics,
    gauges: Option<Gauges>,
}

struct Gauges {
    runs: IntGauge,
    bytes: IntGauge,
    commit: IntGauge,
    rows: IntCounter,
}

impl Service {
    /// `limits`: of each question. `answer`: the most bytes of rows that are answered.
    ///
    /// # Errors
    /// The folder is no dataset.
    pub fn new(
        dataset: &Path,
        limits: Limits,
        answer: usize,
        metrics: Metrics,
    ) -> Result<Service, Error> {
        Log::open(dataset)?.state()?;
        Ok(Service {
            dataset: dataset.to_owned(),
            limits,
            answer,
            numbers: Numbers::default(),
            gauges: Gauges::new(&metrics).ok(),
            metrics,
        })
    }

    /// Answers a request.
    pub fn answer(&self, request: &mut Request) -> Response {
        let (route, parts) = match Route::of(request.method(), &request.parts()) {
            Ok(found) => found,
            Err(refused) => return refused,
        };
        let answer = self.routed(route, &parts, request);
        answer.unwrap_or_else(refused).of(route.name())
    }

    fn routed(
        &self,
        route: Route,
        parts: &[String],
        request: &mut Request,
    ) -> Result<Response, Error> {
        let first = parts.first().map_or("", String::as_str);
        let second = parts.get(1).map_or("", String::as_str);
        match route {
            // The server answers it.
            Route::Health => Ok(Response::text(200, "ok\n")),
            Route::Context => {
                let (text, form) = Shown::of_context(second, request);
                let number = numbers::of_run(first, text)?;
                self.context(number, form)
            }
            Route::Number => {
                let (text, form) = Shown::of_context(first, request);
                self.context(numbers::whole(text)?, form)
            }
            Route::Decode => {
                let body = match request.body(BODY) {
                    Ok(body) => body,
                    Err(refused) => return Ok(refused),
                };
                let state = self.state()?;
                let all = numbers::asked(&body)?;
                let traces = self.numbers.traces(&self.dataset, &state, &all);
                Ok(Response::json(200, plain(&traces.to_string())))
            }
            Route::Questions => Ok(Response::json(200, openapi::questions().to_string())),
            Route::Ask => self.ask(first, request),
            Route::View => self.view(first, request),
            Route::Metrics => {
                self.measure()?;
                Ok(Response::metrics(&self.metrics))
            }
            Route::OpenApi => Ok(Response::json(200, openapi::document().to_string())),
        }
    }

    fn state(&self) -> Result<State, Error> {
        Log::open(&self.dataset)?.state()
    }

    fn context(&self, number: lucce_tracelog::Number, form: Shown) -> Result<Response, Error> {
        let state = self.state()?;
        let trace = self.numbers.trace(&self.dataset, &state, number)?;
        Ok(match form {
            Shown::Text => {
                let text = format!("context {number}  {}\n{trace}", trace.stack);
                Response::text(200, text)
            }
            _ => {
                let json = numbers::told(number, &trace);
                Response::json(200, plain(&json.to_string()))
            }
        })
    }

    fn question(
        &self,
        name: &str,
        given: &[(String, String)],
    ) -> Result<(&'static Question, Vec<Parameter>), Error> {
        let question = Question::named(name).map_err(|e| Error::Absent(e.to_string()))?;
        let given: Vec<_> = given
            .iter()
            .filter(|(name, _)| name != routes::FORMAT)
            .map(|(name, value)| Parameter {
                name: name.clone(),
                value: value.clone(),
            })
            .collect();
        Ok((question, question.parameters(&given)?))
    }

    fn engine(&self, parameters: &[Parameter]) -> Result<Engine, Error> {
        let mut engine = Engine::open(&self.dataset, &self.limits)?;
        engine.parameters(parameters)?;
        Ok(engine)
    }

    fn ask(&self, name: &str, request: &Request) -> Result<Response, Error> {
        let (question, parameters) = self.question(name, request.query())?;
        let form = Shown::of_rows(request)?;
        let engine = self.engine(&parameters)?;
        let mut out = Bounded::new(self.answer);
        let (form, kind) = match form {
            Shown::Csv => (Form::Csv, "text/csv; charset=utf-8"),
            Shown::Text => (Form::Table, "text/plain; charset=utf-8"),
            Shown::Json => (Form::Json, "application/json"),
        };
        let written = output::answer(&engine, question.sql, form, &mut out);
        out.checked(written)?;
        if let Some(gauges) = &self.gauges {
            gauges.rows.inc_by(engine.told());
        }
        Ok(Response::new(200, kind, out.bytes))
    }

    fn view(&self, name: &str, request: &Request) -> Result<Response, Error> {
        let (question, parameters) = self.question(name, request.query())?;
        let engine = self.engine(&parameters)?;
        let html = page::of(&engine, question, &parameters)?;
        let policy = format!("{}; frame-ancestors 'none'", Page::policy(false));
        let page = Response::new(200, "text/html; charset=utf-8", html);
        Ok(page.with("Content-Security-Policy", policy))
    }

    fn measure(&self) -> Result<(), Error> {
        let state = self.state()?;
        if let Some(gauges) = &self.gauges {
            let bytes: u64 = state.files.values().map(|entry| entry.bytes).sum();
            gauges.runs.set(state.runs.len() as i64);
            gauges.bytes.set(bytes as i64);
            gauges.commit.set(state.number as i64);
        }
        Ok(())
    }
}

impl Gauges {
    fn new(metrics: &Metrics) -> prometheus::Result<Gauges> {
        let gauges = Gauges {
            runs: IntGauge::new(
                "lucce_fleet_dataset_runs",
                "Runs that the dataset knows, whose numbers may be gone.",
            )?,
            bytes: IntGauge::new(
                "lucce_fleet_dataset_bytes",
                "Bytes of the files that the dataset has now.",
            )?,
            commit: IntGauge::new(
                "lucce_fleet_dataset_commit",
                "The number of the last commit.",
            )?,
            rows: IntCounter::new("lucce_fleet_rows_total", "Rows of answers to questions.")?,
        };
        metrics.add(gauges.runs.clone());
        metrics.add(gauges.bytes.clone());
        metrics.add(gauges.commit.clone());
        metrics.add(gauges.rows.clone());
        Ok(gauges)
    }
}

/// Why something is not answered, in words.
fn refused(error: Error) -> Response {
    let status = match &error {
        Error::Absent(_) => 404,
        Error::Usage(_) => 400,
        error if error.is_exhausted() => 507,
        Error::Engine(_) => 400,
        Error::Time(_) => 504,
        Error::Output(_) => 507,
        Error::File(..) | Error::Dataset(..) | Error::Collision(_) => 500,
    };
    // Where the dataset lies is nothing that clients need.
    let words = match &error {
        Error::File(_, error) => format!("a file of the dataset: {error}"),
        Error::Dataset(_, what) => format!("the dataset: {what}"),
        other => other.to_string(),
    };
    Response::words(status, Text(&words).to_string())
}

fn plain(json: &str) -> String {
    output::escaped(json) + "\n"
}

/// What an answer is written to, as long as it is not too large.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
    is_full: bool,
}

impl Bounded {
    fn new(most: usize) -> Bounded {
        Bounded {
            bytes: Vec::new(),
            most,
            is_full: false,
        }
    }

    fn checked<T>(&self, written: Result<T, Error>) -> Result<T, Error> {
        match self.is_full {
            true => Err(Error::Output(io::Error::other(format!(
                "the answer has more than {} bytes",
                self.most
            )))),
            false => written,
        }
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            self.is_full = true;
            return Err(io::Error::other("too large"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
