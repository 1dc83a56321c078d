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

use crate::memory::counter::increment_counter;
use crate::memory::slots::{LOST, Slot};
use crate::registry::CodeRegistry;
use crate::stack::StackTracker;
use crate::stack::entry_loss::{EntryLoss, LossReason};
use crate::stack::frames::{MethodKind, PIECE, ResolvedFrame, StackWalk};
use crate::stack::vm_entry_cache::VmEntrySite;
use crate::stack::{context_scopes, contexts, current_location, innermost_frames};
use crate::thread::{ThreadState, VmEntry};
use lucce_jvmti::JniEnvironment;

/// The position of a frame, as the VM reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VmFramePosition {
    pub method: MethodId,
    /// The line, as in `StackTraceElement`.
    pub line: i32,
}

impl VmFramePosition {
    /// The position of `frame`, whose method is `method`.
    pub fn from_frame(method: MethodId, frame: &ResolvedFrame) -> VmFramePosition {
        let line = frame.line_number();
        VmFramePosition { method, line }
    }

    /// Whether `site` is in this method at this line.
    fn matches_site(self, book: &CodeRegistry, site: SiteId) -> bool {
        book.site(site.0).is_some_and(|info| {
            book.is_same_method(info.method, self.method.0) && book.line_of_site(&info) == self.line
        })
    }

    /// A site in this method at this line, added if needed. 0: no ids are left.
    pub fn extra_site(self, stack: &StackTracker) -> SiteId {
        SiteId(stack.find_or_add_site(self.method.0, self.line))
    }
}

/// The callers of a frame, matched with their slots.
pub struct CallerFrames {
    /// The slot above that of the innermost frame with a slot.
    pub slot: Slot,
    /// The position of that frame, if there is one.
    pub innermost: Option<VmFramePosition>,
    /// The positions of the frames above it, which have no slot; outermost first.
    pub missing: Vec<VmFramePosition>,
    /// Slots below that hold no site, with the positions of their frames: see [`repair_slots`].
    pub slots_without_site: Vec<(Slot, VmFramePosition)>,
    /// Every frame that traces show is in the code registry, and the frames below have slots.
    pub is_complete: bool,
}

/// In the slot of a frame that was entered before the hooks were live.
const NO_SITE: SiteId = SiteId(0);

/// Slots matched with frames that are calling.
struct MatchedSlots {
    /// The next slot above.
    slot: Slot,
    slots_without_site: Vec<(Slot, VmFramePosition)>,
    /// A frame has no slot.
    has_gaps: bool,
}

/// Finds the slot of a frame that the VM has entered. `pointer`: the thread's pointer at the entry. The innermost
/// `own` frames are the entered frame itself.
pub fn enter_frame(
    stack: &StackTracker,
    env: JniEnvironment,
    state: &ThreadState,
    pointer: Slot,
    own: usize,
) -> Slot {
    increment_counter(&stack.counts.vm_entries);
    let site_for = &mut |stands, site| wanted_site(stack, stands, site);
    if let Some((callers, slotless)) = find_near_callers(stack, env, state, pointer, own) {
        increment_counter(&stack.counts.vm_entries_near);
        return callers.begin_entry(state, (pointer, slotless), site_for);
    }
    let mut walk = StackWalk::new(stack, env, HELPERS + own + innermost_frames::FIRST_FRAMES);
    let entered: Vec<ResolvedFrame> = walk.by_ref().take(own).collect();
    let slotless = !entered.iter().any(|frame| frame.method.slot);
    let mut frames: Vec<ResolvedFrame> =
        walk.by_ref().take(innermost_frames::FIRST_FRAMES).collect();
    let called = match &frames[..] {
        _ if !state.owns_slot(pointer) => None,
        [native, caller, ..] => {
            let called = callers_at_native_call(&stack.registry(), native, caller, pointer);
            if called.is_some() {
                stack
                    .vm_entry_cache
                    .record_native_call(pointer.below().site());
            }
            let asked = (&mut frames, 0, &mut walk);
            called.or_else(|| innermost_frames::find_callers(stack, state, asked, pointer))
        }
        _ => None,
    };
    let caller = frames.first().cloned();
    let callers = match called {
        Some(callers) => callers,
        None => {
            let all = walk.collect_rest().map(|rest| frames.extend(rest));
            match count_callers(stack, state, all.map(|()| &*frames)) {
                Ok(callers) => callers,
                Err(reason) => {
                    let loss = EntryLoss {
                        reason,
                        entered: &entered,
                        callers: &frames,
                    };
                    return enter_unlocated(stack, state, pointer, &loss);
                }
            }
        }
    };
    if let Some(caller) = caller.filter(|_| callers.slot == pointer) {
        let site = pointer.below().site();
        if callers_at_call(&stack.registry(), &caller, pointer).is_some() {
            stack.vm_entry_cache.record_call(stack, env, site, &caller);
        }
    }
    callers.begin_entry(state, (pointer, slotless), site_for)
}

