//! Frames that the VM enters by itself: where their slots are, and what lies between.
//!
//! A class initialiser, say, runs in the middle of a method. The thread's pointer may be stale then:
//! it is right only between a call's hook and the callee's entry. But the VM knows the stack, and
//! every frame with hooks has exactly one slot, so the frames are counted from the thread's first one
//! on. Those without a slot (methods without hooks, natives) between the last slot and the new frame
//! get slots of their own.

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

/// Where a frame stands, as the VM says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VmFramePosition {
    pub method: MethodId,
    /// As `StackTraceElement` has it.
    pub line: i32,
}

impl VmFramePosition {
    /// `method` is that of `frame`.
    pub fn from_frame(method: MethodId, frame: &ResolvedFrame) -> VmFramePosition {
        let line = frame.line_number();
        VmFramePosition { method, line }
    }

    /// Whether `site` is in the method at the line.
    fn matches_site(self, book: &CodeRegistry, site: SiteId) -> bool {
        book.site(site.0).is_some_and(|info| {
            book.is_same_method(info.method, self.method.0) && book.line_of_site(&info) == self.line
        })
    }

    /// A site in the method at the line; 0: no ids are left.
    pub fn extra_site(self, stack: &StackTracker) -> SiteId {
        SiteId(stack.find_or_add_site(self.method.0, self.line))
    }
}

/// What the VM says about the current frames.
pub struct CallerFrames {
    /// The slot above that of the innermost frame that has one.
    pub slot: Slot,
    /// Where that frame stands, if there is one.
    pub innermost: Option<VmFramePosition>,
    /// Where the frames without a slot above it stand, outermost first.
    pub missing: Vec<VmFramePosition>,
    /// Slots below that hold no site, and where their frames stand: see [`repair_slots`].
    pub slots_without_site: Vec<(Slot, VmFramePosition)>,
    /// Every frame that traces show is in the book, and those below have slots.
    pub is_complete: bool,
}

/// In a slot whose frame was entered before the hooks were live.
const NO_SITE: SiteId = SiteId(0);

/// The slots of the frames that call.
struct MatchedSlots {
    /// The next one above.
    slot: Slot,
    slots_without_site: Vec<(Slot, VmFramePosition)>,
    /// Some frame has none.
    has_gaps: bool,
}

/// The slot for a frame that the VM has entered; its pointer was `pointer`. `own` frames on top of
/// the stack are the frame itself.
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

/// Frames of the helper on top of the one that the VM has entered, at most.
const HELPERS: usize = 3;

/// What one frame below those that were entered tells, or two if it is a native's, and whether those that were entered have no
/// slot. `None`: it does not tell, or nothing is known yet of the site below the pointer.
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

/// What there is to know if `caller` stands at a call before which it has run a hook. `None`: the slot below the pointer is not
/// the caller's.
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

/// What there is to know if `native`, in the middle of which the VM enters a method, was called by code with
/// hooks: the pointer is right from the hook before that call on, as no other Java code runs in between but
/// what is entered like this, and that puts the pointer back. `None`: it is not known without counting.
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

/// The pointer from before the VM enters a frame with slot `next`, now that it is `pointer`. A frame that the VM has entered at
/// the same place may have been ended by an exception, which has left the pointer where that frame moved it: above. Then it
/// is the one from before that frame.
fn pointer_before(state: &ThreadState, next: Slot, pointer: Slot) -> Slot {
    let before = state.pointer_before_entry(next).filter(|_| pointer > next);
    before.unwrap_or(pointer)
}

/// The callers by all frames below the one that was entered. `frames`: innermost first; `None`: the VM does not say them.
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

/// The slots do not say what the VM says. The frame's slot is the one above the pointer, and none belongs to its caller. If all
/// frames below are known, the frame's context is kept as the memo there; else it has none: better no trace than a wrong one.
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
        // The memo is this entry's alone.
        changed_site: Some((pointer, SiteId(LOST))),
        slotless: false,
    });
    slot
}

/// The slots do not say what the VM says: better no trace of what is called next than a wrong one. Its slot.
pub fn lose_callee(
    stack: &StackTracker,
    state: &ThreadState,
    pointer: Slot,
    loss: &EntryLoss<'_>,
) -> Slot {
    loss.count_and_report(stack, state);
    // Below the first frame's slot is the mark that the thread begins there.
    let (below, next) = match state.owns_slot(pointer.below()) {
        true => (pointer.below(), pointer),
        false => (pointer, pointer.above()),
    };
    below.write_site(SiteId(LOST));
    next
}

