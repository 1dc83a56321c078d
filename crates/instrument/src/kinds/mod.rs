//! Hooks of the kinds of events, one file for each kind with hooks.
//!
//! The crate `lucce-options` defines a kind's name in `events=`, its bit in the event mask and its conflicts. A new kind
//! needs an entry there, and if it has hooks, a file and a line in [`HOOKS`] here.
//!
//! ```text
//! events=…, ctl=all, conflicts, `lucce ctl`       read EventKindInfo        (lucce-options)
//! hooks of a class, in scope and out of scope     ask EventHooks            (class_analysis, insertions, out_of_scope)
//! handling of the hooks' events in the agent      agent/src/events, a file with the kind's name
//! ```

mod alloc;
mod call;
mod io;
mod lock;
pub mod named_methods;
pub mod open;
mod request;
pub mod request_entries;
mod resource_table;
mod thread;

use std::sync::LazyLock;

use lucce_bytecode::{
    ClassFile, ClassFileMethod, CodeInsertion, CodeScan, HelperMethod, MethodCall, NewField,
};

use crate::helpers;
use crate::instrumentation::{EventCall, HookPlace, HookSiteKind};
use crate::method_insertions::MethodInsertions;

use alloc::AllocationHooks;
use call::EntryCountHooks;
use io::IoHooks;
use lock::LockHooks;
use named_methods::{NamedCallHooks, NamedTimeHooks};
use open::OpenHooks;
use request::RequestHooks;
use thread::ThreadStartHooks;

use lucce_options::ResourceRules;
pub use lucce_options::event_mask;
pub use lucce_options::kinds::{
    ALIVE_THREADS, ALL, ALLOC, ALLOC_SIZES, ALLOCATION_SIZES, ALLOCATIONS, BYTES, CALL, CATCHES,
    CLASS, CLASS_LOADERS, CLASS_UNLOADS, CLASSES, COLLECTED_RESOURCES, DIED_YOUNG, EXCEPTION,
    EXCEPTIONS, EventKindInfo, EventKindSet, HEAP, HEAP_INTERVAL, HUMONGOUS_BYTES, IO,
    KindConflict, KindDescriptor, LEAK, LIVING_BLOCKS, LOADER_UNLOADS, LOCK, LOCK_HOLDERS,
    LOCK_WAITS, NAMED_CALL, NAMED_TIME, NANOS, NATIVE, NATIVE_MEMORY, NO_SURVIVAL, OBJECTS,
    OLD_OBJECTS, OLDEST_BLOCKS, OPEN, OPEN_RESOURCES, OPENINGS, REQUEST, SAMPLE_ERRORS, SAMPLES,
    SURVIVE, SURVIVED_COLLECTIONS, SURVIVORS, TASKS, TENURING_THRESHOLD, THREAD,
    UNFOLLOWED_SAMPLES, YOUNG_COLLECTIONS, is_companion_kind,
};

/// The kinds with hooks, each with its hooks.
static HOOKS: [(&EventKindInfo, &dyn EventHooks); 9] = [
    (&ALLOC, &AllocationHooks),
    (&CALL, &EntryCountHooks),
    (&IO, &IoHooks),
    (&LOCK, &LockHooks),
    (&NAMED_CALL, &NamedCallHooks),
    (&NAMED_TIME, &NamedTimeHooks),
    (&OPEN, &OpenHooks),
    (&REQUEST, &RequestHooks),
    (&THREAD, &ThreadStartHooks),
];

/// The hooks of a kind of events.
pub trait EventHooks: Sync {
    /// Returns what this call means for the kind, in a method of a class in scope.
    fn call_site_kind(
        &self,
        _at: &AnalyzedMethod<'_>,
        _call: &MethodCall<'_>,
    ) -> Option<HookSiteKind> {
        None
    }

    /// Returns the places of events that are not calls.
    fn find_places(&self, _at: &AnalyzedMethod<'_>) -> Vec<HookPlace> {
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

    /// Returns the word for a call with this number, in brackets in the log, if the hooks around it report its size and time.
    /// The agent then counts the call in each of [`EventKindInfo::log_kinds`].
    fn call_word(&self, _which: u8) -> Option<&'static str> {
        None
    }