/// Maximum number of helper frames above the entered frame.
const HELPERS: usize = 3;

/// The callers, proven by one frame below the entered ones, or by two if that one is a native method's. The second
/// value is whether the entered frames have no slot. `None`: they prove nothing, or the cache does not know the site
/// below the pointer.
fn find_near_callers(
    stack: &StackTracker,
    env: JniEnvironment,
    state: &ThreadState,
    pointer: Slot,
    own: usize,
) -> Option<(CallerFrames, bool)> {
    if !state.owns_slot(pointer) {
        return None;
    }
    let place = stack.vm_entry_cache.get_site(pointer.below().site())?;
    let below = match place {
        VmEntrySite::Call(..) => 1,
        VmEntrySite::Native => 2,
        VmEntrySite::Seen(_) | VmEntrySite::Unclear => return None,
    };
    let mut walk = StackWalk::new(stack, env, HELPERS + own + below);
    let slotless = !walk.by_ref().take(own).any(|frame| frame.method.slot);
    let caller = walk.next()?;
    let callers = match place {
        VmEntrySite::Call(method, location) => {
            let is_there = Arc::ptr_eq(&method, &caller.method) && location == caller.location;
            is_there.then(|| callers_at_call(&stack.registry(), &caller, pointer))?
        }
        _ => callers_at_native_call(&stack.registry(), &caller, &walk.next()?, pointer),
    };
    Some((callers?, slotless))
}

/// The callers, if `caller` is stopped at an instrumented call, whose hook it has just executed. `None`: the slot
/// below the pointer is not the caller's.
pub fn callers_at_call(
    book: &CodeRegistry,
    caller: &ResolvedFrame,
    pointer: Slot,
) -> Option<CallerFrames> {
    let stands = VmFramePosition::from_frame(caller.method.id()?, caller);
    let is_there = caller.has_slot() && stands.matches_site(book, pointer.below().site());
    is_there.then(|| CallerFrames {
        slot: pointer,
        innermost: Some(stands),
        missing: Vec::new(),
        slots_without_site: Vec::new(),
        is_complete: true,
    })
}

/// The callers, if instrumented code called `native`, in the middle of which the VM enters a method. The pointer is
/// valid from the hook before that call on: in between, Java code runs only in VM entries, and these restore the
/// pointer. `None`: all frames must be matched.
fn callers_at_native_call(
    book: &CodeRegistry,
    native: &ResolvedFrame,
    caller: &ResolvedFrame,
    pointer: Slot,
) -> Option<CallerFrames> {
    let native_at = VmFramePosition::from_frame(native.method.id()?, native);
    let is_announced = native.method.is_located_by_caller();
    let callers = is_announced.then(|| callers_at_call(book, caller, pointer))??;
    Some(CallerFrames {
        missing: vec![native_at],
        ..callers
    })
}

