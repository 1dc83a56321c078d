//! `events=`: selecting kinds of events. Each kind defines its own name and arguments (`lucce_instrument::kinds`).

use std::fmt;

use lucce_instrument::kinds::{
    ALL, ALLOC, EventKindInfo, IntervalArgument, KindArgument, KindConflict, LEAK, SAMPLES,
    event_mask,
};

pub use lucce_instrument::EventKindSet;

use super::values::{OptionError, malformed_value, parse_size, unknown_name};

/// The selected kinds. The program's own events, `CallContext.event`, are always recorded.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct EventSelection {
    kinds: EventKindSet,
    /// Sampling intervals in bytes, for kinds that are sampled.
    alloc_interval: Option<u32>,
    leak_interval: Option<u32>,
}

const NONE: &str = "none";

/// Whether `events=` accepts this name, or it is `none`.
pub fn is_event_name(name: &str) -> bool {
    event_names().any(|known| known == name)
}

fn event_names() -> impl Iterator<Item = &'static str> {
    let kinds = ALL.iter().map(|kind| kind.name);
    kinds.filter(|name| !name.contains('=')).chain([NONE])
}

/// Names of the agent's events in exported files.
const EXPORTED: [&str; 7] = [
    "inuse",
    "alloc_objects",
    "alloc_space",
    "inuse_objects",
    "inuse_space",
    "contentions",
    "delay",
];

/// Whether the agent's own events have this name, in the log or in exported files.
pub fn is_agent_event(name: &str) -> bool {
    EXPORTED.contains(&name)
        || is_event_name(name)
        || ALL.iter().any(|kind| kind.also.contains(&name))
}

/// The names of the kinds with these bits of the event mask.
pub fn kind_names(gates: u64) -> Vec<&'static str> {
    EventKindSet::from_mask_bits(gates)
        .iter()
        .map(|kind| kind.name)
        .collect()
}

impl EventSelection {
    /// Selects kinds without sampling.
    pub fn from_kinds(kinds: &[&EventKindInfo]) -> EventSelection {
        let all = kinds.iter();
        EventSelection::default()
            .with_kinds(all.fold(EventKindSet::default(), |all, kind| all.with_kind(kind)))
    }

    pub fn has_kind(&self, kind: &EventKindInfo) -> bool {
        self.kinds.contains(kind)
    }

    pub fn kinds(&self) -> EventKindSet {
        self.kinds
    }

    /// Adds kinds.
    pub fn with_kinds(&self, more: EventKindSet) -> EventSelection {
        EventSelection {
            kinds: self.kinds.union(more),
            ..self.clone()
        }
    }

    /// Sampling interval of allocations in bytes, if they are sampled.
    pub fn alloc_interval(&self) -> Option<u32> {
        self.alloc_interval
    }

    /// Sampling interval of followed objects in bytes, if objects are followed.
    pub fn leak_interval(&self) -> Option<u32> {
        self.leak_interval
    }

    /// The selected kinds that need hooks in code.
    pub fn kinds_in_code(&self) -> EventKindSet {
        EventKindSet::select(|kind| self.has_kind(kind) && kind.hooks.is_some())
    }

    /// The kinds as bits of the event mask.
    pub fn event_mask(&self) -> u64 {
        event_mask::OWN | self.kinds.mask_bits()
    }

    /// Whether at least one kind is selected, and the VM reports all of them, from any code.
    pub fn are_all_from_vm(&self) -> bool {
        self.kinds != EventKindSet::default() && self.kinds.iter().all(|kind| kind.needs_no_hooks)
    }

    /// Why one of the kinds conflicts with `what`.
    pub fn find_refusal(&self, what: KindConflict) -> Option<&'static str> {
        self.kinds
            .iter()
            .find_map(|kind| kind.conflict_message(what))
    }

    /// Parses `none`, or kinds joined by `+`, each with an optional `=` and argument.
    pub fn parse(value: &str) -> Result<EventSelection, OptionError> {
        let mut events = EventSelection::default();
        if value == NONE {
            return Ok(events);
        }
        for event in value.split('+') {
            let (name, how) = event.split_once('=').unwrap_or((event, ""));
            events.add_event(name, how, value)?;
        }
        events.check_intervals(value)?;
        Ok(events)
    }

    fn check_intervals(&self, all: &str) -> Result<(), OptionError> {
        let wanted = match (self.alloc_interval(), self.leak_interval()) {
            (Some(_), _) if self.has_kind(&ALLOC) => "allocations counted or sampled, not both",
            // The VM has a single sampling interval.
            (Some(sampled), Some(leak)) if sampled != leak => "the same size for alloc and leak",
            _ => return Ok(()),
        };
        Err(malformed_value("events", all, wanted))
    }

    fn add_event(&mut self, name: &str, how: &str, all: &str) -> Result<(), OptionError> {
        let mut named = ALL.iter().filter(|kind| kind.first_name() == name);
        if let Some(kind) = named.find(|kind| accepts_argument(kind, how)) {
            return self.add_kind(kind, how);
        }
        if name == NONE {
            return Err(malformed_value(
                "events",
                all,
                "none alone, or a list without it",
            ));
        }
        if is_event_name(name) {
            return Err(malformed_value("events", all, &format!("{name} alone")));
        }
        let names: Vec<&str> = event_names().collect();
        Err(unknown_name("event", name, &names, ""))
    }

    fn add_kind(&mut self, kind: &EventKindInfo, how: &str) -> Result<(), OptionError> {
        match kind.argument {
            KindArgument::Alone => {}
            KindArgument::Keyword(_, along) => self.kinds = self.kinds.with_kind(along),
            KindArgument::Interval(every) => {
                let bytes = parse_interval(kind.first_name(), how, every)?;
                if kind.mask_bit == SAMPLES.mask_bit {
                    self.alloc_interval = Some(bytes);
                } else if kind.mask_bit == LEAK.mask_bit {
                    self.leak_interval = Some(bytes);
                }
            }
        }
        self.kinds = self.kinds.with_kind(kind);
        Ok(())
    }
}

/// Prints the names of the kinds.
impl fmt::Debug for EventSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.kinds.iter().map(|kind| kind.name);
        f.debug_list()
            .entries(names)
            .entries(self.alloc_interval)
            .entries(self.leak_interval)
            .finish()
    }
}

/// Whether the kind accepts this argument. A size may still be malformed.
fn accepts_argument(kind: &EventKindInfo, how: &str) -> bool {
    match kind.argument {
        KindArgument::Alone => how.is_empty(),
        KindArgument::Keyword(word, _) => how == word,
        KindArgument::Interval(every) => !how.is_empty() || every.default.is_some(),
    }
}

/// The VM counts in 31 bits.
fn parse_interval(name: &str, value: &str, every: IntervalArgument) -> Result<u32, OptionError> {
    if let ("", Some(bytes)) = (value, every.default) {
        return Ok(bytes);
    }
    let below = "a size below 2g, such as 512k";
    let bytes = parse_size(name, value).and_then(|bytes| {
        let known = u32::try_from(bytes).ok();
        let known = known.filter(|bytes| i32::try_from(*bytes).is_ok());
        known
            .filter(|bytes| *bytes >= every.least)
            .ok_or_else(|| malformed_value(name, value, below))
    });
    bytes.map_err(|error| match every.expected {
        Some(expected) => malformed_value(&format!("events={name}"), value, expected),
        None => error,
    })
}
