//! One request to a server and its answer (HTTP/1.1), with an end to every wait and to every length.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::endpoint::Endpoint;

/// For everything together: OpenTelemetry's own.
pub const LIMIT: Duration = Duration::from_secs(10);
/// More of an answer is not read: it is a sentence, if anything.
const ANSWER: u64 = 64 << 10;

/// What a server said.
#[derive(PartialEq, Eq, Debug)]
pub struct Answer {
    pub status: u16,
    /// The words behind the status.
    pub reason: String,
    /// Seconds.
    pub retry_after: Option<u64>,
    pub body: Vec<u8>,
}

/// What a server is asked.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    pub method: &'r str,
    /// Behind the endpoint's own path.
    pub path: &'r str,
    /// Names and values, each of one line.
    pub headers: &'r [(String, String)],
    pub body: &'r [u8],
}

/// One request, and what the server says, within so long.
///
/// # Errors
/// The server cannot be reached, is too slow, or speaks something else. Whether it has got the request is not known then.
pub fn ask(to: &Endpoint, request: &Request<'_>, limit: Duration) -> io::Result<Answer> {
    ask_for(to, request, limit, ANSWER)
}

/// As [`ask`]; of an answer about `most` bytes are read.
///
/// # Errors
/// As of [`ask`].
pub fn ask_for(
    to: &Endpoint,
    request: &Request<'_>,
    limit: Duration,
    most: u64,
) -> io::Result<Answer> {
    let until = Instant::now() + limit;
    let mut stream = connected(to, until)?;
    stream.set_nodelay(true)?;
    let Request {
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
    stream.set_write_timeout(Some(left(until)?))?;
    // A server that refuses a request may answer before it has read all of it.
    let written = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body));
    let mut bytes = Vec::new();
    let read = read_all(&mut stream, until, most, &mut bytes);
    match answer(&bytes) {
        Some(answer) => Ok(answer),
        None => {
            written.and(read)?;
            Err(io::Error::other("it does not answer as HTTP servers do"))
        }
    }
}

fn connected(to: &Endpoint, until: Instant) -> io::Result<TcpStream> {
    let mut failed = io::Error::other("its name has no address");
    for address in (to.host.as_str(), to.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(until)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(io::Error::new(ErrorKind::TimedOut, "no answer in time")),
        false => Ok(left),
    }
}

/// The connection ends with the answer, or there is enough of it.
fn read_all(
    stream: &mut TcpStream,
    until: Instant,
    most: u64,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    let mut block = [0; 4096];
    while (bytes.len() as u64) < most && !is_whole(bytes) {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(read) => bytes.extend_from_slice(block.get(..read).unwrap_or_default()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => return left(until).map(|_| ()),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// A server may keep the connection although it was asked to close it.
fn is_whole(bytes: &[u8]) -> bool {
    let Some((head, body)) = divided(bytes) else {
        return false;
    };
    match header(head, "content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None => is_chunked(head) && unchunked(body).1,
    }
}

fn answer(bytes: &[u8]) -> Option<Answer> {
    let (head, body) = divided(bytes)?;
    let mut words = head.lines().next()?.splitn(3, ' ');
    words
        .next()
        .filter(|version| version.starts_with("HTTP/1."))?;
    let status = words.next()?.parse().ok()?;
    // What comes beforehand, and is no answer yet.
    if (100..200).contains(&status) {
        return answer(body);
    }
    let length = header(head, "content-length").and_then(|length| length.parse().ok());
    let body = match length {
        Some(length) => body.get(..length).unwrap_or(body).to_vec(),
        None if is_chunked(head) => unchunked(body).0,
        None => body.to_vec(),
    };
    Some(Answer {
        status,
        reason: words.next().unwrap_or_default().trim().to_owned(),
        retry_after: header(head, "retry-after").and_then(|after| after.parse().ok()),
        body,
    })
}

fn divided(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let at = bytes.windows(4).position(|part| part == b"\r\n\r\n")?;
    let head = std::str::from_utf8(bytes.get(..at)?).ok()?;
    Some((head, bytes.get(at + 4..)?))
}

/// `name` in small letters.
fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut own = fields.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    own.next().map(|(_, value)| value.trim())
}

fn is_chunked(head: &str) -> bool {
    header(head, "transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case("chunked"))
}

/// `SIZE\r\n…\r\n` and so on, sizes in hexadecimal digits, up to one of 0; whether that was there.
fn unchunked(mut body: &[u8]) -> (Vec<u8>, bool) {
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
mod tests {
    use super::*;

    fn told(text: &str) -> Option<(u16, Option<u64>, String)> {
        let answer = answer(text.as_bytes())?;
        let body = String::from_utf8(answer.body).unwrap();
        Some((answer.status, answer.retry_after, body))
    }

    #[test]
    fn answers_are_read() {
        let plain = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more";
        assert_eq!(told(plain), Some((200, None, "ok".into())));
        let later = "HTTP/1.0 503 Busy\r\nretry-after:  7\r\n\r\nlater";
        assert_eq!(told(later), Some((503, Some(7), "later".into())));
        let chunks = "HTTP/1.1 400 No\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!(told(chunks), Some((400, None, "abc0123456789".into())));
        assert!(is_whole(chunks.as_bytes()) && is_whole(plain.as_bytes()));
        let early = format!("HTTP/1.1 100 Continue\r\n\r\n{plain}");
        assert_eq!(told(&early), Some((200, None, "ok".into())));
        for other in [
            "",
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 x\r\n\r\n",
            "HTTP/1.1 200 OK\r\n",
        ] {
            assert_eq!(told(other), None, "{other}");
        }
    }

    /// Wherever it is cut off, there is an answer or none, and no panic.
    #[test]
    fn answers_may_be_cut_anywhere() {
        let chunks = "HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc\r\n0\r\n\r\n";
        for at in 0..chunks.len() {
            let cut = &chunks.as_bytes()[..at];
            let _ = (answer(cut), is_whole(cut));
        }
    }
}
