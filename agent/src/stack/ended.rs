//! Frames that a debugger ends: its caller calls again (`PopFrame`), or it returns at once (`ForceEarlyReturn`).
//!
//! Such a frame does not run the hook at its end. A caller that calls again does not run the hook before the call again,
//! and the pointer is where the ended frame has moved it. So the pointer is put back: to where it was when the frame
//! was entered. The frame is still there while its thread is suspended, and tells where its slot is.
#![allow(unsafe_code, reason = "the state of a thread that is suspended")]

use jvmti_bindings::sys::jni::jobject;
use lucce_vm::Env;

use crate::core::thread_fields;
use crate::memory::slots::Slot;
use crate::stack::Stack;
use crate::stack::entry_loss::EntryLoss;
use crate::stack::frames::{Frame, PIECE, Walk};
use crate::stack::upcall;
use crate::thread::{OwnState, ThreadState};

/// The innermost frame of `thread` is about to end without its hooks. The VM has agreed to that, so the thread is suspended, or
/// it is the current one.
pub fn end_innermost(stack: &Stack, env: Env, thread: jobject) {
    let Some(fields) = thread_fields(stack, env, thread) else {
        return;
    };
    // SAFETY: the thread lives while it is suspended, and runs no method of the agent's then: its innermost frame is one of
    // Java code. So nothing else uses its state.
    let own = unsafe { OwnState::of_field(env.get_long(thread, fields.state.id())) };
    let Some(state) = own.get() else { return };
    // It acts as its carrier, in code of the JDK's own.
    if state.is_virtual != env.is_virtual_thread(thread) {
        return;
    }
    let field = fields.pointer.id();
    let pointer = Slot::at(env.get_long(thread, field) as usize);
    let walk = Walk::new(stack, env, PIECE).of_thread(thread);
    if let Some(pointer) = pointer_at_entry(stack, state, (walk, pointer)) {
        env.set_long(thread, field, pointer.pointer() as i64);
    }
}

/// Where the pointer was when the innermost frame was entered. `None`: the frame has not moved it.
fn pointer_at_entry(
    stack: &Stack,
    state: &ThreadState,
    (mut walk, pointer): (Walk<'_>, Slot),
) -> Option<Slot> {
    let innermost = walk.next()?;
    if walk.is_in_helper() || !moves(&innermost) {
        return None;
    }
    let below = walk.rest()?;
    let callers = upcall::callers(&stack.book(), state, &below);
    let Some(callers) = callers else {
        let loss = EntryLoss::of_callee(&below);
        return Some(upcall::lose_callee(stack, state, pointer, &loss));
    };
    let slot = callers.slot.up(callers.missing.len());
    let asked = innermost.method.is_entered_by_vm() && innermost.has_slot();
    Some(match asked {
        true => upcall::leave(state, slot),
        false => slot,
    })
}

/// Whether the frame may have moved the pointer: it has a slot, or puts the pointer back when it ends.
fn moves(frame: &Frame) -> bool {
    frame.method.slot || frame.method.restores
}
