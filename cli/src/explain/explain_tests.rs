//! Each detector with runs that it must report, and with near misses that it must not.

use lucce_contentid::StackId;
use lucce_decoder::{CodeOrigin, ContextId, LockPair, LockPairs, StackFrame, StackTrace};

use super::allocation_rules::find_wasteful_allocations;
use super::detectors::DETECTORS;
use super::finding::Finding;
use super::prepared_run::{EventSum, LeakedObjects, PathIndex, PreparedRun, RunContext};

/// A row of a run: frames from the outermost one, kind, type, count and value.
struct TestRow {
    frames: Vec<StackFrame>,
    kind: &'static str,
    detail: &'static str,
    count: u64,
    value: u64,
}

/// A frame from `own:a.b.C.m:12`, `lib:…` or `jdk:…`.
fn frame(text: &str) -> StackFrame {
    let parts: Vec<&str> = text.split(':').collect();
    let [origin, name, line] = parts[..] else {
        panic!("{text}");
    };
    let (class, method) = name.rsplit_once('.').unwrap();
    StackFrame {
        class: class.into(),
        method: method.into(),
        file: Some("F.java".into()),
        line: line.parse().unwrap(),
        origin: match origin {
            "own" => CodeOrigin::Application,
            "lib" => CodeOrigin::Library,
            _ => CodeOrigin::Jdk,
        },
    }
}

fn row(
    kind: &'static str,
    detail: &'static str,
    (count, value): (u64, u64),
    frames: &[&str],
) -> TestRow {
    TestRow {
        frames: frames.iter().map(|text| frame(text)).collect(),
        kind,
        detail,
        count,
        value,
    }
}

fn prepare(rows: &[TestRow]) -> PreparedRun<'_> {
    let mut run = PreparedRun::default();
    for row in rows {
        let path = add_path(&mut run, &row.frames);
        run.add_recorded_kind(row.kind);
        run.add_context(RunContext {
            path,
            kind: row.kind,
            detail: row.detail,
            sum: EventSum {
                count: row.count,
                value: row.value,
            },
        });
    }
    run
}

fn add_path<'f>(run: &mut PreparedRun<'f>, frames: &'f [StackFrame]) -> PathIndex {
    let mut path = None;
    for frame in frames {
        let number = run.add_frame(frame);
        path = Some(run.add_node(path, number));
    }
    path.unwrap()
}

/// The findings of one detector.
fn find<'f>(name: &str, run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let detector = DETECTORS.iter().find(|detector| detector.name == name);
    (detector.unwrap().find)(run)
}

fn counts(name: &str, rows: &[TestRow]) -> Vec<(u64, String)> {
    let run = prepare(rows);
    let findings = find(name, &run);
    let rows = findings.iter();
    rows.map(|finding| (finding.count, finding.place.to_string()))
        .collect()
}

const ENTRY: &str = "own:app.Page.show:5";
const LINE: &str = "own:app.Orders.total:9";
const ORM: &str = "lib:org.orm.Session.load:70";
const DRIVER: &str = "lib:org.db.jdbc.DbPreparedStatement.executeQuery:80";

fn at_line() -> String {
    frame(LINE).to_string()
}

fn runs(count: u64) -> TestRow {
    row("alloc", "app.View", (count, 16 * count), &[ENTRY])
}

fn queries(count: u64) -> TestRow {
    let frames = [ENTRY, LINE, ORM, DRIVER];
    row(
        "alloc",
        "org.db.jdbc.DbResultSet",
        (count, 72 * count),
        &frames,
    )
}

#[test]
fn queries_for_each_run_are_found() {
    let found = counts("n+1", &[runs(200), queries(4000)]);
    assert_eq!(found, [(4000, at_line())]);
    let rows = [runs(200), queries(4000)];
    let run = prepare(&rows);
    let [finding] = &find("n+1", &run)[..] else {
        panic!("one finding");
    };
    assert_eq!(
        finding.sentence,
        "4,000 queries for 200 runs of app.Page.show: 20.0 each"
    );
    assert!(
        finding
            .counted
            .starts_with("org.db.jdbc.DbResultSet below the line")
    );
    // 72 × 4,000 of 72 × 4,000 + 16 × 200 bytes.
    assert_eq!(finding.cost.text, "98.9% of the allocated bytes");
}

