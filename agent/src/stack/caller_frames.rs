//! The callers of a frame, matched with their slots: from the frames that the VM reports, outermost first.

use lucce_callgraph::{MethodId, SiteId};

use crate::memory::slots::Slot;
use crate::registry::CodeRegistry;
use crate::stack::StackParts;
use crate::stack::frames::{MethodKind, ResolvedFrame};
use crate::stack::slot_runs::{DeferredEntry, count_deferrable, split_runs};
use crate::thread::{ThreadState, VmEntry, VmEntryMode};

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
    fn matches_site(self, registry: &CodeRegistry, site: SiteId) -> bool {
        registry.site(site.0).is_some_and(|info| {
            registry.is_same_method(info.method, self.method.0)
                && registry.line_of_site(&info) == self.line
        })
    }

    /// A site in this method at this line, added if needed. 0: no ids are left.
    pub fn extra_site(self, agent: StackParts<'_>) -> SiteId {
        SiteId(agent.core.find_or_add_site(self.method.0, self.line))
    }
}

/// Where an event counts.
#[derive(Clone, Copy, Debug)]
pub struct EventPlace {
    /// The innermost frame's slot, or the caller's place if no frame above it has one. For an allocation of an intrinsic that
    /// its caller counts: the intrinsic's slot.
    pub slot: Slot,
    /// The method of the event's site. 0: the slot is a frame's.
    pub method: MethodId,
}

impl EventPlace {
    /// The innermost frame's slot, or the caller's place. An intrinsic is no frame any more when its caller counts for it.
    pub fn frame_slot(self, registry: &CodeRegistry, frames: &[ResolvedFrame]) -> Slot {
        let ends = |frame: &&ResolvedFrame| frame.has_slot() || frame.is_deferrable_entry();
        let innermost = frames.iter().find(ends).filter(|frame| frame.has_slot());
        let own = innermost.and_then(|frame| frame.method.id());
        let is_frame = self.method == MethodId(0)
            || own.is_some_and(|own| registry.is_same_method(own.0, self.method.0));
        match is_frame {
            true => self.slot,
            false => self.slot.below(),
        }
    }
}

/// The callers of a frame, matched with their slots.
pub struct CallerFrames {
    /// The slot above that of the innermost frame with a slot.
    pub slot: Slot,
    /// The first slot that is free for a frame above: `slot`, or a slot above a deferred VM entry.
    pub free: Slot,
    /// The position of that frame, if there is one.
    pub innermost: Option<VmFramePosition>,
    /// The positions of the frames above it, which have no slot; outermost first.
    pub missing: Vec<VmFramePosition>,
    /// The number of innermost `missing` frames that get slots from `free` on. The others are below a deferred VM entry.
    pub unfilled: usize,
    /// Deferred VM entries below, outermost first.
    pub deferred: Vec<DeferredEntry>,
    /// Slots below that hold no site, with the positions of their frames: see `vm_entry::repair_slots`.
    pub slots_without_site: Vec<(Slot, VmFramePosition)>,
    /// Every frame that traces show is in the code registry, and the frames below have slots.
    pub is_complete: bool,
}

/// In the slot of a frame that was entered before the hooks were live.
pub const NO_SITE: SiteId = SiteId(0);

/// Slots matched with frames that are calling.
struct MatchedSlots {
    /// The next slot above.
    slot: Slot,
    slots_without_site: Vec<(Slot, VmFramePosition)>,
    /// A frame has no slot.
    has_gaps: bool,
}

/// Returns the site for a frame at a position. `None`: the slot's current site, the second argument, is right.
pub type SiteFor<'a> = dyn FnMut(VmFramePosition, SiteId) -> Option<SiteId> + 'a;

