//! What every verb that reads does with everything that it cannot read: exit codes, and that the words name the file.
//!
//! | | code | words |
//! |---|---|---|
//! | a file that is missing, a folder, no permission | 2 | the system's |
//! | a file that is empty or foreign | 3 | what it is not |
//! | the first bytes of a file | 3 | that it ends in its header |
//! | a file that is cut or damaged | 3 | where; what could be read is printed |
//! | another run's number, one that the log does not know | 1 | which |

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

/// How the verbs are called on `FILE`, whose kind is the first word.
const VERBS: [(&str, &str); 20] = [
    ("log", "report FILE"),
    ("log", "report FILE --top 0 --json"),
    ("log", "report FILE --across-threads --include app.*"),
    ("log", "decode FILE @A"),
    ("log", "stats FILE"),
    ("log", "stats FILE --json"),
    ("log", "check FILE"),
    ("log", "export FILE --leaf-type"),
    ("log", "lab hot-paths FILE"),
    ("log", "lab hot-paths FILE --tables"),
    ("log", "leaks FILE --json"),
    ("log", "view FILE -o /dev/null"),
    ("log", "diff FILE FILE --by line"),
    ("log", "gate FILE --base FILE"),
    ("stream", "stream FILE --traces"),
    ("stream", "report FILE --stream"),
    ("stream", "export FILE --format chrome"),
    ("calls", "lab replay FILE --encoding dacce"),
    ("calls", "lab replay --compare FILE"),
    ("calls", "lab hot-paths FILE"),
];

/// Also when there are no events of that kind: the damage may have taken them.
const OF_A_KIND: [(&str, &str); 4] = [
    ("log", "report FILE --event call"),
    ("log", "export FILE --event call"),
    ("stream", "stream FILE --event call"),
    ("stream", "report FILE --stream --event call"),
];

/// Commands on a log without a stream: damage of the log itself is reported first.
const WITHOUT_STREAM: [&str; 3] = [
    "stream FILE",
    "report FILE --stream",
    "export FILE --format chrome",
];

struct Bad {
    name: &'static str,
    code: i32,
    /// Expected text for a file of any kind.
    words: &'static str,
}

const fn bad(name: &'static str, code: i32, words: &'static str) -> Bad {
    Bad { name, code, words }
}

const BAD: [Bad; 8] = [
    bad("missing", 2, "No such file or directory"),
    bad("folder", 2, "a directory, not a file"),
    bad("forbidden", 2, "Permission denied"),
    bad("empty", 3, "empty, and not a"),
    bad("foreign", 3, "not a"),
    bad("beginning", 3, "ends inside its header"),
    bad("cut", 3, "damaged at"),
    bad("damaged", 3, "damaged at"),
];

/// A whole file of each kind.
fn whole(dir: &Path, kind: &str) -> Vec<u8> {
    match kind {
        "log" => fs::read(dir.join("two.log")).unwrap(),
        "stream" => fs::read(dir.join("kinds.log.events")).unwrap(),
        _ => fs::read(dir.join("figure.calls")).unwrap(),
    }
}

/// The bytes of a file that is bad in this way; none: there is no such file.
fn content(dir: &Path, kind: &str, bad: &str) -> Option<Vec<u8>> {
    let mut whole = whole(dir, kind);
    match bad {
        "missing" | "folder" => return None,
        "empty" => whole.clear(),
        "beginning" => whole.truncate(12),
        "foreign" => {
            whole =
                b"PK and more of another file, longer than any header that there is here".repeat(3)
        }
        "cut" if kind == "log" => whole.truncate(whole.len() - 10),
        "cut" => whole.truncate(whole.len() * 2 / 3),
        // In a sealed block of records, in the header of a block of events, in a packed block.
        "damaged" => {
            let at = match kind {
                "log" => whole.len() - 70_000,
                "stream" => last_header(&whole) + 12,
                _ => whole.len() - 40,
            };
            whole[at] ^= 0x10;
        }
        _ => {}
    }
    Some(whole)
}

/// Of a stream.
fn last_header(stream: &[u8]) -> usize {
    let blocks = stream.chunks(64).enumerate();
    let mut headers = blocks.filter(|(_, block)| block.starts_with(b"LEVB"));
    64 * headers.next_back().unwrap().0
}

struct Cases<'d> {
    dir: &'d Path,
    ids: lucce_testkit::Ids,
    lucce: std::path::PathBuf,
}

impl Cases<'_> {
    /// Puts the bad file beside good ones, and says which it is called by.
    fn place(&self, kind: &str, bad: &str) -> String {
        let log = self.dir.join(format!("{kind}-{bad}.lucce"));
        let path = match kind {
            "stream" => {
                fs::copy(self.dir.join("kinds.log"), &log).unwrap();
                lucce_stream::events_path(&log)
            }
            _ => log.clone(),
        };
        match content(self.dir, kind, bad) {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None if bad == "folder" => fs::create_dir_all(&path).unwrap(),
            None => {}
        }
        readable(self.dir);
        if bad == "forbidden" {
            fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
        }
        log.file_name().unwrap().to_str().unwrap().to_owned()
    }

    /// As a user whom permissions bind.
    fn run(&self, command: &str) -> Output {
        const NOBODY: u32 = 65_534;
        let number = self.ids.get(&'A').map(ToString::to_string);
        let command = command.replace("@A", &number.unwrap_or_default());
        let mut lucce = Command::new(&self.lucce);
        lucce.args(command.split(' ')).current_dir(self.dir);
        if self.is_root() {
            lucce.uid(NOBODY).gid(NOBODY);
        }
        loop {
            match lucce.output() {
                // A process that another test is starting still has the copy open that this one runs.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                    thread::sleep(Duration::from_millis(1));
                }
                output => return output.unwrap(),
            }
        }
    }

    fn is_root(&self) -> bool {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        status.lines().any(|line| line.starts_with("Uid:\t0\t"))
    }
}

