//! `lucce otlp` and `lucce push`, to servers that answer in all ways. What they got is read by the format's own description.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use lucce_export::{GzipReader, UnpackLimits};
use serde_json::Value;

/// What a server does about a request.
#[derive(Clone, Copy)]
enum Reply {
    /// Status and headers, and a body.
    Says(&'static str, &'static [u8]),
    /// The request is read, and its answer lost.
    Hangs,
    /// Something that is no HTTP.
    Babbles,
}

const FINE: Reply = Reply::Says("200 OK", b"");

/// What a server got, and whether it takes that.
type Got = (Vec<u8>, bool);

/// A server that answers one request after the other so, and from then on as the last one; and what it gets.
fn server(replies: &[Reply]) -> (String, Receiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let replies = replies.to_vec();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let last = *replies.last().unwrap();
        for (at, stream) in listener.incoming().enumerate() {
            let reply = replies.get(at).copied().unwrap_or(last);
            let is_taken = matches!(reply, Reply::Says(status, _) if status.starts_with("200"));
            let mut stream = stream.unwrap();
            // First what was got: who has the answer looks for it at once.
            if sender.send((request(&mut stream), is_taken)).is_err() {
                return;
            }
            answer(&mut stream, reply);
        }
    });
    (url, receiver)
}

fn request(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let body = loop {
        let mut block = [0; 4096];
        let read = stream.read(&mut block).unwrap();
        assert!(read > 0, "half a request");
        bytes.extend_from_slice(&block[..read]);
        let Some(at) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else {
            continue;
        };
        let head = std::str::from_utf8(&bytes[..at]).unwrap().to_lowercase();
        assert!(
            head.starts_with("post /v1development/profiles http/1.1"),
            "{head}"
        );
        assert!(
            head.contains("content-type: application/x-protobuf"),
            "{head}"
        );
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        if bytes.len() >= at + 4 + length {
            break bytes[at + 4..].to_vec();
        }
    };
    let all = UnpackLimits {
        bytes: 1 << 30,
        content: 1 << 30,
    };
    let mut unpacked = Vec::new();
    GzipReader::new(&body[..], all)
        .read_to_end(&mut unpacked)
        .unwrap();
    unpacked
}

fn answer(stream: &mut TcpStream, reply: Reply) {
    match reply {
        Reply::Says(status, body) => {
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        }
        Reply::Hangs => {}
        Reply::Babbles => stream.write_all(b"220 mail.example ESMTP\r\n").unwrap(),
    }
}

fn lucce(folder: &Path, args: &[&str]) -> Output {
    let mut lucce = Command::new(env!("CARGO_BIN_EXE_lucce"));
    lucce.current_dir(folder).args(args).output().unwrap()
}

/// Pushes a log. Returns exit code, standard error and JSON.
fn push(folder: &Path, url: &str, more: &[&str]) -> (i32, String, Value) {
    // An option comes once.
    let patience = match more.contains(&"--patience") {
        true => &[][..],
        false => &["--patience", "3s"],
    };
    let args = [
        &["otlp", "--json", "--endpoint", url, "kinds.log"],
        patience,
        more,
    ]
    .concat();
    let output = lucce(folder, &args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    let json = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code().unwrap(), stderr, json)
}

/// By kind: events and the sum of their values, as `lucce report` has them.
fn reported(folder: &Path) -> BTreeMap<String, (u64, u64)> {
    let kinds = ["alloc", "lock", "exception", "cache miss"];
    let total = |kind: &str| {
        let args = [
            "report",
            "--json",
            "--top",
            "1",
            "--event",
            kind,
            "kinds.log",
        ];
        let report: Value = serde_json::from_slice(&lucce(folder, &args).stdout).unwrap();
        let total = |key: &str| report["totals"][key].as_u64().unwrap();
        (kind.to_owned(), (total("count"), total("value")))
    };
    kinds.map(total).into()
}

fn sums_by_kind(json: &Value, what: &str) -> BTreeMap<String, (u64, u64)> {
    let number = |sum: &Value, key: &str| sum[key].as_u64().unwrap();
    let sums = json[what].as_object().unwrap().iter();
    sums.map(|(kind, sum)| (kind.clone(), (number(sum, "count"), number(sum, "value"))))
        .collect()
}

