//! One JVM in a process of its own, watched.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Checked, Jdk, Lucce, Setup, cpu_time, ensure};

/// For what takes seconds, on a machine that is busy with other things; only what hangs takes longer.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// For a JVM that hangs; one that works on a busy machine may take long.
const LIMIT: Duration = Duration::from_secs(900);

/// Flags of a VM that starts fast: one compiler, the fast one, and one thread that collects.
pub const LIGHT_VM: [&str; 2] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/// Programs do things a quarter of the usual number of times, and start fewer virtual threads at once: the VM takes long to tell
/// the stack of one.
const FEWER_REPEATS: [&str; 2] = ["-Dlucce.repeats=25", "-Dlucce.threads=2000"];

/// Flags with which programs repeat what they do until the VM has compiled it. They are usual, but not in most tests.
pub const ALL_REPEATS: [&str; 2] = ["-Dlucce.repeats=100", "-Dlucce.threads=5000"];

/// In place of `-Xcomp`, as a flag of [`Java`]: only programs, hooks, threads and tasks are compiled at their first call. The JVM
/// takes several times as long to compile all that the JDK runs at its start.
pub const COMPILE_PROGRAMS: &str = "compile programs";

/// What `COMPILE_PROGRAMS` compiles.
const COMPILED: [&str; 4] = [
    "io/lucce/*.*",
    "java/lang/LucceRt*.*",
    "java/lang/Thread*.*",
    "java/util/concurrent/*.*",
];

/// A JVM that is to run, in a folder of its own.
pub struct Java<'a> {
    setup: &'a Setup,
    jdk: &'a Jdk,
    folder: PathBuf,
    agent: Option<String>,
    flags: Vec<OsString>,
    class_path: OsString,
    command: Vec<OsString>,
    limit: Duration,
}

/// What came of it.
#[derive(Debug)]
pub struct Ended {
    pub stdout: String,
    pub stderr: String,
    /// None: by a signal.
    pub code: Option<i32>,
    /// The command, for messages.
    command: String,
}

/// Options that only the lab's agent follows.
pub const LAB_OPTIONS: [&str; 4] = [
    "tracking=cct",
    "tracking=paper",
    "calls=on",
    "encoding=static",
];

fn needs_lab(options: &str) -> bool {
    let mut options = options
        .split([',', '='])
        .zip(options.split([',', '=']).skip(1));
    options.any(|(key, value)| LAB_OPTIONS.contains(&&*format!("{key}={value}")))
}

/// The JVM's flags for `COMPILE_PROGRAMS`.
fn compile_flags() -> impl Iterator<Item = OsString> {
    let only = COMPILED.map(|pattern| format!("-XX:CompileCommand=compileonly,{pattern}"));
    let all = ["-Xcomp", "-XX:CompileCommand=quiet"].map(str::to_owned);
    all.into_iter().chain(only).map(OsString::from)
}

