//! Observes a process until it has ended: its threads from time to time, and its output immediately.
//!
//! The line of an iteration ends the time in which the threads worked for it, so it must be seen immediately. Pauses
//! between observations grow with the elapsed time: the unobserved part at the end is small, and long runs cost little.
#![allow(
    unsafe_code,
    reason = "poll and inotify: the standard library waits for one thing at a time"
)]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::iterations::{begins_iteration, ends_iteration};
use crate::threads::{Own, Threads};

const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
pub const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// A pause is the elapsed time divided by this.
const PAUSE: u32 = 64;

/// Observes a process.
pub struct Looker {
    threads: Threads,
    printed: Printed,
    started: Instant,
    next: Instant,
    /// CPU time of the program's own threads when the iteration began.
    before: f64,
    iterations: Vec<f64>,
}

impl Looker {
    pub fn new(pid: u32, printed: Printed, started: Instant) -> Looker {
        Looker {
            threads: Threads::of(pid),
            printed,
            started,
            next: started,
            before: 0.0,
            iterations: Vec::new(),
        }
    }

    /// Observes until the other end of `ended` is closed, or until `limit` has passed: then returns `true`.
    pub fn look_until(&mut self, ended: &UnixStream, limit: Duration) -> bool {
        loop {
            let now = Instant::now();
            let passed = now.duration_since(self.started);
            if passed >= limit {
                return true;
            }
            if now >= self.next {
                self.threads.look();
                self.next = now + (passed / PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            }
            let pause = (self.next - now).min(limit - passed);
            let changes = self.printed.changes.as_raw_fd();
            let [is_over, has_printed] = readable([ended.as_raw_fd(), changes], pause);
            if has_printed {
                self.read();
            }
            if is_over {
                self.read();
                return false;
            }
            if has_printed {
                // A program with much output must not wake this thread all the time.
                thread::sleep(SHORTEST_PAUSE);
            }
        }
    }

    /// Reads new lines. Iterations that end together share the time since the previous one.
    fn read(&mut self) {
        let mut ended = 0;
        for line in self.printed.lines() {
            if begins_iteration(&line) {
                self.share(ended);
                ended = 0;
                self.before = self.threads.look();
            }
            ended += u32::from(ends_iteration(&line));
        }
        self.share(ended);
    }

    fn share(&mut self, ended: u32) {
        if ended == 0 {
            return;
        }
        let now = self.threads.look();
        let each = (now - self.before) / f64::from(ended);
        self.before = now;
        self.iterations.extend((0..ended).map(|_| each));
    }

    /// Returns the times of a process that has ended and is not reaped: of the whole process, and of each iteration.
    pub fn end(self) -> (Option<Own>, Vec<f64>) {
        let iterations = match self.threads.are_seen() {
            true => self.iterations,
            false => Vec::new(),
        };
        (self.threads.end(), iterations)
    }
}

/// The output of a process, written to a file.
pub struct Printed {
    file: File,
    changes: OwnedFd,
    /// An incomplete line.
    line: Vec<u8>,
}

impl Printed {
    /// Watches a file.
    ///
    /// # Errors
    /// The file does not exist, or the system cannot watch it.
    pub fn to(file: &Path) -> io::Result<Printed> {
        let path = std::ffi::CString::new(file.as_os_str().as_bytes())?;
        // SAFETY: no memory is passed.
        let changes = unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) };
        if changes < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above has opened it, and nothing else owns it.
        let changes = unsafe { OwnedFd::from_raw_fd(changes) };
        // SAFETY: the path is terminated and outlives the call.
        let watched =
            unsafe { libc::inotify_add_watch(changes.as_raw_fd(), path.as_ptr(), libc::IN_MODIFY) };
        match watched {
            0.. => Ok(Printed {
                file: File::open(file)?,
                changes,
                line: Vec::new(),
            }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the new complete lines.
    fn lines(&mut self) -> Vec<String> {
        self.forget_changes();
        let mut text = std::mem::take(&mut self.line);
        // On failure the rest is read later, or at the process's end.
        let _ = self.file.read_to_end(&mut text);
        let whole = text.iter().rposition(|byte| *byte == b'\n');
        self.line = text.split_off(whole.map_or(0, |at| at + 1));
        let text = String::from_utf8_lossy(&text);
        text.lines().map(str::to_owned).collect()
    }

    fn forget_changes(&self) {
        let mut changes = [0_u8; 4096];
        // SAFETY: the buffer has the given length.
        while unsafe {
            libc::read(
                self.changes.as_raw_fd(),
                changes.as_mut_ptr().cast(),
                changes.len(),
            )
        } > 0
        {}
    }
}

/// Waits for the first file that is readable or has ended; returns the state of each.
pub fn readable<const N: usize>(files: [RawFd; N], longest: Duration) -> [bool; N] {
    let mut polled = files.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // Rounded up: a pause below a millisecond would not wait at all.
    let pause = i32::try_from(longest.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    // SAFETY: the array has the given length.
    unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, pause) };
    polled.map(|polled| polled.revents != 0)
}

#[cfg(test)]
mod looking_tests {
    use std::process::Command;

    use crate::process::run;

    use super::*;

    /// Work before an iteration begins does not count for it.
    #[test]
    fn threads_work_for_the_iteration_whose_line_comes_next() {
        let work = |turns: u32| format!("i=0; while [ $i -lt {turns} ]; do i=$((i+1)); done");
        let (much, little) = (work(600_000), work(200_000));
        let script = format!(
            "{much}; echo iteration 1 begins; {little}; echo 'iteration 1: 1 ms wall, 1 ms cpu'; \
             {much}; echo 'iteration 2: 1 ms wall, 1 ms cpu'"
        );
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        let limit = Duration::from_secs(60);
        let ended = run(command.args(["-c", &script]), folder.path(), limit).unwrap();
        let [first, second] = ended.own[..] else {
            panic!("{ended:?}");
        };
        assert!(second > 2.0 * first, "{ended:?}");
        let whole = ended.usage.own.unwrap().cpu;
        assert!(whole > 1.5 * second, "{ended:?}");
    }
}
