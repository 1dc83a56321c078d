//! The agent's options: `key=value,key=value`; `+` joins lists inside a value.

pub mod jar;
pub mod only;

pub mod burst;
mod events;
mod out;
mod push;
mod values;

use std::path::PathBuf;

use lucce_callgraph::Policy;
use lucce_filter::{ClassFilter, Patterns};
use lucce_hooks::Kinds;
use lucce_hooks::kinds::{ALLOC, Against, CALL};
use lucce_tracelog::escape::Line;

use values::{choice, file, malformed, number, patterns, unknown};

pub use burst::Burst;
pub use events::{Events, is_ours, names_of};
pub use push::Push;
pub use values::{BadOption, size};

/// What the user asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Where the log goes, placeholders expanded.
    pub out: PathBuf,
    pub events: Events,
    /// Count in bursts only.
    pub burst: Option<Burst>,
    /// Compare every n-th event with the VM's own stack trace; 0: none.
    pub verify: u32,
    /// Largest size of the log in bytes.
    pub limit: u64,
    /// How contexts get their numbers.
    pub encoding: Policy,
    /// In advance, from an earlier run's log.
    pub planned: bool,
    pub graph: Option<PathBuf>,
    /// What is recorded beside the log, and that file's largest size.
    pub record: Record,
    pub record_limit: u64,
    /// How contexts are kept, where classes have hooks.
    pub tracking: Tracking,
    /// The agent decides whether they have (`tracking=auto`).
    auto: bool,
    /// Whether `lucce ctl` finds the JVM.
    pub ctl: Ctl,
    pub log: Level,
    /// Where the log goes while the program runs.
    pub push: Push,
    /// What was said before there was a log.
    pub warned: Vec<String>,
    /// What cannot be recorded keeps the JVM from starting.
    pub strict: bool,
    /// What is known of the JDK by name is compared with the one that is there.
    pub facts: bool,
    /// With which JDK that was tried; `None`: with none.
    pub like: Option<u32>,
    pub class_cache: ClassCache,
    /// Of which programs JVMs are recorded; empty: of all.
    pub only: Patterns,
    /// Which classes get hooks and are in traces: those of `instrument` that the filter admits.
    pub instrument: Instrument,
    pub filter: ClassFilter,
}

/// Whose classes get hooks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instrument {
    All,
    /// Those that neither the boot loader nor the platform loader defined.
    App,
}

/// Where classes of the JDK with their hooks are kept for other runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClassCache {
    Off,
    /// In the user's folder for such files.
    User,
    In(PathBuf),
}

/// A file beside the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record {
    None,
    /// Calls, for `lucce replay`.
    Calls,
    /// Each event with its time.
    Stream,
}

/// How a thread keeps its current context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tracking {
    /// Frames publish where they call from; an event works its context out.
    Lazy,
    /// For comparison: a calling context tree per thread, its node looked up at every entry.
    Cct,
    /// For comparison: the scheme of the Lucce paper, a number and a version for every frame.
    Paper,
}

/// Control while the program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ctl {
    Off,
    /// What the classes have hooks for can be switched.
    On,
    /// Classes have hooks for everything that can be switched.
    All,
}

/// What is said on standard error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
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
const ENCODINGS: [(&str, Policy); 4] = [
    ("lucce", Policy::LUCCE),
    ("adaptive", Policy::ADAPTIVE),
    (STATIC, Policy::STATIC),
    ("cct", Policy::CCT),
];
const RECORDS: [(&str, Record); 3] = [
    ("calls", Record::Calls),
    ("none", Record::None),
    ("stream", Record::Stream),
];
const AUTO: &str = "auto";
const TRACKING: [(&str, Tracking); 4] = [
    (AUTO, Tracking::Lazy),
    ("lazy", Tracking::Lazy),
    ("cct", Tracking::Cct),
    ("paper", Tracking::Paper),
];
const SWITCH: [(&str, bool); 2] = [("off", false), ("on", true)];
const CTL: [(&str, Ctl); 3] = [("off", Ctl::Off), ("on", Ctl::On), ("all", Ctl::All)];
const INSTRUMENT: [(&str, Instrument); 2] = [("all", Instrument::All), ("app", Instrument::App)];
const LEVELS: [(&str, Level); 5] = [
    ("debug", Level::Debug),
    ("info", Level::Info),
    ("warn", Level::Warn),
    ("error", Level::Error),
    ("none", Level::None),
];

