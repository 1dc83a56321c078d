//! VM entries for which the VM is asked later, if a context is needed.
//!
//! Most methods that the VM enters end before anything needs their context: `loadClass` out of scope has no event. The
//! thread's pointer is never below the slot of the running frame. So the entered frame takes a slot above the pointer:
//!
//! ```text
//! slots of callers │ remains of ended calls │ VM_ENTRY │ VM_ENTRY │ slot of the entered frame, or of its callee
//!                                    pointer ┘ boundary   caller
//! ```
//! A look-up that meets [`VM_ENTRY`] in the caller's place asks the VM. The caller's place gets the caller's site, and the
//! boundary its context, as a memo. The frames below the entered one cannot move meanwhile, so the answer is that of the
//! entry. Frames are matched with slots run by run (`slot_runs`): the VM's frames and the thread's entries have the same
//! order and number. If they differ, an entry ended without its exit hook. Then the frame above the entry is counted from
//! the innermost frame's slot, and its context is computed from the frames alone.

use lucce_callgraph::{ContextId, MethodId, SiteId};

use crate::core::EventLocation;
use crate::memory::counter::increment_counter;
use crate::memory::slots::{LOST, Slot, VM_ENTRY};
use crate::registry::CodeRegistry;
use crate::stack::StackParts;
use crate::stack::caller_frames::{EventPlace, are_known, match_callers, match_outer_callers};
use crate::stack::caller_location::locate_by_callers;
use crate::stack::entry_loss::EntryLoss;
use crate::stack::frames::{PIECE, ResolvedFrame, StackWalk};
use crate::stack::slot_runs::{DeferredEntry, count_deferrable};
use crate::stack::vm_entry;
use crate::thread::{ThreadState, VmEntry, VmEntryMode};
use lucce_jvmti::JniEnvironment;

/// Entries are deferred in this part of the slots: gaps between runs must leave room for a deep stack.
pub(super) const DEFERRING_PART: usize = 16;

/// Gives a slot to a frame that the VM has entered, or to its callee, and asks nothing. `pointer`: the thread's pointer
/// at the entry.
pub fn defer_entry(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    pointer: Slot,
) -> Slot {
    if !has_room(state, pointer) {
        let slot = vm_entry::enter_frame(agent, env, state, pointer, 1);
        state.set_innermost_mode(VmEntryMode::Undeferred);
        return slot;
    }
    increment_counter(&agent.core.counts.vm_entries);
    increment_counter(&agent.core.counts.vm_entries_deferred);
    defer_at(state, pointer)
}

/// Whether the pointer is in the part of the slots in which entries are deferred.
pub(super) fn has_room(state: &ThreadState, pointer: Slot) -> bool {
    let slots = state.slots();
    let room = slots.end.frames_above(slots.start) / DEFERRING_PART;
    state.owns_slot(pointer) && pointer.frames_above(slots.start) < room
}

/// As [`defer_entry`], with room.
pub(super) fn defer_at(state: &ThreadState, pointer: Slot) -> Slot {
    let boundary = pointer.above();
    let caller = boundary.above();
    let slot = caller.above();
    boundary.write_site(SiteId(VM_ENTRY));
    caller.write_site(SiteId(VM_ENTRY));
    slot.clear_downcall();
    state.push_deferred_entry(VmEntry {
        slot,
        pointer,
        changed_site: None,
        // No trace shows methods out of scope. Other frames have the slot.
        slotless: true,
        mode: VmEntryMode::Deferred,
    });
    slot
}

