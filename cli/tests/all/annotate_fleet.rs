//! `lucce annotate --fleet`: a service decodes numbers, here one with fixed answers.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};
use std::thread;

fn annotate(dir: &std::path::Path, url: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lucce"))
        .current_dir(dir)
        .args(["annotate", "app.log", "--fleet", url])
        .env("LUCCE_FLEET_TOKEN", "0123456789abcdef")
        .output()
        .unwrap()
}

#[test]
fn numbers_are_requested_once_and_unknown_ones_stay() {
    let dir = tempfile::tempdir().unwrap();
    let known = "lucce:0123456789abcdef:0x1f";
    let unknown = "lucce:00000000000000aa:0x1";
    let lines = format!("a {known}\nb {unknown}\nc {known} {unknown}\n");
    fs::write(dir.path().join("app.log"), lines).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        while !request.ends_with(b"]}") {
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "the request has no end");
            request.extend_from_slice(&piece[..read]);
        }
        let body = r#"{"traces":[{"number":"","stack":"0123456789abcdef0123456789abcdef","allocated":null,"frames":[{"class":"a.B","method":"m","file":"B.java","line":7}]},{"number":"","what":"run","error":"no"}]}"#;
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        String::from_utf8(request).unwrap()
    });
    let output = annotate(dir.path(), &url);
    let request = server.join().unwrap();
    assert!(
        request.starts_with("POST /decode HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains("Authorization: Bearer 0123456789abcdef\r\n"));
    let body = format!("{{\"numbers\":[\"{known}\",\"{unknown}\"]}}");
    assert!(request.ends_with(&body), "{request}");
    let trace =
        format!("\tcontext {known}  0123456789abcdef0123456789abcdef\n\tat a.B.m(B.java:7)\n");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        format!("a {known}\n{trace}b {unknown}\nc {known} {unknown}\n{trace}")
    );
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        format!("lucce: {url} does not know run 00000000000000aa: 2 numbers\n")
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn an_unreachable_service_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("app.log"), "a lucce:0123456789abcdef:0x1\n").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let output = annotate(dir.path(), &url);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with(&format!("lucce: {url}: Connection refused")),
        "{stderr}"
    );
}

/// As of `lucce push` and of the services themselves: one word, whatever white space is around it.
#[test]
fn a_token_of_several_words_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("app.log"), "no number\n").unwrap();
    for (text, code) in [("word\n", 0), ("\n word \n", 0), ("one\ntwo\n", 2), ("", 2)] {
        std::fs::write(dir.path().join("token"), text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_lucce"))
            .args(["annotate", "app.log", "--fleet", "http://127.0.0.1:1"])
            .args(["--token-file", "token"])
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{text:?}: {output:?}");
    }
}