#[test]
fn few_queries_for_each_run_are_none() {
    assert_eq!(counts("n+1", &[runs(200), queries(799)]), []);
    assert_eq!(counts("n+1", &[runs(200), queries(800)]).len(), 1);
    // A job that runs nine times does its work.
    assert_eq!(counts("n+1", &[runs(9), queries(4000)]), []);
    // Without a driver's call, or of another package, it is some object of a library.
    let frames = [ENTRY, LINE, ORM];
    let other = row("alloc", "org.db.jdbc.DbResultSet", (4000, 4000), &frames);
    assert_eq!(counts("n+1", &[runs(200), other]), []);
    let frames = [ENTRY, LINE, ORM, DRIVER];
    let other = row("alloc", "org.orm.RowResultSet", (4000, 4000), &frames);
    assert_eq!(counts("n+1", &[runs(200), other]), []);
}

#[test]
fn the_query_of_another_line_counts_runs() {
    let frames = ["own:app.Page.show:5", "own:app.Orders.list:3", ORM, DRIVER];
    let first = row("alloc", "org.db.jdbc.DbResultSet", (50, 3600), &frames);
    let found = counts("n+1", &[first, queries(1000)]);
    assert_eq!(found, [(1000, at_line())]);
    assert_eq!(counts("n+1", &[queries(1000)]), [], "runs are unknown");
}

#[test]
fn http_calls_for_each_run_are_found() {
    let frames = [
        ENTRY,
        LINE,
        "jdk:jdk.internal.net.http.HttpClientImpl.sendAsync:90",
    ];
    let calls = row(
        "alloc",
        "jdk.internal.net.http.MultiExchange",
        (600, 9600),
        &frames,
    );
    let rows = [runs(100), calls];
    let run = prepare(&rows);
    let findings = find("n+1", &run);
    assert_eq!(
        findings[0].sentence,
        "600 HTTP calls for 100 runs of app.Page.show: 6.0 each"
    );
}

fn caught(count: u64, detail: &'static str, below: &[&str]) -> TestRow {
    let frames = [&[ENTRY, LINE], below].concat();
    row("exception-catch", detail, (count, 0), &frames)
}

/// What the VM reports of the same exceptions.
fn thrown(count: u64) -> TestRow {
    row("exception", "a.E (caught)", (count, 0), &[ENTRY, LINE])
}

const PARSE: &str = "jdk:java.lang.Long.parseLong:594";
const CAUGHT: &str = "java.lang.NumberFormatException at app.Orders.total:12";

#[test]
fn caught_exceptions_are_found() {
    let found = |row: TestRow| counts("exceptions", &[thrown(100), row]);
    assert_eq!(found(caught(100, CAUGHT, &[PARSE])), [(100, at_line())]);
    assert_eq!(found(caught(99, CAUGHT, &[PARSE])), []);
    let loads = ["jdk:java.lang.ClassLoader.loadClass:1"];
    assert_eq!(found(caught(100, CAUGHT, &loads)), []);
    let loader = "a.E dropped at java.lang.ClassLoader.loadClass:604";
    assert_eq!(found(caught(100, loader, &[])), []);
    // Own code catches what a library throws, or a library what own code throws.
    assert_eq!(found(caught(100, CAUGHT, &[ORM])).len(), 1);
    let above = "a.E at org.web.Dispatcher.handle:7";
    assert_eq!(found(caught(100, above, &[PARSE])).len(), 1);
    assert_eq!(found(caught(100, above, &[ORM])), []);
    // What is caught below the line is none of the program's.
    let below = "a.E at java.lang.Long.parseLong:600";
    assert_eq!(found(caught(100, below, &[PARSE])), []);
    let below = "a.E dropped at org.orm.Session.load:71";
    assert_eq!(found(caught(100, below, &[ORM, PARSE])), []);
}

