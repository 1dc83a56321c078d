//! The recorded program's arguments may be secrets: nothing that is printed, written or sent has them without an explicit option.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use lucce_export::{GzipReader, UnpackLimits, is_gzip};

const SECRET: &[u8] = b"hunter";
const MASKED: &[u8] = b"app.Main *";

/// A log whose program has a secret for an argument.
fn log(path: &Path) {
    lucce_testkit::sample(path);
    let mut bytes = fs::read(path).unwrap();
    let words = b"app.Main --fast";
    let at = bytes
        .windows(words.len())
        .position(|part| part == words)
        .unwrap();
    bytes[at + words.len() - SECRET.len()..at + words.len()].copy_from_slice(SECRET);
    // The block that has it is sealed with a checksum.
    let word = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    };
    let mut block = 64;
    while block + 64 + word(&bytes, block + 8) < at {
        block += 64 + word(&bytes, block + 8);
    }
    let committed = word(&bytes, block + 24);
    let sum = crc32fast::hash(&bytes[block + 64..block + 64 + committed]).to_le_bytes();
    bytes[block + 32..block + 36].copy_from_slice(&sum);
    fs::write(path, bytes).unwrap();
}

fn has(bytes: &[u8], words: &[u8]) -> bool {
    let all = UnpackLimits {
        bytes: u64::MAX,
        content: u64::MAX,
    };
    let mut plain = bytes.to_vec();
    if is_gzip(bytes) {
        plain.clear();
        GzipReader::new(bytes, all).read_to_end(&mut plain).unwrap();
    }
    plain.windows(words.len()).any(|part| part == words)
}

fn run(dir: &Path, words: &str) -> Output {
    let lucce = Command::new(env!("CARGO_BIN_EXE_lucce"))
        .args(words.split(' '))
        .current_dir(dir)
        .output();
    lucce.unwrap()
}

/// What a command prints and what is in the file `out`, one behind the other.
fn run_and_read(dir: &Path, words: &str) -> Vec<u8> {
    let output = run(dir, words);
    let code = output.status.code().unwrap();
    assert!(code <= 1, "{words}: {output:?}");
    let file = fs::read(dir.join("out")).unwrap_or_default();
    let _ = fs::remove_file(dir.join("out"));
    match file.is_empty() {
        true => [output.stdout, output.stderr].concat(),
        false => file,
    }
}

#[test]
fn arguments_are_shown_to_who_asks_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    log(&dir.join("run.lucce"));
    lucce_testkit::kinds(&dir.join("base.lucce"));
    let mut commands: Vec<String> = [
        "report run.lucce",
        "report run.lucce --json",
        "stats run.lucce",
        "stats run.lucce --json",
        "view run.lucce -o out",
        "diff run.lucce run.lucce",
        "diff run.lucce run.lucce --json",
        "gate run.lucce --base run.lucce --markdown out",
        "symbols run.lucce -o out",
    ]
    .map(str::to_owned)
    .into();
    for format in [
        "pprof",
        "otlp",
        "firefox",
        "speedscope",
        "perfetto",
        "jfr",
        "chrome",
        "collapsed",
    ] {
        if format != "chrome" {
            commands.push(format!("export run.lucce --format {format} -o out"));
        }
    }
    let mut shown = Vec::new();
    for command in &commands {
        let masked = run_and_read(dir, command);
        assert!(!masked.is_empty() && !has(&masked, SECRET), "{command}");
        if has(
            &run_and_read(dir, &format!("{command} --arguments")),
            SECRET,
        ) {
            shown.push(command.as_str());
            // Perfetto has each argument by itself.
            let words: &[u8] = match command.contains("perfetto") {
                true => b"app.Main",
                false => MASKED,
            };
            assert!(
                has(&masked, words),
                "{command}: {}",
                String::from_utf8_lossy(&masked)
            );
        }
    }
    for command in [
        "report run.lucce",
        "stats run.lucce",
        "view run.lucce -o out",
        "diff run.lucce run.lucce",
        "symbols run.lucce -o out",
    ] {
        assert!(shown.contains(&command), "{command}: {shown:?}");
    }
    for format in ["pprof", "otlp", "firefox", "speedscope", "perfetto"] {
        assert!(
            shown.iter().any(|command| command.contains(format)),
            "{format}: {shown:?}"
        );
    }
    // What is read of symbols is masked, too.
    run_and_read(dir, "symbols run.lucce -o run.lsym --arguments");
    let profile = lucce_decoder::Profile::open(dir.join("run.lsym")).unwrap();
    assert_eq!(profile.meta["command"].as_bytes(), MASKED);
}

/// Answers every request well, and hands on what it got.
fn server() -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = Vec::new();
            let mut block = [0; 4096];
            let body = loop {
                let read = stream.read(&mut block).unwrap();
                assert!(read > 0, "half a request");
                bytes.extend_from_slice(&block[..read]);
                let Some(at) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else {
                    continue;
                };
                let head = String::from_utf8_lossy(&bytes[..at]).to_lowercase();
                let length = head.split("content-length: ").nth(1).unwrap();
                let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
                if bytes.len() >= at + 4 + length {
                    break bytes[at + 4..].to_vec();
                }
            };
            if sender.send(body).is_err() {
                return;
            }
            let generation = "lucce-collect 1\nnumber 0\ntoken 0000000000000000\nended false\n";
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{generation}",
                generation.len()
            );
            // Who has what it wants may have gone.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (url, receiver)
}

#[test]
fn arguments_leave_the_machine_only_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    log(&dir.join("run.lucce"));
    for how in ["otlp --endpoint", "push --collector"] {
        for (more, is_shown) in [("", false), (" --arguments", true)] {
            let (url, got) = server();
            let output = run(dir, &format!("{how} {url} --patience 5s run.lucce{more}"));
            let bodies: Vec<_> = got.try_iter().collect();
            assert!(
                bodies.iter().any(|body| has(body, b"app.Main")),
                "{output:?}"
            );
            let sent = bodies.iter().any(|body| has(body, SECRET));
            assert_eq!(sent, is_shown, "{how}{more}: {output:?}");
        }
    }
}
