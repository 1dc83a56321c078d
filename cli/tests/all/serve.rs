//! `lucce serve` over loopback: who gets the page, and what it shows of a run that goes on.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The command; it is ended with the test.
struct Server {
    child: Child,
    port: u16,
    secret: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Server {
    fn start(dir: &Path, args: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lucce"));
        command.arg("serve").args(args).current_dir(dir);
        Server::of(&mut command)
    }

    fn of(command: &mut Command) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut address).unwrap();
        let rest = address.trim().strip_prefix("http://127.0.0.1:");
        let (port, secret) = rest.unwrap().split_once('/').unwrap();
        let secret = secret.strip_suffix('/').unwrap().to_owned();
        assert_eq!(secret.len(), 32, "{address}");
        let port = port.parse().unwrap();
        Server {
            child,
            port,
            secret,
        }
    }

    /// What comes back for these bytes.
    fn raw(&self, text: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream.write_all(text).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    fn ask(&self, request: &str, headers: &str) -> Answer {
        self.raw(format!("{request} HTTP/1.1\r\n{headers}\r\n").as_bytes())
    }

    fn host(&self) -> String {
        format!("Host: 127.0.0.1:{}\r\n", self.port)
    }

    /// Of a path behind the secret.
    fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET /{}/{path}", self.secret), &self.host())
    }

    fn data(&self, after: u64) -> Option<Value> {
        let answer = self.get(&format!("data?after={after}"));
        match answer.status {
            200 => Some(serde_json::from_str(&answer.body).unwrap()),
            204 => None,
            status => panic!("{status}: {}", answer.body),
        }
    }
}

/// The data in a page.
fn data_of(page: &str) -> Value {
    let (_, behind) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = behind.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

fn sample() -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::sample(&dir.path().join("sample.log"));
    let server = Server::start(dir.path(), &["sample.log"]);
    (dir, server)
}

#[test]
fn who_has_the_address_gets_the_page() {
    let (dir, server) = sample();
    let answer = server.get("");
    assert_eq!(answer.status, 200);
    let data = data_of(&answer.body);
    assert_eq!(data["live"]["ended"], true);
    // Counted lately: nothing; since the start: what the report says.
    let report = Command::new(env!("CARGO_BIN_EXE_lucce"))
        .args(["report", "--json", "sample.log"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let totals = &report["totals"];
    assert_eq!(data["kinds"][0]["count"][1], totals["count"]);
    assert_eq!(data["kinds"][0]["value"][1], totals["value"]);
    assert_eq!(data["kinds"][0]["count"][0], 0);
    let policy =
        "Content-Security-Policy: default-src 'none'; connect-src 'self'; script-src 'sha256-";
    assert!(answer.head.contains(policy), "{}", answer.head);
    for header in [
        "frame-ancestors 'none'",
        "Cache-Control: no-store",
        "Referrer-Policy: no-referrer",
        "X-Content-Type-Options: nosniff",
    ] {
        assert!(answer.head.contains(header), "{header}: {}", answer.head);
    }
    assert!(!answer.head.contains("unsafe") && !answer.head.contains("Allow-Origin"));
    assert_eq!(server.data(0).unwrap()["live"]["reading"], 1);
    assert_eq!(server.data(1), None);
    let head = server.ask(&format!("HEAD /{}/", server.secret), &server.host());
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    let moved = server.ask(&format!("GET /{}", server.secret), &server.host());
    assert_eq!(moved.status, 308);
    assert!(
        moved
            .head
            .contains(&format!("Location: /{}/", server.secret))
    );
    assert_eq!(server.get("other").status, 404);
    assert_eq!(server.get("../sample.log").status, 404);
}

/// The page has the sums that the report of the same selection has.
#[test]
fn selected_events_are_those_of_the_report() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::kinds(&dir.path().join("kinds.log"));
    for selection in [
        &["--type", "String"][..],
        &["--through", "Main\\.work$", "--event", "alloc"],
        &["--event", "lock"],
    ] {
        let server = Server::start(dir.path(), &[&["kinds.log"], selection].concat());
        let data = data_of(&server.get("").body);
        let report = Command::new(env!("CARGO_BIN_EXE_lucce"))
            .args([&["report", "--json", "kinds.log"], selection].concat())
            .current_dir(dir.path())
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&report.stdout).unwrap();
        let kinds = data["kinds"].as_array().unwrap();
        let kind = kinds.iter().find(|kind| kind["name"] == report["event"]);
        let kind = kind.unwrap_or_else(|| panic!("{selection:?}: {kinds:?}"));
        assert_eq!(kind["count"][1], report["totals"]["count"], "{selection:?}");
        assert_eq!(kind["value"][1], report["totals"]["value"], "{selection:?}");
        assert!(
            report["totals"]["count"].as_u64() > Some(0),
            "{selection:?}"
        );
        let notes = data["runs"][1]["notes"].to_string();
        assert!(notes.contains("Only selected events"), "{notes}");
    }
}