#[test]
fn handlers_are_named() {
    let dropped = "java.lang.NumberFormatException dropped at app.Page.show:8";
    let rows = [
        runs(50),
        thrown(150),
        caught(50, CAUGHT, &[PARSE]),
        caught(100, dropped, &[PARSE]),
    ];
    let run = prepare(&rows);
    let [finding] = &find("exceptions", &run)[..] else {
        panic!("one finding");
    };
    assert_eq!(
        finding.sentence,
        "150 × java.lang.NumberFormatException thrown, caught and dropped at app.Page.show(F.java:8) and by 1 more \
         handler, 3.0 for each of 50 runs of app.Page.show"
    );
    let rows = [runs(50), thrown(100), caught(100, CAUGHT, &[PARSE])];
    let run = prepare(&rows);
    assert_eq!(
        find("exceptions", &run)[0].sentence,
        "100 × java.lang.NumberFormatException thrown, caught at app.Orders.total(F.java:12), 2.0 for each of 50 runs \
         of app.Page.show"
    );
}

#[test]
fn exceptions_are_counted_as_objects_without_the_kind() {
    const TYPE: &str = "java.lang.NumberFormatException";
    let made = |count, thrower| row("alloc", TYPE, (count, 40 * count), &[ENTRY, LINE, thrower]);
    // A stack trace has several pieces; they are bytes, and count nothing.
    let pieces = |count: u64| {
        let frames = [
            ENTRY,
            LINE,
            PARSE,
            "jdk:java.lang.NumberFormatException.<init>:3",
            "jdk:java.lang.Throwable.fillInStackTrace:-2",
        ];
        row("alloc", "java.lang.Object[]", (count, 10 * count), &frames)
    };
    let rows = [
        made(100, PARSE),
        pieces(400),
        row("alloc", "int[]", (1, 8000), &[ORM]),
    ];
    assert_eq!(counts("exceptions", &rows), [(100, at_line())]);
    // 40 × 100 and 10 × 400 of 16,000 bytes.
    let run = prepare(&rows);
    let cost = &find("exceptions", &run)[0].cost.text;
    assert_eq!(cost, "50.0% of the allocated bytes, for stack traces");
    assert_eq!(counts("exceptions", &[made(99, PARSE), pieces(400)]), []);
    assert_eq!(counts("exceptions", &[made(100, ORM)]), []);
    // The kind is there: it counts exactly, and nothing was caught.
    let rows = [made(100, PARSE), thrown(1)];
    assert_eq!(counts("exceptions", &rows), []);
}

#[test]
fn contended_locks_are_found() {
    let other = "own:app.Stock.left:20";
    let wait = |detail, (count, ms): (u64, u64), frames: &[&str]| {
        row("lock", detail, (count, ms * 1_000_000), frames)
    };
    let rows = [
        wait("app.Stock (enter)", (6, 30), &[ENTRY, LINE]),
        wait("app.Stock (enter)", (5, 20), &[ENTRY, other]),
    ];
    let run = prepare(&rows);
    let [finding] = &find("lock", &run)[..] else {
        panic!("one finding");
    };
    assert_eq!((finding.count, finding.place.to_string()), (11, at_line()));
    let both = format!(
        "11 waits for app.Stock: 50.0 ms in sum, also at {}",
        frame(other)
    );
    assert_eq!(finding.sentence, both);
    let lock = "jdk:java.util.concurrent.locks.ReentrantLock.lock:322";
    let reentrant = "java.util.concurrent.locks.ReentrantLock$NonfairSync (park)";
    assert_eq!(
        counts("lock", &[wait(reentrant, (10, 50), &[ENTRY, LINE, lock])]).len(),
        1
    );
    let queue = "jdk:java.util.concurrent.LinkedBlockingQueue.put:300";
    let deep = ["jdk:a.A.a:1", "jdk:a.A.b:1", "jdk:a.A.c:1", "jdk:a.A.d:1"];
    for near_miss in [
        wait("app.Stock (enter)", (10, 49), &[ENTRY, LINE]),
        wait("app.Stock (enter)", (9, 50), &[ENTRY, LINE]),
        wait("app.Stock (wait)", (10, 50), &[ENTRY, LINE]),
        wait("int[] (enter)", (10, 50), &[ENTRY, LINE]),
        wait("org.orm.Pool (enter)", (10, 50), &[ENTRY, LINE, ORM]),
        wait(reentrant, (10, 50), &[ENTRY, LINE, queue, lock]),
        wait(
            "java.lang.Object (enter)",
            (10, 50),
            &[&[ENTRY, LINE], &deep[..]].concat(),
        ),
    ] {
        assert_eq!(counts("lock", &[near_miss]), []);
    }
}

