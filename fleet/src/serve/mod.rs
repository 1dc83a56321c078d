//! The decoding service: traces of numbers of any run, answers to the named questions, and their pages, by HTTP.
//!
//! Reading order: `routes` (what there is), this file (who answers), `numbers` (traces), `page` (rows with paths as the page of
//! `lucce view`), `openapi` (the description, of the same list of routes).

mod numbers;
mod openapi;
mod page;
mod routes;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use lucce_decoder::escape::EscapedText;
use lucce_page::HtmlPage;
use prometheus::{IntCounter, IntGauge};

use crate::commits::{CommitLog, DatasetState};
use crate::engine::{QueryEngine, QueryLimits};
use crate::error::FleetError;
use crate::http::{ServerMetrics, ServerRequest, ServerResponse};
use crate::output::{self, OutputFormat};
use crate::questions::{ParameterValue, Question};
use crate::store::SharedStore;
use numbers::SymbolsCache;
use routes::{ApiRoute, ResponseFormat};

/// A request's body has not more.
const MAX_BODY_BYTES: usize = 1 << 20;

/// What answers.
pub struct DecodeService {
    log: CommitLog,
    /// What it was at the last request.
    state: Mutex<Arc<DatasetState>>,
    limits: QueryLimits,
    /// An answer has not more bytes.
    max_answer_bytes: usize,
    symbols_cache: SymbolsCache,
    metrics: ServerMetrics,
    gauges: Option<DatasetGauges>,
}

struct DatasetGauges {
    runs: IntGauge,
    bytes: IntGauge,
    commit: IntGauge,
    rows: IntCounter,
}

impl DecodeService {
    /// `limits`: of each question. `answer`: the most bytes of rows that are answered.
    ///
    /// # Errors
    /// There is no dataset.
    pub fn new(
        store: &SharedStore,
        limits: QueryLimits,
        answer: usize,
        metrics: ServerMetrics,
    ) -> Result<DecodeService, FleetError> {
        let log = CommitLog::open(store)?;
        Ok(DecodeService {
            state: Mutex::new(Arc::new(log.read_state()?)),
            log,
            limits,
            max_answer_bytes: answer,
            symbols_cache: SymbolsCache::default(),
            gauges: DatasetGauges::new(&metrics).ok(),
            metrics,
        })
    }

    /// Answers a request.
    pub fn answer_request(&self, request: &mut ServerRequest) -> ServerResponse {
        let (route, parts) = match ApiRoute::match_request(request.method(), &request.path_parts())
        {
            Ok(found) => found,
            Err(refused) => return refused,
        };
        let answer = self.dispatch_route(route, &parts, request);
        answer
            .unwrap_or_else(error_response)
            .with_route(route.path_template())
    }

    fn dispatch_route(
        &self,
        route: ApiRoute,
        parts: &[String],
        request: &mut ServerRequest,
    ) -> Result<ServerResponse, FleetError> {
        let first = parts.first().map_or("", String::as_str);
        let second = parts.get(1).map_or("", String::as_str);
        match route {
            // The server answers it.
            ApiRoute::Health => Ok(ServerResponse::from_text(200, "ok\n")),
            ApiRoute::Context => {
                let (text, form) = ResponseFormat::for_context(second, request);
                let number = numbers::parse_run_number(first, text)?;
                self.context_response(number, form)
            }
            ApiRoute::Number => {
                let (text, form) = ResponseFormat::for_context(first, request);
                self.context_response(numbers::parse_number(text)?, form)
            }
            ApiRoute::Decode => {
                let body = match request.read_body(MAX_BODY_BYTES) {
                    Ok(body) => body,
                    Err(refused) => return Ok(refused),
                };
                let state = self.read_state()?;
                let all = numbers::parse_decode_request(&body)?;
                let traces = self
                    .symbols_cache
                    .traces_json(self.log.store(), &state, &all);
                Ok(ServerResponse::from_json(
                    200,
                    json_line(&traces.to_string()),
                ))
            }
            ApiRoute::Questions => Ok(ServerResponse::from_json(
                200,
                openapi::questions_json().to_string(),
            )),
            ApiRoute::Ask => self.answer_question(first, request),
            ApiRoute::View => self.view_question(first, request),
            ApiRoute::Metrics => {
                self.update_gauges()?;
                Ok(ServerResponse::from_metrics(&self.metrics))
            }
            ApiRoute::OpenApi => Ok(ServerResponse::from_json(
                200,
                openapi::openapi_document().to_string(),
            )),
        }
    }

