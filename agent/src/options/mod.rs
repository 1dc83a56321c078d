//! The agent's options: `key=value,key=value`; `+` joins lists inside a value.
//!
//! Read this file first, then `values`, `events` and `output_path`; `burst`, `push`, and `program_filter` with `jar` belong to
//! single options.

pub mod jar;
pub mod program_filter;

pub mod burst;
mod events;
mod output_path;
mod push;
mod values;

use std::path::PathBuf;

use lucce_callgraph::EncodingPolicy;
use lucce_filter::{ClassFilter, PatternList};
use lucce_instrument::EventKindSet;
use lucce_instrument::kinds::{ALLOC, CALL, KindConflict};
use lucce_tracelog::escape::EscapedLine;

use values::{
    malformed_value, parse_choice, parse_file, parse_number, parse_patterns, unknown_name,
};

pub use burst::BurstOptions;
pub use events::{EventSelection, is_agent_event, kind_names};
pub use push::PushOptions;
pub use values::{OptionError, parse_size};

/// The agent's options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentOptions {
    /// The log's path, with placeholders expanded.
    pub out: PathBuf,
    pub events: EventSelection,
    /// Count in bursts only.
    pub burst: Option<BurstOptions>,
    /// Compare every n-th event with the VM's own stack trace; 0: none.
    pub verify: u32,
    /// Largest size of the log in bytes.
    pub limit: u64,
    /// How contexts are numbered.
    pub encoding: EncodingPolicy,
    /// Numbers are planned in advance, from an earlier run's log.
    pub has_static_graph: bool,
    pub graph: Option<PathBuf>,
    /// The file beside the log, and its maximum size in bytes.
    pub record: RecordMode,
    pub record_limit: u64,
    /// How contexts are kept if classes have hooks.
    pub tracking: TrackingMode,
    /// The agent decides whether classes have hooks (`tracking=auto`).
    auto: bool,
    /// Whether `lucce ctl` finds the JVM.
    pub ctl: ControlMode,
    pub log: LogLevel,
    /// The collector that gets the log while the program runs.
    pub push: PushOptions,
    /// Warnings from the time before the log existed.
    pub warnings: Vec<String>,
    /// If recording is impossible, the JVM does not start.
    pub strict: bool,
    /// Known facts about the JDK are compared with the present JDK.
    pub facts: bool,
    /// The known JDK for the comparison; `None`: none.
    pub compared_jdk: Option<u32>,
    pub class_cache: ClassCacheOption,
    /// The programs whose JVMs are recorded; empty: all.
    pub only: PatternList,
    /// Which classes get hooks and appear in traces: the classes of `instrument` that the filter admits.
    pub instrument: InstrumentScope,
    pub filter: ClassFilter,
}

/// The classes that get hooks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InstrumentScope {
    All,
    /// Classes that neither the boot loader nor the platform loader defined.
    App,
}

/// Where the JDK's classes with hooks are kept for other runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClassCacheOption {
    Off,
    /// In the user's cache folder.
    User,
    In(PathBuf),
}

/// A file beside the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordMode {
    None,
    /// Calls, for `lucce lab replay`.
    Calls,
    /// Each event with its time.
    Stream,
}

/// How a thread keeps its current context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrackingMode {
    /// Frames publish their call sites; an event computes its context.
    Lazy,
    /// For comparison: a calling context tree for each thread, with a look-up at every entry.
    Cct,
    /// For comparison: the scheme of the Lucce paper, with a number and a version for every frame.
    Paper,
}

/// Control while the program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlMode {
    Off,
    /// Kinds for which classes have hooks can be switched.
    On,
    /// Classes have hooks for all kinds that can be switched.
    All,
}

/// Least severe level of messages on standard error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
    None,
}

