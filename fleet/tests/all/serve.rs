//! The decoding service: what it answers, refuses and survives.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::thread;

use crate::common::client::{Served, answer, quoted};
use crate::common::{add, lucce_fleet, new_dataset, other_run, text};
use lucce_fleet::questions::ALL;
use serde_json::json;

const RUN: &str = "0123456789abcdef";

/// A dataset of one run; the number of its context A.
fn dataset(dir: &Path) -> String {
    dataset_at(&dir.join("data"), dir)
}

fn dataset_at(dataset: &Path, dir: &Path) -> String {
    let log = dir.join("kinds.log");
    let ids = lucce_testkit::kinds(&log);
    add(dataset, &[log]);
    ids[&'A'].to_string()
}

/// What a question needs.
fn value_of(slot: &str) -> &'static str {
    match slot {
        "class" => "app.Main",
        "method" => "work",
        "service" => "shop",
        "from" | "to" => "17",
        _ => "1.0",
    }
}

fn parameters(question: &lucce_fleet::questions::Question) -> String {
    let slots = question
        .parameter_specs()
        .filter(|slot| slot.default.is_none());
    let pairs: Vec<_> = slots
        .map(|slot| format!("{}={}", slot.name, value_of(slot.name)))
        .collect();
    pairs.join("&")
}

#[test]
fn numbers_are_decoded_in_each_form() {
    let dir = tempfile::tempdir().unwrap();
    let data = new_dataset(dir.path());
    let number = dataset_at(&data, dir.path());
    let served = Served::start(dir.path(), data.to_str().unwrap(), &[]);
    let whole = format!("lucce:{RUN}:{number}");
    let trace = format!(
        "context {whole}  f00403cbb399c9ee83ee35588751f6b8\n\tat app.Main.work(Main.java:21)\n\tat app.Main.main(Main.java:5)\n"
    );
    for target in [
        format!("/runs/{RUN}/contexts/{number}"),
        format!("/runs/{RUN}/contexts/{number}.txt"),
        format!("/runs/{RUN}/contexts/{whole}"),
        format!("/contexts/{whole}"),
        format!("/contexts/{}", quoted(&whole)),
    ] {
        let told = served.get(&target);
        assert_eq!((told.status, &told.body), (200, &trace), "{target}");
        assert!(told.is_kind("text/plain"), "{}", told.head);
    }
    let frames = json!([
        { "class": "app.Main", "method": "work", "file": "Main.java", "line": 21, "own": true },
        { "class": "app.Main", "method": "main", "file": "Main.java", "line": 5, "own": true },
    ]);
    let by_ending = served.get(&format!("/contexts/{whole}.json"));
    let target = format!("/runs/{RUN}/contexts/{number}");
    let by_header = served.accepting(&target, "application/json");
    for told in [by_ending, by_header] {
        let told = told.json();
        assert_eq!((&told["frames"], &told["number"]), (&frames, &json!(whole)));
        assert_eq!(told["stack"], "f00403cbb399c9ee83ee35588751f6b8");
    }
    for (target, status, words) in [
        (
            "/runs/00000000000000aa/contexts/0x1".to_owned(),
            404,
            "run 00000000000000aa is not in the dataset",
        ),
        (format!("/runs/{RUN}/contexts/0xfffffff"), 404, "0xfffffff"),
        (format!("/runs/{RUN}/contexts/17"), 400, "no number"),
        ("/runs/xyz/contexts/0x1".to_owned(), 400, "no number"),
        (
            "/runs/%2e%2e%2f%2e%2e/contexts/0x1".to_owned(),
            400,
            "no number",
        ),
        ("/contexts/lucce:1:0x1".to_owned(), 400, "no number"),
        (
            "/runs/00000000000000aa/contexts/lucce:0123456789abcdef:0x1".to_owned(),
            400,
            "another run",
        ),
        ("/../../etc/passwd".to_owned(), 404, "there is nothing here"),
        ("/runs/%ff/contexts/0x1".to_owned(), 400, "UTF-8"),
    ] {
        let told = served.get(&target);
        let error = told.json()["error"].as_str().unwrap().to_owned();
        assert_eq!(told.status, status, "{target}: {error}");
        assert!(error.contains(words), "{target}: {error}");
    }
    let asked = json!({ "numbers": [whole, "lucce:00000000000000aa:0x1", format!("lucce:{RUN}:0xfffffff")] });
    let told = served.send("POST", "/decode", "", asked.to_string().as_bytes());
    let told = told.json();
    assert_eq!(told["traces"][0]["frames"], frames);
    assert_eq!(told["traces"][1]["what"], "run");
    assert_eq!(told["traces"][2]["what"], "number");
    assert_eq!(served.send("POST", "/decode", "", b"[]").status, 400);
    assert_eq!(served.send("POST", "/ask/top", "", b"").status, 405);
    assert_eq!(served.get("/decode").status, 405);
    let head = served.send("HEAD", &target, "", b"");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(served.end(), Some(0));
}