    /// The dataset as it is now: one file is looked for, unless others have committed something.
    fn read_state(&self) -> Result<Arc<DatasetState>, FleetError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.log.is_outdated(&state)? {
            let mut next = DatasetState::clone(&state);
            self.log.refresh_state(&mut next)?;
            *state = Arc::new(next);
        }
        Ok(Arc::clone(&state))
    }

    fn context_response(
        &self,
        number: lucce_tracelog::ContextNumber,
        form: ResponseFormat,
    ) -> Result<ServerResponse, FleetError> {
        let state = self.read_state()?;
        let trace = self
            .symbols_cache
            .decode_trace(self.log.store(), &state, number)?;
        Ok(match form {
            ResponseFormat::Text => {
                let text = format!("context {number}  {}\n{trace}", trace.stack);
                ServerResponse::from_text(200, text)
            }
            _ => {
                let json = numbers::trace_json(number, &trace);
                ServerResponse::from_json(200, json_line(&json.to_string()))
            }
        })
    }

    fn resolve_question(
        &self,
        name: &str,
        given: &[(String, String)],
    ) -> Result<(&'static Question, Vec<ParameterValue>), FleetError> {
        let question =
            Question::find_by_name(name).map_err(|e| FleetError::Absent(e.to_string()))?;
        let given: Vec<_> = given
            .iter()
            .filter(|(name, _)| name != routes::FORMAT)
            .map(|(name, value)| ParameterValue {
                name: name.clone(),
                value: value.clone(),
            })
            .collect();
        Ok((question, question.resolve_parameters(&given)?))
    }

    fn open_engine(&self, parameters: &[ParameterValue]) -> Result<QueryEngine, FleetError> {
        let state = self.read_state()?;
        let mut engine = QueryEngine::with_state(self.log.store(), &state, &self.limits)?;
        engine.set_parameters(parameters)?;
        Ok(engine)
    }

    fn answer_question(
        &self,
        name: &str,
        request: &ServerRequest,
    ) -> Result<ServerResponse, FleetError> {
        let (question, parameters) = self.resolve_question(name, request.query())?;
        let form = ResponseFormat::for_rows(request)?;
        let engine = self.open_engine(&parameters)?;
        let mut out = AnswerBuffer::new(self.max_answer_bytes);
        let (form, kind) = match form {
            ResponseFormat::Csv => (OutputFormat::Csv, "text/csv; charset=utf-8"),
            ResponseFormat::Text => (OutputFormat::Table, "text/plain; charset=utf-8"),
            ResponseFormat::Json => (OutputFormat::Json, "application/json"),
        };
        let written = output::write_answer(&engine, question.sql, form, &mut out);
        out.check_size(written)?;
        if let Some(gauges) = &self.gauges {
            gauges.rows.inc_by(engine.answered_rows());
        }
        Ok(ServerResponse::new(200, kind, out.bytes))
    }

    fn view_question(
        &self,
        name: &str,
        request: &ServerRequest,
    ) -> Result<ServerResponse, FleetError> {
        let (question, parameters) = self.resolve_question(name, request.query())?;
        let engine = self.open_engine(&parameters)?;
        let html = page::render_page(&engine, question, &parameters)?;
        let policy = format!(
            "{}; frame-ancestors 'none'",
            HtmlPage::content_policy(false)
        );
        let page = ServerResponse::new(200, "text/html; charset=utf-8", html);
        Ok(page.with_header("Content-Security-Policy", policy))
    }

    fn update_gauges(&self) -> Result<(), FleetError> {
        let state = self.read_state()?;
        if let Some(gauges) = &self.gauges {
            let bytes: u64 = state.files.values().map(|entry| entry.bytes).sum();
            gauges.runs.set(state.runs.len() as i64);
            gauges.bytes.set(bytes as i64);
            gauges.commit.set(state.number as i64);
        }
        Ok(())
    }
}

impl DatasetGauges {
    fn new(metrics: &ServerMetrics) -> prometheus::Result<DatasetGauges> {
        let gauges = DatasetGauges {
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
        metrics.register_metric(gauges.runs.clone());
        metrics.register_metric(gauges.bytes.clone());
        metrics.register_metric(gauges.commit.clone());
        metrics.register_metric(gauges.rows.clone());
        Ok(gauges)
    }
}

/// Why something is not answered, in words.
fn error_response(error: FleetError) -> ServerResponse {
    let status = match &error {
        FleetError::Absent(_) => 404,
        FleetError::Usage(_) => 400,
        error if error.is_exhausted() => 507,
        FleetError::Engine(_) => 400,
        FleetError::Time(_) => 504,
        FleetError::Output(_) => 507,
        FleetError::File(..) | FleetError::Dataset(..) | FleetError::Collision(_) => 500,
    };
    // Where the dataset lies is nothing that clients need.
    let words = match &error {
        FleetError::File(_, error) => format!("a file of the dataset: {error}"),
        FleetError::Dataset(_, what) => format!("the dataset: {what}"),
        other => other.to_string(),
    };
    ServerResponse::from_message(status, EscapedText(&words).to_string())
}

fn json_line(json: &str) -> String {
    output::escape_json(json) + "\n"
}

/// What an answer is written to, as long as it is not too large.
struct AnswerBuffer {
    bytes: Vec<u8>,
    max_bytes: usize,
    is_full: bool,
}

impl AnswerBuffer {
    fn new(most: usize) -> AnswerBuffer {
        AnswerBuffer {
            bytes: Vec::new(),
            max_bytes: most,
            is_full: false,
        }
    }

    fn check_size<T>(&self, written: Result<T, FleetError>) -> Result<T, FleetError> {
        match self.is_full {
            true => Err(FleetError::Output(io::Error::other(format!(
                "the answer has more than {} bytes",
                self.max_bytes
            )))),
            false => written,
        }
    }
}

impl Write for AnswerBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.max_bytes {
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