/// Sums of a page's newest run by request, kind and measure.
fn sums_by_request(data: &Value, kind: &str, measure: &str) -> BTreeMap<String, u64> {
    let (shares, mut sums) = (&data["shares"], BTreeMap::new());
    let number = |column: &Value, at: usize| column[at].as_u64().unwrap() as usize;
    for at in 0..shares["context"].as_array().unwrap().len() {
        let kind_at = number(&data["contexts"]["kind"], number(&shares["context"], at));
        if number(&shares["run"], at) != 1 || data["kinds"][kind_at]["name"] != kind {
            continue;
        }
        let request = number(&data["tagRequests"], number(&shares["tag"], at));
        let name = data["requests"][request].as_str().unwrap().to_owned();
        *sums.entry(name).or_default() += shares[measure][at].as_u64().unwrap();
    }
    sums
}

/// The page tells requests apart, whatever other tags events have.
#[test]
fn each_request_has_its_sums() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::received(&dir.path().join("received.log"));
    let server = Server::start(dir.path(), &["received.log"]);
    let data = data_of(&server.get("").body);
    let [get, post] = lucce_testkit::RECEIVED.map(str::to_owned);
    let sums = |kind: &str, measure: &str| {
        let mut sums = sums_by_request(&data, kind, measure);
        sums.remove("(no request)");
        sums
    };
    let expected = |of_get: u64, of_post: u64| {
        BTreeMap::from([(get.clone(), of_get), (post.clone(), of_post)])
    };
    assert_eq!(sums("request", "count"), expected(5, 1));
    assert_eq!(sums("alloc", "count"), expected(4, 7));
    assert_eq!(sums("alloc", "value"), expected(360, 112));
    assert_eq!(sums("exception", "count"), expected(4, 1));
    assert_eq!(sums("lock", "value"), BTreeMap::from([(get, 2500)]));
}

/// Frames are those of the selected classes, and own code is what `--app` says.
#[test]
fn classes_and_own_code_are_those_of_the_options() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::kinds(&dir.path().join("kinds.log"));
    let origins = |options: &[&str]| {
        let server = Server::start(dir.path(), &[&["kinds.log"], options].concat());
        let data = data_of(&server.get("").body);
        let classes = data["classes"].as_array().unwrap().iter();
        let origins = data["classOrigins"].as_str().unwrap().chars();
        classes
            .map(|class| class.as_str().unwrap().to_owned())
            .zip(origins)
            .collect::<BTreeMap<String, char>>()
    };
    let own = origins(&["--app", "app.Main+app.Gen"]);
    assert_eq!((own["app.Main"], own["app.Gen"]), ('a', 'a'));
    assert_eq!(own["app.Natives"], 'l');
    let shown = origins(&["--include", "app.Natives", "--app", "app.Natives"]);
    assert_eq!(shown, BTreeMap::from([("app.Natives".to_owned(), 'a')]));
}

