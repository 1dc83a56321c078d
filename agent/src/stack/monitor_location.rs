//! Where a thread is that is about to enter a monitor, if that can be told without a walk.
//!
//! The thread's pointer is stale between calls, so what it says must be proven. The VM is asked for the
//! innermost frame alone; it proves the pointer in two cases:
//!
//! - a synchronized method at bci 0 has just been entered: its own code, which begins with the entry
//!   hook, has not run. So the last hook on this thread was that of its call, and the pointer is the
//!   method's own slot, as it will be for the entry hook;
//! - a method stands at a `monitorenter` before which the agent has put a hook: that hook was the last
//!   thing to run, so the pointer is the slot above the method's, whose site is the hook's.
//!
//! Anywhere else, at an instruction that initialises a class, say, or in a native method, the same pointer
//! proves nothing.
//!
//! The interpreter says that a method which waits at a `monitorenter` stands at the next instruction: it
//! has moved on already, for the sake of exceptions. Compiled code says it as it is. So a frame stands one
//! instruction before the VM's location if that follows a `monitorenter` and cannot wait itself.

use std::cell::RefCell;

use jvmti_bindings::sys::jni::{jmethodID, jobject};
use lucce_callgraph::{MethodId, SiteId};
use lucce_instrument::kinds::LOCK;

use crate::core::EventLocation;
use crate::memory::slots::Slot;
use crate::stack::StackTracker;
use crate::stack::current_location;
use crate::thread::ThreadState;
use crate::thread::carrier;
use lucce_jvmti::JniEnvironment;

/// What the innermost frame proves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PointerProof {
    /// The pointer is the frame's slot; its site is the frame's.
    Entered(SiteId),
    /// The pointer is the slot above.
    Monitor,
    Nothing,
}

/// A place in a method, and what a frame there proves.
#[derive(Clone, Copy)]
struct MonitorPlace {
    method: usize,
    location: i64,
    id: MethodId,
    proof: PointerProof,
    stands: i64,
}

/// What the innermost frame tells.
#[derive(Clone, Copy, Default)]
pub struct MonitorLocation {
    /// `None`: it must be asked in another way.
    pub here: Option<EventLocation>,
    /// Where it really stands; `None`: there is none.
    pub location: Option<i64>,
}

const PLACES: usize = 64;

thread_local! {
    /// By hash; a newer one takes its place. Ids of methods are never used again. Not in the thread's own
    /// block, in which a library that is loaded late has little room.
    static KNOWN: RefCell<Vec<Option<MonitorPlace>>> = const { RefCell::new(Vec::new()) };
}

pub fn locate_at_monitor(
    stack: &StackTracker,
    env: JniEnvironment,
    state: &ThreadState,
    thread: jobject,
) -> MonitorLocation {
    let Some((method, location)) = stack.jvmti.frame_location(0) else {
        return MonitorLocation::default();
    };
    let known = cached_place(stack, env, method, location);
    MonitorLocation {
        here: prove_location(stack, env, state, (thread, known)),
        location: Some(known.stands),
    }
}

fn prove_location(
    stack: &StackTracker,
    env: JniEnvironment,
    state: &ThreadState,
    (thread, known): (jobject, MonitorPlace),
) -> Option<EventLocation> {
    let field = stack.fields.get()?.pointer.as_raw();
    let pointer =
        carrier::with_field_holder(stack, env, thread, |thread| env.get_long(thread, field));
    let pointer = Slot::from_pointer(pointer as usize);
    let (slot, site) = match known.proof {
        PointerProof::Entered(site) => (pointer, site),
        PointerProof::Monitor => {
            let slot = Some(pointer.below()).filter(|slot| state.owns_slot(*slot))?;
            (slot, slot.site())
        }
        PointerProof::Nothing => return None,
    };
    let in_method = stack.method_of_site.get(site.0) == known.id.0;
    (in_method && state.owns_slot(slot)).then_some(())?;
    Some(EventLocation {
        context: current_location::slot_context(stack, state, slot, known.id)?,
        site,
        method: known.id,
    })
}

fn cached_place(
    stack: &StackTracker,
    env: JniEnvironment,
    method: jmethodID,
    location: i64,
) -> MonitorPlace {
    let index = (method as usize >> 3 ^ location as usize) % PLACES;
    let found = KNOWN.with_borrow(|known| known.get(index).copied().flatten());
    if let Some(found) = found
        && (found.method, found.location) == (method as usize, location)
    {
        return found;
    }
    let found = analyze_place(stack, env, method, location);
    KNOWN.with_borrow_mut(|known| {
        known.resize(PLACES, None);
        if let Some(entry) = known.get_mut(index) {
            *entry = Some(found);
        }
    });
    found
}

fn analyze_place(
    stack: &StackTracker,
    env: JniEnvironment,
    method: jmethodID,
    location: i64,
) -> MonitorPlace {
    let resolved = stack.frames.resolve_method(stack, env, method);
    let id = resolved.id().unwrap_or(MethodId(0));
    let mut proof = PointerProof::Nothing;
    let mut stands = location;
    if location == 0 && resolved.is_entered_with_lock() {
        proof = PointerProof::Entered(SiteId(
            stack.find_or_add_site(id.0, resolved.line_number(0)),
        ));
    } else if let Some(at) = find_monitorenter(&stack.jvmti.method_bytecodes(method), location) {
        stands = at;
        if resolved.slot && stack.options.events.has_kind(&LOCK) {
            proof = PointerProof::Monitor;
        }
    }
    MonitorPlace {
        method: method as usize,
        location,
        id,
        proof,
        stands,
    }
}

/// The `monitorenter` at which a frame waits of which the VM says that it stands at `location`.
pub fn find_monitorenter(code: &[u8], location: i64) -> Option<i64> {
    const MONITORENTER: u8 = 0xc2;
    let at = usize::try_from(location).ok()?;
    let here = *code.get(at)?;
    if here == MONITORENTER {
        return Some(location);
    }
    let before = *code.get(at.checked_sub(1)?)?;
    (before == MONITORENTER && !may_wait(here)).then_some(location - 1)
}

/// Whether an instruction may load or initialise a class, allocate, call or throw.
fn may_wait(opcode: u8) -> bool {
    // JVMS 6.5: constants from the pool, fields and methods, objects and classes,
    // `multianewarray`.
    matches!(opcode, 18..=20 | 178..=193 | 197)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreter_stands_behind_the_monitorenter() {
        const ICONST_0: u8 = 3;
        const GETSTATIC: u8 = 178;
        let code = [ICONST_0, 0xc2, ICONST_0, 0xc2, GETSTATIC, 0, 1];
        assert_eq!(find_monitorenter(&code, 1), Some(1));
        assert_eq!(find_monitorenter(&code, 2), Some(1));
        assert_eq!(find_monitorenter(&code, 3), Some(3));
        // It may be the initialisation of a class that is waited for.
        assert_eq!(find_monitorenter(&code, 4), None);
        for elsewhere in [-1, 0, 6, 7, i64::MAX] {
            assert_eq!(find_monitorenter(&code, elsewhere), None);
        }
    }
}
