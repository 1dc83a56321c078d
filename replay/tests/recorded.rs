//! The beginnings of real programs, recorded with `record=calls,record-limit=280k` on JDK 17: no
//! encoding ever differs from the plain stack, and each costs what its paper says.

use lucce_recording::Recording;
use lucce_replay::*;

const PROGRAMS: [(&str, &[u8]); 3] = [
    ("fop", include_bytes!("data/FopRender.calls")),
    ("javac", include_bytes!("data/JavacCompile.calls")),
    ("jython", include_bytes!("data/JythonRun.calls")),
];

#[test]
fn real_programs_in_every_encoding() {
    for (name, bytes) in PROGRAMS {
        let recording = Recording::from_bytes(bytes.to_vec()).unwrap();
        assert!(recording.is_cut());
        let survey = Survey::of(&recording, &|_| ());
        assert!(survey.damage.is_none());
        assert!(survey.calls > 500_000 && survey.events > 10_000 && survey.threads > 1);
        let settings = Settings {
            check_every: 97,
            timed: false,
        };
        let program = Program::of(name.into(), &recording, survey, settings, &|_| ());
        check(&program);
    }
}

fn check(program: &Program) {
    let name = &program.name;
    for outcome in program.outcomes.iter().filter(|outcome| outcome.decodes) {
        let first = outcome.first.as_ref();
        assert!(first.is_none(), "{name}, {}: {first:?}", outcome.name);
        assert!(outcome.checked > 200, "{name}, {}", outcome.name);
    }
    let of = |encoding| program.outcome(encoding).unwrap();
    let plain = &program.survey.depths;
    // One number per event, none lost, few calls anchor, and far fewer nodes than the tree has.
    let lucce = of("lucce");
    assert_eq!((lucce.numbers_max, lucce.statistics.lost), (1, 0));
    assert!(
        lucce.anchoring_percent() < 4.0,
        "{name}: {}",
        lucce.anchoring_percent()
    );
    assert!(lucce.statistics.memory < of("cct").statistics.memory);
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
    assert!(paper.statistics.lost > 1000);
}
