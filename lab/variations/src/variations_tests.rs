use std::collections::BTreeMap;
use std::path::PathBuf;

use lucce_callgraph::MethodId;
use lucce_tracelog::{EndRecord, EventTypeId, LoaderId, MetaRecord, ThreadId};

use super::*;

const CLASSES: u32 = 400;

/// A log of classes of a program and of the JDK in turns, with counters.
fn recorded(folder: &Path) -> InMemoryLog {
    let path = folder.join("recorded.lucce");
    let header = LogHeader {
        run: RunId::new(7),
        start: 5,
        ..LogHeader::default()
    };
    let mut writer = LogWriter::create(&path, &header).unwrap();
    for id in 1..=CLASSES {
        let package = ["shop", "java.util"][id as usize % 2];
        let class = ClassRecord {
            id: ClassId(id),
            loader: LoaderId(0),
            name: format!("{package}.C{id}").into(),
            source_file: None,
        };
        writer.append(class).unwrap();
        let method = MethodRecord {
            id: MethodId(id),
            class: ClassId(id),
            name: "work".into(),
            descriptor: "()V".into(),
            access: 1,
            lines: vec![(0, 10), (7, 12)].into(),
        };
        writer.append(method).unwrap();
    }
    for (at, cell) in writer
        .add_counters(ThreadId(1), 1000)
        .unwrap()
        .iter()
        .enumerate()
    {
        cell.claim(ContextId(at as u64 + 1));
        cell.add_events(1000, 16_000);
    }
    for (at, cell) in writer
        .add_event_counters(ThreadId(1), 10)
        .unwrap()
        .iter()
        .enumerate()
    {
        cell.claim(ContextId(at as u64 + 1), EventTypeId(3));
        cell.count_event(5);
    }
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
    InMemoryLog::open(&path).unwrap()
}

fn varied(log: &InMemoryLog, folder: &Path, number: u64, release: u32) -> (PathBuf, InMemoryLog) {
    let path = folder.join(format!("{number}-{release}-{:p}", &number));
    let variation = RunVariation {
        number,
        release,
        start_ms: 9,
    };
    write_variation(log, "shop", variation, &path).unwrap();
    let log = InMemoryLog::open(&path).unwrap();
    (path, log)
}

fn counts(log: &InMemoryLog) -> BTreeMap<u64, (u64, u64)> {
    let mut counts = BTreeMap::new();
    for item in log.items() {
        if let LogItem::Counters(cells) = item.unwrap() {
            counts.extend(
                cells
                    .iter()
                    .map(|cell| (cell.id.0, (cell.count, cell.bytes))),
            );
        }
    }
    counts
}

/// By the class's name.
fn lines(log: &InMemoryLog) -> BTreeMap<String, Vec<(u16, u16)>> {
    let (mut names, mut lines) = (BTreeMap::new(), BTreeMap::new());
    for item in log.items() {
        let LogItem::Record(entry) = item.unwrap() else {
            continue;
        };
        match entry.record {
            Some(LogRecord::Class(class)) => {
                names.insert(class.id, class.name.into_owned());
            }
            Some(LogRecord::Method(method)) => {
                lines.insert(names[&method.class].clone(), method.lines.into_owned());
            }
            _ => {}
        }
    }
    lines
}

#[test]
fn a_run_has_its_own_id_start_and_counts() {
    let dir = tempfile::tempdir().unwrap();
    let log = recorded(dir.path());
    let (_, one) = varied(&log, dir.path(), 1, 0);
    let (_, other) = varied(&log, dir.path(), 2, 0);
    assert_eq!(one.header().start, 9_000_000);
    let runs = [&log, &one, &other].map(|log| log.header().run.unwrap());
    assert!(runs[0] != runs[1] && runs[1] != runs[2]);
    let (recorded, one, other) = (counts(&log), counts(&one), counts(&other));
    // Of a thousand contexts some are not met, and no other ones are.
    assert!((940..1000).contains(&one.len()), "{}", one.len());
    assert!(one.keys().all(|id| recorded.contains_key(id)));
    assert_ne!(
        one.keys().collect::<Vec<_>>(),
        other.keys().collect::<Vec<_>>()
    );
    // What an event takes stays.
    assert!(
        one.values()
            .all(|(count, bytes)| *count > 0 && count * 16 == *bytes)
    );
    let of =
        |counts: &BTreeMap<u64, (u64, u64)>| counts.values().map(|(count, _)| count).sum::<u64>();
    assert!((450_000..1_550_000).contains(&of(&one)), "{}", of(&one));
    assert_ne!(of(&one), of(&other));
}

#[test]
fn what_it_is_depends_on_its_arguments_alone() {
    let dir = tempfile::tempdir().unwrap();
    let log = recorded(dir.path());
    let (one, _) = varied(&log, dir.path(), 1, 2);
    let again = dir.path().join("again");
    let variation = RunVariation {
        number: 1,
        release: 2,
        start_ms: 9,
    };
    write_variation(&log, "shop", variation, &again).unwrap();
    assert_eq!(std::fs::read(one).unwrap(), std::fs::read(again).unwrap());
}

#[test]
fn a_release_moves_lines_of_some_classes_of_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let log = recorded(dir.path());
    let before = lines(&log);
    let released = [0, 1, 2].map(|release| lines(&varied(&log, dir.path(), 1, release).1));
    assert_eq!(released[0], before);
    let moved = |lines: &BTreeMap<String, Vec<(u16, u16)>>,
                 from: &BTreeMap<String, Vec<(u16, u16)>>| {
        let differs = lines.iter().filter(|(name, lines)| from[*name] != **lines);
        differs.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let first = moved(&released[1], &before);
    assert!((2..25).contains(&first.len()), "{first:?}");
    assert!(first.iter().all(|name| name.starts_with("shop.")));
    // The next one leaves these as they are, and moves others.
    let second = moved(&released[2], &released[1]);
    assert!(
        (2..25).contains(&second.len()) && second != first,
        "{second:?}"
    );
}

#[test]
fn a_run_that_has_not_ended_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("killed");
    let mut writer = LogWriter::create(&path, &LogHeader::default()).unwrap();
    let (key, value) = ("a".into(), "b".into());
    writer.append(MetaRecord { key, value }).unwrap();
    drop(writer);
    let log = InMemoryLog::open(&path).unwrap();
    let variation = RunVariation {
        number: 1,
        release: 0,
        start_ms: 9,
    };
    let refused = write_variation(&log, "shop", variation, &dir.path().join("other")).unwrap_err();
    assert!(refused.to_string().contains("not ended"), "{refused}");
}
