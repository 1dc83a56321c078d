//! All options of the agent.
//!
//! A new option is an entry here and a field of [`RecordingOptions`]. The parser, `lucce options` and
//! docs/reference/agent-options.md follow.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lucce_filter::PatternList;

use crate::entry::{
    OptionChoice, OptionConflict, OptionEntry, OptionGroup, OptionModes, OptionText, OptionValue,
};
use crate::kinds::{ALLOC, EventKindSet, REQUEST, SAMPLES};
use crate::placeholders::check_placeholders;
use crate::recording::{
    AllocationSampling, ClassCacheOption, ControlMode, EncodingChoice, InstrumentScope, LogLevel,
    PushOptions, RecordingOptions, TrackingMode,
};
use crate::{BurstOptions, CostBudget, EventSelection, OptionError, StartDelay, units};

/// The entry of an option.
#[must_use]
pub fn find_option(name: &str) -> Option<&'static OptionEntry> {
    OPTION_TABLE.iter().find(|entry| entry.name == name)
}

/// Defaults of an entry.
const PLAIN: OptionEntry = OptionEntry {
    name: "",
    value: OptionValue::Choice(&[]),
    default: "",
    summary: "",
    details: "",
    group: OptionGroup::Internal,
    modes: OptionModes::Start,
    is_repeatable: false,
    conflicts: &[],
};

