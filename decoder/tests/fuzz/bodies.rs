//! What is done with a file, whatever is in it: the work of all verbs that read it. It must not panic, and must end.

use lucce_callgraph::ContextId;
use lucce_decoder::{
    Code, Collapsed, Count, Labels, Origin, Profile, Stream, Traces, Value, Window,
};
use lucce_decoder::{of_log, of_recording};
use lucce_kcontexts::CallingContextTree;
use lucce_recording::Recording;
use lucce_replay::{Settings, Survey, run};
use lucce_tracelog::Log;

/// Of each list so many are looked at in full.
const MOST: usize = 50;

fn profile(bytes: &[u8]) -> Option<Profile> {
    let log = Log::from_bytes(bytes.to_vec()).ok()?;
    Profile::from_log(&log, &|_| ()).ok()
}

pub fn log(bytes: &[u8]) {
    let Some(profile) = profile(bytes) else {
        return;
    };
    let contexts = profile.contexts(&|_| ());
    let mut traces = Traces::new(&profile);
    for context in &contexts.list {
        let trace = traces.of(context.id).expect("a context decodes");
        assert_eq!(
            traces.is_outside(trace),
            traces.shown(trace).next().is_none()
        );
    }
    for context in contexts.list.iter().take(MOST) {
        let (trace, whole) = (
            traces.of(context.id).unwrap(),
            profile.trace(context.id).unwrap(),
        );
        // What is shared and what is decoded alone are one.
        assert!(traces.shown(trace).eq(&whole.frames));
        let _ = (
            whole.to_string(),
            profile.detail(context),
            profile.only_thread(context.id),
        );
    }
    let collapsed = Collapsed::new(&profile, &contexts.list, Value::Count, true, &|_| ());
    let mut out = Vec::new();
    let written = collapsed.written(&profile);
    if written.bytes() < 1 << 24 {
        written.write(&mut out, &|_| ()).unwrap();
        assert_eq!(
            out.iter().filter(|byte| **byte == b'\n').count(),
            collapsed.len()
        );
    }
    let mut tree: CallingContextTree = CallingContextTree::new();
    let mut labels = Labels::default();
    let what = (Count::Events, Origin::Type);
    let told = of_log(&profile, what, &mut labels, &mut tree, &|_| ());
    told.expect("contexts are paths");
    let submissions = profile.submissions();
    for context in contexts.list.iter().take(MOST) {
        let _ = profile.started_by(&submissions, context.id);
    }
    let leaks = profile.leaks(&|_| ());
    assert!(leaks.judged <= leaks.alive);
    let summary = profile.summary(&|_| ());
    assert_eq!(summary.count(), contexts.count());
    assert_eq!(summary.unknown, contexts.unknown);
    let _ = (profile.kinds(), profile.bursts(), summary.by_kind(&profile));
    let skipped: Vec<String> = profile.skipped.iter().map(ToString::to_string).collect();
    drop(skipped);
    for id in [0, 1, 0x0040_0024_000c_77cb, u64::MAX] {
        let (alone, shared) = (profile.trace(ContextId(id)), traces.of(ContextId(id)));
        assert_eq!(alone.err(), shared.err());
    }
}

/// A stream beside a log that is whole.
pub fn stream(log: &[u8], bytes: &[u8]) {
    let (Some(profile), Ok(stream)) = (profile(log), Stream::from_bytes(bytes.to_vec())) else {
        return;
    };
    let _ = profile.explains(&stream);
    let window = Window {
        times: 0..u64::MAX,
        is_thread: &|_| true,
    };
    let (events, _) = profile.streamed(&stream, &window);
    assert!(events.count() <= stream.count());
    let mut traces = Traces::new(&profile);
    for event in stream.events() {
        if let Ok(told) = profile.tell(&mut traces, &event) {
            let _ = (
                told.value(&event),
                told.lasted(&event),
                stream.since_start(event.clock),
            );
        }
    }
    let _ = profile.unstreamed(&stream);
}

pub fn recording(bytes: &[u8]) {
    let Ok(recording) = Recording::from_bytes(bytes.to_vec()) else {
        return;
    };
    let _ = Code::from(&recording);
    let mut tree: CallingContextTree = CallingContextTree::new();
    let mut labels = Labels::default();
    const STEPS: u64 = 100_000;
    let what = (Count::Calls, Origin::Method);
    // Why it is not one is an answer, too.
    let _ = of_recording(&recording, what, &mut labels, &mut tree, STEPS, &|_| ());
    let survey = Survey::of(&recording, &|_| ());
    if survey.steps > STEPS {
        return;
    }
    let settings = Settings {
        check_every: 7,
        timed: false,
    };
    for encoding in ["lucce", "cct", "pcce", "dacce"] {
        run(encoding, &recording, &survey, settings, &|_| ()).expect("a known encoding");
    }
}
