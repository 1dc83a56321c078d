//! Kinds of events, as `events=` asks for them. What there is to ask for, each kind says itself (`hooks::kinds`).

use std::fmt;

use lucce_hooks::kinds::{ALL, ALLOC, Against, Every, How, Kind, LEAK, SAMPLES, gate};

pub use lucce_hooks::Kinds;

use super::values::{BadOption, malformed, size, unknown};

/// What is recorded. Events of the program's own, `CallContext.event`, always are.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Events {
    kinds: Kinds,
    /// Bytes from one sample to the next, on average, of the kinds that are sampled.
    alloc_every: Option<u32>,
    leak_every: Option<u32>,
}

const NONE: &str = "none";

/// Whether events of this name are asked for, or none.
pub fn is_event(name: &str) -> bool {
    names().any(|known| known == name)
}

fn names() -> impl Iterator<Item = &'static str> {
    let kinds = ALL.iter().map(|kind| kind.name);
    kinds.filter(|name| !name.contains('=')).chain([NONE])
}

/// What exported files call that which the agent counts.
const EXPORTED: [&str; 7] = [
    "inuse",
    "alloc_objects",
    "alloc_space",
    "inuse_objects",
    "inuse_space",
    "contentions",
    "delay",
];

/// Whether events of the agent's own are known under this name, in the log or where it is exported to.
pub fn is_ours(name: &str) -> bool {
    EXPORTED.contains(&name) || is_event(name) || ALL.iter().any(|kind| kind.also.contains(&name))
}

/// What those bits of the gate are called.
pub fn names_of(gates: u64) -> Vec<&'static str> {
    Kinds::of_gates(gates)
        .iter()
        .map(|kind| kind.name)
        .collect()
}

impl Events {
    /// Of kinds that are not sampled.
    pub fn of(kinds: &[&Kind]) -> Events {
        let all = kinds.iter();
        Events::default().and(all.fold(Kinds::default(), |all, kind| all.with(kind)))
    }

    pub fn has(&self, kind: &Kind) -> bool {
        self.kinds.has(kind)
    }

    pub fn kinds(&self) -> Kinds {
        self.kinds
    }

    /// With those as well.
    pub fn and(&self, more: Kinds) -> Events {
        Events {
            kinds: self.kinds.or(more),
            ..self.clone()
        }
    }

    /// Bytes from one sample of allocations to the next, on average, if they are sampled.
    pub fn sampled(&self) -> Option<u32> {
        self.alloc_every
    }

    /// Bytes from one object that is followed to the next, on average, if objects are followed.
    pub fn leak(&self) -> Option<u32> {
        self.leak_every
    }

    /// Those of them that code tells by its hooks.
    pub fn in_code(&self) -> Kinds {
        Kinds::all(|kind| self.has(kind) && kind.code.is_some())
    }

    /// As bits of the gate.
    pub fn gates(&self) -> u64 {
        gate::OWN | self.kinds.gates()
    }

    /// Whether there are any, and the VM tells of each, whatever code they come from.
    pub fn are_told_by_the_vm(&self) -> bool {
        self.kinds != Kinds::default() && self.kinds.iter().all(|kind| kind.needs_no_hooks)
    }

    /// Why one of them does not go with that.
    pub fn refuse(&self, what: Against) -> Option<&'static str> {
        self.kinds.iter().find_map(|kind| kind.refuses(what))
    }

    /// `none`, or kinds joined by `+`, each perhaps with `=` and how.
    pub fn parse(value: &str) -> Result<Events, BadOption> {
        let mut events = Events::default();
        if value == NONE {
            return Ok(events);
        }
        for event in value.split('+') {
            let (name, how) = event.split_once('=').unwrap_or((event, ""));
            events.add(name, how, value)?;
        }
        events.check(value)?;
        Ok(events)
    }

    fn check(&self, all: &str) -> Result<(), BadOption> {
        let wanted = match (self.sampled(), self.leak()) {
            (Some(_), _) if self.has(&ALLOC) => "allocations counted or sampled, not both",
            // The VM has one.
            (Some(sampled), Some(leak)) if sampled != leak => "the same size for alloc and leak",
            _ => return Ok(()),
        };
        Err(malformed("events", all, wanted))
    }

    fn add(&mut self, name: &str, how: &str, all: &str) -> Result<(), BadOption> {
        let mut named = ALL.iter().filter(|kind| kind.first_name() == name);
        if let Some(kind) = named.find(|kind| takes(kind, how)) {
            return self.add_kind(kind, how);
        }
        if name == NONE {
            return Err(malformed("events", all, "none alone, or a list without it"));
        }
        if is_event(name) {
            return Err(malformed("events", all, &format!("{name} alone")));
        }
        let names: Vec<&str> = names().collect();
        Err(unknown("event", name, &names, ""))
    }

    fn add_kind(&mut self, kind: &Kind, how: &str) -> Result<(), BadOption> {
        match kind.how {
            How::Alone => {}
            How::Word(_, along) => self.kinds = self.kinds.with(along),
            How::Every(every) => {
                let bytes = interval(kind.first_name(), how, every)?;
                if kind.gate == SAMPLES.gate {
                    self.alloc_every = Some(bytes);
                } else if kind.gate == LEAK.gate {
                    self.leak_every = Some(bytes);
                }
            }
        }
        self.kinds = self.kinds.with(kind);
        Ok(())
    }
}

/// By the names of the kinds.
impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.kinds.iter().map(|kind| kind.name);
        f.debug_list()
            .entries(names)
            .entries(self.alloc_every)
            .entries(self.leak_every)
            .finish()
    }
}

/// Whether this may stand behind the kind's name; a size may still be malformed.
fn takes(kind: &Kind, how: &str) -> bool {
    match kind.how {
        How::Alone => how.is_empty(),
        How::Word(word, _) => how == word,
        How::Every(every) => !how.is_empty() || every.default.is_some(),
    }
}

/// The VM counts in 31 bits.
fn interval(name: &str, value: &str, every: Every) -> Result<u32, BadOption> {
    if let ("", Some(bytes)) = (value, every.default) {
        return Ok(bytes);
    }
    let below = "a size below 2g, such as 512k";
    let bytes = size(name, value).and_then(|bytes| {
        let known = u32::try_from(bytes).ok();
        let known = known.filter(|bytes| i32::try_from(*bytes).is_ok());
        known
            .filter(|bytes| *bytes >= every.least)
            .ok_or_else(|| malformed(name, value, below))
    });
    bytes.map_err(|error| match every.expected {
        Some(expected) => malformed(&format!("events={name}"), value, expected),
        None => error,
    })
}