#[test]
fn questions_are_answered_and_have_pages() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path());
    let served = Served::start(dir.path(), "data", &[]);
    let all = served.get("/ask").json();
    assert_eq!(all.as_array().unwrap().len(), ALL.len());
    for question in ALL {
        let target = format!("/ask/{}?{}", question.name, parameters(question));
        let told = served.get(&target);
        assert_eq!(told.status, 200, "{target}: {}", told.body);
        assert!(told.json().is_array());
        assert!(served.accepting(&target, "text/csv").is_kind("text/csv"));
        let table = served.get(&format!("{target}&format=table"));
        assert!(table.body.starts_with("+-"), "{target}: {}", table.body);
        let view = served.get(&target.replacen("/ask", "/view", 1));
        let expected = match question.name {
            "coverage" | "per-request" | "requests" | "through" => 404,
            _ => 200,
        };
        assert_eq!(view.status, expected, "{target}: {}", view.body);
    }
    let page = served.get("/view/top");
    assert!(
        page.head.contains("default-src 'none'; ") && page.head.contains("frame-ancestors 'none'")
    );
    assert!(page.body.contains("\"app.Main\"") && page.body.contains("service=shop"));
    // Whole paths: that of a context that is new has its callers.
    let page = served.get("/view/new-since?service=shop&version=1.0");
    assert!(page.body.contains("\"main\""), "{}", page.body);
    for (target, status, words) in [
        ("/ask/none", 404, "there are callers"),
        ("/ask/callers?class=a", 400, "needs --method"),
        ("/ask/top?tpo=1", 400, "no parameter --tpo"),
        ("/ask/top?top=many", 400, "many"),
        ("/ask/top?format=xml", 400, "format"),
    ] {
        let told = served.get(target);
        let error = told.json()["error"].as_str().unwrap().to_owned();
        assert!(
            told.status == status && error.contains(words),
            "{target}: {} {error}",
            told.status
        );
    }
    let metrics = served.get("/metrics");
    for line in [
        "lucce_fleet_requests_total{method=\"GET\",route=\"/ask/{question}\",status=\"400\"} 4",
        "lucce_fleet_dataset_runs 1",
        "lucce_fleet_request_seconds_count{route=\"/view/{question}\"}",
    ] {
        assert!(metrics.body.contains(line), "{line}: {}", metrics.body);
    }
}

#[test]
fn who_has_no_token_learns_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let number = dataset(dir.path());
    let open = ["serve", "data", "--listen=0.0.0.0:0", "--no-token"];
    let refused = lucce_fleet(dir.path(), &open, &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("--token-file"),
        "{}",
        text(&refused.stderr)
    );
    fs::write(dir.path().join("short"), "abc\n").unwrap();
    let refused = lucce_fleet(dir.path(), &["serve", "data", "--token-file=short"], &[]);
    assert_eq!(refused.status.code(), Some(2));
    fs::write(dir.path().join("token"), "0123456789abcdef-token\n").unwrap();
    let mut served = Served::start(dir.path(), "data", &["--token-file=token"]);
    let target = format!("/runs/{RUN}/contexts/{number}");
    for target in [
        &*target,
        "/ask/top",
        "/metrics",
        "/openapi.json",
        "/nothing",
    ] {
        let told = served.get(target);
        assert_eq!(told.status, 401, "{target}");
        assert!(told.head.contains("www-authenticate: bearer"));
    }
    assert_eq!(served.get("/health").body, "ok\n");
    served.token = Some("0123456789abcdef-tokem".into());
    assert_eq!(served.get(&target).status, 401);
    served.token = Some("0123456789abcdef-token".into());
    assert_eq!(served.get(&target).status, 200);
}

/// Any user of the machine can connect: without a word about tokens one is made, for this process alone.
#[test]
fn a_token_is_made_unless_none_is_wanted() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path());
    for verb in [Served::start, Served::collect] {
        let mut served = verb(dir.path(), "data", &[]);
        let made = served.token.take().unwrap();
        assert!(
            made.len() == 32 && made.bytes().all(|c| c.is_ascii_hexdigit()),
            "{made}"
        );
        assert_eq!(served.get("/metrics").status, 401);
        served.token = Some(made.clone());
        assert_eq!(served.get("/metrics").status, 200);
        drop(served);
        let other = verb(dir.path(), "data", &[]);
        assert_ne!(other.token.as_deref(), Some(&*made));
        drop(other);
        let open = verb(dir.path(), "data", &["--no-token"]);
        assert_eq!(open.get("/metrics").status, 200);
    }
}

