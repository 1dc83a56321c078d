//! Every encoding on recordings that are made up: what is counted, and that differences are found.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use lucce_callgraph::{ContextFrame, MethodId, SiteId};
use lucce_recording::*;
use lucce_replay::*;
use proptest::prelude::*;

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn recorded(run: impl FnOnce(&RecordingWriter<Memory>, &mut ThreadWriter)) -> Recording {
    let memory = Memory::default();
    let writer = RecordingWriter::new(memory.clone(), u64::MAX).unwrap();
    let mut thread = writer.start("main", None);
    run(&writer, &mut thread);
    thread.flush(&writer);
    writer.finish();
    let bytes = memory.0.lock().unwrap().clone();
    Recording::from_bytes(bytes).unwrap()
}

fn place(method: u32, site: u32) -> ContextFrame {
    ContextFrame {
        site: SiteId(method * 4 + site + 1),
        method: MethodId(method),
    }
}

fn call(caller: u32, site: u32, callee: u32) -> CallEdge {
    CallEdge {
        callee: MethodId(callee),
        ..CallEdge::from_event_frame(place(caller, site))
    }
}

const ALL: ReplaySettings = ReplaySettings {
    check_every: 1,
    timed: true,
};

fn program(recording: &Recording) -> ComparedProgram {
    let survey = RecordingSurvey::from_recording(recording, &|_| ());
    ComparedProgram::from_outcomes("made up".into(), recording, survey, ALL, &|_| ())
}

/// main calls a and b by turns, both call c, c has an event.
fn diamond(writer: &RecordingWriter<Memory>, thread: &mut ThreadWriter) {
    thread.enter(writer, CallEdge::from_thread_entry(MethodId(1)));
    for turn in 0..100 {
        let middle = 2 + turn % 2;
        thread.enter(writer, call(1, turn % 2, middle));
        thread.enter(writer, call(middle, 0, 4));
        thread.event(writer, CallEdge::from_event_frame(place(4, 1)));
        thread.unwind(writer, 2);
    }
    thread.exit(writer);
}

#[test]
fn what_is_counted_of_a_small_program() {
    let recording = recorded(diamond);
    let program = program(&recording);
    let survey = &program.survey;
    assert_eq!((survey.calls, survey.events, survey.threads), (201, 100, 1));
    assert_eq!(
        (survey.methods, survey.contexts, survey.event_contexts),
        (4, 5, 2)
    );
    assert_eq!(
        (survey.depths.max_depth(), survey.depths.percentile(90)),
        (3, 3)
    );
    assert_eq!(program.count_mismatches(), 0);
    let names: Vec<&str> = program
        .outcomes
        .iter()
        .map(|outcome| outcome.name)
        .collect();
    assert_eq!(names, NAMES);
    for outcome in program.outcomes.iter().filter(|outcome| outcome.decodes) {
        assert_eq!(outcome.request_count, 100, "{}", outcome.name);
        // Each when it is given, and again at the end.
        assert_eq!(outcome.checked, 200, "{}", outcome.name);
    }
    let ours = ["lucce", "adaptive", "static", "cct"];
    for outcome in ours.map(|name| program.find_outcome(name).unwrap()) {
        assert_eq!((outcome.numbers_mean, outcome.numbers_max), (1.0, 1));
        assert!(outcome.bits_max <= 64 && outcome.statistics.log_bytes > 0);
    }
    // Both paths in one id of one bit, no stack.
    let pcce = program.find_outcome("pcce").unwrap();
    assert_eq!(
        (
            pcce.statistics.max_id,
            pcce.bits_max,
            pcce.depths.max_depth()
        ),
        (1, 1, 0)
    );
    let paper = program.find_outcome("lucce-paper").unwrap();
    assert_eq!((paper.numbers_max, paper.statistics.edges), (2, 5));
}

#[test]
fn a_recording_without_events_asks_at_every_call() {
    let recording = recorded(|writer, thread| {
        thread.enter(writer, CallEdge::from_thread_entry(MethodId(1)));
        for depth in 1..50 {
            thread.enter(writer, call(depth, 0, depth + 1));
        }
    });
    let program = program(&recording);
    assert_eq!(program.count_mismatches(), 0);
    assert!(
        program
            .outcomes
            .iter()
            .all(|outcome| outcome.request_count == 50)
    );
    assert_eq!(program.survey.requested_contexts(), 50);
}