const KEYS: [&str; 24] = [
    "burst",
    "cache",
    "ctl",
    "encoding",
    "events",
    "exclude",
    "facts",
    "graph",
    "include",
    "instrument",
    "limit",
    "log",
    "only",
    "out",
    "push",
    "push-every",
    "push-service",
    "push-token",
    "push-version",
    "record",
    "record-limit",
    "strict",
    "tracking",
    "verify",
];
const STATIC: &str = "static";
const ENCODINGS: [(&str, EncodingPolicy); 4] = [
    ("lucce", EncodingPolicy::LUCCE),
    ("adaptive", EncodingPolicy::ADAPTIVE),
    (STATIC, EncodingPolicy::STATIC),
    ("cct", EncodingPolicy::CCT),
];
const RECORDS: [(&str, RecordMode); 3] = [
    ("calls", RecordMode::Calls),
    ("none", RecordMode::None),
    ("stream", RecordMode::Stream),
];
const AUTO: &str = "auto";
const TRACKING: [(&str, TrackingMode); 4] = [
    (AUTO, TrackingMode::Lazy),
    ("lazy", TrackingMode::Lazy),
    ("cct", TrackingMode::Cct),
    ("paper", TrackingMode::Paper),
];
const SWITCH: [(&str, bool); 2] = [("off", false), ("on", true)];
const CTL: [(&str, ControlMode); 3] = [
    ("off", ControlMode::Off),
    ("on", ControlMode::On),
    ("all", ControlMode::All),
];
const INSTRUMENT: [(&str, InstrumentScope); 2] =
    [("all", InstrumentScope::All), ("app", InstrumentScope::App)];
const LEVELS: [(&str, LogLevel); 5] = [
    ("debug", LogLevel::Debug),
    ("info", LogLevel::Info),
    ("warn", LogLevel::Warn),
    ("error", LogLevel::Error),
    ("none", LogLevel::None),
];

