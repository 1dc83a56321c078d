//! Runs processes and returns their output, times and peak memory; one alone, or several that take turns.
//!
//! Processes that take turns repeat their work, and wait for a line of their standard input before each repetition. All
//! exist at once and one of them works. So anything that slows the machine for some seconds or minutes affects all
//! alike. The others are stopped (`SIGSTOP`) together with their compilers: a working process is not disturbed, and a
//! waiting one does no unmeasured work.
//!
//! Waiting for a child has two steps. `waitid` with `WNOWAIT` returns when the child has ended and leaves it a zombie.
//! Its process id thus stays valid while the watchdog, which would kill it, is cancelled. `wait4` then reaps it and
//! returns its usage.
#![allow(
    unsafe_code,
    reason = "wait4 and waitid: the standard library tells no usage; signals"
)]

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::looking::{LONGEST_PAUSE, Looker, Printed, readable};
use crate::threads::{Own, Threads};

/// The resources used by a process and its own children.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Usage {
    /// Elapsed time in milliseconds.
    pub wall: f64,
    /// Milliseconds of CPU time, user and system.
    pub cpu: f64,
    /// Of the threads of this process alone. `None`: its children do the work, or it cannot be observed.
    pub own: Option<Own>,
    /// Peak resident set size in bytes.
    pub peak_rss: u64,
}

/// A process that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub usage: Usage,
    pub stdout: String,
    pub stderr: String,
    /// CPU time in milliseconds of the program's own threads in each printed iteration.
    pub own: Vec<f64>,
    /// It was killed because it exceeded its time limit.
    pub timed_out: bool,
}

/// Runs a command to its end; its output goes through files in `scratch`.
///
/// # Errors
/// It cannot be started, or the files cannot be written.
pub fn run(command: &mut Command, scratch: &Path, limit: Duration) -> io::Result<Ended> {
    fs::create_dir_all(scratch)?;
    let (out, err) = (scratch.join("stdout"), scratch.join("stderr"));
    command.stdin(Stdio::null());
    command.stdout(File::create(&out)?);
    command.stderr(File::create(&err)?);
    let printed = Printed::to(&out)?;
    let started = Instant::now();
    let child = command.spawn()?;
    let pid = child.id();
    let mut looker = Looker::new(pid, printed, started);
    let (here, there) = UnixStream::pair()?;
    let (late, wall) = thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let late = looker.look_until(&there, limit);
            if late {
                signal(pid, libc::SIGKILL);
            }
            late
        });
        let waited = wait_leaving_zombie(pid);
        let wall = started.elapsed();
        drop(here);
        let late = looking.join().unwrap_or(false);
        waited.map(|()| (late, wall))
    })?;
    let (own, iterations) = looker.end();
    let (status, mut usage) = reap(pid)?;
    usage.wall = wall.as_secs_f64() * 1e3;
    usage.own = own.filter(|own| works_itself(*own, usage.cpu));
    Ok(Ended {
        status,
        usage,
        stdout: text(&out),
        stderr: text(&err),
        own: iterations,
        timed_out: late,
    })
}

/// Whether the process does the work itself: `cpu` includes its children, whose threads are not observed.
fn works_itself(own: Own, cpu: f64) -> bool {
    own.whole >= 0.9 * cpu - 20.0
}

/// Starts all processes and lets them work in turns until the last one has ended.
///
/// `is_done` returns whether a printed line ends a turn. `limit` applies to each process. `first` takes the first turn;
/// after that, each turn begins with another one.
pub fn run_in_turns(
    commands: &mut [Command],
    scratch: &Path,
    limit: Duration,
    first: usize,
    is_done: &dyn Fn(&str) -> bool,
) -> Vec<io::Result<Ended>> {
    let started = commands.iter_mut().enumerate();
    let mut all: Vec<io::Result<Taking>> = started
        .map(|(at, command)| Taking::start(command, scratch, at))
        .collect();
    let (pids, count) = (pids(&all), all.len());
    let late = watched(&pids, limit * count as u32, || {
        for turn in first.. {
            let order = (0..count).map(|at| (at + turn) % count);
            let mut some = false;
            for at in order {
                if let Some(Ok(taking)) = all.get_mut(at) {
                    some |= taking.turn(is_done);
                }
            }
            if !some {
                break;
            }
        }
        for pid in &pids {
            wait_leaving_zombie(*pid)?;
        }
        Ok(())
    });
    let ends = all
        .into_iter()
        .map(|one| one?.end(late.as_ref().is_ok_and(|late| *late)));
    ends.collect()
}

fn pids(all: &[io::Result<Taking>]) -> Vec<u32> {
    all.iter().flatten().map(|taking| taking.pid).collect()
}

/// A process that takes turns with others.
struct Taking {
    pid: u32,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    printed: String,
    errors: std::path::PathBuf,
    ended: bool,
    threads: Threads,
    /// CPU time of its own threads at the beginning of its turn.
    before: f64,
    /// Whether it ended an iteration in its last turn.
    worked: bool,
    iterations: Vec<f64>,
}

