//! `events=`: selecting kinds of events. Each kind defines its own name and arguments ([`crate::kinds`]).

use std::fmt;

use lucce_filter::{MethodPattern, MethodPatternList};

use crate::kinds::{
    ALL, ALLOC, EventKindInfo, EventKindSet, HEAP, IntervalArgument, KindArgument, KindConflict,
    KindDescriptor, LEAK, NAMED_CALL, NAMED_TIME, REQUEST, SAMPLES, SURVIVE, is_companion_kind,
};
use crate::names::unknown_name;
use crate::{OptionError, event_mask, units};

/// The selected kinds. The program's own events, `CallContext.event`, are always recorded.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct EventSelection {
    kinds: EventKindSet,
    /// Sampling intervals in bytes, for kinds that are sampled.
    alloc_interval: Option<u32>,
    heap_interval: Option<u32>,
    leak_interval: Option<u32>,
    methods: MethodSelection,
}

/// The methods of `events=call:METHODS` and `events=time:METHODS`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MethodSelection {
    pub counted: MethodPatternList,
    pub timed: MethodPatternList,
}

/// Methods that one word names, in `events=call:WORD`. A program need not have them.
pub struct MethodGroup {
    pub name: &'static str,
    /// The ends of the classes' names.
    classes: &'static [&'static str],
    methods: &'static [&'static str],
}

/// Methods of loggers that often are off.
pub static LOGGERS: MethodGroup = MethodGroup {
    name: "loggers",
    classes: &["Logger", "Log"],
    methods: &[
        "config", "debug", "fine", "finer", "finest", "info", "log", "trace", "verbose",
    ],
};

impl MethodGroup {
    #[must_use]
    pub fn contains_method(&self, class: &str, method: &str) -> bool {
        let mut ends = self.classes.iter();
        self.methods.contains(&method) && ends.any(|end| class.ends_with(end))
    }

    fn patterns(&self) -> impl Iterator<Item = MethodPattern> {
        let classes = self.classes.iter();
        let texts = classes.flat_map(|class| {
            let methods = self.methods.iter();
            methods.map(move |method| format!("*{class}.{method}"))
        });
        texts.filter_map(|text| Some(MethodPattern::parse(&text).ok()?.in_group(self.name)))
    }
}

/// What is recorded of a named method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NamedMethodUse {
    Counted,
    /// Its times are recorded too.
    Timed,
}

impl MethodSelection {
    /// Whether no method is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counted.is_empty() && self.timed.is_empty()
    }

    /// What is recorded of a method of the class, `a.b.C` or `a/b/C`; `None`: it is not named.
    #[must_use]
    pub fn find_use(&self, class: &str, method: &str) -> Option<NamedMethodUse> {
        if self.timed.matches_method(class, method) {
            return Some(NamedMethodUse::Timed);
        }
        let is_counted = self.counted.matches_method(class, method);
        is_counted.then_some(NamedMethodUse::Counted)
    }

    /// Whether a method of the class may be named.
    #[must_use]
    pub fn matches_class(&self, class: &str) -> bool {
        self.counted.matches_class(class) || self.timed.matches_class(class)
    }

    /// Iterates over all patterns.
    pub fn iter(&self) -> impl Iterator<Item = &MethodPattern> {
        self.counted.iter().chain(self.timed.iter())
    }
}

const NONE: &str = "none";
/// Characters between two kinds. Options are separated by commas, so only a command's own argument can have one here.
const SEPARATORS: [char; 2] = ['+', ','];

/// A combination of kinds that is refused.
pub(crate) struct KindCombination {
    /// In Markdown.
    pub combination: &'static str,
    pub reason: &'static str,
    /// What the message says is expected.
    expected: &'static str,
    applies: fn(&EventSelection) -> bool,
}

