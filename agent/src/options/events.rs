//! Kinds of events: how they are asked for, and by which bit of the gate they are switched.

use lucce_hooks::Kinds;

use crate::memory::gate;

use super::values::{BadOption, malformed, size, unknown};

/// What is counted beside the bytes of `io`: how long it took.
pub const IO_TIME: &str = "io-time";
/// What submissions of tasks are counted as, with `thread`.
pub const TASK: &str = "task";

/// What is recorded. Events of the program's own, `CallContext.event`, always are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Events {
    /// Allocations by Java code.
    pub alloc: bool,
    /// Samples of them in its place: bytes from one to the next, on average.
    pub sampled: Option<u32>,
    /// Follow sampled objects: bytes from one to the next, on average.
    pub leak: Option<u32>,
    /// Those that the VM makes for itself.
    pub objects: bool,
    pub lock: bool,
    pub exception: bool,
    /// Entries of methods.
    pub call: bool,
    /// Starts of threads.
    pub thread: bool,
    /// Reading and writing files and sockets.
    pub io: bool,
}

/// What can be asked for and switched.
struct Choice {
    name: &'static str,
    gate: u64,
    is_wanted: fn(&Events) -> bool,
}

const KINDS: [Choice; 9] = [
    kind("alloc", gate::ALLOC, |events| events.alloc),
    kind("alloc=all", gate::OBJECTS, |events| events.objects),
    kind("alloc=SIZE", gate::SAMPLES, |events| {
        events.sampled.is_some()
    }),
    kind("call", gate::CALL, |events| events.call),
    kind("exception", gate::EXCEPTION, |events| events.exception),
    kind("io", gate::IO, |events| events.io),
    kind("leak", gate::LEAK, |events| events.leak.is_some()),
    kind("lock", gate::LOCK, |events| events.lock),
    kind("thread", gate::THREAD, |events| events.thread),
];
const NONE: &str = "none";
/// What the VM itself takes.
const LEAK_INTERVAL: u32 = 512 << 10;

const fn kind(name: &'static str, gate: u64, is_wanted: fn(&Events) -> bool) -> Choice {
    Choice {
        name,
        gate,
        is_wanted,
    }
}

/// Whether events of this name are asked for, or none.
pub fn is_event(name: &str) -> bool {
    names().any(|known| known == name)
}

fn names() -> impl Iterator<Item = &'static str> {
    let kinds = KINDS.iter().map(|kind| kind.name);
    kinds.filter(|name| !name.contains('=')).chain([NONE])
}

/// What those bits of the gate are called.
pub fn names_of(gates: u64) -> Vec<&'static str> {
    let kinds = KINDS.iter().filter(|kind| gates & kind.gate != 0);
    kinds.map(|kind| kind.name).collect()
}

impl Events {
    /// Those of them that code tells by its hooks.
    pub fn in_code(&self) -> Kinds {
        Kinds {
            alloc: self.alloc,
            call: self.call,
            io: self.io,
            lock: self.lock,
            thread: self.thread,
        }
    }

    /// As bits of the gate.
    pub fn gates(&self) -> u64 {
        let wanted = KINDS.iter().filter(|kind| (kind.is_wanted)(self));
        wanted.fold(gate::OWN, |gates, kind| gates | kind.gate)
    }

    /// Whether there are any, and the VM tells of each, whatever code they come from. Parking, tasks of executors,
    /// single allocations, entries and I/O are seen by hooks only.
    pub fn are_told_by_the_vm(&self) -> bool {
        let by_hooks = Events {
            sampled: None,
            leak: None,
            exception: false,
            ..self.clone()
        };
        by_hooks == Events::default() && by_hooks != *self
    }

    /// `none`, or kinds joined by `+`, each perhaps with `=` and how.
    pub fn parse(value: &str) -> Result<Events, BadOption> {
        let mut events = Events::default();
        if value == NONE {
            return Ok(events);
        }
        for event in value.split('+') {
            let (kind, how) = event.split_once('=').unwrap_or((event, ""));
            events.add(kind, how, value)?;
        }
        events.check(value)?;
        Ok(events)
    }

    fn check(&self, all: &str) -> Result<(), BadOption> {
        let wanted = match (self.sampled, self.leak) {
            (Some(_), _) if self.alloc => "allocations counted or sampled, not both",
            // The VM has one.
            (Some(sampled), Some(leak)) if sampled != leak => "the same size for alloc and leak",
            _ => return Ok(()),
        };
        Err(malformed("events", all, wanted))
    }

    fn add(&mut self, kind: &str, how: &str, all: &str) -> Result<(), BadOption> {
        match (kind, how) {
            ("alloc", "") => self.alloc = true,
            ("leak", "") => self.leak = Some(LEAK_INTERVAL),
            ("leak", size) => self.leak = Some(interval("leak", size)?),
            ("alloc", "all") => (self.alloc, self.objects) = (true, true),
            ("alloc", size) => self.sampled = Some(sampled(size)?),
            ("lock", "") => self.lock = true,
            ("exception", "") => self.exception = true,
            ("call", "") => self.call = true,
            ("thread", "") => self.thread = true,
            ("io", "") => self.io = true,
            (NONE, _) => {
                return Err(malformed("events", all, "none alone, or a list without it"));
            }
            (known, _) if is_event(known) => {
                return Err(malformed("events", all, &format!("{known} alone")));
            }
            _ => {
                let names: Vec<&str> = names().collect();
                return Err(unknown("event", kind, &names, ""));
            }
        }
        Ok(())
    }
}

/// Above 0.
fn sampled(value: &str) -> Result<u32, BadOption> {
    let wanted = "alloc, alloc=all, or a size such as alloc=512k";
    let bytes = interval("alloc", value).ok().filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| malformed("events=alloc", value, wanted))
}

/// The VM counts in 31 bits.
fn interval(kind: &str, value: &str) -> Result<u32, BadOption> {
    let bytes = size(kind, value)?;
    let known = u32::try_from(bytes).ok();
    known
        .filter(|bytes| i32::try_from(*bytes).is_ok())
        .ok_or_else(|| malformed(kind, value, "a size below 2g, such as 512k"))
}
