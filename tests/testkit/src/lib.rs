//! Logs as an agent would write them: a small program, its contexts numbered by the real encoder.

pub mod calls;
pub mod deep;
pub mod fuzz;
pub mod hostile;
pub mod leaks;
pub mod mixed;
pub mod open;
pub mod programs;
pub mod random;
pub mod stream;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use lucce_callgraph::{ContextEncoder, ContextId, ContextLayout, EncodingPolicy, MethodId, SiteId};
use lucce_tracelog::*;

pub const MAIN: MethodId = MethodId(1);
pub const WORK: MethodId = MethodId(2);
pub const STRING: MethodId = MethodId(3);
pub const MAKE: MethodId = MethodId(4);
pub const NATIVE: MethodId = MethodId(5);

/// The sites of the program: id, method, bci, what.
fn sites() -> Vec<SiteRecord<'static>> {
    let site = |id, method, bci, what| SiteRecord {
        id: SiteId(id),
        method,
        bci,
        line: None,
        kind: what,
    };
    vec![
        site(10, MAIN, 4, SiteKind::Call),
        site(11, MAIN, 9, SiteKind::Call),
        site(20, WORK, 3, SiteKind::New("Ljava/lang/String;".into())),
        site(21, WORK, 8, SiteKind::Array("[B".into())),
        site(22, WORK, 12, SiteKind::Call),
        site(23, WORK, 15, SiteKind::Call),
        site(24, WORK, 18, SiteKind::Current),
        site(40, MAKE, 2, SiteKind::New("Lapp/Gen$Node;".into())),
        SiteRecord {
            line: Some(-2),
            ..site(50, NATIVE, -1, SiteKind::Native)
        },
    ]
}

/// A path from a thread's entry: the first method, then (site, callee), then the event's site.
pub struct Route {
    pub head: MethodId,
    pub calls: Vec<(u32, MethodId)>,
    pub event: u32,
}

fn path(head: MethodId, calls: &[(u32, MethodId)], event: u32) -> Route {
    Route {
        head,
        calls: calls.to_vec(),
        event,
    }
}

/// The contexts of the program, by the letter that the tests give them.
pub fn paths() -> BTreeMap<char, Route> {
    let mut deep = vec![(10, WORK)];
    deep.extend([(23, WORK); 30]);
    BTreeMap::from([
        ('A', path(MAIN, &[(10, WORK)], 20)),
        ('B', path(MAIN, &[(11, WORK)], 20)),
        ('C', path(MAIN, &[(10, WORK)], 21)),
        ('D', path(NATIVE, &[(50, WORK), (22, MAKE)], 40)),
        ('E', path(MAIN, &deep, 21)),
        ('F', path(MAIN, &[(10, WORK)], 24)),
    ])
}

pub type Ids = BTreeMap<char, ContextId>;

pub const LAYOUT: ContextLayout = ContextLayout::new(4, 8, 16);

pub const HEADER: LogHeader = LogHeader {
    version_bits: 4,
    anchor_bits: 8,
    call_bits: 16,
    pid: 1234,
    start: 1_763_730_000_000_000_000,
    run: RunId::new(0x0123_4567_89ab_cdef),
};

pub fn writer(path: &Path) -> LogWriter {
    // Fixtures are written again; a log that is there is never replaced.
    let _ = std::fs::remove_file(path);
    LogWriter::create(path, &HEADER).unwrap()
}

pub fn code(writer: &mut LogWriter) {
    code_below(writer, 0);
}

