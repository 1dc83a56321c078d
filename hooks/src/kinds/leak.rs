//! `events=leak`: sampled objects are followed. The VM samples them.

use super::{Against, Every, How, Kind, PLAIN, gate};

/// What the VM itself takes: 512 KB.
const INTERVAL: u32 = 512 << 10;

pub static LEAK: Kind = Kind {
    name: "leak",
    how: How::Every(Every {
        default: Some(INTERVAL),
        least: 0,
        expected: None,
    }),
    gate: gate::LEAK,
    needs_no_hooks: true,
    is_everywhere: false,
    // Between two bursts objects are made that are not followed: what is alive at the end says nothing of them.
    against: &[(Against::Burst, "burst= does not go with events=leak")],
    ..PLAIN
};
