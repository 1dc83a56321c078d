//! What is written is what the format's own description says, whatever names and counts are.

use std::collections::HashSet;

use lucce_export::{
    ExportEventKind, ExportFrame, ExportNode, ExportRow, ExportRun, OtlpRequests, ToolNames,
};

fn frame(method: &str, line: i32) -> ExportFrame {
    ExportFrame {
        class: "a.B".into(),
        method: method.into(),
        descriptor: "()V".into(),
        file: Some("B.java".into()),
        line,
    }
}

fn row(node: u32, kind: u32, count: u64, value: u64) -> ExportRow {
    ExportRow {
        node,
        kind,
        type_index: Some(0),
        thread: Some(0),
        context: 0x1000_0400_0000 + u64::from(node),
        count,
        value,
    }
}

fn run() -> ExportRun {
    let kind = |name: &str, unit: &str| ExportEventKind {
        name: name.into(),
        unit: unit.into(),
        has_values: !unit.is_empty(),
        timed_kind: None,
        tool_names: match name {
            "alloc" => ToolNames {
                pprof: Some(["alloc_objects", "alloc_space"]),
                jfr: |_| Some("jdk.ObjectAllocationSample"),
            },
            _ => ToolNames::NONE,
        },
    };
    let node = |caller, frame| ExportNode { caller, frame };
    let mut run = ExportRun {
        command: "a.B --fast".into(),
        pid: 7,
        start_ns: 1_763_730_000_000_000_000,
        duration_ns: None,
        id: Some(0x0123_4567_89ab_cdef),
        kinds: vec![kind("alloc", "bytes"), kind("exception", "")],
        main_kind: 0,
        counts_first: false,
        types: vec!["byte[]".into()],
        threads: vec!["main".into()],
        frames: vec![frame("main", 4), frame("work", -1), frame("work", 9)],
        nodes: vec![node(0, 0), node(0, 0), node(1, 1), node(1, 2), node(2, 2)],
        rows: vec![
            row(4, 0, 3, 24),
            row(1, 0, 1, 8),
            row(3, 1, 5, 0),
            row(2, 0, 2, 16),
        ],
        content_ids: Vec::new(),
    };
    run.sort_rows();
    run
}

fn written(name: &str, run: &ExportRun) -> Vec<u8> {
    let mut bytes = Vec::new();
    lucce_export::format_by_name(name)
        .unwrap()
        .write(run, None, &mut bytes)
        .unwrap();
    bytes
}

#[test]
fn formats_have_names_of_their_own() {
    let names: HashSet<_> = lucce_export::ALL_FORMATS
        .iter()
        .map(|format| format.name())
        .collect();
    assert_eq!(names.len(), lucce_export::ALL_FORMATS.len());
    assert!(lucce_export::format_by_name("nosuch").is_none());
}

#[test]
fn rows_are_sorted_as_a_walk_of_the_tree_meets_them() {
    let nodes: Vec<_> = run().rows.iter().map(|row| row.node).collect();
    assert_eq!(nodes, [1, 2, 4, 3]);
    assert_eq!(run().node_path(4), [4, 2, 1]);
    assert_eq!(run().stack_frames(4).collect::<Vec<_>>(), [2, 1, 0]);
    assert_eq!(run().stack_frames(0).count(), 0);
}

/// Equal runs make equal files, so that files can be compared.
#[test]
fn nothing_in_a_file_differs_by_chance() {
    for format in lucce_export::ALL_FORMATS {
        assert_eq!(
            written(format.name(), &run()),
            written(format.name(), &run())
        );
    }
}

#[test]
fn a_run_without_anything_is_a_file_too() {
    let empty = ExportRun {
        kinds: Vec::new(),
        frames: Vec::new(),
        nodes: vec![ExportNode {
            caller: 0,
            frame: 0,
        }],
        rows: Vec::new(),
        ..run()
    };
    for format in lucce_export::ALL_FORMATS {
        assert!(!written(format.name(), &empty).is_empty());
    }
}

/// Times: paths open once and close once, and the time between is what was counted.
#[test]
fn speedscope_opens_and_closes_each_path_once() {
    let file: serde_json::Value = serde_json::from_slice(&written("speedscope", &run())).unwrap();
    let profile = &file["profiles"][0];
    assert_eq!(
        (&profile["name"], &profile["endValue"]),
        (&"alloc: bytes".into(), &48.into())
    );
    let events = profile["events"].as_array().unwrap();
    let read: Vec<_> = events
        .iter()
        .map(|event| {
            let number = |key: &str| event[key].as_u64().unwrap();
            (
                event["type"].as_str().unwrap(),
                number("frame"),
                number("at"),
            )
        })
        .collect();
    let expected = [
        ("O", 0, 0),
        ("O", 1, 8),
        ("O", 2, 24),
        ("C", 2, 48),
        ("C", 1, 48),
        ("C", 0, 48),
    ];
    assert_eq!(read, expected);
    assert_eq!(file["profiles"][1]["endValue"], 5);
}

/// Whatever the limit, requests have each row once, and ids of their own; a row that is larger than the limit is a request.
#[test]
fn requests_to_a_collector_have_all_rows() {
    let run = run();
    let whole = written("otlp", &run).len();
    let mut sizes = HashSet::new();
    for limit in [0, 1, whole / 2, whole - 1, whole, usize::MAX] {
        let mut requests = OtlpRequests::new(&run, 0, 0);
        let (mut rows, mut all) = (0, HashSet::new());
        while let Some(request) = requests.next_request(limit) {
            assert!(request.rows == 1 || request.bytes.len() <= limit);
            rows += request.rows;
            assert!(all.insert(request.bytes), "two equal requests");
        }
        assert_eq!(rows, run.rows.len(), "{limit}");
        sizes.insert(all.len());
    }
    assert!(
        sizes.contains(&1) && sizes.contains(&run.rows.len()),
        "{sizes:?}"
    );
    assert_eq!(
        OtlpRequests::new(&run, run.rows.len(), 7).next_request(whole),
        None
    );
    let rest = OtlpRequests::new(&run, 1, 7).next_request(usize::MAX);
    assert_eq!(rest.map(|request| request.rows), Some(run.rows.len() - 1));
}