/// The pointer from before the VM entered a frame with slot `next`; `pointer` is its value now. An exception may have
/// ended an earlier VM entry at the same place, which moved the pointer up. Then this is the pointer from before that
/// entry.
fn pointer_before(state: &ThreadState, next: Slot, pointer: Slot) -> Slot {
    let before = state.pointer_before_entry(next).filter(|_| pointer > next);
    before.unwrap_or(pointer)
}

/// Matches all frames below the entered one. `frames`: innermost first; `None`: the VM does not report them.
fn count_callers(
    stack: &StackTracker,
    state: &ThreadState,
    frames: Option<&[ResolvedFrame]>,
) -> Result<CallerFrames, LossReason> {
    let frames = frames.ok_or(LossReason::NoStack)?;
    // A trace without one of its frames would be wrong.
    if !are_known(frames) {
        return Err(LossReason::UnknownFrame);
    }
    match_callers(&stack.registry(), state, frames).ok_or(LossReason::OtherSlot)
}

/// Enters a frame whose callers do not match the slots. The frame's slot is the one above the pointer, and its caller
/// has no slot. If all frames below are known, the frame's context is computed from them and stored as the memo
/// there. Otherwise the frame has no context: no trace is better than a wrong one.
fn enter_unlocated(
    stack: &StackTracker,
    state: &ThreadState,
    pointer: Slot,
    loss: &EntryLoss<'_>,
) -> Slot {
    pointer.write_site(SiteId(LOST));
    match context_by_frames(stack, state, loss) {
        Some((method, context)) => {
            increment_counter(&stack.counts.vm_entries_by_frames);
            pointer.write_memo(method, context);
        }
        None => loss.count_and_report(stack, state),
    }
    let slot = pointer.above();
    state.push_entry(VmEntry {
        slot,
        pointer,
        // The memo belongs to this entry alone.
        changed_site: Some((pointer, SiteId(LOST))),
        slotless: false,
    });
    slot
}

/// Marks the next callee as lost, because the slots do not match: no trace is better than a wrong one. Returns the
/// callee's slot.
pub fn lose_callee(
    stack: &StackTracker,
    state: &ThreadState,
    pointer: Slot,
    loss: &EntryLoss<'_>,
) -> Slot {
    loss.count_and_report(stack, state);
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
    stack: &StackTracker,
    state: &ThreadState,
    loss: &EntryLoss<'_>,
) -> Option<(MethodId, ContextId)> {
    if loss.reason != LossReason::OtherSlot || !stack.tracking.is_lazy() {
        return None;
    }
    let method = loss.entered.first()?.method.id()?;
    let stands = frame_positions(&shown_frames(loss.callers));
    let book = stack.registry();
    if stands
        .iter()
        .any(|of| context_scopes::is_scope_method(&book, of.method.0))
    {
        return None;
    }
    drop(book);
    let caller = current_location::locate_by_callers(
        stack,
        state,
        &CallerFrames::without_slots(state, stands),
    )?;
    let context = contexts::step_context(stack, state, caller, method)?;
    Some((method, ContextId(context)))
}

/// The slot of the next callee of code without hooks.
pub fn next_slot(stack: &StackTracker, env: JniEnvironment, state: &ThreadState) -> Option<Slot> {
    let frames = StackWalk::new(stack, env, PIECE).collect_rest()?;
    let callers = match_callers(&stack.registry(), state, &frames)?;
    Some(callers.fill_missing(&mut |stands, _| Some(stands.extra_site(stack))))
}

/// Returns the site for a frame at a position. `None`: the slot's current site, the second argument, is right.
pub type SiteFor<'a> = dyn FnMut(VmFramePosition, SiteId) -> Option<SiteId> + 'a;

impl CallerFrames {
    /// The callers if no frame has a slot. `stands`: the positions of all frames, outermost first.
    fn without_slots(state: &ThreadState, stands: Vec<VmFramePosition>) -> CallerFrames {
        CallerFrames {
            slot: state.first_slot(),
            innermost: None,
            missing: stands,
            slots_without_site: Vec::new(),
            is_complete: true,
        }
    }

