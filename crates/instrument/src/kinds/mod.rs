//! Kinds of events, one file for each: how a kind is asked for, by which bit of the gate it is switched, what it does not
//! go with, and which hooks tell of it. [`ALL`] is the list; a new kind is a file, a line of it, and a bit in `event_mask`.
//!
//! ```text
//! events=…, ctl=all, refusals, `lucce ctl`      read what a Kind says     (options and session of the agent)
//! which hooks a class gets, in and out of scope  ask its InCode            (view, inserts, outside)
//! what the agent does with what a hook tells    is in agent/src/events, a file of the kind's name
//! ```

mod alloc;
mod call;
pub mod event_mask;
mod exception;
mod io;
mod leak;
mod lock;
mod objects;
mod samples;
mod thread;

use std::sync::LazyLock;

use lucce_bytecode::{
    ClassFile, ClassFileMethod, CodeInsertion, CodeScan, HelperMethod, MethodCall, NewField,
};

use crate::helpers::{RT, RT_EVENTS, RT_TASKS};
use crate::instrumentation::{EventCall, HookPlace, HookSiteKind};

pub use alloc::ALLOC;
pub use call::CALL;
pub use exception::EXCEPTION;
pub use io::{IO, IO_TIME, operation_of_site};
pub use leak::LEAK;
pub use lock::LOCK;
pub use objects::OBJECTS;
pub use samples::SAMPLES;
pub use thread::{TASK, THREAD};

/// All kinds that can be asked for, by name.
pub static ALL: [&EventKindInfo; 9] = [
    &ALLOC, &OBJECTS, &SAMPLES, &CALL, &EXCEPTION, &IO, &LEAK, &LOCK, &THREAD,
];

/// A kind of events.
pub struct EventKindInfo {
    /// As `events=` has it, with what stands behind `=`.
    pub name: &'static str,
    pub argument: KindArgument,
    /// A bit of [`event_mask`].
    pub mask_bit: u64,
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
    pub conflicts: &'static [(KindConflict, &'static str)],
    pub hooks: Option<&'static dyn EventHooks>,
}

/// What a kind that needs no word more says of itself. `is_everywhere` is what is never wrong.
const PLAIN: EventKindInfo = EventKindInfo {
    name: "",
    argument: KindArgument::Alone,
    mask_bit: 0,
    also: &[],
    needs_no_hooks: false,
    can_come_later: false,
    is_everywhere: true,
    conflicts: &[],
    hooks: None,
};

/// What stands behind a kind's name in `events=`.
#[derive(Clone, Copy)]
pub enum KindArgument {
    Alone,
    /// This word, and then another kind counts, too.
    Keyword(&'static str, &'static EventKindInfo),
    /// Bytes from one sample to the next, on average.
    Interval(IntervalArgument),
}

/// Sizes that a kind takes.
#[derive(Clone, Copy)]
pub struct IntervalArgument {
    /// If none is given; `None`: one must be.
    pub default: Option<u32>,
    /// 1, or 0: every allocation is a sample.
    pub least: u32,
    /// What is expected, where other words than a size may stand, too.
    pub expected: Option<&'static str>,
}

/// What a kind may not go with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KindConflict {
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
pub trait EventHooks: Sync {
    /// What this call means for the kind, in a method of a class in scope.
    fn call_site_kind(
        &self,
        at: &AnalyzedMethod<'_>,
        call: &MethodCall<'_>,
    ) -> Option<HookSiteKind>;

    /// Where it happens otherwise than by a call.
    fn find_places(&self, _scan: &CodeScan<'_>) -> Vec<HookPlace> {
        Vec::new()
    }

    /// Whether it happens in the method, which needs a frame then.
    fn happens_in(&self, at: &AnalyzedMethod<'_>) -> bool {
        let mut calls = at.scan.calls.iter();
        calls.any(|call| self.call_site_kind(at, call).is_some())
    }

    /// The hooks at a call that is marked as [`HookSiteKind::EventCall`] with this number.
    fn call_insertions(&self, _which: u8, _site: i32) -> Vec<CodeInsertion<'static>> {
        Vec::new()
    }

    /// The kind that the log has for a call with this number, if Java code counts in a cell of the site alone.
    fn counted_as(&self, _which: u8) -> Option<&'static str> {
        None
    }

    /// The hooks in a method of a class out of scope, where no site is known.
    fn out_of_scope_insertions(
        &self,
        _at: &AnalyzedMethod<'_>,
    ) -> Vec<(u16, CodeInsertion<'static>)> {
        Vec::new()
    }

    /// What is added to this class of the JDK; `in_scope`: whether its methods are.
    fn added_fields(&self, _class: &str, _in_scope: bool) -> Vec<NewField<'static>> {
        Vec::new()
    }

    /// What its hooks call, beyond what `kind_helpers` lists.
    fn called_helpers(&self) -> Vec<HelperMethod<'static>> {
        Vec::new()
    }

    /// Those of its helpers that classes of a program's own loaders may call.
    fn inherited_helpers(&self) -> Vec<HelperMethod<'static>> {
        Vec::new()
    }
}

/// A method of which is asked what happens in it.
pub struct AnalyzedMethod<'a> {
    /// See `roles::role_name`.
    pub class: &'a str,
    pub file: &'a ClassFile<'a>,
    pub method: &'a ClassFileMethod<'a>,
    pub scan: &'a CodeScan<'a>,
}

