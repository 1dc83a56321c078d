//! Frames that the VM enters by itself: where their slots are, and what lies between.
//!
//! A class initialiser, say, runs in the middle of a method. The thread's pointer may be stale then:
//! it is right only between a call's hook and the callee's entry. But the VM knows the stack, and
//! every frame with hooks has exactly one slot, so the frames are counted from the thread's first one
//! on. Those without a slot (methods without hooks, natives) between the last slot and the new frame
//! get slots of their own.

use std::sync::Arc;

use lucce_callgraph::{ContextId, MethodId, SiteId};

use crate::book::Book;
use crate::memory::counter::count;
use crate::memory::slots::{LOST, Slot};
use crate::stack::Stack;
use crate::stack::announced::Place;
use crate::stack::entry_loss::{EntryLoss, LossReason};
use crate::stack::frames::{Frame, MethodKind, PIECE, Walk};
use crate::stack::{contexts, here, innermost, scopes};
use crate::thread::{ThreadState, Upcall};
use lucce_vm::Env;

/// Where a frame stands, as the VM says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stands {
    pub method: MethodId,
    /// As `StackTraceElement` has it.
    pub line: i32,
}

impl Stands {
    /// `method` is that of `frame`.
    pub fn of(method: MethodId, frame: &Frame) -> Stands {
        let line = frame.line();
        Stands { method, line }
    }

    /// Whether `site` is in the method at the line.
    fn is_at(self, book: &Book, site: SiteId) -> bool {
        book.site(site.0).is_some_and(|info| {
            book.is_same(info.method, self.method.0) && book.line(&info) == self.line
        })
    }

    /// A site in the method at the line; 0: no ids are left.
    pub fn site(self, stack: &Stack) -> SiteId {
        SiteId(stack.extra_site(self.method.0, self.line))
    }
}

/// What the VM says about the current frames.
pub struct Callers {
    /// The slot above that of the innermost frame that has one.
    pub slot: Slot,
    /// Where that frame stands, if there is one.
    pub innermost: Option<Stands>,
    /// Where the frames without a slot above it stand, outermost first.
    pub missing: Vec<Stands>,
    /// Slots below that hold no site, and where their frames stand: see [`repair`].
    pub bare: Vec<(Slot, Stands)>,
    /// Every frame that traces show is in the book, and those below have slots.
    pub whole: bool,
}

/// In a slot whose frame was entered before the hooks were live.
const NO_SITE: SiteId = SiteId(0);

/// The slots of the frames that call.
struct Below {
    /// The next one above.
    slot: Slot,
    bare: Vec<(Slot, Stands)>,
    /// Some frame has none.
    gaps: bool,
}

/// The slot for a frame that the VM has entered; its pointer was `pointer`. `own` frames on top of
/// the stack are the frame itself.
pub fn enter(stack: &Stack, env: Env, state: &ThreadState, pointer: Slot, own: usize) -> Slot {
    count(&stack.counts.upcalls);
    let site_for = &mut |stands, site| wanted_site(stack, stands, site);
    if let Some((callers, slotless)) = near(stack, env, state, pointer, own) {
        count(&stack.counts.upcalls_near);
        return callers.begin(state, (pointer, slotless), site_for);
    }
    let mut walk = Walk::new(stack, env, HELPERS + own + innermost::FEW);
    let entered: Vec<Frame> = walk.by_ref().take(own).collect();
    let slotless = !entered.iter().any(|frame| frame.method.slot);
    let mut frames: Vec<Frame> = walk.by_ref().take(innermost::FEW).collect();
    let called = match &frames[..] {
        _ if !state.owns(pointer) => None,
        [native, caller, ..] => {
            let called = called_native(&stack.book(), native, caller, pointer);
            if called.is_some() {
                stack.announced.calls_native(pointer.below().site());
            }
            let asked = (&mut frames, 0, &mut walk);
            called.or_else(|| innermost::callers(stack, state, asked, pointer))
        }
        _ => None,
    };
    let caller = frames.first().cloned();
    let callers = match called {
        Some(callers) => callers,
        None => {
            let all = walk.rest().map(|rest| frames.extend(rest));
            match count_callers(stack, state, all.map(|()| &*frames)) {
                Ok(callers) => callers,
                Err(reason) => {
                    let loss = EntryLoss {
                        reason,
                        entered: &entered,
                        callers: &frames,
                    };
                    return enter_elsewhere(stack, state, pointer, &loss);
                }
            }
        }
    };
    if let Some(caller) = caller.filter(|_| callers.slot == pointer) {
        let site = pointer.below().site();
        if called_here(&stack.book(), &caller, pointer).is_some() {
            stack.announced.calls(stack, env, site, &caller);
        }
    }
    callers.begin(state, (pointer, slotless), site_for)
}