    /// Begins a VM entry and returns the slot of the entered frame. `pointer`: the thread's pointer before.
    pub fn begin_entry(
        &self,
        state: &ThreadState,
        (pointer, slotless): (Slot, bool),
        site_for: &mut SiteFor<'_>,
    ) -> Slot {
        let next = self.slot.up_by(self.missing.len());
        let pointer = pointer_before(state, next, pointer);
        state.forget_ended_entries(self.slot, next);
        let changed = self.correct_innermost(site_for);
        let slot = self.fill_missing(site_for);
        slot.clear_downcall();
        state.push_entry(VmEntry {
            slot,
            pointer,
            changed_site: changed,
            slotless,
        });
        slot
    }

    /// Writes the innermost frame's site to its slot. Returns the slot and its old site. `None`: the site was right.
    fn correct_innermost(&self, site_for: &mut SiteFor<'_>) -> Option<(Slot, SiteId)> {
        let below = self.slot.below();
        let before = below.site();
        let site = site_for(self.innermost?, before)?;
        below.write_site(site);
        Some((below, before))
    }

    /// Like `fill_missing`; the innermost frame's site is corrected first.
    pub fn prepare_callee(&self, site_for: &mut SiteFor<'_>) -> Slot {
        self.correct_innermost(site_for);
        self.fill_missing(site_for)
    }

    /// Writes sites to the slots that hold none, up to `top`, the innermost frame's slot.
    pub fn repair_sites(&self, top: Slot, site_for: &mut SiteFor<'_>) {
        let innermost = self.innermost.map(|stands| (top, stands));
        for &(at, stands) in self.slots_without_site.iter().chain(&innermost) {
            if at.site() == NO_SITE {
                at.write_site(site_for(stands, NO_SITE).unwrap_or(NO_SITE));
            }
        }
    }

    /// Gives slots to the frames that have none, and returns the next slot.
    fn fill_missing(&self, site_for: &mut SiteFor<'_>) -> Slot {
        let mut slot = self.slot;
        for missing in &self.missing {
            // The old content belongs to another frame.
            slot.write_site(site_for(*missing, NO_SITE).unwrap_or(NO_SITE));
            slot = slot.above();
        }
        slot
    }
}

/// Matches the current thread's `frames`, innermost first, with its slots. `None`: a slot does not belong to the
/// frame that must own it.
pub fn match_callers(
    book: &CodeRegistry,
    state: &ThreadState,
    frames: &[ResolvedFrame],
) -> Option<CallerFrames> {
    let known = shown_frames(frames);
    let whole = are_known(frames);
    let Some(innermost) = known.iter().rposition(|(_, frame)| frame.has_slot()) else {
        return Some(CallerFrames {
            is_complete: whole,
            ..CallerFrames::without_slots(state, frame_positions(&known))
        });
    };
    let (below, above) = known.split_at(innermost);
    let MatchedSlots {
        slot,
        slots_without_site: bare,
        has_gaps: gaps,
    } = match_slots(book, below, state.first_slot())?;
    let (own, above) = above.split_first()?;
    Some(CallerFrames {
        slot: slot.above(),
        innermost: Some(VmFramePosition::from_frame(own.0, own.1)),
        missing: frame_positions(above),
        slots_without_site: bare,
        is_complete: whole && !gaps,
    })
}

/// Like [`match_callers`], but handles errors that the VM makes. The VM enters their constructors without a request
/// for a slot, so the slots from there on do not belong to their frames. Slots below do, and each frame above is one
/// transition more.
pub fn match_all_callers(
    book: &CodeRegistry,
    state: &ThreadState,
    frames: &[ResolvedFrame],
) -> Option<CallerFrames> {
    if let Some(all) = match_callers(book, state, frames).filter(|all| all.is_complete) {
        return Some(all);
    }
    let outermost = frames
        .iter()
        .rposition(innermost_frames::is_error_constructor)?;
    let (entered, below) = frames.split_at(outermost + 1);
    let mut callers = match_callers(book, state, below)?;
    callers
        .missing
        .extend(frame_positions(&shown_frames(entered)));
    callers.is_complete &= are_known(entered);
    Some(callers)
}

