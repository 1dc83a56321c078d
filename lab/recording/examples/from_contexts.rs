//! Turns recorded contexts into a recording of calls: `from_contexts IN.contexts.zst OUT [EVENTS]`.
//!
//! `lucce-contextkit` describes the file of contexts. Two events that follow each other say which frames
//! ended and which were entered between them. Calls without events are missing.

use std::fs::File;

use lucce_callgraph::ContextFrame;
use lucce_recording::{CallEdge, RecordingWriter, ThreadWriter};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, rest @ ..] = &arguments[..] else {
        panic!("from_contexts IN.contexts.zst OUT [EVENTS]");
    };
    let events = rest
        .first()
        .map_or(usize::MAX, |n| n.parse().expect("a number"));
    let writer = RecordingWriter::create(to, u64::MAX).expect(to);
    let mut thread = writer.start("main", None);
    let mut stack = Vec::new();
    for event in lucce_contextkit::read(File::open(from).expect(from))
        .iter()
        .take(events)
    {
        step(&writer, &mut thread, &mut stack, event);
    }
    thread.unwind(&writer, stack.len() as u32);
    thread.flush(&writer);
    writer.finish();
    println!("{to}: {} bytes", writer.bytes());
}

/// From the stack of the last event to this one's. `stack` holds where each frame calls from.
fn step(
    writer: &RecordingWriter,
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