/// All options, in the order of the documents.
pub static OPTION_TABLE: [OptionEntry; 34] = [
    OptionEntry {
        name: "events",
        value: OptionValue::Text {
            form: "EVENTS",
            set: |options, text| {
                options.events = EventSelection::parse(text.value)?;
                Ok(())
            },
            get: |options| Some(options.events.to_text()),
        },
        default: "alloc",
        summary: "Kinds of events to record, joined by `+`",
        details: "Some kinds take a value: `events=alloc=64k+leak=64k+lock`. Events that the program counts by \
                  `CallContext.event` are always recorded.",
        group: OptionGroup::Events,
        modes: OptionModes::Both,
        ..PLAIN
    },
    OptionEntry {
        name: "requests",
        value: OptionValue::Choice(&[
            OptionChoice {
                name: "off",
                summary: "",
                needs_lab: false,
                set: |options| options.requests = false,
            },
            OptionChoice {
                name: "auto",
                summary: "Adds `request` to `events=`.",
                needs_lab: false,
                set: |options| options.requests = true,
            },
        ]),
        default: "off",
        summary: "Count requests, and [tag their events](../guide/api-and-log-correlation.md#requests)",
        group: OptionGroup::Events,
        conflicts: &[OptionConflict {
            combination: "`events=request` with `calls=on`",
            reason: "",
            message: "events=request does not go with calls=on",
            applies: |options| options.calls && options.events.has_kind(&REQUEST),
        }],
        ..PLAIN
    },
    OptionEntry {
        name: "tags",
        value: OptionValue::Choice(&[
            OptionChoice {
                name: "tasks",
                summary: "Tasks of executors and virtual threads have the tags of their submitter.",
                needs_lab: false,
                set: |options| options.tags_follow_tasks = true,
            },
            OptionChoice {
                name: "thread",
                summary: "A tag belongs to its thread alone.",
                needs_lab: false,
                set: |options| options.tags_follow_tasks = false,
            },
        ]),
        default: "tasks",
        summary: "The reach of a tag",
        group: OptionGroup::Events,
        ..PLAIN
    },
    OptionEntry {
        name: "resource",
        value: OptionValue::Text {
            form: "CLASS.METHOD:CLOSE",
            set: |options, text| options.resources.add_rules(text.value),
            get: |options| (!options.resources.is_empty()).then(|| options.resources.to_string()),
        },
        summary: "Follow what this method returns until CLOSE is called; adds `open` to `events=`",
        details: "Constructors are `<init>`. CLOSE is a method's name or `CLASS.METHOD`, and closes its own object and its \
                  arguments. Several rules are joined by `+`.",
        group: OptionGroup::Events,
        modes: OptionModes::Both,
        is_repeatable: true,
        ..PLAIN
    },
    OptionEntry {
        name: "delay",
        value: OptionValue::Text {
            form: "TIME",
            set: |options, text| {
                options.delay = Some(StartDelay::parse(text.value)?);
                Ok(())
            },
            get: |options| options.delay.map(StartDelay::to_text),
        },
        summary: "Begin to count after this time, or with `ready` at `CallContext.ready()` or the first request",
        details: "Calls are tracked from the start, so context ids are exact. `lucce ctl JVM start` begins at once. Reports \
                  show when counting began.",
        group: OptionGroup::Events,
        ..PLAIN
    },
    OptionEntry {
        name: "burst",
        value: OptionValue::Text {
            form: "ON/PERIOD",
            set: |options, text| {
                options.burst = Some(BurstOptions::parse(text.value)?);
                Ok(())
            },
            get: |options| options.burst.as_ref().map(|burst| burst.text.clone()),
        },
        summary: "Count only for ON at the beginning of each PERIOD",
        details: "Example: `0.2ms/2ms`. Bursts and pauses are at least 50 µs, the period at most a day. Calls are tracked \
                  throughout, so context ids are exact. Counts are not scaled; reports show the counted share of time.",
        group: OptionGroup::Events,
        ..PLAIN
    },
    OptionEntry {
        name: "budget",
        value: OptionValue::Text {
            form: "PERCENT",
            set: |options, text| {
                options.budget = Some(CostBudget::parse(text.value)?);
                Ok(())
            },
            get: |options| options.budget.map(CostBudget::to_text),
        },
        summary: "CPU time that samples may cost, 1% to 25% of the program's",
        details: "Allocations are sampled without hooks, [as the load allows](../guide/allocations.md#a-budget); \
                  `alloc=SIZE` is the first interval, 1k to 4m.",
        group: OptionGroup::Events,
        modes: OptionModes::Both,
        conflicts: &[
            OptionConflict {
                combination: "`budget=` without `alloc`",
                reason: "",
                message: "budget= sets the rate of sampled allocations, and events= has no alloc",
                applies: |options| {
                    let events = &options.events;
                    let has_allocations =
                        events.has_kind(&ALLOC) || events.alloc_interval().is_some();
                    options.budget.is_some() && !has_allocations
                },
            },
            OptionConflict {
                combination: "`budget=` with `leak`, `heap` or `survive`",
                reason: "they need a fixed sampling interval",
                message: "budget= changes the sampling interval, and events=leak, heap and survive need a fixed one",
                applies: |options| {
                    let fixed = options
                        .events
                        .leak_interval()
                        .or(options.events.heap_interval());
                    options.budget.is_some() && fixed.is_some()
                },
            },
            OptionConflict {
                combination: "`budget=` with other kinds",
                reason: "their cost is not measured",
                message: "budget= measures the cost of sampled allocations alone: leave out the other kinds of events=, \
                          requests=auto and resource=, or budget=",
                applies: |options| {
                    let kinds = options.events.kinds().without_kind(&ALLOC);
                    let others = kinds.without_kind(&SAMPLES);
                    options.budget.is_some() && others != EventKindSet::default()
                },
            },
            OptionConflict {
                combination: "`budget=` with `alloc=SIZE` outside 1k to 4m",
                reason: "",
                message: "budget= keeps the interval from 1k to 4m, and alloc=SIZE, the first one, is outside",
                applies: |options| {
                    let range = CostBudget::LEAST_INTERVAL..=CostBudget::MOST_INTERVAL;
                    let first = options.first_interval().filter(|bytes| *bytes > 0);
                    options.budget.is_some() && first.is_some_and(|bytes| !range.contains(&bytes))
                },
            },
            OptionConflict {
                combination: "`budget=` with options that need hooks",
                reason: "",
                message: "budget= records without hooks: leave out burst=, ctl=all, tracking= and encoding=static, or \
                          budget=",
                applies: |options| {
                    let is_sampled = options.events.alloc_interval().is_some();
                    options.budget.is_some() && is_sampled && !options.is_hookless()
                },
            },
            OptionConflict {
                combination: "`budget=` with `alloc=all`",
                reason: "",
                message: "budget= samples allocations, and alloc=all counts each",
                applies: |options| {
                    options.budget.is_some()
                        && options.attached_alloc == Some(AllocationSampling::Every)
                },
            },
        ],
        ..PLAIN
    },
    OptionEntry {
        name: "out",
        value: OptionValue::Text {
            form: "FILE",
            set: |options, text| {
                options.out = parse_file(text)?;
                check_placeholders(text.key, text.value)
            },
            get: |options| Some(path_text(&options.out)),
        },
        default: "lucce-%p-%t.lucce",
        summary: "Write the log to this file",
        details: "`%p` is the process id, `%t` the start time, `%{NAME}` an environment variable, which must be set, `%%` a \
                  percent sign. An existing log stays: the new one gets a number (`run-2.lucce`), and a warning says so. A \
                  file that is no log is not overwritten ([files](files.md)).",
        group: OptionGroup::Files,
        modes: OptionModes::Both,
        ..PLAIN
    },
    OptionEntry {
        name: "limit",
        value: OptionValue::Text {
            form: "SIZE",
            set: |options, text| {
                options.limit = parse_size(text)?;
                Ok(())
            },
            get: |options| (options.limit != u64::MAX).then(|| units::format_size(options.limit)),
        },
        summary: "Maximum size of the log",
        details: "The program goes on; the log says how many events were dropped.",
        group: OptionGroup::Files,
        modes: OptionModes::Both,
        ..PLAIN
    },
    OptionEntry {
        name: "stream",
        value: OptionValue::Choice(&[
            OptionChoice {
                name: "off",
                summary: "",
                needs_lab: false,
                set: |options| options.stream = false,
            },
            OptionChoice {
                name: "on",
                summary: "",
                needs_lab: false,
                set: |options| options.stream = true,
            },
        ]),
        default: "off",
        summary: "Also write each event with its time to the log's name plus `.events`",
        details: "See [streams](../guide/locks-and-timeline.md).",
        group: OptionGroup::Files,
        conflicts: &[OptionConflict {
            combination: "`stream=on` with `tracking=paper`",
            reason: "",
            message: "stream=on needs tracking=lazy or tracking=cct",
            applies: |options| options.stream && options.tracking == TrackingMode::Paper,
        }],
        ..PLAIN
    },
    OptionEntry {
        name: "stream-limit",
        value: OptionValue::Text {
            form: "SIZE",
            set: |options, text| {
                options.stream_limit = parse_size(text)?;
                Ok(())
            },
            get: |options| Some(units::format_size(options.stream_limit)),
        },
        default: "64m",
        summary: "Maximum size of the stream",
        details: "A full file keeps the beginning of the run; the program goes on.",
        group: OptionGroup::Files,
        ..PLAIN
    },
    OptionEntry {
        name: "cache",
        value: OptionValue::Text {
            form: "on|off|FOLDER",
            set: set_class_cache,
            get: |options| {
                Some(match &options.class_cache {
                    ClassCacheOption::Off => "off".to_owned(),
                    ClassCacheOption::User => "on".to_owned(),
                    ClassCacheOption::In(folder) => path_text(folder),
                })
            },
        },
        default: "on",
        summary: "Keep instrumented JDK classes in a file for later runs",
        details: "`on`: in this user's [cache](files.md#the-cache). `off`: no cache. Any other value is the folder for such \
                  files (`./off` is a folder).",
        group: OptionGroup::Files,
        ..PLAIN
    },
    OptionEntry {
        name: "strict",
        value: OptionValue::Choice(&[
            OptionChoice {
                name: "off",
                summary: "",
                needs_lab: false,
                set: |options| options.strict = false,
            },
            OptionChoice {
                name: "on",
                summary: "If the agent cannot record (no log file, too few addresses), the JVM does not start.",
                needs_lab: false,
                set: |options| options.strict = true,
            },
        ]),
        default: "off",
        summary: "Do not start the JVM without recording",
        group: OptionGroup::Files,
        ..PLAIN
    },
    OptionEntry {
        name: "log",
        value: OptionValue::Choice(&[
            OptionChoice {
                name: "debug",
                summary: "",
                needs_lab: false,
                set: |options| options.log = LogLevel::Debug,
            },
            OptionChoice {
                name: "info",
                summary: "",
                needs_lab: false,
                set: |options| options.log = LogLevel::Info,
            },
            OptionChoice {
                name: "warn",
                summary: "",
                needs_lab: false,
                set: |options| options.log = LogLevel::Warn,
            },
            OptionChoice {
                name: "error",
                summary: "",
                needs_lab: false,
                set: |options| options.log = LogLevel::Error,
            },
            OptionChoice {
                name: "none",
                summary: "",
                needs_lab: false,
                set: |options| options.log = LogLevel::None,
            },
        ]),
        default: "info",
        summary: "Least severe messages on standard error",
        details: "For an attached agent the default is `warn`.",
        group: OptionGroup::Files,
        modes: OptionModes::Both,
        ..PLAIN
    },
    OptionEntry {
        name: "only",
        value: OptionValue::Text {
            form: "PATTERNS",
            set: |options, text| {
                options.only.extend(parse_patterns(text)?);
                Ok(())
            },
            get: |options| patterns_text(&options.only),
        },
        summary: "Record only JVMs that run one of these main classes or jars",
        details: "Example: `only=com.acme.Main+*.jar`. Useful with `JAVA_TOOL_OPTIONS`, which child JVMs inherit.",
        group: OptionGroup::Scope,
        is_repeatable: true,
        ..PLAIN
    },
    OptionEntry {
        name: "instrument",
        value: OptionValue::Choice(&[
            OptionChoice {
                name: "all",
                summary: "",
                needs_lab: false,
                set: |options| options.instrument = InstrumentScope::All,
            },
            OptionChoice {
                name: "app",
                summary: "Application classes only: classes of other loaders than the boot and platform loaders.",
                needs_lab: false,
                set: |options| options.instrument = InstrumentScope::App,
            },
        ]),
        default: "all",
        summary: "Classes to instrument",
        group: OptionGroup::Scope,
        modes: OptionModes::Both,
        ..PLAIN
    },
    OptionEntry {
        name: "app",
        value: OptionValue::Text {
            form: "PATTERNS",
            set: |options, text| {
                options.app.extend(parse_patterns(text)?);
                Ok(())
            },
            get: |options| patterns_text(&options.app),
        },
        summary: "The program's own classes, which reports show first",
        details: "Example: `com.acme.*`. By default classes of folders and of the started archive, as the report's head names them.",
        group: OptionGroup::Scope,
        modes: OptionModes::Both,
        is_repeatable: true,
        ..PLAIN
    },
    OptionEntry {
        name: "include",
        value: OptionValue::Text {
            form: "PATTERNS",
            set: |options, text| {
                options.filter.include.extend(parse_patterns(text)?);
                Ok(())
            },
            get: |options| patterns_text(&options.filter.include),
        },
        summary: "Instrument only matching classes",
        details: "Example: `org.h2.*+com.acme.Foo` ([scope](../guide/allocations.md#scope)).",
        group: OptionGroup::Scope,
        modes: OptionModes::Both,
        is_repeatable: true,
        ..PLAIN
    },
    OptionEntry {
        name: "exclude",
        value: OptionValue::Text {
            form: "PATTERNS",
            set: |options, text| {
                options.filter.exclude.extend(parse_patterns(text)?);
                Ok(())
            },
            get: |options| patterns_text(&options.filter.exclude),
        },
        summary: "Instrument no matching classes",
        details: "Exclusion wins over `include=`.",
        group: OptionGroup::Scope,
        modes: OptionModes::Both,
        is_repeatable: true,
        ..PLAIN
    },
    OptionEntry {
        name: "tracking",
        value: OptionValue::Choice(&[
            OptionChoice {
                name: "auto",
                summary: "No class gets hooks if the VM itself reports all requested events: `alloc=SIZE`, `leak`, \
                          `native` and `exception`, alone or together. Each event then asks the VM for its stack; logs are the same. Class data sharing stays on. With any other kind, `ctl=all`, `stream=on`, \
                          `burst=` or `encoding=static`, classes get hooks.",
                needs_lab: false,
                set: |options| set_tracking(options, TrackingMode::Lazy, true),
            },
            OptionChoice {
                name: "lazy",
                summary: "Classes always get hooks: for programs that ask for many context ids or throw very many \
                          exceptions.",
                needs_lab: false,
                set: |options| set_tracking(options, TrackingMode::Lazy, false),
            },
            OptionChoice {
                name: "cct",
                summary: "Keep a calling context tree per thread, with a lookup at every entry. Slower; the log has the \
                          same content.",
                needs_lab: true,
                set: |options| set_tracking(options, TrackingMode::Cct, false),
            },
            OptionChoice {
                name: "paper",
                summary: "The scheme of the Lucce paper: an id and a version per frame. Much slower; its ids run out, and \
                          most contexts are dropped.",
                needs_lab: true,
                set: |options| set_tracking(options, TrackingMode::Paper, false),
            },
        ]),
        default: "auto",
        summary: "How a thread keeps its calling context",
        group: OptionGroup::Tracking,
        conflicts: &[OptionConflict {
            combination: "`tracking=paper` with `instrument=app`, `include=` or `exclude=`",
            reason: "it needs all classes",
            message: "tracking=paper needs all classes: no instrument=app, include or exclude",
            applies: |options| options.tracking == TrackingMode::Paper && options.is_partial(),
        }],
        ..PLAIN
    },
    OptionEntry {
        name: "verify",
        value: OptionValue::Text {
            form: "N",
            set: |options, text| {
                options.verify = parse_number(text)?;
                Ok(())
            },
            get: |options| Some(options.verify.to_string()),
        },
        default: "0",
        summary: "Compare every N-th event of the run with the JVM's own stack trace; 0: none",
        details: "`lucce check` prints the result.",
        group: OptionGroup::Tracking,
        modes: OptionModes::Both,
        ..PLAIN
    },
    OptionEntry {
        name: "facts",
        value: OptionValue::Choice(&[
            OptionChoice {
                name: "off",
                summary: "",
                needs_lab: false,
                set: |options| options.facts = false,
            },
            OptionChoice {
                name: "on",
                summary: "",
                needs_lab: false,
                set: |options| options.facts = true,
            },
        ]),
        default: "off",
        summary: "Compare the JDK methods that lucce knows by name with the loaded classes",
        details: "The agent warns of each missing method and each unknown native of `java.base`. Always on for JDKs other \
                  than 11, 17, 21 and 25. For JDKs newer than 25, `verify=1000` is the default.",
        group: OptionGroup::Tracking,
        ..PLAIN
    },
    OptionEntry {
        name: "ctl",
        value: OptionValue::Choice(&[
            OptionChoice {
                name: "off",
                summary: "",
                needs_lab: false,
                set: |options| options.ctl = ControlMode::Off,
            },
            OptionChoice {
                name: "on",
                summary: "",
                needs_lab: false,
                set: |options| options.ctl = ControlMode::On,
            },
            OptionChoice {
                name: "all",
                summary: "Every class also gets hooks for kinds that can be switched on later: {later kinds}. Other kinds need \
                          to be there from the start.",
                needs_lab: false,
                set: |options| options.ctl = ControlMode::All,
            },
        ]),
        default: "on",
        summary: "Whether `lucce ctl` can [control the JVM](../guide/live-jvms.md)",
        group: OptionGroup::Tracking,
        modes: OptionModes::Both,
        ..PLAIN
    },
    OptionEntry {
        name: "push",
        value: OptionValue::Text {
            form: "URL",
            set: |options, text| {
                options.push.url = Some(text.value.to_owned());
                Ok(())
            },
            get: |options| options.push.url.clone(),
        },
        summary: "Send the log to `lucce fleet collect` while the program runs",
        details: "The URL of the collector, such as `http://127.0.0.1:4327`; no TLS, no query. The local log stays.",
        group: OptionGroup::Push,
        conflicts: &[OptionConflict {
            combination: "`push-every`, `push-token`, `push-service` or `push-version` without `push=`",
            reason: "",
            message: "push-every, push-token, push-service and push-version need push=URL",
            applies: |options| options.push.url.is_none() && options.push != PushOptions::default(),
        }],
        ..PLAIN
    },
    OptionEntry {
        name: "push-every",
        value: OptionValue::Text {
            form: "TIME",
            set: |options, text| {
                let every = units::parse_duration(text.value).ok();
                let every = every.filter(|every| PUSH_INTERVALS.contains(every));
                let expected = "a time from 100ms to a day, such as 60s or 5m";
                options.push.every = every.ok_or_else(|| text.malformed(expected))?;
                Ok(())
            },
            get: |options| Some(units::format_duration(options.push.every)),
        },
        default: "60s",
        summary: "Time between two pushes, from 100ms to a day",
        group: OptionGroup::Push,
        ..PLAIN
    },
    OptionEntry {
        name: "push-service",
        value: OptionValue::Text {
            form: "NAME",
            set: |options, text| {
                options.push.service = text.value.to_owned();
                check_placeholders(text.key, text.value)
            },
            get: |options| Some(options.push.service.clone()),
        },
        summary: "Service in the dataset; placeholders as in `out=`",
        group: OptionGroup::Push,
        ..PLAIN
    },
    OptionEntry {
        name: "push-version",
        value: OptionValue::Text {
            form: "TEXT",
            set: |options, text| {
                options.push.version = text.value.to_owned();
                check_placeholders(text.key, text.value)
            },
            get: |options| Some(options.push.version.clone()),
        },
        summary: "Version of the program in the dataset; placeholders as in `out=`",
        group: OptionGroup::Push,
        ..PLAIN
    },
    OptionEntry {
        name: "push-token",
        value: OptionValue::Text {
            form: "FILE",
            set: |options, text| {
                options.push.token = Some(parse_file(text)?);
                Ok(())
            },
            get: |options| options.push.token.as_deref().map(path_text),
        },
        summary: "File with the collector's token",
        details: "Without it, the token is the environment variable `LUCCE_PUSH_TOKEN`.",
        group: OptionGroup::Push,
        ..PLAIN
    },
    OptionEntry {
        name: "alloc",
        value: OptionValue::Text {
            form: "SIZE|all",
            set: set_attached_alloc,
            get: |options| {
                options.attached_alloc.map(|sampling| match sampling {
                    AllocationSampling::Every => "all".to_owned(),
                    AllocationSampling::Interval(bytes) => units::format_size(bytes.into()),
                })
            },
        },
        default: "512k",
        summary: "Sample one allocation per SIZE bytes, or count every allocation",
        details: "The VM reports an attached agent's allocations, from any code.",
        group: OptionGroup::Attach,
        modes: OptionModes::Attach,
        conflicts: &[OptionConflict {
            combination: "`alloc=SIZE` with `events=leak` of another size",
            reason: "the VM has one sampling interval",
            message: "alloc= and events=leak need the same size, because the JVM has one sampling interval: leave out \
                      alloc= and use events=alloc+leak=64k",
            applies: |options| {
                let alloc = options.attached_alloc.map(AllocationSampling::interval);
                let both = alloc.zip(options.events.leak_interval());
                both.is_some_and(|(alloc, leak)| alloc != leak)
            },
        }],
        ..PLAIN
    },
    OptionEntry {
        name: "tell",
        value: OptionValue::Text {
            form: "FILE",
            set: |options, text| {
                options.refusal_file = Some(parse_file(text)?);
                Ok(())
            },
            get: |options| options.refusal_file.as_deref().map(path_text),
        },
        summary: "Write the reason to this existing file if the attached agent does not stay",
        modes: OptionModes::Attach,
        ..PLAIN
    },
    OptionEntry {
        name: "calls",
        value: OptionValue::Choice(&[
            OptionChoice {
                name: "off",
                summary: "",
                needs_lab: false,
                set: |options| options.calls = false,
            },
            OptionChoice {
                name: "on",
                summary: "Records all calls, which is slow.",
                needs_lab: true,
                set: |options| options.calls = true,
            },
        ]),
        default: "off",
        summary: "Also write all calls, including leaf methods, to the log's name plus `.calls`",
        details: "For `lucce lab replay` and exact [k-contexts](../../lab/docs/k-contexts.md).",
        group: OptionGroup::Lab,
        conflicts: &[
            OptionConflict {
                combination: "`calls=on` with `tracking=cct` or `tracking=paper`",
                reason: "",
                message: "calls=on needs tracking=lazy",
                applies: |options| options.calls && options.tracking != TrackingMode::Lazy,
            },
            OptionConflict {
                combination: "`calls=on` with `stream=on`",
                reason: "a run has one file beside its log",
                message: "calls=on does not go with stream=on",
                applies: |options| options.calls && options.stream,
            },
            OptionConflict {
                combination: "`calls=on` with `instrument=app`, `include=` or `exclude=`",
                reason: "it needs all classes",
                message: "calls=on needs all classes: no instrument=app, include or exclude",
                applies: |options| options.calls && options.is_partial(),
            },
        ],
        ..PLAIN
    },
    OptionEntry {
        name: "calls-limit",
        value: OptionValue::Text {
            form: "SIZE",
            set: |options, text| {
                options.calls_limit = parse_size(text)?;
                Ok(())
            },
            get: |options| Some(units::format_size(options.calls_limit)),
        },
        default: "64m",
        summary: "Maximum size of the file of calls",
        details: "A full file keeps the beginning of the run; the program goes on.",
        group: OptionGroup::Lab,
        ..PLAIN
    },
    OptionEntry {
        name: "encoding",
        value: OptionValue::Choice(&[
            OptionChoice {
                name: "lucce",
                summary: "",
                needs_lab: false,
                set: |options| options.encoding = EncodingChoice::Lucce,
            },
            OptionChoice {
                name: "adaptive",
                summary: "",
                needs_lab: false,
                set: |options| options.encoding = EncodingChoice::Adaptive,
            },
            OptionChoice {
                name: "static",
                summary: "Addition values are assigned in advance, from the log of an earlier run (`graph=`).",
                needs_lab: true,
                set: |options| options.encoding = EncodingChoice::Static,
            },
            OptionChoice {
                name: "cct",
                summary: "",
                needs_lab: false,
                set: |options| options.encoding = EncodingChoice::Cct,
            },
        ]),
        default: "lucce",
        summary: "How contexts get their ids ([encodings](../../lab/docs/encodings.md))",
        group: OptionGroup::Lab,
        modes: OptionModes::Both,
        ..PLAIN
    },
    OptionEntry {
        name: "graph",
        value: OptionValue::Text {
            form: "FILE",
            set: |options, text| {
                options.graph = Some(parse_file(text)?);
                Ok(())
            },
            get: |options| options.graph.as_deref().map(path_text),
        },
        summary: "With `encoding=static`: the log of an earlier run",
        group: OptionGroup::Lab,
        conflicts: &[
            OptionConflict {
                combination: "`encoding=static` without `graph=`",
                reason: "",
                message: "encoding=static needs graph=FILE, the log of an earlier run",
                applies: |options| options.has_static_graph() && options.graph.is_none(),
            },
            OptionConflict {
                combination: "`graph=` without `encoding=static`",
                reason: "",
                message: "graph=FILE needs encoding=static",
                applies: |options| options.graph.is_some() && !options.has_static_graph(),
            },
        ],
        ..PLAIN
    },
];

