//! `events=exception`: thrown exceptions, reported by the VM.

use super::{EventKindInfo, KindConflict, PLAIN, event_mask};

pub static EXCEPTION: EventKindInfo = EventKindInfo {
    name: "exception",
    mask_bit: event_mask::EXCEPTION,
    needs_no_hooks: true,
    can_come_later: true,
    is_everywhere: false,
    conflicts: &[(
        KindConflict::Attach,
        "events=exception: HotSpot tells of exceptions only if it was started with them",
    )],
    ..PLAIN
};