impl Taking {
    fn start(command: &mut Command, scratch: &Path, at: usize) -> io::Result<Taking> {
        fs::create_dir_all(scratch)?;
        let errors = scratch.join(format!("stderr-{at}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(&errors)?);
        // SAFETY: prctl is a system call and passes no memory. A stopped process would never end by itself.
        unsafe { command.pre_exec(end_with_parent) };
        let mut child = command.spawn()?;
        signal(child.id(), libc::SIGSTOP);
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Taking {
            pid: child.id(),
            input,
            output: BufReader::new(output),
            printed: String::new(),
            errors,
            ended: false,
            threads: Threads::of(child.id()),
            before: 0.0,
            worked: false,
            iterations: Vec::new(),
        })
    }

    /// Runs one turn. Returns whether the process continues after it.
    fn turn(&mut self, is_done: &dyn Fn(&str) -> bool) -> bool {
        if self.ended {
            return false;
        }
        self.count_last_turn();
        signal(self.pid, libc::SIGCONT);
        // The process may not read: it ends, or prints without waiting.
        let _ = self
            .input
            .write_all(b"\n")
            .and_then(|()| self.input.flush());
        let mut line = Vec::new();
        loop {
            line.clear();
            match self.next_line(&mut line) {
                Ok(1..) => {}
                _ => break,
            }
            let text = String::from_utf8_lossy(&line);
            self.printed += &text;
            if is_done(text.trim_end()) {
                signal(self.pid, libc::SIGSTOP);
                self.worked = true;
                return true;
            }
        }
        self.ended = true;
        false
    }

    /// Counts the last turn. The process has been stopped since then, so the times of all threads are complete.
    fn count_last_turn(&mut self) {
        let now = self.threads.look();
        if self.worked && self.threads.are_seen() {
            self.iterations.push(now - self.before);
        }
        self.before = now;
        self.worked = false;
    }

    /// Waits for a line and meanwhile observes the threads, some of which may end.
    fn next_line(&mut self, line: &mut Vec<u8>) -> io::Result<usize> {
        while self.output.buffer().is_empty()
            && !readable([self.output.get_ref().as_raw_fd()], LONGEST_PAUSE)[0]
        {
            self.threads.look();
        }
        self.output.read_until(b'\n', line)
    }

    fn end(self, timed_out: bool) -> io::Result<Ended> {
        let own = self.threads.end();
        let (status, mut usage) = reap(self.pid)?;
        usage.own = own.filter(|own| works_itself(*own, usage.cpu));
        Ok(Ended {
            own: self.iterations,
            // Some of the processes to be killed may have ended by themselves.
            timed_out: timed_out && !status.success(),
            status,
            usage,
            stdout: self.printed,
            stderr: text(&self.errors),
        })
    }
}

fn text(file: &Path) -> String {
    String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned()
}

/// Whether the watchdog had to kill the processes, which are not reaped before `wait` returns.
fn watched(
    pids: &[u32],
    limit: Duration,
    wait: impl FnOnce() -> io::Result<()>,
) -> io::Result<bool> {
    thread::scope(|scope| {
        let (ended, watched) = mpsc::channel::<()>();
        let watchdog = scope.spawn(move || {
            let late = watched.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                pids.iter().for_each(|pid| signal(*pid, libc::SIGKILL));
            }
            late
        });
        let waited = wait();
        drop(ended);
        let late = watchdog.join().unwrap_or(false);
        waited.map(|()| late)
    })
}

/// Sends a signal to a child that has not been reaped.
fn signal(pid: u32, signal: i32) {
    // SAFETY: no memory is passed, and the number belongs to the child.
    unsafe { libc::kill(pid.cast_signed(), signal) };
}

fn end_with_parent() -> io::Result<()> {
    // SAFETY: a system call, as `pre_exec` requires.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn wait_leaving_zombie(pid: u32) -> io::Result<()> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    retry(|| {
        // SAFETY: `info` is writable memory of the size that waitid fills in.
        unsafe {
            libc::waitid(
                libc::P_PID,
                pid,
                info.as_mut_ptr(),
                libc::WEXITED | libc::WNOWAIT,
            )
        }
    })
}

fn reap(pid: u32) -> io::Result<(ExitStatus, Usage)> {
    let mut status = 0;
    let mut used = MaybeUninit::<libc::rusage>::zeroed();
    retry(|| {
        // SAFETY: both are writable memory of the size that wait4 fills in.
        unsafe { libc::wait4(pid.cast_signed(), &raw mut status, 0, used.as_mut_ptr()) }
    })?;
    // SAFETY: all bytes were zeroed, a valid value, before wait4 wrote to them.
    let used = unsafe { used.assume_init() };
    let usage = Usage {
        wall: 0.0,
        cpu: milliseconds(used.ru_utime) + milliseconds(used.ru_stime),
        own: None,
        // Linux reports kilobytes.
        peak_rss: u64::try_from(used.ru_maxrss).unwrap_or(0) * 1024,
    };
    Ok((ExitStatus::from_raw(status), usage))
}

