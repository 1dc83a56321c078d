//! A client of a collector over HTTP.

use std::path::Path;
use std::time::Duration;

use lucce_tracelog::RunId;

use crate::endpoint::HttpEndpoint;
use crate::http::{self, HttpRequest, HttpResponse};
use crate::sender::{CollectorClient, CollectorError, PartReply};
use crate::wire::{CollectorGeneration, LOGS_PATH};

/// A collector's message is cut after this many characters.
const MAX_REASON_CHARS: usize = 200;

/// The destination of logs.
#[derive(Clone, Debug)]
pub struct HttpCollectorClient {
    to: HttpEndpoint,
    headers: Vec<(String, String)>,
    /// The timeout of each request.
    timeout: Duration,
}

impl HttpCollectorClient {
    /// Parses `http://HOST[:PORT][/PATH]`.
    ///
    /// # Errors
    /// What is wrong with the URL; the caller prints the URL in front of it.
    pub fn parse_url(url: &str) -> Result<HttpEndpoint, String> {
        let to = HttpEndpoint::parse(url, "")?;
        match to.path.contains('?') {
            true => Err("must have no query".to_owned()),
            false => Ok(HttpEndpoint {
                path: to.path.trim_end_matches('/').to_owned(),
                ..to
            }),
        }
    }

    /// `token`: the token that the collector requires; see [`parse_token`].
    #[must_use]
    pub fn new(to: HttpEndpoint, token: Option<&str>) -> Self {
        let bearer = |token| ("Authorization".to_owned(), format!("Bearer {token}"));
        HttpCollectorClient {
            to,
            headers: token.map(bearer).into_iter().collect(),
            timeout: http::REQUEST_TIMEOUT,
        }
    }

    fn send_request(
        &self,
        method: &str,
        run: RunId,
        body: &[u8],
    ) -> Result<HttpResponse, CollectorError> {
        let request = HttpRequest {
            method,
            path: &format!("{LOGS_PATH}{run}"),
            headers: &self.headers,
            body,
        };
        http::send_request(&self.to, &request, self.timeout)
            .map_err(|error| CollectorError::new(error.to_string()))
    }
}

/// Returns the text with the token: from the file, else from this environment variable, if it is set.
///
/// # Errors
/// The file cannot be read; the message names it.
pub fn read_token_text(file: Option<&Path>, variable: &str) -> Result<Option<String>, String> {
    match file {
        Some(path) => std::fs::read_to_string(path)
            .map(Some)
            .map_err(|error| format!("{}: {error}", path.display())),
        None => Ok(std::env::var(variable).ok()),
    }
}

/// Whether every user of this machine can read the file.
#[must_use]
pub fn is_world_readable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let metadata = std::fs::metadata(file);
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o004 != 0)
}

/// Returns a token that can be sent in a header, from the text of a file or of the environment.
///
/// # Errors
/// There is no token, or it has several lines.
pub fn parse_token(text: &str) -> Result<&str, String> {
    let token = text.trim();
    match !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(token),
        false => Err("a token of one word was expected".to_owned()),
    }
}

impl CollectorClient for HttpCollectorClient {
    fn last_generation(&mut self, run: RunId) -> Result<CollectorGeneration, CollectorError> {
        let answer = self.send_request("GET", run, &[])?;
        match answer.status {
            200 => parse_generation(&answer)
                .ok_or_else(|| CollectorError::new("it is no collector of lucce fleet")),
            _ => Err(to_collector_error(&answer)),
        }
    }

    fn send_part(&mut self, run: RunId, part: &[u8]) -> Result<PartReply, CollectorError> {
        let answer = self.send_request("POST", run, part)?;
        match answer.status {
            200 => match parse_generation(&answer) {
                Some(known) if known.ended => Ok(PartReply::RunComplete),
                Some(_) => Ok(PartReply::Stored),
                None => Err(CollectorError::new("it is no collector of lucce fleet")),
            },
            409 => Ok(PartReply::WrongGeneration),
            _ => Err(to_collector_error(&answer)),
        }
    }
}

fn parse_generation(answer: &HttpResponse) -> Option<CollectorGeneration> {
    CollectorGeneration::parse(std::str::from_utf8(&answer.body).ok()?)
}

fn to_collector_error(answer: &HttpResponse) -> CollectorError {
    let body = String::from_utf8_lossy(&answer.body);
    let line = body.lines().next().unwrap_or_default().trim();
    let line: String = line.chars().take(MAX_REASON_CHARS).collect();
    let mut why = format!("{} {}", answer.status, answer.reason);
    if !line.is_empty() {
        why += &format!(": {line}");
    }
    CollectorError {
        why,
        retry_after: answer.retry_after.map(Duration::from_secs),
    }
}
