//! One process: its output, its times, its peak memory.
//!
//! A child is waited for in two steps. `waitid` with `WNOWAIT` returns when it has ended and leaves it
//! a zombie, so its number still is its own while the watchdog, which would kill it, is called off;
//! `wait4` then takes it away and tells what it used.
#![allow(
    unsafe_code,
    reason = "wait4 and waitid: the standard library tells no usage"
)]

use std::fs::{self, File};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// What a process and its own children used.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Usage {
    /// Milliseconds from start to end.
    pub wall: f64,
    /// Milliseconds of CPU time, user and system.
    pub cpu: f64,
    /// Bytes of the largest resident set.
    pub peak_rss: u64,
}

/// A process that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub usage: Usage,
    pub stdout: String,
    pub stderr: String,
    /// It was killed because it took longer than it may.
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
    let started = Instant::now();
    let child = command.spawn()?;
    let pid = child.id();
    let timed_out = wait_until_ended(pid, limit)?;
    let wall = started.elapsed();
    let (status, mut usage) = reap(pid)?;
    usage.wall = wall.as_secs_f64() * 1e3;
    Ok(Ended {
        status,
        usage,
        stdout: text(&out),
        stderr: text(&err),
        timed_out,
    })
}

fn text(file: &Path) -> String {
    String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned()
}

/// Returns when the child has ended, and whether the watchdog had to end it.
fn wait_until_ended(pid: u32, limit: Duration) -> io::Result<bool> {
    thread::scope(|scope| {
        let (ended, watched) = mpsc::channel::<()>();
        let watchdog = scope.spawn(move || {
            let late = watched.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                kill(pid);
            }
            late
        });
        let waited = wait_leaving_zombie(pid);
        drop(ended);
        let late = watchdog.join().unwrap_or(false);
        waited.map(|()| late)
    })
}

fn kill(pid: u32) {
    // SAFETY: no memory is passed. The child has not been reaped: the number is its own.
    unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
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
        // Linux counts kilobytes.
        peak_rss: u64::try_from(used.ru_maxrss).unwrap_or(0) * 1024,
    };
    Ok((ExitStatus::from_raw(status), usage))
}

/// Again when a signal came in between.
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
mod tests {
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
    fn peak_memory_is_told() {
        let large = shell(
            "head -c 100000000 /dev/zero | tail -c 90000000 | wc -c",
            LONG,
        );
        assert_eq!(large.stdout.trim(), "90000000");
        assert!(large.usage.peak_rss > 80_000_000, "{large:?}");
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let ended = shell("exec sleep 600", Duration::from_millis(200));
        assert!(ended.timed_out);
        assert_eq!(ended.status.signal(), Some(libc::SIGKILL));
    }
}
