//! Kinds of events, one file for each: how a kind is asked for, by which bit of the gate it is switched, what it does not
//! go with, and which hooks tell of it. [`ALL`] is the list; a new kind is a file, a line of it, and a bit in `gate`.
//!
//! ```text
//! events=…, ctl=all, refusals, `lucce ctl`      read what a Kind says     (options and session of the agent)
//! which hooks a class gets, in and out of scope  ask its InCode            (view, inserts, outside)
//! what the agent does with what a hook tells    is in agent/src/events, a file of the kind's name
//! ```

mod alloc;
mod call;
mod exception;
pub mod gate;
mod io;
mod leak;
mod lock;
mod objects;
mod samples;
mod thread;

use std::sync::LazyLock;

use lucce_bytecode::{Call, ClassFile, Helper, Insert, Method, NewField, Scan};

use crate::helpers::{RT, RT_EVENTS, RT_TASKS};
use crate::shape::{HookPlace, Mark, Of};

pub use alloc::ALLOC;
pub use call::CALL;
pub use exception::EXCEPTION;
pub use io::{IO, IO_TIME, outside_of};
pub use leak::LEAK;
pub use lock::LOCK;
pub use objects::OBJECTS;
pub use samples::SAMPLES;
pub use thread::{TASK, THREAD};

/// All kinds that can be asked for, by name.
pub static ALL: [&Kind; 9] = [
    &ALLOC, &OBJECTS, &SAMPLES, &CALL, &EXCEPTION, &IO, &LEAK, &LOCK, &THREAD,
];

/// A kind of events.
pub struct Kind {
    /// As `events=` has it, with what stands behind `=`.
    pub name: &'static str,
    pub how: How,
    /// A bit of [`gate`].
    pub gate: u64,
    /// Names that the log has for what is counted along with it.
    pub also: &'static [&'static str],
    /// The VM tells of each of its events, whatever code they come from: no class needs hooks for it.
    pub needs_no_hooks: bool,
    /// With `ctl=all` classes get its hooks, and the VM is asked for its events, so that it can be switched on later.
    pub can_come_later: bool,
    /// It may happen in any method, not only in calls that the program's own code makes: what the VM enters by itself must
    /// know where it is.
    pub is_everywhere: bool,
    /// What it does not go with, and what the user is told then.
    pub against: &'static [(Against, &'static str)],
    pub code: Option<&'static dyn InCode>,
}

/// What a kind that needs no word more says of itself. `is_everywhere` is what is never wrong.
const PLAIN: Kind = Kind {
    name: "",
    how: How::Alone,
    gate: 0,
    also: &[],
    needs_no_hooks: false,
    can_come_later: false,
    is_everywhere: true,
    against: &[],
    code: None,
};

/// What stands behind a kind's name in `events=`.
#[derive(Clone, Copy)]
pub enum How {
    Alone,
    /// This word, and then another kind counts, too.
    Word(&'static str, &'static Kind),
    /// Bytes from one sample to the next, on average.
    Every(Every),
}

/// Sizes that a kind takes.
#[derive(Clone, Copy)]
pub struct Every {
    /// If none is given; `None`: one must be.
    pub default: Option<u32>,
    /// 1, or 0: every allocation is a sample.
    pub least: u32,
    /// What is expected, where other words than a size may stand, too.
    pub expected: Option<&'static str>,
}

/// What a kind may not go with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Against {
    /// `lucce attach`.
    Attach,
    /// `burst=`.
    Burst,
    /// `tracking=cct` and `tracking=paper`.
    OtherTracking,
    /// `encoding=static`.
    Static,
    /// `record=stream`.
    Stream,
}

/// The hooks that tell of a kind.
pub trait InCode: Sync {
    /// What this call means for the kind, in a method of a class in scope.
    fn call(&self, at: &At<'_>, call: &Call<'_>) -> Option<Mark>;

    /// Where it happens otherwise than by a call.
    fn places(&self, _scan: &Scan<'_>) -> Vec<HookPlace> {
        Vec::new()
    }

    /// Whether it happens in the method, which needs a frame then.
    fn happens_in(&self, at: &At<'_>) -> bool {
        let mut calls = at.scan.calls.iter();
        calls.any(|call| self.call(at, call).is_some())
    }

    /// The hooks at a call that is marked as [`Mark::Of`] with this number.
    fn inserts(&self, _which: u8, _site: i32) -> Vec<Insert<'static>> {
        Vec::new()
    }

    /// The kind that the log has for a call with this number, if Java code counts in a cell of the site alone.
    fn counted_as(&self, _which: u8) -> Option<&'static str> {
        None
    }

    /// The hooks in a method of a class out of scope, where no site is known.
    fn outside(&self, _at: &At<'_>) -> Vec<(u16, Insert<'static>)> {
        Vec::new()
    }

    /// What is added to this class of the JDK; `in_scope`: whether its methods are.
    fn fields(&self, _class: &str, _in_scope: bool) -> Vec<NewField<'static>> {
        Vec::new()
    }

    /// What its hooks call, beyond what `helpers` lists.
    fn helpers(&self) -> Vec<Helper<'static>> {
        Vec::new()
    }

    /// Those of its helpers that classes of a program's own loaders may call.
    fn inherited(&self) -> Vec<Helper<'static>> {
        Vec::new()
    }
}