#[test]
fn leaks_are_found_below_own_code_only() {
    let own = [frame(ENTRY), frame(LINE)];
    let foreign = [frame(ORM)];
    let mut run = PreparedRun::default();
    for (frames, type_name, count) in [
        (&own[..], "byte[]", 7),
        (&foreign[..], "byte[]", 7),
        (&own[..], "com.acme.Entry", 5),
    ] {
        let path = add_path(&mut run, frames);
        run.add_leak(LeakedObjects {
            path,
            type_name,
            live: EventSum {
                count,
                value: 1000 * count,
            },
        });
    }
    let findings = find("leak", &run);
    let places: Vec<String> = findings
        .iter()
        .map(|finding| finding.place.to_string())
        .collect();
    assert_eq!(places, [at_line()]);
    assert_eq!(
        findings[0].sentence,
        "about 12 objects of com.acme.Entry and 1 more type live on, 12.0 kB, and ever more"
    );
}

#[test]
fn repeated_thread_starts_are_found() {
    let starts = |count| {
        row(
            "thread",
            "worker",
            (count, 0),
            &[ENTRY, LINE, "jdk:java.lang.Thread.start:1"],
        )
    };
    assert_eq!(counts("threads", &[starts(50)]), [(50, at_line())]);
    assert_eq!(counts("threads", &[starts(49)]), []);
}

/// Frames below the own line, type, count and bytes, and the words of the finding.
type RuleCase = (
    &'static [&'static str],
    &'static str,
    (u64, u64),
    &'static str,
);