#[test]
fn requests_without_the_secret_or_by_another_name_are_refused() {
    let (_dir, server) = sample();
    let (host, secret) = (server.host(), server.secret.clone());
    let wrong = "0".repeat(32);
    let page = format!("GET /{secret}/");
    let port = server.port;
    let refused = [
        ("GET /".to_owned(), host.clone()),
        (format!("GET /{wrong}/"), host.clone()),
        (format!("GET /{wrong}/data?after=0"), host.clone()),
        (format!("GET /{}/", &secret[..31]), host.clone()),
        (format!("GET //{secret}/"), host.clone()),
        ("GET /data".to_owned(), host.clone()),
        // Names that a stranger's server gives to this machine.
        (page.clone(), String::new()),
        (page.clone(), format!("Host: evil.example:{port}\r\n")),
        (page.clone(), format!("Host: 127.0.0.1:{}\r\n", port ^ 1)),
        (page.clone(), format!("{host}Host: evil.example\r\n")),
        (
            page.clone(),
            format!("{host}Origin: http://evil.example\r\n"),
        ),
        (page.clone(), format!("{host}Origin: null\r\n")),
    ];
    for (request, headers) in refused {
        let answer = server.ask(&request, &headers);
        assert_eq!(answer.status, 403, "{request} {headers}");
        let text = answer.head + &answer.body;
        let secrets = ["app.Main", &secret, "sample.log"];
        assert!(
            !secrets.iter().any(|secret| text.contains(secret)),
            "{text}"
        );
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let answer = server.ask(&format!("{method} /{secret}/"), &host);
        assert_eq!(answer.status, 405, "{method}");
    }
    let own = format!("{host}Origin: http://127.0.0.1:{port}\r\n");
    assert_eq!(server.ask(&page, &own).status, 200);
    let local = format!("Host: localhost:{port}\r\n");
    assert_eq!(server.ask(&page, &local).status, 200);
}

/// Prometheus reads the figures by their media type, below the secret and with the token. Other names of this machine get none.
#[test]
fn prometheus_gets_the_figures_in_its_own_format() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::sample(&dir.path().join("sample.log"));
    fs::write(dir.path().join("token"), "0123456789abcdef\n").unwrap();
    let server = Server::start(dir.path(), &["sample.log", "--token-file", "token"]);
    let (host, port) = (server.host(), server.port);
    let bearer = "Authorization: Bearer 0123456789abcdef\r\n";
    let report = Command::new(env!("CARGO_BIN_EXE_lucce"))
        .args(["report", "--json", "--event", "alloc", "sample.log"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let total = format!(
        "\n# TYPE lucce_allocated_bytes_total counter\nlucce_allocated_bytes_total {}\n",
        report["totals"]["value"]
    );
    let local = format!("Host: localhost:{port}\r\n{bearer}");
    let answers = [
        server.get("metrics"),
        server.ask("GET /metrics", &format!("{host}{bearer}")),
        server.ask("GET /metrics", &local),
    ];
    let media_type = "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n";
    for answer in answers {
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains(media_type), "{}", answer.head);
        assert_eq!(answer.head.matches("Content-Type:").count(), 1);
        assert!(answer.head.contains("\r\nCache-Control: no-store\r\n"));
        let length = format!("\r\nContent-Length: {}\r\n", answer.body.len());
        assert!(answer.head.contains(&length), "{}", answer.head);
        assert!(answer.body.contains(&total), "{}", answer.body);
        assert!(answer.body.starts_with("# HELP ") && answer.body.ends_with('\n'));
    }
    let head = server.ask("HEAD /metrics", &format!("{host}{bearer}"));
    assert_eq!((head.status, &*head.body), (200, ""));
    assert!(head.head.contains(media_type), "{}", head.head);
    let post = server.ask("POST /metrics", &format!("{host}{bearer}"));
    assert_eq!(post.status, 405);
    let refused = [
        host.clone(),
        format!("{host}Authorization: Bearer 0123456789abcdee\r\n"),
        bearer.to_owned(),
        format!("Host: evil.example:{port}\r\n{bearer}"),
        format!("Host: 127.0.0.1:{}\r\n{bearer}", port ^ 1),
        format!("{host}Host: evil.example\r\n{bearer}"),
        format!("{host}Origin: http://evil.example\r\n{bearer}"),
    ];
    for headers in refused {
        let answer = server.ask("GET /metrics", &headers);
        assert_eq!(answer.status, 403, "{headers}");
        assert!(!answer.body.contains("lucce_"), "{}", answer.body);
    }
}

