//! Mozilla's `profiler-cli`, which has the code of profiler.firefox.com.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Logs, consumers, equal, holds, told, totals};
use crate::{Outcome, tools};

/// Of single events and of sums: each thread's samples are together what the log says, and so are the markers' numbers.
pub fn sums(logs: &Logs) -> Outcome {
    for (name, options) in [("events", &[][..]), ("rows", &["--min-value", "0"])] {
        let file = format!("{name}.json.gz");
        let file = logs.export(&logs.shop, "firefox", &file, options)?;
        let session = Session::load(&file)?;
        let threads = session.asks(&["thread", "list"])?;
        let threads = threads["threads"].as_array().cloned();
        let threads = threads.ok_or("no threads")?;
        for kind in ["alloc", "lock"] {
            of_kind(&session, &threads, kind, &logs.shop).map_err(|e| format!("{name}: {e}"))?;
        }
    }
    Ok(())
}

/// A log without events is a profile that loads, with a thread that has none.
pub fn nothing(logs: &Logs) -> Outcome {
    let file = logs.export(&logs.idle, "firefox", "idle.json.gz", &[])?;
    let session = Session::load(&file)?;
    holds(&session.says(&["thread", "list"])?, "alloc")
}

fn of_kind(session: &Session, threads: &[Value], kind: &str, log: &Path) -> Outcome {
    let (value, count) = totals(log, kind)?;
    let is_kind = |thread: &&Value| {
        let name = thread["name"].as_str().unwrap_or_default();
        name.ends_with(&format!(": {kind}"))
    };
    let (mut sum, mut markers) = (0.0, 0);
    for thread in threads.iter().filter(is_kind) {
        let handle = thread["threadHandle"].as_str().unwrap_or_default();
        let samples = session.asks(&["thread", "samples", "--include-idle", "--thread", handle])?;
        let whole = &samples["categoryBreakdown"]["totalSamples"];
        sum += whole.as_f64().ok_or("no sum")?;
        markers += thread["markerCount"].as_u64().unwrap_or_default();
    }
    // The profiler's times are milliseconds.
    let unit = if kind == "lock" { 1e6 } else { 1.0 };
    equal(kind, &((sum * unit).round() as u64), &value)?;
    let is_single = markers == count;
    let rows = told(log, &["report", "--top", "1", "--event", kind])?;
    let rows = rows["totals"]["contexts"].as_u64().unwrap_or_default();
    equal("markers", &(is_single || markers >= rows), &true)
}

/// Its heaviest method; lines, types and numbers of markers; threads with names that try to be markup.
pub fn views(logs: &Logs) -> Outcome {
    let file = logs.export(&logs.shop, "firefox", "shop.json.gz", &["--content-ids"])?;
    let session = Session::load(&file)?;
    let threads = session.says(&["thread", "list"])?;
    holds(&threads, "main: alloc")?;
    holds(&threads, "<img src=x onerror=alert(1)></script>")?;
    let samples = session.asks(&["thread", "samples", "--thread", "t-0"])?;
    equal("weights", &samples["weightType"], &"bytes".into())?;
    let first = &samples["topFunctionsByTotal"][0]["name"];
    equal("outermost", first, &"Shop.main".into())?;
    let report = told(&logs.shop, &["report", "--top", "1"])?;
    let number = report["contexts"][0]["id"].as_str().unwrap_or_default();
    let search = [
        "thread", "markers", "--thread", "t-0", "--list", "--limit", "1",
    ];
    let found = session.asks(&[&search[..], &["--search", number]].concat())?;
    let marker = &found["flatMarkers"][0];
    let label = marker["label"].as_str().unwrap_or_default();
    let class = report["contexts"][0]["class"].as_str().unwrap_or_default();
    equal("type and number", &label, &&*format!("{class} {number}"))?;
    let handle = marker["handle"].as_str().unwrap_or_default();
    let stack = session.says(&["marker", "stack", handle])?;
    for frame in report["contexts"][0]["frames"]
        .as_array()
        .ok_or("no frames")?
    {
        let method = frame["method"].as_str().unwrap_or_default();
        holds(&stack, method)?;
    }
    holds(&session.says(&["marker", "info", handle])?, "Content")
}

/// The tool gives its own process half a second to start, which is too short on a busy machine.
const ATTEMPTS: u32 = 20;
/// What the tool says then.
const NOT_READY: &str = "did not become ready";

/// A file that is loaded, until this goes away.
struct Session {
    program: PathBuf,
    folder: PathBuf,
    name: String,
}

impl Session {
    fn load(file: &Path) -> Result<Self, String> {
        let program = consumers::npm("@firefox-devtools/profiler-cli/dist/profiler-cli.js")?;
        let name = file.file_name().unwrap_or_default();
        // Names of sockets are short: not below the target folder, which may lie deep.
        let folder = std::env::temp_dir().join(format!("lucce-ff-{}", std::process::id()));
        let name = name.to_string_lossy().replace('.', "-");
        let mut session = Session {
            program,
            folder,
            name: String::new(),
        };
        let mut attempt = 1;
        loop {
            session.name = format!("{name}-{attempt}");
            let mut load = session.command(&["load"]);
            let ended = load.arg(file).output().map_err(|e| format!("node: {e}"))?;
            if ended.status.success() {
                return Ok(session);
            }
            let said = [ended.stdout, ended.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            if attempt == ATTEMPTS || !said.contains(NOT_READY) {
                return Err(format!("profiler-cli: {}: {said}", ended.status));
            }
            attempt += 1;
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut node = Command::new("node");
        node.arg(&self.program)
            .env("PROFILER_CLI_SESSION_DIR", &self.folder)
            .env("PROFILER_CLI_NO_SYMBOLICATE", "1")
            .args(args)
            .args(["--session", &self.name]);
        node
    }

    fn says(&self, args: &[&str]) -> Result<String, String> {
        let said = tools::output(&mut self.command(args))?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    }

    fn asks(&self, args: &[&str]) -> Result<Value, String> {
        let said = self.says(&[args, &["--json"]].concat())?;
        serde_json::from_str(&said).map_err(|e| format!("{}: {e}", args.join(" ")))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut node = Command::new("node");
        node.arg(&self.program)
            .env("PROFILER_CLI_SESSION_DIR", &self.folder);
        let _ = tools::run_quietly(node.args(["stop", "--all"]));
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