#[test]
fn each_rule_of_allocations_has_a_threshold() {
    let cases: [RuleCase; 14] = [
        (
            &["jdk:java.util.regex.Pattern.compile:1"],
            "java.util.regex.Pattern",
            (100, 7200),
            "100 patterns compiled",
        ),
        (
            &["jdk:java.text.DateFormat.x:1"],
            "java.text.SimpleDateFormat",
            (100, 7200),
            "100 formats built",
        ),
        (
            &[],
            "com.google.gson.Gson",
            (100, 7200),
            "100 JSON mappers built",
        ),
        (
            &[],
            "java.util.concurrent.ThreadPoolExecutor",
            (100, 7200),
            "100 thread pools built",
        ),
        (
            &[
                "jdk:java.lang.String.format:1",
                "jdk:java.util.Formatter.parse:1",
            ],
            "java.util.ArrayList",
            (10, 2000),
            "String.format: 10",
        ),
        (
            &[
                "jdk:java.util.ArrayList.add:1",
                "jdk:java.util.ArrayList.grow:1",
                "jdk:java.util.Arrays.copyOf:1",
            ],
            "java.lang.Object[]",
            (10, 2000),
            "growing collections: 10",
        ),
        (
            &["jdk:java.lang.Integer.valueOf:1"],
            "java.lang.Integer",
            (10, 2000),
            "boxed numbers: 10",
        ),
        (
            &["jdk:java.util.ArrayList.iterator:1"],
            "java.util.ArrayList$Itr",
            (10, 2000),
            "iterators: 10",
        ),
        (
            &[],
            "app.Orders$$Lambda/0x1",
            (10, 2000),
            "capturing lambdas: 10",
        ),
        (
            &["jdk:java.math.BigDecimal.add:1"],
            "java.math.BigDecimal",
            (10, 2000),
            "BigDecimal and BigInteger: 10",
        ),
        (&[], "java.lang.Object[]", (10, 320), "argument arrays: 10"),
        (
            &["jdk:java.util.HashSet.<init>:1"],
            "java.util.HashMap",
            (200, 9600),
            "collections that stay empty: at least 200 of 200",
        ),
        (&[], "int[]", (200, 3200), "arrays without elements: 200"),
        (&[], "byte[]", (1, 100_000), "large arrays: 1"),
    ];
    for (below, detail, (count, value), words) in cases {
        let frames = [&[ENTRY, LINE], below].concat();
        let rest = |objects, bytes| row("alloc", "char[]", (objects, bytes), &[ORM]);
        // The rest makes the allocations exactly the share of the threshold: 2% of bytes or objects, 10% of bytes.
        let rows = |others: u64| {
            let (objects, bytes) = match words.starts_with("large") {
                true => (others, 9 * value * others),
                false => (49 * count * others, 49 * value * others),
            };
            [
                row("alloc", detail, (count, value), &frames),
                rest(objects, bytes),
            ]
        };
        let enough = rows(1);
        let run = prepare(&enough);
        let findings = find_wasteful_allocations(&run);
        let sentences: Vec<_> = findings.iter().map(|finding| &finding.sentence).collect();
        assert!(
            sentences.len() == 1 && sentences[0].starts_with(words),
            "{words}: {sentences:?}"
        );
        // Near misses: twice the rest, or one object less of those that are built; and a library in between.
        let small = match count {
            100 => [row("alloc", detail, (99, value), &frames), rest(1, 1)],
            _ => rows(2),
        };
        assert!(
            find_wasteful_allocations(&prepare(&small)).is_empty(),
            "{words}"
        );
        let foreign: Vec<&str> = [&[ENTRY, LINE, ORM], below].concat();
        let foreign = [row("alloc", detail, (count, value), &foreign)];
        assert!(
            find_wasteful_allocations(&prepare(&foreign)).is_empty(),
            "{words}"
        );
    }
}

#[test]
fn filled_collections_are_no_finding() {
    let list = |count| {
        row(
            "alloc",
            "java.util.ArrayList",
            (count, 24 * count),
            &[ENTRY, LINE],
        )
    };
    let storage = |count, maker| {
        let frames = [
            ENTRY,
            "own:app.Orders.add:3",
            "jdk:java.util.ArrayList.add:1",
            maker,
        ];
        row("alloc", "java.lang.Object[]", (count, 56 * count), &frames)
    };
    let grown = "jdk:java.util.ArrayList.grow:1";
    for (filled, finding) in [(0, Some(100)), (50, Some(50)), (51, None), (100, None)] {
        let found = counts("allocations", &[list(100), storage(filled, grown)]);
        let found = found.iter().map(|(count, _)| *count).next();
        assert_eq!(found, finding, "{filled} are filled");
    }
    // The storage of another class fills none.
    let frames = [
        ENTRY,
        "own:app.Orders.add:3",
        "jdk:java.util.ArrayDeque.<init>:1",
    ];
    let other = row("alloc", "java.lang.Object[]", (100, 8000), &frames);
    assert_eq!(counts("allocations", &[list(100), other]).len(), 1);
}

