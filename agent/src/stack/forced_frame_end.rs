//! Frames that a debugger ends: the caller calls again (`PopFrame`), or the frame returns at once
//! (`ForceEarlyReturn`).
//!
//! Such a frame does not run the hook at its end. A caller that calls again does not repeat the hook before the call,
//! and the pointer is still where the ended frame moved it. So the agent restores the pointer to its value at the
//! frame's entry. The frame still exists while its thread is suspended, so its slot can be found.
#![allow(unsafe_code, reason = "the state of a thread that is suspended")]

use jvmti_bindings::sys::jni::jobject;
use lucce_jvmti::JniEnvironment;

use crate::core::thread_fields;
use crate::memory::slots::Slot;
use crate::stack::StackParts;
use crate::stack::caller_frames;
use crate::stack::entry_loss::EntryLoss;
use crate::stack::frames::{PIECE, ResolvedFrame, StackWalk};
use crate::stack::vm_entry;
use crate::thread::{OwnState, ThreadState};

/// Restores the pointer of `thread`, whose innermost frame is about to end without its hooks. The VM has agreed to
/// that, so the thread is suspended, or it is the current one.
pub fn end_innermost(agent: StackParts<'_>, env: JniEnvironment, thread: jobject) {
    let Some(fields) = thread_fields(agent.core, env, thread) else {
        return;
    };
    // SAFETY: the thread lives while it is suspended, and runs no method of the agent's then: its innermost frame is one of
    // Java code. So nothing else uses its state.
    let own = unsafe { OwnState::from_field(env.get_long(thread, fields.state.as_raw())) };
    let Some(state) = own.get() else { return };
    // A virtual thread acts as its carrier, in code of the JDK.
    if state.is_virtual != env.is_virtual_thread(thread) {
        return;
    }
    let field = fields.pointer.as_raw();
    let pointer = Slot::from_pointer(env.get_long(thread, field) as usize);
    let walk = StackWalk::new(agent, env, PIECE).for_thread(thread);
    if let Some(pointer) = pointer_at_entry(agent, state, (walk, pointer)) {
        env.set_long(thread, field, pointer.pointer() as i64);
    }
}

/// The pointer at the entry of the innermost frame. `None`: the frame has not moved it.
fn pointer_at_entry(
    agent: StackParts<'_>,
    state: &ThreadState,
    (mut walk, pointer): (StackWalk<'_>, Slot),
) -> Option<Slot> {
    let innermost = walk.next()?;
    if innermost.is_deferrable_entry() && !walk.is_in_helper() {
        return state.pop_deferrable_entry().map(|entry| entry.pointer);
    }
    if walk.is_in_helper() || !moves_pointer(&innermost) {
        return None;
    }
    let below = walk.collect_rest()?;
    let callers = caller_frames::match_callers(&agent.core.registry(), state, &below);
    let Some(callers) = callers else {
        let loss = EntryLoss::from_callee_frames(&below);
        return Some(vm_entry::lose_callee(agent, state, pointer, &loss));
    };
    let slot = callers.next_slot();
    let needs_vm_entry = innermost.method.is_entered_by_vm() && innermost.has_slot();
    Some(match needs_vm_entry {
        true => vm_entry::leave_frame(state, slot),
        false => slot,
    })
}

/// Whether the frame may have moved the pointer: it has a slot, or it restores the pointer when it ends.
fn moves_pointer(frame: &ResolvedFrame) -> bool {
    frame.method.slot || frame.method.restores
}
