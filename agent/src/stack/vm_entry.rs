//! Frames that the VM enters by itself: finds their slots, and gives slots to the frames between.
//!
//! A class initialiser, for example, runs in the middle of a method. The thread's pointer may be stale then: it is
//! valid only between a call's hook and the callee's entry. But the VM knows the stack, and every frame with hooks
//! has exactly one slot. So frames and slots are matched from the thread's first frame on. Frames without a slot
//! (methods without hooks, native methods) between the last slot and the new frame get slots of their own.
//!
//! ```text
//! enter_frame ─► find_near_callers     the cache knows the site: one or two frames
//!             ─► callers_at_native_call, innermost_frames::find_callers   up to 16 frames
//!             ─► match_callers         all frames
//!             ─► enter_unlocated       they do not match: the context comes from the frames, or is lost
//! ```

use std::sync::Arc;

use lucce_callgraph::{ContextId, MethodId, SiteId};

use crate::core::EventLocation;
use crate::memory::counter::increment_counter;
use crate::memory::slots::{LOST, Slot};
use crate::stack::StackParts;
use crate::stack::caller_frames::{
    CallerFrames, EventPlace, NO_SITE, are_known, callers_at_call, callers_at_native_call,
    frame_positions, match_callers, shown_frames, wanted_site,
};
use crate::stack::entry_loss::{EntryLoss, LossReason};
use crate::stack::frames::{MethodKind, PIECE, ResolvedFrame, StackWalk};
use crate::stack::innermost_frames::WalkedFrames;
use crate::stack::vm_entry_sites::VmEntrySite;
use crate::stack::{caller_location, context_scopes, contexts, innermost_frames};
use crate::thread::{ThreadState, VmEntry, VmEntryMode};
use lucce_jvmti::JniEnvironment;

/// Finds the slot of a frame that the VM has entered. `pointer`: the thread's pointer at the entry. The innermost
/// `own` frames are the entered frame itself.
pub fn enter_frame(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    pointer: Slot,
    own: usize,
) -> Slot {
    increment_counter(&agent.core.counts.vm_entries);
    let site_for = &mut |position, site| wanted_site(agent, position, site);
    if let Some((callers, slotless)) = find_near_callers(agent, env, state, pointer, own) {
        increment_counter(&agent.core.counts.vm_entries_near);
        return callers.begin_entry(state, (pointer, slotless), site_for);
    }
    let mut walk = StackWalk::new(agent, env, HELPERS + own + innermost_frames::FIRST_FRAMES);
    let entered: Vec<ResolvedFrame> = walk.by_ref().take(own).collect();
    let slotless = !entered.iter().any(|frame| frame.method.slot);
    let mut frames: Vec<ResolvedFrame> =
        walk.by_ref().take(innermost_frames::FIRST_FRAMES).collect();
    let called = match &frames[..] {
        _ if !state.owns_slot(pointer) => None,
        [native, caller, ..] => {
            let called = callers_at_native_call(&agent.core.registry(), native, caller, pointer);
            if called.is_some() {
                agent
                    .stack
                    .vm_entry_sites
                    .record_native_call(pointer.below().site());
            }
            let mut walked = WalkedFrames {
                frames: &mut frames,
                own: 0,
                walk: &mut walk,
            };
            called.or_else(|| innermost_frames::find_callers(agent, state, &mut walked, pointer))
        }
        _ => None,
    };
    let callers = match called {
        Some(callers) => callers,
        None => {
            let all = walk.collect_rest().map(|rest| frames.extend(rest));
            match count_callers(agent, state, all.map(|()| &*frames)) {
                Ok(callers) => callers,
                Err(reason) => {
                    let loss = EntryLoss {
                        reason,
                        entered: &entered,
                        callers: &frames,
                    };
                    return enter_unlocated(agent, state, pointer, &loss);
                }
            }
        }
    };
    let caller = nearest_caller(agent, &frames).filter(|_| callers.slot == pointer);
    if let Some(caller) = caller {
        let site = pointer.below().site();
        if callers_at_call(&agent.core.registry(), caller, pointer).is_some() {
            agent
                .stack
                .vm_entry_sites
                .record_call(agent, env, site, caller);
        }
    }
    callers.begin_entry(state, (pointer, slotless), site_for)
}

