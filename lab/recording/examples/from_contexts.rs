//! Turns recorded contexts into a recording of calls: `from_contexts IN.contexts.zst OUT [EVENTS]`.
//!
//! A file of contexts holds events: a big-endian u32 length, then that many u32 sites from the
//! thread's entry to the event, outermost first; `site >> 12` is the method. Events that hold a zero
//! are skipped. Two events that follow each other say which frames ended and which were entered
//! between them: a legitimate stream of calls, though calls without events are not in it.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;

use lucce_callgraph::{ContextFrame, MethodId, SiteId};
use lucce_recording::{CallEdge, ThreadWriter, Writer};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, rest @ ..] = &arguments[..] else {
        panic!("from_contexts IN.contexts.zst OUT [EVENTS]");
    };
    let events = rest
        .first()
        .map_or(usize::MAX, |n| n.parse().expect("a number"));
    let writer = Writer::create(to, u64::MAX).expect(to);
    let mut thread = writer.start("main", None);
    let mut stack = Vec::new();
    for event in contexts(from).iter().take(events) {
        step(&writer, &mut thread, &mut stack, event);
    }
    thread.unwind(&writer, stack.len() as u32);
    thread.flush(&writer);
    writer.finish();
    println!("{to}: {} bytes", writer.bytes());
}

/// From the stack of the last event to this one's. `stack` holds where each frame calls from.
fn step(
    writer: &Writer,
    thread: &mut ThreadWriter,
    stack: &mut Vec<ContextFrame>,
    event: &[ContextFrame],
) {
    let same = stack.iter().zip(event).take_while(|(old, new)| old == new);
    let same = same.count();
    // The frame above the last equal place is the same frame if it is of the same method.
    let kept = match (stack.get(same), event.get(same)) {
        (Some(old), Some(new)) if old.method == new.method => same + 1,
        _ => same,
    };
    (kept..stack.len()).for_each(|_| thread.exit(writer));
    stack.clear();
    for (depth, frame) in event.iter().enumerate() {
        if depth >= kept {
            let edge = stack
                .last()
                .map_or(CallEdge::from_thread_entry(frame.method), |caller| {
                    CallEdge {
                        callee: frame.method,
                        ..CallEdge::from_event_frame(*caller)
                    }
                });
            thread.enter(writer, edge);
        }
        stack.push(*frame);
    }
    if let Some(place) = event.last() {
        thread.event(writer, CallEdge::from_event_frame(*place));
    }
}

fn contexts(from: &str) -> Vec<Vec<ContextFrame>> {
    let file = File::open(from).expect(from);
    let mut bytes = Vec::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(file).expect("zstd");
    decoder.read_to_end(&mut bytes).expect("zstd");
    let mut words = bytes
        .chunks_exact(4)
        .map(|word| u32::from_be_bytes(word.try_into().expect("four bytes")));
    let (mut sites, mut methods) = (HashMap::new(), HashMap::new());
    let mut events = Vec::new();
    while let Some(length) = words.next() {
        let event: Vec<u32> = words.by_ref().take(length as usize).collect();
        if !event.is_empty() && !event.contains(&0) {
            let frame = |site: &u32| ContextFrame {
                site: SiteId(dense(&mut sites, *site)),
                method: MethodId(dense(&mut methods, site >> 12)),
            };
            events.push(event.iter().map(frame).collect());
        }
    }
    events
}

/// Ids from 1 on, in the order of first use.
fn dense(ids: &mut HashMap<u32, u32>, recorded: u32) -> u32 {
    let next = ids.len() as u32 + 1;
    *ids.entry(recorded).or_insert(next)
}