/// Frames of the helper on top of the one that the VM has entered, at most.
const HELPERS: usize = 3;

/// What one frame below those that were entered tells, or two if it is a native's, and whether those that were entered have no
/// slot. `None`: it does not tell, or nothing is known yet of the site below the pointer.
fn near(
    stack: &Stack,
    env: Env,
    state: &ThreadState,
    pointer: Slot,
    own: usize,
) -> Option<(Callers, bool)> {
    if !state.owns(pointer) {
        return None;
    }
    let place = stack.announced.place(pointer.below().site())?;
    let below = match place {
        Place::Call(..) => 1,
        Place::Native => 2,
        Place::Seen(_) | Place::Unclear => return None,
    };
    let mut walk = Walk::new(stack, env, HELPERS + own + below);
    let slotless = !walk.by_ref().take(own).any(|frame| frame.method.slot);
    let caller = walk.next()?;
    let callers = match place {
        Place::Call(method, location) => {
            let is_there = Arc::ptr_eq(&method, &caller.method) && location == caller.location;
            is_there.then(|| called_here(&stack.book(), &caller, pointer))?
        }
        _ => called_native(&stack.book(), &caller, &walk.next()?, pointer),
    };
    Some((callers?, slotless))
}

/// What there is to know if `caller` stands at a call before which it has run a hook. `None`: the slot below the pointer is not
/// the caller's.
pub fn called_here(book: &Book, caller: &Frame, pointer: Slot) -> Option<Callers> {
    let stands = Stands::of(caller.method.id()?, caller);
    let is_there = caller.has_slot() && stands.is_at(book, pointer.below().site());
    is_there.then(|| Callers {
        slot: pointer,
        innermost: Some(stands),
        missing: Vec::new(),
        bare: Vec::new(),
        whole: true,
    })
}

/// What there is to know if `native`, in the middle of which the VM enters a method, was called by code with
/// hooks: the pointer is right from the hook before that call on, as no other Java code runs in between but
/// what is entered like this, and that puts the pointer back. `None`: it is not known without counting.
fn called_native(book: &Book, native: &Frame, caller: &Frame, pointer: Slot) -> Option<Callers> {
    let native_at = Stands::of(native.method.id()?, native);
    let is_announced = native.method.is_announced();
    let callers = is_announced.then(|| called_here(book, caller, pointer))??;
    Some(Callers {
        missing: vec![native_at],
        ..callers
    })
}

/// The pointer from before the VM enters a frame with slot `next`, now that it is `pointer`. A frame that the VM has entered at
/// the same place may have been ended by an exception, which has left the pointer where that frame moved it: above. Then it
/// is the one from before that frame.
fn pointer_before(state: &ThreadState, next: Slot, pointer: Slot) -> Slot {
    let before = state.entered_at(next).filter(|_| pointer > next);
    before.unwrap_or(pointer)
}

/// The callers by all frames below the one that was entered. `frames`: innermost first; `None`: the VM does not say them.
fn count_callers(
    stack: &Stack,
    state: &ThreadState,
    frames: Option<&[Frame]>,
) -> Result<Callers, LossReason> {
    let frames = frames.ok_or(LossReason::NoStack)?;
    // A trace without one of its frames would be wrong.
    if !are_known(frames) {
        return Err(LossReason::UnknownFrame);
    }
    callers(&stack.book(), state, frames).ok_or(LossReason::OtherSlot)
}

/// The slots do not say what the VM says. The frame's slot is the one above the pointer, and none belongs to its caller. If all
/// frames below are known, the frame's context is kept as the memo there; else it has none: better no trace than a wrong one.
fn enter_elsewhere(
    stack: &Stack,
    state: &ThreadState,
    pointer: Slot,
    loss: &EntryLoss<'_>,
) -> Slot {
    pointer.write(SiteId(LOST));
    match context_by_frames(stack, state, loss) {
        Some((method, context)) => {
            count(&stack.counts.upcalls_by_frames);
            pointer.remember(method, context);
        }
        None => loss.count_and_report(stack, state),
    }
    let slot = pointer.above();
    state.push(Upcall {
        slot,
        pointer,
        // The memo is this entry's alone.
        changed: Some((pointer, SiteId(LOST))),
        slotless: false,
    });
    slot
}