/// The program with so many more lines on top of its source.
fn code_below(writer: &mut LogWriter, more: u16) {
    let meta = |key, value| MetaRecord { key, value };
    writer
        .append(meta("jvm".into(), "OpenJDK 17.0.21".into()))
        .unwrap();
    writer
        .append(meta("command".into(), "app.Main --fast".into()))
        .unwrap();
    for (id, name, file) in [
        (1, "app.Main", Some("Main.java")),
        (2, "java.lang.String", Some("String.java")),
        (3, "app.Gen", None),
        (4, "app.Natives", Some("Natives.java")),
    ] {
        let source_file = file.map(Into::into);
        let class = ClassRecord {
            id: ClassId(id),
            // 0: the boot loader.
            loader: LoaderId(if name.starts_with("java.") { 0 } else { 2 }),
            name: name.into(),
            source_file,
        };
        writer.append(class).unwrap();
    }
    let main = [(0, 4), (4, 5), (9, 6)].map(|(at, line)| (at, line + more));
    method(writer, MAIN, 1, "main", 9, &main);
    let work = [(0, 20), (3, 21), (8, 22), (12, 23), (15, 24)];
    let work = work.map(|(at, line)| (at, line + more));
    method(writer, WORK, 1, "work", 8, &work);
    method(writer, STRING, 2, "<init>", 1, &[(0, 230)]);
    method(writer, MAKE, 3, "make", 8, &[]);
    method(writer, NATIVE, 4, "run", 0x108, &[]);
    sites()
        .into_iter()
        .for_each(|site| writer.append(site).unwrap());
    writer
        .append(SiteSize {
            site: SiteId(20),
            bytes: 24,
        })
        .unwrap();
    writer
        .append(SiteSize {
            site: SiteId(40),
            bytes: 16,
        })
        .unwrap();
    for (id, name, is_virtual) in [(1, "main", false), (2, "worker-1", true)] {
        writer
            .append(ThreadRecord {
                id: ThreadId(id),
                name: name.into(),
                is_virtual,
            })
            .unwrap();
    }
}

fn method(
    w: &mut LogWriter,
    id: MethodId,
    class: u32,
    name: &str,
    access: u16,
    lines: &[(u16, u16)],
) {
    let method = MethodRecord {
        id,
        class: ClassId(class),
        name: name.into(),
        descriptor: "()V".into(),
        access,
        lines: lines.into(),
    };
    w.append(method).unwrap();
}

/// Numbers the program's contexts; what they need is in the log then.
pub fn number(writer: LogWriter, policy: EncodingPolicy) -> (LogWriter, Ids) {
    let encoder = ContextEncoder::new(LAYOUT, policy, Lent(Some(writer)));
    let number = |path: &Route| {
        let (mut at, mut caller) = (encoder.root_context(path.head), path.head);
        for &(site, callee) in &path.calls {
            at = encoder.encode_call(at, SiteId(site), caller, callee);
            caller = callee;
        }
        encoder.encode_event(at, SiteId(path.event), caller)
    };
    let ids = paths()
        .iter()
        .map(|(name, path)| (*name, number(path)))
        .collect();
    let writer = encoder.with_journal(|lent| lent.0.take().unwrap());
    (writer, ids)
}

struct Lent(Option<LogWriter>);

impl lucce_callgraph::GraphJournal for Lent {
    fn append_change(
        &mut self,
        change: lucce_callgraph::GraphChange,
    ) -> Result<(), lucce_callgraph::JournalError> {
        lucce_callgraph::GraphJournal::append_change(self.0.as_mut().unwrap(), change)
    }
}

fn count(counters: &CounterBlock, events: &[(ContextId, u64, u64)]) {
    for (cell, &(id, count, bytes)) in counters.iter().zip(events) {
        cell.claim(id);
        (0..count).for_each(|_| cell.count_event(bytes));
    }
}

fn events([first, second]: [CounterBlock; 2], ids: &Ids) {
    let main = [
        (ids[&'A'], 100, 0),
        (ids[&'B'], 5, 0),
        (ids[&'C'], 10, 4096),
        (ids[&'E'], 1, 56),
    ];
    count(&first, &main);
    count(&second, &[(ids[&'B'], 7, 0), (ids[&'D'], 1, 0)]);
}

fn stat(writer: &mut LogWriter, key: &'static str, value: u64) {
    writer
        .append(StatRecord {
            key: key.into(),
            value,
        })
        .unwrap();
}

