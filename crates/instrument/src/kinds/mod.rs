//! Kinds of events, one file each.
//!
//! A kind defines its name in `events=`, its bit in the event mask, its conflicts with options, and its hooks. [`ALL`]
//! is the list. A new kind needs a file, a line in the list, and a bit in `event_mask`.
//!
//! ```text
//! events=…, ctl=all, conflicts, `lucce ctl`       read EventKindInfo        (options and session of the agent)
//! hooks of a class, in scope and out of scope     ask EventHooks            (class_analysis, insertions, out_of_scope)
//! handling of the hooks' events in the agent      agent/src/events, a file with the kind's name
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

use crate::helpers;
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

/// All kinds, by name.
pub static ALL: [&EventKindInfo; 9] = [
    &ALLOC, &OBJECTS, &SAMPLES, &CALL, &EXCEPTION, &IO, &LEAK, &LOCK, &THREAD,
];

/// A kind of events.
pub struct EventKindInfo {
    /// The name in `events=`, with the word behind `=`.
    pub name: &'static str,
    pub argument: KindArgument,
    /// Its bit of [`event_mask`].
    pub mask_bit: u64,
    /// Names of further kinds in the log that are counted with it.
    pub also: &'static [&'static str],
    /// The VM reports all of its events, whatever code causes them: no class needs hooks.
    pub needs_no_hooks: bool,
    /// With `ctl=all`, classes get its hooks and the VM reports its events, so that it can be enabled later.
    pub can_come_later: bool,
    /// It may occur in any method, not only in calls that the program's own code makes. VM entries must then know where
    /// they are.
    pub is_everywhere: bool,
    /// Options that conflict with it, each with the message for the user.
    pub conflicts: &'static [(KindConflict, &'static str)],
    pub hooks: Option<&'static dyn EventHooks>,
}

/// Defaults of a kind. `is_everywhere` is true, the value that is always safe.
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

/// The argument of a kind in `events=NAME=…`.
#[derive(Clone, Copy)]
pub enum KindArgument {
    Alone,
    /// This keyword; it also enables another kind.
    Keyword(&'static str, &'static EventKindInfo),
    /// Mean number of bytes between two samples.
    Interval(IntervalArgument),
}

/// The range of sizes that a kind accepts.
#[derive(Clone, Copy)]
pub struct IntervalArgument {
    /// The size if none is given; `None`: a size is required.
    pub default: Option<u32>,
    /// The least size, 1 or 0; 0 makes every allocation a sample.
    pub least: u32,
    /// The expected words of an error message, if other words than a size are accepted.
    pub expected: Option<&'static str>,
}

/// An option that a kind may conflict with.
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

/// The hooks of a kind of events.
pub trait EventHooks: Sync {
    /// Returns what this call means for the kind, in a method of a class in scope.
    fn call_site_kind(
        &self,
        at: &AnalyzedMethod<'_>,
        call: &MethodCall<'_>,
    ) -> Option<HookSiteKind>;

    /// Returns the places of events that are not calls.
    fn find_places(&self, _scan: &CodeScan<'_>) -> Vec<HookPlace> {
        Vec::new()
    }

    /// Whether the kind's events occur in the method, which then needs a frame.
    fn happens_in(&self, at: &AnalyzedMethod<'_>) -> bool {
        let mut calls = at.scan.calls.iter();
        calls.any(|call| self.call_site_kind(at, call).is_some())
    }

    /// Returns the hooks of a call with the site kind [`HookSiteKind::EventCall`] and this number.
    fn call_insertions(&self, _which: u8, _site: i32) -> Vec<CodeInsertion<'static>> {
        Vec::new()
    }

    /// Returns the kind in the log for a call with this number, if Java code counts it in a counter of the site alone.
    fn counted_as(&self, _which: u8) -> Option<&'static str> {
        None
    }

    /// Returns the hooks of a method out of scope, where no site is known.
    fn out_of_scope_insertions(
        &self,
        _at: &AnalyzedMethod<'_>,
    ) -> Vec<(u16, CodeInsertion<'static>)> {
        Vec::new()
    }

    /// Returns the fields to add to this class of the JDK. `in_scope`: whether its methods are in scope.
    fn added_fields(&self, _class: &str, _in_scope: bool) -> Vec<NewField<'static>> {
        Vec::new()
    }

    /// Returns the helpers that its hooks call, apart from the common ones of `helpers`.
    fn called_helpers(&self) -> Vec<HelperMethod<'static>> {
        Vec::new()
    }

    /// Returns those of its helpers that classes of a program's own loaders may call.
    fn inherited_helpers(&self) -> Vec<HelperMethod<'static>> {
        Vec::new()
    }
}

