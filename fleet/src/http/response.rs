//! What is answered.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};

use super::metrics::ServerMetrics;

/// A whole answer.
#[derive(Debug)]
pub struct ServerResponse {
    status: u16,
    content_type: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    route: &'static str,
}

impl ServerResponse {
    #[must_use]
    pub fn new(status: u16, kind: &'static str, body: impl Into<Bytes>) -> ServerResponse {
        ServerResponse {
            status,
            content_type: kind,
            headers: Vec::new(),
            body: body.into(),
            route: "none",
        }
    }

    #[must_use]
    pub fn from_text(status: u16, text: impl Into<String>) -> ServerResponse {
        ServerResponse::new(status, "text/plain; charset=utf-8", text.into())
    }

    #[must_use]
    pub fn from_json(status: u16, json: impl Into<String>) -> ServerResponse {
        ServerResponse::new(status, "application/json", json.into())
    }

    /// As Prometheus reads them.
    #[must_use]
    pub fn from_metrics(metrics: &ServerMetrics) -> ServerResponse {
        let kind = "text/plain; version=0.0.4; charset=utf-8";
        ServerResponse::new(200, kind, metrics.encode_text())
    }

    /// A sentence, for people: `{"error": "…"}`. What it holds of names must be escaped already, see `lucce_decoder::escape`.
    #[must_use]
    pub fn from_message(status: u16, why: impl Into<String>) -> ServerResponse {
        let why: String = why.into();
        let json = serde_json::json!({ "error": why });
        ServerResponse::from_json(status, format!("{json}\n"))
    }

    /// Another header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> ServerResponse {
        self.headers.push((name, value.into()));
        self
    }

    /// The route, by which metrics count: one of few, never text of a client.
    #[must_use]
    pub fn with_route(mut self, route: &'static str) -> ServerResponse {
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
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        // Neither is it kept, nor named to others, nor taken for something else than it says, nor shown within another site's.
        for (name, value) in [
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        for (name, value) in self.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            // A value that is none, as one with line breaks, is left out.
            if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        }
        answer
    }
}
