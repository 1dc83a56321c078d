//! CPU time of a program's own threads: the cost of an agent that application threads pay.
//!
//! ```text
//! the process's clock                      all threads, with those that have ended, without child processes
//! /proc/PID/task/TID/{comm,schedstat}      each thread that serves the JVM: compilers, collector, agents' own
//! the difference                           the program's own threads
//! ```
//! Most serving threads live as long as the JVM, so observing them from time to time is enough. A program's own threads
//! may start and end unseen. Work of a serving thread after its last observation counts as the program's. That is at
//! most the work of the whole process since then, which is reported as well ([`Own::unattributed`]).
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

/// Prefixes of the names of threads that serve the JVM. The kernel keeps 15 characters of a name.
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
    // Threads of agents.
    "lucce-",
    "JFR ",
    "Async-profiler",
];

/// A new thread has its creator's name until it sets its own.
const NAMING: Duration = Duration::from_secs(2);

/// Milliseconds of CPU time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Own {
    /// CPU time of the program's own threads.
    pub cpu: f64,
    /// The part of it that may belong to other threads.
    pub unattributed: f64,
    /// CPU time of all threads of the process, without child processes.
    pub whole: f64,
}

/// A process whose threads are observed.
pub struct Threads {
    pid: u32,
    clock: Option<libc::clockid_t>,
    /// The threads that serve the JVM, by thread id.
    serving: HashMap<u32, Serving>,
    /// When each other thread was first seen, by thread id.
    others: HashMap<u32, Instant>,
    /// Nanoseconds of serving threads that have ended.
    ended: u64,
    /// Nanoseconds of the process at the last observation.
    process: u64,
}

struct Serving {
    usage: File,
    /// Nanoseconds at the last observation.
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

    /// Returns the milliseconds of the program's own threads so far. 0: they cannot be observed.
    pub fn look(&mut self) -> f64 {
        self.list();
        self.process = self.clock.and_then(now).unwrap_or(self.process);
        self.own()
    }

    /// Returns the times of a process that has ended and is not reaped. `None`: nothing could be observed.
    pub fn end(mut self) -> Option<Own> {
        let before = self.process;
        self.process = self.clock.and_then(now)?;
        Some(Own {
            cpu: self.own(),
            whole: milliseconds(self.process),
            unattributed: milliseconds(self.process.saturating_sub(before)),
        })
    }

    /// Whether the observed times are valid.
    pub fn are_seen(&self) -> bool {
        self.clock.is_some()
    }

    fn own(&self) -> f64 {
        let serving: u64 = self.serving.values().map(|serving| serving.last).sum();
        milliseconds(self.process.saturating_sub(serving + self.ended))
    }

    /// Updates both tables to the existing threads.
    fn list(&mut self) {
        // A process that has ended shows no threads.
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
            let is_serving = self.serving.contains_key(&id);
            let first = *self.others.entry(id).or_insert_with(Instant::now);
            if !is_serving && first.elapsed() < NAMING && self.serves(id) {
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
    /// Whether the thread is still alive. The file belongs to the thread, even if its id has been reused.
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

/// `schedstat` begins with the nanoseconds on a processor.
fn first_number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn clock(pid: u32) -> Option<libc::clockid_t> {
    let mut clock = 0;
    // SAFETY: the call writes one clock id to the pointer.
    let status = unsafe { libc::clock_getcpuclockid(pid.cast_signed(), &raw mut clock) };
    (status == 0).then_some(clock)
}

/// Returns the time of a clock in nanoseconds.
fn now(clock: libc::clockid_t) -> Option<u64> {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the call writes one time to the pointer.
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
mod threads_tests {
    use std::process::Command;
    use std::thread;

    use super::*;
    use crate::process::{Ended, run};

    const BURNS: &str = "LUCCE_BENCH_BURNS";

    /// Returns the CPU time of this thread so far.
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

    /// Returns the process that the tests below observe: this executable again, with only this test.
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
        // These threads start and end, and none of them is observed.
        for _ in 0..50 {
            burning("worker", 4).join().unwrap();
        }
        for thread in serving {
            thread.join().unwrap();
        }
        if which == "late" {
            // This thread continues until the process ends.
            drop(burning("C2 CompilerThread1", 60_000));
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn burnt(which: &str) -> Ended {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "threads::threads_tests::burner"]);
        command.env(BURNS, which);
        let ended = run(&mut command, folder.path(), Duration::from_secs(60)).unwrap();
        assert!(ended.status.success(), "{ended:?}");
        ended
    }

    /// Short-lived threads of the program use 200 ms, serving threads use 300 ms.
    #[test]
    fn own_threads_are_distinguished_from_serving_ones() {
        let ended = burnt("all");
        let own = ended.usage.own.unwrap();
        assert!(ended.usage.cpu >= 500.0, "{ended:?}");
        // The process also needs time to start and end.
        assert!(own.cpu >= 200.0 && own.cpu < 250.0, "{ended:?}");
        assert!(own.unattributed < 40.0, "{ended:?}");
    }

    #[test]
    fn the_error_of_serving_threads_is_within_its_bound() {
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
