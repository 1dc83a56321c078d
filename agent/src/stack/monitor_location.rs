//! Locates a thread that is about to enter a monitor, if that is possible without a walk.
//!
//! The thread's pointer is stale between calls, so it must be proven. The VM is asked for the innermost frame only.
//! That frame proves the pointer in two cases:
//!
//! - A synchronized method at bci 0 has just been entered. Its code, which begins with the entry hook, has not run.
//!   So the last hook on this thread was the hook of its call, and the pointer is the method's own slot.
//! - A method is at a `monitorenter` before which the agent inserted a hook. That hook ran last, so the pointer is
//!   the slot above the method's, and the method's slot holds the hook's site.
//!
//! At any other instruction, such as one that initialises a class, or in a native method, the same pointer proves
//! nothing.
//!
//! The interpreter reports a method that waits at a `monitorenter` at the next instruction, because it has advanced
//! already for the sake of exceptions. Compiled code reports the `monitorenter` itself. So a frame is one instruction
//! before the VM's location if that location follows a `monitorenter` and its instruction cannot wait itself.

use std::cell::RefCell;

use jvmti_bindings::sys::jni::{jmethodID, jobject};
use lucce_callgraph::{MethodId, SiteId};
use lucce_instrument::kinds::LOCK;

use crate::core::EventLocation;
use crate::memory::slots::Slot;
use crate::stack::StackParts;
use crate::stack::caller_location;
use crate::thread::ThreadState;
use crate::thread::carrier;
use lucce_jvmti::JniEnvironment;

/// What the innermost frame proves about the pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PointerProof {
    /// The pointer is the frame's slot, and this is the frame's site.
    Entered(SiteId),
    /// The pointer is the slot above the frame's.
    Monitor,
    Nothing,
}

/// A location in a method, and what a frame there proves.
#[derive(Clone, Copy)]
struct MonitorPlace {
    method: usize,
    location: i64,
    id: MethodId,
    proof: PointerProof,
    position: i64,
}

/// The location that the innermost frame proves.
#[derive(Clone, Copy, Default)]
pub struct MonitorLocation {
    /// `None`: the location must be found by a walk.
    pub here: Option<EventLocation>,
    /// The true location of the innermost frame. `None`: there is no frame.
    pub location: Option<i64>,
}

const PLACES: usize = 64;

thread_local! {
    /// By hash; a new place replaces the old one. Ids of methods are never reused. A `Vec`, because a library that is
    /// loaded late has little room in the thread's own block.
    static KNOWN: RefCell<Vec<Option<MonitorPlace>>> = const { RefCell::new(Vec::new()) };
}

/// Locates the current thread, `thread`, which is about to enter a monitor.
pub fn locate_at_monitor(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    thread: jobject,
) -> MonitorLocation {
    let Some((method, location)) = agent.core.jvmti.frame_location(0) else {
        return MonitorLocation::default();
    };
    let place = cached_place(agent, env, method, location);
    MonitorLocation {
        here: prove_location(agent, env, state, (thread, place)),
        location: Some(place.position),
    }
}

fn prove_location(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (thread, known): (jobject, MonitorPlace),
) -> Option<EventLocation> {
    let field = agent.core.fields.get()?.pointer.as_raw();
    let pointer = carrier::with_field_holder(agent.thread_parts(), env, thread, |thread| {
        env.get_long(thread, field)
    });
    let pointer = Slot::from_pointer(pointer as usize);
    let (slot, site) = match known.proof {
        PointerProof::Entered(site) => (pointer, site),
        PointerProof::Monitor => {
            let slot = Some(pointer.below()).filter(|slot| state.owns_slot(*slot))?;
            (slot, slot.site())
        }
        PointerProof::Nothing => return None,
    };
    let in_method = agent.core.method_of_site.get(site.0) == known.id.0;
    (in_method && state.owns_slot(slot)).then_some(())?;
    Some(EventLocation {
        context: caller_location::slot_context(agent, state, slot, known.id)?,
        site,
        method: known.id,
    })
}

fn cached_place(
    agent: StackParts<'_>,
    env: JniEnvironment,
    method: jmethodID,
    location: i64,
) -> MonitorPlace {
    let index = (method as usize >> 3 ^ location as usize) % PLACES;
    let place = KNOWN.with_borrow(|places| places.get(index).copied().flatten());
    if let Some(place) = place
        && (place.method, place.location) == (method as usize, location)
    {
        return place;
    }
    let place = analyze_place(agent, env, method, location);
    KNOWN.with_borrow_mut(|places| {
        places.resize(PLACES, None);
        if let Some(entry) = places.get_mut(index) {
            *entry = Some(place);
        }
    });
    place
}

fn analyze_place(
    agent: StackParts<'_>,
    env: JniEnvironment,
    method: jmethodID,
    location: i64,
) -> MonitorPlace {
    let resolved = agent.stack.frames.resolve_method(agent, env, method);
    let id = resolved.id().unwrap_or(MethodId(0));
    let mut proof = PointerProof::Nothing;
    let mut position = location;
    if location == 0 && resolved.is_entered_with_lock() {
        proof = PointerProof::Entered(SiteId(
            agent.core.find_or_add_site(id.0, resolved.line_number(0)),
        ));
    } else if let Some(at) = find_monitorenter(&agent.core.jvmti.method_bytecodes(method), location)
    {
        position = at;
        if resolved.slot && agent.core.options.events.has_kind(&LOCK) {
            proof = PointerProof::Monitor;
        }
    }
    MonitorPlace {
        method: method as usize,
        location,
        id,
        proof,
        position,
    }
}

/// The `monitorenter` at which a frame waits that the VM reports at `location`.
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
mod monitor_location_tests {
    use super::*;

    #[test]
    fn the_interpreter_is_behind_the_monitorenter() {
        const ICONST_0: u8 = 3;
        const GETSTATIC: u8 = 178;
        let code = [ICONST_0, 0xc2, ICONST_0, 0xc2, GETSTATIC, 0, 1];
        assert_eq!(find_monitorenter(&code, 1), Some(1));
        assert_eq!(find_monitorenter(&code, 2), Some(1));
        assert_eq!(find_monitorenter(&code, 3), Some(3));
        // The frame may wait for the initialisation of a class.
        assert_eq!(find_monitorenter(&code, 4), None);
        for elsewhere in [-1, 0, 6, 7, i64::MAX] {
            assert_eq!(find_monitorenter(&code, elsewhere), None);
        }
    }
}
