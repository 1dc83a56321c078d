//! What servers refuse because it would take too long or too much: 408, 503, 504, 507; and that they go on afterwards.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::common::add;
use crate::common::client::{Answer, Served, answer};
use lucce_fleet::http::{HttpServer, ServerLimits, ServerMetrics, ServerResponse};
use lucce_ship::wire::{PartBuilder, PartHeader, RunLabels};
use lucce_tracelog::RunId;

fn dataset(dir: &Path) {
    let log = dir.join("kinds.log");
    lucce_testkit::kinds(&log);
    add(&dir.join("data"), &[log]);
}

fn error(told: &Answer) -> String {
    let told = told.json();
    told["error"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn who_asks_while_all_threads_are_busy_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path());
    let served = Served::start(dir.path(), "data", &["--requests=1", "--no-token"]);
    // The only thread waits for the rest of this body, for as long as something of it comes.
    let body = format!("{}{{\"numbers\": []}}", " ".repeat(100_000));
    let mut slow = served.connect();
    let head = format!(
        "POST /decode HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    slow.write_all(head.as_bytes()).unwrap();
    let mut sent = 0;
    let refused = loop {
        slow.write_all(b" ").unwrap();
        sent += 1;
        let told = served.get("/ask");
        if told.status != 200 {
            break told;
        }
    };
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
    assert!(error(&refused).contains("are being answered"));
    // What says that the server is there needs no thread.
    assert_eq!(served.get("/health").body, "ok\n");
    slow.write_all(&body.as_bytes()[sent..]).unwrap();
    let told = answer(&mut slow).unwrap();
    assert_eq!((told.status, told.body.trim()), (200, "{\"traces\":[]}"));
    assert_eq!(served.get("/ask").status, 200);
    let metrics = served.get("/metrics").body;
    let counted = "lucce_fleet_requests_total{method=\"GET\",route=\"refused\",status=\"503\"} 1\n";
    assert!(metrics.contains(counted), "{metrics}");
    assert_eq!(served.end(), Some(0));
}

/// Files of a table.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

/// Events are in a pipe that nothing is written to: a question about them would be answered never.
#[test]
fn a_question_that_takes_too_long_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path());
    let files = files(&dir.path().join("data/events"));
    assert!(!files.is_empty());
    for file in files {
        fs::remove_file(&file).unwrap();
        let made = Command::new("mkfifo").arg(&file).status().unwrap();
        assert!(made.success());
    }
    let served = Served::start(dir.path(), "data", &["--timeout=5s", "--requests=1"]);
    for target in ["/ask/top", "/view/top"] {
        let told = served.get(target);
        assert_eq!(told.status, 504, "{target}: {}", told.body);
        assert!(error(&told).contains("no answer in 5 s"), "{}", told.body);
        // Its thread answers others.
        let told = served.get("/ask/coverage");
        assert_eq!(told.json()[0]["runs"], 1, "{}", told.body);
    }
    assert_eq!(served.end(), Some(0));
}

#[test]
fn an_answer_that_is_too_large_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path());
    let whole = Served::start(dir.path(), "data", &[]);
    let whole = whole.get("/ask/top").body.len();
    assert!(whole > 200, "{whole}");
    let most = format!("--answer={}", whole - 1);
    let served = Served::start(dir.path(), "data", &[&most, "--requests=1"]);
    for form in ["json", "csv", "table"] {
        let told = served.get(&format!("/ask/top?format={form}"));
        // The other forms of these rows are smaller or larger.
        match told.status {
            507 => assert!(error(&told).contains("the answer has more than"), "{form}"),
            200 => assert!(told.body.len() < whole && form != "json", "{form}"),
            other => panic!("{form}: {other} {}", told.body),
        }
    }
    assert_eq!(served.get("/ask/top?top=1").status, 200);
    let enough = format!("--answer={whole}");
    let served = Served::start(dir.path(), "data", &[&enough]);
    assert_eq!(served.get("/ask/top").status, 200);
}

#[test]
fn a_question_that_has_no_room_in_memory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path());
    // Of 16 MB each of eight questions has its part: less than a sort wants for itself.
    let served = Served::start(dir.path(), "data", &["--memory=16m", "--requests=8"]);
    let told = served.get("/ask/top");
    assert_eq!(told.status, 507, "{}", told.body);
    assert!(
        error(&told).contains("Resources exhausted"),
        "{}",
        told.body
    );
    assert_eq!(served.get("/health").status, 200);
    assert_eq!(served.end(), Some(0));
}

/// A part of a log of 32 MB, of a million bytes.
fn part(number: u32) -> Vec<u8> {
    let head = PartHeader {
        run: RunId::new(0xaa).unwrap(),
        number: 1,
        token: 5,
        base: 0,
        part: number,
        last: false,
        size: 32 << 20,
        labels: RunLabels {
            service: "shop".into(),
            version: "1".into(),
            host: "h".into(),
        },
    };
    let mut part = PartBuilder::new(&head);
    part.push_piece(u64::from(number) * 1_000_000, &[7; 1_000_000]);
    part.finish_part().to_vec()
}