impl AnalyzedMethod<'_> {
    /// Whether the call is one of a native method of its own class.
    #[must_use]
    pub fn is_own_native(&self, call: &MethodCall<'_>) -> bool {
        let mut methods = self.file.methods().iter();
        let called = |method: &&ClassFileMethod<'_>| {
            (&*method.name, &*method.descriptor) == (&*call.name, &*call.descriptor)
        };
        call.owner == self.file.name()
            && methods
                .find(called)
                .is_some_and(|method| method.code.is_none())
    }
}

/// The kind of a mark.
fn event_kind_of(of: EventCall) -> Option<&'static EventKindInfo> {
    ALL.into_iter().find(|kind| kind.has_event_call(of))
}

/// The hooks of a mark.
pub(crate) fn event_call_insertions(of: EventCall, site: i32) -> Vec<CodeInsertion<'static>> {
    let code = event_kind_of(of).and_then(|kind| kind.hooks);
    code.map_or_else(Vec::new, |code| code.call_insertions(of.which, site))
}

/// See [`EventHooks::counted_as`].
#[must_use]
pub fn counted_as(of: EventCall) -> Option<&'static str> {
    event_kind_of(of)?.hooks?.counted_as(of.which)
}

impl EventKindInfo {
    /// What stands before `=`.
    #[must_use]
    pub fn first_name(&self) -> &'static str {
        self.name
            .split_once('=')
            .map_or(self.name, |(name, _)| name)
    }

    /// What the user is told if both are asked for.
    #[must_use]
    pub fn conflict_message(&self, what: KindConflict) -> Option<&'static str> {
        let found = self.conflicts.iter().find(|(known, _)| *known == what);
        found.map(|(_, why)| *why)
    }

    /// Whether the mark is one of this kind.
    #[must_use]
    pub fn has_event_call(&self, of: EventCall) -> bool {
        self.mask_bit == 1 << of.bit
    }

    const fn event_call(&self, which: u8) -> EventCall {
        EventCall {
            bit: self.mask_bit.trailing_zeros() as u8,
            which,
        }
    }
}

/// A set of kinds, by their bits of [`event_mask`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EventKindSet(u64);

impl EventKindSet {
    #[must_use]
    pub fn contains(self, kind: &EventKindInfo) -> bool {
        self.0 & kind.mask_bit != 0
    }

    #[must_use]
    pub fn with_kind(self, kind: &EventKindInfo) -> EventKindSet {
        EventKindSet(self.0 | kind.mask_bit)
    }

    /// Those that a property holds for.
    #[must_use]
    pub fn select(holds: impl Fn(&EventKindInfo) -> bool) -> EventKindSet {
        let kinds = ALL.iter().filter(|kind| holds(kind));
        kinds.fold(EventKindSet::default(), |kinds, kind| kinds.with_kind(kind))
    }

    /// Those that are in this set or in the other one.
    #[must_use]
    pub fn union(self, other: EventKindSet) -> EventKindSet {
        EventKindSet(self.0 | other.0)
    }

    /// Those whose bits these are.
    #[must_use]
    pub fn from_mask_bits(gates: u64) -> EventKindSet {
        EventKindSet::select(|kind| gates & kind.mask_bit != 0)
    }

    /// As bits of the gate.
    #[must_use]
    pub fn mask_bits(self) -> u64 {
        self.0
    }

    pub fn iter(self) -> impl Iterator<Item = &'static EventKindInfo> {
        let all = ALL.into_iter();
        all.filter(move |kind| self.contains(kind))
    }

    /// The hooks of those that have some.
    pub(crate) fn event_hooks(self) -> impl Iterator<Item = &'static dyn EventHooks> {
        self.iter().filter_map(|kind| kind.hooks)
    }
}

/// All hooks that there are.
pub(crate) fn all_event_hooks() -> impl Iterator<Item = &'static dyn EventHooks> {
    ALL.iter().filter_map(|kind| kind.hooks)
}

/// The classes that hooks call.
pub static CALLED_BY_HOOKS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut classes = vec![RT, RT_EVENTS, RT_TASKS];
    for helper in kind_helpers() {
        if !classes.contains(&helper.class) {
            classes.push(helper.class);
        }
    }
    classes
});

/// What the hooks of all kinds call, beyond what `kind_helpers` lists.
pub fn kind_helpers() -> impl Iterator<Item = HelperMethod<'static>> {
    all_event_hooks().flat_map(EventHooks::called_helpers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_bit_and_a_name_of_its_own() {
        // Bits that stand for no kind.
        let mut gates = event_mask::OWN | event_mask::FOLLOW;
        for kind in ALL {
            assert_eq!(kind.mask_bit.count_ones(), 1, "{}", kind.name);
            assert_eq!(gates & kind.mask_bit, 0, "{}", kind.name);
            gates |= kind.mask_bit;
            let mut named = ALL.iter().filter(|other| other.name == kind.name);
            assert!(named.next().is_some() && named.next().is_none());
            assert!(kind.has_event_call(EventCall::from_packed(kind.event_call(7).to_packed())));
        }
        let all = event_mask::ALL
            .iter()
            .fold(0, |gates, (_, bit)| gates | bit);
        assert_eq!(gates, all);
        assert_eq!(event_mask::ALL.len(), ALL.len() + 2);
    }

    #[test]
    fn sets_of_kinds() {
        let both = EventKindSet::default().with_kind(&IO).with_kind(&LOCK);
        assert!(both.contains(&IO) && both.contains(&LOCK) && !both.contains(&ALLOC));
        assert_eq!(both.iter().count(), 2);
        assert_eq!(
            EventKindSet::from_mask_bits(both.mask_bits() | event_mask::OWN),
            both
        );
    }
}
