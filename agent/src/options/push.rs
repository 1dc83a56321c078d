//! `push=URL` and what belongs to it: where the log goes while the program runs.

use std::path::PathBuf;
use std::time::Duration;

use lucce_ship::{Collector, Endpoint};

use super::out;
use super::values::{BadOption, malformed};

/// What was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Push {
    /// `None`: nowhere.
    pub to: Option<Endpoint>,
    /// From one push to the next.
    pub every: Duration,
    /// A file that has what the collector wants to see.
    pub token: Option<PathBuf>,
    /// What the dataset is told of the program.
    pub service: String,
    pub version: String,
}

impl Default for Push {
    fn default() -> Self {
        Push {
            to: None,
            every: Duration::from_secs(60),
            token: None,
            service: String::new(),
            version: String::new(),
        }
    }
}

const LEAST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(24 * 3600);

impl Push {
    /// Of a key that begins with `push`.
    ///
    /// # Errors
    /// The value is malformed.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), BadOption> {
        match key {
            "push" => {
                let to = Collector::at(value);
                let wrong = |why| BadOption(format!("option push={value}: the URL {why}"));
                self.to = Some(to.map_err(wrong)?);
            }
            "push-every" => self.every = every(key, value)?,
            "push-token" => self.token = Some(super::file(key, value)?),
            "push-service" => self.service = out::expand(value)?,
            _ => self.version = out::expand(value)?,
        }
        Ok(())
    }

    /// # Errors
    /// It says how to push, and not where to.
    pub fn check(&self) -> Result<(), BadOption> {
        match self.to.is_none() && *self != Push::default() {
            true => Err(BadOption(
                "push-every, push-token, push-service and push-version need push=URL".into(),
            )),
            false => Ok(()),
        }
    }
}

/// `60s`, `500ms`, `5m`
fn every(key: &str, value: &str) -> Result<Duration, BadOption> {
    const UNITS: [(&str, u64); 3] = [("ms", 1), ("s", 1000), ("m", 60_000)];
    let found = UNITS
        .iter()
        .find_map(|(unit, millis)| Some((value.strip_suffix(unit)?, millis)));
    let millis =
        found.and_then(|(number, millis)| number.parse::<u64>().ok()?.checked_mul(*millis));
    let every = millis.map(Duration::from_millis);
    every
        .filter(|every| (LEAST..=MOST).contains(every))
        .ok_or_else(|| malformed(key, value, "a time from 100ms to a day, such as 60s or 5m"))
}
