//! Streams that cannot be: an error that says where, and everything before it.

mod support;

use lucce_callgraph::{ContextFrame, MethodId, SiteId};
use lucce_recording::*;
use support::{Memory, read};

fn recorded(run: impl FnOnce(&RecordingWriter<Memory>, &mut ThreadWriter)) -> Vec<u8> {
    let memory = Memory::default();
    let writer = RecordingWriter::new(memory.clone(), u64::MAX).unwrap();
    let mut thread = writer.start("main", None);
    run(&writer, &mut thread);
    thread.flush(&writer);
    writer.finish();
    memory.bytes()
}

fn edge(caller: u32, callee: u32) -> CallEdge {
    CallEdge {
        site: SiteId(caller),
        caller: MethodId(caller),
        callee: MethodId(callee),
    }
}

/// Where the first block of this kind begins.
fn block(bytes: &[u8], kind: u8) -> u64 {
    let mut at = 16;
    while bytes[at] != kind {
        at += 28 + u32::from_le_bytes(bytes[at + 20..at + 24].try_into().unwrap()) as usize;
    }
    at as u64
}

fn damage(bytes: &[u8]) -> (usize, LogDamage) {
    let recording = Recording::from_bytes(bytes.to_vec()).unwrap();
    let (steps, damage) = read(&recording);
    (steps.iter().map(Vec::len).sum(), damage.unwrap())
}

#[test]
fn an_exit_without_an_enter() {
    let bytes = recorded(|writer, thread| {
        thread.enter(writer, CallEdge::from_thread_entry(MethodId(1)));
        thread.exit(writer);
        thread.exit(writer);
    });
    let (steps, damage) = damage(&bytes);
    assert_eq!(steps, 3);
    assert_eq!(
        damage.to_string(),
        format!(
            "damaged at offset {} (byte 2 of the unpacked block): an exit without an enter",
            block(&bytes, 4)
        )
    );
}

#[test]
fn more_frames_end_than_there_are() {
    let bytes = recorded(|writer, thread| {
        thread.enter(writer, CallEdge::from_thread_entry(MethodId(1)));
        thread.unwind(writer, 2);
    });
    let (steps, damage) = damage(&bytes);
    assert_eq!((steps, damage.offset), (2, block(&bytes, 4)));
    assert_eq!(damage.within, Some(1));
}

#[test]
fn a_call_from_a_method_that_is_not_there() {
    let bytes = recorded(|writer, thread| {
        thread.enter(writer, CallEdge::from_thread_entry(MethodId(1)));
        thread.enter(writer, edge(2, 3));
    });
    assert!(damage(&bytes).1.reason.contains("not the innermost"));
    let twice = recorded(|writer, thread| {
        thread.enter(writer, CallEdge::from_thread_entry(MethodId(1)));
        thread.enter(writer, CallEdge::from_thread_entry(MethodId(1)));
    });
    assert!(damage(&twice).1.reason.contains("not the innermost"));
}

#[test]
fn ids_out_of_range() {
    let wrong = [
        edge(1, 0),
        edge(1, MethodId::EVENT.0 + 1),
        edge(0, 1),
        edge(MethodId::EVENT.0, 1),
        CallEdge::from_thread_entry(MethodId::EVENT),
        CallEdge {
            site: SiteId(SiteId::MAX + 1),
            ..edge(1, 2)
        },
        CallEdge {
            site: SiteId(u32::MAX),
            ..edge(1, 2)
        },
    ];
    for wrong in wrong {
        let bytes = recorded(|writer, thread| {
            thread.enter(writer, CallEdge::from_thread_entry(MethodId(1)));
            thread.enter(writer, wrong);
        });
        let (steps, damage) = damage(&bytes);
        assert_eq!((steps, damage.offset), (1, block(&bytes, 2)), "{wrong:?}");
        assert!(damage.reason.contains("out of range"));
    }
}

/// Encodings rely on it: a call site says which method calls.
#[test]
fn a_site_in_two_methods() {
    let bytes = recorded(|writer, thread| {
        thread.enter(writer, CallEdge::from_thread_entry(MethodId(1)));
        thread.enter(writer, edge(1, 2));
        let site = SiteId(1);
        thread.enter(writer, CallEdge { site, ..edge(2, 3) });
    });
    let (steps, damage) = damage(&bytes);
    assert_eq!((steps, damage.offset), (1, block(&bytes, 2)));
    assert!(damage.reason.contains("two methods"));
}

#[test]
fn an_edge_that_the_file_does_not_define() {
    let bytes = recorded(|writer, thread| {
        thread.enter(writer, CallEdge::from_thread_entry(MethodId(1)));
        thread.event(
            writer,
            CallEdge::from_event_frame(ContextFrame {
                site: SiteId(1),
                method: MethodId(1),
            }),
        );
    });
    // The block of edges is left out.
    let (edges, calls) = (block(&bytes, 2) as usize, block(&bytes, 4) as usize);
    let without = [&bytes[..edges], &bytes[calls..]].concat();
    let (steps, damage) = damage(&without);
    assert_eq!(
        (steps, damage.offset, damage.within),
        (1, edges as u64, Some(0))
    );
}

#[test]
fn blocks_in_an_impossible_order() {
    let bytes =
        recorded(|writer, thread| thread.enter(writer, CallEdge::from_thread_entry(MethodId(1))));
    let (start, edges) = (block(&bytes, 3) as usize, block(&bytes, 2) as usize);
    let (calls, end) = (block(&bytes, 4) as usize, block(&bytes, 6) as usize);
    let early = [&bytes[..start], &bytes[edges..]].concat();
    assert!(damage(&early).1.reason.contains("not started"));
    let twice = [&bytes[..edges], &bytes[start..]].concat();
    assert!(damage(&twice).1.reason.contains("in order"));
    let behind = [&bytes[..], &bytes[calls..end]].concat();
    let (steps, late) = damage(&behind);
    assert_eq!((steps, late.offset), (2, bytes.len() as u64));
}

#[test]
fn other_files() {
    let foreign = Recording::from_bytes(b"PK\x03\x04".to_vec());
    assert!(matches!(foreign, Err(OpenError::Foreign(_))));
    let empty = Recording::from_bytes(Vec::new());
    assert!(matches!(empty, Err(OpenError::Empty(_))));
    let header = Recording::from_bytes(b"LUCCECAL\x01\0\0\0".to_vec());
    assert!(matches!(header, Err(OpenError::Damaged(_))));
    let missing = Recording::open("/no/such/file");
    assert!(matches!(missing, Err(OpenError::Io(_))));
}

/// Deflate of a gigabyte of zeros is small; the reader must not unpack it.
#[test]
fn a_block_that_would_unpack_to_very_much_is_refused() {
    let packed = miniz(&vec![0u8; 64 << 20]);
    let mut bytes = recorded(|_, _| ());
    bytes.truncate(block(&bytes, 6) as usize);
    let at = bytes.len() as u64;
    let mut head = vec![2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    head.extend_from_slice(&(1u32 << 20).to_le_bytes());
    head.extend_from_slice(&(packed.len() as u32).to_le_bytes());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&head);
    sum.update(&packed);
    head.extend_from_slice(&sum.finalize().to_le_bytes());
    bytes.extend_from_slice(&head);
    bytes.extend_from_slice(&packed);
    let (_, damage) = damage(&bytes);
    assert_eq!(damage.offset, at);
    assert!(damage.reason.contains("cannot be unpacked"));
}

fn miniz(bytes: &[u8]) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec(bytes, 6)
}