impl CallerFrames {
    /// The callers if no frame has a slot. `positions`: of all frames, outermost first.
    pub fn without_slots(state: &ThreadState, positions: Vec<VmFramePosition>) -> CallerFrames {
        CallerFrames {
            slot: state.first_slot(),
            free: state.first_slot(),
            innermost: None,
            unfilled: positions.len(),
            missing: positions,
            deferred: Vec::new(),
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
        let next = self.next_slot();
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
            mode: VmEntryMode::Immediate,
        });
        slot
    }

    /// The slot of the next callee, above slots for the frames that have none.
    pub fn next_slot(&self) -> Slot {
        self.free.up_by(self.unfilled)
    }

    /// Writes the innermost frame's site to its slot. Returns the slot and its old site. `None`: the site was right, or a
    /// deferred VM entry is above.
    fn correct_innermost(&self, site_for: &mut SiteFor<'_>) -> Option<(Slot, SiteId)> {
        if self.free != self.slot {
            return None;
        }
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
        let innermost = self.innermost.map(|position| (top, position));
        for &(at, position) in self.slots_without_site.iter().chain(&innermost) {
            if at.site() == NO_SITE {
                at.write_site(site_for(position, NO_SITE).unwrap_or(NO_SITE));
            }
        }
    }

    /// Gives slots to the frames that have none, and returns the next slot.
    pub fn fill_missing(&self, site_for: &mut SiteFor<'_>) -> Slot {
        let mut slot = self.free;
        let below = self.missing.len().saturating_sub(self.unfilled);
        for missing in self.missing.iter().skip(below) {
            // The old content belongs to another frame.
            slot.write_site(site_for(*missing, NO_SITE).unwrap_or(NO_SITE));
            slot = slot.above();
        }
        slot
    }
}

/// The pointer from before the VM entered a frame with slot `next`; `pointer` is its value now. An exception may have
/// ended an earlier VM entry at the same place, which moved the pointer up. Then this is the pointer from before that
/// entry.
fn pointer_before(state: &ThreadState, next: Slot, pointer: Slot) -> Slot {
    let before = state.pointer_before_entry(next).filter(|_| pointer > next);
    before.unwrap_or(pointer)
}

/// The callers, if `caller` is stopped at an instrumented call, whose hook it has just executed. `None`: the slot
/// below the pointer is not the caller's.
pub fn callers_at_call(
    registry: &CodeRegistry,
    caller: &ResolvedFrame,
    pointer: Slot,
) -> Option<CallerFrames> {
    let position = VmFramePosition::from_frame(caller.method.id()?, caller);
    let is_there = caller.has_slot() && position.matches_site(registry, pointer.below().site());
    is_there.then(|| CallerFrames {
        slot: pointer,
        free: pointer,
        innermost: Some(position),
        missing: Vec::new(),
        unfilled: 0,
        deferred: Vec::new(),
        slots_without_site: Vec::new(),
        is_complete: true,
    })
}

/// The callers, if instrumented code called `native`, in the middle of which the VM enters a method. The pointer is
/// valid from the hook before that call on: in between, Java code runs only in VM entries, and these restore the
/// pointer. `None`: all frames must be matched.
pub fn callers_at_native_call(
    registry: &CodeRegistry,
    native: &ResolvedFrame,
    caller: &ResolvedFrame,
    pointer: Slot,
) -> Option<CallerFrames> {
    let native_at = VmFramePosition::from_frame(native.method.id()?, native);
    let is_announced = native.method.is_located_by_caller();
    let callers = is_announced.then(|| callers_at_call(registry, caller, pointer))??;
    Some(CallerFrames {
        missing: vec![native_at],
        unfilled: 1,
        ..callers
    })
}

/// Matches the current thread's `frames`, innermost first, with its slots. `None`: a slot does not belong to the
/// frame that must own it.
pub fn match_callers(
    registry: &CodeRegistry,
    state: &ThreadState,
    frames: &[ResolvedFrame],
) -> Option<CallerFrames> {
    match_outer_callers(registry, state, frames, 0)
}

