//! Methods without hooks at which the VM stops: at their entry, before each of their calls, and before they return.
//!
//! Such a method takes the part that hooks take elsewhere. Its callers may have said nothing: the VM enters a class
//! initializer in the middle of another instruction. So its entry asks the VM who called, as the entry hook of a method does
//! that the VM enters: the caller's slot gets its true site. Before a call, the method's own slot gets its site, and
//! the pointer says where the slot of the callee is. A return puts the pointer and the caller's slot back.
//!
//! An exception that leaves the method stops nothing. The next frame that the VM enters at the same place puts the pointer
//! back then, see [`ThreadState::pointer_before_entry`]. The VM enters one right after each class initializer that throws.

use lucce_jvmti::JniEnvironment;

use crate::memory::slots::Slot;
use crate::stack::StackTracker;
use crate::stack::entry_loss::EntryLoss;
use crate::stack::frames::{PIECE, ResolvedFrame, StackWalk};
use crate::stack::vm_entry::{self, CallerFrames};
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
pub fn handle_stop(
    stack: &StackTracker,
    env: JniEnvironment,
    state: &ThreadState,
    (pointer, place): (Slot, StopPlace),
) -> Option<Slot> {
    let frames = StackWalk::new(stack, env, PIECE).collect_rest()?;
    let book = stack.registry();
    let callers = vm_entry::match_callers(&book, state, &frames);
    drop(book);
    let Some(callers) = callers else {
        return match place {
            StopPlace::Call => {
                let loss = EntryLoss::from_callee_frames(&frames);
                Some(vm_entry::lose_callee(stack, state, pointer, &loss))
            }
            StopPlace::Entry | StopPlace::Return => None,
        };
    };
    let own = own_slot(&callers, frames.first()?);
    match place {
        StopPlace::Entry => {
            if !has_looped_back(state, own, pointer) {
                vm_entry::enter_frame(stack, env, state, pointer, 1);
            }
            None
        }
        StopPlace::Call => {
            // Its entry was not seen: the VM has begun to stop there since.
            if state.pointer_before_entry(own).is_none() {
                vm_entry::enter_frame(stack, env, state, pointer, 1);
            }
            Some(
                callers
                    .prepare_callee(&mut |stands, site| vm_entry::wanted_site(stack, stands, site)),
            )
        }
        StopPlace::Return => state
            .pointer_before_entry(own)
            .map(|_| vm_entry::leave_frame(state, own)),
    }
}

/// The slot of the innermost frame. One that traces do not show shares the slot of what it calls.
fn own_slot(callers: &CallerFrames, innermost: &ResolvedFrame) -> Slot {
    let next = callers.slot.up_by(callers.missing.len());
    match innermost.method.id() {
        Some(_) => next.below(),
        None => next,
    }
}

/// Whether the frame with slot `own` has begun already, and a loop has brought it back to its first instruction: either it
/// has called since, or nothing has changed.
fn has_looped_back(state: &ThreadState, own: Slot, pointer: Slot) -> bool {
    let begun = state.pointer_before_entry(own);
    begun.is_some_and(|begun| pointer > own || begun == pointer)
}