pub(crate) const REFUSED_COMBINATIONS: [KindCombination; 3] = [
    KindCombination {
        combination: "`alloc` with `alloc=SIZE`",
        reason: "allocations are either counted or sampled",
        expected: "allocations counted or sampled, not both",
        applies: |events| events.alloc_interval.is_some() && events.has_kind(&ALLOC),
    },
    KindCombination {
        combination: "`alloc=SIZE` or `heap=SIZE` with `leak=SIZE` of another size",
        reason: "the VM has one sampling interval",
        expected: "the same size for alloc, heap and leak",
        applies: |events| {
            let sampled = events.alloc_interval.or(events.heap_interval);
            let both = sampled.zip(events.leak_interval);
            both.is_some_and(|(sampled, leak)| sampled != leak)
        },
    },
    KindCombination {
        combination: "`heap` without `alloc`",
        reason: "`heap` is shown beside exact counts",
        expected: "alloc with heap, or alloc=SIZE for samples alone",
        applies: |events| events.heap_interval.is_some() && !events.has_kind(&ALLOC),
    },
];

/// Whether `events=` accepts this name, or it is `none`.
fn is_event_name(name: &str) -> bool {
    event_names().any(|event| event == name)
}

fn event_names() -> impl Iterator<Item = &'static str> {
    let kinds = ALL.iter().map(|kind| kind.name);
    kinds
        .filter(|name| !name.contains(['=', ':']))
        .chain([NONE])
}

/// Whether only the agent's own events have this name, in the log or in exported files. Programs may count `request`
/// themselves.
#[must_use]
pub fn is_agent_event(name: &str) -> bool {
    let is_kind = |kind: &KindDescriptor| {
        let exported = kind.pprof.is_some_and(|names| names.contains(&name));
        kind.is_kind(name) || exported
    };
    let is_own =
        is_event_name(name) || KindDescriptor::iter_all().any(is_kind) || is_companion_kind(name);
    is_own && name != REQUEST.name
}

/// The names of the kinds with these bits of the event mask.
#[must_use]
pub fn kind_names(mask_bits: u64) -> Vec<&'static str> {
    EventKindSet::from_mask_bits(mask_bits)
        .iter()
        .map(|kind| kind.name)
        .collect()
}

impl EventSelection {
    /// Selects kinds without sampling.
    #[must_use]
    pub fn from_kinds(kinds: &[&EventKindInfo]) -> EventSelection {
        let all = kinds.iter();
        EventSelection::default()
            .with_kinds(all.fold(EventKindSet::default(), |all, kind| all.with_kind(kind)))
    }

    #[must_use]
    pub fn has_kind(&self, kind: &EventKindInfo) -> bool {
        self.kinds.contains(kind)
    }

    #[must_use]
    pub fn kinds(&self) -> EventKindSet {
        self.kinds
    }

    /// Adds kinds.
    #[must_use]
    pub fn with_kinds(&self, more: EventKindSet) -> EventSelection {
        EventSelection {
            kinds: self.kinds.union(more),
            ..self.clone()
        }
    }

    /// Sampling interval of allocations in bytes, if they are sampled.
    #[must_use]
    pub fn alloc_interval(&self) -> Option<u32> {
        self.alloc_interval
    }

    /// Samples allocations, one per `interval` bytes, instead of counting each.
    #[must_use]
    pub(crate) fn with_sampled_allocations(&self, interval: u32) -> EventSelection {
        EventSelection {
            kinds: self.kinds.without_kind(&ALLOC).with_kind(&SAMPLES),
            alloc_interval: Some(interval),
            ..self.clone()
        }
    }

    /// Sampling interval in bytes of what reaches the heap, if it is sampled beside exact counts.
    #[must_use]
    pub fn heap_interval(&self) -> Option<u32> {
        self.heap_interval
    }

    /// Sampling interval of the VM in bytes, if a kind is sampled. All sampled kinds have the same.
    #[must_use]
    pub fn vm_interval(&self) -> Option<u32> {
        let sampled = self.alloc_interval.or(self.heap_interval);
        sampled.or(self.leak_interval)
    }