/// The entered method and the context of its frame, step by step along the frames that the VM says. `None`: a frame is not
/// known, its context is given from elsewhere, or there is no number.
fn context_by_frames(
    stack: &StackTracker,
    state: &ThreadState,
    loss: &EntryLoss<'_>,
) -> Option<(MethodId, ContextId)> {
    if loss.reason != LossReason::OtherSlot || !stack.comparison.is_off() {
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

/// The slot of the frame that code without hooks is about to call.
pub fn next_slot(stack: &StackTracker, env: JniEnvironment, state: &ThreadState) -> Option<Slot> {
    let frames = StackWalk::new(stack, env, PIECE).collect_rest()?;
    let callers = match_callers(&stack.registry(), state, &frames)?;
    Some(callers.fill_missing(&mut |stands, _| Some(stands.extra_site(stack))))
}

/// The site for a frame that stands there; `None`: the slot's, which is given, says it already.
pub type SiteFor<'a> = dyn FnMut(VmFramePosition, SiteId) -> Option<SiteId> + 'a;

impl CallerFrames {
    /// Of frames that stand there, outermost first, all that there are: none is known by a slot.
    fn without_slots(state: &ThreadState, stands: Vec<VmFramePosition>) -> CallerFrames {
        CallerFrames {
            slot: state.first_slot(),
            innermost: None,
            missing: stands,
            slots_without_site: Vec::new(),
            is_complete: true,
        }
    }

    /// The VM enters a frame, whose pointer was `pointer`: its slot.
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

    /// Gives the slot of the innermost frame the site where it stands: the slot and the site that it had. `None`: it says
    /// so already.
    fn correct_innermost(&self, site_for: &mut SiteFor<'_>) -> Option<(Slot, SiteId)> {
        let below = self.slot.below();
        let before = below.site();
        let site = site_for(self.innermost?, before)?;
        below.write_site(site);
        Some((below, before))
    }

    /// As `fill`, where the innermost frame may have a wrong site, too.
    pub fn prepare_callee(&self, site_for: &mut SiteFor<'_>) -> Slot {
        self.correct_innermost(site_for);
        self.fill_missing(site_for)
    }

    /// Gives sites to the slots that hold none, up to the innermost frame's, `top`.
    pub fn repair_sites(&self, top: Slot, site_for: &mut SiteFor<'_>) {
        let innermost = self.innermost.map(|stands| (top, stands));
        for &(at, stands) in self.slots_without_site.iter().chain(&innermost) {
            if at.site() == NO_SITE {
                at.write_site(site_for(stands, NO_SITE).unwrap_or(NO_SITE));
            }
        }
    }

    /// Gives slots to the frames that have none; the next one.
    fn fill_missing(&self, site_for: &mut SiteFor<'_>) -> Slot {
        let mut slot = self.slot;
        for missing in &self.missing {
            // What is there belongs to another frame.
            slot.write_site(site_for(*missing, NO_SITE).unwrap_or(NO_SITE));
            slot = slot.above();
        }
        slot
    }
}

/// Of the current thread's `frames`, innermost first. `None`: a slot is not that of the frame that must
/// have it.
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

/// As [`match_callers`], also where the VM makes an error of its own: it enters the constructor without asking for a slot, so the slots from
/// there on are not those of their frames. Those below are, and each frame above is one step more.
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

/// Those of `frames`, innermost first, that traces show: outermost first.
fn shown_frames(frames: &[ResolvedFrame]) -> Vec<(MethodId, &ResolvedFrame)> {
    let outermost_first = frames.iter().rev();
    let shown = outermost_first.filter_map(|frame| Some((frame.method.id()?, frame)));
    shown.collect()
}

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

/// The slots of `frames`, outermost first. Below another frame, natives and methods without hooks have
/// one, too. `None`: a frame has not, so the next one was entered in a way that we know nothing of.
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
        // Entered before the hooks were live.
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

/// The site for a frame that stands there; `None` if `site` already says it.
pub fn wanted_site(stack: &StackTracker, stands: VmFramePosition, site: SiteId) -> Option<SiteId> {
    let is_right = stands.matches_site(&stack.registry(), site);
    (!is_right).then(|| stands.extra_site(stack))
}

/// The frame with slot `slot` is left: the pointer from before it was entered.
pub fn leave_frame(state: &ThreadState, slot: Slot) -> Slot {
    let Some(upcall) = state.pop_entry(slot) else {
        return slot;
    };
    if let Some((at, site)) = upcall.changed_site {
        // Without the memo: it was that of another callee.
        at.write_site(site);
    }
    upcall.pointer
}

/// Gives sites to slots that have none: their frames were entered before the hooks were live.
/// `top` is the slot of the innermost frame. Returns whether `slot` has a site now.
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
    // Natives and methods without hooks have slots, too, below what the VM has entered.
    let found = match_callers(&stack.registry(), state, &frames);
    let Some(callers) = found.filter(|found| found.slot == top.above()) else {
        return false;
    };
    callers.repair_sites(top, &mut |stands, _| Some(stands.extra_site(stack)));
    slot.site() != NO_SITE
}
