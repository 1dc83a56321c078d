//! Numbers and their traces.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use lucce_decoder::{ContextNumber, Profile, StackTrace};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::commits::DatasetState;
use crate::error::FleetError;
use crate::layout::DatasetTable;
use crate::numbers::read_symbols;
use crate::store::SharedStore;

/// So many numbers are decoded at a time.
pub const MAX_NUMBERS: usize = 10_000;
/// Symbols of so many runs are kept in memory, the most recently requested ones.
const MAX_CACHED_RUNS: usize = 8;

/// Symbols of some runs.
#[derive(Default)]
pub struct SymbolsCache {
    /// By the path of their file, which is never changed.
    profiles: Mutex<VecDeque<(String, Arc<Profile>)>>,
}

impl SymbolsCache {
    /// # Errors
    /// The run or the number is not known.
    pub fn decode_trace(
        &self,
        store: &SharedStore,
        state: &DatasetState,
        number: ContextNumber,
    ) -> Result<StackTrace, FleetError> {
        let run = number.run.map(|run| run.to_string()).unwrap_or_default();
        let profile = self.load_symbols(store, state, &run)?;
        profile
            .decode_trace(number.id)
            .map_err(|e| FleetError::Absent(format!("{number}: {e}")))
    }

    fn load_symbols(
        &self,
        store: &SharedStore,
        state: &DatasetState,
        run: &str,
    ) -> Result<Arc<Profile>, FleetError> {
        let mut own = state
            .files_of(DatasetTable::Symbols)
            .filter(|entry| entry.run.as_deref() == Some(run));
        let path = own.next().map(|entry| entry.path.as_str());
        if let Some(known) = path.and_then(|path| self.cached_symbols(path)) {
            return Ok(known);
        }
        // Without the lock: others are answered while a file is read.
        let profile = Arc::new(read_symbols(store, state, run)?);
        if let Some(path) = path {
            let mut kept = self.profiles.lock().unwrap_or_else(PoisonError::into_inner);
            kept.truncate(MAX_CACHED_RUNS - 1);
            kept.push_front((path.to_owned(), profile.clone()));
        }
        Ok(profile)
    }

    fn cached_symbols(&self, path: &str) -> Option<Arc<Profile>> {
        let mut kept = self.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == path)?;
        let entry = kept.remove(at)?;
        let profile = entry.1.clone();
        kept.push_front(entry);
        Some(profile)
    }

    /// `{"traces": […]}`, in the order of the numbers.
    pub fn traces_json(
        &self,
        store: &SharedStore,
        state: &DatasetState,
        numbers: &[ContextNumber],
    ) -> Value {
        let traces = numbers.iter().map(|number| {
            match self.decode_trace(store, state, *number) {
                Ok(trace) => trace_json(*number, &trace),
                Err(error) => {
                    let run = number.run.map(|run| run.to_string()).unwrap_or_default();
                    let (what, words) = match error {
                        FleetError::Absent(words) if state.runs.contains_key(&run) => {
                            ("number", words)
                        }
                        FleetError::Absent(words) => ("run", words),
                        // Where the dataset lies is nothing that clients need.
                        _ => ("symbols", "the run's symbols cannot be read".to_owned()),
                    };
                    json!({ "number": number.to_string(), "what": what, "error": words })
                }
            }
        });
        json!({ "traces": traces.collect::<Vec<_>>() })
    }
}

/// A trace, innermost frame first.
pub fn trace_json(number: ContextNumber, trace: &StackTrace) -> Value {
    json!({
        "number": number.to_string(),
        "stack": trace.stack.to_string(),
        "allocated": trace.allocated,
        "frames": trace.frames,
    })
}

/// A number as `/runs/RUN/contexts/NUMBER` has it: bare, or with the same run.
///
/// # Errors
/// It is none.
pub fn parse_run_number(run: &str, number: &str) -> Result<ContextNumber, FleetError> {
    match number.starts_with("0x") {
        true => parse_number(&format!("lucce:{run}:{number}")),
        false => {
            let parsed = parse_number(number)?;
            let is_same = parsed.run.is_some_and(|of| of.to_string() == run);
            is_same
                .then_some(parsed)
                .ok_or_else(|| FleetError::Usage("that is a number of another run".into()))
        }
    }
}

/// `lucce:RUN:0x…`
///
/// # Errors
/// It is none.
pub fn parse_number(text: &str) -> Result<ContextNumber, FleetError> {
    let place = ContextNumber::places_in(text).next();
    let is_all = place.filter(|(at, _)| *at == (0..text.len()));
    is_all.map(|(_, number)| number).ok_or_else(|| {
        FleetError::Usage(
            "no number: RUN has 16 hexadecimal digits, NUMBER is 0x and up to 16".into(),
        )
    })
}

/// The numbers of `{"numbers": ["lucce:RUN:0x…", …]}`.
///
/// # Errors
/// It is something else, or there are too many.
pub fn parse_decode_request(body: &[u8]) -> Result<Vec<ContextNumber>, FleetError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct DecodeRequest {
        numbers: Vec<String>,
    }
    let request: DecodeRequest = serde_json::from_slice(body).map_err(|e| {
        let at = (e.line(), e.column());
        FleetError::Usage(format!(
            "{{\"numbers\": [\"lucce:RUN:0x…\", …]}} was expected; something else is in line {}, column {}",
            at.0, at.1
        ))
    })?;
    if request.numbers.len() > MAX_NUMBERS {
        return Err(FleetError::Usage(format!(
            "more than {MAX_NUMBERS} numbers"
        )));
    }
    request
        .numbers
        .iter()
        .map(|text| parse_number(text))
        .collect()
}

#[cfg(test)]
mod numbers_tests {
    use super::*;

    #[test]
    fn numbers_are_whole_or_refused() {
        let whole_one = "lucce:0123456789abcdef:0x1f";
        let number = parse_number(whole_one).unwrap();
        assert_eq!(
            parse_run_number("0123456789abcdef", "0x1f").unwrap(),
            number
        );
        assert_eq!(
            parse_run_number("0123456789abcdef", whole_one).unwrap(),
            number
        );
        for (run, text) in [
            ("0123456789abcdee", whole_one),
            ("0123456789abcdef", "31"),
            ("0123456789abcdef", "0x"),
            ("0123456789abcdef", "0x1g"),
            ("0123456789abcdef", "0x11111111111111111"),
            ("0123456789abcde", "0x1"),
            ("../../etc/passwd", "0x1"),
            ("", "0x1"),
            ("0123456789abcdef:0x1 lucce:0123456789abcdef", "0x1"),
        ] {
            assert!(parse_run_number(run, text).is_err(), "{run} {text}");
        }
    }

    #[test]
    fn lists_of_numbers_are_checked() {
        assert_eq!(parse_decode_request(b"{\"numbers\": []}").unwrap(), []);
        for wrong in [
            &b""[..],
            b"[]",
            b"{}",
            b"{\"numbers\": [1]}",
            b"{\"numbers\": [\"0x1\"]}",
            b"{\"numbers\": [], \"more\": 1}",
            b"\xff",
        ] {
            assert!(parse_decode_request(wrong).is_err(), "{wrong:?}");
        }
        let many = vec!["lucce:0123456789abcdef:0x1"; MAX_NUMBERS + 1];
        let body = serde_json::json!({ "numbers": many }).to_string();
        assert!(
            parse_decode_request(body.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("more than")
        );
    }
}