#[test]
fn the_first_storage_is_no_growth() {
    for (below, detail, mean, findings) in [
        (
            "jdk:java.util.ArrayList.grow:1",
            "java.lang.Object[]",
            56,
            0,
        ),
        (
            "jdk:java.util.HashMap.resize:1",
            "java.util.HashMap$Node[]",
            144,
            0,
        ),
        (
            "jdk:java.util.HashMap.resize:1",
            "java.util.HashMap$Node[]",
            145,
            1,
        ),
    ] {
        let rows = [row(
            "alloc",
            detail,
            (100, 100 * mean),
            &[ENTRY, LINE, below],
        )];
        let found = find_wasteful_allocations(&prepare(&rows)).len();
        assert_eq!(found, findings, "{below} {mean}");
    }
}

const DEBUG: &str = "lib:org.log.Logger.debug:3";

fn called(count: u64, frames: &[&str]) -> TestRow {
    row("call", "", (count, 0), frames)
}

#[test]
fn arguments_of_a_silent_logger_are_found() {
    let concat = "jdk:java.lang.StringConcatHelper.newArray:1";
    let arguments = row("alloc", "byte[]", (100, 2000), &[ENTRY, LINE, concat]);
    let rest = |bytes| row("alloc", "char[]", (1, bytes), &[ORM]);
    let rows = |calls, bytes| [called(calls, &[ENTRY, LINE, DEBUG]), rest(bytes)];
    let found = |others: [TestRow; 2]| {
        let rows =
            others
                .into_iter()
                .chain([row("alloc", "byte[]", (100, 2000), &[ENTRY, LINE, concat])]);
        counts("logging", &rows.collect::<Vec<_>>())
    };
    assert_eq!(found(rows(100, 98_000)), [(100, at_line())]);
    assert_eq!(found(rows(99, 98_000)), []);
    assert_eq!(found(rows(100, 98_001)), []);
    // It prints: two objects below the logger for a hundred calls.
    let prints = |count| row("alloc", "org.log.Entry", (count, 16), &[ENTRY, LINE, DEBUG]);
    for (count, findings) in [(1, 1), (2, 0)] {
        let call = called(100, &[ENTRY, LINE, DEBUG]);
        let rows = [
            call,
            prints(count),
            row("alloc", "byte[]", (100, 2000), &[ENTRY, LINE, concat]),
        ];
        assert_eq!(counts("logging", &rows).len(), findings);
    }
    // Another method, or a logger that a library calls.
    for frames in [
        vec![ENTRY, LINE, "lib:org.log.Logger.isDebugEnabled:3"],
        vec![ENTRY, LINE, ORM, DEBUG],
    ] {
        let rows = [
            called(100, &frames),
            row("alloc", "byte[]", (100, 2000), &[ENTRY, LINE, concat]),
        ];
        assert_eq!(counts("logging", &rows), []);
    }
    let rows = [called(100, &[ENTRY, LINE, DEBUG]), arguments];
    let run = prepare(&rows);
    assert_eq!(
        find("logging", &run)[0].sentence,
        "100 objects for 100 calls of org.log.Logger.debug that print nothing, below app.Page.show"
    );
}

#[test]
fn collections_of_the_heap_are_found() {
    let gc = "jdk:java.lang.System.gc:1900";
    assert_eq!(
        counts("gc", &[called(5, &[ENTRY, LINE, gc])]),
        [(5, at_line())]
    );
    assert_eq!(counts("gc", &[called(5, &[ENTRY, LINE, ORM, gc])]).len(), 1);
    assert_eq!(counts("gc", &[called(4, &[ENTRY, LINE, gc])]), []);
    assert_eq!(
        counts("gc", &[called(5, &[ENTRY, LINE, "jdk:a.System.gc:1"])]),
        []
    );
}