impl<'a> Java<'a> {
    /// `name` is the folder's.
    pub fn new(setup: &'a Setup, jdk: &'a Jdk, name: &str) -> Java<'a> {
        let programs = setup.harness.join("programs");
        let parts = match *jdk == setup.jdk_11 {
            true => vec![
                setup.programs_11.clone(),
                programs.join("src/main/resources"),
                programs.join("target/lib/*"),
                setup.classes.clone(),
            ],
            false => vec![
                setup.programs(),
                setup.programs_21.clone(),
                setup.classes.clone(),
            ],
        };
        let parts: Vec<&OsStr> = parts.iter().map(|part| part.as_os_str()).collect();
        let class_path = parts.join(OsStr::new(":"));
        Java {
            setup,
            jdk,
            folder: setup.scratch.join(name),
            agent: None,
            flags: FEWER_REPEATS
                .into_iter()
                // ZGC is an experiment there.
                .chain((*jdk == setup.jdk_11).then_some("-XX:+UnlockExperimentalVMOptions"))
                .map(OsString::from)
                .collect(),
            class_path,
            command: Vec::new(),
            limit: LIMIT,
        }
    }

    /// As `new`, with one compiler and one collector that take little time. It is for tests of commands, files and options: what
    /// compilers make of hooks has tests of its own (`programs`, `counts`, `entries`, …).
    pub fn new_light(setup: &'a Setup, jdk: &'a Jdk, name: &str) -> Java<'a> {
        Java::new(setup, jdk, name).flags(LIGHT_VM)
    }

    /// Runs under the agent with these options: the lab's if they need it. The log is `log()` unless they say otherwise.
    pub fn agent(mut self, options: &str) -> Self {
        let out = match options.split(',').any(|option| option.starts_with("out=")) {
            true => String::new(),
            false => format!("out={},", self.log().display()),
        };
        self.agent = Some(format!("={out}{options}"));
        self
    }

    /// As `agent`, but other agents come first.
    pub fn agent_behind(self, options: &str, others: Vec<String>) -> Self {
        let mut java = self.agent(options);
        let ours = java.agent.take().unwrap_or_default();
        let ours = format!("-agentpath:{}{ours}", java.setup.agent.display());
        java.flags(others).flags([ours])
    }

    /// Runs under the agent without any options.
    pub fn bare_agent(mut self) -> Self {
        self.agent = Some(String::new());
        self
    }

    pub fn flags(mut self, flags: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        for flag in flags {
            match flag.as_ref() {
                flag if flag == COMPILE_PROGRAMS => self.flags.extend(compile_flags()),
                flag => self.flags.push(flag.to_owned()),
            }
        }
        self
    }

    /// In place of the programs.
    pub fn class_path(mut self, class_path: String) -> Self {
        self.class_path = class_path.into();
        self
    }

    /// The main class and its arguments.
    pub fn main(mut self, command: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command = command
            .into_iter()
            .map(|part| part.as_ref().to_owned())
            .collect();
        self
    }

    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    pub fn log(&self) -> PathBuf {
        self.folder.join("run.lucce")
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn lucce(&self) -> Lucce<'a> {
        Lucce::new(self.setup)
    }

    /// Everything after `java`.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut all = Vec::new();
        if let Some(options) = &self.agent {
            let mut agent = OsString::from("-agentpath:");
            agent.push(match needs_lab(options) {
                true => &self.setup.lab_agent,
                false => &self.setup.agent,
            });
            agent.push(options);
            all.push(agent);
        }
        all.extend(self.flags.iter().cloned());
        all.extend(["-cp".into(), self.class_path.clone()]);
        all.extend(self.command.iter().cloned());
        all
    }

    /// # Errors
    /// It does not start or does not end in time.
    pub fn run(&self) -> Result<Ended, String> {
        self.run_as(&mut Command::new(self.jdk.tool("java")), &self.arguments())
    }

    /// Runs another command that ends up as this JVM.
    ///
    /// # Errors
    /// It does not start or does not end in time.
    pub fn run_as(&self, command: &mut Command, arguments: &[OsString]) -> Result<Ended, String> {
        let child = self.spawn_as(command, arguments)?;
        self.wait(command, child)
    }

    /// Runs it and meanwhile something that is told the process's number.
    ///
    /// # Errors
    /// That fails, or the JVM does not start or does not end in time.
    pub fn run_beside(&self, beside: impl FnOnce(&str) -> Checked) -> Result<Ended, String> {
        let mut command = Command::new(self.jdk.tool("java"));
        let mut child = self.spawn_as(&mut command, &self.arguments())?;
        if let Err(message) = beside(&child.id().to_string()) {
            let _ = child.kill().and_then(|()| child.wait());
            let so_far = self.ended(&command, None).text();
            return Err(format!("{message}\n{so_far}"));
        }
        self.wait(&command, child)
    }

    fn wait(&self, command: &Command, mut child: Child) -> Result<Ended, String> {
        let started = Instant::now();
        loop {
            let status = cpu_time::try_wait(&mut child).map_err(|e| e.to_string())?;
            if let Some(status) = status {
                return Ok(self.ended(command, status.code()));
            }
            if started.elapsed() > self.limit {
                child
                    .kill()
                    .and_then(|()| child.wait())
                    .map_err(|e| e.to_string())?;
                let so_far = self.ended(command, None).text();
                return Err(format!(
                    "did not end within {} s\n{so_far}",
                    self.limit.as_secs()
                ));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Starts it; the output goes to files.
    ///
    /// # Errors
    /// It does not start.
    pub fn spawn(&self) -> Result<Child, String> {
        self.spawn_as(&mut Command::new(self.jdk.tool("java")), &self.arguments())
    }

    fn spawn_as(&self, command: &mut Command, arguments: &[OsString]) -> Result<Child, String> {
        fs::create_dir_all(&self.folder).map_err(|e| e.to_string())?;
        // The agent would leave the log of an earlier run as it is, and give this one's a number.
        for beside in ["", ".events", ".calls"] {
            let mut file = self.log().into_os_string();
            file.push(beside);
            let _ = fs::remove_file(file);
        }
        let file =
            |name| File::create(self.folder.join(name)).map_err(|e: std::io::Error| e.to_string());
        command
            .env_remove("JAVA_TOOL_OPTIONS")
            .env_remove("JDK_JAVA_OPTIONS")
            // What one test has kept of the JDK's classes the next one finds, and the user's folder stays as it is.
            .env("XDG_CACHE_HOME", self.setup.scratch.join("caches"));
        command
            .current_dir(&self.folder)
            .args(arguments)
            .stdin(Stdio::null());
        command.stdout(file("stdout")?).stderr(file("stderr")?);
        command
            .spawn()
            .map_err(|e| format!("cannot start {command:?}: {e}"))
    }

    /// What it has printed so far, of a JVM that ended or runs.
    pub fn so_far(&self) -> Ended {
        self.ended(&Command::new(self.jdk.tool("java")), None)
    }

    fn ended(&self, command: &Command, code: Option<i32>) -> Ended {
        Ended {
            stdout: self.printed("stdout"),
            stderr: self.printed("stderr"),
            code,
            command: format!("{command:?}"),
        }
    }

    /// What it printed so far.
    pub fn printed(&self, name: &str) -> String {
        let bytes = fs::read(self.folder.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Removes what a run that passed has left.
    pub fn clean(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Ended {
    /// # Errors
    /// It ended with another exit code.
    pub fn expect(self, code: i32) -> Result<Ended, String> {
        match self.code == Some(code) {
            true => Ok(self),
            false => Err(format!("exit code {code} expected\n{}", self.text())),
        }
    }

    /// # Errors
    /// The condition does not hold.
    pub fn ensure(&self, condition: bool, message: &str) -> Checked {
        ensure(condition, || format!("{message}\n{}", self.text()))
    }

    pub fn last_line(&self) -> &str {
        self.stdout.lines().last().unwrap_or_default()
    }

    /// What the agent said.
    pub fn agent_lines(&self) -> Vec<&str> {
        self.stderr
            .lines()
            .filter(|line| line.starts_with("lucce: "))
            .collect()
    }

    pub fn text(&self) -> String {
        let code = self
            .code
            .map_or("a signal".to_owned(), |code| code.to_string());
        let (stdout, stderr) = (shortened(&self.stdout), shortened(&self.stderr));
        format!(
            "{}\nended with {code}\nstdout:\n{stdout}\nstderr:\n{stderr}",
            self.command
        )
    }
}

fn shortened(text: &str) -> String {
    const LINES: usize = 20;
    let lines: Vec<&str> = text.lines().collect();
    match lines.len() > 2 * LINES {
        true => [&lines[..LINES], &["…"], &lines[lines.len() - LINES..]]
            .concat()
            .join("\n"),
        false => text.to_owned(),
    }
}