/// Maximum number of helper frames above the entered frame.
const HELPERS: usize = 3;

/// The callers, proven by one frame below the entered ones, or by two if that one is a native method's. Frames out of
/// scope do not count. The second
/// value is whether the entered frames have no slot. `None`: they prove nothing, or the cache does not know the site
/// below the pointer.
fn find_near_callers(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    pointer: Slot,
    own: usize,
) -> Option<(CallerFrames, bool)> {
    if !state.owns_slot(pointer) {
        return None;
    }
    let place = agent
        .stack
        .vm_entry_sites
        .get_site(pointer.below().site())?;
    let below = match place {
        VmEntrySite::Call(..) => 1 + most_hidden_frames(agent),
        VmEntrySite::Native => 2,
        VmEntrySite::Seen(_) | VmEntrySite::Unclear => return None,
    };
    let mut walk = StackWalk::new(agent, env, HELPERS + own + below);
    let slotless = !walk.by_ref().take(own).any(|frame| frame.method.slot);
    let frames: Vec<ResolvedFrame> = walk.by_ref().take(below).collect();
    let caller = nearest_caller(agent, &frames)?;
    let callers = match place {
        VmEntrySite::Call(method, location) => {
            let is_there = Arc::ptr_eq(&method, &caller.method) && location == caller.location;
            is_there.then(|| callers_at_call(&agent.core.registry(), caller, pointer))?
        }
        _ => {
            let [native, below] = &frames[..] else {
                return None;
            };
            callers_at_native_call(&agent.core.registry(), native, below, pointer)
        }
    };
    Some((callers?, slotless))
}

/// Maximum number of frames between the entered one and the nearest frame in scope, for the proof by that frame.
const MOST_HIDDEN: usize = 12;

/// The number of hidden frames that the proof by one frame may skip.
fn most_hidden_frames(agent: StackParts<'_>) -> usize {
    match agent.core.options.is_partial() {
        true => MOST_HIDDEN,
        false => 0,
    }
}

/// The frame that proves the pointer, if it is stopped at a call with a hook. `frames`: innermost first. Code out of
/// scope leaves the pointer unchanged, so its frames are skipped.
fn nearest_caller<'f>(
    agent: StackParts<'_>,
    frames: &'f [ResolvedFrame],
) -> Option<&'f ResolvedFrame> {
    let mut near = frames.iter().take(1 + most_hidden_frames(agent));
    match agent.core.options.is_partial() {
        true => near.find(|frame| frame.method.kind != MethodKind::Hidden),
        false => near.next(),
    }
}

/// Matches all frames below the entered one. `frames`: innermost first; `None`: the VM does not report them.
fn count_callers(
    agent: StackParts<'_>,
    state: &ThreadState,
    frames: Option<&[ResolvedFrame]>,
) -> Result<CallerFrames, LossReason> {
    let frames = frames.ok_or(LossReason::NoStack)?;
    // A trace without one of its frames would be wrong.
    if !are_known(frames) {
        return Err(LossReason::UnknownFrame);
    }
    match_callers(&agent.core.registry(), state, frames).ok_or(LossReason::OtherSlot)
}

/// Enters a frame whose callers do not match the slots. The frame's slot is the one above the pointer, and its caller
/// has no slot. If all frames below are known, the frame's context is computed from them and stored as the memo
/// there. Otherwise the frame has no context: no trace is better than a wrong one.
fn enter_unlocated(
    agent: StackParts<'_>,
    state: &ThreadState,
    pointer: Slot,
    loss: &EntryLoss<'_>,
) -> Slot {
    pointer.write_site(SiteId(LOST));
    match context_by_frames(agent, state, loss) {
        Some((method, context)) => {
            increment_counter(&agent.core.counts.vm_entries_by_frames);
            pointer.write_memo(method, context);
        }
        None => loss.count_and_report(agent, state),
    }
    let slot = pointer.above();
    state.push_entry(VmEntry {
        slot,
        pointer,
        // The memo belongs to this entry alone.
        changed_site: Some((pointer, SiteId(LOST))),
        slotless: false,
        mode: VmEntryMode::Immediate,
    });
    slot
}

