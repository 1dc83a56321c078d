//! `events=lock`: waiting threads.
//!
//! The VM reports monitors; a hook publishes the site before `monitorenter`. Calls that park a thread are replaced by a
//! helper that parks it.

use lucce_bytecode::{CodeInsertion, HelperMethod, MethodCall};

use crate::helpers::{DURATIONS, helper_of};
use crate::instrumentation::{HookPlace, HookSiteKind};
use crate::jdk::leaf_methods::UNSAFE;

use super::{AnalyzedMethod, EventHooks, LOCK, event_call};

/// The hooks of the kind.
pub(super) struct LockHooks;

/// Methods that park the current thread: class, name and descriptor, and the helper that replaces the call.
///
/// The caller of the class that implements parking for virtual threads counts in its place.
const PARKS: [(&str, &str, &str, HelperMethod<'static>); 3] = [
    (
        UNSAFE,
        "park",
        "(ZJ)V",
        helper_of(DURATIONS, "park", "(Ljdk/internal/misc/Unsafe;ZJJI)V"),
    ),
    (
        THREADS,
        "parkVirtualThread",
        "()V",
        helper_of(
            DURATIONS,
            "park",
            "(Ljdk/internal/access/JavaLangAccess;JI)V",
        ),
    ),
    (
        THREADS,
        "parkVirtualThread",
        "(J)V",
        helper_of(
            DURATIONS,
            "park",
            "(Ljdk/internal/access/JavaLangAccess;JJI)V",
        ),
    ),
];
const THREADS: &str = "jdk/internal/access/JavaLangAccess";
const IMPLEMENTS_PARKING: &str = "java/lang/";

/// In place of a site, if the calling class is out of scope.
const OUTSIDE: i32 = -1;

/// Returns the index in [`PARKS`] of a call.
fn find_park(class: &str, call: &MethodCall<'_>) -> Option<u8> {
    // Only classes of the JDK may call these; other classes have an empty name here.
    if class.is_empty() || class.starts_with(IMPLEMENTS_PARKING) {
        return None;
    }
    let index_ = PARKS.iter().position(|(owner, name, descriptor, _)| {
        call.owner == *owner && call.name == *name && call.descriptor == *descriptor
    });
    index_.map(|index| index as u8)
}

impl EventHooks for LockHooks {
    fn call_site_kind(
        &self,
        at: &AnalyzedMethod<'_>,
        call: &MethodCall<'_>,
    ) -> Option<HookSiteKind> {
        find_park(at.class, call).map(|which| HookSiteKind::EventCall(event_call(&LOCK, which)))
    }

    fn find_places(&self, at: &AnalyzedMethod<'_>) -> Vec<HookPlace> {
        let places = at.scan.monitors.iter().map(|bci| HookPlace {
            bci: *bci,
            kind: HookSiteKind::Monitor,
        });
        places.collect()
    }

    fn happens_in(&self, at: &AnalyzedMethod<'_>) -> bool {
        const SYNCHRONIZED: u16 = 0x20;
        let mut calls = at.scan.calls.iter();
        at.method.access & SYNCHRONIZED != 0
            || !at.scan.monitors.is_empty()
            || calls.any(|call| find_park(at.class, call).is_some())
    }

    fn call_insertions(&self, which: u8, site: i32) -> Vec<CodeInsertion<'static>> {
        let park = PARKS.get(usize::from(which)).into_iter();
        park.map(|(.., helper)| CodeInsertion::ReplaceWithContext {
            helper: *helper,
            site,
        })
        .collect()
    }

    fn out_of_scope_insertions(
        &self,
        at: &AnalyzedMethod<'_>,
    ) -> Vec<(u16, CodeInsertion<'static>)> {
        let parks = at.scan.calls.iter().filter_map(|call| {
            let which = find_park(at.class, call)?;
            Some((call.bci, self.call_insertions(which, OUTSIDE)))
        });
        let inserts =
            parks.flat_map(|(bci, inserts)| inserts.into_iter().map(move |one| (bci, one)));
        inserts.collect()
    }

    fn called_helpers(&self) -> Vec<HelperMethod<'static>> {
        PARKS.iter().map(|park| park.3).collect()
    }
}

#[cfg(test)]
mod lock_tests {
    use super::*;
    use crate::api_calls::api_calls_tests::call;

    #[test]
    fn parking_of_virtual_threads_is_counted_once() {
        let mut park = call(UNSAFE, "park");
        park.descriptor = "(ZJ)V".into();
        let is_park = |class| super::find_park(class, &park).is_some();
        assert!(is_park("java/util/concurrent/locks/LockSupport"));
        assert!(!is_park("java/lang/VirtualThread"));
    }
}