impl AgentOptions {
    /// Parses the options.
    ///
    /// # Errors
    /// An unknown key or a malformed value: one line that names it and the nearest known one.
    pub fn parse(text: &str) -> Result<AgentOptions, OptionError> {
        let mut options = AgentOptions {
            out: PathBuf::from("lucce-%p-%t.lucce"),
            events: EventSelection::from_kinds(&[&ALLOC]),
            burst: None,
            verify: 0,
            limit: u64::MAX,
            encoding: EncodingPolicy::LUCCE,
            has_static_graph: false,
            graph: None,
            record: RecordMode::None,
            record_limit: 64 << 20,
            tracking: TrackingMode::Lazy,
            auto: true,
            ctl: ControlMode::On,
            log: LogLevel::Info,
            push: PushOptions::default(),
            warnings: Vec::new(),
            strict: false,
            facts: false,
            compared_jdk: None,
            class_cache: ClassCacheOption::User,
            only: PatternList::default(),
            instrument: InstrumentScope::All,
            filter: ClassFilter::default(),
        };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(unknown_name(
                    "option",
                    part,
                    &KEYS,
                    " (options are key=value)",
                ));
            };
            options.set_option(key, value)?;
        }
        options.check_graph()?;
        options.check_events()?;
        options.check_classes()?;
        options.push.check_target()?;
        options.out = output_path::expand_placeholders(&options.out.to_string_lossy())?.into();
        Ok(options)
    }

    /// Whether classes get hooks for allocations.
    pub fn has_alloc_hooks(&self) -> bool {
        self.hooked_events().has_kind(&ALLOC)
    }

    fn check_graph(&self) -> Result<(), OptionError> {
        match (self.has_static_graph, &self.graph) {
            (true, None) => Err(OptionError(
                "encoding=static needs graph=FILE, the log of an earlier run".into(),
            )),
            (false, Some(_)) => Err(OptionError("graph=FILE needs encoding=static".into())),
            _ => Ok(()),
        }
    }

    fn check_events(&self) -> Result<(), OptionError> {
        let is_lazy = self.tracking == TrackingMode::Lazy;
        let is_stream = self.record == RecordMode::Stream;
        let with = [
            (self.burst.is_some(), KindConflict::Burst),
            (!is_lazy, KindConflict::OtherTracking),
            (is_stream, KindConflict::Stream),
            (self.has_static_graph, KindConflict::Static),
        ];
        let mut with = with.into_iter().filter(|(is, _)| *is);
        let refused = with.find_map(|(_, what)| self.events.find_refusal(what));
        let needs_lazy =
            (self.records_calls() && !is_lazy).then_some("record=calls needs tracking=lazy");
        let needs_numbers = (is_stream && self.tracking == TrackingMode::Paper)
            .then_some("record=stream needs tracking=lazy or tracking=cct");
        match refused.or(needs_lazy).or(needs_numbers) {
            Some(why) => Err(OptionError(why.into())),
            None => Ok(()),
        }
    }

    fn check_classes(&self) -> Result<(), OptionError> {
        let need_all = [
            (self.tracking == TrackingMode::Paper, "tracking=paper"),
            (self.records_calls(), "record=calls"),
        ];
        match find_active(need_all) {
            Some((_, what)) if self.is_partial() => Err(OptionError(format!(
                "{what} needs all classes: no instrument=app, include or exclude"
            ))),
            _ => Ok(()),
        }
    }

    /// The kinds for which classes get hooks and the VM's events are enabled: kinds counted now or possibly later.
    pub fn hooked_events(&self) -> EventSelection {
        let all = self.ctl == ControlMode::All;
        let later = EventKindSet::select(|kind| all && kind.can_come_later);
        // A call recording needs every entry.
        let recorded = match self.records_calls() {
            true => EventKindSet::default().with_kind(&CALL),
            false => EventKindSet::default(),
        };
        self.events.with_kinds(later).with_kinds(recorded)
    }

    /// Whether no class has hooks: all selected events are rare, and the VM itself reports them.
    pub fn is_hookless(&self) -> bool {
        let needs_hooks = self.ctl == ControlMode::All
            || self.record != RecordMode::None
            || self.burst.is_some()
            || self.has_static_graph;
        self.auto && !needs_hooks && self.events.are_all_from_vm()
    }

    /// Whether only the program's own code can ask for a context: no event of bytecode is counted or recorded.
    pub fn is_idle(&self) -> bool {
        let mut kinds = self.hooked_events().kinds().iter();
        !kinds.any(|kind| kind.is_everywhere) && !self.records_calls()
    }

    /// Prints a message on standard error, if its level is high enough.
    pub fn print_message(&self, level: LogLevel, text: &str) {
        if level >= self.log {
            eprintln!("lucce: {}", EscapedLine(text));
        }
    }

    /// Prints a warning, and keeps it for the log.
    pub fn add_warning(&mut self, text: String) {
        self.print_message(LogLevel::Warn, &text);
        self.warnings.push(text);
    }

    pub fn records_calls(&self) -> bool {
        self.record == RecordMode::Calls
    }

    /// Whether some classes have no hooks.
    pub fn is_partial(&self) -> bool {
        self.instrument == InstrumentScope::App || !self.filter.is_open()
    }

    fn set_option(&mut self, key: &str, value: &str) -> Result<(), OptionError> {
        match key {
            "out" => self.out = parse_file(key, value)?,
            "events" => self.events = EventSelection::parse(value)?,
            "burst" => self.burst = Some(BurstOptions::parse(value)?),
            "verify" => self.verify = parse_number(key, value)?,
            "limit" => self.limit = parse_size(key, value)?,
            "encoding" => {
                (self.encoding, self.has_static_graph) =
                    (parse_choice(key, value, &ENCODINGS)?, value == STATIC);
            }
            "graph" => self.graph = Some(parse_file(key, value)?),
            "record" => self.record = parse_choice(key, value, &RECORDS)?,
            "record-limit" => self.record_limit = parse_size(key, value)?,
            "tracking" => {
                (self.tracking, self.auto) = (parse_choice(key, value, &TRACKING)?, value == AUTO);
            }
            "cache" => self.class_cache = parse_class_cache(key, value)?,
            "ctl" => self.ctl = parse_choice(key, value, &CTL)?,
            "log" => self.log = parse_choice("log level", value, &LEVELS)?,
            "push" | "push-every" | "push-service" | "push-token" | "push-version" => {
                self.push.set_option(key, value)?;
            }
            "strict" => self.strict = parse_choice(key, value, &SWITCH)?,
            "facts" => self.facts = parse_choice(key, value, &SWITCH)?,
            "only" => self.only.extend(parse_patterns(key, value)?),
            "instrument" => self.instrument = parse_choice(key, value, &INSTRUMENT)?,
            "include" => self.filter.include.extend(parse_patterns(key, value)?),
            "exclude" => self.filter.exclude.extend(parse_patterns(key, value)?),
            _ => return Err(unknown_name("option", key, &KEYS, "")),
        }
        Ok(())
    }
}

/// A folder or a keyword. A folder named like a keyword is written as `./off`.
fn parse_class_cache(key: &str, value: &str) -> Result<ClassCacheOption, OptionError> {
    Ok(match value {
        "off" => ClassCacheOption::Off,
        "on" => ClassCacheOption::User,
        "" => return Err(malformed_value(key, value, "on, off or a folder")),
        folder => ClassCacheOption::In(folder.into()),
    })
}

