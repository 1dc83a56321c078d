//! Round trips of every kind of record.

use lucce_callgraph::{
    Anchor, AnchorId, Base, ContextId, GraphNode, MethodId, SiteId, Transition, TransitionEffect,
    Version,
};

use super::*;

fn all() -> Vec<LogRecord<'static>> {
    let (version, method, site) = (Version(3), MethodId(70_000), SiteId(1 << 20));
    let transition = |effect| Transition {
        version,
        site,
        caller: method,
        callee: MethodId::EVENT,
        effect,
    };
    let anchor = |parent| Anchor {
        base: version,
        id: AnchorId(9),
        head: method,
        parent,
    };
    let at = |what, line| SiteRecord {
        id: site,
        method,
        bci: -1,
        line,
        kind: what,
    };
    vec![
        MetaRecord {
            key: "jvm".into(),
            value: "17".into(),
        }
        .into(),
        ClassRecord {
            id: ClassId(1),
            loader: LoaderId(2),
            name: "a.b.C".into(),
            source_file: None,
        }
        .into(),
        ClassRecord {
            id: ClassId(u32::MAX),
            loader: LoaderId(0),
            name: "ä".into(),
            source_file: Some("C.java".into()),
        }
        .into(),
        MethodRecord {
            id: method,
            class: ClassId(1),
            name: "<init>".into(),
            descriptor: "()V".into(),
            access: 0x8421,
            lines: vec![(0, 10), (65_535, 1), (4, 65_535)].into(),
        }
        .into(),
        at(SiteKind::Call, None).into(),
        at(SiteKind::New("La/b/C;".into()), Some(-1)).into(),
        at(SiteKind::Array("[I".into()), None).into(),
        at(SiteKind::Native, Some(-2)).into(),
        at(SiteKind::Current, None).into(),
        at(SiteKind::Other, Some(i32::MAX)).into(),
        SiteSize {
            site,
            bytes: u64::MAX,
        }
        .into(),
        GraphChange::Base(Base::new(version)).into(),
        GraphChange::Base(Base {
            version,
            anchor_bits: Some(28),
        })
        .into(),
        GraphChange::Node(GraphNode {
            version,
            method,
            capacity: 1 << 40,
        })
        .into(),
        GraphChange::Transition(transition(TransitionEffect::Anchoring)).into(),
        GraphChange::Transition(transition(TransitionEffect::Additive {
            to: Version(4),
            av: 77,
        }))
        .into(),
        GraphChange::Anchor(anchor(None)).into(),
        GraphChange::Anchor(anchor(Some((ContextId(u64::MAX), SiteId(5), MethodId(6))))).into(),
        ThreadRecord {
            id: ThreadId(1),
            name: "main".into(),
            is_virtual: true,
        }
        .into(),
        ThreadEnd { id: ThreadId(1) }.into(),
        MismatchRecord {
            id: ContextId(1 << 63),
            at: 9,
            expected: "a\nb".into(),
            decoded: "".into(),
        }
        .into(),
        SkippedRecord {
            class: "a.B".into(),
            method: None,
            reason: "64 KB".into(),
        }
        .into(),
        SkippedRecord {
            class: "a.B".into(),
            method: Some("m()V".into()),
            reason: "".into(),
        }
        .into(),
        WarningRecord { text: "w".into() }.into(),
        StatRecord {
            key: "events.lost".into(),
            value: 3,
        }
        .into(),
        EndRecord.into(),
        ThreadOrigin {
            thread: ThreadId(4),
            context: ContextId(1 << 63 | 5),
        }
        .into(),
        ThreadTag {
            thread: ThreadId(u32::MAX),
            key: "endpoint".into(),
            value: "/search?q=ä".into(),
        }
        .into(),
        EventType {
            id: EventTypeId(3),
            kind: "lock".into(),
            unit: "ns".into(),
            detail: "".into(),
        }
        .into(),
        FollowedKeyRecord {
            key: 7,
            context: ContextId(u64::MAX),
            type_name: "[La/B;".into(),
        }
        .into(),
        SnapshotRecord {
            rows: 1,
            millis: 2,
            collections: 300,
            old: 4,
            tested: 250,
            sampled: 1 << 40,
            following: 6,
            thinned: 7,
            lost: 8,
        }
        .into(),
        MarkedCounters {
            mark: 2,
            thread: ThreadId(3),
            counters: vec![MarkedCounter {
                context: ContextId(u64::MAX),
                event: EventTypeId(9),
                count: 1 << 40,
                value: 16,
            }],
        }
        .into(),
        MarkRecord {
            id: 2,
            is_reset: true,
            at_ns: 1 << 33,
            counters: 1,
            name: "warm".into(),
        }
        .into(),
        HeapCensus {
            rows: 3,
            cause: CensusCause::HeapExhausted,
            detail: "Java heap space".into(),
            millis: 2,
            collections: 300,
            full: Some(0),
            survived: 299,
            tested: 250,
            sampled: 1 << 40,
            following: 6,
            thinned: 7,
            used_bytes: Some(1 << 30),
            max_bytes: None,
        }
        .into(),
        HeapCensus {
            cause: CensusCause::Unknown,
            ..HeapCensus::default()
        }
        .into(),
        SurvivorsRecord {
            key: 7,
            objects: 3 << 7,
            bytes: u64::MAX,
            generations: vec![
                SurvivorGeneration {
                    born: 0,
                    objects: 1,
                },
                SurvivorGeneration {
                    born: u64::MAX,
                    objects: u32::MAX,
                },
            ]
            .into(),
        }
        .into(),
        SurvivorsRecord {
            key: 0,
            objects: 0,
            bytes: 0,
            generations: vec![].into(),
        }
        .into(),
    ]
}

