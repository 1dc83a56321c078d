//! A run's calls as k-calling contexts hear them: from a recording, whole or damaged, and from a log.

use std::collections::BTreeMap;

use lucce_decoder::*;
use lucce_kcontexts::{CallingContextTree, Error, Listener, Trace};
use lucce_recording::Recording;

const CALLS: (CallMeasure, EventLeaf) = (CallMeasure::Calls, EventLeaf::Method);

fn recorded() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("figure.calls");
    lucce_testkit::calls::record(&path);
    std::fs::read(path).unwrap()
}

fn hear(
    recording: &Recording,
    what: (CallMeasure, EventLeaf),
    limit: u64,
) -> (CallLabels, Trace, CallFeedOutcome) {
    let (mut labels, mut trace) = (CallLabels::default(), Trace::new(u32::MAX));
    let told =
        feed_recorded_calls(recording, what, &mut labels, &mut trace, limit, &|_| ()).unwrap();
    (labels, trace, told)
}

/// Full paths of methods' names, root first, and what counts under each.
fn paths(labels: &CallLabels, code: &CodeSymbols, calls: &Trace) -> BTreeMap<String, u64> {
    let mut tree: CallingContextTree = CallingContextTree::new();
    calls.replay(&mut tree).unwrap();
    let forest = tree.forest();
    let name = |label| {
        let routine = labels.find_call(label).unwrap().routine;
        let name = labels.routine_name(code, routine);
        name.rsplit('.').next().unwrap().to_owned()
    };
    let path = |node| {
        let mut names: Vec<String> = forest.upwards(node).map(name).collect();
        names.reverse();
        (names.concat(), forest.count(node))
    };
    let mut sums = BTreeMap::new();
    for (path, count) in forest.nodes().map(path).filter(|(_, count)| *count > 0) {
        *sums.entry(path).or_default() += count;
    }
    sums
}

#[test]
fn recorded_calls_are_told_as_they_were() {
    let recording = Recording::from_bytes(recorded()).unwrap();
    let code = CodeSymbols::from(&recording);
    let (labels, calls, told) = hear(&recording, CALLS, u64::MAX);
    assert!(told.damage.is_none() && !told.is_cut);
    assert!(calls.is_timed());
    let all = "r rc ra rab rabc rd rda rdab rdabc re reb rea reab reabc";
    let once = all.split(' ').map(|path| (path.to_owned(), 1)).collect();
    assert_eq!(paths(&labels, &code, &calls), once);
}

#[test]
fn recorded_events_are_told_where_they_happen() {
    let recording = Recording::from_bytes(recorded()).unwrap();
    let code = CodeSymbols::from(&recording);
    for (origin, leaf) in [(EventLeaf::Method, ""), (EventLeaf::Type, "Node")] {
        let (labels, events, _) = hear(&recording, (CallMeasure::Events, origin), u64::MAX);
        let under = ["rc", "rabc", "rdabc", "reabc"];
        let once = under.map(|path| (format!("{path}{leaf}"), 1)).into();
        assert_eq!(paths(&labels, &code, &events), once);
    }
}

#[test]
fn the_telling_stops_at_a_limit() {
    let recording = Recording::from_bytes(recorded()).unwrap();
    let steps = recording.steps().count() as u64;
    for limit in 0..=steps + 1 {
        let (_, calls, told) = hear(&recording, CALLS, limit);
        assert_eq!(told.is_cut, limit < steps);
        assert!(calls.calls() <= limit);
    }
}

/// Any cut and any flipped byte: what precedes it, or an error; never a panic, never calls that
/// cannot be.
#[test]
fn damaged_recordings_are_told_up_to_the_damage() {
    let whole = recorded();
    let mut damaged = 0;
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x11;
        for bytes in [flipped, whole[..at].to_vec()] {
            let Ok(recording) = Recording::from_bytes(bytes) else {
                continue;
            };
            let (_, calls, told) = hear(&recording, CALLS, u64::MAX);
            damaged += u64::from(told.damage.is_some());
            let mut tree: CallingContextTree = CallingContextTree::new();
            calls.replay(&mut tree).unwrap();
            assert!(calls.calls() <= 14);
        }
    }
    assert!(damaged > 100);
}

/// The log's contexts, against their traces.
#[test]
fn a_logs_contexts_are_told_with_their_weights() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::sample(&dir.path().join("sample.log"));
    let profile = Profile::open(dir.path().join("sample.log")).unwrap();
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for context in profile.list_contexts(&|_| ()).list {
        let frames = profile.decode_trace(context.id).unwrap().frames;
        let names = frames.iter().rev().map(|frame| frame.method.clone());
        *expected.entry(names.collect()).or_default() += context.value;
    }
    let (mut labels, mut calls) = (CallLabels::default(), Trace::new(u32::MAX));
    let what = (CallMeasure::Value, EventLeaf::Method);
    let told = feed_log_calls(&profile, what, &mut labels, &mut calls, &|_| ()).unwrap();
    assert!(told.unknown.is_empty());
    assert_eq!(paths(&labels, &profile.code, &calls), expected);
}

/// What a listener refuses is the teller's error.
#[test]
fn a_listeners_error_is_passed_on() {
    struct Full;
    impl Listener for Full {
        fn enter(
            &mut self,
            _: lucce_kcontexts::Thread,
            _: lucce_kcontexts::Callee,
        ) -> Result<(), Error> {
            Err(Error::TooManyNodes)
        }
        fn count(&mut self, _: lucce_kcontexts::Thread, _: u64) -> Result<(), Error> {
            Ok(())
        }
        fn leave(&mut self, _: lucce_kcontexts::Thread) -> Result<(), Error> {
            Ok(())
        }
    }
    let recording = Recording::from_bytes(recorded()).unwrap();
    let mut labels = CallLabels::default();
    let told = feed_recorded_calls(&recording, CALLS, &mut labels, &mut Full, u64::MAX, &|_| ());
    assert_eq!(told.err(), Some(Error::TooManyNodes));
}