#[test]
fn generated_classes_are_found() {
    const DEFINER: &str = "java.lang.invoke.MethodHandles$Lookup$ClassDefiner";
    let define = "jdk:java.lang.invoke.MethodHandles$Lookup.defineHiddenClass:1";
    let defined = |count, below: &[&str]| {
        let frames = [&[ENTRY, LINE], below, &[define]].concat();
        row("alloc", DEFINER, (count, 32 * count), &frames)
    };
    assert_eq!(counts("classes", &[defined(100, &[])]), [(100, at_line())]);
    assert_eq!(counts("classes", &[defined(99, &[])]), []);
    // Each lambda is linked once, by its own trace.
    let linked = [defined(60, &["jdk:a.A.a:1"]), defined(60, &["jdk:a.A.a:2"])];
    assert_eq!(counts("classes", &linked), []);
    // A library generates at its start, or in each of many runs.
    assert_eq!(counts("classes", &[defined(100, &[ORM])]), []);
    assert_eq!(counts("classes", &[runs(9), defined(100, &[ORM])]), []);
    assert_eq!(
        counts("classes", &[runs(10), defined(100, &[ORM])]).len(),
        1
    );
    let loader = "jdk:java.lang.ClassLoader.defineClass:1";
    let calls = [
        called(100, &[ENTRY, LINE, loader]),
        called(100, &[ENTRY, LINE, loader, loader]),
    ];
    assert_eq!(counts("classes", &calls), [(100, at_line())]);
}

#[test]
fn classes_that_are_counted_say_what_lives() {
    const LOADER: &str = "app.PluginLoader (loaded)";
    const USUAL: &str = "jdk.internal.loader.ClassLoaders$AppClassLoader";
    let define = "jdk:java.lang.ClassLoader.defineClass1:1";
    let of_kind =
        |kind, detail, count| row(kind, detail, (count, 9 * count), &[ENTRY, LINE, define]);
    let loaders = |count| of_kind("class-loader", "app.PluginLoader", count);
    let defined = |detail, count| of_kind("class", detail, count);
    assert_eq!(
        counts("classes", &[defined(LOADER, 100), loaders(10)]),
        [(100, at_line())]
    );
    // Each of them is another class.
    assert_eq!(counts("classes", &[defined(LOADER, 100), loaders(9)]), []);
    let usual = format!("{USUAL} (loaded)");
    let usual: &str = usual.leak();
    assert_eq!(counts("classes", &[defined(usual, 500), loaders(10)]), []);
    let hidden = format!("{USUAL} (hidden)");
    let hidden: &str = hidden.leak();
    assert_eq!(counts("classes", &[defined(hidden, 99)]), []);
    let rows = [
        defined(hidden, 100),
        of_kind("class-unload", hidden, 30),
        // What the JDK makes for each class is not counted again.
        row(
            "alloc",
            "java.lang.reflect.ProxyGenerator",
            (100, 3200),
            &[ENTRY, LINE, define],
        ),
    ];
    let run = prepare(&rows);
    let found = find("classes", &run);
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].sentence,
        "100 hidden classes defined, below app.Page.show"
    );
    assert_eq!(
        found[0].cost.text,
        "100 classes to load, link and compile, 70 of them alive"
    );
}

fn pair(lock: &str, waiting: &str, holder: &str, ms: u64) -> LockPair {
    let trace = |text| StackTrace {
        id: ContextId::UNKNOWN,
        stack: StackId::EMPTY,
        allocated: None,
        frames: vec![frame(text)],
    };
    LockPair {
        lock: lock.into(),
        waiting: trace(waiting),
        holder: trace(holder),
        waits: 5,
        held_ns: ms * 1_000_000,
    }
}

