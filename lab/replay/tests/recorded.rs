//! The beginnings of real programs, recorded on JDK 17: no encoding ever differs from the plain stack, and
//! each costs what its paper says. `cargo xtask record-calls --app FopRender --limit 280k` makes one of them, as
//! `target/recordings/FopRender.calls`.

use lucce_callgraph::{ContextFrame, ContextLayout, EncodingPolicy};
use lucce_encodings::{ContextEncoding, VersionedEncoding};
use lucce_recording::{CallEdge, ProgramThreadId, RecordedStep, Recording};
use lucce_replay::*;

const PROGRAMS: [(&str, &[u8]); 3] = [
    ("fop", include_bytes!("data/FopRender.calls")),
    ("javac", include_bytes!("data/JavacCompile.calls")),
    ("jython", include_bytes!("data/JythonRun.calls")),
];

#[test]
fn real_programs_in_every_encoding() {
    let mut memory = [0; 2];
    for (name, bytes) in PROGRAMS {
        let recording = Recording::from_bytes(bytes.to_vec()).unwrap();
        assert!(recording.is_cut());
        let survey = RecordingSurvey::from_recording(&recording, &|_| ());
        assert!(survey.damage.is_none());
        assert!(survey.calls > 500_000 && survey.events > 10_000 && survey.threads > 1);
        let settings = ReplaySettings {
            check_every: 97,
            timed: false,
        };
        let program =
            ComparedProgram::from_outcomes(name.into(), &recording, survey, settings, &|_| ());
        check(&program);
        for (sum, encoding) in memory.iter_mut().zip(["lucce", "cct"]) {
            *sum += program
                .find_outcome(encoding)
                .unwrap()
                .statistics
                .memory_bytes;
        }
    }
    // Of one program alone a table may just have doubled.
    let [lucce, tree] = memory;
    assert!(lucce * 3 < tree * 2, "{lucce} bytes, {tree} of the tree");
}

fn check(program: &ComparedProgram) {
    let name = &program.name;
    for outcome in program.outcomes.iter().filter(|outcome| outcome.decodes) {
        let first = outcome.first.as_ref();
        assert!(first.is_none(), "{name}, {}: {first:?}", outcome.name);
        assert!(outcome.checked > 200, "{name}, {}", outcome.name);
    }
    let of = |encoding| program.find_outcome(encoding).unwrap();
    let plain = &program.survey.depths;
    // One number per event, none lost, few calls anchor, and fewer edges than the tree has nodes.
    let lucce = of("lucce");
    assert_eq!((lucce.numbers_max, lucce.statistics.unnumbered), (1, 0));
    assert!(
        lucce.anchoring_percent() < 4.0,
        "{name}: {}",
        lucce.anchoring_percent()
    );
    let [ours, tree] = [lucce, of("cct")].map(|of| of.statistics.edges + of.statistics.anchors);
    assert!(ours < tree, "{name}: {ours} edges, {tree} of the tree");
    // PCCE and DACCE: stacks much shorter than the plain one (their Tables 2 and Figure 10).
    for stack in [of("pcce"), of("dacce")] {
        assert!(stack.depths.percentile(90) * 2 < plain.percentile(90));
        assert!(stack.numbers_max > 1);
    }
    // PCCE's ids fit 32 bits; DACCE numbers anew often at first.
    assert!(of("pcce").statistics.max_id < 1 << 32);
    assert!(of("dacce").statistics.re_encodings > 5);
    // Lucce's paper: recursion widens numbers without end, and a long is soon too narrow.
    let paper = of("lucce-paper");
    assert!(paper.statistics.unnumbered > 1000);
}

/// A program whose contexts stay the same: the second time all numbers are the same, nothing is logged and
/// no lock is taken.
#[test]
fn the_second_time_nothing_is_logged() {
    for (name, bytes) in PROGRAMS {
        let recording = Recording::from_bytes(bytes.to_vec()).unwrap();
        let mut encoding =
            VersionedEncoding::new("lucce", ContextLayout::DEFAULT, EncodingPolicy::LUCCE);
        let mut locked = Vec::new();
        let [first, second] = [0, 1].map(|_| {
            let numbers = walk(&recording, &mut encoding);
            let statistics = encoding.collect_statistics();
            locked.push(
                statistics
                    .other_counts
                    .iter()
                    .find(|(key, _)| *key == "slow look-ups")
                    .copied(),
            );
            (numbers, statistics.log_bytes, statistics.memory_bytes)
        });
        assert!(first == second, "{name}");
        assert!(first.1 > 100_000 && first.0.len() > 10_000, "{name}");
        assert!(
            locked[0].is_some() && locked[0] == locked[1],
            "{name}: {locked:?}"
        );
    }
}

/// The numbers of all events. In the end every frame is left, although the recording was cut.
fn walk(recording: &Recording, encoding: &mut VersionedEncoding) -> Vec<u64> {
    let mut stacks: Vec<Vec<CallEdge>> = Vec::new();
    let mut numbers = Vec::new();
    for (thread, step) in recording.steps().map(Result::unwrap) {
        let at = thread.0 as usize;
        stacks.resize_with(stacks.len().max(at + 1), Vec::new);
        let stack = &mut stacks[at];
        match step {
            RecordedStep::Start(_) => encoding.start_thread(thread, None),
            RecordedStep::Enter(edge) => {
                encoding.enter_call(thread, edge);
                stack.push(edge);
            }
            RecordedStep::Event(edge) => {
                let ContextFrame { site, method } = edge.caller_frame();
                numbers.push(
                    encoding
                        .current_context(thread, ContextFrame { site, method })
                        .id,
                );
            }
            RecordedStep::Exit => encoding.leave_call(thread, stack.pop().unwrap()),
            RecordedStep::Unwind(frames) => {
                let left = stack.len() - frames as usize;
                encoding.unwind_calls(thread, &stack.split_off(left));
            }
        }
    }
    for (thread, stack) in stacks.iter().enumerate() {
        encoding.unwind_calls(ProgramThreadId(thread as u32), stack);
    }
    numbers
}
