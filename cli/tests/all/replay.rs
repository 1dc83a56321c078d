//! `lucce lab replay`: what it says of a recording, whole, damaged or foreign.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use lucce_callgraph::{MethodId, SiteId};
use lucce_recording::{CallEdge, RecordingWriter, ThreadWriter};
use serde_json::Value;

fn lucce(dir: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lucce"))
        .args(arguments.split_whitespace())
        .current_dir(dir)
        .output()
        .unwrap()
}

fn recordings() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::calls::record(&dir.path().join("figure.lucce.calls"));
    let whole = fs::read(dir.path().join("figure.lucce.calls")).unwrap();
    fs::write(dir.path().join("cut.calls"), &whole[..whole.len() - 40]).unwrap();
    fs::write(dir.path().join("foreign.calls"), "PK\u{3}\u{4} other").unwrap();
    dir
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const NAMES: [&str; 9] = [
    "lucce",
    "adaptive",
    "static",
    "cct",
    "lucce-paper",
    "pcce",
    "pcce-hybrid",
    "dacce",
    "pcc",
];

#[test]
fn every_encoding_decodes_every_number() {
    let dir = recordings();
    for name in NAMES {
        let arguments =
            format!("lab replay figure.lucce.calls --encoding {name} --check-every 1 --json");
        let output = lucce(dir.path(), &arguments);
        assert!(output.status.success(), "{}", errors(&output));
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["encoding"], name);
        assert_eq!(json["mismatches"], 0);
        let checked = json["checked"].as_u64().unwrap();
        assert_eq!(checked > 0, name != "pcc");
        let text = lucce(
            dir.path(),
            &format!("lab replay figure.lucce.calls --encoding {name}"),
        );
        assert!(
            String::from_utf8(text.stdout)
                .unwrap()
                .contains(&format!(": {name}, "))
        );
    }
}

#[test]
fn all_of_them_as_tables_as_json_and_as_a_picture() {
    let dir = recordings();
    let text = lucce(
        dir.path(),
        "lab replay --compare figure.lucce.calls --plot charts",
    );
    assert!(text.status.success(), "{}", errors(&text));
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("PCCE, Table 2") && text.contains("All encodings on figure:"));
    let plot = fs::read_to_string(dir.path().join("charts/encodings.svg")).unwrap();
    assert!(plot.starts_with("<svg") && plot.contains("figure"));
    let json = lucce(
        dir.path(),
        "lab replay --compare figure.lucce.calls figure.lucce.calls --json",
    );
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["programs"].as_array().unwrap().len(), 2);
    let encodings = json["programs"][1]["encodings"].as_array().unwrap();
    let names: Vec<&str> = encodings
        .iter()
        .map(|one| one["encoding"].as_str().unwrap())
        .collect();
    assert_eq!(names, NAMES);
}

#[test]
fn a_damaged_recording_is_replayed_as_far_as_it_goes() {
    let dir = recordings();
    for arguments in [
        "cut.calls --encoding lucce",
        "--compare cut.calls figure.lucce.calls",
    ] {
        let output = lucce(dir.path(), &format!("lab replay {arguments}"));
        assert_eq!(output.status.code(), Some(3));
        let stderr = errors(&output);
        assert!(stderr.contains("cut.calls: damaged at offset "), "{stderr}");
        assert!(!output.stdout.is_empty());
    }
}

/// Recordings whose bytes are whole and whose calls cannot be: an error that says where, whatever reads them.
#[test]
fn impossible_calls_end_in_an_offset() {
    let dir = tempfile::tempdir().unwrap();
    let call = |site: u32| CallEdge {
        site: SiteId(site),
        caller: MethodId(1),
        callee: MethodId(2),
    };
    let impossible = |name: &str, run: &dyn Fn(&RecordingWriter, &mut ThreadWriter)| {
        let writer = RecordingWriter::create(dir.path().join(name), 1 << 20).unwrap();
        let mut thread = writer.start("main", None);
        thread.enter(&writer, CallEdge::from_thread_entry(MethodId(1)));
        thread.enter(&writer, call(1));
        run(&writer, &mut thread);
        thread.flush(&writer);
        assert!(writer.finish());
    };
    impossible("exit.calls", &|writer, thread| {
        (0..3).for_each(|_| thread.exit(writer));
    });
    impossible("unwind.calls", &|writer, thread| thread.unwind(writer, 3));
    impossible("range.calls", &|writer, thread| {
        thread.exit(writer);
        thread.enter(writer, call(SiteId::MAX + 1));
    });
    for (file, reason) in [
        ("exit.calls", "an exit without an enter"),
        ("unwind.calls", "more frames end than were entered"),
        ("range.calls", "out of range"),
    ] {
        for arguments in [
            format!("lab replay {file} --encoding dacce"),
            format!("lab replay --compare {file}"),
            format!("lab hot-paths {file}"),
        ] {
            let output = lucce(dir.path(), &arguments);
            let stderr = errors(&output);
            assert_eq!(output.status.code(), Some(3), "{arguments}: {stderr}");
            let offset = format!("lucce: {file}: damaged at offset ");
            let offset = stderr.lines().find_map(|line| line.strip_prefix(&offset));
            let digits = offset.map(|text| text.chars().take_while(char::is_ascii_digit).count());
            assert!(
                digits > Some(0) && stderr.contains(reason),
                "{arguments}: {stderr}"
            );
        }
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let dir = recordings();
    let cases = [
        ("figure.lucce.calls", 2, "--encoding"),
        (
            "figure.lucce.calls --encoding lucky",
            2,
            "no encoding is called lucky; there are lucce,",
        ),
        (
            "foreign.calls --encoding lucce",
            3,
            "foreign.calls: not a recording of calls (offset 0",
        ),
        (
            "missing.calls --encoding lucce",
            2,
            "missing.calls: No such file",
        ),
        ("--compare missing.calls", 2, "missing.calls: No such file"),
        (
            "--compare figure.lucce.calls --plot figure.lucce.calls/charts",
            2,
            "cannot write",
        ),
        (
            "figure.lucce.calls --encoding lucce --compare",
            2,
            "cannot be used with",
        ),
    ];
    for (arguments, code, message) in cases {
        let output = lucce(dir.path(), &format!("lab replay {arguments}"));
        assert_eq!(output.status.code(), Some(code), "{arguments}");
        assert!(errors(&output).contains(message), "{}", errors(&output));
    }
}
