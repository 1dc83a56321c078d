//! A JVM that goes on while it is asked.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use lucce_tests::{Checked, Java, Jdk, Lucce, PATIENCE, Setup, cpu_time, ensure};
use serde_json::Value;

/// A JVM that runs until it is told to end.
pub struct Running<'a> {
    pub java: Java<'a>,
    pub child: Process,
}

/// Ends with its owner, so that a test which fails leaves nothing that runs on.
pub struct Process(Child);

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail for one that has ended and was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl<'a> Running<'a> {
    /// `Forever` under the agent.
    pub fn start(
        setup: &'a Setup,
        jdk: &'a Jdk,
        name: &str,
        options: &str,
    ) -> Result<Self, String> {
        let java = Java::new_light(setup, jdk, name).agent(options);
        Running::of(java.main(["Forever"]))
    }

    /// A program that prints more and more lines with `working`.
    pub fn of(java: Java<'a>) -> Result<Self, String> {
        let child = Process(java.spawn()?);
        let mut running = Running { java, child };
        running.works_on()?;
        Ok(running)
    }

    /// A program that prints a line with these words once it is ready.
    pub fn with_words(java: Java<'a>, words: &str) -> Result<Self, String> {
        let child = Process(java.spawn()?);
        let mut running = Running { java, child };
        running.until_within(Duration::from_secs(600), words, |running| {
            Ok(running.java.printed("stdout").contains(words))
        })?;
        Ok(running)
    }

    /// A program that prints this line once.
    pub fn with_line(java: Java<'a>, line: &str) -> Result<Self, String> {
        let child = Process(java.spawn()?);
        let mut running = Running { java, child };
        running.until(line, |running| {
            let printed = running.java.printed("stdout");
            Ok(printed.lines().any(|printed| printed == line))
        })?;
        Ok(running)
    }

    /// Waits until the program has done more than it had.
    pub fn works_on(&mut self) -> Checked {
        let lines = |java: &Java| java.printed("stdout").matches("working").count();
        let before = lines(&self.java);
        self.until("the program works on", |running| {
            Ok(lines(&running.java) > before + 1)
        })
    }

    pub fn until(
        &mut self,
        what: &str,
        done: impl FnMut(&mut Self) -> Result<bool, String>,
    ) -> Checked {
        self.until_within(PATIENCE, what, done)
    }

    /// Waits at most this long.
    pub fn until_within(
        &mut self,
        limit: Duration,
        what: &str,
        mut done: impl FnMut(&mut Self) -> Result<bool, String>,
    ) -> Checked {
        let started = Instant::now();
        while !done(self)? {
            let ended = self.child.try_wait().map_err(|e| e.to_string())?;
            ensure(ended.is_none(), || {
                format!("the JVM ended\n{}", self.java.so_far().text())
            })?;
            ensure(started.elapsed() < limit, || {
                format!("not within {} s: {what}", limit.as_secs())
            })?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub fn socket(&self) -> PathBuf {
        format!("/tmp/.lucce_pid{}", self.child.id()).into()
    }

    pub fn lucce(&self) -> Lucce<'a> {
        self.java.lucce()
    }

    pub fn ctl(&self, what: &[&str]) -> Result<Value, String> {
        let pid = self.pid();
        let all = [&["ctl", &pid], what, &["--json"]].concat();
        self.lucce().json(&all)
    }

    /// What is said when it is refused.
    pub fn refused(&self, what: &[&str], words: &str) -> Checked {
        let pid = self.pid();
        let said = self.lucce().text(2, &[&["ctl", &pid], what].concat())?;
        ensure(said.contains(words) && said.lines().count() == 1, || {
            format!("ctl {what:?} says\n{said}instead of something with '{words}'")
        })
    }

    pub fn recorded(&self) -> Result<u64, String> {
        let status = self.ctl(&["status"])?;
        status["recorded"]
            .as_u64()
            .ok_or_else(|| format!("no count in {status}"))
    }

    /// Whether events are counted while the program does more.
    pub fn counts(&mut self) -> Result<bool, String> {
        let before = self.recorded()?;
        self.works_on()?;
        Ok(self.recorded()? > before)
    }

    /// Ends as on Ctrl-C.
    pub fn end(mut self) -> Result<Java<'a>, String> {
        let told = Command::new("kill").arg(self.pid()).status();
        ensure(told.is_ok_and(|status| status.success()), || {
            "the JVM has gone".into()
        })?;
        cpu_time::wait(&mut self.child).map_err(|e| e.to_string())?;
        let socket = self.socket();
        ensure(!socket.exists(), || {
            format!("{} was left", socket.display())
        })?;
        Ok(self.java)
    }
}

/// The path of the file whose creation lets a program go on. The file of an earlier run is removed.
pub fn signal_file(java: &Java) -> PathBuf {
    let file = java.folder().join("go");
    let _ = fs::remove_file(&file);
    file
}