impl Options {
    /// # Errors
    /// An unknown key or a malformed value: one line that names it and the nearest known one.
    pub fn parse(text: &str) -> Result<Options, BadOption> {
        let mut options = Options {
            out: PathBuf::from("lucce-%p-%t.lucce"),
            events: Events::of(&[&ALLOC]),
            burst: None,
            verify: 0,
            limit: u64::MAX,
            encoding: Policy::LUCCE,
            planned: false,
            graph: None,
            record: Record::None,
            record_limit: 64 << 20,
            tracking: Tracking::Lazy,
            auto: true,
            ctl: Ctl::On,
            log: Level::Info,
            push: Push::default(),
            warned: Vec::new(),
            strict: false,
            facts: false,
            like: None,
            class_cache: ClassCache::User,
            only: Patterns::default(),
            instrument: Instrument::All,
            filter: ClassFilter::default(),
        };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(unknown("option", part, &KEYS, " (options are key=value)"));
            };
            options.set(key, value)?;
        }
        options.check_graph()?;
        options.check_events()?;
        options.check_classes()?;
        options.push.check()?;
        options.out = out::expand(&options.out.to_string_lossy())?.into();
        Ok(options)
    }

    /// Whether classes get hooks for allocations.
    pub fn alloc_hooks(&self) -> bool {
        self.hooks().has(&ALLOC)
    }

    fn check_graph(&self) -> Result<(), BadOption> {
        match (self.planned, &self.graph) {
            (true, None) => Err(BadOption(
                "encoding=static needs graph=FILE, the log of an earlier run".into(),
            )),
            (false, Some(_)) => Err(BadOption("graph=FILE needs encoding=static".into())),
            _ => Ok(()),
        }
    }

    fn check_events(&self) -> Result<(), BadOption> {
        let is_lazy = self.tracking == Tracking::Lazy;
        let is_stream = self.record == Record::Stream;
        let with = [
            (self.burst.is_some(), Against::Burst),
            (!is_lazy, Against::OtherTracking),
            (is_stream, Against::Stream),
            (self.planned, Against::Static),
        ];
        let mut with = with.into_iter().filter(|(is, _)| *is);
        let refused = with.find_map(|(_, what)| self.events.refuse(what));
        let needs_lazy =
            (self.records_calls() && !is_lazy).then_some("record=calls needs tracking=lazy");
        let needs_numbers = (is_stream && self.tracking == Tracking::Paper)
            .then_some("record=stream needs tracking=lazy or tracking=cct");
        match refused.or(needs_lazy).or(needs_numbers) {
            Some(why) => Err(BadOption(why.into())),
            None => Ok(()),
        }
    }

    fn check_classes(&self) -> Result<(), BadOption> {
        let need_all = [
            (self.tracking == Tracking::Paper, "tracking=paper"),
            (self.records_calls(), "record=calls"),
        ];
        match first(need_all) {
            Some((_, what)) if self.is_partial() => Err(BadOption(format!(
                "{what} needs all classes: no instrument=app, include or exclude"
            ))),
            _ => Ok(()),
        }
    }

    /// What classes get hooks for, and what the VM is asked to tell: what is counted now, or may be later.
    pub fn hooks(&self) -> Events {
        let all = self.ctl == Ctl::All;
        let later = Kinds::all(|kind| all && kind.can_come_later);
        // A recording is told of every entry.
        let recorded = match self.records_calls() {
            true => Kinds::default().with(&CALL),
            false => Kinds::default(),
        };
        self.events.and(later).and(recorded)
    }

    /// Whether no class has hooks: everything that is asked for is rare, and the VM itself tells of it.
    pub fn walks(&self) -> bool {
        let needs_hooks = self.ctl == Ctl::All
            || self.record != Record::None
            || self.burst.is_some()
            || self.planned;
        self.auto && !needs_hooks && self.events.are_told_by_the_vm()
    }

    /// Whether no code but the program's own can ask for a context: what bytecode does is neither counted
    /// nor recorded.
    pub fn is_idle(&self) -> bool {
        let mut kinds = self.hooks().kinds().iter();
        !kinds.any(|kind| kind.is_everywhere) && !self.records_calls()
    }

    pub fn say(&self, level: Level, text: &str) {
        if level >= self.log {
            eprintln!("lucce: {}", Line(text));
        }
    }

    /// Says something that the log is to have as well, as soon as there is one.
    pub fn warn(&mut self, text: String) {
        self.say(Level::Warn, &text);
        self.warned.push(text);
    }

    pub fn records_calls(&self) -> bool {
        self.record == Record::Calls
    }

    /// Whether there are classes without hooks.
    pub fn is_partial(&self) -> bool {
        self.instrument == Instrument::App || !self.filter.is_open()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), BadOption> {
        match key {
            "out" => self.out = file(key, value)?,
            "events" => self.events = Events::parse(value)?,
            "burst" => self.burst = Some(Burst::parse(value)?),
            "verify" => self.verify = number(key, value)?,
            "limit" => self.limit = size(key, value)?,
            "encoding" => {
                (self.encoding, self.planned) = (choice(key, value, &ENCODINGS)?, value == STATIC);
            }
            "graph" => self.graph = Some(file(key, value)?),
            "record" => self.record = choice(key, value, &RECORDS)?,
            "record-limit" => self.record_limit = size(key, value)?,
            "tracking" => {
                (self.tracking, self.auto) = (choice(key, value, &TRACKING)?, value == AUTO);
            }
            "cache" => self.class_cache = class_cache(key, value)?,
            "ctl" => self.ctl = choice(key, value, &CTL)?,
            "log" => self.log = choice("log level", value, &LEVELS)?,
            "push" | "push-every" | "push-service" | "push-token" | "push-version" => {
                self.push.set(key, value)?;
            }
            "strict" => self.strict = choice(key, value, &SWITCH)?,
            "facts" => self.facts = choice(key, value, &SWITCH)?,
            "only" => self.only.extend(patterns(key, value)?),
            "instrument" => self.instrument = choice(key, value, &INSTRUMENT)?,
            "include" => self.filter.include.extend(patterns(key, value)?),
            "exclude" => self.filter.exclude.extend(patterns(key, value)?),
            _ => return Err(unknown("option", key, &KEYS, "")),
        }
        Ok(())
    }
}

