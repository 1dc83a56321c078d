//! `events=leak`: objects sampled by the VM, followed while they live.

use super::{EventKindInfo, IntervalArgument, KindArgument, KindConflict, PLAIN, event_mask};

/// The VM's own default: 512 KB.
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
    // Objects made between two bursts are not followed, so the live objects at the end would be incomplete.
    conflicts: &[(KindConflict::Burst, "burst= does not go with events=leak")],
    ..PLAIN
};
