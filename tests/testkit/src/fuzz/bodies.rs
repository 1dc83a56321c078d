//! What is done with a file, whatever is in it: the work of all verbs that read it. It must not panic, and must end.

use lucce_callfeed::{
    CallLabels, CallMeasure, EventLeaf, feed_log_calls, feed_recorded_calls, recorded_code,
};
use lucce_callgraph::ContextId;
use lucce_decoder::{
    CollapsedStacks, EventStream, EventWindow, Measure, Profile, TraceTree, analyze_leaks,
    check_same_run, count_streamed_events, count_unstreamed_events, explain_event,
    index_submissions, summarize_bursts, trace_submitters,
};
use lucce_kcontexts::CallingContextTree;
use lucce_recording::Recording;
use lucce_replay::{RecordingSurvey, ReplaySettings, run};
use lucce_tracelog::InMemoryLog;

/// Of each list so many are looked at in full.
const MOST: usize = 50;

fn profile(bytes: &[u8]) -> Option<Profile> {
    let log = InMemoryLog::from_bytes(bytes.to_vec()).ok()?;
    Profile::from_log(&log, &|_| ()).ok()
}

pub fn log(bytes: &[u8]) {
    let Some(profile) = profile(bytes) else {
        return;
    };
    let contexts = profile.list_contexts(&|_| ());
    let mut traces = TraceTree::new(&profile);
    for context in &contexts.list {
        let trace = traces.insert_trace(context.id).expect("a context decodes");
        assert_eq!(
            traces.is_outside(trace),
            traces.stack_frames(trace).next().is_none()
        );
    }
    for context in contexts.list.iter().take(MOST) {
        let (trace, whole) = (
            traces.insert_trace(context.id).unwrap(),
            profile.decode_trace(context.id).unwrap(),
        );
        // What is shared and what is decoded alone are one.
        assert!(traces.stack_frames(trace).eq(&whole.frames));
        let _ = (
            whole.to_string(),
            profile.context_detail(context),
            profile.single_thread_name(context.id),
        );
    }
    let collapsed = CollapsedStacks::new(&profile, &contexts.list, Measure::Count, true, &|_| ());
    let mut out = Vec::new();
    let written = collapsed.prepare_writer(&profile);
    if written.estimate_bytes() < 1 << 24 {
        written.write(&mut out, &|_| ()).unwrap();
        assert_eq!(
            out.iter().filter(|byte| **byte == b'\n').count(),
            collapsed.len()
        );
    }
    let mut tree: CallingContextTree = CallingContextTree::new();
    let mut labels = CallLabels::default();
    let what = (CallMeasure::Events, EventLeaf::Type);
    let outcome = feed_log_calls(&profile, what, &mut labels, &mut tree, &|_| ());
    outcome.expect("contexts are paths");
    let submissions = index_submissions(&profile);
    for context in contexts.list.iter().take(MOST) {
        let _ = trace_submitters(&profile, &submissions, context.id);
    }
    let leaks = analyze_leaks(&profile, &|_| ());
    assert!(leaks.judged <= leaks.alive);
    let summary = profile.summarize_contexts(&|_| ());
    assert_eq!(summary.event_count(|_| true), contexts.event_count());
    assert_eq!(summary.unknown, contexts.unknown);
    let _ = (
        profile.counted_kinds(),
        summarize_bursts(&profile),
        summary.by_kind(&profile),
    );
    let skipped: Vec<String> = profile.skipped.iter().map(ToString::to_string).collect();
    drop(skipped);
    for id in [0, 1, 0x0040_0024_000c_77cb, u64::MAX] {
        let (alone, shared) = (
            profile.decode_trace(ContextId(id)),
            traces.insert_trace(ContextId(id)),
        );
        assert_eq!(alone.err(), shared.err());
    }
}

/// A stream beside a log that is whole.
pub fn stream(log: &[u8], bytes: &[u8]) {
    let (Some(profile), Ok(stream)) = (profile(log), EventStream::from_bytes(bytes.to_vec()))
    else {
        return;
    };
    let _ = check_same_run(&profile, &stream);
    let window = EventWindow {
        times: 0..u64::MAX,
        is_thread: &|_| true,
    };
    let (events, _) = count_streamed_events(&profile, &stream, &window);
    assert!(events.event_count() <= stream.event_count());
    let mut traces = TraceTree::new(&profile);
    for event in stream.iter_events() {
        if let Ok(explanation) = explain_event(&profile, &mut traces, &event) {
            let _ = (
                explanation.event_value(&event),
                explanation.event_duration(&event),
                stream.since_start(event.clock),
            );
        }
    }
    let _ = count_unstreamed_events(&profile, &stream);
}

pub fn recording(bytes: &[u8]) {
    let Ok(recording) = Recording::from_bytes(bytes.to_vec()) else {
        return;
    };
    let _ = recorded_code(&recording);
    let mut tree: CallingContextTree = CallingContextTree::new();
    let mut labels = CallLabels::default();
    const STEPS: u64 = 100_000;
    let what = (CallMeasure::Calls, EventLeaf::Method);
    // Why it is not one is an answer, too.
    let _ = feed_recorded_calls(&recording, what, &mut labels, &mut tree, STEPS, &|_| ());
    let survey = RecordingSurvey::from_recording(&recording, &|_| ());
    if survey.steps > STEPS {
        return;
    }
    let settings = ReplaySettings {
        check_every: 7,
        timed: false,
    };
    for encoding in ["lucce", "cct", "pcce", "dacce"] {
        run(encoding, &recording, &survey, settings, &|_| ()).expect("a known encoding");
    }
}
