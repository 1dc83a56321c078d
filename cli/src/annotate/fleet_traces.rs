//! Traces from a decoding service (`lucce fleet serve`): requests many context ids at a time, each once.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use lucce_contentid::StackId;
use lucce_decoder::{CodeOrigin, ContextNumber, RunId, StackFrame, StackTrace};
use lucce_ship::{HttpEndpoint, http, read_token_text};
use serde_json::{Value, json};

use super::super::output::{format_plural, warn_if_readable};
use super::super::{CommandError, CommandStatus, print_diagnostic};

/// The environment variable of the token.
const TOKEN: &str = "LUCCE_FLEET_TOKEN";
/// Number of context ids in a request.
const BATCH: usize = 500;
/// Maximum bytes of an answer. Traces have a limited depth, and frames have about a hundred bytes.
const ANSWER: u64 = 64 << 20;
/// Time limit of a request, which may wait for others.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of attempts if the service has no free thread, a second apart.
const TRIES: u32 = 10;
/// Maximum number of cached traces; then the cache is emptied.
const KEPT: usize = 100_000;
/// Maximum number of runs in the final message.
const NAMED: usize = 20;

pub struct FleetTraceSource {
    to: HttpEndpoint,
    headers: Vec<(String, String)>,
    /// `None`: the service does not know the id.
    traces: HashMap<ContextNumber, Option<StackTrace>>,
    /// Number of context ids left in the text, by run: here of runs that the service does not know, in `left` for other
    /// reasons.
    unknown_runs: BTreeMap<RunId, u64>,
    left: BTreeMap<RunId, (u64, String)>,
}

impl FleetTraceSource {
    /// Connects to a service. `token`: the token's file; else the environment's token, if there is one.
    pub fn new(url: &str, token: Option<&Path>) -> Result<Self, CommandError> {
        let to = HttpEndpoint::parse(url, "");
        let mut to = to.map_err(|what| CommandError::Usage(format!("--fleet {url}: {what}")))?;
        to.path.truncate(to.path.trim_end_matches('/').len());
        warn_if_readable(token);
        let token = read_token_text(token, TOKEN).map_err(CommandError::Usage)?;
        let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        if let Some(text) = token {
            let word = lucce_ship::parse_token(&text).map_err(CommandError::Usage)?;
            headers.push(("Authorization".to_owned(), format!("Bearer {word}")));
        }
        Ok(FleetTraceSource {
            to,
            headers,
            traces: HashMap::new(),
            unknown_runs: BTreeMap::new(),
            left: BTreeMap::new(),
        })
    }

    /// Requests the ids that are not cached.
    pub fn fetch_traces(
        &mut self,
        numbers: impl Iterator<Item = ContextNumber>,
    ) -> Result<(), CommandError> {
        let mut wanted: Vec<ContextNumber> = Vec::new();
        if self.traces.len() >= KEPT {
            self.traces.clear();
        }
        for number in numbers {
            if number.run.is_some() && !self.traces.contains_key(&number) {
                self.traces.insert(number, None);
                wanted.push(number);
            }
        }
        wanted
            .chunks(BATCH)
            .try_for_each(|some| self.request_traces(some))
    }

    /// The trace of an id; without one, counts the id as left in the text.
    pub fn find_trace(&mut self, number: ContextNumber) -> Option<StackTrace> {
        let trace = self.traces.get(&number).cloned().flatten();
        if let (None, Some(run)) = (&trace, number.run) {
            if let Some(numbers) = self.unknown_runs.get_mut(&run) {
                *numbers += 1;
            } else if let Some((numbers, _)) = self.left.get_mut(&run) {
                *numbers += 1;
            }
        }
        trace
    }

    fn request_traces(&mut self, numbers: &[ContextNumber]) -> Result<(), CommandError> {
        let texts: Vec<_> = numbers.iter().map(ToString::to_string).collect();
        let body = json!({ "numbers": texts }).to_string();
        let answer = self.post_request(body.as_bytes())?;
        let traces = answer.get("traces").and_then(Value::as_array);
        let traces = traces.filter(|traces| traces.len() == numbers.len());
        let traces =
            traces.ok_or_else(|| self.service_error("it does not answer as lucce fleet serve"))?;
        for (number, trace_json) in numbers.iter().zip(traces) {
            match parse_trace(*number, trace_json) {
                Some(trace) => {
                    self.traces.insert(*number, Some(trace));
                }
                None => self.record_left(*number, trace_json),
            }
        }
        Ok(())
    }

