//! Counters that are no events of their own: holders of locks, living threads and memory, unloaded classes, longest times.

use std::collections::BTreeMap;
use std::path::Path;

use lucce_decoder::{
    BlockSum, ClassTotals, ContextId, Profile, list_defined_classes, list_living_memory,
    list_lock_pairs, list_method_times, list_started_threads, sum_classes,
};
use lucce_testkit::{HEADER, Ids};
use lucce_tracelog::{EndRecord, EventType, EventTypeId, StatRecord, ThreadId, lock_holder_detail};

/// Context, type, number of events and the sum of their values.
type Row = (char, u32, u64, u64);

fn write_log(
    path: &Path,
    types: impl Fn(&Ids) -> Vec<(&'static str, &'static str, String)>,
    rows: &[Row],
    millis: u64,
) -> Ids {
    let (mut writer, ids) = lucce_testkit::running(path);
    for (id, (kind, unit, detail)) in (1..).zip(types(&ids)) {
        let event = EventType {
            id: EventTypeId(id),
            kind: kind.into(),
            unit: unit.into(),
            detail: detail.into(),
        };
        writer.append(event).unwrap();
    }
    let cells = writer
        .add_event_counters(ThreadId(2), rows.len() as u32)
        .unwrap();
    for (cell, (name, event, count, value)) in cells.iter().zip(rows) {
        cell.claim(ids[name], EventTypeId(*event));
        for number in 0..*count {
            cell.count_event(if number == 0 { *value } else { 0 });
        }
        if *count == 0 {
            cell.value
                .store(value.to_le(), std::sync::atomic::Ordering::Relaxed);
        }
    }
    if millis > 0 {
        let key = "run.millis".into();
        writer.append(StatRecord { key, value: millis }).unwrap();
        writer.append(EndRecord).unwrap();
    }
    writer.close().unwrap();
    ids
}

const MONITOR: &str = "Ljava/lang/Object; (enter)";
const LATCH: &str = "Ljava/util/concurrent/CountDownLatch$Sync; (park)";
const LOCK: &str = "Ljava/util/concurrent/locks/ReentrantLock$NonfairSync; (park)";

fn lock_types(ids: &Ids) -> Vec<(&'static str, &'static str, String)> {
    let holder = |wait, name| lock_holder_detail(wait, ids[&name]);
    vec![
        ("lock", "ns", MONITOR.into()),
        ("lock", "ns", LATCH.into()),
        ("lock", "ns", LOCK.into()),
        ("lock", "ns", "Ljava/lang/Object; (wait)".into()),
        ("lock-holder", "ns", holder(MONITOR, 'A')),
        ("lock-holder", "ns", holder(LOCK, 'A')),
        ("lock-holder", "ns", holder(MONITOR, 'C')),
    ]
}

#[test]
fn pairs_have_the_waiting_context_and_the_holder() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.lucce");
    let rows = [
        ('A', 1, 5, 700),
        ('C', 1, 2, 90),
        ('A', 2, 9, 9_000),
        ('A', 3, 3, 60),
        ('A', 4, 1, 4_000),
        ('B', 5, 4, 500),
        ('B', 6, 1, 20),
        ('F', 7, 1, 80),
        // The same pair, in another counter.
        ('B', 5, 1, 100),
    ];
    let ids = write_log(&path, lock_types, &rows, 5_000);
    let profile = Profile::open(&path).unwrap();
    let pairs = list_lock_pairs(&profile).unwrap();
    let stack = |id: ContextId| profile.decode_trace(id).unwrap().stack;
    let found: Vec<_> = pairs
        .pairs
        .iter()
        .map(|pair| {
            (
                &*pair.lock,
                pair.waiting.stack,
                pair.holder.stack,
                pair.waits,
                pair.held_ns,
            )
        })
        .collect();
    let [a, b, c, f] = ['A', 'B', 'C', 'F'].map(|name| stack(ids[&name]));
    let lock = "java.util.concurrent.locks.ReentrantLock$NonfairSync";
    assert_eq!(
        found,
        [
            ("java.lang.Object", a, b, 5, 600),
            ("java.lang.Object", c, f, 1, 80),
            (lock, a, b, 1, 20),
        ]
    );
    // A latch has no owner, and who waits for a notification has given its monitor up.
    assert_eq!((pairs.waits, pairs.waited_ns), (10, 850));
    assert_eq!((pairs.known, pairs.unknown()), (7, 3));
    assert_eq!(pairs.main_holder("java.lang.Object"), pairs.pairs.first());
    // They are no events.
    let kinds = profile.counted_kinds();
    let kinds: BTreeMap<_, _> = kinds
        .into_iter()
        .map(|kind| (kind.name, kind.count))
        .collect();
    assert_eq!(kinds.get("lock"), Some(&20));
    assert!(!kinds.contains_key("lock-holder"));
}

