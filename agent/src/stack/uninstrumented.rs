//! Methods without hooks at which the VM stops: at entry, before each call, and before each return.
//!
//! The agent does at these stops what hooks do elsewhere. The caller may have published no site: the VM enters a
//! class initializer in the middle of another instruction. So the entry asks the VM for the caller, like the entry
//! hook of a VM entry, and the caller's slot gets its true site. Before a call, the method's own slot gets its site,
//! and the pointer moves to the callee's slot. A return restores the pointer and the caller's slot.
//!
//! An exception that leaves the method causes no stop. The next VM entry at the same place restores the pointer: see
//! [`ThreadState::pointer_before_entry`]. The VM makes such an entry right after each class initializer that throws.
//!
//! If traces go on elsewhere below the method, as below an operator, its callers are unknown: no hook has read where.

use lucce_jvmti::JniEnvironment;

use crate::memory::slots::Slot;
use crate::stack::StackParts;
use crate::stack::caller_frames::{self, CallerFrames};
use crate::stack::context_scopes;
use crate::stack::entry_loss::EntryLoss;
use crate::stack::frames::{PIECE, ResolvedFrame, StackWalk};
use crate::stack::vm_entry;
use crate::thread::{ThreadState, VmEntryMode};

/// The position at which the VM has stopped the current thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopPlace {
    Entry,
    Call,
    Return,
}

/// Handles a stop of the innermost frame, of a method without hooks, at `place`. `pointer` is the thread's pointer.
/// Returns the new pointer. `None`: it stays.
pub fn handle_stop(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (pointer, place): (Slot, StopPlace),
) -> Option<Slot> {
    let frames = StackWalk::new(agent, env, PIECE).collect_rest()?;
    let registry = agent.core.registry();
    let callers = caller_frames::match_callers(&registry, state, &frames);
    drop(registry);
    let Some(callers) = callers else {
        return match place {
            StopPlace::Call => {
                let loss = EntryLoss::from_callee_frames(&frames);
                Some(vm_entry::lose_callee(agent, state, pointer, &loss))
            }
            StopPlace::Entry | StopPlace::Return => None,
        };
    };
    let own = own_slot(&callers, frames.first()?);
    match place {
        StopPlace::Entry => {
            if !has_looped_back(state, own, pointer) {
                enter_stopped_frame(agent, env, state, (pointer, own), frames.first()?);
            }
            None
        }
        StopPlace::Call => {
            // The entry caused no stop: stops were set since then.
            if state.pointer_before_entry(own).is_none() {
                enter_stopped_frame(agent, env, state, (pointer, own), frames.first()?);
            }
            Some(callers.prepare_callee(&mut |position, site| {
                caller_frames::wanted_site(agent, position, site)
            }))
        }
        StopPlace::Return => state
            .pop_uninstrumented_entry(own)
            .map(vm_entry::restore_caller),
    }
}

/// Enters the innermost frame, which has the slot `own`.
fn enter_stopped_frame(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (pointer, own): (Slot, Slot),
    innermost: &ResolvedFrame,
) {
    vm_entry::enter_frame(agent, env, state, pointer, 1);
    state.set_innermost_mode(VmEntryMode::Uninstrumented);
    let method = innermost.method.id();
    let unknown = method.and_then(|method| {
        let context = context_scopes::unknown_caller_context(agent, method)?;
        Some((method, context))
    });
    if let Some((method, context)) = unknown {
        own.below().write_memo(method, context);
    }
}

/// The slot of the innermost frame. A frame that traces do not show shares the slot of its callee.
fn own_slot(callers: &CallerFrames, innermost: &ResolvedFrame) -> Slot {
    let next = callers.next_slot();
    match innermost.method.id() {
        Some(_) => next.below(),
        None => next,
    }
}

/// Whether the frame with slot `own` was entered before, and a loop has returned to its first instruction. Then it
/// has made a call since, or nothing has changed.
fn has_looped_back(state: &ThreadState, own: Slot, pointer: Slot) -> bool {
    let begun = state.pointer_before_entry(own);
    begun.is_some_and(|begun| pointer > own || begun == pointer)
}