/// The slots do not say what the VM says: better no trace of what is called next than a wrong one. Its slot.
pub fn lose_callee(
    stack: &Stack,
    state: &ThreadState,
    pointer: Slot,
    loss: &EntryLoss<'_>,
) -> Slot {
    loss.count_and_report(stack, state);
    // Below the first frame's slot is the mark that the thread begins there.
    let (below, next) = match state.owns(pointer.below()) {
        true => (pointer.below(), pointer),
        false => (pointer, pointer.above()),
    };
    below.write(SiteId(LOST));
    next
}

/// The entered method and the context of its frame, step by step along the frames that the VM says. `None`: a frame is not
/// known, its context is given from elsewhere, or there is no number.
fn context_by_frames(
    stack: &Stack,
    state: &ThreadState,
    loss: &EntryLoss<'_>,
) -> Option<(MethodId, ContextId)> {
    if loss.reason != LossReason::OtherSlot || !stack.comparison.is_off() {
        return None;
    }
    let method = loss.entered.first()?.method.id()?;
    let stands = stand(&shown(loss.callers));
    let book = stack.book();
    if stands.iter().any(|of| scopes::goes_on(&book, of.method.0)) {
        return None;
    }
    drop(book);
    let caller = here::locate(stack, state, &Callers::without_slots(state, stands))?;
    let context = contexts::step(stack, state, caller, method)?;
    Some((method, ContextId(context)))
}

/// The slot of the frame that code without hooks is about to call.
pub fn next_slot(stack: &Stack, env: Env, state: &ThreadState) -> Option<Slot> {
    let frames = Walk::new(stack, env, PIECE).rest()?;
    let callers = callers(&stack.book(), state, &frames)?;
    Some(callers.fill(&mut |stands, _| Some(stands.site(stack))))
}

/// The site for a frame that stands there; `None`: the slot's, which is given, says it already.
pub type SiteFor<'a> = dyn FnMut(Stands, SiteId) -> Option<SiteId> + 'a;

impl Callers {
    /// Of frames that stand there, outermost first, all that there are: none is known by a slot.
    fn without_slots(state: &ThreadState, stands: Vec<Stands>) -> Callers {
        Callers {
            slot: state.first_slot(),
            innermost: None,
            missing: stands,
            bare: Vec::new(),
            whole: true,
        }
    }