fn files(dir: &Path) -> lucce_testkit::Ids {
    let ids = lucce_testkit::sample(&dir.join("sample.log"));
    lucce_testkit::corrupt(&dir.join("two.log"));
    // As it was before it was corrupted.
    let mut two = fs::read(dir.join("two.log")).unwrap();
    lucce_testkit::mend(&mut two);
    fs::write(dir.join("two.log"), two).unwrap();
    lucce_testkit::stream::streams(dir);
    lucce_testkit::calls::record(&dir.join("figure.calls"));
    readable(dir);
    ids
}

/// Logs are their user's own; here another user reads them.
fn readable(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let is_forbidden = entry.file_name().to_string_lossy().contains("forbidden");
        if entry.file_type().unwrap().is_file() && !is_forbidden {
            fs::set_permissions(entry.path(), PermissionsExt::from_mode(0o755)).unwrap();
        }
    }
}

#[test]
fn every_verb_ends_with_the_code_and_the_words_of_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::set_permissions(dir, PermissionsExt::from_mode(0o755)).unwrap();
    let lucce = dir.join("lucce");
    lucce_testkit::programs::copy_program(env!("CARGO_BIN_EXE_lucce"), &lucce);
    let ids = files(dir);
    let cases = Cases { dir, ids, lucce };
    let mut wrong = Vec::new();
    for (kind, command) in VERBS.into_iter().chain(OF_A_KIND) {
        for Bad { name, code, words } in BAD {
            let file = cases.place(kind, name);
            let output = cases.run(&command.replace("FILE", &file));
            let stderr = String::from_utf8(output.stderr).unwrap();
            // The damaged part may have recorded that objects were followed.
            let claims = name != "missing" && stderr.contains("start the JVM with");
            let names = stderr.contains(&file)
                && stderr.contains(words)
                && !stderr.contains("panick")
                && !claims;
            if output.status.code() != Some(code) || !names {
                wrong.push(format!(
                    "{kind} {name}: {command}: {} {stderr}",
                    output.status
                ));
            }
            if (kind, name) == ("stream", "folder") {
                fs::remove_dir(lucce_stream::events_path(&dir.join(&file))).unwrap();
            }
        }
    }
    for command in WITHOUT_STREAM {
        for bad in BAD {
            let file = cases.place("log", bad.name);
            let output = cases.run(&command.replace("FILE", &file));
            let stderr = String::from_utf8(output.stderr).unwrap();
            // The header of these is intact, so the missing stream is reported.
            let (code, words) = match bad.name {
                "cut" | "damaged" => (
                    2,
                    ".lucce.events: No such file or directory: events have times if",
                ),
                _ => (bad.code, bad.words),
            };
            if output.status.code() != Some(code) || !stderr.contains(words) {
                let status = output.status;
                wrong.push(format!("{}: {command}: {status} {stderr}", bad.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A JVM of another user: its socket is there, and is not opened.
#[test]
fn another_users_jvm_is_a_matter_of_usage() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::set_permissions(dir, PermissionsExt::from_mode(0o755)).unwrap();
    let lucce = dir.join("lucce");
    lucce_testkit::programs::copy_program(env!("CARGO_BIN_EXE_lucce"), &lucce);
    let ids = lucce_testkit::Ids::new();
    let cases = Cases { dir, ids, lucce };
    let pid = std::process::id();
    let socket = format!("/tmp/.lucce_pid{pid}");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, PermissionsExt::from_mode(0o600)).unwrap();
    if cases.is_root() {
        let output = cases.run(&format!("ctl {pid} status"));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(!stderr.is_empty());
    }
    drop(listener);
    fs::remove_file(&socket).unwrap();
}

/// Beside files that are fine.
#[test]
fn requests_to_good_files_have_their_exit_codes() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::set_permissions(dir, PermissionsExt::from_mode(0o755)).unwrap();
    let lucce = dir.join("lucce");
    lucce_testkit::programs::copy_program(env!("CARGO_BIN_EXE_lucce"), &lucce);
    let ids = files(dir);
    let cases = Cases { dir, ids, lucce };
    for (command, code, words) in [
        ("report sample.log", 0, ""),
        ("report sample.log --event call", 2, "no events of kind"),
        ("decode sample.log @A", 0, ""),
        (
            "decode sample.log 0x77",
            1,
            "no context of this run has the number 0x77, which may have been cut short or be of another run",
        ),
        (
            "decode sample.log lucce:fedcba9876543210:@A",
            1,
            "is a number of run fedcba9876543210",
        ),
        ("decode sample.log word", 2, "holds no number"),
        ("stream sample.log", 2, "No such file"),
        ("report sample.log --stream", 2, "No such file"),
        ("leaks sample.log", 2, "no objects were followed"),
        ("report figure.calls", 3, "not a lucce log"),
        (
            "lab replay sample.log --encoding dacce",
            3,
            "not a recording",
        ),
        (
            "lab replay figure.calls --encoding nothing",
            2,
            "no encoding is called",
        ),
        ("ctl 4294967294 status", 2, "no process"),
        ("attach 4294967294 --agent lucce", 2, "4294967294"),
        ("ctl 1 status", 2, "process 1 does not listen"),
        ("leaks 4294967294", 2, "no process"),
    ] {
        let output = cases.run(command);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{command}: {stderr}");
        assert!(stderr.contains(words), "{command}: {stderr}");
    }
}
