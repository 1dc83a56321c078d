//! `push=URL` and related options: the collector that gets the log while the program runs.

use std::path::PathBuf;
use std::time::Duration;

use lucce_ship::{HttpCollectorClient, HttpEndpoint};

use super::output_path;
use super::values::{OptionError, malformed_value};

/// The options of pushing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PushOptions {
    /// The collector; `None`: the log is not pushed.
    pub to: Option<HttpEndpoint>,
    /// Pause between two pushes.
    pub every: Duration,
    /// A file with the token for the collector.
    pub token: Option<PathBuf>,
    /// Names of the program for the dataset.
    pub service: String,
    pub version: String,
}

impl Default for PushOptions {
    fn default() -> Self {
        PushOptions {
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

impl PushOptions {
    /// Sets an option whose key begins with `push`.
    ///
    /// # Errors
    /// The value is malformed.
    pub fn set_option(&mut self, key: &str, value: &str) -> Result<(), OptionError> {
        match key {
            "push" => {
                let to = HttpCollectorClient::parse_url(value);
                let wrong = |why| OptionError(format!("option push={value}: the URL {why}"));
                self.to = Some(to.map_err(wrong)?);
            }
            "push-every" => self.every = parse_interval(key, value)?,
            "push-token" => self.token = Some(super::parse_file(key, value)?),
            "push-service" => self.service = output_path::expand_placeholders(value)?,
            _ => self.version = output_path::expand_placeholders(value)?,
        }
        Ok(())
    }

    /// Checks that there is a URL if other push options are set.
    ///
    /// # Errors
    /// The URL is missing.
    pub fn check_target(&self) -> Result<(), OptionError> {
        match self.to.is_none() && *self != PushOptions::default() {
            true => Err(OptionError(
                "push-every, push-token, push-service and push-version need push=URL".into(),
            )),
            false => Ok(()),
        }
    }
}

/// `60s`, `500ms`, `5m`
fn parse_interval(key: &str, value: &str) -> Result<Duration, OptionError> {
    const UNITS: [(&str, u64); 3] = [("ms", 1), ("s", 1000), ("m", 60_000)];
    let found = UNITS
        .iter()
        .find_map(|(unit, millis)| Some((value.strip_suffix(unit)?, millis)));
    let millis =
        found.and_then(|(number, millis)| number.parse::<u64>().ok()?.checked_mul(*millis));
    let every = millis.map(Duration::from_millis);
    every
        .filter(|every| (LEAST..=MOST).contains(every))
        .ok_or_else(|| malformed_value(key, value, "a time from 100ms to a day, such as 60s or 5m"))
}