/// A method of which is asked what happens in it.
pub struct At<'a> {
    /// See `roles::role_name`.
    pub class: &'a str,
    pub file: &'a ClassFile<'a>,
    pub method: &'a Method<'a>,
    pub scan: &'a Scan<'a>,
}

impl At<'_> {
    /// Whether the call is one of a native method of its own class.
    #[must_use]
    pub fn is_own_native(&self, call: &Call<'_>) -> bool {
        let mut methods = self.file.methods().iter();
        let called = |method: &&Method<'_>| {
            (&*method.name, &*method.descriptor) == (&*call.name, &*call.descriptor)
        };
        call.owner == self.file.name()
            && methods
                .find(called)
                .is_some_and(|method| method.code.is_none())
    }
}

/// The kind of a mark.
fn kind_of(of: Of) -> Option<&'static Kind> {
    ALL.into_iter().find(|kind| kind.marks(of))
}

/// The hooks of a mark.
pub(crate) fn inserts(of: Of, site: i32) -> Vec<Insert<'static>> {
    let code = kind_of(of).and_then(|kind| kind.code);
    code.map_or_else(Vec::new, |code| code.inserts(of.which, site))
}

/// See [`InCode::counted_as`].
#[must_use]
pub fn counted_as(of: Of) -> Option<&'static str> {
    kind_of(of)?.code?.counted_as(of.which)
}

impl Kind {
    /// What stands before `=`.
    #[must_use]
    pub fn first_name(&self) -> &'static str {
        self.name
            .split_once('=')
            .map_or(self.name, |(name, _)| name)
    }

    /// What the user is told if both are asked for.
    #[must_use]
    pub fn refuses(&self, what: Against) -> Option<&'static str> {
        let found = self.against.iter().find(|(known, _)| *known == what);
        found.map(|(_, why)| *why)
    }

    /// Whether the mark is one of this kind.
    #[must_use]
    pub fn marks(&self, of: Of) -> bool {
        self.gate == 1 << of.bit
    }

    const fn of(&self, which: u8) -> Of {
        Of {
            bit: self.gate.trailing_zeros() as u8,
            which,
        }
    }
}

/// A set of kinds, by their bits of [`gate`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Kinds(u64);

impl Kinds {
    #[must_use]
    pub fn has(self, kind: &Kind) -> bool {
        self.0 & kind.gate != 0
    }

    #[must_use]
    pub fn with(self, kind: &Kind) -> Kinds {
        Kinds(self.0 | kind.gate)
    }

    /// Those that a property holds for.
    #[must_use]
    pub fn all(holds: impl Fn(&Kind) -> bool) -> Kinds {
        let kinds = ALL.iter().filter(|kind| holds(kind));
        kinds.fold(Kinds::default(), |kinds, kind| kinds.with(kind))
    }

    /// Those that are in this set or in the other one.
    #[must_use]
    pub fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// Those whose bits these are.
    #[must_use]
    pub fn of_gates(gates: u64) -> Kinds {
        Kinds::all(|kind| gates & kind.gate != 0)
    }

    /// As bits of the gate.
    #[must_use]
    pub fn gates(self) -> u64 {
        self.0
    }

    pub fn iter(self) -> impl Iterator<Item = &'static Kind> {
        let all = ALL.into_iter();
        all.filter(move |kind| self.has(kind))
    }

    /// The hooks of those that have some.
    pub(crate) fn in_code(self) -> impl Iterator<Item = &'static dyn InCode> {
        self.iter().filter_map(|kind| kind.code)
    }
}

/// All hooks that there are.
pub(crate) fn in_code() -> impl Iterator<Item = &'static dyn InCode> {
    ALL.iter().filter_map(|kind| kind.code)
}

/// The classes that hooks call.
pub static CALLED_BY_HOOKS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut classes = vec![RT, RT_EVENTS, RT_TASKS];
    for helper in helpers() {
        if !classes.contains(&helper.class) {
            classes.push(helper.class);
        }
    }
    classes
});

/// What the hooks of all kinds call, beyond what `helpers` lists.
pub fn helpers() -> impl Iterator<Item = Helper<'static>> {
    in_code().flat_map(InCode::helpers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_bit_and_a_name_of_its_own() {
        // Bits that stand for no kind.
        let mut gates = gate::OWN | gate::FOLLOW;
        for kind in ALL {
            assert_eq!(kind.gate.count_ones(), 1, "{}", kind.name);
            assert_eq!(gates & kind.gate, 0, "{}", kind.name);
            gates |= kind.gate;
            let mut named = ALL.iter().filter(|other| other.name == kind.name);
            assert!(named.next().is_some() && named.next().is_none());
            assert!(kind.marks(Of::unpacked(kind.of(7).packed())));
        }
        let all = gate::ALL.iter().fold(0, |gates, (_, bit)| gates | bit);
        assert_eq!(gates, all);
        assert_eq!(gate::ALL.len(), ALL.len() + 2);
    }

    #[test]
    fn sets_of_kinds() {
        let both = Kinds::default().with(&IO).with(&LOCK);
        assert!(both.has(&IO) && both.has(&LOCK) && !both.has(&ALLOC));
        assert_eq!(both.iter().count(), 2);
        assert_eq!(Kinds::of_gates(both.gates() | gate::OWN), both);
    }
}