#[test]
fn what_is_no_request_has_an_end() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path());
    let served = Served::start(dir.path(), "data", &["--no-token"]);
    let foreign = "GET /ask HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(served.raw(foreign.as_bytes()).unwrap().status, 403);
    let origin = served.send("GET", "/ask", "Origin: http://evil.example\r\n", b"");
    assert_eq!(origin.status, 403);
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(1000));
    for bytes in ["\0\0\0\r\n\r\n", "GET\r\n\r\n", &long, &many] {
        let status = served.raw(bytes.as_bytes()).map(|told| told.status);
        assert!(matches!(status, None | Some(400 | 414 | 431)), "{status:?}");
    }
    let large = vec![b' '; (1 << 20) + 1];
    assert_eq!(served.send("POST", "/decode", "", &large).status, 413);
    // Who sends a part of a request and goes takes nothing from others.
    for part in [
        "GET",
        "POST /decode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    ] {
        served.connect().write_all(part.as_bytes()).unwrap();
    }
    let mut stream = served.connect();
    stream
        .write_all(b"POST /decode HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
        .unwrap();
    assert_eq!(answer(&mut stream).map(|told| told.status), Some(400));
    assert_eq!(served.get("/health").body, "ok\n");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn hostile_names_stay_names() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::hostile::all(dir.path());
    let bytes = fs::read(dir.path().join("hostile.log")).unwrap();
    fs::write(dir.path().join("a.log"), bytes).unwrap();
    let service = "</script><script>alert(1)</script>'; DROP TABLE runs; --";
    let args = ["add", "data", "a.log", &format!("--service={service}")];
    assert!(lucce_fleet(dir.path(), &args, &[]).status.success());
    let served = Served::start(dir.path(), "data", &[]);
    let target = format!("top?top=1000&service={}", quoted(service));
    let page = served.get(&format!("/view/{target}"));
    assert_eq!(page.status, 200, "{}", page.body);
    assert_eq!(page.body.matches("</script>").count(), 2);
    for form in ["json", "csv", "table"] {
        let told = served.get(&format!("/ask/{target}&format={form}"));
        assert_eq!(told.status, 200);
        assert!(
            told.body
                .chars()
                .all(|c| lucce_tracelog::escape::is_plain(c) || c == '\n'),
            "{form}"
        );
        assert!(form != "csv" || !told.body.contains(",=cmd"), "{form}");
    }
    for name in lucce_testkit::hostile::NAMES {
        let name = quoted(name);
        for target in [
            format!("/ask/{name}"),
            format!("/runs/{name}/contexts/{name}"),
            format!("/ask/top?service={name}&{name}={name}"),
        ] {
            let told = served.get(&target);
            assert!(
                matches!(told.status, 400 | 404),
                "{target}: {}",
                told.status
            );
            assert!(
                told.body
                    .trim_end()
                    .chars()
                    .all(lucce_tracelog::escape::is_plain),
                "{}",
                told.body
            );
        }
    }
}

/// Many clients at once, while the dataset's files are replaced under them.
#[test]
fn clients_and_a_compaction_do_not_disturb_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let data = new_dataset(dir.path());
    let number = dataset_at(&data, dir.path());
    for run in 1..=6 {
        let log = other_run(
            &dir.path().join("kinds.log"),
            dir.path().join(format!("{run}.log")),
            run,
        );
        add(&data, &[log]);
    }
    let served = Served::start(
        dir.path(),
        data.to_str().unwrap(),
        &["--requests=8", "--threads=1"],
    );
    thread::scope(|scope| {
        for client in 0..4 {
            let (served, number) = (&served, &number);
            scope.spawn(move || {
                for round in 0..6_u64 {
                    let run = (client + round) % 6 + 1;
                    let told = served.get(&format!("/runs/{run:016x}/contexts/{number}"));
                    assert_eq!(told.status, 200, "{}", told.body);
                    let told = served.get("/ask/coverage");
                    assert_eq!(told.json()[0]["runs"], 7, "{}", told.body);
                }
            });
        }
        let compact = ["compact", data.to_str().unwrap()];
        let compacted = lucce_fleet(dir.path(), &compact, &[]);
        assert!(compacted.status.success(), "{}", text(&compacted.stderr));
    });
    assert_eq!(served.end(), Some(0));
}
