//! `lucce top`: as text, and on a terminal, which is tmux.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use lucce_tests::{Checked, PATIENCE, Setup, ensure};

use crate::running::Running;
use crate::{Test, test};

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    vec![
        test("top::once", false, || once(setup)),
        test("top::screen", false, || screen(setup)),
    ]
}

/// What `Forever` does, and where.
const WORK: &str = "Forever  Forever.work(Forever.java:17)";

fn once(setup: &Setup) -> Checked {
    let running = Running::start(setup, setup.jdk(), "top-once", "")?;
    let pid = running.pid();
    let log = running.java.log().display().to_string();
    for (target, list, row) in [
        (&pid, "context", WORK),
        (&pid, "method", "Forever.work"),
        (&pid, "thread", "main"),
        (&log, "type", "Forever"),
    ] {
        let asked = ["top", target, "--once", "--interval", "500ms", "--by", list];
        let text = running.lucce().text(0, &asked)?;
        let first = text.lines().nth(3).unwrap_or_default();
        ensure(
            first.trim_end().ends_with(row) && first.contains("100.0%"),
            || format!("{list}: not {row:?} first in\n{text}"),
        )?;
        ensure(
            text.contains("alloc: ") && text.contains("events a second"),
            || text.clone(),
        )?;
    }
    let other = [
        "top",
        &pid,
        "--once",
        "--interval",
        "100ms",
        "--event",
        "lock",
    ];
    let text = running.lucce().text(2, &other)?;
    ensure(
        text.contains("no events of kind \"lock\"; there are alloc"),
        || text.clone(),
    )?;
    // There is no screen in a pipe.
    let refused = running.lucce().text(2, &["top", &pid])?;
    ensure(refused.contains("no terminal"), || refused.clone())?;
    running.end()?.clean();
    Ok(())
}

/// The open trace has its content id beside its number.
fn content_id(running: &Running, shown: &str) -> Checked {
    let line = shown.lines().find(|line| line.contains("lucce:"));
    let mut words = line
        .unwrap_or_default()
        .trim_matches('│')
        .split_whitespace();
    let (number, stack) = (words.next().unwrap_or_default(), words.next());
    let log = running.java.log();
    let args = ["decode", "--json", &*log.to_string_lossy(), number];
    let decoded = running.lucce().json(&args)?;
    ensure(
        stack.is_some() && decoded["stack"].as_str() == stack,
        || format!("{decoded} is shown as\n{shown}"),
    )
}

fn screen(setup: &Setup) -> Checked {
    let running = Running::start(setup, setup.jdk(), "top-screen", "")?;
    let terminal = Terminal::start(&running)?;
    terminal.until(&["contexts", "methods", WORK])?;
    terminal.press("Enter")?;
    terminal.until(&[
        "trace",
        "lucce:",
        "    at Forever.main(Forever.java:",
        "paused",
    ])?;
    content_id(&running, &terminal.shows()?)?;
    // What the program prints is made in the JDK: the next row's trace is another one.
    terminal.until(&["  Forever.main(Forever.java:9) … java."])?;
    ensure(!terminal.shows()?.contains("    at java."), || {
        "the first trace has no frame of the JDK".into()
    })?;
    terminal.press("Down")?;
    terminal.until(&[
        "lucce:",
        "    at java.",
        "    at Forever.main(Forever.java:9)",
    ])?;
    terminal.press("Up")?;
    terminal.until(&["    at Forever.work(Forever.java:17)"])?;
    // Half of the screen is too small for its three lines.
    terminal.resize("11")?;
    terminal.until(&["trace, lines 1 to 2 of 3: PgUp PgDn"])?;
    terminal.press("PageDown")?;
    terminal.until(&[
        "trace, lines 2 to 3 of 3",
        "    at Forever.main(Forever.java:",
    ])?;
    terminal.press("PageUp")?;
    terminal.until(&["trace, lines 1 to 2 of 3"])?;
    terminal.resize("40")?;
    terminal.press("Enter")?;
    terminal.press("Right")?;
    terminal.until(&["/s  Forever\n"])?;
    terminal.press("Left")?;
    terminal.press("s")?;
    terminal.press("d")?;
    terminal.until(&["wrote top-", WORK])?;
    let copies = copies(running.java.folder());
    ensure(copies.len() == 1, || format!("{copies:?} were written"))?;
    let report = [
        "report",
        copies.first().map_or("", String::as_str),
        "--top",
        "1",
    ];
    let report = running.lucce().text(0, &report)?;
    ensure(report.contains("at Forever.work(Forever.java:17)"), || {
        report.clone()
    })?;
    let pid = running.pid();
    let java = running.end()?;
    terminal.until(&["the JVM has ended"])?;
    terminal.press("q")?;
    let ended = Instant::now();
    while terminal.shows().is_ok() {
        ensure(ended.elapsed() < PATIENCE, || format!("top {pid} goes on"))?;
        std::thread::sleep(LOOK);
    }
    java.clean();
    Ok(())
}

const LOOK: Duration = Duration::from_millis(100);

fn copies(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let copies = files.filter(|file| file.file_name().to_string_lossy().starts_with("top-"));
    copies
        .map(|file| file.path().display().to_string())
        .collect()
}

/// A terminal of tmux, which has a server of its own.
struct Terminal {
    server: String,
}

impl Terminal {
    fn start(running: &Running<'_>) -> Result<Terminal, String> {
        let server = format!("lucce-top-{}", running.pid());
        let terminal = Terminal { server };
        let lucce = running.lucce().command();
        let folder = running.java.folder().display().to_string();
        let program = lucce.get_program().to_string_lossy().into_owned();
        let size = ["-x", "110", "-y", "40"];
        let command = [&program, "top", &running.pid(), "--interval", "500ms"];
        let start = ["-f", "/dev/null", "new-session", "-d", "-c", &folder];
        terminal.tmux(&[&start[..], &size, &command].concat())?;
        Ok(terminal)
    }

    fn tmux(&self, args: &[&str]) -> Result<String, String> {
        let output = Command::new("tmux")
            .args(["-L", &self.server])
            .args(args)
            .output()
            .map_err(|e| format!("tmux is needed (apt-get install tmux): {e}"))?;
        ensure(output.status.success(), || {
            format!("tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr))
        })?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn shows(&self) -> Result<String, String> {
        self.tmux(&["capture-pane", "-p"])
    }

    fn press(&self, key: &str) -> Checked {
        self.tmux(&["send-keys", key]).map(|_| ())
    }

    /// So many lines high.
    fn resize(&self, lines: &str) -> Checked {
        self.tmux(&["resize-window", "-x", "110", "-y", lines])
            .map(|_| ())
    }

    fn until(&self, words: &[&str]) -> Checked {
        let started = Instant::now();
        loop {
            let shown = self.shows()?;
            if words.iter().all(|word| shown.contains(word)) {
                return Ok(());
            }
            ensure(started.elapsed() < PATIENCE, || {
                format!("not {words:?}, but\n{shown}")
            })?;
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has ended by itself, if all went well.
        let _ = self.tmux(&["kill-server"]);
    }
}