/// A run that ended by itself.
pub fn sample(path: &Path) -> Ids {
    let (mut writer, ids) = running(path);
    stat(&mut writer, "events.recorded", 124);
    stat(&mut writer, "classes.rewritten", 4);
    stat(&mut writer, "verify.compared", 1000);
    stat(&mut writer, "verify.skipped.hidden", 2);
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
    ids
}

/// A run that was started with these options and counted nothing.
pub fn without_events(path: &Path, options: &'static str) {
    let mut writer = writer(path);
    code(&mut writer);
    let options = MetaRecord {
        key: "options".into(),
        value: options.into(),
    };
    writer.append(options).unwrap();
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
}

/// A run in which two methods that differ in their parameters only made 10 bytes and 3.
pub fn overloaded(path: &Path) {
    let mut writer = writer(path);
    let counters = writer.add_counters(ThreadId(1), 6).unwrap();
    code(&mut writer);
    let other = MethodId(6);
    let method = MethodRecord {
        id: other,
        class: ClassId(1),
        name: "work".into(),
        descriptor: "(I)V".into(),
        access: 8,
        lines: [(0, 40)][..].into(),
    };
    writer.append(method).unwrap();
    let array = SiteRecord {
        id: SiteId(60),
        method: other,
        bci: 0,
        line: None,
        kind: SiteKind::Array("[B".into()),
    };
    writer.append(array).unwrap();
    let encoder = ContextEncoder::new(LAYOUT, EncodingPolicy::LUCCE, Lent(Some(writer)));
    let number = |(callee, site)| {
        let at = encoder.encode_call(encoder.root_context(MAIN), SiteId(10), MAIN, callee);
        encoder.encode_event(at, SiteId(site), callee)
    };
    let ids = [(WORK, 21), (other, 60)].map(number);
    let mut writer = encoder.with_journal(|lent| lent.0.take().unwrap());
    count(&counters, &[(ids[0], 1, 16), (ids[1], 1, 24)]);
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
}

/// A run that was killed: its log was not closed.
pub fn running(path: &Path) -> (LogWriter, Ids) {
    let mut writer = writer(path);
    // First, so that the records are the log's end and the file stays small.
    let counters = [1, 2].map(|thread| writer.add_counters(ThreadId(thread), 6).unwrap());
    code(&mut writer);
    let (writer, ids) = number(writer, EncodingPolicy::LUCCE);
    events(counters, &ids);
    (writer, ids)
}

/// The sample of a source with one more line on top, where one context has twice as much.
pub fn moved(path: &Path) -> Ids {
    let mut writer = writer(path);
    let [first, second] = [1, 2].map(|thread| writer.add_counters(ThreadId(thread), 6).unwrap());
    code_below(&mut writer, 1);
    let (mut writer, ids) = number(writer, EncodingPolicy::LUCCE);
    count(&first, &[(ids[&'C'], 10, 4096)]);
    events([second, writer.add_counters(ThreadId(2), 6).unwrap()], &ids);
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
    ids
}

/// The sample, with its counts estimated from samples.
pub fn sampled(path: &Path) -> Ids {
    noted(path, &[("sampled.bytes", "65536")])
}

/// The sample, in which counting was stopped for a while.
pub fn interrupted(path: &Path) -> Ids {
    let reason = "counting was stopped (lucce ctl stop)";
    noted(path, &[("coverage.none", reason)])
}

/// The sample of another program on another JVM.
pub fn other_program(path: &Path) -> Ids {
    noted(
        path,
        &[("command", "bin/other.jar 3"), ("jvm", "OpenJDK 21.0.8")],
    )
}

/// The sample, with more metadata of the run.
fn noted(path: &Path, notes: &[(&'static str, &'static str)]) -> Ids {
    let (mut writer, ids) = running(path);
    for (key, value) in notes {
        let (key, value) = ((*key).into(), (*value).into());
        writer.append(MetaRecord { key, value }).unwrap();
    }
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
    ids
}