const PUSH_INTERVALS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(24 * 3600);

fn set_tracking(options: &mut RecordingOptions, tracking: TrackingMode, is_automatic: bool) {
    options.tracking = tracking;
    options.is_tracking_automatic = is_automatic;
}

/// A folder or a keyword. A folder named like a keyword is written as `./off`.
fn set_class_cache(
    options: &mut RecordingOptions,
    text: OptionText<'_>,
) -> Result<(), OptionError> {
    options.class_cache = match text.value {
        "off" => ClassCacheOption::Off,
        "on" => ClassCacheOption::User,
        "" => return Err(text.malformed("on, off or a folder")),
        folder => ClassCacheOption::In(folder.into()),
    };
    Ok(())
}

/// `all`, or a sampling interval in bytes.
fn set_attached_alloc(
    options: &mut RecordingOptions,
    text: OptionText<'_>,
) -> Result<(), OptionError> {
    options.attached_alloc = Some(match text.value {
        "all" => AllocationSampling::Every,
        size => {
            let bytes = units::parse_size(size).ok();
            let bytes = bytes.and_then(|bytes| i32::try_from(bytes).ok()?.try_into().ok());
            let bytes = bytes.filter(|bytes: &u32| *bytes > 0);
            let expected = "all, or a size from 1 byte to below 2g, such as 512k";
            AllocationSampling::Interval(bytes.ok_or_else(|| text.malformed(expected))?)
        }
    });
    Ok(())
}

/// Parses a path, which must not be empty.
fn parse_file(text: OptionText<'_>) -> Result<PathBuf, OptionError> {
    match text.value {
        "" => Err(text.malformed("a file name")),
        name => Ok(name.into()),
    }
}

fn parse_patterns(text: OptionText<'_>) -> Result<PatternList, OptionError> {
    PatternList::parse(text.value).map_err(|why| OptionError(format!("option {}: {why}", text.key)))
}

/// Parses a number from 0 to 2³¹ − 1.
fn parse_number(text: OptionText<'_>) -> Result<u32, OptionError> {
    let is_plain = text.value.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.value.parse::<u32>().ok().filter(|_| is_plain);
    let number = number.filter(|number| i32::try_from(*number).is_ok());
    number.ok_or_else(|| text.malformed("a number from 0 to 2147483647"))
}

fn parse_size(text: OptionText<'_>) -> Result<u64, OptionError> {
    let size = units::parse_size(text.value);
    size.map_err(|_| text.malformed("a size such as 4096, 64k, 512m or 2g"))
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn patterns_text(patterns: &PatternList) -> Option<String> {
    (!patterns.is_empty()).then(|| patterns.to_string())
}
