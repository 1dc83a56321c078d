//! `events=call`: entries of methods, which the hook at a method's entry counts (`view`, `inserts`).

use lucce_bytecode::Call;

use crate::jdk::roles::is_counted;
use crate::shape::Mark;

use super::{Against, At, InCode, Kind, PLAIN, gate};

pub static CALL: Kind = Kind {
    name: "call",
    gate: gate::CALL,
    against: &[
        (
            Against::Attach,
            "events=call counts in hooks, which need the agent from the start (-agentpath)",
        ),
        (Against::OtherTracking, "events=call needs tracking=lazy"),
        // An entry has no place of its own in an earlier run's log.
        (
            Against::Static,
            "events=call does not go with encoding=static",
        ),
    ],
    code: Some(&Entries),
    ..PLAIN
};

struct Entries;

impl InCode for Entries {
    /// Nothing: the called method counts.
    fn call(&self, _at: &At<'_>, _call: &Call<'_>) -> Option<Mark> {
        None
    }

    fn happens_in(&self, at: &At<'_>) -> bool {
        is_counted(at.class, at.method)
    }
}