/// The sample, with estimated arrays of 4,096 bytes on the heap, from one sample every 65,536 bytes.
pub fn heap_sampled(path: &Path, objects: u64) {
    let (mut writer, ids) = running(path);
    let cells = writer.add_event_counters(ThreadId(1), 1).unwrap();
    let (key, value) = ("heap.interval".into(), "65536".into());
    writer.append(MetaRecord { key, value }).unwrap();
    let event = EventType {
        id: EventTypeId(1),
        kind: "heap".into(),
        unit: "bytes".into(),
        detail: "[B".into(),
    };
    writer.append(event).unwrap();
    cells[0].claim(ids[&'C'], EventTypeId(1));
    (0..objects).for_each(|_| cells[0].count_event(4096));
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
}

/// A run without allocations: events of the program's own alone, or none.
pub fn requests(path: &Path, requests: u64) -> Ids {
    let mut writer = writer(path);
    let cells = writer.add_event_counters(ThreadId(1), 1).unwrap();
    code(&mut writer);
    let event = EventType {
        id: EventTypeId(1),
        kind: "request".into(),
        unit: "".into(),
        detail: "".into(),
    };
    writer.append(event).unwrap();
    let (mut writer, ids) = number(writer, EncodingPolicy::LUCCE);
    if requests > 0 {
        cells[0].claim(ids[&'F'], EventTypeId(1));
    }
    (0..requests).for_each(|_| cells[0].count_event(0));
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
    ids
}

/// The sample, whose thread 2 counts under tags: keys and values.
pub fn tagged(path: &Path, tags: &[(&str, &str)]) -> Ids {
    let (mut writer, ids) = running(path);
    for (key, value) in tags {
        let tag = ThreadTag {
            thread: ThreadId(2),
            key: (*key).into(),
            value: (*value).into(),
        };
        writer.append(tag).unwrap();
    }
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
    ids
}

/// A run of this process that goes on: what its main thread counts is in the log at once. There are two of its counters, of the
/// contexts A and C.
pub fn live(path: &Path) -> (LogWriter, CounterBlock, Ids) {
    let _ = std::fs::remove_file(path);
    let pid = std::process::id();
    let mut writer = LogWriter::create(path, &LogHeader { pid, ..HEADER }).unwrap();
    let counters = writer.add_counters(ThreadId(1), 2).unwrap();
    code(&mut writer);
    let (writer, ids) = number(writer, EncodingPolicy::LUCCE);
    count(&counters, &[(ids[&'A'], 100, 0), (ids[&'C'], 10, 4096)]);
    (writer, counters, ids)
}

/// A run with verify=100 of many threads, a log that was full, and what was not compared.
pub fn partly_compared(path: &Path) {
    let (mut writer, _) = running(path);
    for (key, value) in [
        ("events.recorded", 124),
        ("verify.compared", 8_180),
        ("verify.skipped.dropped", 2),
        ("verify.skipped.frames_unknown", 0),
        ("verify.events", 818_265),
        ("verify.threads", 16_000),
        ("verify.threads_not_compared", 7_820),
    ] {
        stat(&mut writer, key, value);
    }
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
}

/// A run with verify=N that was killed: the file's own pages have the comparisons until then.
pub fn killed_while_comparing(path: &Path, has_comparisons: bool) {
    let mut writer = writer(path);
    let counters = [1, 2].map(|thread| writer.add_counters(ThreadId(thread), 6).unwrap());
    if has_comparisons {
        let keys = ["verify.compared", "verify.mismatches"];
        let totals = writer.add_totals(&keys).unwrap();
        (0..1234).for_each(|_| totals[0].increment());
    }
    code(&mut writer);
    let options = MetaRecord {
        key: "options".into(),
        value: "events=alloc,verify=100,out=killed.lucce".into(),
    };
    writer.append(options).unwrap();
    let (_, ids) = number(writer, EncodingPolicy::LUCCE);
    events(counters, &ids);
}

/// The log as version 2 of the format had it: without the run's id.
pub fn before_run_ids(log: &[u8]) -> Vec<u8> {
    let mut old = log.to_vec();
    old[8] = 2;
    rename_run(&mut old, 0);
    old
}