/// Repeats a call that a signal interrupted.
fn retry(mut call: impl FnMut() -> i32) -> io::Result<()> {
    loop {
        if call() >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn milliseconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3
}

#[cfg(test)]
mod process_tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Ended {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        run(command.args(["-c", script]), folder.path(), limit).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn output_and_exit_code_are_the_processs() {
        let ended = shell("echo out; echo err >&2; exit 7", LONG);
        assert_eq!(
            (ended.stdout, ended.stderr),
            ("out\n".into(), "err\n".into())
        );
        assert_eq!(ended.status.code(), Some(7));
        assert!(!ended.timed_out);
    }

    #[test]
    fn work_costs_cpu_time_and_waiting_does_not() {
        let works = shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", LONG);
        let waits = shell("sleep 0.3", LONG);
        assert!(works.usage.cpu > waits.usage.cpu, "{works:?} {waits:?}");
        assert!(waits.usage.wall >= 300.0, "{waits:?}");
    }

    /// Not of all children so far.
    #[test]
    fn usage_is_of_this_process_alone() {
        let works = shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", LONG);
        let idle = shell(":", LONG);
        assert!(idle.usage.cpu < works.usage.cpu, "{idle:?} {works:?}");
        assert!(idle.usage.peak_rss > 0);
    }

    #[test]
    fn peak_memory_is_measured() {
        let large = shell(
            "head -c 100000000 /dev/zero | tail -c 90000000 | wc -c",
            LONG,
        );
        assert_eq!(large.stdout.trim(), "90000000");
        assert!(large.usage.peak_rss > 80_000_000, "{large:?}");
    }

    fn in_turns(scripts: &[&str], first: usize, limit: Duration) -> Vec<Ended> {
        let folder = tempfile::tempdir().unwrap();
        let command = |script: &&str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let mut commands: Vec<Command> = scripts.iter().map(command).collect();
        let is_done = |line: &str| line.starts_with("done");
        let ends = run_in_turns(&mut commands, folder.path(), limit, first, &is_done);
        ends.into_iter().map(Result::unwrap).collect()
    }

    #[test]
    fn one_works_while_the_others_wait() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log").display().to_string();
        let script = |name: &str, turns: usize| {
            format!(
                "for i in $(seq {turns}); do read x; echo {name} >> {log}; echo working; \
                 echo done; done; echo end; echo err >&2"
            )
        };
        let scripts = [script("a", 2), script("b", 3), script("c", 1)];
        let ended = in_turns(&scripts.each_ref().map(String::as_str), 1, LONG);
        assert_eq!(fs::read_to_string(log).unwrap(), "b\nc\na\na\nb\nb\n");
        assert_eq!(ended[0].stdout, "working\ndone\nworking\ndone\nend\n");
        assert!(
            ended
                .iter()
                .all(|one| one.status.success() && one.stderr == "err\n")
        );
    }

    /// A waiting process does not even do background work. Each process checks once that the other one is stopped.
    #[test]
    fn one_that_waits_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().display();
        let script = |own: &str, other: &str| {
            format!(
                "cd {folder}; echo $$ > {own}.new; mv {own}.new {own}; for turn in 1 2; do read x; \
                 if [ $turn = 1 -a -e {other} ]; then \
                 until grep -q '^State:.T' /proc/$(cat {other})/status; do sleep 0.01; done; \
                 echo stopped; fi; echo done; done"
            )
        };
        let ended = in_turns(&[&script("a", "b"), &script("b", "a")], 0, LONG);
        // The first one may still be alone.
        assert!(!ended[0].timed_out && !ended[1].timed_out, "{ended:?}");
        assert!(ended[1].stdout.starts_with("stopped\ndone\n"), "{ended:?}");
    }

    #[test]
    fn one_that_ends_early_or_does_not_wait_holds_up_nobody() {
        let ended = in_turns(
            &[
                "exit 3",
                "echo done; echo done; echo more",
                "read x; echo done",
            ],
            0,
            LONG,
        );
        assert_eq!(ended[0].status.code(), Some(3));
        assert_eq!(ended[1].stdout, "done\ndone\nmore\n");
        assert_eq!(ended[2].stdout, "done\n");
        let late = in_turns(
            &["exec sleep 600", "read x; echo done"],
            0,
            Duration::from_millis(100),
        );
        assert!(late[0].timed_out, "{late:?}");
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let ended = shell("exec sleep 600", Duration::from_millis(200));
        assert!(ended.timed_out);
        assert_eq!(ended.status.signal(), Some(libc::SIGKILL));
    }
}