#[test]
fn a_collector_whose_spool_is_full_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--spool-limit=16m", "--largest=32m", "--interval=1h"];
    let served = Served::collect(dir.path(), "data", &args);
    let run = "/v1/logs/00000000000000aa";
    let mut taken = 0;
    let refused = loop {
        let told = served.send("POST", run, "", &part(taken));
        if told.status != 200 || taken == 32 {
            break told;
        }
        taken += 1;
    };
    assert_eq!(refused.status, 507, "{}", refused.body);
    assert!((15..=16).contains(&taken), "{taken}");
    assert!(refused.head.contains("retry-after: 30"), "{}", refused.head);
    assert!(!error(&refused).is_empty());
    // What was taken it has.
    assert_eq!(served.get(run).status, 200);
    assert_eq!(served.end(), Some(0));
}

/// A server of this process, which answers with how much it was sent.
fn server(limits: ServerLimits) -> SocketAddr {
    let server = HttpServer::bind(([127, 0, 0, 1], 0).into(), None, limits).unwrap();
    let address = server.base_url();
    thread::spawn(move || {
        server.run_until_signal(ServerMetrics::new("test"), |request| {
            assert_ne!(request.path_parts(), ["panic"], "an error of the handler's");
            match request.read_body(1 << 20) {
                Ok(body) => ServerResponse::from_text(200, body.len().to_string()),
                Err(refused) => refused,
            }
        })
    });
    address.strip_prefix("http://").unwrap().parse().unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    // No test waits for ever.
    let limit = Some(Duration::from_secs(120));
    stream.set_read_timeout(limit).unwrap();
    stream
}

const HEAD: &str =
    "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n";
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn what_does_not_come_in_time_is_not_waited_for() {
    let address = server(ServerLimits {
        idle_timeout: Duration::from_millis(100),
        request: HOUR,
        ..ServerLimits::default()
    });
    // No head: there is nothing to answer.
    let mut silent = connect(address);
    silent.write_all(b"POST / HT").unwrap();
    assert!(answer(&mut silent).is_none());
    let mut silent = connect(address);
    silent.write_all(HEAD.as_bytes()).unwrap();
    silent.write_all(b"a piece").unwrap();
    let told = answer(&mut silent).unwrap();
    assert_eq!(told.status, 408, "{}", told.body);
    assert!(error(&told).contains("did not come in time"));
}

#[test]
fn a_body_that_comes_byte_by_byte_has_an_end() {
    let address = server(ServerLimits {
        idle_timeout: HOUR,
        request: Duration::from_millis(500),
        ..ServerLimits::default()
    });
    let mut slow = connect(address);
    slow.write_all(HEAD.as_bytes()).unwrap();
    let mut writing = slow.try_clone().unwrap();
    let dripping = thread::spawn(move || {
        // Ends when the server has closed the connection, or takes nothing.
        while writing.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(1));
        }
    });
    let told = answer(&mut slow).unwrap();
    assert_eq!(told.status, 408, "{}", told.body);
    drop(slow);
    dripping.join().unwrap();
}

#[test]
fn who_comes_when_all_connections_are_taken_waits() {
    let address = server(ServerLimits {
        connections: 1,
        idle_timeout: HOUR,
        connection: HOUR,
        ..ServerLimits::default()
    });
    let mut first = connect(address);
    let asked = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc";
    first.write_all(asked).unwrap();
    let mut begun = [0; 12];
    first.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    let mut second = connect(address);
    let asked = b"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 5\r\n\r\nabcde";
    second.write_all(asked).unwrap();
    let limit = Some(Duration::from_millis(300));
    second.set_read_timeout(limit).unwrap();
    let nothing = second.read(&mut begun).map_err(|e| e.kind());
    assert!(
        matches!(nothing, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)),
        "{nothing:?}"
    );
    drop(first);
    let limit = Some(Duration::from_secs(120));
    second.set_read_timeout(limit).unwrap();
    let told = answer(&mut second).unwrap();
    assert_eq!((told.status, told.body.as_str()), (200, "5"));
}

#[test]
fn an_error_of_the_server_ends_one_request() {
    let address = server(ServerLimits::default());
    for _ in 0..20 {
        let mut stream = connect(address);
        let asked = b"GET /panic HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(asked).unwrap();
        let told = answer(&mut stream).unwrap();
        assert_eq!(told.status, 500);
        assert!(error(&told).contains("an error of the server's"));
    }
    let mut stream = connect(address);
    let asked = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(asked).unwrap();
    assert_eq!(answer(&mut stream).unwrap().status, 200);
}
