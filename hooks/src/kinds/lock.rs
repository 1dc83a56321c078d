//! `events=lock`: threads that wait. The VM tells of monitors, before which a hook says where the thread is; what parks a
//! thread is replaced by a helper that parks it.

use lucce_bytecode::{Call, Helper, Insert, Scan};

use crate::helpers::event;
use crate::jdk::leaves::UNSAFE;
use crate::shape::{HookPlace, Mark};

use super::{At, InCode, Kind, PLAIN, gate};

pub static LOCK: Kind = Kind {
    name: "lock",
    gate: gate::LOCK,
    can_come_later: true,
    code: Some(&Waiting),
    ..PLAIN
};

struct Waiting;

/// What parks the current thread: class, method and descriptor, and the helper in its place. A class that implements
/// the one of virtual threads is counted by its caller.
const PARKS: [(&str, &str, &str, Helper<'static>); 3] = [
    (
        UNSAFE,
        "park",
        "(ZJ)V",
        event("park", "(Ljdk/internal/misc/Unsafe;ZJJI)V"),
    ),
    (
        THREADS,
        "parkVirtualThread",
        "()V",
        event("park", "(Ljdk/internal/access/JavaLangAccess;JI)V"),
    ),
    (
        THREADS,
        "parkVirtualThread",
        "(J)V",
        event("park", "(Ljdk/internal/access/JavaLangAccess;JJI)V"),
    ),
];
const THREADS: &str = "jdk/internal/access/JavaLangAccess";
const IMPLEMENTS_PARKING: &str = "java/lang/";

/// In place of a site, where the calling class is out of scope.
const OUTSIDE: i32 = -1;

/// Which of [`PARKS`] a call is.
fn park(class: &str, call: &Call<'_>) -> Option<u8> {
    // Others than classes of the JDK, which have no name here, must not call these.
    if class.is_empty() || class.starts_with(IMPLEMENTS_PARKING) {
        return None;
    }
    let found = PARKS.iter().position(|(owner, name, descriptor, _)| {
        call.owner == *owner && call.name == *name && call.descriptor == *descriptor
    });
    found.map(|index| index as u8)
}

impl InCode for Waiting {
    fn call(&self, at: &At<'_>, call: &Call<'_>) -> Option<Mark> {
        park(at.class, call).map(|which| Mark::Of(LOCK.of(which)))
    }

    fn places(&self, scan: &Scan<'_>) -> Vec<HookPlace> {
        let places = scan.monitors.iter().map(|bci| HookPlace {
            bci: *bci,
            mark: Mark::Monitor,
        });
        places.collect()
    }

    fn happens_in(&self, at: &At<'_>) -> bool {
        const SYNCHRONIZED: u16 = 0x20;
        let mut calls = at.scan.calls.iter();
        at.method.access & SYNCHRONIZED != 0
            || !at.scan.monitors.is_empty()
            || calls.any(|call| park(at.class, call).is_some())
    }

    fn inserts(&self, which: u8, site: i32) -> Vec<Insert<'static>> {
        let park = PARKS.get(usize::from(which)).into_iter();
        park.map(|(.., helper)| Insert::ReplaceWithContext {
            helper: *helper,
            site,
        })
        .collect()
    }

    fn outside(&self, at: &At<'_>) -> Vec<(u16, Insert<'static>)> {
        let parks = at.scan.calls.iter().filter_map(|call| {
            let which = park(at.class, call)?;
            Some((call.bci, self.inserts(which, OUTSIDE)))
        });
        let inserts =
            parks.flat_map(|(bci, inserts)| inserts.into_iter().map(move |one| (bci, one)));
        inserts.collect()
    }

    fn helpers(&self) -> Vec<Helper<'static>> {
        PARKS.iter().map(|park| park.3).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::tests::call;

    #[test]
    fn parking_of_virtual_threads_is_counted_once() {
        let mut park = call(UNSAFE, "park");
        park.descriptor = "(ZJ)V".into();
        let found = |class| super::park(class, &park).is_some();
        assert!(found("java/util/concurrent/locks/LockSupport"));
        assert!(!found("java/lang/VirtualThread"));
    }
}