#[test]
fn recursion_costs_each_encoding_as_in_its_paper() {
    let recording = recorded(|writer, thread| {
        thread.enter(writer, CallEdge::from_thread_entry(MethodId(1)));
        for _ in 0..200 {
            thread.enter(writer, call(1, 0, 1));
            thread.event(writer, CallEdge::from_event_frame(place(1, 1)));
        }
    });
    let program = program(&recording);
    assert_eq!(program.count_mismatches(), 0);
    // One entry that is repeated, behind the one of the thread's entry.
    assert!(program.find_outcome("pcce").unwrap().depths.max_depth() <= 2);
    assert_eq!(
        program
            .find_outcome("pcce-hybrid")
            .unwrap()
            .depths
            .max_depth(),
        200
    );
    let paper = program.find_outcome("lucce-paper").unwrap();
    assert!(paper.statistics.log_bytes > 200 * 6);
    // Each version's range is wider than the one before, until it is as wide as it may be.
    assert_eq!(program.find_outcome("lucce").unwrap().statistics.anchors, 2);
}

#[test]
fn text_json_and_plot_say_the_same() {
    let recording = recorded(diamond);
    let comparison = EncodingComparison {
        programs: vec![program(&recording), program(&recording)],
    };
    let text = render_tables(&comparison);
    for title in ["PCCE, Table 2", "DACCE, Table 1", "Figure 9", "Figure 10"] {
        assert!(text.contains(title), "{title}");
    }
    for name in NAMES {
        assert!(
            text.lines().any(|line| line.trim_start().starts_with(name)),
            "{name}"
        );
    }
    let json = serde_json::to_value(&comparison).unwrap();
    let dacce = &json["programs"][0]["encodings"][7];
    assert_eq!(dacce["encoding"], "dacce");
    assert_eq!(dacce["asked"], 100);
    assert_eq!(json["programs"][1]["contexts"], 5);
    assert_eq!(json["programs"][1]["depth"]["cumulative"][3]["share"], 1.0);
    let plot = draw_comparison(&comparison);
    assert!(plot.starts_with("<svg") && plot.trim_end().ends_with("</svg>"));
    assert_eq!(plot.matches("made up").count(), 2);
    assert!(!plot.contains("NaN") && !plot.contains("inf"));
}

#[test]
fn a_damaged_recording_is_compared_as_far_as_it_goes() {
    let recording = recorded(|writer, thread| {
        diamond(writer, thread);
        thread.exit(writer);
        diamond(writer, thread);
    });
    let survey = RecordingSurvey::from_recording(&recording, &|_| ());
    assert!(survey.damage.is_some());
    assert_eq!(survey.calls, 201);
    let lucce = run("lucce", &recording, &survey, ALL, &|_| ()).unwrap();
    assert_eq!((lucce.request_count, lucce.mismatches), (100, 0));
    assert!(run("no-such", &recording, &survey, ALL, &|_| ()).is_none());
}

fn steps() -> impl Strategy<Value = Vec<(usize, u32, u32)>> {
    prop::collection::vec((0..4usize, 0..10u32, 1..8u32), 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Through a file, with threads that start threads: no encoding ever differs.
    #[test]
    fn no_encoding_differs_from_the_plain_stack(steps in steps()) {
        let recording = recorded(|writer, main| {
            let mut others: Vec<(ThreadWriter, Vec<u32>)> = Vec::new();
            let mut stack = Vec::new();
            for (thread, act, callee) in steps {
                let count = others.len() + 1;
                let (to, stack) = match thread % count {
                    0 => (&mut *main, &mut stack),
                    other => {
                        let (writer, stack) = &mut others[other - 1];
                        (writer, stack)
                    }
                };
                match (act, stack.last().copied()) {
                    (0..=4, None) => {
                        to.enter(writer, CallEdge::from_thread_entry(MethodId(callee)));
                        stack.push(callee);
                    }
                    (0..=3, Some(caller)) => {
                        to.enter(writer, call(caller, act % 3, callee));
                        stack.push(callee);
                    }
                    (4..=6, Some(method)) => to.event(writer, CallEdge::from_event_frame(place(method, act % 3))),
                    (7, Some(_)) => {
                        to.exit(writer);
                        stack.pop();
                    }
                    (8, Some(_)) => {
                        let frames = callee.min(stack.len() as u32);
                        to.unwind(writer, frames);
                        stack.truncate(stack.len() - frames as usize);
                    }
                    (9, _) if count < 4 => {
                        let child = writer.start("child", Some(to));
                        others.push((child, Vec::new()));
                    }
                    _ => {}
                }
            }
            others.iter_mut().for_each(|(thread, _)| thread.flush(writer));
        });
        let program = program(&recording);
        prop_assert!(program.survey.damage.is_none());
        prop_assert_eq!(program.count_mismatches(), 0);
    }
}