/// A folder, or a word: a folder of its name is written `./off`.
fn class_cache(key: &str, value: &str) -> Result<ClassCache, BadOption> {
    Ok(match value {
        "off" => ClassCache::Off,
        "on" => ClassCache::User,
        "" => return Err(malformed(key, value, "on, off or a folder")),
        folder => ClassCache::In(folder.into()),
    })
}

/// The first that is in force.
fn first<const N: usize>(of: [(bool, &'static str); N]) -> Option<(bool, &'static str)> {
    of.into_iter().find(|(is, _)| *is)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lucce_hooks::kinds::{EXCEPTION, IO, LOCK, OBJECTS, THREAD};

    #[test]
    fn no_options_record_allocations() {
        let options = Options::parse("").unwrap();
        assert_eq!(options.events, Events::of(&[&ALLOC]));
        let none = Options::parse("events=none").unwrap().events;
        assert_eq!(none, Events::default());
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
            let events = Options::parse(text).map(|options| options.events);
            events.map(|events| (events.has(&ALLOC), events.leak()))
        };
        assert_eq!(leak("events=leak"), Ok((false, Some(512 << 10))));
        assert_eq!(leak("events=alloc+leak=64k"), Ok((true, Some(64 << 10))));
        assert_eq!(leak("events=leak=0"), Ok((false, Some(0))));
        assert_eq!(leak("events=alloc"), Ok((true, None)));
    }

    #[test]
    fn allocations_are_counted_or_sampled() {
        let events = Options::parse("events=alloc=512k+lock").unwrap().events;
        assert!(!events.has(&ALLOC) && events.has(&LOCK));
        assert_eq!(events.sampled(), Some(512 << 10));
        let events = Options::parse("events=alloc=64k+leak=64k").unwrap().events;
        assert_eq!(
            (events.sampled(), events.leak()),
            (Some(64 << 10), Some(64 << 10))
        );
        for (bad, why) in [
            ("alloc=64k+leak", "the same size for alloc and leak"),
            ("alloc+alloc=64k", "not both"),
            ("alloc=0", "a size such as alloc=512k"),
            ("alloc=2g", "a size such as alloc=512k"),
        ] {
            let error = Options::parse(&format!("events={bad}")).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn kinds_of_events_are_joined() {
        let events = Options::parse("events=lock+exception").unwrap().events;
        assert_eq!(events, Events::of(&[&LOCK, &EXCEPTION]));
        let events = Options::parse("events=alloc=all").unwrap().events;
        assert_eq!(events, Events::of(&[&ALLOC, &OBJECTS]));
    }

    #[test]
    fn an_unknown_option_names_the_nearest() {
        let error = Options::parse("evnts=alloc").unwrap_err().to_string();
        assert_eq!(error, "unknown option 'evnts', did you mean 'events'?");
        let error = Options::parse("events=aloc").unwrap_err().to_string();
        assert_eq!(error, "unknown event 'aloc', did you mean 'alloc'?");
        let error = Options::parse("verify").unwrap_err().to_string();
        assert!(error.contains("'verify'") && error.contains("key=value"));
    }

    #[test]
    fn events_are_a_set() {
        let of = |text| Options::parse(text).unwrap().events;
        let all = Events::of(&[&ALLOC, &CALL, &THREAD]);
        assert_eq!(of("events=thread+call+alloc+call"), all);
        assert_eq!(of("events=call"), Events::of(&[&CALL]));
        let refused = |text: &str| Options::parse(text).unwrap_err().to_string();
        for tracking in ["cct", "paper"] {
            let error = refused(&format!("events=call,tracking={tracking}"));
            assert_eq!(error, "events=call needs tracking=lazy");
        }
        let error = refused("events=call,encoding=static,graph=a.lucce");
        assert_eq!(error, "events=call does not go with encoding=static");
        let error = Options::parse("events=alloc+threads").unwrap_err();
        assert!(error.to_string().ends_with("did you mean 'thread'?"));
    }

    #[test]
    fn a_log_is_pushed_where_it_is_told_to() {
        let of = |text: &str| Options::parse(text).map(|options| options.push);
        assert_eq!(of(""), Ok(Push::default()));
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
            assert!(Options::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn encodings_by_name() {
        let of = |text| Options::parse(text).unwrap().encoding;
        assert_eq!(of(""), Policy::LUCCE);
        assert_eq!(of("encoding=adaptive"), Policy::ADAPTIVE);
        assert_eq!(of("encoding=cct"), Policy::CCT);
        let error = Options::parse("encoding=cc").unwrap_err().to_string();
        assert_eq!(error, "unknown encoding 'cc', did you mean 'cct'?");
    }

    #[test]
    fn a_static_encoding_needs_a_graph() {
        let options = Options::parse("encoding=static,graph=a.lucce").unwrap();
        assert_eq!(options.encoding, Policy::STATIC);
        assert_eq!(options.graph, Some(PathBuf::from("a.lucce")));
        for (bad, needs) in [
            ("encoding=static", "needs graph="),
            ("graph=a.lucce", "needs encoding=static"),
            ("encoding=cct,graph=a.lucce", "needs encoding=static"),
            ("encoding=static,graph=", "a file name"),
        ] {
            let error = Options::parse(bad).unwrap_err().to_string();
            assert!(error.contains(needs), "{error}");
        }
    }

    #[test]
    fn calls_are_recorded_when_asked() {
        let none = Options::parse("record=none").unwrap();
        assert_eq!(none.record, Record::None);
        let options = Options::parse("record=calls,record-limit=2m").unwrap();
        let recorded = (options.record, options.record_limit);
        assert_eq!(recorded, (Record::Calls, 2 << 20));
        let error = Options::parse("record=call").unwrap_err().to_string();
        assert_eq!(error, "unknown record 'call', did you mean 'calls'?");
    }

    #[test]
    fn a_stream_goes_with_everything_but_the_paper_s_scheme() {
        for with in ["tracking=cct", "instrument=app", "events=call", "verify=1"] {
            let options = Options::parse(&format!("record=stream,{with}")).unwrap();
            assert_eq!(options.record, Record::Stream);
        }
        let error = Options::parse("record=stream,tracking=paper").unwrap_err();
        assert!(error.to_string().contains("needs tracking=lazy"));
        let error = Options::parse("record=stream,events=alloc=64k").unwrap_err();
        assert!(error.to_string().contains("only samples"));
    }

    #[test]
    fn tracking_is_lazy_unless_another_mode_is_asked_for() {
        assert_eq!(Options::parse("").unwrap().tracking, Tracking::Lazy);
        let options = Options::parse("tracking=cct,verify=1").unwrap();
        assert_eq!(options.tracking, Tracking::Cct);
        let options = Options::parse("tracking=paper").unwrap();
        assert_eq!(options.tracking, Tracking::Paper);
        let error = Options::parse("tracking=ccct").unwrap_err().to_string();
        assert_eq!(error, "unknown tracking 'ccct', did you mean 'cct'?");
        let error = Options::parse("record=calls,tracking=cct").unwrap_err();
        assert_eq!(error.to_string(), "record=calls needs tracking=lazy");
        assert!(
            Options::parse("tracking=lazy,record=calls")
                .unwrap()
                .records_calls()
        );
    }

    #[test]
    fn classes_have_no_hooks_where_the_vm_tells_of_all_that_is_asked_for() {
        let walks = |text: &str| Options::parse(text).unwrap().walks();
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
        let of = |text| Options::parse(text).unwrap();
        assert_eq!(of("").ctl, Ctl::On);
        assert_eq!(of("ctl=off").ctl, Ctl::Off);
        assert!(!of("events=none").alloc_hooks());
        assert!(of("events=none,ctl=all").alloc_hooks());
        let all = of("events=none,ctl=all").hooks();
        assert_eq!(all, Events::of(&[&ALLOC, &EXCEPTION, &IO, &LOCK, &THREAD]));
        assert_eq!(of("events=io").hooks(), of("events=io").events);
        let error = Options::parse("ctl=of").unwrap_err().to_string();
        assert_eq!(error, "unknown ctl 'of', did you mean 'off'?");
    }

    #[test]
    fn classes_are_chosen_by_loader_and_by_name() {
        assert!(!Options::parse("instrument=all").unwrap().is_partial());
        let options = Options::parse("instrument=app,exclude=a.*,exclude=b.C").unwrap();
        assert_eq!(options.instrument, Instrument::App);
        assert!(!options.filter.admits("a/B") && !options.filter.admits("b/C"));
        assert!(options.is_partial() && options.filter.admits("b/D"));
        assert!(Options::parse("include=a.*+b.C").unwrap().is_partial());
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
            assert_eq!(Options::parse(bad).unwrap_err().to_string(), text);
        }
        for bad in ["include=", "exclude=a.B+", "include=a.B.m()", "exclude=a."] {
            assert!(Options::parse(bad).is_err(), "{bad}");
        }
    }

    /// docs/options.md says what `ctl=all` prepares, and has each kind by name.
    #[test]
    fn documents_have_each_kind() {
        let text = include_str!("../../../docs/options.md");
        let line = |start: &str| text.lines().find(|line| line.starts_with(start));
        let of_ctl = line("| `ctl=").unwrap();
        for kind in lucce_hooks::kinds::ALL {
            let name = format!("`{}`", kind.first_name());
            assert!(text.contains(&name), "docs/options.md: {name}");
            if kind.can_come_later {
                assert!(of_ctl.contains(&name), "docs/options.md, ctl: {name}");
            }
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(Options::parse("limit=2k").unwrap().limit, 2048);
    }
}
