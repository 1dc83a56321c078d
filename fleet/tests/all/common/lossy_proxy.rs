//! A proxy before a server of HTTP/1.1, which loses requests or their answers: some, or twice in a row each.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
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
    /// The server never sees the request; the client hears that it is out of order.
    Refused,
}

impl ProxyFault {
    /// Those of [`FaultPlan::SomeRequests`].
    pub const SOME: [ProxyFault; 4] = [
        ProxyFault::LostRequest,
        ProxyFault::WrongAnswer,
        ProxyFault::LostAnswer,
        ProxyFault::CutAnswer,
    ];
}

/// Which requests fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultPlan {
    /// Every third PUT and every thirteenth other request, in the ways of [`ProxyFault::SOME`] by turns.
    SomeRequests,
    /// Each request is answered by 503 twice, although the server has done it the second time.
    EachTwice,
}

const UNAVAILABLE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Ends with the process.
pub struct LossyProxy {
    address: SocketAddr,
    shared: Arc<SharedCounts>,
}

struct SharedCounts {
    plan: FaultPlan,
    puts: AtomicUsize,
    others: AtomicUsize,
    faults: [AtomicUsize; 5],
    /// How often each request came, by its first line.
    requests: Mutex<HashMap<String, usize>>,
}

impl SharedCounts {
    fn choose_fault(&self, head: &str) -> Option<ProxyFault> {
        match self.plan {
            FaultPlan::SomeRequests => {
                // Those that make files fail more often, and have no answers that could be cut.
                let (count, every, kinds) = match head.starts_with("PUT") {
                    true => (&self.puts, 3, 3),
                    false => (&self.others, 13, 4),
                };
                let number = count.fetch_add(1, Ordering::Relaxed);
                let is_lossy = number.is_multiple_of(every);
                is_lossy.then(|| ProxyFault::SOME[number / every % kinds])
            }
            FaultPlan::EachTwice => {
                let line = head.lines().next().unwrap().to_owned();
                let mut requests = self.requests.lock().unwrap();
                let count = requests.entry(line).or_default();
                *count += 1;
                match *count % 3 {
                    1 => Some(ProxyFault::Refused),
                    2 => Some(ProxyFault::WrongAnswer),
                    _ => None,
                }
            }
        }
    }
}

impl LossyProxy {
    pub fn start(upstream: &str, plan: FaultPlan) -> LossyProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(SharedCounts {
            plan,
            puts: AtomicUsize::default(),
            others: AtomicUsize::default(),
            faults: Default::default(),
            requests: Mutex::default(),
        });
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
    let fault = shared.choose_fault(&head);
    if let Some(fault) = fault {
        shared.faults[fault as usize].fetch_add(1, Ordering::Relaxed);
    }
    let mut client = client;
    match fault {
        Some(ProxyFault::LostRequest) => return Ok(()),
        Some(ProxyFault::Refused) => return client.write_all(UNAVAILABLE),
        _ => (),
    }
    let mut server = TcpStream::connect(upstream)?;
    server.write_all(head.as_bytes())?;
    server.write_all(&body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    match fault {
        Some(ProxyFault::LostAnswer) => Ok(()),
        Some(ProxyFault::WrongAnswer) => client.write_all(UNAVAILABLE),
        Some(ProxyFault::CutAnswer) => client.write_all(&answer[..answer.len() * 2 / 3]),
        _ => client.write_all(&answer),
    }
}
