//! `events=alloc=SIZE`: allocations are sampled, by the VM.

use super::{Against, Every, How, Kind, PLAIN, gate};

pub static SAMPLES: Kind = Kind {
    name: "alloc=SIZE",
    how: How::Every(Every {
        default: None,
        least: 1,
        expected: Some("alloc, alloc=all, or a size such as alloc=512k"),
    }),
    gate: gate::SAMPLES,
    needs_no_hooks: true,
    is_everywhere: false,
    against: &[
        (
            Against::Attach,
            "samples are asked for by alloc=SIZE, not by events=alloc=SIZE",
        ),
        (
            Against::Stream,
            "record=stream has single events, and events=alloc=SIZE only samples",
        ),
    ],
    ..PLAIN
};
