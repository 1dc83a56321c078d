//! Methods without hooks at which the VM stops: at their entry, before each of their calls, and before they return.
//!
//! Such a method takes the part that hooks take elsewhere. Its callers may have said nothing: the VM enters a class
//! initializer in the middle of another instruction. So its entry asks the VM who called, as the entry hook of a method does
//! that the VM enters: the caller's slot gets its true site. Before a call, the method's own slot gets its site, and
//! the pointer says where the slot of the callee is. A return puts the pointer and the caller's slot back.
//!
//! An exception that leaves the method stops nothing. The next frame that the VM enters at the same place puts the pointer
//! back then, see [`ThreadState::entered_at`]. The VM enters one right after each class initializer that throws.

use lucce_vm::Env;

use crate::memory::slots::Slot;
use crate::stack::Stack;
use crate::stack::entry_loss::EntryLoss;
use crate::stack::frames::{Frame, PIECE, Walk};
use crate::stack::upcall::{self, Callers};
use crate::thread::ThreadState;

/// Where the VM has stopped the current thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopPlace {
    Entry,
    Call,
    Return,
}

/// The innermost frame, of a method without hooks, is at `place`, and the thread's pointer is `pointer`: where it
/// is from now on. `None`: it stays.
pub fn stop_at(
    stack: &Stack,
    env: Env,
    state: &ThreadState,
    (pointer, place): (Slot, StopPlace),
) -> Option<Slot> {
    let frames = Walk::new(stack, env, PIECE).rest()?;
    let book = stack.book();
    let callers = upcall::callers(&book, state, &frames);
    drop(book);
    let Some(callers) = callers else {
        return match place {
            StopPlace::Call => {
                let loss = EntryLoss::of_callee(&frames);
                Some(upcall::lose_callee(stack, state, pointer, &loss))
            }
            StopPlace::Entry | StopPlace::Return => None,
        };
    };
    let own = own_slot(&callers, frames.first()?);
    match place {
        StopPlace::Entry => {
            if !goes_on(state, own, pointer) {
                upcall::enter(stack, env, state, pointer, 1);
            }
            None
        }
        StopPlace::Call => {
            // Its entry was not seen: the VM has begun to stop there since.
            if state.entered_at(own).is_none() {
                upcall::enter(stack, env, state, pointer, 1);
            }
            Some(callers.place_callee(&mut |stands, site| upcall::wanted_site(stack, stands, site)))
        }
        StopPlace::Return => state.entered_at(own).map(|_| upcall::leave(state, own)),
    }
}

/// The slot of the innermost frame. One that traces do not show shares the slot of what it calls.
fn own_slot(callers: &Callers, innermost: &Frame) -> Slot {
    let next = callers.slot.up(callers.missing.len());
    match innermost.method.id() {
        Some(_) => next.below(),
        None => next,
    }
}

/// Whether the frame with slot `own` has begun already, and a loop has brought it back to its first instruction: either it
/// has called since, or nothing has changed.
fn goes_on(state: &ThreadState, own: Slot, pointer: Slot) -> bool {
    let begun = state.entered_at(own);
    begun.is_some_and(|begun| pointer > own || begun == pointer)
}