/// Marks the next callee as lost, because the slots do not match: no trace is better than a wrong one. Returns the
/// callee's slot.
pub fn lose_callee(
    agent: StackParts<'_>,
    state: &ThreadState,
    pointer: Slot,
    loss: &EntryLoss<'_>,
) -> Slot {
    loss.count_and_report(agent, state);
    // The slot below the first frame's is the mark where the thread begins.
    let (below, next) = match state.owns_slot(pointer.below()) {
        true => (pointer.below(), pointer),
        false => (pointer, pointer.above()),
    };
    below.write_site(SiteId(LOST));
    next
}

/// The entered method and the context of its frame, computed step by step along the VM's frames. `None`: a frame is
/// not known, its context comes from another thread, or no number is left.
fn context_by_frames(
    agent: StackParts<'_>,
    state: &ThreadState,
    loss: &EntryLoss<'_>,
) -> Option<(MethodId, ContextId)> {
    if loss.reason != LossReason::OtherSlot {
        return None;
    }
    let method = loss.entered.first()?.method.id()?;
    let caller = locate_by_frames(agent, state, loss.callers)?;
    let context = contexts::step_context(agent, state, caller, method)?;
    Some((method, ContextId(context)))
}

/// The location of the innermost of `frames`, computed step by step along all of them. `frames`: innermost first, and
/// all known. `None`: the context of a frame comes from another thread, or no number is left.
pub fn locate_by_frames(
    agent: StackParts<'_>,
    state: &ThreadState,
    frames: &[ResolvedFrame],
) -> Option<EventLocation> {
    if !agent.counters.tracking.is_lazy() {
        return None;
    }
    let positions = frame_positions(&shown_frames(frames));
    let registry = agent.core.registry();
    if positions
        .iter()
        .any(|of| context_scopes::is_scope_method(&registry, of.method.0))
    {
        return None;
    }
    drop(registry);
    caller_location::locate_by_callers(agent, state, &CallerFrames::without_slots(state, positions))
}

/// The slot of the next callee of code without hooks.
pub fn next_slot(agent: StackParts<'_>, env: JniEnvironment, state: &ThreadState) -> Option<Slot> {
    let frames = StackWalk::new(agent, env, PIECE).collect_rest()?;
    let callers = match_callers(&agent.core.registry(), state, &frames)?;
    Some(callers.fill_missing(&mut |position, _| Some(position.extra_site(agent))))
}

/// Ends the VM entry with slot `slot` by a hook, and returns the pointer from before it.
pub fn leave_frame(state: &ThreadState, slot: Slot) -> Slot {
    state.pop_entry(slot).map_or(slot, restore_caller)
}

/// Restores the caller's slot after the end of `entry`. Returns the pointer from before it.
pub fn restore_caller(entry: VmEntry) -> Slot {
    if let Some((at, site)) = entry.changed_site {
        // Without the memo, which belonged to another callee.
        at.write_site(site);
    }
    entry.pointer
}

/// Writes sites to slots that have none, because their frames were entered before the hooks were live. `event`: what needs
/// them. Returns whether `slot` has a site now.
pub fn repair_slots(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    slot: Slot,
    event: EventPlace,
) -> bool {
    increment_counter(&agent.core.counts.repairs);
    let Some(frames) = StackWalk::new(agent, env, PIECE).collect_rest() else {
        return false;
    };
    // Native methods and methods without hooks have slots as well, below a VM entry.
    let callers = match_callers(&agent.core.registry(), state, &frames);
    let top = event.frame_slot(&agent.core.registry(), &frames);
    let Some(callers) = callers.filter(|callers| callers.slot == top.above()) else {
        return false;
    };
    callers.repair_sites(top, &mut |position, _| Some(position.extra_site(agent)));
    slot.site() != NO_SITE
}
