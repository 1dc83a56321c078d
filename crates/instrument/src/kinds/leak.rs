//! `events=leak`: sampled objects are followed. The VM samples them.

use super::{EventKindInfo, IntervalArgument, KindArgument, KindConflict, PLAIN, event_mask};

/// What the VM itself takes: 512 KB.
const INTERVAL: u32 = 512 << 10;

pub static LEAK: EventKindInfo = EventKindInfo {
    name: "leak",
    argument: KindArgument::Interval(IntervalArgument {
        default: Some(INTERVAL),
        least: 0,
        expected: None,
    }),
    mask_bit: event_mask::LEAK,
    needs_no_hooks: true,
    is_everywhere: false,
    // Between two bursts objects are made that are not followed: what is alive at the end says nothing of them.
    conflicts: &[(KindConflict::Burst, "burst= does not go with events=leak")],
    ..PLAIN
};
