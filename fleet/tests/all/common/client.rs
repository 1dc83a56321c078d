//! The service as a process, and a client that sends what it is told to, whether that is a request or not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use lucce_ship::wire::RunLabels;
use lucce_ship::{HttpCollectorClient, LogSender};
use lucce_tracelog::LogHeader;

pub struct Served {
    process: Child,
    /// `127.0.0.1:PORT`
    pub address: String,
    pub token: Option<String>,
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Served {
    pub fn start(dir: &Path, dataset: &str, more: &[&str]) -> Served {
        // An option comes once.
        let memory = match more.iter().any(|arg| arg.starts_with("--memory")) {
            true => &[][..],
            false => &["--memory=256m"],
        };
        Served::verb(dir, "serve", dataset, &[memory, more].concat())
    }

    pub fn collect(dir: &Path, dataset: &str, more: &[&str]) -> Served {
        Served::verb(dir, "collect", dataset, more)
    }

    fn verb(dir: &Path, verb: &str, dataset: &str, more: &[&str]) -> Served {
        let mut process = Command::new(env!("CARGO_BIN_EXE_lucce-fleet"))
            .current_dir(dir)
            .args([verb, dataset, "--listen", "127.0.0.1:0"])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            line.trim().to_owned()
        };
        let address = line();
        let (_, address) = address.rsplit_once("http://").unwrap();
        // One is made, unless the command line says otherwise.
        let is_said = more.iter().any(|arg| arg.contains("token"));
        let token = (!is_said).then(|| line().strip_prefix("token: ").unwrap().to_owned());
        Served {
            process,
            address: address.to_owned(),
            token,
        }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        // No test waits for ever.
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        stream
    }

    /// Sends bytes as they are.
    pub fn raw(&self, bytes: &[u8]) -> Option<Answer> {
        let mut stream = self.connect();
        // A server that refuses may have closed already.
        let _ = stream.write_all(bytes);
        answer(&mut stream)
    }

    pub fn send(&self, method: &str, target: &str, more: &str, body: &[u8]) -> Answer {
        let token = self.token.as_ref();
        let token = token.map_or_else(String::new, |token| {
            format!("Authorization: Bearer {token}\r\n")
        });
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{token}{more}Content-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        let bytes = [head.as_bytes(), body].concat();
        self.raw(&bytes)
            .unwrap_or_else(|| panic!("no answer to {method} {target}"))
    }

    pub fn get(&self, target: &str) -> Answer {
        self.send("GET", target, "", b"")
    }

    pub fn accepting(&self, target: &str, kind: &str) -> Answer {
        self.send("GET", target, &format!("Accept: {kind}\r\n"), b"")
    }

    /// By SIGTERM; how it ended.
    pub fn end(mut self) -> Option<i32> {
        let id = self.process.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(told.success());
        self.process.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `None`: the connection ended without one.
pub fn answer(stream: &mut TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    // What came before an error is looked at.
    let _ = stream.read_to_end(&mut bytes);
    let at = bytes.windows(4).position(|part| part == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
    let body = String::from_utf8(bytes[at + 4..].to_vec()).unwrap();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer {
        status,
        head: head.to_ascii_lowercase(),
        body,
    })
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    pub fn is_kind(&self, kind: &str) -> bool {
        self.head.contains(&format!("content-type: {kind}"))
    }
}

/// As part of a path or of a parameter.
pub fn quoted(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Sends a log to a collector whose address may change, until the collector has answered that it has all of it.
pub fn push_log(log: &Path, address: impl Fn() -> String) {
    let bytes = fs::read(log).unwrap();
    let run = LogHeader::decode(&bytes[..64]).unwrap().run.unwrap();
    let mut sender = LogSender::new(run, RunLabels::default());
    let mut read = |at: u64, to: &mut [u8]| {
        let from = bytes.get(at as usize..at as usize + to.len());
        from.map(|from| to.copy_from_slice(from)).is_some()
    };
    loop {
        let to = HttpCollectorClient::parse_url(&format!("http://{}", address())).unwrap();
        let mut client = HttpCollectorClient::new(to, None);
        match sender.send_changes(&mut read, &mut client) {
            Ok(_) => return,
            // The collector was killed, or has more requests than it answers at a time.
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}