fn body(record: &LogRecord<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode_body(&mut bytes);
    bytes
}

#[test]
fn every_record_comes_back() {
    for record in all() {
        let bytes = body(&record);
        assert_eq!(
            LogRecord::decode_body(record.kind(), &bytes),
            Ok(Some(record))
        );
    }
}

#[test]
fn every_kind_has_a_name_and_is_tested() {
    let mut names: Vec<_> = all().iter().map(|r| r.kind().name()).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 26);
    assert!(!names.contains(&"unknown"));
}

#[test]
fn fields_may_be_added_later() {
    for record in all() {
        let mut bytes = body(&record);
        bytes.extend([1, 2, 3]);
        assert_eq!(
            LogRecord::decode_body(record.kind(), &bytes),
            Ok(Some(record))
        );
    }
}

#[test]
fn a_cut_body_is_refused_not_guessed() {
    for record in all() {
        let bytes = body(&record);
        for len in 0..bytes.len() {
            assert!(
                LogRecord::decode_body(record.kind(), &bytes[..len]).is_err(),
                "{record:?}"
            );
        }
    }
}

#[test]
fn unknown_kinds_are_skipped() {
    assert_eq!(LogRecord::decode_body(RecordKind(200), &[1, 2]), Ok(None));
}

#[test]
fn a_line_table_cannot_claim_more_than_its_record() {
    let mut bytes = Vec::new();
    let mut out = RecordEncoder(&mut bytes);
    out.put_number(1u8);
    out.put_number(1u8);
    out.put_text("m");
    out.put_text("()V");
    out.put_number(0u8);
    out.put_number(60_000u16);
    assert!(LogRecord::decode_body(RecordKind(RecordKind::METHOD), &bytes).is_err());
}

#[test]
fn generations_that_cannot_be_are_refused() {
    // key 1, no objects, no bytes; then generations.
    for (generations, reason) in [
        (&[2, 5, 1, 0, 1][..], "generations out of order"),
        (&[1, 5, 0], "generation without objects"),
        (&[100, 5, 1], "record ends early"),
    ] {
        let bytes = [&[1, 0, 0], generations].concat();
        let kind = RecordKind(20);
        assert_eq!(
            LogRecord::decode_body(kind, &bytes),
            Err(MalformedRecord(reason))
        );
    }
}
