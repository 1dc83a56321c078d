//! Looking at a process until it has ended: at its threads from time to time, and at what it prints as soon as it
//! prints it, since an iteration's line ends the time in which its threads worked for it.
//!
//! Pauses between two looks grow with the time that has passed, so that what is not seen at the end is a
//! small part of all, and looking costs little of a long run.
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
/// Of the time that has passed.
const PAUSE: u32 = 64;

pub struct Looker {
    threads: Threads,
    printed: Printed,
    started: Instant,
    next: Instant,
    /// Of the program's own threads when the iteration began.
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

    /// Until the other end of `ended` is closed, or `limit` has passed: then `true`.
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
                // A program that prints a lot is not to wake this thread all the time.
                thread::sleep(SHORTEST_PAUSE);
            }
        }
    }

    /// Iterations that end at once share the time since the one before.
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

    /// Of a process that has ended and has its number still: all of it, and each iteration.
    pub fn end(self) -> (Option<Own>, Vec<f64>) {
        let iterations = match self.threads.are_seen() {
            true => self.iterations,
            false => Vec::new(),
        };
        (self.threads.end(), iterations)
    }
}

/// What a process writes to a file.
pub struct Printed {
    file: File,
    changes: OwnedFd,
    /// Read, but for its end.
    line: Vec<u8>,
}

impl Printed {
    /// # Errors
    /// The file is not there, or the system watches none.
    pub fn to(file: &Path) -> io::Result<Printed> {
        let path = std::ffi::CString::new(file.as_os_str().as_bytes())?;
        // SAFETY: no memory is passed.
        let changes = unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) };
        if changes < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above has opened it, and it is owned here alone.
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

    /// Whole lines that are new.
    fn lines(&mut self) -> Vec<String> {
        self.forget_changes();
        let mut text = std::mem::take(&mut self.line);
        // What cannot be read now is read later, or at the process's end.
        let _ = self.file.read_to_end(&mut text);
        let whole = text.iter().rposition(|byte| *byte == b'\n');
        self.line = text.split_off(whole.map_or(0, |at| at + 1));
        let text = String::from_utf8_lossy(&text);
        text.lines().map(str::to_owned).collect()
    }

    fn forget_changes(&self) {
        let mut changes = [0_u8; 4096];
        // SAFETY: the memory is as long as it is said to be.
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

/// Which of the files can be read, or have ended; waits for the first one.
pub fn readable<const N: usize>(files: [RawFd; N], longest: Duration) -> [bool; N] {
    let mut polled = files.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // A part of a millisecond is waited for as well: else nothing would be.
    let pause = i32::try_from(longest.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    // SAFETY: the array is as long as it is said to be.
    unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, pause) };
    polled.map(|polled| polled.revents != 0)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use crate::process::run;

    use super::*;

    /// Of what is worked before an iteration begins nothing is counted to it.
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