/// The frames that traces show, outermost first. `frames`: innermost first.
fn shown_frames(frames: &[ResolvedFrame]) -> Vec<(MethodId, &ResolvedFrame)> {
    let outermost_first = frames.iter().rev();
    let shown = outermost_first.filter_map(|frame| Some((frame.method.id()?, frame)));
    shown.collect()
}

/// Whether all frames are of methods that the agent knows: registered, hidden or helper methods.
pub fn are_known(frames: &[ResolvedFrame]) -> bool {
    let mut kinds = frames.iter().map(|frame| frame.method.kind);
    kinds.all(|kind| kind != MethodKind::Unknown)
}

fn frame_positions(frames: &[(MethodId, &ResolvedFrame)]) -> Vec<VmFramePosition> {
    let each = frames
        .iter()
        .map(|(id, frame)| VmFramePosition::from_frame(*id, frame));
    each.collect()
}

/// Matches slots with `frames`, outermost first. Below another frame, native methods and methods without hooks have
/// slots as well. `None`: a frame has no slot, so the next frame was entered in an unknown way.
fn match_slots(
    book: &CodeRegistry,
    frames: &[(MethodId, &ResolvedFrame)],
    first: Slot,
) -> Option<MatchedSlots> {
    let mut below = MatchedSlots {
        slot: first,
        slots_without_site: Vec::new(),
        has_gaps: false,
    };
    for (id, frame) in frames {
        let site = below.slot.site();
        // The frame was entered before the hooks were live.
        let is_bare = site == NO_SITE && frame.has_slot();
        if is_bare {
            below
                .slots_without_site
                .push((below.slot, VmFramePosition::from_frame(*id, frame)));
        }
        if is_bare
            || book
                .site(site.0)
                .is_some_and(|info| book.is_same_method(info.method, id.0))
        {
            below.slot = below.slot.above();
        } else if site != NO_SITE {
            return None;
        } else {
            below.has_gaps = true;
        }
    }
    Some(below)
}

/// The site for a frame at this position. `None`: `site` is right.
pub fn wanted_site(stack: &StackTracker, stands: VmFramePosition, site: SiteId) -> Option<SiteId> {
    let is_right = stands.matches_site(&stack.registry(), site);
    (!is_right).then(|| stands.extra_site(stack))
}

/// Ends the VM entry with slot `slot`, and returns the pointer from before it.
pub fn leave_frame(state: &ThreadState, slot: Slot) -> Slot {
    let Some(upcall) = state.pop_entry(slot) else {
        return slot;
    };
    if let Some((at, site)) = upcall.changed_site {
        // Without the memo, which belonged to another callee.
        at.write_site(site);
    }
    upcall.pointer
}

/// Writes sites to slots that have none, because their frames were entered before the hooks were live. `top`: the
/// innermost frame's slot. Returns whether `slot` has a site now.
pub fn repair_slots(
    stack: &StackTracker,
    env: JniEnvironment,
    state: &ThreadState,
    slot: Slot,
    top: Slot,
) -> bool {
    increment_counter(&stack.counts.repairs);
    let Some(frames) = StackWalk::new(stack, env, PIECE).collect_rest() else {
        return false;
    };
    // Native methods and methods without hooks have slots as well, below a VM entry.
    let found = match_callers(&stack.registry(), state, &frames);
    let Some(callers) = found.filter(|found| found.slot == top.above()) else {
        return false;
    };
    callers.repair_sites(top, &mut |stands, _| Some(stands.extra_site(stack)));
    slot.site() != NO_SITE
}
