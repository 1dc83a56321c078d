//! `events=exception`: what is thrown. The VM tells of it.

use super::{Against, Kind, PLAIN, gate};

pub static EXCEPTION: Kind = Kind {
    name: "exception",
    gate: gate::EXCEPTION,
    needs_no_hooks: true,
    can_come_later: true,
    is_everywhere: false,
    against: &[(
        Against::Attach,
        "events=exception: HotSpot tells of exceptions only if it was started with them",
    )],
    ..PLAIN
};
