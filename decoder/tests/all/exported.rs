//! What formats of other tools are handed: threads, kinds, and the events of a stream.

use std::cell::Cell;
use std::path::Path;

use lucce_decoder::{
    CollapsedStacks, EventStream, EventWindow, ExportOptions, LogSource, Measure, Profile,
    events_path, export_run, has_followed_objects, write_difference,
};
use lucce_export::{ExportEvent, ExportRun};

fn export_options(kind: Option<&str>) -> ExportOptions<'_> {
    ExportOptions {
        kind,
        value: None,
        leaf_type: false,
        content_ids: false,
        admits: &|_, _| true,
    }
}

fn profile(log: &Path) -> Profile {
    LogSource::open(log)
        .and_then(|mut source| source.read_profile(&|_| ()))
        .unwrap()
}

/// The run, all events of its stream, and how many were left out.
/// Of a log that one of the fixtures writes into the folder.
fn write_and_open<R>(dir: &Path, write: impl Fn(&Path) -> R) -> Profile {
    let log = dir.join("made.log");
    write(&log);
    profile(&log)
}

fn with_stream(log: &Path) -> (ExportRun, Vec<ExportEvent>, u64) {
    let stream = EventStream::open(events_path(log)).unwrap();
    let profile = profile(log);
    let exported = export_run(&profile, &export_options(None), Some(&stream), &|_| ());
    let (left_out, mut events) = (Cell::new(0), Vec::new());
    let all = EventWindow {
        times: 0..u64::MAX,
        is_thread: &|_| true,
    };
    let mut keep = |event: &ExportEvent| {
        events.push(*event);
        Ok(())
    };
    exported
        .for_each_event(&stream, &all, &left_out, &mut keep)
        .unwrap();
    (exported.run, events, left_out.get())
}

#[test]
fn threads_of_one_name_stay_apart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kinds.log");
    let ids = lucce_testkit::kinds(&path);
    let events_written = [
        (1, 1_000, 1, 'A', 500),
        (2, 1_100, 1, 'A', 500),
        (1, 2_000, 2, 'A', 7),
    ];
    lucce_testkit::stream::beside(&path, (&ids, &events_written), ["pool", "pool"], true);
    let (run, events, left_out) = with_stream(&path);
    let threads: Vec<_> = events
        .iter()
        .map(|event| event.row.thread.unwrap())
        .collect();
    assert_eq!((threads.len(), left_out), (3, 0));
    assert!(
        threads[0] != threads[1] && threads[0] == threads[2],
        "{threads:?}"
    );
    for thread in threads {
        assert_eq!(run.threads[thread as usize], "pool");
    }
}

/// As in a report of the log.
#[test]
fn a_thread_without_a_name_is_called_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kinds.log");
    let ids = lucce_testkit::kinds(&path);
    let events_written = [(2, 1_000, 1, 'A', 500)];
    lucce_testkit::stream::beside(&path, (&ids, &events_written), ["main", ""], true);
    let stream = EventStream::open(events_path(&path)).unwrap();
    let names: Vec<_> = stream.threads().iter().collect();
    let profile = profile(&path);
    for thread in names {
        let (of_stream, of_log) = (
            profile.stream_thread_name(thread),
            profile.thread_name(thread.log_thread),
        );
        assert!(!of_stream.is_empty());
        assert!(
            !thread.name.is_empty() || of_stream == of_log,
            "{of_stream}"
        );
    }
}

/// Objects that are followed are in the stream, and no counter has their contexts.
#[test]
fn events_without_counters_have_their_places() {
    let dir = tempfile::tempdir().unwrap();
    let ids = lucce_testkit::sample(&dir.path().join("sample.log"));
    let path = dir.path().join("leaking.log");
    lucce_testkit::leaks::leaking(&path);
    let events_written = [(1, 1_000, 0, 'A', 24), (2, 2_000, 0, 'C', 4096)];
    lucce_testkit::stream::beside(&path, (&ids, &events_written), ["main", "other"], true);
    let (_, events, left_out) = with_stream(&path);
    assert_eq!((events.len(), left_out), (2, 0));
    assert!(events.iter().all(|event| event.row.node != 0));
}

/// They were allocated once: another kind than allocations tells of them, whatever the format calls that.
#[test]
fn followed_objects_are_no_allocations() {
    let dir = tempfile::tempdir().unwrap();
    let profile = write_and_open(dir.path(), lucce_testkit::leaks::leaking);
    assert!(has_followed_objects(&profile, "inuse") && !has_followed_objects(&profile, "alloc"));
    let run = export_run(&profile, &export_options(Some("inuse")), None, &|_| ()).run;
    assert!(!run.rows.is_empty());
    for row in &run.rows {
        let kind = &run.kinds[row.kind as usize];
        assert_eq!((&*kind.name, (kind.tool_names.jfr)("x")), ("inuse", None));
    }
}

/// A line of collapsed stacks tells no parameters: what differs in them only is one line, of a difference, too.
#[test]
fn stacks_of_one_text_are_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let profile = write_and_open(dir.path(), lucce_testkit::overloaded);
    let contexts = profile.list_contexts(&|_| ());
    let collapsed = CollapsedStacks::new(&profile, &contexts.list, Measure::Value, false, &|_| ());
    let written = collapsed.prepare_writer(&profile);
    let (mut one, mut both) = (Vec::new(), Vec::new());
    written.write(&mut one, &|_| ()).unwrap();
    let lines = write_difference((&written, &written), |_| true, &mut both).unwrap();
    let text = String::from_utf8;
    assert_eq!(text(one).unwrap(), "app.Main.main;app.Main.work 40\n");
    assert_eq!(text(both).unwrap(), "app.Main.main;app.Main.work 40 40\n");
    assert_eq!((collapsed.len(), lines), (1, 1));
}

/// Readers want a kind, also of a log without any event.
#[test]
fn a_run_without_events_has_a_kind() {
    let dir = tempfile::tempdir().unwrap();
    let profile = write_and_open(dir.path(), lucce_testkit::sample);
    let run = export_run(&profile, &export_options(Some("nothing")), None, &|_| ()).run;
    let names: Vec<_> = run.kinds.iter().map(|kind| &*kind.name).collect();
    assert_eq!((names, run.rows.len()), (vec!["alloc"], 0));
}