    /// Sampling interval of followed objects in bytes, if objects are followed.
    #[must_use]
    pub fn leak_interval(&self) -> Option<u32> {
        self.leak_interval
    }

    /// The methods whose calls or times are recorded.
    #[must_use]
    pub fn methods(&self) -> &MethodSelection {
        &self.methods
    }

    /// The selected kinds that need hooks in code.
    #[must_use]
    pub fn kinds_in_code(&self) -> EventKindSet {
        EventKindSet::select(|kind| self.has_kind(kind) && kind.has_hooks)
    }

    /// The kinds as bits of the event mask.
    #[must_use]
    pub fn event_mask(&self) -> u64 {
        event_mask::OWN | self.kinds.mask_bits()
    }

    /// Whether at least one kind is selected, and the VM reports all of them, from any code.
    #[must_use]
    pub fn are_all_from_vm(&self) -> bool {
        self.kinds != EventKindSet::default() && self.kinds.iter().all(|kind| kind.needs_no_hooks)
    }

    /// Why one of the kinds conflicts with `what`.
    #[must_use]
    pub fn find_refusal(&self, what: KindConflict) -> Option<&'static str> {
        self.kinds
            .iter()
            .find_map(|kind| kind.conflict_message(what))
    }

    /// Parses `none`, or kinds joined by `+` or commas, each with an optional `=` and argument.
    ///
    /// # Errors
    /// A kind is unknown, its argument is malformed, or kinds are combined that exclude each other.
    pub fn parse(value: &str) -> Result<EventSelection, OptionError> {
        let mut events = EventSelection::default();
        if value == NONE {
            return Ok(events);
        }
        // The kind whose patterns continue: no kind has a dot in its name.
        let mut named: Option<&EventKindInfo> = None;
        for event in value.split(SEPARATORS) {
            let before_value = event.split_once('=').map_or(event, |(name, _)| name);
            let pattern = match (event.split_once(':'), named) {
                (Some((name, pattern)), _) => {
                    named = find_method_kind(name);
                    named.map(|_| pattern)
                }
                (None, Some(_)) if before_value.contains('.') => Some(event),
                _ => None,
            };
            if let (Some(kind), Some(pattern)) = (named, pattern) {
                events.add_methods(kind, pattern)?;
                continue;
            }
            named = None;
            let (name, argument) = event.split_once('=').unwrap_or((event, ""));
            events.add_event(name, argument, value)?;
        }
        if events.has_kind(&SURVIVE) && events.heap_interval.is_none() {
            events.add_kind(&HEAP, "")?;
        }
        let refused = REFUSED_COMBINATIONS
            .iter()
            .find(|rule| (rule.applies)(&events));
        match refused {
            Some(rule) => Err(OptionError::malformed("events", value, rule.expected)),
            None => Ok(events),
        }
    }

    /// The value of `events=` that selects the same.
    #[must_use]
    pub fn to_text(&self) -> String {
        let implied = self.kinds.iter().filter_map(|kind| match kind.argument {
            KindArgument::Keyword(_, along) => Some(along.mask_bit),
            _ => None,
        });
        let implied = implied.fold(0, |all, bit| all | bit);
        let named = self
            .kinds
            .iter()
            .filter(|kind| kind.mask_bit & implied == 0);
        let texts: Vec<String> = named.map(|kind| self.kind_text(kind)).collect();
        match texts.is_empty() {
            true => NONE.to_owned(),
            false => texts.join("+"),
        }
    }

    fn kind_text(&self, kind: &EventKindInfo) -> String {
        let interval = match kind.mask_bit {
            bit if bit == SAMPLES.mask_bit => self.alloc_interval,
            bit if bit == HEAP.mask_bit => self.heap_interval,
            bit if bit == LEAK.mask_bit => self.leak_interval,
            _ => None,
        };
        match (interval, self.methods_of(kind)) {
            (Some(bytes), _) => {
                format!("{}={}", kind.first_name(), units::format_size(bytes.into()))
            }
            (None, Some(methods)) => format!("{}:{methods}", kind.first_name()),
            (None, None) => kind.name.to_owned(),
        }
    }

    fn methods_of(&self, kind: &EventKindInfo) -> Option<&MethodPatternList> {
        match kind.mask_bit {
            bit if bit == NAMED_CALL.mask_bit => Some(&self.methods.counted),
            bit if bit == NAMED_TIME.mask_bit => Some(&self.methods.timed),
            _ => None,
        }
    }

    fn add_methods(&mut self, kind: &EventKindInfo, pattern: &str) -> Result<(), OptionError> {
        let option = format!("events={}", kind.first_name());
        let patterns = match pattern == LOGGERS.name {
            true => LOGGERS.patterns().collect(),
            false => vec![
                MethodPattern::parse(pattern)
                    .map_err(|error| OptionError(format!("option {option}: {error}")))?,
            ],
        };
        self.kinds = self.kinds.with_kind(kind);
        let list = match kind.mask_bit == NAMED_TIME.mask_bit {
            true => &mut self.methods.timed,
            false => &mut self.methods.counted,
        };
        patterns.into_iter().for_each(|pattern| list.add(pattern));
        Ok(())
    }

    fn add_event(&mut self, name: &str, argument: &str, all: &str) -> Result<(), OptionError> {
        let mut named = ALL.iter().filter(|kind| kind.first_name() == name);
        if let Some(kind) = named.find(|kind| accepts_argument(kind, argument)) {
            return self.add_kind(kind, argument);
        }
        if name == NONE {
            let expected = "none alone, or a list without it";
            return Err(OptionError::malformed("events", all, expected));
        }
        if let Some(kind) = find_method_kind(name).filter(|_| !is_event_name(name)) {
            let expected = format!("{}, such as {name}:com.acme.Repo.find", kind.name);
            return Err(OptionError::malformed("events", all, &expected));
        }
        if is_event_name(name) {
            let expected = format!("{name} alone");
            return Err(OptionError::malformed("events", all, &expected));
        }
        let expected: Vec<&str> = event_names().collect();
        let expected = format!("expected {}", expected.join(", "));
        Err(unknown_name("event", name, event_names(), &expected))
    }

    fn add_kind(&mut self, kind: &EventKindInfo, argument: &str) -> Result<(), OptionError> {
        match kind.argument {
            KindArgument::Alone | KindArgument::Methods => {}
            KindArgument::Keyword(_, along) => self.kinds = self.kinds.with_kind(along),
            KindArgument::Interval(every) => {
                let bytes = parse_interval(kind.first_name(), argument, every)?;
                if kind.mask_bit == SAMPLES.mask_bit {
                    self.alloc_interval = Some(bytes);
                } else if kind.mask_bit == HEAP.mask_bit {
                    self.heap_interval = Some(bytes);
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
        write!(f, "EventSelection({})", self.to_text())
    }
}

/// Whether the kind accepts this argument. A size may still be malformed.
fn accepts_argument(kind: &EventKindInfo, argument: &str) -> bool {
    match kind.argument {
        KindArgument::Alone => argument.is_empty(),
        KindArgument::Keyword(word, _) => argument == word,
        KindArgument::Interval(every) => !argument.is_empty() || every.default.is_some(),
        // Its patterns stand behind a colon.
        KindArgument::Methods => false,
    }
}

/// The kind with this name whose methods are named.
fn find_method_kind(name: &str) -> Option<&'static EventKindInfo> {
    let mut kinds = [&NAMED_CALL, &NAMED_TIME].into_iter();
    kinds.find(|kind| kind.first_name() == name)
}

/// The VM counts in 31 bits.
fn parse_interval(name: &str, value: &str, every: IntervalArgument) -> Result<u32, OptionError> {
    if let ("", Some(bytes)) = (value, every.default) {
        return Ok(bytes);
    }
    let bytes = units::parse_size(value).ok();
    let bytes = bytes.and_then(|bytes| i32::try_from(bytes).ok()?.try_into().ok());
    let expected = every.expected.unwrap_or("a size below 2g, such as 512k");
    bytes
        .filter(|bytes: &u32| *bytes >= every.least)
        .ok_or_else(|| OptionError::malformed(&format!("events={name}"), value, expected))
}

#[cfg(test)]
mod selection_tests {
    use super::*;
    use crate::kinds::{CALL, EXCEPTION, LOCK, OBJECTS, THREAD};

    #[test]
    fn objects_are_followed_with_leak() {
        let leak = |text| {
            let events = EventSelection::parse(text);
            events.map(|events| (events.has_kind(&ALLOC), events.leak_interval()))
        };
        assert_eq!(leak("leak"), Ok((false, Some(512 << 10))));
        assert_eq!(leak("alloc+leak=64k"), Ok((true, Some(64 << 10))));
        assert_eq!(leak("leak=0"), Ok((false, Some(0))));
        assert_eq!(leak("alloc"), Ok((true, None)));
    }

    #[test]
    fn allocations_are_counted_or_sampled() {
        let events = EventSelection::parse("alloc=512k+lock").unwrap();
        assert!(!events.has_kind(&ALLOC) && events.has_kind(&LOCK));
        assert_eq!(events.alloc_interval(), Some(512 << 10));
        let events = EventSelection::parse("alloc=64k+leak=64k").unwrap();
        assert_eq!(
            (events.alloc_interval(), events.leak_interval()),
            (Some(64 << 10), Some(64 << 10))
        );
        for (bad, why) in [
            ("alloc=64k+leak", "the same size for alloc, heap and leak"),
            (
                "alloc+heap=64k+leak",
                "the same size for alloc, heap and leak",
            ),
            ("heap", "alloc with heap"),
            ("alloc=512k+heap", "alloc with heap"),
            ("alloc+heap=0", "a size below 2g"),
            ("alloc+alloc=64k", "not both"),
            ("alloc=0", "a size such as alloc=512k"),
            ("alloc=2g", "a size such as alloc=512k"),
        ] {
            let error = EventSelection::parse(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn kinds_are_a_set() {
        let of = |text| EventSelection::parse(text).unwrap();
        assert_eq!(
            of("lock+exception"),
            EventSelection::from_kinds(&[&LOCK, &EXCEPTION])
        );
        assert_eq!(
            of("alloc=all"),
            EventSelection::from_kinds(&[&ALLOC, &OBJECTS])
        );
        assert_eq!(
            of("thread+call+alloc+call"),
            EventSelection::from_kinds(&[&ALLOC, &CALL, &THREAD])
        );
        assert_eq!(of("alloc,lock"), of("lock+alloc"));
        assert_eq!(of("none"), EventSelection::default());
    }

    #[test]
    fn a_selection_is_written_as_it_is_parsed() {
        for text in [
            "none",
            "alloc",
            "alloc=all",
            "alloc=64k+leak=64k+lock",
            "alloc+heap=64k+leak=64k",
            "call+exception+io+leak=0+lock+thread",
            "leak=1000",
            "alloc+call:java.lang.System.gc+com.acme.Repo.*+lock+time:*.find*+A.<init>",
        ] {
            assert_eq!(EventSelection::parse(text).unwrap().to_text(), text);
        }
        let leak = EventSelection::parse("leak").unwrap();
        assert_eq!(leak.to_text(), "leak=512k");
        let heap = EventSelection::parse("alloc=all+heap").unwrap();
        assert_eq!(heap.to_text(), "alloc=all+heap=512k");
        assert_eq!(heap.vm_interval(), Some(512 << 10));
    }

    #[test]
    fn patterns_of_methods_go_on_to_the_next_kind() {
        let events = EventSelection::parse("time:a.B.c,call:D.*+a.E.f+alloc=64k+lock").unwrap();
        assert!(events.has_kind(&LOCK) && events.alloc_interval().is_some());
        assert!(events.has_kind(&NAMED_CALL) && !events.has_kind(&CALL));
        let find_use = |class, method| events.methods().find_use(class, method);
        assert_eq!(find_use("a/B", "c"), Some(NamedMethodUse::Timed));
        assert_eq!(find_use("a/E", "f"), Some(NamedMethodUse::Counted));
        assert_eq!(find_use("D$1", "x"), Some(NamedMethodUse::Counted));
        assert_eq!(find_use("a/E", "g"), None);
        for (bad, why) in [
            (
                "time",
                "expected time:METHODS, such as time:com.acme.Repo.find",
            ),
            ("call:", "CLASS.METHOD"),
            ("call:find", "CLASS.METHOD"),
            ("lock+a.B.c", "unknown event 'a.B.c'"),
            ("lock:a.B.c", "unknown event 'lock:a.B.c'"),
            ("call:a.B.c()", "option events=call: pattern 'a.B.c()'"),
        ] {
            let error = EventSelection::parse(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn unknown_kinds_are_refused_with_a_near_name_or_all_names() {
        for (bad, message) in [
            ("aloc", "unknown event 'aloc', did you mean 'alloc'?"),
            (
                "alloc+threads",
                "unknown event 'threads', did you mean 'thread'?",
            ),
            (
                "none+alloc",
                "option events=none+alloc is malformed: expected none alone, or a list without it",
            ),
            (
                "lock=all",
                "option events=lock=all is malformed: expected lock alone",
            ),
        ] {
            let error = EventSelection::parse(bad).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        let names: Vec<&str> = event_names().collect();
        let error = EventSelection::parse("gc").unwrap_err().to_string();
        assert_eq!(
            error,
            format!("unknown event 'gc': expected {}", names.join(", "))
        );
        assert!(
            ["alloc", "io", "none"]
                .iter()
                .all(|name| names.contains(name))
        );
        for bad in [
            "",
            "+",
            "alloc+",
            "alloc,,lock",
            "leak=x",
            "leak=2g",
            "alloc=some",
        ] {
            assert!(EventSelection::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_word_names_the_methods_of_loggers() {
        let events = EventSelection::parse("lock+call:loggers+java.lang.System.gc").unwrap();
        assert_eq!(events.to_text(), "call:loggers+java.lang.System.gc+lock");
        assert_eq!(EventSelection::parse(&events.to_text()).unwrap(), events);
        let counted = |class, method| events.methods().find_use(class, method);
        let loggers = [
            ("java.util.logging.Logger", "fine"),
            ("ch/qos/logback/classic/Logger", "debug"),
            ("org.apache.logging.log4j.spi.AbstractLogger", "trace"),
            ("org.apache.commons.logging.impl.NoOpLog", "info"),
        ];
        for (class, method) in loggers {
            assert_eq!(
                counted(class, method),
                Some(NamedMethodUse::Counted),
                "{class}"
            );
            assert!(LOGGERS.contains_method(class, method), "{class}");
        }
        for (class, method) in [
            ("java.util.logging.Logger", "isLoggable"),
            ("a.Catalog", "debug"),
        ] {
            assert_eq!(counted(class, method), None, "{class}");
            assert!(!LOGGERS.contains_method(class, method), "{class}");
        }
        // The program need not have them.
        let own = events
            .methods()
            .iter()
            .filter(|pattern| !pattern.is_in_group());
        assert_eq!(
            own.map(ToString::to_string).collect::<Vec<_>>(),
            ["java.lang.System.gc"]
        );
        let times = EventSelection::parse("time:loggers").unwrap();
        assert_eq!(times.to_text(), "time:loggers");
    }
}
