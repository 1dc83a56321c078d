//! `events=alloc=all`: allocations by Java code, and objects that the VM makes for itself and for native code.
//!
//! The VM reports the latter.

use super::{ALLOC, EventKindInfo, KindArgument, KindConflict, PLAIN, event_mask};

pub static OBJECTS: EventKindInfo = EventKindInfo {
    name: "alloc=all",
    argument: KindArgument::Keyword("all", &ALLOC),
    mask_bit: event_mask::OBJECTS,
    conflicts: &[(
        KindConflict::Attach,
        "every object is asked for by alloc=all, not by events=alloc=all",
    )],
    ..PLAIN
};