/// The log of another run.
pub fn rename_run(log: &mut [u8], run: u64) {
    log[32..40].copy_from_slice(&run.to_le_bytes());
    let sum = crc32fast::hash(&log[..60]);
    log[60..64].copy_from_slice(&sum.to_le_bytes());
}

/// As `gzip` writes it.
pub fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut gzip = lucce_export::GzipWriter::new(&mut packed).unwrap();
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap();
    packed
}

pub fn symbols(log: &Path, symbols: &Path) {
    let file = std::fs::File::create(symbols).unwrap();
    let source = lucce_decoder::LogSource::open(log).unwrap();
    source.write_symbols(file, false).unwrap();
}

/// What can go wrong in a run.
pub fn troubled(path: &Path) {
    let (mut writer, ids) = running(path);
    let skipped = |method: Option<&'static str>| SkippedRecord {
        class: "app.Huge".into(),
        method: method.map(Into::into),
        reason: "method larger than 64 KB".into(),
    };
    writer.append(skipped(None)).unwrap();
    writer.append(skipped(Some("m()V"))).unwrap();
    writer
        .append(WarningRecord {
            text: "disk full".into(),
        })
        .unwrap();
    writer
        .append(MismatchRecord {
            id: ids[&'A'],
            at: 77,
            expected: "\tat app.Main.work(Main.java:22)\n\tat app.Main.main(Main.java:5)\n".into(),
            decoded: "\tat app.Main.work(Main.java:21)\n\tat app.Main.main(Main.java:5)\n".into(),
        })
        .unwrap();
    stat(&mut writer, "events.lost", 12);
    stat(&mut writer, "agent.upcalls_lost", 3);
    stat(&mut writer, "verify.compared", 1000);
    stat(&mut writer, "verify.mismatches", 1);
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
}

/// The sample, with a counter's number that nothing explains.
pub fn overwritten(path: &Path) {
    overwrite_counter(path, 0, 0x0abc_def1);
}

/// The sample, with a counter that cannot have counted so much.
pub fn overcounted(path: &Path) {
    overwrite_counter(path, 8, 0xa5a5_a5a5_a5a5_a5a5);
}

/// Changes the second cell of the first thread.
fn overwrite_counter(path: &Path, field: usize, value: u64) {
    sample(path);
    let mut bytes = std::fs::read(path).unwrap();
    let at = 64 + 64 + 24 + field;
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    std::fs::write(path, bytes).unwrap();
}

