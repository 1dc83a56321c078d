//! CPU time of a program's own threads: what the thread that works feels of an agent.
//!
//! ```text
//! the process's clock                      all threads, with those that have ended, without child processes
//! /proc/PID/task/TID/{comm,schedstat}      each thread that serves the JVM: compilers, collector, agents' own
//! the difference                           the program's own threads
//! ```
//! A serving thread lives as long as the JVM, mostly, so it is enough to look at it from time to time; a program's
//! own threads may come and go unseen. What a serving thread works after the last look at it counts as the
//! program's. That is at most what the whole process has worked since, and is told as well ([`Own::unattributed`]).
#![allow(
    unsafe_code,
    reason = "another process's clock: the standard library has none"
)]

use std::collections::HashMap;
use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How the names of threads that serve the JVM begin: the kernel keeps 15 characters of a name.
const SERVING: [&str; 31] = [
    // The compilers.
    "C1 CompilerThre",
    "C2 CompilerThre",
    "JVMCI",
    "Sweeper thread",
    // The collectors.
    "GC Thread#",
    "G1 Main Marker",
    "G1 Conc#",
    "G1 Refine#",
    "G1 Service",
    "G1 Young RemSet",
    "Shenandoah",
    "StringDedup",
    "StrDedup",
    "ZDirector",
    "ZDriver",
    "ZStat",
    "ZUnmapper",
    "ZUncommitter",
    "ZWorker",
    "XDriver",
    "XWorker",
    "RuntimeWorker",
    // The JVM's own.
    "VM Thread",
    "VM Periodic Tas",
    "Service Thread",
    "Monitor Deflati",
    "Signal Dispatch",
    "Attach Listener",
    // Those of agents.
    "lucce-",
    "JFR ",
    "Async-profiler",
];

/// A thread is called as its creator until it calls itself something else.
const NAMING: Duration = Duration::from_secs(2);

/// Milliseconds of CPU time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Own {
    /// Of the program's own threads.
    pub cpu: f64,
    /// What of it may be other threads'.
    pub unattributed: f64,
    /// Of all threads of the process, without child processes.
    pub whole: f64,
}

/// A process whose threads are looked at.
pub struct Threads {
    pid: u32,
    clock: Option<libc::clockid_t>,
    /// By thread id: those that serve the JVM.
    serving: HashMap<u32, Serving>,
    /// When each of the others was first seen.
    others: HashMap<u32, Instant>,
    /// Nanoseconds of those that served and have ended.
    ended: u64,
    /// Nanoseconds of the process at the last look.
    process: u64,
}

struct Serving {
    usage: File,
    /// Nanoseconds at the last look.
    last: u64,
}

impl Threads {
    pub fn of(pid: u32) -> Threads {
        let mut threads = Threads {
            pid,
            clock: clock(pid).filter(|_| Path::new("/proc/self/schedstat").exists()),
            serving: HashMap::new(),
            others: HashMap::new(),
            ended: 0,
            process: 0,
        };
        threads.look();
        threads
    }

    /// Milliseconds of the program's own threads until now. 0: nothing can be seen of them.
    pub fn look(&mut self) -> f64 {
        self.list();
        self.process = self.clock.and_then(now).unwrap_or(self.process);
        self.own()
    }

    /// Of a process that has ended, and still has its number. `None`: nothing could be seen of it.
    pub fn end(mut self) -> Option<Own> {
        let before = self.process;
        self.process = self.clock.and_then(now)?;
        Some(Own {
            cpu: self.own(),
            whole: milliseconds(self.process),
            unattributed: milliseconds(self.process.saturating_sub(before)),
        })
    }

    /// Whether what is told of it is true.
    pub fn are_seen(&self) -> bool {
        self.clock.is_some()
    }

    fn own(&self) -> f64 {
        let serving: u64 = self.serving.values().map(|serving| serving.last).sum();
        milliseconds(self.process.saturating_sub(serving + self.ended))
    }