fn thread_types(_: &Ids) -> Vec<(&'static str, &'static str, String)> {
    vec![
        ("thread", "", String::new()),
        ("thread-alive", "", String::new()),
        ("thread-alive", "", "(clock)".into()),
    ]
}

#[test]
fn living_threads_have_ages() {
    let start = HEADER.start / 1_000_000;
    let rows = [
        ('A', 1, 5, 0),
        ('F', 1, 1, 0),
        ('A', 2, 1, start + 1_000),
        ('A', 2, 1, start + 3_000),
        // This thread has ended.
        ('A', 2, 0, start + 500),
        ('A', 3, 1, start + 3_500),
    ];
    for (millis, oldest) in [(5_000, 4_000), (0, 2_500)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.lucce");
        let ids = write_log(&path, thread_types, &rows, millis);
        let profile = Profile::open(&path).unwrap();
        let threads = list_started_threads(&profile).unwrap().unwrap();
        let found: Vec<_> = threads
            .rows
            .iter()
            .map(|row| {
                (
                    row.start.stack,
                    row.started,
                    row.alive,
                    row.ended(),
                    row.oldest_ms,
                )
            })
            .collect();
        let [a, f] = ['A', 'F'].map(|name| profile.decode_trace(ids[&name]).unwrap().stack);
        assert_eq!(found, [(a, 5, 2, 3, Some(oldest)), (f, 1, 0, 1, None)]);
    }
}

fn memory_types(_: &Ids) -> Vec<(&'static str, &'static str, String)> {
    vec![
        ("native", "bytes", "(Unsafe)".into()),
        ("native", "bytes", "(malloc)".into()),
        ("native-live", "bytes", "(Unsafe)".into()),
        ("native-live", "bytes", "(malloc)".into()),
        ("native-oldest", "", "(Unsafe)".into()),
        ("native-oldest", "", "(clock)".into()),
    ]
}

#[test]
fn living_memory_has_sums_and_ages() {
    let start = HEADER.start / 1_000_000;
    let rows = [
        ('A', 1, 5, 700),
        // In another thread.
        ('A', 1, 1, 100),
        ('A', 2, 3, 90),
        ('F', 1, 2, 4_000),
        ('A', 3, 2, 200),
        ('A', 4, 3, 90),
        // All are released.
        ('F', 3, 0, 0),
        ('A', 5, 1, start + 1_000),
        ('F', 5, 0, start + 10),
        ('A', 6, 1, start + 3_500),
    ];
    for (millis, oldest) in [(5_000, 4_000), (0, 2_500)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.lucce");
        let ids = write_log(&path, memory_types, &rows, millis);
        let profile = Profile::open(&path).unwrap();
        let memory = list_living_memory(&profile).unwrap().unwrap();
        let sum = |blocks, bytes| BlockSum { blocks, bytes };
        let found: Vec<_> = memory
            .rows
            .iter()
            .map(|row| {
                (
                    row.allocation.stack,
                    &*row.how,
                    row.allocated,
                    row.living,
                    row.oldest_ms,
                )
            })
            .collect();
        let [a, f] = ['A', 'F'].map(|name| profile.decode_trace(ids[&name]).unwrap().stack);
        assert_eq!(
            found,
            [
                (a, "(Unsafe)", sum(6, 800), sum(2, 200), Some(oldest)),
                (a, "(malloc)", sum(3, 90), sum(3, 90), None),
                (f, "(Unsafe)", sum(2, 4_000), sum(0, 0), None),
            ]
        );
        assert_eq!(memory.unlisted, sum(0, 0));
        // What lives is no event.
        let kinds = profile.counted_kinds();
        let counts: Vec<_> = kinds.iter().map(|kind| (&*kind.name, kind.count)).collect();
        assert!(counts.contains(&("native", 11)), "{counts:?}");
        assert!(counts.iter().all(|(name, _)| !name.starts_with("native-")));
    }
}

