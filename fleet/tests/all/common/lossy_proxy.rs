//! A proxy before a server of HTTP/1.1, which forwards most requests, and loses some or their answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProxyFault {
    /// The server never sees the request.
    LostRequest,
    /// The server has done it; the client hears that it is out of order.
    WrongAnswer,
    /// The server has done it; the connection ends.
    LostAnswer,
    /// The answer has no end.
    CutAnswer,
}

impl ProxyFault {
    pub const ALL: [ProxyFault; 4] = [
        ProxyFault::LostRequest,
        ProxyFault::WrongAnswer,
        ProxyFault::LostAnswer,
        ProxyFault::CutAnswer,
    ];
}

/// Ends with the process.
pub struct LossyProxy {
    address: SocketAddr,
    shared: Arc<SharedCounts>,
}

#[derive(Default)]
struct SharedCounts {
    puts: AtomicUsize,
    others: AtomicUsize,
    faults: [AtomicUsize; 4],
}

impl LossyProxy {
    pub fn start(upstream: &str) -> LossyProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(SharedCounts::default());
        let (own, upstream) = (Arc::clone(&shared), upstream.to_owned());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (own, upstream) = (Arc::clone(&own), upstream.clone());
                // A client or a server that goes ends this connection alone.
                thread::spawn(move || drop(forward(stream, &upstream, &own)));
            }
        });
        LossyProxy { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn count(&self, fault: ProxyFault) -> usize {
        self.shared.faults[fault as usize].load(Ordering::Relaxed)
    }
}

/// One request and its answer; the client connects anew for the next one.
fn forward(client: TcpStream, upstream: &str, shared: &SharedCounts) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let name = line.to_ascii_lowercase();
        if let Some(value) = name.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        assert!(!name.starts_with("transfer-encoding:"));
        if line == "\r\n" {
            head.push_str("connection: close\r\n\r\n");
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    // Those that make files fail more often, and have no answers that could be cut.
    let (count, every, kinds) = match head.starts_with("PUT") {
        true => (&shared.puts, 3, 3),
        false => (&shared.others, 13, 4),
    };
    let number = count.fetch_add(1, Ordering::Relaxed);
    let is_lossy = number.is_multiple_of(every);
    let fault = is_lossy.then(|| ProxyFault::ALL[number / every % kinds]);
    if let Some(fault) = fault {
        shared.faults[fault as usize].fetch_add(1, Ordering::Relaxed);
    }
    if fault == Some(ProxyFault::LostRequest) {
        return Ok(());
    }
    let mut server = TcpStream::connect(upstream)?;
    server.write_all(head.as_bytes())?;
    server.write_all(&body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    let mut client = client;
    match fault {
        Some(ProxyFault::LostAnswer) => Ok(()),
        Some(ProxyFault::WrongAnswer) => client.write_all(
            b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        ),
        Some(ProxyFault::CutAnswer) => client.write_all(&answer[..answer.len() * 2 / 3]),
        _ => client.write_all(&answer),
    }
}
