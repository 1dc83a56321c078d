//! Parsing, writing and refusing options.

use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;

use crate::entry::{OptionEntry, OptionGroup, OptionModes, OptionValue};
use crate::kinds::{ALLOC, CLASS, EXCEPTION, IO, LOCK, REQUEST, THREAD};
use crate::*;

fn parse(text: &str) -> Result<RecordingOptions, OptionError> {
    RecordingOptions::parse(text, StartMode::WithJvm)
}

fn parse_attached(text: &str) -> Result<RecordingOptions, OptionError> {
    RecordingOptions::parse(text, StartMode::Attached)
}

fn error_of(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn no_options_record_allocations() {
    let options = parse("").unwrap();
    assert_eq!(options, RecordingOptions::default_for(StartMode::WithJvm));
    assert_eq!(options.events, EventSelection::from_kinds(&[&ALLOC]));
    assert_eq!(options.out, PathBuf::from("lucce-%p-%t.lucce"));
}

/// The defaults that the table shows are the defaults of the parser.
#[test]
fn shown_defaults_are_defaults() {
    for entry in OPTION_TABLE
        .iter()
        .filter(|entry| !entry.default.is_empty())
    {
        let mode = mode_of(entry);
        let text = format!("{}={}", entry.name, entry.default);
        let set = RecordingOptions::parse(&text, mode).unwrap();
        let defaults = RecordingOptions::default_for(mode);
        match entry.name {
            // Without the option, the interval of `leak` counts.
            "alloc" => assert_eq!(set.attached_interval(), defaults.attached_interval()),
            _ => assert_eq!(set, defaults, "{text}"),
        }
    }
}

#[test]
fn every_entry_is_documented() {
    for (number, entry) in OPTION_TABLE.iter().enumerate() {
        let name = entry.name;
        let mut same = OPTION_TABLE.iter().filter(|other| other.name == name);
        assert!(same.next().is_some() && same.next().is_none(), "{name}");
        assert!(
            entry.summary.len() > 15 && !entry.summary.ends_with('.'),
            "{name}"
        );
        assert!(
            entry.details.is_empty() || entry.details.ends_with('.'),
            "{name}"
        );
        let is_known = OptionGroup::SHOWN.contains(&entry.group);
        assert!(is_known || entry.group == OptionGroup::Internal, "{name}");
        for conflict in entry.conflicts {
            let applies = conflict.applies;
            assert!(!conflict.combination.is_empty() && !conflict.message.is_empty());
            for mode in [StartMode::WithJvm, StartMode::Attached] {
                assert!(!applies(&RecordingOptions::default_for(mode)), "{name}");
            }
        }
        if let OptionValue::Choice(choices) = &entry.value {
            assert!(
                choices.iter().any(|choice| choice.name == entry.default),
                "{name}"
            );
            // Each choice has an effect of its own.
            let with = |choice: &OptionChoice| {
                let mut options = RecordingOptions::default_for(StartMode::WithJvm);
                (choice.set)(&mut options);
                options
            };
            for (index, choice) in choices.iter().enumerate() {
                let others = choices.iter().skip(index + 1);
                others.for_each(|other| assert_ne!(with(choice), with(other), "{number}"));
            }
        }
    }
}

/// Each documented conflict is refused with its message.
#[test]
fn conflicts_are_refused() {
    for (text, message) in [
        ("calls=on,tracking=cct", "calls=on needs tracking=lazy"),
        ("calls=on,tracking=paper", "calls=on needs tracking=lazy"),
        (
            "stream=on,tracking=paper",
            "stream=on needs tracking=lazy or tracking=cct",
        ),
        ("calls=on,stream=on", "calls=on does not go with stream=on"),
        (
            "calls=on,include=a.*",
            "calls=on needs all classes: no instrument=app, include or exclude",
        ),
        (
            "tracking=paper,instrument=app",
            "tracking=paper needs all classes: no instrument=app, include or exclude",
        ),
        (
            "push-service=shop",
            "push-every, push-token, push-service and push-version need push=URL",
        ),
        (
            "encoding=static",
            "encoding=static needs graph=FILE, the log of an earlier run",
        ),
        ("graph=a.lucce", "graph=FILE needs encoding=static"),
        (
            "encoding=cct,graph=a.lucce",
            "graph=FILE needs encoding=static",
        ),
        (
            "events=call,tracking=cct",
            "events=call needs tracking=lazy",
        ),
        (
            "events=call,tracking=paper",
            "events=call needs tracking=lazy",
        ),
        (
            "events=call,encoding=static,graph=a.lucce",
            "events=call does not go with encoding=static",
        ),
        (
            "events=leak,burst=1ms/9ms",
            "burst= does not go with events=leak",
        ),
        (
            "events=alloc=64k,stream=on",
            "stream=on has single events, and events=alloc=SIZE only samples",
        ),
    ] {
        assert_eq!(error_of(text), message, "{text}");
    }
    for text in ["tracking=cct", "instrument=app", "events=call", "verify=1"] {
        let options = parse(&format!("stream=on,{text}")).unwrap();
        assert!(options.stream);
    }
}

#[test]
fn unknown_options_and_values_are_named() {
    for (text, message) in [
        (
            "evnts=alloc",
            "unknown option 'evnts', did you mean 'events'?",
        ),
        ("events=aloc", "unknown event 'aloc', did you mean 'alloc'?"),
        (
            "encoding=cc",
            "unknown value of encoding 'cc', did you mean 'cct'?",
        ),
        (
            "tracking=papr",
            "unknown value of tracking 'papr', did you mean 'paper'?",
        ),
        (
            "stream=yes",
            "unknown value of stream 'yes': expected 'off' or 'on'",
        ),
        (
            "record=stream",
            "unknown option 'record': `lucce options` lists them",
        ),
        ("ctl=of", "unknown value of ctl 'of', did you mean 'off'?"),
        (
            "instrument=ap",
            "unknown value of instrument 'ap', did you mean 'app'?",
        ),
        (
            "strict=yes",
            "unknown value of strict 'yes': expected 'off' or 'on'",
        ),
        (
            "log=loud",
            "unknown value of log 'loud': expected 'debug', 'info', 'warn', 'error' or 'none'",
        ),
        ("zzz=1", "unknown option 'zzz': `lucce options` lists them"),
        (
            "verify",
            "option 'verify' has no value: options are key=value, here verify=N",
        ),
        ("evnts", "unknown option 'evnts', did you mean 'events'?"),
        (
            "include=a/*",
            "option include: pattern 'a/*': names of packages have dots, not slashes",
        ),
        (
            "alloc=64k",
            "alloc=64k is an option of lucce attach and lucce record only",
        ),
    ] {
        assert_eq!(error_of(text), message, "{text}");
    }
}

#[test]
fn malformed_values_are_refused() {
    for bad in [
        "verify=-1",
        "verify=+1",
        "verify=x",
        "verify=2147483648",
        "limit=5x",
        "limit=",
        "limit=99999999999999999999",
        "out=",
        "out=a%q",
        "out=%{A",
        "push-service=%q,push=http://h",
        "only=a/B",
        "include=",
        "exclude=a.B+",
        "include=a.B.m()",
        "exclude=a.",
        "burst=2ms",
        "cache=",
        "graph=,encoding=static",
        "push=http://h,push-every=1ms",
        "push=http://h,push-every=2d",
        "push=http://h,push-every=99999999999999999999s",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn values_are_typed() {
    let options = parse("limit=2k,calls=on,calls-limit=2m,verify=7,cache=./off").unwrap();
    assert_eq!((options.limit, options.calls_limit), (2048, 2 << 20));
    assert!(options.calls && options.verify == 7);
    let folder = ClassCacheOption::In(PathBuf::from("./off"));
    assert_eq!(options.class_cache, folder);
    let push = parse("push=http://h:9/x/,push-every=500ms,push-version=1")
        .unwrap()
        .push;
    assert_eq!(push.url.as_deref(), Some("http://h:9/x/"));
    assert_eq!(
        (push.every, &*push.version),
        (Duration::from_millis(500), "1")
    );
    let options = parse("encoding=static,graph=a.lucce").unwrap();
    assert!(options.has_static_graph());
    let options = parse("instrument=app,exclude=a.*,exclude=b.C").unwrap();
    assert!(!options.filter.admits_class("a/B") && !options.filter.admits_class("b/C"));
    assert!(options.is_partial() && options.filter.admits_class("b/D"));
    assert!(!parse("instrument=all").unwrap().is_partial());
    // The last value counts.
    assert_eq!(parse("verify=1,verify=2").unwrap().verify, 2);
}

#[test]
fn classes_have_no_hooks_if_the_vm_reports_all_events() {
    let is_hookless = |text: &str| parse(text).unwrap().is_hookless();
    for text in [
        "events=leak",
        "events=alloc=512k",
        "events=exception",
        "events=alloc=64k+leak=64k+exception",
        "events=leak,verify=1,include=a.*,instrument=app",
    ] {
        assert!(is_hookless(text), "{text}");
        assert!(is_hookless(&format!("tracking=auto,{text}")), "{text}");
        assert!(!is_hookless(&format!("tracking=lazy,{text}")), "{text}");
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
        "events=leak,stream=on",
        "events=leak,calls=on",
        "events=exception,burst=1ms/10ms",
        "events=exception,encoding=static,graph=a.lucce",
    ] {
        assert!(!is_hookless(text), "{text}");
        assert!(!is_hookless(&format!("tracking=auto,{text}")), "{text}");
    }
}

#[test]
fn control_of_all_kinds_prepares_them() {
    let of = |text| parse(text).unwrap();
    assert!(!of("events=none").has_alloc_hooks());
    assert!(of("events=none,ctl=all").has_alloc_hooks());
    let all = of("events=none,ctl=all").hooked_events();
    assert_eq!(
        all,
        EventSelection::from_kinds(&[&ALLOC, &CLASS, &EXCEPTION, &IO, &LOCK, &REQUEST, &THREAD])
    );
    assert_eq!(of("events=io").hooked_events(), of("events=io").events);
}

#[test]
fn requests_are_recorded_beside_other_kinds() {
    let both = EventSelection::from_kinds(&[&IO, &REQUEST]);
    for text in ["events=io,requests=auto", "requests=auto,events=io"] {
        let options = parse(text).unwrap();
        assert_eq!(options.events, both);
        assert_eq!(
            parse(&options.to_text(StartMode::WithJvm)).unwrap(),
            options
        );
    }
    let hookless = parse("events=exception,requests=auto").unwrap();
    assert!(!hookless.is_hookless());
    assert!(parse("requests=auto,record=calls").is_err());
    assert!(parse("requests=auto,tracking=cct").is_err());
}

#[test]
fn an_attached_agent_samples_unless_every_allocation_is_requested() {
    let interval = |text| parse_attached(text).unwrap().attached_interval();
    assert_eq!(interval(""), 512 << 10);
    assert_eq!(interval("alloc=all,verify=1"), 0);
    assert_eq!(interval("alloc=64k,tell=/x"), 64 << 10);
    assert_eq!(interval("events=leak=16k"), 16 << 10);
    assert_eq!(interval("events=alloc+leak"), 512 << 10);
    assert_eq!(interval("events=alloc+leak=0,alloc=all"), 0);
    assert_eq!(parse_attached("").unwrap().log, LogLevel::Warn);
    assert_eq!(parse_attached("log=info").unwrap().log, LogLevel::Info);
    let locks = parse_attached("events=lock,include=a.*").unwrap();
    assert_eq!(locks.events, EventSelection::from_kinds(&[&LOCK]));
}

#[test]
fn an_attached_agent_refuses_what_needs_hooks() {
    for bad in [
        "calls=on",
        "stream=off",
        "tracking=cct",
        "events=none",
        "events=exception",
        "events=alloc+thread",
        "events=io",
        "events=call",
        "events=alloc+leak=64k,alloc=all",
        "events=leak=lots",
        "events=alloc=all",
        "include=a..b",
        "alloc=0",
        "alloc=lots",
        "alloc=9g",
        "evnts=alloc",
        "stream-limit=5m",
    ] {
        assert!(parse_attached(bad).is_err(), "{bad}");
    }
    let error = parse_attached("tracking=cct").unwrap_err().to_string();
    assert_eq!(
        error,
        "tracking=cct needs the agent from the start (-agentpath)"
    );
}

#[test]
fn a_budget_samples_allocations_without_hooks() {
    let options = parse("budget=20%").unwrap();
    assert_eq!(options.events.alloc_interval(), Some(512 << 10));
    assert!(options.is_hookless() && !options.has_alloc_hooks());
    let options = parse("events=alloc=64k,budget=5").unwrap();
    assert_eq!(options.events.alloc_interval(), Some(64 << 10));
    assert_eq!(options.budget.map(|budget| budget.percent()), Some(5));
    let attached = parse_attached("budget=5%,alloc=64k").unwrap();
    assert_eq!(attached.attached_interval(), 64 << 10);
    let recorded = RecordingOptions::parse_recorded("events=alloc,budget=7%,new=1");
    assert_eq!(recorded.budget.map(|budget| budget.percent()), Some(7));
}

#[test]
fn a_budget_is_refused_with_the_reason_where_it_cannot_be_kept() {
    for (bad, why) in [
        ("budget=26%", "expected 1% to 25%, which samples keep to"),
        ("budget=0", "a percentage from 1% to 25%"),
        ("budget=+5", "a percentage from 1% to 25%"),
        ("budget=lots", "a percentage from 1% to 25%"),
        ("budget=5%,events=exception", "events= has no alloc"),
        ("budget=5%,events=none", "events= has no alloc"),
        ("budget=5%,events=alloc+leak", "need a fixed one"),
        ("budget=5%,events=alloc+heap", "need a fixed one"),
        ("budget=5%,events=alloc+lock", "sampled allocations alone"),
        (
            "budget=5%,events=alloc+exception",
            "sampled allocations alone",
        ),
        (
            "budget=5%,events=alloc=64k+native",
            "sampled allocations alone",
        ),
        ("budget=5%,events=alloc=all", "sampled allocations alone"),
        ("budget=5%,events=alloc=sizes", "sampled allocations alone"),
        ("budget=5%,requests=auto", "sampled allocations alone"),
        ("budget=5%,resource=a.B.c:d", "sampled allocations alone"),
        ("budget=5%,events=alloc=1023", "from 1k to 4m"),
        ("budget=5%,events=alloc=64m", "from 1k to 4m"),
        ("budget=5%,stream=on", "single events"),
        ("budget=5%,burst=1ms/10ms", "records without hooks"),
        ("budget=5%,ctl=all", "records without hooks"),
        ("budget=5%,tracking=lazy", "records without hooks"),
    ] {
        let error = error_of(bad);
        assert!(error.contains(why), "{bad}: {error}");
    }
    for (bad, why) in [
        ("alloc=all", "alloc=all counts each"),
        ("events=lock", "events= has no alloc"),
        ("events=alloc+leak", "need a fixed one"),
        ("events=alloc+lock", "sampled allocations alone"),
        ("events=alloc+open", "sampled allocations alone"),
        ("events=alloc+time:a.B.c", "sampled allocations alone"),
        ("alloc=1023", "from 1k to 4m"),
        ("alloc=64m", "from 1k to 4m"),
    ] {
        let error = parse_attached(&format!("budget=5%,{bad}")).unwrap_err();
        assert!(error.to_string().contains(why), "{bad}: {error}");
    }
    for first in ["alloc=1k", "alloc=4m"] {
        assert!(parse_attached(&format!("budget=5%,{first}")).is_ok());
        assert!(parse(&format!("budget=5%,events={first}")).is_ok());
    }
}

#[test]
fn a_log_s_options_are_read_as_far_as_they_are_known() {
    let options =
        RecordingOptions::parse_recorded("events=lock+io,new=1,verify=often,alloc=64k,tracking");
    assert_eq!(options.events, EventSelection::from_kinds(&[&LOCK, &IO]));
    assert_eq!((options.verify, options.attached_interval()), (0, 64 << 10));
    // Earlier versions had other names for the files beside the log.
    let options = RecordingOptions::parse_recorded("record=stream,record-limit=1g,verify=7");
    assert_eq!(options.verify, 7);
}

#[test]
fn settings_of_the_lab_are_found() {
    let lab_setting = |text| parse(text).unwrap().find_lab_setting();
    for (text, setting) in [
        ("events=alloc,tracking=paper", "tracking=paper"),
        ("tracking=cct", "tracking=cct"),
        ("calls=on", "calls=on"),
        ("graph=a.lucce,encoding=static", "encoding=static"),
    ] {
        assert_eq!(lab_setting(text).as_deref(), Some(setting));
    }
    assert_eq!(
        lab_setting("tracking=lazy,stream=on,encoding=cct,verify=1"),
        None
    );
    assert_eq!(lab_setting("tracking=paper,tracking=lazy"), None);
}

#[test]
fn settings_are_found_in_malformed_text() {
    assert_eq!(
        find_setting("x,tell=/a,tell=/b,limit=y", "tell"),
        Some("/b")
    );
    assert_eq!(find_setting("x,limit=y", "tell"), None);
}

fn mode_of(entry: &OptionEntry) -> StartMode {
    match entry.modes {
        OptionModes::Attach => StartMode::Attached,
        OptionModes::Start | OptionModes::Both => StartMode::WithJvm,
    }
}

/// A setting that is valid by itself.
fn setting() -> impl Strategy<Value = String> {
    let choices = OPTION_TABLE.iter().flat_map(|entry| match &entry.value {
        OptionValue::Choice(choices) => choices
            .iter()
            .map(|choice| format!("{}={}", entry.name, choice.name))
            .collect::<Vec<_>>(),
        OptionValue::Text { .. } => Vec::new(),
    });
    let choices: Vec<String> = choices.collect();
    let kinds = [
        "alloc",
        "alloc=all",
        "call",
        "exception",
        "io",
        "leak",
        "lock",
        "thread",
    ];
    let events = proptest::sample::subsequence(kinds.to_vec(), 1..=kinds.len());
    prop_oneof![
        proptest::sample::select(choices),
        events.prop_map(|events| format!("events={}", events.join("+"))),
        (1_u32..1 << 20).prop_map(|size| format!("events=alloc={size}+leak={size}+lock")),
        any::<u64>().prop_map(|size| format!("limit={size}")),
        (0_u64..1 << 30).prop_map(|size| format!("stream-limit={size}k")),
        (0_u32..1 << 31).prop_map(|number| format!("verify={number}")),
        (100_u64..86_400_000).prop_map(|millis| format!("push=http://h,push-every={millis}ms")),
        (50_u32..1000, 1100_u32..9999).prop_map(|(on, period)| format!("burst={on}us/{period}us")),
        "out=[a-z/.]{1,9}(%p|%t|%%|%[{]HOME[}])",
        "(include|exclude|only)=[a-z]{1,3}[.][*]([+][*][A-Z]x)?",
        "graph=[a-z]{1,5},encoding=static",
        "cache=(on|off|[a-z]{3,5})",
        "budget=[1-9]%?",
        "(alloc|tell)=[1-9]{1,3}",
    ]
}

proptest! {
    /// Parsed options, written and parsed again, are equal.
    #[test]
    fn options_are_written_as_they_are_parsed(settings in prop::collection::vec(setting(), 0..6)) {
        let text = settings.join(",");
        for mode in [StartMode::WithJvm, StartMode::Attached] {
            if let Ok(options) = RecordingOptions::parse(&text, mode) {
                let written = options.to_text(mode);
                prop_assert_eq!(&RecordingOptions::parse(&written, mode), &Ok(options), "{}", written);
            }
        }
    }

    /// Any text is parsed or refused with one line, and a recorded text is always read.
    #[test]
    fn hostile_text_is_refused(
        text in prop_oneof![
            any::<String>(),
            "[a-z=,+%{}/.0-9-]{0,60}",
            (proptest::sample::select(OPTION_TABLE.iter().map(|e| e.name).collect::<Vec<_>>()), ".{0,40}")
                .prop_map(|(name, value)| format!("{name}={value}")),
        ]
    ) {
        for mode in [StartMode::WithJvm, StartMode::Attached] {
            if let Err(error) = RecordingOptions::parse(&text, mode) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
        let _ = RecordingOptions::parse_recorded(&text).find_lab_setting();
    }
}