fn class_types(_: &Ids) -> Vec<(&'static str, &'static str, String)> {
    vec![
        ("class", "bytes", "La/Loader; (loaded)".into()),
        ("class", "bytes", "La/Loader; (generated)".into()),
        ("class", "bytes", "(hidden)".into()),
        ("class-unload", "bytes", "La/Loader; (loaded)".into()),
        ("class-loader", "", "La/Loader;".into()),
        ("class-loader-unload", "", "La/Loader;".into()),
    ]
}

#[test]
fn classes_are_listed_by_context_and_loader() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.lucce");
    let rows = [
        ('A', 1, 30, 9_000),
        ('A', 2, 5, 500),
        ('A', 3, 7, 0),
        ('F', 1, 2, 40),
        ('A', 4, 20, 6_000),
        ('A', 5, 10, 0),
        ('A', 6, 8, 0),
        // The same class and context, in another counter.
        ('A', 1, 10, 3_000),
    ];
    let ids = write_log(&path, class_types, &rows, 5_000);
    let profile = Profile::open(&path).unwrap();
    let classes = list_defined_classes(&profile).unwrap();
    let [a, f] = ['A', 'F'].map(|name| profile.decode_trace(ids[&name]).unwrap().stack);
    let found: Vec<_> = classes
        .iter()
        .map(|row| (row.definition.stack, &*row.loader, row.totals.defined))
        .collect();
    let expected = [
        (a, "a.Loader", 45),
        (a, "boot loader", 7),
        (f, "a.Loader", 2),
    ];
    assert_eq!(found, expected);
    let totals = ClassTotals {
        defined: 45,
        generated: 5,
        hidden: 0,
        bytes: 12_500,
        sized: 45,
        unloaded: 20,
        unloaded_bytes: 6_000,
        unloaded_sized: 20,
        loaders: 10,
        unloaded_loaders: 8,
    };
    assert_eq!(classes[0].totals, totals);
    assert_eq!(
        (totals.alive(), totals.alive_bytes(), totals.loaders_alive()),
        (25, 6_500, 2)
    );
    assert_eq!(totals.alive_sized(), 25);
    assert_eq!(totals.estimate_metaspace(), 6_500 + 25 * 1_130);
    // Nothing is known of the size of hidden classes.
    let hidden = &classes[1].totals;
    assert_eq!(
        (
            hidden.alive(),
            hidden.alive_sized(),
            hidden.estimate_metaspace()
        ),
        (7, 0, 0)
    );
    let all = sum_classes(&classes);
    assert_eq!((all.defined, all.hidden, all.bytes), (54, 7, 12_540));
}

fn time_types(_: &Ids) -> Vec<(&'static str, &'static str, String)> {
    vec![
        ("time", "ns", "from 512 ns".into()),
        ("time", "ns", "from 4.10 us".into()),
        ("time", "ns", "from 4.10 us, threw".into()),
        ("time-longest", "ns", String::new()),
    ]
}

#[test]
fn times_are_listed_by_method() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.lucce");
    // Types occur in any order.
    let rows = [
        ('A', 2, 2, 9_000),
        ('A', 1, 3, 2_000),
        ('A', 3, 1, 5_000),
        ('A', 4, 1, 5_000),
        ('A', 1, 1, 900),
    ];
    let ids = write_log(&path, time_types, &rows, 5_000);
    let profile = Profile::open(&path).unwrap();
    let method = profile.decode_trace(ids[&'A']).unwrap().frames[0].qualified_method();
    let times = list_method_times(&profile).unwrap();
    assert_eq!(times.len(), 1);
    assert_eq!(times[0].method, method);
    assert_eq!(
        (times[0].calls, times[0].total_ns, times[0].longest_ns),
        (7, 16_900, 5_000)
    );
    let bins = [
        ("from 512 ns", 4),
        ("from 4.10 us", 2),
        ("from 4.10 us, threw", 1),
    ];
    assert_eq!(
        times[0].histogram,
        bins.map(|(from, calls)| (from.to_owned(), calls))
    );
}

#[test]
fn a_log_without_living_threads_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.lucce");
    lucce_testkit::started(&path);
    let profile = Profile::open(&path).unwrap();
    assert_eq!(list_started_threads(&profile).unwrap(), None);
    assert_eq!(list_living_memory(&profile).unwrap(), None);
}
