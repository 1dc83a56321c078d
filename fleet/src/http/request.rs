//! The request of a client.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::HeaderMap;
use percent_encoding::percent_decode_str;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

use super::ServerResponse;

/// A request, whose body is still on its way.
pub struct ServerRequest {
    method: String,
    /// Decoded.
    path: Vec<String>,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Option<Incoming>,
    runtime: Handle,
    /// For each piece of the body.
    piece_timeout: Duration,
    /// For all of it.
    deadline: Instant,
}

impl ServerRequest {
    pub(super) fn new(
        request: hyper::Request<Incoming>,
        runtime: Handle,
        patience: Duration,
        until: Instant,
    ) -> Result<ServerRequest, ServerResponse> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().strip_prefix('/');
        let path = path
            .ok_or_else(|| ServerResponse::from_message(400, "the path does not begin with /"))?;
        let parts = path.split('/').map(|part| {
            let decoded = percent_decode_str(part).decode_utf8();
            decoded.map(|part| part.into_owned())
        });
        let path = parts
            .collect::<Result<Vec<String>, _>>()
            .map_err(|_| ServerResponse::from_message(400, "the path is no UTF-8"))?;
        let query = head.uri.query().unwrap_or_default();
        let query = url::form_urlencoded::parse(query.as_bytes()).into_owned();
        Ok(ServerRequest {
            method: head.method.as_str().to_owned(),
            path,
            query: query.collect(),
            headers: head.headers,
            body: Some(body),
            runtime,
            piece_timeout: patience,
            deadline: until,
        })
    }

    /// `HEADER_BYTES` is `GET` here: the answer's body is left out later.
    #[must_use]
    pub fn method(&self) -> &str {
        match self.method.as_str() {
            "HEAD" => "GET",
            method => method,
        }
    }

    /// The path's parts, decoded: `/runs/a%2Fb` is `["runs", "a/b"]`, so a part may hold anything, `..` and `/` as well.
    #[must_use]
    pub fn path_parts(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    /// Parameters behind `?`, decoded, in order.
    #[must_use]
    pub fn query(&self) -> &[(String, String)] {
        &self.query
    }

    /// A header that is text; `name` in small letters. Of several the first.
    #[must_use]
    pub fn header_text(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body, in memory.
    ///
    /// # Errors
    /// The answer: it is larger than `limit` (413), did not come in time (408), or ended too early (400).
    pub fn read_body(&mut self, limit: usize) -> Result<Vec<u8>, ServerResponse> {
        let mut bytes = Vec::new();
        self.read_body_pieces(limit as u64, &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// The body, into a new file, piece by piece; its bytes. The file is on the disk then (synced), or not there.
    ///
    /// # Errors
    /// The answer: as of [`body`](Self::body), or the file cannot be written (507).
    pub fn read_body_to_file(&mut self, path: &Path, limit: u64) -> Result<u64, ServerResponse> {
        let failed = |e: std::io::Error| {
            ServerResponse::from_message(507, format!("what was sent cannot be kept: {e}"))
        };
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(failed)?;
        let written = self
            .read_body_pieces(limit, &mut |piece| file.write_all(piece).map_err(failed))
            .and_then(|bytes| file.sync_all().map(|()| bytes).map_err(failed));
        if written.is_err() {
            // Who has sent it learns that it was not kept, whether the part of it is gone or not.
            let _ = std::fs::remove_file(path);
        }
        written
    }

    /// Hands over the body piece by piece; its bytes.
    ///
    /// # Errors
    /// As [`body`](Self::body), and those of `each`.
    pub fn read_body_pieces(
        &mut self,
        limit: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), ServerResponse>,
    ) -> Result<u64, ServerResponse> {
        let too_large = || ServerResponse::from_message(413, format!("more than {limit} bytes"));
        let Some(mut body) = self.body.take() else {
            return Ok(0);
        };
        if body.size_hint().lower() > limit {
            return Err(too_large());
        }
        let mut bytes = 0_u64;
        loop {
            let until = self.deadline.min(Instant::now() + self.piece_timeout);
            let next = timeout_at(until, body.frame());
            let next = self.runtime.block_on(next);
            let frame = match next {
                Err(_) => {
                    return Err(ServerResponse::from_message(
                        408,
                        "the body did not come in time",
                    ));
                }
                Ok(None) => return Ok(bytes),
                Ok(Some(Err(_))) => {
                    return Err(ServerResponse::from_message(
                        400,
                        "the body ended too early",
                    ));
                }
                Ok(Some(Ok(frame))) => frame,
            };
            if let Some(piece) = frame.data_ref() {
                bytes += piece.len() as u64;
                if bytes > limit {
                    return Err(too_large());
                }
                each(piece)?;
            }
        }
    }
}
