//! `events=alloc=all`: beside what hooks count, objects that the VM makes for itself and for native code. The VM tells of them.

use super::{ALLOC, Against, How, Kind, PLAIN, gate};

pub static OBJECTS: Kind = Kind {
    name: "alloc=all",
    how: How::Word("all", &ALLOC),
    gate: gate::OBJECTS,
    against: &[(
        Against::Attach,
        "every object is asked for by alloc=all, not by events=alloc=all",
    )],
    ..PLAIN
};
