//! What is answered.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};

use super::metrics::Metrics;

/// A whole answer.
#[derive(Debug)]
pub struct Response {
    status: u16,
    kind: &'static str,
    head: Vec<(&'static str, String)>,
    body: Bytes,
    route: &'static str,
}

impl Response {
    #[must_use]
    pub fn new(status: u16, kind: &'static str, body: impl Into<Bytes>) -> Response {
        Response {
            status,
            kind,
            head: Vec::new(),
            body: body.into(),
            route: "none",
        }
    }

    #[must_use]
    pub fn text(status: u16, text: impl Into<String>) -> Response {
        Response::new(status, "text/plain; charset=utf-8", text.into())
    }

    #[must_use]
    pub fn json(status: u16, json: impl Into<String>) -> Response {
        Response::new(status, "application/json", json.into())
    }

    /// As Prometheus reads them.
    #[must_use]
    pub fn metrics(metrics: &Metrics) -> Response {
        let kind = "text/plain; version=0.0.4; charset=utf-8";
        Response::new(200, kind, metrics.text())
    }

    /// A sentence, for people: `{"error": "…"}`. What it holds of names must be escaped already, see `lucce_decoder::escape`.
    #[must_use]
    pub fn words(status: u16, why: impl Into<String>) -> Response {
        let why: String = why.into();
        let json = serde_json::json!({ "error": why });
        Response::json(status, format!("{json}\n"))
    }

    /// Another header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Response {
        self.head.push((name, value.into()));
        self
    }

    /// The route, by which metrics count: one of few, never what a client said.
    #[must_use]
    pub fn of(mut self, route: &'static str) -> Response {
        self.route = route;
        self
    }

    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    #[must_use]
    pub fn route(&self) -> &'static str {
        self.route
    }

    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    pub(super) fn into_hyper(self) -> hyper::Response<Full<Bytes>> {
        let mut answer = hyper::Response::new(Full::new(self.body));
        if let Ok(status) = hyper::StatusCode::from_u16(self.status) {
            *answer.status_mut() = status;
        }
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        // Neither is it kept, nor named to others, nor taken for something else than it says, nor shown within another site's.
        for (name, value) in [
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        for (name, value) in self.head {
            let name = HeaderName::from_bytes(name.as_bytes());
            // A value that is none, as one with line breaks, is left out.
            if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        }
        answer
    }
}
