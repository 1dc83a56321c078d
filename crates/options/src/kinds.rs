//! Kinds of events: one entry for each, as `events=` accepts it.
//!
//! A kind defines its name, its bit in the event mask, its conflicts with options, and its documentation. [`ALL`] is the
//! list. The hooks of a kind are in the crate `lucce-instrument`, in the file with the kind's name.

use crate::event_mask;

/// A kind of events.
pub struct EventKindInfo {
    /// The name in `events=`, with the word behind `=`.
    pub name: &'static str,
    pub argument: KindArgument,
    /// What it records, in Markdown.
    pub summary: &'static str,
    /// Its bit of [`event_mask`].
    pub mask_bit: u64,
    /// Names of further kinds in the log that are counted with it.
    pub also: &'static [&'static str],
    /// Classes get hooks for it.
    pub has_hooks: bool,
    /// The VM reports all of its events, whatever code causes them: no class needs hooks.
    pub needs_no_hooks: bool,
    /// With `ctl=all`, classes get its hooks and the VM reports its events, so that it can be enabled later.
    pub can_come_later: bool,
    /// It may occur in any method, not only in calls that the program's own code makes. VM entries must then know where
    /// they are.
    pub is_everywhere: bool,
    /// Options that conflict with it, each with the message for the user.
    pub conflicts: &'static [(KindConflict, &'static str)],
}

/// Defaults of a kind. `is_everywhere` is true, the value that is always safe.
const PLAIN: EventKindInfo = EventKindInfo {
    name: "",
    argument: KindArgument::Alone,
    summary: "",
    mask_bit: 0,
    also: &[],
    has_hooks: false,
    needs_no_hooks: false,
    can_come_later: false,
    is_everywhere: true,
    conflicts: &[],
};

/// The argument of a kind in `events=NAME=…`.
#[derive(Clone, Copy)]
pub enum KindArgument {
    Alone,
    /// This keyword; it also enables another kind.
    Keyword(&'static str, &'static EventKindInfo),
    /// Mean number of bytes between two samples.
    Interval(IntervalArgument),
}

/// The range of sizes that a kind accepts.
#[derive(Clone, Copy)]
pub struct IntervalArgument {
    /// The size if none is given; `None`: a size is required.
    pub default: Option<u32>,
    /// The least size, 1 or 0; 0 makes every allocation a sample.
    pub least: u32,
    /// The expected words of an error message, if other words than a size are accepted.
    pub expected: Option<&'static str>,
}

/// An option that a kind may conflict with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KindConflict {
    /// `lucce attach`.
    Attach,
    /// `burst=`.
    Burst,
    /// `tracking=cct` and `tracking=paper`.
    OtherTracking,
    /// `encoding=static`.
    Static,
    /// `record=stream`.
    Stream,
}

impl KindConflict {
    /// The conflicting options, in Markdown.
    pub(crate) fn option_text(self) -> &'static str {
        match self {
            KindConflict::Attach => "`lucce attach`",
            KindConflict::Burst => "`burst=`",
            KindConflict::OtherTracking => "`tracking=cct` or `tracking=paper`",
            KindConflict::Static => "`encoding=static`",
            KindConflict::Stream => "`record=stream`",
        }
    }

    /// Why the options conflict; may be empty.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            KindConflict::Attach => "a running JVM does not report it without hooks",
            KindConflict::Burst => "objects between two bursts are not followed",
            KindConflict::OtherTracking => "",
            KindConflict::Static => "an earlier run's log has no site for an entry",
            KindConflict::Stream => "a stream has single events, not samples",
        }
    }
}

/// All kinds, by name.
pub static ALL: [&EventKindInfo; 10] = [
    &ALLOC, &OBJECTS, &SAMPLES, &CALL, &EXCEPTION, &IO, &LEAK, &LOCK, &REQUEST, &THREAD,
];

/// Allocations by Java code.
pub static ALLOC: EventKindInfo = EventKindInfo {
    name: "alloc",
    summary: "every allocation by Java code: `new`, `clone`, reflection, method handles, lambdas, concatenation, \
              `Unsafe`; also stack traces of exceptions, and exceptions that the VM throws itself, marked `(VM)`",
    mask_bit: event_mask::ALLOC,
    has_hooks: true,
    can_come_later: true,
    ..PLAIN
};

/// Allocations by Java code, and objects that the VM makes for itself and for native code. The VM reports the latter.
pub static OBJECTS: EventKindInfo = EventKindInfo {
    name: "alloc=all",
    argument: KindArgument::Keyword("all", &ALLOC),
    summary: "`alloc`, and objects that the VM makes for itself and for native code (JNI, results of its own methods), \
              marked as such",
    mask_bit: event_mask::OBJECTS,
    conflicts: &[(
        KindConflict::Attach,
        "events=alloc=all needs the agent from the start (-agentpath); an attached agent counts every allocation with \
         alloc=all",
    )],
    ..PLAIN
};