/// A JVM that has ended cannot search for holders.
#[test]
fn a_leak_of_a_running_jvm_is_shown_with_the_holders_command() {
    let dir = tempfile::tempdir().unwrap();
    let writer = lucce_testkit::leaks::live(&dir.path().join("live.log"));
    lucce_testkit::leaks::leaking(&dir.path().join("ended.log"));
    let leak_text = |log: &str| {
        let data = data_of(&Server::start(dir.path(), &[log]).get("").body);
        assert_eq!(data["leaks"]["found"].as_array().unwrap().len(), 1, "{log}");
        data["leaks"]["says"].as_str().unwrap().to_owned()
    };
    let command = format!(
        "what holds such objects: lucce ctl {} holders lucce:",
        std::process::id()
    );
    let running = leak_text("live.log");
    assert!(running.contains(&command), "{running}");
    let ended = leak_text("ended.log");
    assert!(!ended.contains("holders"), "{ended}");
    drop(writer);
}

/// Only this machine can connect at all.
#[test]
fn it_listens_on_the_loopback_device_only() {
    let (_dir, server) = sample();
    let port = format!(":{:04X}", server.port);
    let listening = |file: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (local, _, state) = (words.next()?, words.next()?, words.next()?);
            (state == "0A" && local.ends_with(&port)).then(|| local.to_owned())
        });
        lines.collect::<Vec<_>>()
    };
    let local = format!("0100007F{port}");
    assert_eq!(listening("/proc/net/tcp"), [local]);
    assert!(listening("/proc/net/tcp6").is_empty());
}

