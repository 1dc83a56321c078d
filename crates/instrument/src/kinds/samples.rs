//! `events=alloc=SIZE`: allocations sampled by the VM.

use super::{EventKindInfo, IntervalArgument, KindArgument, KindConflict, PLAIN, event_mask};

pub static SAMPLES: EventKindInfo = EventKindInfo {
    name: "alloc=SIZE",
    argument: KindArgument::Interval(IntervalArgument {
        default: None,
        least: 1,
        expected: Some("alloc, alloc=all, or a size such as alloc=512k"),
    }),
    mask_bit: event_mask::SAMPLES,
    needs_no_hooks: true,
    is_everywhere: false,
    conflicts: &[
        (
            KindConflict::Attach,
            "samples are asked for by alloc=SIZE, not by events=alloc=SIZE",
        ),
        (
            KindConflict::Stream,
            "record=stream has single events, and events=alloc=SIZE only samples",
        ),
    ],
    ..PLAIN
};
