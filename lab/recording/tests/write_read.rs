//! What was written is what is read, whole or cut.

mod support;

use lucce_callgraph::{MethodId, SiteId};
use lucce_recording::*;
use lucce_tracelog::{
    ClassId, ClassRecord, LoaderId, LogRecord, MethodRecord, SiteKind, SiteRecord,
};
use proptest::prelude::*;
use support::*;

fn written(acts: &[(usize, Act)], limit: u64) -> (Vec<u8>, Plain, bool) {
    let memory = Memory::default();
    let writer = RecordingWriter::new(memory.clone(), limit).unwrap();
    let plain = record(&writer, acts);
    let whole = writer.finish();
    assert_eq!(writer.bytes(), memory.bytes().len() as u64);
    (memory.bytes(), plain, whole)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_was_written_is_read(acts in acts()) {
        let (bytes, plain, whole) = written(&acts, u64::MAX);
        let recording = Recording::from_bytes(bytes).unwrap();
        prop_assert!(whole && recording.ended() && !recording.is_cut());
        prop_assert_eq!(recording.threads().len(), plain.len());
        prop_assert_eq!(read(&recording), (plain, None));
    }

    #[test]
    fn what_a_parent_did_precedes_its_childs_start(acts in acts()) {
        let (bytes, _, _) = written(&acts, u64::MAX);
        let mut steps = Vec::new();
        for step in Recording::from_bytes(bytes).unwrap().steps() {
            let (thread, step) = step.unwrap();
            if let RecordedStep::Start(RecordedStart { parent: Some(parent), position }) = step {
                prop_assert_eq!(steps[parent.0 as usize], position);
            }
            steps.resize(steps.len().max(thread.0 as usize + 1), 0u64);
            steps[thread.0 as usize] += u64::from(!matches!(step, RecordedStep::Start(_)));
        }
    }

    #[test]
    fn a_limit_is_kept_and_recorded(acts in acts(), limit in 300..3000u64) {
        let (bytes, plain, whole) = written(&acts, limit);
        prop_assert!(bytes.len() as u64 <= limit);
        let recording = Recording::from_bytes(bytes).unwrap();
        prop_assert_eq!(recording.is_cut(), !whole);
        prop_assert_eq!(recording.ended(), whole);
        let (part, damage) = read(&recording);
        prop_assert_eq!(damage, None);
        prop_assert!(is_beginning(&part, &plain) && (!whole || part == plain));
    }

    #[test]
    fn a_file_that_ends_anywhere_gives_its_beginning_and_the_place(
        acts in acts(), keep in 0.0..1.0f64,
    ) {
        let (bytes, plain, _) = written(&acts, u64::MAX);
        let end = (bytes.len() as f64 * keep) as usize;
        let Ok(recording) = Recording::from_bytes(bytes[..end].to_vec()) else {
            prop_assert!(end < 16);
            return Ok(());
        };
        prop_assert!(!recording.ended());
        let (part, damage) = read(&recording);
        prop_assert!(is_beginning(&part, &plain));
        if let Some(damage) = damage {
            prop_assert!(damage.offset < end as u64 && damage.reason.contains("ends early"));
        }
    }

    #[test]
    fn a_flipped_byte_is_found(acts in acts(), at in any::<prop::sample::Index>()) {
        let (mut bytes, plain, _) = written(&acts, u64::MAX);
        let at = at.index(bytes.len());
        bytes[at] ^= 0x10;
        let Ok(recording) = Recording::from_bytes(bytes) else {
            prop_assert!(at < 16);
            return Ok(());
        };
        let (part, damage) = read(&recording);
        prop_assert!(is_beginning(&part, &plain));
        prop_assert!(damage.is_some_and(|damage| damage.offset <= at as u64));
    }
}

#[test]
fn names_come_back() {
    let class = ClassRecord {
        id: ClassId(1),
        loader: LoaderId(0),
        name: "a.B".into(),
        source_file: Some("B.java".into()),
    };
    let method = MethodRecord {
        id: MethodId(1),
        class: ClassId(1),
        name: "m".into(),
        descriptor: "()V".into(),
        access: 1,
        lines: vec![(0, 7)].into(),
    };
    let site = SiteRecord {
        id: SiteId(1),
        method: MethodId(1),
        bci: 4,
        line: None,
        kind: SiteKind::Call,
    };
    let records = [LogRecord::from(class), method.into(), site.into()];
    let memory = Memory::default();
    let writer = RecordingWriter::new(memory.clone(), u64::MAX).unwrap();
    records.iter().for_each(|record| writer.name(record));
    assert!(writer.finish());
    let recording = Recording::from_bytes(memory.bytes()).unwrap();
    assert!(recording.names().eq(records));
}

#[test]
fn large_streams_take_several_blocks_and_little_space() {
    let memory = Memory::default();
    let writer = RecordingWriter::new(memory.clone(), u64::MAX).unwrap();
    let mut thread = writer.start("main", None);
    thread.enter(&writer, CallEdge::from_thread_entry(MethodId(1)));
    for callee in (2..500).cycle().take(1_000_000) {
        let edge = CallEdge {
            site: SiteId(callee),
            caller: MethodId(1),
            callee: MethodId(callee),
        };
        thread.enter(&writer, edge);
        thread.exit(&writer);
    }
    thread.flush(&writer);
    writer.finish();
    let recording = Recording::from_bytes(memory.bytes()).unwrap();
    assert_eq!(recording.steps().filter(Result::is_ok).count(), 2_000_002);
    assert_eq!(recording.edges().len(), 499);
    assert!(recording.size() < 100_000, "{}", recording.size());
}

/// A disk that is full.
struct Full;

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match bytes.len() {
            16 => Ok(16),
            _ => Err(std::io::ErrorKind::StorageFull.into()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_nothing_else() {
    let writer = RecordingWriter::new(Full, u64::MAX).unwrap();
    let mut thread = writer.start("main", None);
    thread.enter(&writer, CallEdge::from_thread_entry(MethodId(1)));
    thread.exit(&writer);
    thread.flush(&writer);
    assert!(writer.is_cut() && !writer.finish());
}