    /// The VM enters a frame, whose pointer was `pointer`: its slot.
    pub fn begin(
        &self,
        state: &ThreadState,
        (pointer, slotless): (Slot, bool),
        site_for: &mut SiteFor<'_>,
    ) -> Slot {
        let next = self.slot.up(self.missing.len());
        let pointer = pointer_before(state, next, pointer);
        state.forget_above(self.slot, next);
        let changed = self.correct_innermost(site_for);
        let slot = self.fill(site_for);
        slot.clear_downcall();
        state.push(Upcall {
            slot,
            pointer,
            changed,
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
        below.write(site);
        Some((below, before))
    }

    /// As `fill`, where the innermost frame may have a wrong site, too.
    pub fn place_callee(&self, site_for: &mut SiteFor<'_>) -> Slot {
        self.correct_innermost(site_for);
        self.fill(site_for)
    }

    /// Gives sites to the slots that hold none, up to the innermost frame's, `top`.
    pub fn repair(&self, top: Slot, site_for: &mut SiteFor<'_>) {
        let innermost = self.innermost.map(|stands| (top, stands));
        for &(at, stands) in self.bare.iter().chain(&innermost) {
            if at.site() == NO_SITE {
                at.write(site_for(stands, NO_SITE).unwrap_or(NO_SITE));
            }
        }
    }

    /// Gives slots to the frames that have none; the next one.
    fn fill(&self, site_for: &mut SiteFor<'_>) -> Slot {
        let mut slot = self.slot;
        for missing in &self.missing {
            // What is there belongs to another frame.
            slot.write(site_for(*missing, NO_SITE).unwrap_or(NO_SITE));
            slot = slot.above();
        }
        slot
    }
}

/// Of the current thread's `frames`, innermost first. `None`: a slot is not that of the frame that must
/// have it.
pub fn callers(book: &Book, state: &ThreadState, frames: &[Frame]) -> Option<Callers> {
    let known = shown(frames);
    let whole = are_known(frames);
    let Some(innermost) = known.iter().rposition(|(_, frame)| frame.has_slot()) else {
        return Some(Callers {
            whole,
            ..Callers::without_slots(state, stand(&known))
        });
    };
    let (below, above) = known.split_at(innermost);
    let Below { slot, bare, gaps } = slots_of(book, below, state.first_slot())?;
    let (own, above) = above.split_first()?;
    Some(Callers {
        slot: slot.above(),
        innermost: Some(Stands::of(own.0, own.1)),
        missing: stand(above),
        bare,
        whole: whole && !gaps,
    })
}

/// As [`callers`], also where the VM makes an error of its own: it enters the constructor without asking for a slot, so the slots from
/// there on are not those of their frames. Those below are, and each frame above is one step more.
pub fn all_callers(book: &Book, state: &ThreadState, frames: &[Frame]) -> Option<Callers> {
    if let Some(all) = callers(book, state, frames).filter(|all| all.whole) {
        return Some(all);
    }
    let outermost = frames.iter().rposition(innermost::makes_an_error)?;
    let (entered, below) = frames.split_at(outermost + 1);
    let mut callers = callers(book, state, below)?;
    callers.missing.extend(stand(&shown(entered)));
    callers.whole &= are_known(entered);
    Some(callers)
}

/// Those of `frames`, innermost first, that traces show: outermost first.
fn shown(frames: &[Frame]) -> Vec<(MethodId, &Frame)> {
    let outermost_first = frames.iter().rev();
    let shown = outermost_first.filter_map(|frame| Some((frame.method.id()?, frame)));
    shown.collect()
}

pub fn are_known(frames: &[Frame]) -> bool {
    let mut kinds = frames.iter().map(|frame| frame.method.kind);
    kinds.all(|kind| kind != MethodKind::Unknown)
}

fn stand(frames: &[(MethodId, &Frame)]) -> Vec<Stands> {
    let each = frames.iter().map(|(id, frame)| Stands::of(*id, frame));
    each.collect()
}

/// The slots of `frames`, outermost first. Below another frame, natives and methods without hooks have
/// one, too. `None`: a frame has not, so the next one was entered in a way that we know nothing of.
fn slots_of(book: &Book, frames: &[(MethodId, &Frame)], first: Slot) -> Option<Below> {
    let mut below = Below {
        slot: first,
        bare: Vec::new(),
        gaps: false,
    };
    for (id, frame) in frames {
        let site = below.slot.site();
        // Entered before the hooks were live.
        let is_bare = site == NO_SITE && frame.has_slot();
        if is_bare {
            below.bare.push((below.slot, Stands::of(*id, frame)));
        }
        if is_bare
            || book
                .site(site.0)
                .is_some_and(|info| book.is_same(info.method, id.0))
        {
            below.slot = below.slot.above();
        } else if site != NO_SITE {
            return None;
        } else {
            below.gaps = true;
        }
    }
    Some(below)
}

/// The site for a frame that stands there; `None` if `site` already says it.
pub fn wanted_site(stack: &Stack, stands: Stands, site: SiteId) -> Option<SiteId> {
    let is_right = stands.is_at(&stack.book(), site);
    (!is_right).then(|| stands.site(stack))
}

/// The frame with slot `slot` is left: the pointer from before it was entered.
pub fn leave(state: &ThreadState, slot: Slot) -> Slot {
    let Some(upcall) = state.pop(slot) else {
        return slot;
    };
    if let Some((at, site)) = upcall.changed {
        // Without the memo: it was that of another callee.
        at.write(site);
    }
    upcall.pointer
}

/// Gives sites to slots that have none: their frames were entered before the hooks were live.
/// `top` is the slot of the innermost frame. Returns whether `slot` has a site now.
pub fn repair(stack: &Stack, env: Env, state: &ThreadState, slot: Slot, top: Slot) -> bool {
    count(&stack.counts.repairs);
    let Some(frames) = Walk::new(stack, env, PIECE).rest() else {
        return false;
    };
    // Natives and methods without hooks have slots, too, below what the VM has entered.
    let found = callers(&stack.book(), state, &frames);
    let Some(callers) = found.filter(|found| found.slot == top.above()) else {
        return false;
    };
    callers.repair(top, &mut |stands, _| Some(stands.site(stack)));
    slot.site() != NO_SITE
}