#[test]
fn locks_of_one_class_are_told_apart_by_their_holders() {
    const OBJECT: &str = "java.lang.Object";
    let (other, holder) = ("own:app.Stock.left:20", "own:app.Stock.flush:4");
    let wait = |line| {
        let detail = "java.lang.Object (enter)";
        row("lock", detail, (10, 60_000_000), &[ENTRY, line])
    };
    let rows = [wait(LINE), wait(other)];
    // Without holders, nothing says that the lock is the same.
    assert_eq!(find("lock", &prepare(&rows)).len(), 2);
    let find_with = |pairs: Vec<LockPair>| {
        let mut run = prepare(&rows);
        run.set_lock_pairs(LockPairs {
            pairs,
            ..LockPairs::default()
        });
        let found = find("lock", &run).into_iter();
        let mut found: Vec<_> = found.map(|finding| finding.sentence).collect();
        found.sort_by_key(|sentence| !sentence.contains("held"));
        found
    };
    // Two locks: one has a holder.
    let found = find_with(vec![
        pair(OBJECT, LINE, holder, 50),
        pair("app.Other", other, "own:app.Stock.c:5", 90),
    ]);
    let waits = "10 waits for java.lang.Object: 60.0 ms in sum";
    let held = format!("{waits}, held at app.Stock.flush(F.java:4) for 50.0 ms");
    assert_eq!(found, [held, waits.to_owned()]);
    // One lock: both wait for one holder.
    let found = find_with(vec![
        pair(OBJECT, LINE, holder, 50),
        pair(OBJECT, other, holder, 40),
    ]);
    let [found] = &found[..] else {
        panic!("{found:?}");
    };
    assert!(
        found.starts_with("20 waits for java.lang.Object: 120.0 ms in sum, also at ")
            && found.ends_with(", held at app.Stock.flush(F.java:4) for 50.0 ms"),
        "{found}"
    );
}

#[test]
fn arrays_beyond_the_heap_were_thrown_away() {
    let rows = [row("alloc", "byte[]", (10, 10_000_000), &[ENTRY, LINE])];
    for (heap, words) in [
        (
            Some(4_000_000),
            " of 1.00 MB on average, 6.00 MB at least thrown away",
        ),
        (Some(10_000_000), "10 objects, arrays of 1.00 MB on average"),
        (None, "10 objects, arrays of 1.00 MB on average"),
    ] {
        let mut run = prepare(&rows);
        run.set_max_heap_bytes(heap);
        let sentence = &find("allocations", &run)[0].sentence;
        assert!(sentence.contains(words), "{sentence}");
    }
}

#[test]
fn arrays_deep_inside_the_jdk_are_none_of_the_programs() {
    let below = [
        "jdk:a.A.a:1",
        "jdk:a.A.b:1",
        "jdk:a.A.c:1",
        "jdk:a.A.d:1",
        "jdk:a.A.e:1",
    ];
    for (depth, findings) in [(4, 1), (5, 0)] {
        let frames = [&[ENTRY, LINE], &below[..depth]].concat();
        let rows = [row("alloc", "byte[]", (10, 1_000_000), &frames)];
        assert_eq!(find_wasteful_allocations(&prepare(&rows)).len(), findings);
    }
}

#[test]
fn the_jdk_s_own_work_is_like_a_library_s() {
    let problem = "a.Problem at org.web.Dispatcher.handle:7";
    let below = vec!["jdk:javac.Attr.visit:7"; 13];
    for (depth, findings) in [(12, 1), (13, 0)] {
        let rows = [thrown(100), caught(100, problem, &below[..depth])];
        assert_eq!(counts("exceptions", &rows).len(), findings);
    }
}

#[test]
fn a_call_counts_all_that_it_allocates() {
    let format = ["jdk:java.lang.String.format:1"];
    let deep = vec!["jdk:java.util.Formatter.parse:7"; 30];
    let frames = [&[ENTRY, LINE], &format[..], &deep[..]].concat();
    let rows = [row("alloc", "char[]", (10, 1000), &frames)];
    let run = prepare(&rows);
    let findings = find_wasteful_allocations(&run);
    assert_eq!(findings.len(), 1);
    assert!(
        findings[0]
            .sentence
            .starts_with("String.format: 10 objects")
    );
    // The JDK calls it deep inside its own work.
    let frames = [&[ENTRY, LINE], &deep[..], &format[..]].concat();
    let rows = [row("alloc", "char[]", (10, 1000), &frames)];
    assert!(find_wasteful_allocations(&prepare(&rows)).is_empty());
}
