//! A number of one run means something else in the log of another one: by chance only it is not known there.

use std::path::Path;
use std::process::{Command, Output};

use lucce_callgraph::{ContextEncoder, EncodingPolicy, MethodId, SiteId};
use lucce_decoder::{ContextNumber, Profile, RunId};
use lucce_tracelog::{LogHeader, LogWriter};

const OTHER: Option<RunId> = RunId::new(0xfedc_ba98_7654_3210);

/// A run of the fixture's program that calls the other way round: contexts get numbers in the order of first use.
fn other_run(path: &Path) {
    let header = LogHeader {
        run: OTHER,
        ..lucce_testkit::HEADER
    };
    let mut writer = LogWriter::create(path, &header).unwrap();
    lucce_testkit::code(&mut writer);
    let encoder = ContextEncoder::new(lucce_testkit::LAYOUT, EncodingPolicy::LUCCE, writer);
    for route in lucce_testkit::paths().values().rev() {
        let (mut at, mut caller) = (encoder.root_context(route.head), route.head);
        for &(site, callee) in &route.calls {
            at = encoder.encode_call(at, SiteId(site), caller, callee);
            caller = callee;
        }
        encoder.encode_event(at, SiteId(route.event), caller);
    }
    encoder.with_journal(|writer| writer.close().unwrap());
}

fn decode(dir: &Path, log: &str, number: &str) -> Output {
    let mut lucce = Command::new(env!("CARGO_BIN_EXE_lucce"));
    lucce
        .current_dir(dir)
        .args(["decode", log, number])
        .output()
        .unwrap()
}

#[test]
fn a_number_of_another_run_is_refused_and_a_bare_one_decodes_to_a_wrong_trace() {
    let dir = tempfile::tempdir().unwrap();
    let ids = lucce_testkit::sample(&dir.path().join("run.log"));
    other_run(&dir.path().join("other.log"));
    let own = Profile::open(dir.path().join("run.log")).unwrap();
    let other = Profile::open(dir.path().join("other.log")).unwrap();
    let trace = |profile: &Profile, id| profile.graph.decode_context(id, MethodId::EVENT);
    let mut wrong = 0;
    for id in ids.values() {
        let number = own.context_number(*id).to_string();
        assert_eq!(
            ContextNumber::parse_all(&number)[0].run,
            lucce_testkit::HEADER.run
        );
        let refused = decode(dir.path(), "other.log", &number);
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0));
        let runs = ["0123456789abcdef", "fedcba9876543210"];
        assert!(runs.iter().all(|run| stderr.contains(run)), "{stderr}");
        // What the run keeps from happening.
        let bare = decode(dir.path(), "other.log", &id.to_string());
        let taken = trace(&other, *id);
        assert_eq!(bare.status.success(), taken.is_ok());
        wrong += u32::from(taken.is_ok() && taken != trace(&own, *id));
    }
    assert!(
        wrong > 0,
        "the two runs give no number to different contexts"
    );
}
