//! `events=lock`: waiting threads.
//!
//! The VM reports monitors; a hook publishes the site before `monitorenter`. Calls that park a thread are replaced by a
//! helper that parks it.
//!
//! While threads wait, hooks also report who has acquired a lock and who releases it: behind `monitorenter` and before
//! `monitorexit`, at the entry and the returns of synchronized methods, and where a lock of `java.util.concurrent` changes its
//! owner. A release that no hook precedes leaves the holder unknown.

use lucce_bytecode::{CodeInsertion, HelperMethod, MethodCall, return_bcis};

use crate::helpers::{ACQUIRE_LOCK, CHANGE_OWNER, DURATIONS, RELEASE_LOCK, helper_of};
use crate::instrumentation::{HookPlace, HookSiteKind};
use crate::jdk::leaf_methods::UNSAFE;
use crate::method_insertions::MethodInsertions;

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

/// The class that keeps the owner of a lock of `java.util.concurrent`, and the method that changes it.
const OWNABLE: &str = "java/util/concurrent/locks/AbstractOwnableSynchronizer";
const SET_OWNER: &str = "setExclusiveOwnerThread";

/// Hooks of a method that holds a lock, numbered behind [`PARKS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LockHook {
    /// At a `monitorexit`; its object is on the stack.
    MonitorExit,
    /// At the entry of a synchronized method, and at its returns. The object is `this`.
    MethodEntry,
    MethodReturn,
    /// The same for a static method. The object is the class.
    StaticEntry,
    StaticReturn,
    /// At the returns of [`SET_OWNER`].
    OwnerChange,
}

impl LockHook {
    const ALL: [LockHook; 6] = [
        LockHook::MonitorExit,
        LockHook::MethodEntry,
        LockHook::MethodReturn,
        LockHook::StaticEntry,
        LockHook::StaticReturn,
        LockHook::OwnerChange,
    ];

    fn from_number(which: u8) -> Option<LockHook> {
        let index = usize::from(which).checked_sub(PARKS.len())?;
        LockHook::ALL.get(index).copied()
    }

    fn place_at(self, bci: u16) -> HookPlace {
        let which = PARKS.len() as u8 + self as u8;
        HookPlace {
            bci,
            kind: HookSiteKind::EventCall(event_call(&LOCK, which)),
        }
    }

    fn insertion(self, site: i32) -> CodeInsertion<'static> {
        let of_this = |helper| CodeInsertion::MarkLocal {
            helper,
            site,
            local: 0,
        };
        let of_class = |helper| CodeInsertion::MarkClass { helper, site };
        match self {
            LockHook::MonitorExit => CodeInsertion::MarkTop {
                helper: RELEASE_LOCK,
                site,
            },
            LockHook::MethodEntry => of_this(ACQUIRE_LOCK),
            LockHook::MethodReturn => of_this(RELEASE_LOCK),
            LockHook::StaticEntry => of_class(ACQUIRE_LOCK),
            LockHook::StaticReturn => of_class(RELEASE_LOCK),
            LockHook::OwnerChange => of_this(CHANGE_OWNER),
        }
    }
}

const SYNCHRONIZED: u16 = 0x20;

/// Returns the places where the method acquires and releases locks, apart from `monitorenter`.
///
/// `is_followed`: a hook reports the acquisition of each monitor of its blocks.
fn find_lock_places(at: &AnalyzedMethod<'_>, is_followed: bool) -> Vec<HookPlace> {
    /// The first class file version whose `ldc` loads a class.
    const LOADS_CLASSES: u16 = 49;
    let exits = at.scan.guarded_exits.iter().filter(|_| is_followed);
    let mut places: Vec<_> = exits
        .map(|bci| LockHook::MonitorExit.place_at(*bci))
        .collect();
    let Some(code) = &at.method.code else {
        return places;
    };
    let returns = |hook: LockHook| {
        let bcis = return_bcis(code.bytes).into_iter();
        bcis.map(move |bci| hook.place_at(bci))
    };
    if sets_owner(at) {
        places.extend(returns(LockHook::OwnerChange));
    } else if at.method.access & SYNCHRONIZED != 0 {
        let hooks = match at.method.is_static() {
            true => (at.file.major() >= LOADS_CLASSES)
                .then_some((LockHook::StaticEntry, LockHook::StaticReturn)),
            // A method may use the variable of `this` for another value.
            false => (!at.scan.writes_first_local)
                .then_some((LockHook::MethodEntry, LockHook::MethodReturn)),
        };
        if let Some((entry, end)) = hooks {
            places.push(entry.place_at(0));
            places.extend(returns(end));
        }
    }
    places
}

/// Whether the method changes the owner of a lock of `java.util.concurrent`.
fn sets_owner(at: &AnalyzedMethod<'_>) -> bool {
    at.class == OWNABLE && at.method.name == SET_OWNER
}

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
        let scan = at.scan;
        // In a constructor, the object may be uninitialized. Without a hook behind each acquisition, releases prove nothing.
        let is_followed =
            at.method.name != "<init>" && scan.kept_monitors.len() == scan.monitors.len();
        let mut places: Vec<_> = match is_followed {
            true => {
                let kept = scan.kept_monitors.iter();
                kept.map(|(bci, local)| HookPlace {
                    bci: *bci,
                    kind: HookSiteKind::FollowedMonitor(*local),
                })
                .collect()
            }
            false => {
                let monitors = scan.monitors.iter();
                monitors
                    .map(|bci| HookPlace {
                        bci: *bci,
                        kind: HookSiteKind::Monitor,
                    })
                    .collect()
            }
        };
        places.extend(find_lock_places(at, is_followed));
        places
    }

    fn happens_in(&self, at: &AnalyzedMethod<'_>) -> bool {
        let mut calls = at.scan.calls.iter();
        at.method.access & SYNCHRONIZED != 0
            || !at.scan.monitors.is_empty()
            || sets_owner(at)
            || calls.any(|call| find_park(at.class, call).is_some())
    }

    fn call_insertions(&self, which: u8, site: i32) -> Vec<CodeInsertion<'static>> {
        let park = PARKS.get(usize::from(which));
        let park = park.map(|(.., helper)| CodeInsertion::ReplaceWithContext {
            helper: *helper,
            site,
        });
        let lock = LockHook::from_number(which).map(|hook| hook.insertion(site));
        park.or(lock).into_iter().collect()
    }

    fn out_of_scope_insertions(&self, at: &AnalyzedMethod<'_>) -> MethodInsertions {
        let parks = at.scan.calls.iter().filter_map(|call| {
            let which = find_park(at.class, call)?;
            Some((call.bci, self.call_insertions(which, OUTSIDE)))
        });
        let inserts =
            parks.flat_map(|(bci, inserts)| inserts.into_iter().map(move |one| (bci, one)));
        MethodInsertions::from_places(inserts)
    }

    fn called_helpers(&self) -> Vec<HelperMethod<'static>> {
        let parks = PARKS.iter().map(|park| park.3);
        parks
            .chain([ACQUIRE_LOCK, RELEASE_LOCK, CHANGE_OWNER])
            .collect()
    }

    fn inherited_helpers(&self) -> Vec<HelperMethod<'static>> {
        vec![ACQUIRE_LOCK, RELEASE_LOCK]
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
