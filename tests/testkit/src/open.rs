//! A run that goes on and holds resources open.

use std::path::Path;

use lucce_tracelog::*;

use crate::{HEADER, Ids, code, number, stat};

/// Bits of the time in the value of an open resource's counter.
const TIME_BITS: u32 = 42;

/// Number of milliseconds from the start of the run to the openings of the resources that are open.
pub const OPENED_AFTER: [(char, u64); 3] = [('A', 1_000), ('B', 2_000), ('A', 5_000)];

/// A run of this process in which `main` opened 4 files in A and 3 in B and C each: of A and B those of [`OPENED_AFTER`] are open,
/// of C 2 were collected and never closed. `has_ended`: after 8 seconds.
pub fn open(path: &Path, has_ended: bool) -> (LogWriter, Ids) {
    let _ = std::fs::remove_file(path);
    let pid = std::process::id();
    let mut writer = LogWriter::create(path, &LogHeader { pid, ..HEADER }).unwrap();
    let cells = writer.add_event_counters(ThreadId(1), 8).unwrap();
    code(&mut writer);
    let file = "Ljava/io/FileInputStream; (open)";
    for (id, kind, detail) in [
        (1, "open", file),
        (2, "open-now", file),
        (3, "open-collected", file),
        (4, "open-now", "(clock)"),
    ] {
        let event = EventType {
            id: EventTypeId(id),
            kind: kind.into(),
            unit: "".into(),
            detail: detail.into(),
        };
        writer.append(event).unwrap();
    }
    let (mut writer, ids) = number(writer, lucce_callgraph::EncodingPolicy::LUCCE);
    let start_ms = HEADER.start / 1_000_000;
    let mut cells = cells.iter();
    let mut count = |context: char, event: u32, events: &[u64]| {
        let cell = cells.next().unwrap();
        cell.claim(ids[&context], EventTypeId(event));
        events.iter().for_each(|value| cell.count_event(*value));
    };
    count('A', 1, &[0; 4]);
    count('B', 1, &[0; 3]);
    count('C', 1, &[0; 3]);
    for (context, millis) in OPENED_AFTER {
        count(context, 2, &[1 << TIME_BITS | (start_ms + millis)]);
    }
    count('C', 3, &[0; 2]);
    count('A', 4, &[start_ms + 6_000]);
    if has_ended {
        stat(&mut writer, "run.millis", 8_000);
        writer.append(EndRecord).unwrap();
    }
    (writer, ids)
}