/// The sample's content, then a second block, of which a bit is wrong.
pub fn corrupt(path: &Path) {
    let (mut writer, _) = running(path);
    for _ in 0..3 {
        writer
            .append(WarningRecord {
                text: "x".repeat(40 << 10).into(),
            })
            .unwrap();
    }
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    mend(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

/// From the log that is corrupt to the one that was not, and back.
pub fn mend(corrupt: &mut [u8]) {
    let last = corrupt.len() - 1000;
    corrupt[last] ^= 1;
}

/// The sample with other kinds of events: locks by class, exceptions, and the program's own.
pub fn kinds(path: &Path) -> Ids {
    write_kinds(path, &[])
}

/// The sample with other kinds of events, and a counter of a type that nothing explains.
pub fn untyped(path: &Path) -> Ids {
    write_kinds(path, &[('A', 9, 1)])
}

/// Context, type, value: an event each.
fn write_kinds(path: &Path, more: &[(char, u32, u64)]) -> Ids {
    let (mut writer, ids) = running(path);
    let cells = writer.add_event_counters(ThreadId(2), 8).unwrap();
    for (id, kind, unit, detail) in [
        (1, "lock", "ns", "Ljava/lang/Object;"),
        (2, "lock", "ns", "Lapp/Gen$Node;"),
        (3, "exception", "", "Ljava/io/IOException; caught"),
        (4, "cache miss", "", ""),
        (5, "alloc", "bytes", "[I"),
    ] {
        let event = EventType {
            id: EventTypeId(id),
            kind: kind.into(),
            unit: unit.into(),
            detail: detail.into(),
        };
        writer.append(event).unwrap();
    }
    let events = [
        ('A', 1, 1_500),
        ('A', 2, 20_000),
        ('A', 1, 2_500),
        ('D', 1, 1),
        ('B', 3, 0),
        ('F', 4, 7),
        ('F', 4, 0),
        ('F', 5, 48),
    ];
    for &(name, event, value) in events.iter().chain(more) {
        let is_its = |cell: &&EventCounter| cell.id() == ids[&name] && cell.event_type().0 == event;
        let free = || cells.iter().find(|cell| cell.id() == ContextId::UNKNOWN);
        let cell = cells.iter().find(is_its).or_else(free).unwrap();
        if cell.id() == ContextId::UNKNOWN {
            cell.claim(ids[&name], EventTypeId(event));
        }
        cell.count_event(value);
    }
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
    ids
}

/// The patterns of the requests of [`received`].
pub const RECEIVED: [&str; 2] = ["GET /orders/{id}", "POST /orders"];

/// The sample, and three threads that work for requests: allocations, waits for locks, exceptions and the requests themselves.
///
/// In sum, `GET /orders/{id}` came 5 times, with 4 allocations of 360 bytes, 3 waits of 2,500 ns and 4 exceptions; `POST /orders`
/// came once, with 7 allocations of 112 bytes and 1 exception.
pub fn received(path: &Path) -> Ids {
    let (mut writer, ids) = running(path);
    for (id, kind, unit) in [(1, "lock", "ns"), (2, "exception", ""), (3, "request", "")] {
        let event = EventType {
            id: EventTypeId(id),
            kind: kind.into(),
            unit: unit.into(),
            detail: "".into(),
        };
        writer.append(event).unwrap();
    }
    let [get, post] = RECEIVED;
    let threads = [
        (
            3,
            get,
            Some("a"),
            (3, 104),
            [(1, 1000, 2), (2, 0, 4), (3, 0, 2)],
        ),
        (4, get, None, (1, 48), [(1, 500, 1), (2, 0, 0), (3, 0, 3)]),
        (
            5,
            post,
            Some("b"),
            (7, 16),
            [(1, 0, 0), (2, 0, 1), (3, 0, 1)],
        ),
    ];
    for (thread, request, tenant, (allocations, bytes), events) in threads {
        let thread = ThreadId(thread);
        let counters = writer.add_counters(thread, 1).unwrap();
        count(&counters, &[(ids[&'C'], allocations, bytes)]);
        let cells = writer.add_event_counters(thread, 3).unwrap();
        for (cell, (event, value, times)) in cells.iter().zip(events) {
            if times > 0 {
                cell.claim(ids[&'A'], EventTypeId(event));
            }
            (0..times).for_each(|_| cell.count_event(value));
        }
        let tenant = tenant.map(|tenant| ("tenant", tenant));
        for (key, value) in [("request", request)].into_iter().chain(tenant) {
            let (key, value) = (key.into(), value.into());
            writer.append(ThreadTag { thread, key, value }).unwrap();
        }
    }
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
    ids
}

/// The sample's contexts, where thread 2 was started in context F, and thread 1 by C or E.
pub fn started(path: &Path) -> Ids {
    let (mut writer, ids) = running(path);
    for (thread, name) in [(2, 'F'), (2, 'F'), (1, 'C'), (1, 'E')] {
        let (thread, context) = (ThreadId(thread), ids[&name]);
        writer.append(ThreadOrigin { thread, context }).unwrap();
    }
    let cells = writer.add_event_counters(ThreadId(1), 1).unwrap();
    let event = EventType {
        id: EventTypeId(1),
        kind: "thread".into(),
        unit: "".into(),
        detail: "".into(),
    };
    writer.append(event).unwrap();
    cells[0].claim(ids[&'F'], EventTypeId(1));
    cells[0].count_event(0);
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
    ids
}
