//! A collector over HTTP.

use std::path::Path;
use std::time::Duration;

use lucce_tracelog::RunId;

use crate::endpoint::Endpoint;
use crate::http::{self, Answer, Request};
use crate::sender::{Fault, Sent, Wire};
use crate::wire::{Known, PATH};

/// Of what a collector says no more is told.
const LONGEST: usize = 200;

/// Where logs go.
#[derive(Clone, Debug)]
pub struct Collector {
    to: Endpoint,
    headers: Vec<(String, String)>,
    /// For each request.
    limit: Duration,
}

impl Collector {
    /// `http://HOST[:PORT][/PATH]`
    ///
    /// # Errors
    /// What is wrong with the URL, to be put behind it.
    pub fn at(url: &str) -> Result<Endpoint, String> {
        let to = Endpoint::parse(url, "")?;
        match to.path.contains('?') {
            true => Err("must have no query".to_owned()),
            false => Ok(Endpoint {
                path: to.path.trim_end_matches('/').to_owned(),
                ..to
            }),
        }
    }

    /// `token`: what the collector wants to see; see [`token`].
    #[must_use]
    pub fn new(to: Endpoint, token: Option<&str>) -> Self {
        let bearer = |token| ("Authorization".to_owned(), format!("Bearer {token}"));
        Collector {
            to,
            headers: token.map(bearer).into_iter().collect(),
            limit: http::LIMIT,
        }
    }

    fn ask(&self, method: &str, run: RunId, body: &[u8]) -> Result<Answer, Fault> {
        let request = Request {
            method,
            path: &format!("{PATH}{run}"),
            headers: &self.headers,
            body,
        };
        http::ask(&self.to, &request, self.limit).map_err(|error| Fault::new(error.to_string()))
    }
}

/// The text that has the token: of a file, else of this variable of the environment, if it is set.
///
/// # Errors
/// The file cannot be read, by its name.
pub fn token_text(file: Option<&Path>, variable: &str) -> Result<Option<String>, String> {
    match file {
        Some(path) => std::fs::read_to_string(path)
            .map(Some)
            .map_err(|error| format!("{}: {error}", path.display())),
        None => Ok(std::env::var(variable).ok()),
    }
}

/// Every user of this machine can read the file.
#[must_use]
pub fn is_open_to_others(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let found = std::fs::metadata(file);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o004 != 0)
}

/// A token that a header may have, from the text of a file or of the environment.
///
/// # Errors
/// There is none, or one of several lines.
pub fn token(text: &str) -> Result<&str, String> {
    let token = text.trim();
    match !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(token),
        false => Err("a token of one word was expected".to_owned()),
    }
}

impl Wire for Collector {
    fn known(&mut self, run: RunId) -> Result<Known, Fault> {
        let answer = self.ask("GET", run, &[])?;
        match answer.status {
            200 => known(&answer).ok_or_else(|| Fault::new("it is no collector of lucce fleet")),
            _ => Err(fault(&answer)),
        }
    }

    fn send(&mut self, run: RunId, part: &[u8]) -> Result<Sent, Fault> {
        let answer = self.ask("POST", run, part)?;
        match answer.status {
            200 => match known(&answer) {
                Some(known) if known.ended => Ok(Sent::Ended),
                Some(_) => Ok(Sent::Taken),
                None => Err(Fault::new("it is no collector of lucce fleet")),
            },
            409 => Ok(Sent::Other),
            _ => Err(fault(&answer)),
        }
    }
}

fn known(answer: &Answer) -> Option<Known> {
    Known::parse(std::str::from_utf8(&answer.body).ok()?)
}

fn fault(answer: &Answer) -> Fault {
    let body = String::from_utf8_lossy(&answer.body);
    let line = body.lines().next().unwrap_or_default().trim();
    let line: String = line.chars().take(LONGEST).collect();
    let mut why = format!("{} {}", answer.status, answer.reason);
    if !line.is_empty() {
        why += &format!(": {line}");
    }
    Fault {
        why,
        asked: answer.retry_after.map(Duration::from_secs),
    }
}
