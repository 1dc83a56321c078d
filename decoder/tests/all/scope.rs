//! `--include` and `--exclude`: what is left of a log's traces, against the traces themselves.

use std::collections::BTreeMap;

use lucce_decoder::Profile;
use lucce_filter::{ClassFilter, PatternList};

/// Count and value by the frames that are left, the type and the kind of event.
type Sums = BTreeMap<(Vec<String>, Option<String>, u32), (u64, u64)>;

fn filter(include: &str, exclude: &str) -> ClassFilter {
    let patterns = |text: &str| match text {
        "" => PatternList::default(),
        text => PatternList::parse(text).unwrap(),
    };
    ClassFilter {
        include: patterns(include),
        exclude: patterns(exclude),
    }
}

/// All contexts, and how many events have no frame left; `kept` says which frames count.
fn sums(profile: &Profile, kept: impl Fn(&str) -> bool) -> (Sums, u64) {
    let (mut sums, mut without) = (Sums::new(), 0);
    let contexts = profile.list_contexts(&|_| ());
    for context in &contexts.list {
        let trace = profile.decode_trace(context.id).unwrap();
        let frames = trace.frames.iter().filter(|frame| kept(&frame.class));
        let frames: Vec<_> = frames.map(ToString::to_string).collect();
        if frames.is_empty() {
            without += context.count;
            continue;
        }
        let detail = profile.context_detail(context).map(str::to_owned);
        let sum = sums.entry((frames, detail, context.event.0)).or_default();
        sum.0 += context.count;
        sum.1 += context.value;
    }
    (sums, without + contexts.outside)
}

#[test]
fn traces_without_other_classes_are_merged() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["sample.log", "kinds.log"] {
        let path = dir.path().join(name);
        match name {
            "sample.log" => lucce_testkit::sample(&path),
            _ => lucce_testkit::kinds(&path),
        };
        let whole = Profile::open(&path).unwrap();
        for (include, exclude) in [
            ("app.Main", ""),
            ("", "app.Main"),
            ("app.*", "app.Gen+app.Natives"),
            ("app.Gen", ""),
            ("no.such.*", ""),
            ("*", ""),
        ] {
            let filter = filter(include, exclude);
            let expected = sums(&whole, |class| filter.admits_class(class));
            let mut profile = Profile::open(&path).unwrap();
            profile.restrict_scope(&filter);
            let actual = sums(&profile, |_| true);
            assert_eq!(actual, expected, "{name} {include:?} {exclude:?}");
            // Each is one context.
            let contexts = profile.list_contexts(&|_| ());
            assert_eq!(contexts.list.len(), expected.0.len(), "{name} {include:?}");
        }
    }
}