    fn record_left(&mut self, number: ContextNumber, trace_json: &Value) {
        let text = |key: &str| {
            trace_json
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let Some(run) = number.run else { return };
        match text("what") {
            "run" => {
                self.unknown_runs.entry(run).or_default();
            }
            _ => {
                let words = || (0, text("error").to_owned());
                self.left.entry(run).or_insert_with(words);
            }
        }
    }

    fn post_request(&self, body: &[u8]) -> Result<Value, CommandError> {
        let request = http::HttpRequest {
            method: "POST",
            path: "/decode",
            headers: &self.headers,
            body,
        };
        let mut tries = 0;
        loop {
            let answer = http::send_request_bounded(&self.to, &request, PATIENCE, ANSWER);
            let answer = answer.map_err(|e| self.service_error(e))?;
            let read = serde_json::from_slice::<Value>(&answer.body);
            if answer.status == 200 {
                return read
                    .map_err(|_| self.service_error("it does not answer as lucce fleet serve"));
            }
            if answer.status == 503 && tries < TRIES {
                tries += 1;
                std::thread::sleep(Duration::from_secs(1));
                continue;
            }
            let words = read.ok();
            let words = words
                .as_ref()
                .and_then(|error_json| error_json.get("error")?.as_str());
            return Err(self.service_error(format_args!(
                "{} {}",
                answer.status,
                words.unwrap_or(&answer.reason)
            )));
        }
    }

    fn service_error(&self, why: impl std::fmt::Display) -> CommandError {
        CommandError::Absent(format!("{}: {why}", self.to), CommandStatus::Finding)
    }

    /// Reports ids that were left in the text, and returns the command's result.
    pub fn report_outcome(&self) -> CommandStatus {
        let unknown = self.unknown_runs.iter().map(|(run, numbers)| {
            let numbers = format_plural(*numbers, "number");
            format!("{} does not know run {run}: {numbers}", self.to)
        });
        let left = self.left.iter().map(|(run, (numbers, words))| {
            let numbers = format_plural(*numbers, "number");
            format!("{numbers} of run {run} cannot be decoded, the first: {words}")
        });
        for words in unknown.chain(left).take(NAMED) {
            print_diagnostic(words);
        }
        let runs = self.unknown_runs.len() + self.left.len();
        if let Some(more) = runs.checked_sub(NAMED).filter(|more| *more > 0) {
            print_diagnostic(format_args!(
                "and {} like this",
                format_plural(more as u64, "more run")
            ));
        }
        match runs {
            0 => CommandStatus::Fine,
            _ => CommandStatus::Finding,
        }
    }
}

fn parse_trace(number: ContextNumber, trace_json: &Value) -> Option<StackTrace> {
    let text = |of: &Value, key: &str| Some(of.get(key)?.as_str()?.to_owned());
    let frame = |frame: &Value| {
        let class = text(frame, "class")?;
        Some(StackFrame {
            method: text(frame, "method")?,
            file: text(frame, "file"),
            line: i32::try_from(frame.get("line")?.as_i64()?).ok()?,
            origin: match frame.get("own").and_then(Value::as_bool) {
                Some(true) => CodeOrigin::Application,
                _ => CodeOrigin::from_foreign_name(&class),
            },
            class,
        })
    };
    let frames = trace_json.get("frames")?.as_array()?.iter().map(frame);
    Some(StackTrace {
        id: number.id,
        stack: trace_json.get("stack")?.as_str()?.parse::<StackId>().ok()?,
        allocated: text(trace_json, "allocated"),
        frames: frames.collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod fleet_traces_tests {
    use super::*;

    fn number() -> ContextNumber {
        ContextNumber::find_in("lucce:0123456789abcdef:0x1f")
            .next()
            .unwrap()
    }

    #[test]
    fn traces_are_read() {
        let frame = json!({ "class": "a.B", "method": "m", "file": null, "line": -2 });
        let stack = "0123456789abcdef0123456789abcdef";
        let trace_json =
            json!({ "number": "", "stack": stack, "allocated": null, "frames": [frame] });
        let trace = parse_trace(number(), &trace_json).unwrap();
        assert_eq!(trace.stack.to_string(), stack);
        assert_eq!(trace.to_string(), "\tat a.B.m(Native Method)\n");
        for wrong in [
            json!({}),
            json!({ "frames": [] }),
            json!({ "stack": "7", "frames": [] }),
            json!({ "stack": stack, "frames": [{}] }),
            json!({ "stack": stack, "frames": [{ "class": "a", "method": "m", "line": 1_u64 << 40 }] }),
            json!({ "what": "run", "error": "…" }),
        ] {
            assert_eq!(parse_trace(number(), &wrong), None, "{wrong}");
        }
    }
}