/// Of each profile that was taken and has an id of its own: its sum, by its name.
fn received(requests: &Receiver<Got>) -> BTreeMap<String, u64> {
    let mut by_id = BTreeMap::new();
    for (request, _) in requests.try_iter().filter(|(_, is_taken)| *is_taken) {
        let dictionary = messages(&request, 2).remove(0);
        let strings = messages(&dictionary, 5);
        let profiles = messages(&messages(&messages(&request, 1)[0], 2)[0], 2);
        for profile in profiles {
            let kind = number(&messages(&profile, 1)[0], 1) as usize;
            let name = String::from_utf8(strings[kind].clone()).unwrap();
            let values = messages(&profile, 2)
                .into_iter()
                .flat_map(|sample| messages(&sample, 4));
            let sum: u64 = values.map(|packed| varint(&mut &packed[..])).sum();
            by_id.insert(messages(&profile, 7).remove(0), (name, sum));
        }
    }
    let mut sums = BTreeMap::new();
    for (name, sum) in by_id.into_values() {
        *sums.entry(name).or_default() += sum;
    }
    sums
}

/// As `received` has them.
fn named(reported: &BTreeMap<String, (u64, u64)>) -> BTreeMap<String, u64> {
    let of = |kind: &str| reported[kind];
    let mut named = BTreeMap::from([
        ("alloc_objects".to_owned(), of("alloc").0),
        ("alloc_space".to_owned(), of("alloc").1),
        ("contentions".to_owned(), of("lock").0),
        ("delay".to_owned(), of("lock").1),
        ("exception".to_owned(), of("exception").0),
    ]);
    named.retain(|_, sum| *sum > 0);
    named
}

/// A field's texts and messages.
fn messages(mut bytes: &[u8], tag: u64) -> Vec<Vec<u8>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let length = match key & 7 {
            0 => {
                varint(&mut bytes);
                continue;
            }
            1 => 8,
            2 => varint(&mut bytes) as usize,
            kind => panic!("a field of kind {kind}"),
        };
        let (field, rest) = bytes.split_at(length);
        bytes = rest;
        if key >> 3 == tag {
            fields.push(field.to_vec());
        }
    }
    fields
}

/// A field's number; 0 if it is not there.
fn number(mut bytes: &[u8], tag: u64) -> u64 {
    let mut sum = 0;
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        assert_eq!(key & 7, 0);
        let value = varint(&mut bytes);
        sum = if key >> 3 == tag { value } else { sum };
    }
    sum
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

fn log() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    lucce_testkit::kinds(&folder.path().join("kinds.log"));
    folder
}