    /// Brings both tables to the threads that there are.
    fn list(&mut self) {
        // Of a process that has ended there is nothing to see.
        let Ok(entries) = fs::read_dir(format!("/proc/{}/task", self.pid)) else {
            return;
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let ids: Vec<u32> = names
            .filter_map(|name| name.to_str()?.parse().ok())
            .collect();
        let ended = &mut self.ended;
        self.serving.retain(|_, serving| {
            let lives = serving.look();
            if !lives {
                *ended += serving.last;
            }
            lives
        });
        self.others.retain(|id, _| ids.contains(id));
        for id in ids {
            let known = self.serving.contains_key(&id);
            let first = *self.others.entry(id).or_insert_with(Instant::now);
            if !known && first.elapsed() < NAMING && self.serves(id) {
                let file = File::open(format!("/proc/{}/task/{id}/schedstat", self.pid));
                if let Ok(usage) = file {
                    let mut serving = Serving { usage, last: 0 };
                    serving.look();
                    self.serving.insert(id, serving);
                }
            }
        }
    }

    fn serves(&self, id: u32) -> bool {
        let name = fs::read_to_string(format!("/proc/{}/task/{id}/comm", self.pid));
        name.is_ok_and(|name| SERVING.iter().any(|known| name.starts_with(known)))
    }
}

impl Serving {
    /// Whether the thread still lives. The file is the thread's, even if its number is another one's by now.
    fn look(&mut self) -> bool {
        let mut text = [0; 80];
        let Ok(length) = self.usage.read_at(&mut text, 0) else {
            return false;
        };
        if let Some(time) = text.get(..length).and_then(first_number) {
            self.last = time;
        }
        length > 0
    }
}

/// `schedstat` begins with nanoseconds on a processor.
fn first_number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn clock(pid: u32) -> Option<libc::clockid_t> {
    let mut clock = 0;
    // SAFETY: the call writes one clock id where it is told to.
    let found = unsafe { libc::clock_getcpuclockid(pid.cast_signed(), &raw mut clock) };
    (found == 0).then_some(clock)
}

/// Nanoseconds.
fn now(clock: libc::clockid_t) -> Option<u64> {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the call writes one time where it is told to.
    let read = unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) };
    // SAFETY: all bytes were zeroed, a valid value, before the call.
    let time = unsafe { time.assume_init() };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let rest = u64::try_from(time.tv_nsec).ok()?;
    (read == 0).then_some(seconds * 1_000_000_000 + rest)
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;

    use super::*;
    use crate::process::{Ended, run};

    const BURNS: &str = "LUCCE_BENCH_BURNS";

    /// CPU time of this thread so far.
    fn spent() -> Duration {
        Duration::from_nanos(now(libc::CLOCK_THREAD_CPUTIME_ID).unwrap())
    }

    fn burn(milliseconds: u64) {
        let end = spent() + Duration::from_millis(milliseconds);
        while spent() < end {
            std::hint::black_box(0);
        }
    }

    fn burning(name: &str, milliseconds: u64) -> thread::JoinHandle<()> {
        let thread = thread::Builder::new().name(name.to_owned());
        thread.spawn(move || burn(milliseconds)).unwrap()
    }

    /// The process that the tests below look at: this one again, with this test alone.
    #[test]
    fn burner() {
        let Ok(which) = std::env::var(BURNS) else {
            return;
        };
        let serving = [
            burning("C2 CompilerThread0", 150),
            burning("GC Thread#3", 100),
            burning("lucce-trim", 50),
        ];
        // These come and go, and none of them is looked at.
        for _ in 0..50 {
            burning("worker", 4).join().unwrap();
        }
        for thread in serving {
            thread.join().unwrap();
        }
        if which == "late" {
            // It goes on until the process ends.
            drop(burning("C2 CompilerThread1", 60_000));
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn burnt(which: &str) -> Ended {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "threads::tests::burner"]);
        command.env(BURNS, which);
        let ended = run(&mut command, folder.path(), Duration::from_secs(60)).unwrap();
        assert!(ended.status.success(), "{ended:?}");
        ended
    }

    /// 200 ms are burnt by short-lived threads of the program, 300 ms by threads that serve.
    #[test]
    fn own_threads_are_told_from_those_that_serve() {
        let ended = burnt("all");
        let own = ended.usage.own.unwrap();
        assert!(ended.usage.cpu >= 500.0, "{ended:?}");
        // The process starts and ends, too.
        assert!(own.cpu >= 200.0 && own.cpu < 250.0, "{ended:?}");
        assert!(own.unattributed < 40.0, "{ended:?}");
    }

    #[test]
    fn what_serves_to_the_end_is_wrong_by_no_more_than_is_told() {
        let ended = burnt("late");
        let own = ended.usage.own.unwrap();
        assert!(own.cpu >= 200.0, "{ended:?}");
        assert!(own.cpu - own.unattributed < 250.0, "{ended:?}");
        assert!(own.unattributed < 60.0, "{ended:?}");
    }

    #[test]
    fn names_are_as_the_kernel_keeps_them() {
        assert!(SERVING.iter().all(|name| name.len() <= 15));
    }
}
