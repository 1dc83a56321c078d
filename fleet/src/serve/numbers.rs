//! Numbers and their traces.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use lucce_decoder::{Number, Profile, StackTrace};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::commits::State;
use crate::error::Error;
use crate::layout::Table;
use crate::numbers::symbols;

/// So many numbers are decoded at a time.
pub const MOST: usize = 10_000;
/// Symbols of so many runs are kept in memory, those that were asked for last.
const KEPT: usize = 8;

/// Symbols of some runs.
#[derive(Default)]
pub struct Numbers {
    /// By the path of their file, which is never changed.
    kept: Mutex<VecDeque<(String, Arc<Profile>)>>,
}

impl Numbers {
    /// # Errors
    /// The run or the number is not known.
    pub fn trace(
        &self,
        dataset: &Path,
        state: &State,
        number: Number,
    ) -> Result<StackTrace, Error> {
        let run = number.run.map(|run| run.to_string()).unwrap_or_default();
        let profile = self.symbols(dataset, state, &run)?;
        profile
            .trace(number.id)
            .map_err(|e| Error::Absent(format!("{number}: {e}")))
    }

    fn symbols(&self, dataset: &Path, state: &State, run: &str) -> Result<Arc<Profile>, Error> {
        let mut own = state
            .of(Table::Symbols)
            .filter(|entry| entry.run.as_deref() == Some(run));
        let path = own.next().map(|entry| entry.path.as_str());
        if let Some(known) = path.and_then(|path| self.known(path)) {
            return Ok(known);
        }
        // Without the lock: others are answered while a file is read.
        let profile = Arc::new(symbols(dataset, state, run)?);
        if let Some(path) = path {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.truncate(KEPT - 1);
            kept.push_front((path.to_owned(), profile.clone()));
        }
        Ok(profile)
    }

    fn known(&self, path: &str) -> Option<Arc<Profile>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == path)?;
        let found = kept.remove(at)?;
        let profile = found.1.clone();
        kept.push_front(found);
        Some(profile)
    }

    /// `{"traces": […]}`, in the order of the numbers.
    pub fn traces(&self, dataset: &Path, state: &State, numbers: &[Number]) -> Value {
        let traces = numbers.iter().map(|number| {
            match self.trace(dataset, state, *number) {
                Ok(trace) => told(*number, &trace),
                Err(error) => {
                    let run = number.run.map(|run| run.to_string()).unwrap_or_default();
                    let (what, words) = match error {
                        Error::Absent(words) if state.runs.contains_key(&run) => ("number", words),
                        Error::Absent(words) => ("run", words),
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
pub fn told(number: Number, trace: &StackTrace) -> Value {
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
pub fn of_run(run: &str, number: &str) -> Result<Number, Error> {
    match number.starts_with("0x") {
        true => whole(&format!("lucce:{run}:{number}")),
        false => {
            let found = whole(number)?;
            let is_same = found.run.is_some_and(|of| of.to_string() == run);
            is_same
                .then_some(found)
                .ok_or_else(|| Error::Usage("that is a number of another run".into()))
        }
    }
}

/// `lucce:RUN:0x…`
///
/// # Errors
/// It is none.
pub fn whole(text: &str) -> Result<Number, Error> {
    let found = Number::places_in(text).next();
    let is_all = found.filter(|(at, _)| *at == (0..text.len()));
    is_all.map(|(_, number)| number).ok_or_else(|| {
        Error::Usage("no number: RUN has 16 hexadecimal digits, NUMBER is 0x and up to 16".into())
    })
}

/// The numbers of `{"numbers": ["lucce:RUN:0x…", …]}`.
///
/// # Errors
/// It is something else, or there are too many.
pub fn asked(body: &[u8]) -> Result<Vec<Number>, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        numbers: Vec<String>,
    }
    let asked: Asked = serde_json::from_slice(body).map_err(|e| {
        let at = (e.line(), e.column());
        Error::Usage(format!(
            "{{\"numbers\": [\"lucce:RUN:0x…\", …]}} was expected; something else is in line {}, column {}",
            at.0, at.1
        ))
    })?;
    if asked.numbers.len() > MOST {
        return Err(Error::Usage(format!("more than {MOST} numbers")));
    }
    asked.numbers.iter().map(|text| whole(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole_or_refused() {
        let whole_one = "lucce:0123456789abcdef:0x1f";
        let number = whole(whole_one).unwrap();
        assert_eq!(of_run("0123456789abcdef", "0x1f").unwrap(), number);
        assert_eq!(of_run("0123456789abcdef", whole_one).unwrap(), number);
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
            assert!(of_run(run, text).is_err(), "{run} {text}");
        }
    }

    #[test]
    fn lists_of_numbers_are_checked() {
        assert_eq!(asked(b"{\"numbers\": []}").unwrap(), []);
        for wrong in [
            &b""[..],
            b"[]",
            b"{}",
            b"{\"numbers\": [1]}",
            b"{\"numbers\": [\"0x1\"]}",
            b"{\"numbers\": [], \"more\": 1}",
            b"\xff",
        ] {
            assert!(asked(wrong).is_err(), "{wrong:?}");
        }
        let many = vec!["lucce:0123456789abcdef:0x1"; MOST + 1];
        let body = serde_json::json!({ "numbers": many }).to_string();
        assert!(
            asked(body.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("more than")
        );
    }
}
