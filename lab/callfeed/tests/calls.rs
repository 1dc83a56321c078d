//! A run's calls as k-calling contexts receive them: from a recording, whole or damaged, and from a log.

use std::collections::BTreeMap;

use lucce_callfeed::*;
use lucce_decoder::*;
use lucce_kcontexts::{CallListener, CallTrace, CallingContextTree, KContextError};
use lucce_recording::Recording;

const CALLS: (CallMeasure, EventLeaf) = (CallMeasure::Calls, EventLeaf::Method);

fn recorded() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("figure.calls");
    lucce_testkit::calls::record(&path);
    std::fs::read(path).unwrap()
}

fn feed_calls(
    recording: &Recording,
    what: (CallMeasure, EventLeaf),
    limit: u64,
) -> (CallLabels, CallTrace, CallFeedOutcome) {
    let (mut labels, mut trace) = (CallLabels::default(), CallTrace::new(u32::MAX));
    let outcome =
        feed_recorded_calls(recording, what, &mut labels, &mut trace, limit, &|_| ()).unwrap();
    (labels, trace, outcome)
}

/// Full paths of methods' names, root first, and what counts under each.
fn paths(labels: &CallLabels, code: &CodeSymbols, calls: &CallTrace) -> BTreeMap<String, u64> {
    let mut tree: CallingContextTree = CallingContextTree::new();
    calls.replay(&mut tree).unwrap();
    let forest = tree.forest();
    let name = |label| {
        let routine = labels.find_call(label).unwrap().routine;
        let name = labels.routine_name(code, routine);
        name.rsplit('.').next().unwrap().to_owned()
    };
    let path = |node| {
        let mut names: Vec<String> = forest.labels_upwards(node).map(name).collect();
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
fn recorded_calls_are_fed_in_order() {
    let recording = Recording::from_bytes(recorded()).unwrap();
    let code = recorded_code(&recording);
    let (labels, calls, outcome) = feed_calls(&recording, CALLS, u64::MAX);
    assert!(outcome.damage.is_none() && !outcome.is_cut);
    assert!(calls.is_timed());
    let all = "r rc ra rab rabc rd rda rdab rdabc re reb rea reab reabc";
    let once = all.split(' ').map(|path| (path.to_owned(), 1)).collect();
    assert_eq!(paths(&labels, &code, &calls), once);
}

#[test]
fn recorded_events_are_fed_where_they_happen() {
    let recording = Recording::from_bytes(recorded()).unwrap();
    let code = recorded_code(&recording);
    for (origin, leaf) in [(EventLeaf::Method, ""), (EventLeaf::Type, "Node")] {
        let (labels, events, _) = feed_calls(&recording, (CallMeasure::Events, origin), u64::MAX);
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
        let (_, calls, outcome) = feed_calls(&recording, CALLS, limit);
        assert_eq!(outcome.is_cut, limit < steps);
        assert!(calls.calls() <= limit);
    }
}

/// Any cut and any flipped byte: what precedes it, or an error; never a panic, never calls that
/// cannot be.
#[test]
fn damaged_recordings_are_fed_up_to_the_damage() {
    let whole = recorded();
    let mut damaged = 0;
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x11;
        for bytes in [flipped, whole[..at].to_vec()] {
            let Ok(recording) = Recording::from_bytes(bytes) else {
                continue;
            };
            let (_, calls, outcome) = feed_calls(&recording, CALLS, u64::MAX);
            damaged += u64::from(outcome.damage.is_some());
            let mut tree: CallingContextTree = CallingContextTree::new();
            calls.replay(&mut tree).unwrap();
            assert!(calls.calls() <= 14);
        }
    }
    assert!(damaged > 100);
}

/// The log's contexts, against their traces.
#[test]
fn a_logs_contexts_are_fed_with_their_weights() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::sample(&dir.path().join("sample.log"));
    let profile = Profile::open(dir.path().join("sample.log")).unwrap();
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for context in profile.list_contexts(&|_| ()).list {
        let frames = profile.decode_trace(context.id).unwrap().frames;
        let names = frames.iter().rev().map(|frame| frame.method.clone());
        *expected.entry(names.collect()).or_default() += context.value;
    }
    let (mut labels, mut calls) = (CallLabels::default(), CallTrace::new(u32::MAX));
    let what = (CallMeasure::Value, EventLeaf::Method);
    let outcome = feed_log_calls(&profile, what, &mut labels, &mut calls, &|_| ()).unwrap();
    assert!(outcome.unknown.is_empty());
    assert_eq!(paths(&labels, &profile.code, &calls), expected);
}

/// An error of a listener is the feeder's error.
#[test]
fn a_listeners_error_is_passed_on() {
    struct Full;
    impl CallListener for Full {
        fn enter_call(
            &mut self,
            _: lucce_kcontexts::TraceThreadId,
            _: lucce_kcontexts::LabeledCallee,
        ) -> Result<(), KContextError> {
            Err(KContextError::TooManyNodes)
        }
        fn add_count(
            &mut self,
            _: lucce_kcontexts::TraceThreadId,
            _: u64,
        ) -> Result<(), KContextError> {
            Ok(())
        }
        fn leave_call(&mut self, _: lucce_kcontexts::TraceThreadId) -> Result<(), KContextError> {
            Ok(())
        }
    }
    let recording = Recording::from_bytes(recorded()).unwrap();
    let mut labels = CallLabels::default();
    let outcome = feed_recorded_calls(&recording, CALLS, &mut labels, &mut Full, u64::MAX, &|_| ());
    assert_eq!(outcome.err(), Some(KContextError::TooManyNodes));
}