/// Like [`match_callers`], if further frames are above `frames`; `inner` of them are deferrable VM entries.
pub fn match_outer_callers(
    registry: &CodeRegistry,
    state: &ThreadState,
    frames: &[ResolvedFrame],
    inner: usize,
) -> Option<CallerFrames> {
    let mut callers = CallerFrames {
        is_complete: are_known(frames),
        ..CallerFrames::without_slots(state, Vec::new())
    };
    for run in split_runs(state, frames, inner)? {
        callers.deferred.extend(run.entry);
        let Some(innermost) = run.frames.iter().rposition(|(_, frame)| frame.has_slot()) else {
            callers.free = run.first;
            callers.unfilled = run.frames.len();
            callers.missing.extend(frame_positions(&run.frames));
            continue;
        };
        let (below, above) = run.frames.split_at(innermost);
        let matched = match_slots(registry, below, run.first)?;
        let (own, above) = above.split_first()?;
        callers.slot = matched.slot.above();
        callers.free = callers.slot;
        callers.innermost = Some(VmFramePosition::from_frame(own.0, own.1));
        callers.missing = frame_positions(above);
        callers.unfilled = above.len();
        callers
            .slots_without_site
            .extend(matched.slots_without_site);
        callers.is_complete &= !matched.has_gaps;
    }
    Some(callers)
}

/// Like [`match_callers`], but handles errors that the VM makes. The VM enters their constructors without a request
/// for a slot, so the slots from there on do not belong to their frames. Slots below do, and each frame above is one
/// transition more. `inner`: as in [`match_outer_callers`].
pub fn match_all_callers(
    registry: &CodeRegistry,
    state: &ThreadState,
    frames: &[ResolvedFrame],
    inner: usize,
) -> Option<CallerFrames> {
    if let Some(all) =
        match_outer_callers(registry, state, frames, inner).filter(|all| all.is_complete)
    {
        return Some(all);
    }
    let outermost = frames.iter().rposition(is_error_constructor)?;
    let (entered, below) = frames.split_at(outermost + 1);
    let inner = inner + count_deferrable(entered);
    let mut callers = match_outer_callers(registry, state, below, inner)?;
    let positions = frame_positions(&shown_frames(entered));
    callers.unfilled += positions.len();
    callers.missing.extend(positions);
    callers
        .deferred
        .iter_mut()
        .for_each(|entry| entry.caller += entered.len());
    callers.is_complete &= are_known(entered);
    Some(callers)
}

/// The frames that traces show, outermost first. `frames`: innermost first.
pub fn shown_frames(frames: &[ResolvedFrame]) -> Vec<(MethodId, &ResolvedFrame)> {
    let outermost_first = frames.iter().rev();
    let shown = outermost_first.filter_map(|frame| Some((frame.method.id()?, frame)));
    shown.collect()
}

/// Whether all frames are of methods that the agent knows: registered, hidden or helper methods.
pub fn are_known(frames: &[ResolvedFrame]) -> bool {
    let mut kinds = frames.iter().map(|frame| frame.method.kind);
    kinds.all(|kind| kind != MethodKind::Unknown)
}

pub fn frame_positions(frames: &[(MethodId, &ResolvedFrame)]) -> Vec<VmFramePosition> {
    let each = frames
        .iter()
        .map(|(id, frame)| VmFramePosition::from_frame(*id, frame));
    each.collect()
}

/// Matches slots with `frames`, outermost first. Below another frame, native methods and methods without hooks have
/// slots as well. `None`: a frame has no slot, so the next frame was entered in an unknown way.
fn match_slots(
    registry: &CodeRegistry,
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
            || registry
                .site(site.0)
                .is_some_and(|info| registry.is_same_method(info.method, id.0))
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
pub fn wanted_site(
    agent: StackParts<'_>,
    position: VmFramePosition,
    site: SiteId,
) -> Option<SiteId> {
    let is_right = position.matches_site(&agent.core.registry(), site);
    (!is_right).then(|| position.extra_site(agent))
}

/// Whether the frame is a constructor of an error that the VM makes. The VM enters such constructors without a
/// request for the slot, so their slots are not directly above their caller's.
pub fn is_error_constructor(frame: &ResolvedFrame) -> bool {
    const NAMES: [&str; 3] = ["Error", "Exception", "Throwable"];
    let class = &frame.method.class_name;
    frame.method.method_name == "<init>"
        && class.starts_with("java/")
        && NAMES.iter().any(|name| class.ends_with(name))
}