/// The first active condition.
fn find_active<const N: usize>(of: [(bool, &'static str); N]) -> Option<(bool, &'static str)> {
    of.into_iter().find(|(is, _)| *is)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lucce_instrument::kinds::{EXCEPTION, IO, LOCK, OBJECTS, THREAD};

    #[test]
    fn no_options_record_allocations() {
        let options = AgentOptions::parse("").unwrap();
        assert_eq!(options.events, EventSelection::from_kinds(&[&ALLOC]));
        let none = AgentOptions::parse("events=none").unwrap().events;
        assert_eq!(none, EventSelection::default());
        let name = options.out.to_string_lossy();
        let begin = format!("lucce-{}-20", std::process::id());
        assert!(
            name.starts_with(&begin) && name.ends_with(".lucce"),
            "{name}"
        );
    }

    #[test]
    fn leaks_are_looked_for_when_asked() {
        let leak = |text| {
            let events = AgentOptions::parse(text).map(|options| options.events);
            events.map(|events| (events.has_kind(&ALLOC), events.leak_interval()))
        };
        assert_eq!(leak("events=leak"), Ok((false, Some(512 << 10))));
        assert_eq!(leak("events=alloc+leak=64k"), Ok((true, Some(64 << 10))));
        assert_eq!(leak("events=leak=0"), Ok((false, Some(0))));
        assert_eq!(leak("events=alloc"), Ok((true, None)));
    }

    #[test]
    fn allocations_are_counted_or_sampled() {
        let events = AgentOptions::parse("events=alloc=512k+lock")
            .unwrap()
            .events;
        assert!(!events.has_kind(&ALLOC) && events.has_kind(&LOCK));
        assert_eq!(events.alloc_interval(), Some(512 << 10));
        let events = AgentOptions::parse("events=alloc=64k+leak=64k")
            .unwrap()
            .events;
        assert_eq!(
            (events.alloc_interval(), events.leak_interval()),
            (Some(64 << 10), Some(64 << 10))
        );
        for (bad, why) in [
            ("alloc=64k+leak", "the same size for alloc and leak"),
            ("alloc+alloc=64k", "not both"),
            ("alloc=0", "a size such as alloc=512k"),
            ("alloc=2g", "a size such as alloc=512k"),
        ] {
            let error = AgentOptions::parse(&format!("events={bad}")).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn kinds_of_events_are_joined() {
        let events = AgentOptions::parse("events=lock+exception").unwrap().events;
        assert_eq!(events, EventSelection::from_kinds(&[&LOCK, &EXCEPTION]));
        let events = AgentOptions::parse("events=alloc=all").unwrap().events;
        assert_eq!(events, EventSelection::from_kinds(&[&ALLOC, &OBJECTS]));
    }

    #[test]
    fn an_unknown_option_names_the_nearest() {
        let error = AgentOptions::parse("evnts=alloc").unwrap_err().to_string();
        assert_eq!(error, "unknown option 'evnts', did you mean 'events'?");
        let error = AgentOptions::parse("events=aloc").unwrap_err().to_string();
        assert_eq!(error, "unknown event 'aloc', did you mean 'alloc'?");
        let error = AgentOptions::parse("verify").unwrap_err().to_string();
        assert!(error.contains("'verify'") && error.contains("key=value"));
    }

    #[test]
    fn events_are_a_set() {
        let of = |text| AgentOptions::parse(text).unwrap().events;
        let all = EventSelection::from_kinds(&[&ALLOC, &CALL, &THREAD]);
        assert_eq!(of("events=thread+call+alloc+call"), all);
        assert_eq!(of("events=call"), EventSelection::from_kinds(&[&CALL]));
        let refused = |text: &str| AgentOptions::parse(text).unwrap_err().to_string();
        for tracking in ["cct", "paper"] {
            let error = refused(&format!("events=call,tracking={tracking}"));
            assert_eq!(error, "events=call needs tracking=lazy");
        }
        let error = refused("events=call,encoding=static,graph=a.lucce");
        assert_eq!(error, "events=call does not go with encoding=static");
        let error = AgentOptions::parse("events=alloc+threads").unwrap_err();
        assert!(error.to_string().ends_with("did you mean 'thread'?"));
    }

    #[test]
    fn a_log_is_pushed_where_it_is_told_to() {
        let of = |text: &str| AgentOptions::parse(text).map(|options| options.push);
        assert_eq!(of(""), Ok(PushOptions::default()));
        let push =
            of("push=http://h:9/x/,push-every=500ms,push-service=shop%%,push-version=1").unwrap();
        let to = push.to.unwrap();
        assert_eq!(
            (to.host.as_str(), to.port, to.path.as_str()),
            ("h", 9, "/x")
        );
        assert_eq!(push.every.as_millis(), 500);
        assert_eq!(
            (push.service.as_str(), push.version.as_str()),
            ("shop%", "1")
        );
        for (bad, why) in [
            ("push=h:9", "must begin with http://"),
            ("push=https://h", "no TLS"),
            ("push=http://h?x=1", "no query"),
            ("push=http://h,push-every=1", "such as 60s"),
            ("push=http://h,push-every=1ms", "such as 60s"),
            (
                "push=http://h,push-every=99999999999999999999s",
                "such as 60s",
            ),
            ("push-service=shop", "need push=URL"),
        ] {
            let error = of(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn malformed_values_are_refused() {
        for bad in [
            "verify=-1",
            "verify=x",
            "limit=5x",
            "out=",
            "out=a%q",
            "out=%{A",
            "out=%{LUCCE_NO_SUCH_VARIABLE}.lucce",
            "strict=maybe",
            "only=a/B",
            "events=none+alloc",
            "events=alloc=some",
            "events=lock=all",
            "events=",
            "events=leak=x",
            "events=leak=2g",
            "log=loud",
        ] {
            assert!(AgentOptions::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn encodings_by_name() {
        let of = |text| AgentOptions::parse(text).unwrap().encoding;
        assert_eq!(of(""), EncodingPolicy::LUCCE);
        assert_eq!(of("encoding=adaptive"), EncodingPolicy::ADAPTIVE);
        assert_eq!(of("encoding=cct"), EncodingPolicy::CCT);
        let error = AgentOptions::parse("encoding=cc").unwrap_err().to_string();
        assert_eq!(error, "unknown encoding 'cc', did you mean 'cct'?");
    }

    #[test]
    fn a_static_encoding_needs_a_graph() {
        let options = AgentOptions::parse("encoding=static,graph=a.lucce").unwrap();
        assert_eq!(options.encoding, EncodingPolicy::STATIC);
        assert_eq!(options.graph, Some(PathBuf::from("a.lucce")));
        for (bad, needs) in [
            ("encoding=static", "needs graph="),
            ("graph=a.lucce", "needs encoding=static"),
            ("encoding=cct,graph=a.lucce", "needs encoding=static"),
            ("encoding=static,graph=", "a file name"),
        ] {
            let error = AgentOptions::parse(bad).unwrap_err().to_string();
            assert!(error.contains(needs), "{error}");
        }
    }

    #[test]
    fn calls_are_recorded_when_asked() {
        let none = AgentOptions::parse("record=none").unwrap();
        assert_eq!(none.record, RecordMode::None);
        let options = AgentOptions::parse("record=calls,record-limit=2m").unwrap();
        let recorded = (options.record, options.record_limit);
        assert_eq!(recorded, (RecordMode::Calls, 2 << 20));
        let error = AgentOptions::parse("record=call").unwrap_err().to_string();
        assert_eq!(error, "unknown record 'call', did you mean 'calls'?");
    }

    #[test]
    fn a_stream_goes_with_everything_but_the_paper_s_scheme() {
        for with in ["tracking=cct", "instrument=app", "events=call", "verify=1"] {
            let options = AgentOptions::parse(&format!("record=stream,{with}")).unwrap();
            assert_eq!(options.record, RecordMode::Stream);
        }
        let error = AgentOptions::parse("record=stream,tracking=paper").unwrap_err();
        assert!(error.to_string().contains("needs tracking=lazy"));
        let error = AgentOptions::parse("record=stream,events=alloc=64k").unwrap_err();
        assert!(error.to_string().contains("only samples"));
    }

    #[test]
    fn tracking_is_lazy_unless_another_mode_is_asked_for() {
        assert_eq!(
            AgentOptions::parse("").unwrap().tracking,
            TrackingMode::Lazy
        );
        let options = AgentOptions::parse("tracking=cct,verify=1").unwrap();
        assert_eq!(options.tracking, TrackingMode::Cct);
        let options = AgentOptions::parse("tracking=paper").unwrap();
        assert_eq!(options.tracking, TrackingMode::Paper);
        let error = AgentOptions::parse("tracking=ccct")
            .unwrap_err()
            .to_string();
        assert_eq!(error, "unknown tracking 'ccct', did you mean 'cct'?");
        let error = AgentOptions::parse("record=calls,tracking=cct").unwrap_err();
        assert_eq!(error.to_string(), "record=calls needs tracking=lazy");
        assert!(
            AgentOptions::parse("tracking=lazy,record=calls")
                .unwrap()
                .records_calls()
        );
    }

    #[test]
    fn classes_have_no_hooks_where_the_vm_tells_of_all_that_is_asked_for() {
        let walks = |text: &str| AgentOptions::parse(text).unwrap().is_hookless();
        for text in [
            "events=leak",
            "events=alloc=512k",
            "events=exception",
            "events=alloc=64k+leak=64k+exception",
            "events=leak,verify=1,include=a.*,instrument=app",
        ] {
            assert!(
                walks(text) && walks(&format!("tracking=auto,{text}")),
                "{text}"
            );
            assert!(!walks(&format!("tracking=lazy,{text}")), "{text}");
        }
        for text in [
            "events=alloc",
            "events=alloc=all",
            "events=none",
            "events=leak+alloc",
            "events=leak+lock",
            "events=exception+thread",
            "events=leak+io",
            "events=leak+call",
            "events=leak,ctl=all",
            "events=leak,record=stream",
            "events=leak,record=calls",
            "events=exception,burst=1ms/10ms",
            "events=exception,encoding=static,graph=a.lucce",
        ] {
            assert!(
                !walks(text) && !walks(&format!("tracking=auto,{text}")),
                "{text}"
            );
        }
    }

    #[test]
    fn control_is_on_unless_it_is_switched_off() {
        let of = |text| AgentOptions::parse(text).unwrap();
        assert_eq!(of("").ctl, ControlMode::On);
        assert_eq!(of("ctl=off").ctl, ControlMode::Off);
        assert!(!of("events=none").has_alloc_hooks());
        assert!(of("events=none,ctl=all").has_alloc_hooks());
        let all = of("events=none,ctl=all").hooked_events();
        assert_eq!(
            all,
            EventSelection::from_kinds(&[&ALLOC, &EXCEPTION, &IO, &LOCK, &THREAD])
        );
        assert_eq!(of("events=io").hooked_events(), of("events=io").events);
        let error = AgentOptions::parse("ctl=of").unwrap_err().to_string();
        assert_eq!(error, "unknown ctl 'of', did you mean 'off'?");
    }

    #[test]
    fn classes_are_chosen_by_loader_and_by_name() {
        assert!(!AgentOptions::parse("instrument=all").unwrap().is_partial());
        let options = AgentOptions::parse("instrument=app,exclude=a.*,exclude=b.C").unwrap();
        assert_eq!(options.instrument, InstrumentScope::App);
        assert!(!options.filter.admits_class("a/B") && !options.filter.admits_class("b/C"));
        assert!(options.is_partial() && options.filter.admits_class("b/D"));
        assert!(AgentOptions::parse("include=a.*+b.C").unwrap().is_partial());
        for (bad, text) in [
            (
                "instrument=ap",
                "unknown instrument 'ap', did you mean 'app'?",
            ),
            (
                "include=a/*",
                "option include: pattern 'a/*': names of packages have dots, not slashes",
            ),
            (
                "record=calls,include=a.*",
                "record=calls needs all classes: no instrument=app, include or exclude",
            ),
        ] {
            assert_eq!(AgentOptions::parse(bad).unwrap_err().to_string(), text);
        }
        for bad in ["include=", "exclude=a.B+", "include=a.B.m()", "exclude=a."] {
            assert!(AgentOptions::parse(bad).is_err(), "{bad}");
        }
    }

    /// docs/reference/agent-options.md names every kind, and the kinds that `ctl=all` prepares.
    #[test]
    fn documents_have_each_kind() {
        let text = include_str!("../../../docs/reference/agent-options.md");
        let line = |start: &str| text.lines().find(|line| line.starts_with(start));
        let of_ctl = line("| `ctl=").unwrap();
        for kind in lucce_instrument::kinds::ALL {
            let name = format!("`{}`", kind.first_name());
            assert!(
                text.contains(&name),
                "docs/reference/agent-options.md: {name}"
            );
            if kind.can_come_later {
                assert!(
                    of_ctl.contains(&name),
                    "docs/reference/agent-options.md, ctl: {name}"
                );
            }
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(AgentOptions::parse("limit=2k").unwrap().limit, 2048);
    }
}