    /// Returns the kind in the log for a call with this number, if Java code counts it in a counter of the site alone.
    fn counted_as(&self, _which: u8) -> Option<&'static str> {
        None
    }

    /// Whether the hooks of a call with this number run once, at the entry of the method.
    fn runs_at_entry(&self, _which: u8) -> bool {
        false
    }

    /// Returns the hooks of a method out of scope, where no site is known.
    fn out_of_scope_insertions(&self, _at: &AnalyzedMethod<'_>) -> MethodInsertions {
        MethodInsertions::default()
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
    /// The option `resource=`.
    pub resources: &'a ResourceRules,
}

impl AnalyzedMethod<'_> {
    /// Whether the call reaches a native or abstract method of its own class.
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
    ALL.into_iter().find(|kind| has_event_call(kind, of))
}

/// Returns the hooks of an event call.
pub(crate) fn event_call_insertions(of: EventCall, site: i32) -> Vec<CodeInsertion<'static>> {
    let code = event_kind_of(of).and_then(hooks_of_kind);
    code.map_or_else(Vec::new, |code| code.call_insertions(of.which, site))
}

/// See [`EventHooks::runs_at_entry`].
pub(crate) fn runs_at_entry(of: EventCall) -> bool {
    let code = event_kind_of(of).and_then(hooks_of_kind);
    code.is_some_and(|code| code.runs_at_entry(of.which))
}

/// See [`EventHooks::counted_as`].
#[must_use]
pub fn counted_as(of: EventCall) -> Option<&'static str> {
    hooks_of_kind(event_kind_of(of)?)?.counted_as(of.which)
}

/// Whether the event call belongs to this kind.
#[must_use]
pub fn has_event_call(kind: &EventKindInfo, of: EventCall) -> bool {
    kind.mask_bit == 1 << of.bit
}

/// Returns the event call of a kind with this number.
const fn event_call(kind: &EventKindInfo, which: u8) -> EventCall {
    EventCall {
        bit: kind.mask_bit.trailing_zeros() as u8,
        which,
    }
}

/// Returns the hooks of a kind, if it has hooks.
#[must_use]
pub fn hooks_of_kind(kind: &EventKindInfo) -> Option<&'static dyn EventHooks> {
    let mut all = HOOKS.iter();
    let own = all.find(|(other, _)| other.mask_bit == kind.mask_bit);
    own.map(|(_, hooks)| *hooks)
}

/// Returns the hooks of the kinds that have hooks.
pub(crate) fn hooks_of_kinds(kinds: EventKindSet) -> impl Iterator<Item = &'static dyn EventHooks> {
    let own = HOOKS.iter().filter(move |(kind, _)| kinds.contains(kind));
    own.map(|(_, hooks)| *hooks)
}

/// Returns the hooks of all kinds.
pub(crate) fn all_event_hooks() -> impl Iterator<Item = &'static dyn EventHooks> {
    HOOKS.iter().map(|(_, hooks)| *hooks)
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

/// Returns the number in place of a site for a call in a class out of scope.
#[must_use]
pub fn outside_site(which: u8) -> i32 {
    -1 - i32::from(which)
}

/// Returns the call that a number in place of a site means; `None`: it is a site.
#[must_use]
pub fn call_of_site(site: i32) -> Option<u8> {
    u8::try_from(-1 - i64::from(site)).ok()
}

#[cfg(test)]
mod kinds_tests {
    use super::*;

    #[test]
    fn each_kind_has_the_hooks_that_its_entry_promises() {
        for kind in ALL {
            assert_eq!(
                hooks_of_kind(kind).is_some(),
                kind.has_hooks,
                "{}",
                kind.name
            );
            let call = EventCall::from_packed(event_call(kind, 7).to_packed());
            let of_kind = ALL.iter().filter(|other| has_event_call(other, call));
            assert!(has_event_call(kind, call) && of_kind.count() == 1);
        }
    }
}
