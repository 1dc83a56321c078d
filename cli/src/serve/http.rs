//! The part of HTTP/1.1 that a page on the loopback device needs: a connection has one request and one answer.
//!
//! Clients are not trusted: the size of a request's head and its time are limited, so a client occupies at most one thread
//! for some seconds.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum bytes of a request's head; a browser's has one or two KB.
const HEAD: usize = 16 << 10;
const HEADERS: usize = 64;
/// Time limit for the head.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time limit for each piece of the answer.
const SLOW: Duration = Duration::from_secs(30);

/// A request: its target and the client's headers about its origin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageRequest {
    pub method: String,
    pub target: String,
    /// All `Host` headers.
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    /// All `Authorization` headers.
    pub authorizations: Vec<String>,
}

pub struct PageResponse {
    status: u16,
    kind: &'static str,
    /// Further headers.
    head: Vec<(&'static str, String)>,
    body: Arc<str>,
}

/// Reads a request. `None`: it is malformed, too long or too late.
pub fn read_request(connection: &mut TcpStream) -> io::Result<Option<PageRequest>> {
    connection.set_write_timeout(Some(SLOW))?;
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match parse_head(&head) {
            ParsedHead::Complete(request) => return Ok(Some(request)),
            ParsedHead::Invalid => return Ok(None),
            ParsedHead::Partial => {}
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() >= HEAD {
            return Ok(None);
        }
        connection.set_read_timeout(Some(left))?;
        match connection.read(&mut piece) {
            Ok(0) => return Ok(None),
            Ok(length) => head.extend_from_slice(piece.get(..length).unwrap_or_default()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(None);
            }
            Err(e) => return Err(e),
        }
    }
}

#[derive(PartialEq, Eq, Debug)]
enum ParsedHead {
    Complete(PageRequest),
    Partial,
    Invalid,
}

fn parse_head(head: &[u8]) -> ParsedHead {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Partial) => return ParsedHead::Partial,
        Err(_) => return ParsedHead::Invalid,
        Ok(httparse::Status::Complete(_)) => {}
    }
    let all = |name: &str| {
        let headers = request.headers.iter();
        let named = headers.filter(|header| header.name.eq_ignore_ascii_case(name));
        let texts = named.map(|header| String::from_utf8_lossy(header.value).into_owned());
        texts.collect()
    };
    ParsedHead::Complete(PageRequest {
        method: request.method.unwrap_or_default().to_owned(),
        target: request.path.unwrap_or_default().to_owned(),
        hosts: all("host"),
        origins: all("origin"),
        authorizations: all("authorization"),
    })
}

impl PageRequest {
    pub fn wants_body(&self) -> bool {
        self.method != "HEAD"
    }
}

/// Writes the answer. Reads the rest of the client's data, so that the client sees the answer before the connection ends.
pub fn write_response(
    connection: &mut TcpStream,
    with_body: bool,
    answer: &PageResponse,
) -> io::Result<()> {
    connection.write_all(answer.head_text().as_bytes())?;
    if with_body {
        connection.write_all(answer.body.as_bytes())?;
    }
    connection.flush()?;
    connection.shutdown(std::net::Shutdown::Write)?;
    connection.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut rest = [0; 4096];
    for _ in 0..HEAD / rest.len() {
        if !matches!(connection.read(&mut rest), Ok(1..)) {
            break;
        }
    }
    Ok(())
}

impl PageResponse {
    fn new(status: u16, kind: &'static str, body: Arc<str>) -> PageResponse {
        let head = Vec::new();
        PageResponse {
            status,
            kind,
            head,
            body,
        }
    }

    /// A page. `policy`: its content security policy. No other page may show it in a frame.
    pub fn from_page(html: Arc<str>, policy: &str) -> PageResponse {
        let policy = format!("{policy}; frame-ancestors 'none'");
        let mut answer = PageResponse::new(200, "text/html; charset=utf-8", html);
        answer.head.push(("Content-Security-Policy", policy));
        answer
    }

    pub fn from_data(json: Arc<str>) -> PageResponse {
        PageResponse::new(200, "application/json", json)
    }

    /// The figures for Prometheus.
    pub fn from_metrics(text: Arc<str>) -> PageResponse {
        PageResponse::new(200, super::metrics::CONTENT_TYPE, text)
    }

    pub fn no_content() -> PageResponse {
        PageResponse::new(204, "application/json", "".into())
    }

    pub fn redirect_to(place: &str) -> PageResponse {
        let mut answer = PageResponse::new(308, "text/plain; charset=utf-8", "".into());
        answer.head.push(("Location", place.to_owned()));
        answer
    }

    /// An error as text.
    pub fn from_error(status: u16, why: &str) -> PageResponse {
        let mut answer = PageResponse::new(
            status,
            "text/plain; charset=utf-8",
            format!("{why}\n").into(),
        );
        if status == 405 {
            answer.head.push(("Allow", "GET, HEAD".into()));
        }
        answer
    }

    fn head_text(&self) -> String {
        let reason = match self.status {
            200 => "OK",
            204 => "No Content",
            308 => "Permanent Redirect",
            400 => "Bad Request",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            _ => "Internal Server Error",
        };
        let length = match self.status {
            204 => String::new(),
            _ => format!("Content-Length: {}\r\n", self.body.len()),
        };
        let more = self.head.iter();
        let more: String = more
            .map(|(key, text)| format!("{key}: {text}\r\n"))
            .collect();
        // The page is not cached, not named to other sites, not reinterpreted as another type, and not shown within
        // another site.
        format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\n{length}{more}Cache-Control: no-store\r\n\
             Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n",
            self.status, self.kind
        )
    }
}

#[cfg(test)]
mod http_tests {
    use super::*;

    #[test]
    fn requests_come_in_pieces() {
        let text =
            b"GET /00ff/data?after=3 HTTP/1.1\r\nHost: localhost:1\r\nhost: b\r\nOrigin: c\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(parse_head(&text[..end]), ParsedHead::Partial, "{end}");
        }
        let ParsedHead::Complete(request) = parse_head(text) else {
            panic!("it is whole")
        };
        assert_eq!(request.target, "/00ff/data?after=3");
        assert_eq!(request.hosts, ["localhost:1", "b"]);
        assert_eq!(request.origins, ["c"]);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS + 1));
        for text in ["\0", "GET\r\n\r\n", "GET / HTTP/9\r\n\r\n", &many] {
            assert_eq!(parse_head(text.as_bytes()), ParsedHead::Invalid, "{text:?}");
        }
    }

    #[test]
    fn a_head_has_the_length_of_the_body() {
        let text = PageResponse::from_page("<p>ä".into(), "default-src 'none'").head_text();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n"));
        assert!(text.contains("Content-Length: 5\r\n"), "{text}");
        assert!(text.contains("default-src 'none'; frame-ancestors 'none'\r\n"));
        let text = PageResponse::no_content().head_text();
        assert!(!text.contains("Content-Length"), "{text}");
        assert!(
            PageResponse::from_error(405, "")
                .head_text()
                .contains("Allow: GET")
        );
    }
}