/// Finds the caller of a deferred VM entry, which an event needs. `caller`: its place. Returns whether the place has a site
/// now.
pub fn locate_entry(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (caller, event): (Slot, EventPlace),
) -> bool {
    let slot = caller.above();
    if !state.deferrable_entries().contains(&Some(slot)) {
        return false;
    }
    increment_counter(&agent.core.counts.vm_entries_located);
    let Some(frames) = StackWalk::new(agent, env, PIECE).collect_rest() else {
        return false;
    };
    let top = event.frame_slot(&agent.core.registry(), &frames);
    if locate_by_slots(agent, state, &frames, (slot, top)).is_none() {
        increment_counter(&agent.core.counts.vm_entries_by_frames);
        match locate_by_frames(agent, state, &frames, (slot, top)) {
            Some(here) => write_caller(slot, Some(here)),
            None => {
                // The entered frame is below those of the event.
                let at = frames.iter().position(ResolvedFrame::is_deferrable_entry);
                let entered = frames.get(at.unwrap_or(0)..).unwrap_or_default();
                EntryLoss::from_callee_frames(entered).count_and_report(agent, state);
                caller.write_site(SiteId(LOST));
            }
        }
    }
    !matches!(caller.site(), SiteId(LOST | VM_ENTRY))
}

/// Finds the caller by matching all frames with their slots.
fn locate_by_slots(
    agent: StackParts<'_>,
    state: &ThreadState,
    frames: &[ResolvedFrame],
    (slot, top): (Slot, Slot),
) -> Option<()> {
    let callers = match_callers(&agent.core.registry(), state, frames)?;
    if top >= slot && callers.slot != top.above() {
        return None;
    }
    let entry = callers
        .deferred
        .iter()
        .position(|entry| entry.slot == slot)?;
    locate_entries(agent, state, frames, callers.deferred.get(..=entry)?)
}

/// Finds the callers of deferred VM entries that nobody has needed yet. `entries`: all from the outermost on, matched with
/// `frames`. `None`: a caller is not known.
pub fn locate_entries(
    agent: StackParts<'_>,
    state: &ThreadState,
    frames: &[ResolvedFrame],
    entries: &[DeferredEntry],
) -> Option<()> {
    for entry in entries {
        if entry.slot.below().site() != SiteId(VM_ENTRY) {
            continue;
        }
        let below = frames.get(entry.caller..)?;
        let all = state.deferrable_entries().len();
        let inner = all.checked_sub(count_deferrable(below))?;
        let callers = {
            let registry = agent.core.registry();
            match_outer_callers(&registry, state, below, inner)?
        };
        let is_first = callers.innermost.is_none() && callers.missing.is_empty();
        let here = match is_first && callers.is_complete {
            true => None,
            false => Some(locate_by_callers(agent, state, &callers)?),
        };
        write_caller(entry.slot, here);
    }
    Some(())
}

/// Finds the caller by the frames alone. The frames with slots from `top` down to `slot` are above it.
fn locate_by_frames(
    agent: StackParts<'_>,
    state: &ThreadState,
    frames: &[ResolvedFrame],
    (slot, top): (Slot, Slot),
) -> Option<EventLocation> {
    are_known(frames).then_some(())?;
    let mut at = top.above();
    let mut below = frames.len();
    let registry = agent.core.registry();
    for (index, frame) in frames.iter().enumerate() {
        let Some(method) = frame.method.id() else {
            continue;
        };
        // Frames without a slot are above the innermost one.
        if at == top.above() && top >= slot && !frame.has_slot() {
            continue;
        }
        if at == slot {
            below = index;
            break;
        }
        at = at.below();
        // The innermost frame's site may be stale.
        let is_owner = at == top || owns_site(&registry, method, at);
        is_owner.then_some(())?;
    }
    drop(registry);
    (at == slot).then_some(())?;
    vm_entry::locate_by_frames(agent, state, frames.get(below..)?)
}

fn owns_site(registry: &CodeRegistry, method: MethodId, slot: Slot) -> bool {
    let site = registry.site(slot.site().0);
    site.is_some_and(|site| registry.is_same_method(site.method, method.0))
}

/// Writes the caller of the entry with slot `slot`. `None`: the thread begins there.
fn write_caller(slot: Slot, here: Option<EventLocation>) {
    let caller = slot.below();
    match here {
        Some(here) => {
            let context = ContextId(here.context);
            caller.below().write_memo(here.method, context);
            caller.write_site(here.site);
        }
        None => caller.write_site(SiteId::ENTRY),
    }
}
