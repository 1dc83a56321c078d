//! A small log with every kind of record, several blocks and counters.

use std::path::Path;

use lucce_callgraph::{
    Anchor, AnchorId, Base, ContextId, GraphChange, GraphNode, MethodId, SiteId, Transition,
    TransitionEffect, Version,
};
use lucce_tracelog::*;

pub fn write(path: &Path) {
    let header = LogHeader {
        version_bits: 12,
        anchor_bits: 20,
        call_bits: 32,
        pid: 1234,
        start: 1_763_730_000_000_000_000,
        run: RunId::new(0x0123_4567_89ab_cdef),
    };
    let mut writer = LogWriter::create(path, &header).unwrap();
    let counters = writer.add_counters(ThreadId(1), 3).unwrap();
    counters[0].claim(ContextId(1 << 52 | 1));
    counters[0].count_event(24);
    counters[2].claim(ContextId(1 << 52 | 2));
    counters[2].count_event(0);
    let totals = writer.add_totals(&["verify.compared"]).unwrap();
    totals[0].increment();
    let vm = writer.add_vm_counters(3).unwrap();
    vm[0].claim(ThreadId(0), false);
    vm[0].set_reading(48, 1_763_730_000_000_000_001);
    vm[2].claim(ThreadId(1), true);
    vm[2].set_reading(24, 1_763_730_000_000_000_002);
    code(&mut writer);
    let change = |writer: &mut LogWriter, change: GraphChange| writer.append(change).unwrap();
    graph(|c| change(&mut writer, c));
    run(&mut writer);
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
}

fn code(writer: &mut LogWriter) {
    let meta = |key, value| MetaRecord { key, value };
    writer
        .append(meta("jvm".into(), "OpenJDK 17".into()))
        .unwrap();
    writer
        .append(ClassRecord {
            id: ClassId(1),
            loader: LoaderId(0),
            name: "a.b.C".into(),
            source_file: Some("C.java".into()),
        })
        .unwrap();
    writer
        .append(MethodRecord {
            id: MethodId(1),
            class: ClassId(1),
            name: "main".into(),
            descriptor: "([Ljava/lang/String;)V".into(),
            access: 9,
            lines: vec![(0, 10), (8, 11), (20, 7)].into(),
        })
        .unwrap();
    for (id, line, what) in [
        (1, None, SiteKind::Call),
        (2, None, SiteKind::New("La/b/D;".into())),
        (3, Some(-1), SiteKind::Array("[I".into())),
        (4, Some(-2), SiteKind::Native),
        (5, None, SiteKind::Current),
        (6, Some(70_000), SiteKind::Other),
    ] {
        let site = SiteRecord {
            id: SiteId(id),
            method: MethodId(1),
            bci: id as i32 * 4,
            line,
            kind: what,
        };
        writer.append(site).unwrap();
    }
    writer
        .append(SiteSize {
            site: SiteId(2),
            bytes: 24,
        })
        .unwrap();
}

fn graph(mut change: impl FnMut(GraphChange)) {
    let (version, method) = (Version(1), MethodId(1));
    let node = |method, capacity| GraphNode {
        version,
        method,
        capacity,
    };
    let event = |site, effect| Transition {
        version,
        site: SiteId(site),
        caller: method,
        callee: MethodId::EVENT,
        effect,
    };
    change(GraphChange::Base(Base::new(version)));
    change(GraphChange::Node(node(method, 1)));
    change(GraphChange::Node(node(MethodId::EVENT, 300)));
    change(GraphChange::Anchor(Anchor {
        base: version,
        id: AnchorId(0),
        head: method,
        parent: None,
    }));
    change(GraphChange::Transition(event(
        2,
        TransitionEffect::Additive { to: version, av: 1 },
    )));
    change(GraphChange::Transition(event(
        3,
        TransitionEffect::Additive { to: version, av: 2 },
    )));
    change(GraphChange::Transition(event(
        5,
        TransitionEffect::Anchoring,
    )));
    let parent = Some((ContextId(1 << 52), SiteId(5), method));
    change(GraphChange::Anchor(Anchor {
        base: version,
        id: AnchorId(1),
        head: MethodId::EVENT,
        parent,
    }));
    let more = Version(2);
    change(GraphChange::Base(Base {
        version: more,
        anchor_bits: Some(28),
    }));
    change(GraphChange::Node(GraphNode {
        version: more,
        ..node(MethodId::EVENT, 300)
    }));
    change(GraphChange::Anchor(Anchor {
        base: more,
        id: AnchorId(0),
        head: MethodId::EVENT,
        parent,
    }));
}

fn run(writer: &mut LogWriter) {
    let id = ThreadId(1);
    writer
        .append(ThreadRecord {
            id,
            name: "main".into(),
            is_virtual: false,
        })
        .unwrap();
    writer.append(ThreadEnd { id }).unwrap();
    let skipped = |method| SkippedRecord {
        class: "a.b.Huge".into(),
        method,
        reason: "64 KB".into(),
    };
    writer.append(skipped(None)).unwrap();
    writer.append(skipped(Some("m()V".into()))).unwrap();
    writer
        .append(WarningRecord {
            text: "größer".into(),
        })
        .unwrap();
    writer
        .append(MismatchRecord {
            id: ContextId(1 << 52 | 2),
            at: 99,
            expected: "at a.b.C.main(C.java:11)\n".into(),
            decoded: "at a.b.C.main(C.java:10)\n".into(),
        })
        .unwrap();
    writer
        .append(StatRecord {
            key: "events.recorded".into(),
            value: 2,
        })
        .unwrap();
}

/// What a reader says about a log, as text.
#[allow(dead_code, reason = "not every test prints")]
pub fn print(log: &InMemoryLog) -> String {
    use std::fmt::Write;
    let mut text = format!("{:?}\n", log.header());
    for item in log.items() {
        match item {
            Ok(LogItem::Record(e)) => {
                writeln!(text, "{} +{} {:?} {:?}", e.offset, e.size, e.kind, e.record).unwrap();
            }
            Ok(LogItem::Counters(cells)) => {
                writeln!(text, "{} {:?}", cells.offset, cells.thread).unwrap();
                cells
                    .iter()
                    .for_each(|c| writeln!(text, "  {c:?}").unwrap());
            }
            Ok(LogItem::Totals(totals)) => {
                let totals: Vec<_> = totals.iter().collect();
                writeln!(text, "{totals:?}").unwrap();
            }
            Ok(LogItem::EventCounters(cells)) => {
                writeln!(text, "{} {:?} by type", cells.offset, cells.thread).unwrap();
                cells
                    .iter()
                    .for_each(|c| writeln!(text, "  {c:?}").unwrap());
            }
            Ok(LogItem::VmCounters(cells)) => {
                writeln!(text, "{} the VM's count", cells.offset).unwrap();
                cells
                    .iter()
                    .for_each(|c| writeln!(text, "  {c:?}").unwrap());
            }
            Err(damage) => writeln!(text, "{damage}").unwrap(),
        }
    }
    text
}