/// Allocations sampled by the VM.
pub static SAMPLES: EventKindInfo = EventKindInfo {
    name: "alloc=SIZE",
    argument: KindArgument::Interval(IntervalArgument {
        default: None,
        least: 1,
        expected: Some("alloc, alloc=all, or a size such as alloc=512k"),
    }),
    summary: "one sampled allocation per SIZE bytes, from any code, instead of every allocation; reports estimate \
              totals from the samples and say so",
    mask_bit: event_mask::SAMPLES,
    needs_no_hooks: true,
    is_everywhere: false,
    conflicts: &[
        (
            KindConflict::Attach,
            "events=alloc=SIZE needs the agent from the start (-agentpath); an attached agent samples with alloc=SIZE",
        ),
        (
            KindConflict::Stream,
            "record=stream has single events, and events=alloc=SIZE only samples",
        ),
    ],
    ..PLAIN
};

/// Entries of methods.
pub static CALL: EventKindInfo = EventKindInfo {
    name: "call",
    summary: "every method entry",
    mask_bit: event_mask::CALL,
    has_hooks: true,
    conflicts: &[
        (
            KindConflict::Attach,
            "events=call counts in hooks, which need the agent from the start (-agentpath)",
        ),
        (
            KindConflict::OtherTracking,
            "events=call needs tracking=lazy",
        ),
        // An earlier run's log has no site for an entry.
        (
            KindConflict::Static,
            "events=call does not go with encoding=static",
        ),
    ],
    ..PLAIN
};

/// Thrown exceptions, reported by the VM.
pub static EXCEPTION: EventKindInfo = EventKindInfo {
    name: "exception",
    summary: "every exception thrown, and whether it is caught",
    mask_bit: event_mask::EXCEPTION,
    needs_no_hooks: true,
    can_come_later: true,
    is_everywhere: false,
    conflicts: &[(
        KindConflict::Attach,
        "events=exception needs the agent from the start (-agentpath): HotSpot reports exceptions only if it was started \
         with them",
    )],
    ..PLAIN
};

/// The log's kind for the duration of I/O, beside `io` for its bytes.
pub const IO_TIME: &str = "io-time";

/// Reads and writes of files and sockets.
pub static IO: EventKindInfo = EventKindInfo {
    name: "io",
    summary: "reads and writes of files and sockets: `io` with bytes, `io-time` with time; the report of `io` shows both",
    mask_bit: event_mask::IO,
    also: &[IO_TIME],
    has_hooks: true,
    can_come_later: true,
    conflicts: &[(
        KindConflict::Attach,
        "events=io counts in hooks, which need the agent from the start (-agentpath)",
    )],
    ..PLAIN
};

/// The VM's own sampling interval in bytes: 512 KB.
const DEFAULT_INTERVAL: u32 = 512 << 10;

/// Objects sampled by the VM, followed while they live.
pub static LEAK: EventKindInfo = EventKindInfo {
    name: "leak",
    argument: KindArgument::Interval(IntervalArgument {
        default: Some(DEFAULT_INTERVAL),
        least: 0,
        expected: None,
    }),
    summary: "one followed object per SIZE bytes (`leak=SIZE`) [default: 512k], until it dies, for \
              [`lucce leaks`](../guide/leaks.md); `leak=0` follows every object",
    mask_bit: event_mask::LEAK,
    needs_no_hooks: true,
    is_everywhere: false,
    // Objects made between two bursts are not followed, so the live objects at the end would be incomplete.
    conflicts: &[(KindConflict::Burst, "burst= does not go with events=leak")],
    ..PLAIN
};

/// Waiting threads. The VM reports monitors; calls that park a thread have hooks.
pub static LOCK: EventKindInfo = EventKindInfo {
    name: "lock",
    summary: "contended `synchronized` (enter), `Object.wait` (wait) and `LockSupport` (park), with the time until the \
              thread continues",
    mask_bit: event_mask::LOCK,
    has_hooks: true,
    can_come_later: true,
    ..PLAIN
};

