//! One HTTP/1.1 request and its response, with limits on every wait and every length.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::endpoint::HttpEndpoint;

/// Timeout of a whole request; the default of OpenTelemetry.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// A response is read up to this many bytes: it is at most a sentence.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;

/// The response of a server.
#[derive(PartialEq, Eq, Debug)]
pub struct HttpResponse {
    pub status: u16,
    /// The words behind the status.
    pub reason: String,
    /// In seconds.
    pub retry_after: Option<u64>,
    pub body: Vec<u8>,
}

/// A request to a server.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'r> {
    pub method: &'r str,
    /// Appended to the endpoint's own path.
    pub path: &'r str,
    /// Names and values, each of one line.
    pub headers: &'r [(String, String)],
    pub body: &'r [u8],
}

/// Sends one request and returns the response, within `timeout`.
///
/// # Errors
/// The server cannot be reached, is too slow, or does not speak HTTP. It is unknown then whether it received the
/// request.
pub fn send_request(
    to: &HttpEndpoint,
    request: &HttpRequest<'_>,
    limit: Duration,
) -> io::Result<HttpResponse> {
    send_request_bounded(to, request, limit, MAX_RESPONSE_BYTES)
}

/// As [`send_request`], but reads about `most` bytes of the response.
///
/// # Errors
/// As of [`send_request`].
pub fn send_request_bounded(
    to: &HttpEndpoint,
    request: &HttpRequest<'_>,
    limit: Duration,
    most: u64,
) -> io::Result<HttpResponse> {
    let until = Instant::now() + limit;
    let mut stream = connect_endpoint(to, until)?;
    stream.set_nodelay(true)?;
    let HttpRequest {
        method,
        path,
        headers,
        body,
    } = request;
    let mut head = format!(
        "{method} {}{path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: lucce/{}\r\nContent-Length: {}\r\nConnection: close\r\n",
        to.path,
        to.authority,
        env!("CARGO_PKG_VERSION"),
        body.len()
    );
    for (name, value) in *headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    stream.set_write_timeout(Some(remaining_time(until)?))?;
    // A server that refuses a request may respond before it has read all of it.
    let written = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body));
    let mut bytes = Vec::new();
    let read = read_response(&mut stream, until, most, &mut bytes);
    match parse_response(&bytes) {
        Some(answer) => Ok(answer),
        None => {
            written.and(read)?;
            Err(io::Error::other("it does not answer as HTTP servers do"))
        }
    }
}

fn connect_endpoint(to: &HttpEndpoint, until: Instant) -> io::Result<TcpStream> {
    let mut failed = io::Error::other("its name has no address");
    for address in (to.host.as_str(), to.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, remaining_time(until)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn remaining_time(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(io::Error::new(ErrorKind::TimedOut, "no answer in time")),
        false => Ok(left),
    }
}

/// Reads until the connection ends or the response is complete.
fn read_response(
    stream: &mut TcpStream,
    until: Instant,
    most: u64,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    let mut block = [0; 4096];
    while (bytes.len() as u64) < most && !is_complete(bytes) {
        stream.set_read_timeout(Some(remaining_time(until)?))?;
        match stream.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(read) => bytes.extend_from_slice(block.get(..read).unwrap_or_default()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                return remaining_time(until).map(|_| ());
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Whether the response is complete: a server may keep the connection open although it was asked to close it.
fn is_complete(bytes: &[u8]) -> bool {
    let Some((head, body)) = split_head(bytes) else {
        return false;
    };
    match find_header(head, "content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None => is_chunked(head) && decode_chunks(body).1,
    }
}

fn parse_response(bytes: &[u8]) -> Option<HttpResponse> {
    let (head, body) = split_head(bytes)?;
    let mut words = head.lines().next()?.splitn(3, ' ');
    words
        .next()
        .filter(|version| version.starts_with("HTTP/1."))?;
    let status = words.next()?.parse().ok()?;
    // An interim response, which precedes the final one.
    if (100..200).contains(&status) {
        return parse_response(body);
    }
    let length = find_header(head, "content-length").and_then(|length| length.parse().ok());
    let body = match length {
        Some(length) => body.get(..length).unwrap_or(body).to_vec(),
        None if is_chunked(head) => decode_chunks(body).0,
        None => body.to_vec(),
    };
    Some(HttpResponse {
        status,
        reason: words.next().unwrap_or_default().trim().to_owned(),
        retry_after: find_header(head, "retry-after").and_then(|after| after.parse().ok()),
        body,
    })
}

fn split_head(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let at = bytes.windows(4).position(|part| part == b"\r\n\r\n")?;
    let head = std::str::from_utf8(bytes.get(..at)?).ok()?;
    Some((head, bytes.get(at + 4..)?))
}

/// `name` in lower case.
fn find_header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut own = fields.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    own.next().map(|(_, value)| value.trim())
}

fn is_chunked(head: &str) -> bool {
    find_header(head, "transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case("chunked"))
}

/// Decodes `SIZE\r\n…\r\n` and so on, with hexadecimal sizes, up to a size of 0. Returns whether that was found.
fn decode_chunks(mut body: &[u8]) -> (Vec<u8>, bool) {
    let mut whole = Vec::new();
    while let Some(at) = body.windows(2).position(|part| part == b"\r\n") {
        let line = body
            .get(..at)
            .and_then(|line| std::str::from_utf8(line).ok());
        let size = line.and_then(|line| line.split(';').next());
        let Some(size) = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok()) else {
            break;
        };
        let rest = body.get(at + 2..).unwrap_or_default();
        if size == 0 {
            return (whole, true);
        }
        let Some(chunk) = rest.get(..size) else { break };
        whole.extend_from_slice(chunk);
        body = rest.get(size + 2..).unwrap_or_default();
    }
    (whole, false)
}

#[cfg(test)]
mod http_tests {
    use super::*;

    fn parse_parts(text: &str) -> Option<(u16, Option<u64>, String)> {
        let answer = parse_response(text.as_bytes())?;
        let body = String::from_utf8(answer.body).unwrap();
        Some((answer.status, answer.retry_after, body))
    }

    #[test]
    fn answers_are_read() {
        let plain = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more";
        assert_eq!(parse_parts(plain), Some((200, None, "ok".into())));
        let later = "HTTP/1.0 503 Busy\r\nretry-after:  7\r\n\r\nlater";
        assert_eq!(parse_parts(later), Some((503, Some(7), "later".into())));
        let chunks = "HTTP/1.1 400 No\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!(
            parse_parts(chunks),
            Some((400, None, "abc0123456789".into()))
        );
        assert!(is_complete(chunks.as_bytes()) && is_complete(plain.as_bytes()));
        let early = format!("HTTP/1.1 100 Continue\r\n\r\n{plain}");
        assert_eq!(parse_parts(&early), Some((200, None, "ok".into())));
        for other in [
            "",
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 x\r\n\r\n",
            "HTTP/1.1 200 OK\r\n",
        ] {
            assert_eq!(parse_parts(other), None, "{other}");
        }
    }

    /// A truncated response gives a response or none, and no panic.
    #[test]
    fn answers_may_be_cut_anywhere() {
        let chunks = "HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc\r\n0\r\n\r\n";
        for at in 0..chunks.len() {
            let cut = &chunks.as_bytes()[..at];
            let _ = (parse_response(cut), is_complete(cut));
        }
    }
}