#[test]
fn what_is_no_request_ends_with_its_connection() {
    let (_dir, server) = sample();
    let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(40_000));
    for text in ["\0\0\0\r\n\r\n", "GET\r\n\r\n", &long] {
        assert_eq!(server.raw(text.as_bytes()).status, 400, "{:.20}", text);
    }
    // Those that say nothing take no more than their places, which others wait for at most.
    let silent: Vec<_> = (0..40)
        .map(|_| TcpStream::connect(("127.0.0.1", server.port)).unwrap())
        .collect();
    let gone = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    gone.shutdown(Shutdown::Both).unwrap();
    drop(silent);
    let started = Instant::now();
    loop {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        let request = format!("GET /{}/ HTTP/1.1\r\n{}\r\n", server.secret, server.host());
        let mut text = String::new();
        let sent = (&stream).write_all(request.as_bytes());
        if sent.is_ok() && (&stream).read_to_string(&mut text).is_ok() && text.contains("200 OK") {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{text}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_run_that_goes_on_has_newer_data() {
    let dir = tempfile::tempdir().unwrap();
    let (writer, counters, _) = lucce_testkit::live(&dir.path().join("live.log"));
    let server = Server::start(dir.path(), &["live.log", "--interval", "50ms"]);
    let first = data_of(&server.get("").body);
    assert_eq!(first["live"]["ended"], false);
    let counts = |data: &Value| {
        let of = |run: usize| data["kinds"][0]["count"][run].as_u64().unwrap();
        (of(0), of(1))
    };
    assert_eq!(counts(&first).1, 110);
    let newer = |after: &Value| {
        let started = Instant::now();
        let after = after["live"]["reading"].as_u64().unwrap();
        loop {
            if let Some(data) = server.data(after) {
                return data;
            }
            assert!(started.elapsed() < Duration::from_secs(30), "nothing newer");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let cell = counters.iter().next().unwrap();
    (0..7).for_each(|_| cell.count_event(0));
    let second = newer(&first);
    assert_eq!(counts(&second), (7, 117));
    assert!(second["live"]["seconds"].as_f64().unwrap() > 0.0);
    let third = newer(&second);
    assert_eq!(counts(&third), (0, 117), "nothing was counted meanwhile");
    // The process that has mapped the log is this one: without it the run is over, and its last data stay.
    cell.count_event(0);
    drop((counters, writer));
    let mut last = newer(&third);
    while last["live"]["ended"] == false {
        last = newer(&last);
    }
    assert_eq!(counts(&last).1, 118);
    assert_eq!(server.data(last["live"]["reading"].as_u64().unwrap()), None);
    assert_eq!(counts(&data_of(&server.get("").body)).1, 118);
}

/// What happens within two minutes, on whatever machine.
fn wait_for(what: &str, mut has_happened: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(120);
    while !has_happened() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Every user can read the command lines of all processes: the browser gets a file that forwards to the page.
#[test]
fn the_secret_is_in_no_command_line() {
    for is_requested in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        lucce_testkit::sample(&path("sample.log"));
        fs::create_dir(path("bin")).unwrap();
        fs::create_dir(path("tmp")).unwrap();
        let browser = "#!/bin/sh\nfor file; do :; done\ncp \"$file\" seen\nstat -c %a \"$file\" \"$(dirname \"$file\")\" >modes\n\
                       env >environment\nprintf '%s\\n' \"$@\" >arguments.new\nmv arguments.new arguments\n";
        lucce_testkit::programs::write_script(&path("bin/xdg-open"), browser);
        let search = format!(
            "{}:{}",
            path("bin").display(),
            std::env::var("PATH").unwrap()
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_lucce"));
        command
            .args(["serve", "--open", "sample.log"])
            .current_dir(dir.path())
            .env("PATH", search)
            .env("TMPDIR", path("tmp"))
            .env_remove("XDG_RUNTIME_DIR")
            .env("LUCCE_PUSH_TOKEN", "token-of-another")
            .env("LUCCE_FLEET_TOKEN", "token-of-another");
        let mut server = Server::of(&mut command);
        wait_for("the browser is started", || path("arguments").exists());
        let arguments = fs::read_to_string(path("arguments")).unwrap();
        let [file] = arguments.lines().collect::<Vec<_>>()[..] else {
            panic!("{arguments}")
        };
        let file = Path::new(file);
        assert!(!arguments.contains(&server.secret), "{arguments}");
        let environment = fs::read_to_string(path("environment")).unwrap();
        assert!(!environment.contains(&server.secret) && !environment.contains("token-of-another"));
        assert_eq!(fs::read_to_string(path("modes")).unwrap(), "600\n700\n");
        let seen = fs::read_to_string(path("seen")).unwrap();
        let address = format!("url=http://127.0.0.1:{}/{}/", server.port, server.secret);
        assert!(seen.contains(&address), "{seen}");
        let own = format!("/proc/{}", server.child.id());
        for kept in ["cmdline", "environ"] {
            let kept = fs::read(format!("{own}/{kept}")).unwrap();
            assert!(!String::from_utf8_lossy(&kept).contains(&server.secret));
        }
        assert!(file.exists());
        // It goes when the browser has the page, or with the command.
        match is_requested {
            true => assert_eq!(server.get("").status, 200),
            false => {
                let id = server.child.id().to_string();
                assert!(
                    Command::new("kill")
                        .args(["-INT", &id])
                        .status()
                        .unwrap()
                        .success()
                );
                assert_eq!(server.child.wait().unwrap().code(), Some(0));
            }
        }
        assert!(!file.exists() && !file.parent().unwrap().exists());
        assert_eq!(fs::read_dir(path("tmp")).unwrap().count(), 0);
    }
}