/// Requests, messages and jobs that the program receives. Each opens a tag `request=NAME`.
pub static REQUEST: EventKindInfo = EventKindInfo {
    name: "request",
    summary: "requests: HTTP (servlets, Spring, JAX-RS, `com.sun.net.httpserver`, Netty), gRPC, Kafka, JMS, scheduled jobs; \
              each opens a [tag](../guide/api-and-log-correlation.md#requests)",
    mask_bit: event_mask::REQUEST,
    has_hooks: true,
    can_come_later: true,
    is_everywhere: false,
    conflicts: &[
        (
            KindConflict::Attach,
            "events=request counts in hooks, which need the agent from the start (-agentpath)",
        ),
        (
            KindConflict::OtherTracking,
            "events=request needs tracking=lazy",
        ),
        (
            KindConflict::Static,
            "events=request does not go with encoding=static",
        ),
    ],
    ..PLAIN
};

/// The log's kind for submissions of tasks.
pub const TASK: &str = "task";

/// Starts of threads, and submissions of tasks to executors.
pub static THREAD: EventKindInfo = EventKindInfo {
    name: "thread",
    summary: "thread starts (`thread`) and tasks submitted to executors (`task`), for `--across-threads`",
    mask_bit: event_mask::THREAD,
    also: &[TASK],
    has_hooks: true,
    can_come_later: true,
    is_everywhere: false,
    conflicts: &[(
        KindConflict::Attach,
        "events=thread needs the agent from the start (-agentpath): a running JVM does not report who starts a thread or \
         submits a task",
    )],
    ..PLAIN
};

impl EventKindInfo {
    /// Returns the part of the name before `=`.
    #[must_use]
    pub fn first_name(&self) -> &'static str {
        self.name
            .split_once('=')
            .map_or(self.name, |(name, _)| name)
    }

    /// Returns the message for the user if the kind and the option are both requested.
    #[must_use]
    pub fn conflict_message(&self, what: KindConflict) -> Option<&'static str> {
        let conflict = self.conflicts.iter().find(|(known, _)| *known == what);
        conflict.map(|(_, why)| *why)
    }
}

/// A set of kinds, stored as bits of [`event_mask`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EventKindSet(u64);

impl EventKindSet {
    #[must_use]
    pub fn contains(self, kind: &EventKindInfo) -> bool {
        self.0 & kind.mask_bit != 0
    }

    #[must_use]
    pub fn with_kind(self, kind: &EventKindInfo) -> EventKindSet {
        EventKindSet(self.0 | kind.mask_bit)
    }

    /// Returns the kinds that satisfy `holds`.
    #[must_use]
    pub fn select(holds: impl Fn(&EventKindInfo) -> bool) -> EventKindSet {
        let kinds = ALL.iter().filter(|kind| holds(kind));
        kinds.fold(EventKindSet::default(), |kinds, kind| kinds.with_kind(kind))
    }

    /// Returns the kinds in either set.
    #[must_use]
    pub fn union(self, other: EventKindSet) -> EventKindSet {
        EventKindSet(self.0 | other.0)
    }

    /// Returns the kinds of these bits; other bits are ignored.
    #[must_use]
    pub fn from_mask_bits(bits: u64) -> EventKindSet {
        EventKindSet::select(|kind| bits & kind.mask_bit != 0)
    }

    /// Returns the set as bits of the event mask.
    #[must_use]
    pub fn mask_bits(self) -> u64 {
        self.0
    }

    pub fn iter(self) -> impl Iterator<Item = &'static EventKindInfo> {
        let all = ALL.into_iter();
        all.filter(move |kind| self.contains(kind))
    }
}

#[cfg(test)]
mod kinds_tests {
    use super::*;

    #[test]
    fn each_kind_has_a_bit_a_name_and_a_description() {
        // Bits that are no kind.
        let mut bits =
            event_mask::OWN | event_mask::FOLLOW | event_mask::ORIGINS | event_mask::TAGS;
        for kind in ALL {
            assert_eq!(kind.mask_bit.count_ones(), 1, "{}", kind.name);
            assert_eq!(bits & kind.mask_bit, 0, "{}", kind.name);
            bits |= kind.mask_bit;
            let mut named = ALL.iter().filter(|other| other.name == kind.name);
            assert!(named.next().is_some() && named.next().is_none());
            assert!(kind.summary.len() > 10, "{}", kind.name);
        }
        let all = event_mask::ALL.iter().fold(0, |bits, (_, bit)| bits | bit);
        assert_eq!(bits, all);
        assert_eq!(event_mask::ALL.len(), ALL.len() + 4);
    }

    #[test]
    fn sets_of_kinds() {
        let both = EventKindSet::default().with_kind(&IO).with_kind(&LOCK);
        assert!(both.contains(&IO) && both.contains(&LOCK) && !both.contains(&ALLOC));
        assert_eq!(both.iter().count(), 2);
        assert_eq!(
            EventKindSet::from_mask_bits(both.mask_bits() | event_mask::OWN),
            both
        );
    }
}