/// All of them have the sums of the report, some after a while.
#[test]
fn a_failing_server_is_retried_a_limited_time() {
    let folder = tempfile::tempdir().unwrap();
    lucce_testkit::kinds(&folder.path().join("kinds.log"));
    // Some lines about the wait, so that none of this takes long.
    let fails = |status| Reply::Says(status, b"");
    for status in [
        "500 Oops\r\nRetry-After: 0",
        "408 Late\r\nRetry-After: 0",
        "503 Busy\r\nRetry-After: 0",
        "520 Strange\r\nRetry-After: 0",
    ] {
        let (url, got) = server(&[fails(status), fails(status), fails(status), FINE]);
        let (code, stderr, json) = push(folder.path(), &url, &["--patience", "60s"]);
        assert_eq!(code, 0, "{status}: {stderr}");
        assert!(
            stderr.contains("trying again") && stderr.contains("answers again"),
            "{stderr}"
        );
        assert_eq!(json["retries"], 3, "{json}");
        let requests: Vec<_> = got.try_iter().collect();
        // The same bytes, so that a collector can know them.
        assert!(
            requests.len() >= 4
                && requests[1..4]
                    .iter()
                    .all(|(body, _)| *body == requests[0].0)
        );
    }
    // What a collector never takes is refused in the end, although it is there.
    let (url, got) = server(&[fails("500 Oops\r\nRetry-After: 0")]);
    let (code, stderr, _) = push(folder.path(), &url, &["--patience", "600s"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("takes no profiles: 500 Oops"), "{stderr}");
    assert_eq!(got.try_iter().count(), 6);
}

/// What is sent of a selection is what the report shows of it.
#[test]
fn selected_events_are_sent() {
    let folder = log();
    for selection in [
        ["--type", "String"],
        ["--through", "Main\\.work$"],
        ["--include", "nothing.*"],
    ] {
        let (url, requests) = server(&[FINE]);
        let (code, stderr, _) = push(folder.path(), &url, &selection);
        assert_eq!(code, 0, "{stderr}");
        let args = [
            &["report", "--json", "--event", "alloc", "kinds.log"],
            &selection[..],
        ]
        .concat();
        let report: Value = serde_json::from_slice(&lucce(folder.path(), &args).stdout).unwrap();
        let wanted = ["count", "value"].map(|key| report["totals"][key].as_u64().unwrap());
        let sent = received(&requests);
        let sent = ["alloc_objects", "alloc_space"].map(|name| sent.get(name).copied());
        assert_eq!(sent.map(Option::unwrap_or_default), wanted, "{selection:?}");
        assert_eq!(wanted[0] > 0, selection[0] != "--include", "{selection:?}");
    }
}

#[test]
fn headers_with_secrets_are_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("headers");
    lucce_testkit::kinds(&folder.path().join("kinds.log"));
    fs::write(&path, "Authorization=Bearer hunter2\n\n X-Tenant=a=b \n").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let head = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        while !bytes.windows(4).any(|part| part == b"\r\n\r\n") {
            let mut block = [0; 4096];
            let read = stream.read(&mut block).unwrap();
            bytes.extend_from_slice(&block[..read]);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let (_, stderr, _) = push(
        folder.path(),
        &url,
        &["--patience", "1ms", "--header-file", "headers"],
    );
    let head = head.join().unwrap();
    assert!(
        head.contains("\r\nAuthorization: Bearer hunter2\r\nX-Tenant: a=b\r\n"),
        "{head}"
    );
    assert!(
        stderr.contains("every user of this machine can read it"),
        "{stderr}"
    );
    fs::write(&path, "hunter2\n").unwrap();
    let (code, stderr, _) = push(folder.path(), &url, &["--header-file", "headers"]);
    assert!(
        code == 2 && stderr.contains("must be NAME=VALUE") && !stderr.contains("hunter2"),
        "{stderr}"
    );
}

/// A server claims to have all of a run whose JVM still runs: `lucce push` reports it, and the log keeps its mark.
#[test]
fn a_server_that_claims_a_running_jvm_has_ended_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("live.log");
    // This process has the log mapped, as its JVM would have.
    let (writer, counters, _) = lucce_testkit::live(&log);
    let generation: &[u8] = b"lucce-collect 1\nnumber 7\ntoken ffffffffffffffff\nended true\n";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut block = [0; 4096];
            let _ = stream.read(&mut block);
            answer(&mut stream, Reply::Says("200 OK", generation));
        }
    });
    let output = lucce(folder.path(), &["push", "--collector", &url, "live.log"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("has this run to its end, and its JVM runs"),
        "{stderr}"
    );
    drop((writer, counters));
    let output = lucce(folder.path(), &["push", "--collector", &url, "live.log"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn delivered_events_match_the_report() {
    let folder = log();
    let expected = reported(folder.path());
    for replies in [
        &[FINE][..],
        &[Reply::Hangs, FINE],
        &[Reply::Babbles, FINE],
        &[Reply::Says("503 Busy\r\nRetry-After: 1", b""), FINE],
        &[
            Reply::Says("429 Slower", b""),
            Reply::Says("504 Late", b""),
            FINE,
        ],
        &[
            Reply::Says("413 Large", b""),
            Reply::Says("413 Large", b""),
            FINE,
        ],
    ] {
        let (url, requests) = server(replies);
        let (code, stderr, json) = push(folder.path(), &url, &[]);
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(sums_by_kind(&json, "delivered"), expected, "{stderr}");
        let got = received(&requests);
        for (name, sum) in named(&expected) {
            assert_eq!(got.get(&name), Some(&sum), "{name} of {got:?}");
        }
    }
}

#[test]
fn a_request_whose_answer_was_lost_comes_again_as_it_was() {
    let folder = log();
    let (url, requests) = server(&[Reply::Hangs, FINE]);
    let (code, stderr, json) = push(folder.path(), &url, &[]);
    assert_eq!(
        (code, &json["retries"], &json["requests"]),
        (0, &1.into(), &1.into()),
        "{stderr}"
    );
    let requests: Vec<_> = requests.try_iter().collect();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].0, requests[1].0);
    assert!(
        stderr.contains("trying again") && stderr.contains("answers again"),
        "{stderr}"
    );
}

#[test]
fn undelivered_events_are_reported() {
    let folder = log();
    let expected = reported(folder.path());
    // No collector listens there; a port that was free just now may belong to another test by the time of the request.
    let nowhere = "127.0.0.1:1";
    let url = format!("http://{nowhere}");
    let (code, stderr, json) = push(folder.path(), &url, &[]);
    assert_eq!((code, &json["requests"]), (1, &0.into()), "{stderr}");
    assert_eq!(sums_by_kind(&json, "undelivered"), expected);
    assert!(stderr.contains("not delivered: alloc: "), "{stderr}");
    assert!(json["retries"].as_u64() > Some(0));
    let (url, _requests) = server(&[Reply::Says("503 Busy", b"")]);
    let (code, stderr, json) = push(folder.path(), &url, &[]);
    assert_eq!(code, 1, "{stderr}");
    assert_eq!(sums_by_kind(&json, "undelivered"), expected);
}

/// The rest is delivered, and both together are all.
#[test]
fn later_refusals_are_reported() {
    let folder = log();
    let large = Reply::Says("413 Large", b"");
    let bad = Reply::Says("400 Bad", b"\x08\x03\x12\x08too fine");
    let (url, _requests) = server(&[large, FINE, bad, FINE]);
    let (code, stderr, json) = push(folder.path(), &url, &[]);
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stderr.contains("400 Bad: too fine") && stderr.contains("refused: "),
        "{stderr}"
    );
    let mut sums = sums_by_kind(&json, "delivered");
    for (kind, (count, value)) in sums_by_kind(&json, "refused") {
        let sum = sums.entry(kind).or_default();
        *sum = (sum.0 + count, sum.1 + value);
    }
    assert_eq!(sums, reported(folder.path()));
    // Two profiles were not taken: `partial_success`.
    let partial = Reply::Says("200 OK", b"\x0a\x09\x08\x02\x12\x05stale");
    let (url, _requests) = server(&[partial]);
    let (code, stderr, json) = push(folder.path(), &url, &[]);
    assert_eq!(
        (code, &json["rejected_profiles"]),
        (1, &2.into()),
        "{stderr}"
    );
    assert!(stderr.contains("2 profiles rejected: stale"), "{stderr}");
}

#[test]
fn a_server_that_takes_no_profiles_and_a_bad_url_are_named() {
    let folder = log();
    let (url, _requests) = server(&[Reply::Says("404 Not Found", b"")]);
    let (code, stderr, _) = push(folder.path(), &url, &[]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("takes no profiles: 404 Not Found"),
        "{stderr}"
    );
    let (code, stderr, _) = push(folder.path(), "https://localhost:4318", &[]);
    assert!(code == 2 && stderr.contains("no TLS"), "{stderr}");
    let (code, stderr, _) = push(folder.path(), "http://localhost:4318", &["--header", "a"]);
    assert!(code == 2 && stderr.contains("NAME=VALUE"), "{stderr}");
    let missing = ["otlp", "--endpoint", "http://localhost:4318", "none.log"];
    let output = lucce(folder.path(), &missing);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn one_kind_alone_can_be_sent() {
    let folder = log();
    let (url, _requests) = server(&[FINE]);
    let (code, stderr, json) = push(folder.path(), &url, &["--event", "lock", "--once"]);
    let lock = reported(folder.path()).remove_entry("lock").unwrap();
    assert_eq!(
        (code, sums_by_kind(&json, "delivered")),
        (0, [lock].into()),
        "{stderr}"
    );
}