/// A method whose events are analyzed.
pub struct AnalyzedMethod<'a> {
    /// See `roles::role_name`.
    pub class: &'a str,
    pub file: &'a ClassFile<'a>,
    pub method: &'a ClassFileMethod<'a>,
    pub scan: &'a CodeScan<'a>,
}

impl AnalyzedMethod<'_> {
    /// Whether the call reaches a native method of its own class.
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

/// Returns the kind of an event call.
fn event_kind_of(of: EventCall) -> Option<&'static EventKindInfo> {
    ALL.into_iter().find(|kind| kind.has_event_call(of))
}

/// Returns the hooks of an event call.
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
    /// Returns the part of the name before `=`.
    #[must_use]
    pub fn first_name(&self) -> &'static str {
        self.name
            .split_once('=')
            .map_or(self.name, |(name, _)| name)
    }

    /// Returns the message for the user if the kind and the option are both requested.
    #[must_use]
    pub fn conflict_message(&self, what: KindConflict) -> Option<&'static str> {
        let found = self.conflicts.iter().find(|(known, _)| *known == what);
        found.map(|(_, why)| *why)
    }

    /// Whether the event call belongs to this kind.
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

/// A set of kinds, stored as bits of [`event_mask`].
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

    /// Returns the kinds that satisfy `holds`.
    #[must_use]
    pub fn select(holds: impl Fn(&EventKindInfo) -> bool) -> EventKindSet {
        let kinds = ALL.iter().filter(|kind| holds(kind));
        kinds.fold(EventKindSet::default(), |kinds, kind| kinds.with_kind(kind))
    }

    /// Returns the kinds in either set.
    #[must_use]
    pub fn union(self, other: EventKindSet) -> EventKindSet {
        EventKindSet(self.0 | other.0)
    }

    /// Returns the kinds of these bits; other bits are ignored.
    #[must_use]
    pub fn from_mask_bits(gates: u64) -> EventKindSet {
        EventKindSet::select(|kind| gates & kind.mask_bit != 0)
    }

    /// Returns the set as bits of the event mask.
    #[must_use]
    pub fn mask_bits(self) -> u64 {
        self.0
    }

    pub fn iter(self) -> impl Iterator<Item = &'static EventKindInfo> {
        let all = ALL.into_iter();
        all.filter(move |kind| self.contains(kind))
    }

    /// Returns the hooks of the kinds that have hooks.
    pub(crate) fn event_hooks(self) -> impl Iterator<Item = &'static dyn EventHooks> {
        self.iter().filter_map(|kind| kind.hooks)
    }
}

/// Returns the hooks of all kinds.
pub(crate) fn all_event_hooks() -> impl Iterator<Item = &'static dyn EventHooks> {
    ALL.iter().filter_map(|kind| kind.hooks)
}

/// The classes that hooks call.
pub static CALLED_BY_HOOKS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut classes = Vec::new();
    let common = helpers::all_helpers().chain(helpers::lab_helpers());
    for helper in common.chain(kind_helpers()) {
        if !classes.contains(&helper.class) {
            classes.push(helper.class);
        }
    }
    classes
});

/// Returns the helpers that the hooks of all kinds call, apart from the common ones of `helpers`.
pub fn kind_helpers() -> impl Iterator<Item = HelperMethod<'static>> {
    all_event_hooks().flat_map(EventHooks::called_helpers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_bit_and_a_name_of_its_own() {
        // Bits that are no kind.
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
