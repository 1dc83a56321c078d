//! Frames that the VM enters by itself: where their slots are, and what lies between.
//!
//! A class initialiser, say, runs in the middle of a method. The thread's pointer may be stale then:
//! it is right only between a call's hook and the callee's entry. But the VM knows the stack, and
//! every frame with hooks has exactly one slot, so the frames are counted from the thread's first one
//! on. Those without a slot (methods without hooks, natives) between the last slot and the new frame
//! get slots of their own.

use crate::agent::{Agent, count};
use crate::book::Book;
use crate::frames::{Frame, Kind, PIECE, Walk};
use crate::hook::extra_site;
use crate::jvm::Env;
use crate::memory::{LOST, SLOT, slot_site, slot_word, slot_write};
use crate::near;
use crate::thread::{ThreadState, Upcall};

/// What the VM says about the current frames.
pub struct Callers {
    /// The slot above that of the innermost frame that has one.
    pub slot: usize,
    /// That frame's method and line, if there is one.
    pub innermost: Option<(u32, i32)>,
    /// Method and line of the frames without a slot above it, outermost first.
    pub missing: Vec<(u32, i32)>,
    /// Slots below that hold no site, with their frames' methods and lines: see [`repair`].
    pub bare: Vec<(usize, u32, i32)>,
    /// Every frame that traces show is in the book, and those below have slots.
    pub whole: bool,
}

/// The slots of the frames that call.
struct Below {
    /// The next one above.
    slot: usize,
    bare: Vec<(usize, u32, i32)>,
    /// Some frame has none.
    gaps: bool,
}

/// The slot for a frame that the VM has entered; its pointer was `pointer`. `own` frames on top of
/// the stack are the frame itself.
pub fn enter(
    agent: &Agent,
    env: Env,
    state: &mut ThreadState,
    pointer: usize,
    own: usize,
) -> usize {
    count(&agent.counts.upcalls);
    let mut walk = Walk::new(agent, env, own + near::FRAMES);
    let entered: Vec<Frame> = walk.by_ref().take(own).collect();
    let slotless = !entered.iter().any(|frame| frame.method.slot);
    let top: Vec<Frame> = walk.by_ref().take(near::FRAMES).collect();
    let called = match &top[..] {
        _ if !state.owns(pointer) => None,
        [native, caller, ..] => called_native(agent, native, caller, pointer)
            .or_else(|| near::callers(agent, state, &top, pointer)),
        _ => None,
    };
    let counted = || {
        let mut frames = top;
        frames.extend(walk.rest()?);
        // A trace without one of its frames would be wrong.
        let are_known = frames
            .iter()
            .all(|frame| frame.method.kind != Kind::Unknown);
        are_known.then(|| callers(agent, state, &frames)).flatten()
    };
    let Some(callers) = called.or_else(counted) else {
        return lost(agent, state, pointer);
    };
    state.forget_above(callers.slot, callers.slot + SLOT * callers.missing.len());
    let mut changed = None;
    if let Some((method, line)) = callers.innermost {
        let below = callers.slot - SLOT;
        if let Some(site) = wanted_site(agent, method, line, slot_site(below)) {
            changed = Some((below, slot_word(below)));
            slot_write(below, site);
        }
    }
    let slot = callers.fill(agent);
    state.push(Upcall {
        slot,
        pointer,
        changed,
        slotless,
    });
    slot
}

/// What there is to know if `native`, in the middle of which the VM enters a method, was called by code with
/// hooks: the pointer is right from the hook before that call on, as no other Java code runs in between but
/// what is entered like this, and that puts the pointer back. `None`: nobody knows without counting.
fn called_native(agent: &Agent, native: &Frame, caller: &Frame, pointer: usize) -> Option<Callers> {
    let (Kind::Known(method), Kind::Known(calling)) = (native.method.kind, caller.method.kind)
    else {
        return None;
    };
    if !native.method.is_announced() || !caller.has_slot() {
        return None;
    }
    let site = slot_site(pointer.checked_sub(SLOT)?);
    let line = caller.line();
    let book = agent.book();
    let info = book.site(site)?;
    (book.is_same(info.method, calling) && book.line(&info) == line).then(|| Callers {
        slot: pointer,
        innermost: Some((calling, line)),
        missing: vec![(method, native.line())],
        bare: Vec::new(),
        whole: true,
    })
}

/// The slots do not say what the VM says: better no trace than a wrong one.
fn lost(agent: &Agent, state: &mut ThreadState, pointer: usize) -> usize {
    count(&agent.counts.upcalls_lost);
    slot_write(pointer, LOST);
    let slot = pointer + SLOT;
    state.push(Upcall {
        slot,
        pointer,
        changed: None,
        slotless: false,
    });
    slot
}

/// The slot of the frame that code without hooks is about to call.
pub fn next_slot(agent: &Agent, env: Env, state: &ThreadState) -> Option<usize> {
    let frames = Walk::new(agent, env, PIECE).rest()?;
    callers(agent, state, &frames).map(|callers| callers.fill(agent))
}

impl Callers {
    /// Gives slots to the frames that have none; the next one.
    fn fill(&self, agent: &Agent) -> usize {
        let mut slot = self.slot;
        for &(method, line) in &self.missing {
            slot_write(slot, extra_site(agent, method, line));
            slot += SLOT;
        }
        slot
    }
}

/// Of the current thread's `frames`, innermost first. `None`: a slot is not that of the frame that must
/// have it.
pub fn callers(agent: &Agent, state: &ThreadState, frames: &[Frame]) -> Option<Callers> {
    let mut known: Vec<_> = frames
        .iter()
        .filter_map(|frame| match frame.method.kind {
            Kind::Known(id) => Some((id, frame)),
            _ => None,
        })
        .collect();
    known.reverse();
    let whole = frames
        .iter()
        .all(|frame| frame.method.kind != Kind::Unknown);
    let Some(innermost) = known.iter().rposition(|(_, frame)| frame.has_slot()) else {
        return Some(Callers {
            slot: state.first_slot(),
            innermost: None,
            missing: lines(&known),
            bare: Vec::new(),
            whole,
        });
    };
    let (below, above) = known.split_at(innermost);
    let Below { slot, bare, gaps } = slots_of(&agent.book(), below, state.first_slot())?;
    let (own, above) = above.split_first()?;
    Some(Callers {
        slot: slot + SLOT,
        innermost: Some((own.0, own.1.line())),
        missing: lines(above),
        bare,
        whole: whole && !gaps,
    })
}

fn lines(frames: &[(u32, &Frame)]) -> Vec<(u32, i32)> {
    frames
        .iter()
        .map(|(id, frame)| (*id, frame.line()))
        .collect()
}

/// The slots of `frames`, outermost first. Below another frame, natives and methods without hooks have
/// one, too. `None`: a frame has not, so the next one was entered in a way that we know nothing of.
fn slots_of(book: &Book, frames: &[(u32, &Frame)], first: usize) -> Option<Below> {
    let mut below = Below {
        slot: first,
        bare: Vec::new(),
        gaps: false,
    };
    for (id, frame) in frames {
        let site = slot_site(below.slot);
        // 0: entered before the hooks were live.
        let is_bare = site == 0 && frame.has_slot();
        if is_bare {
            below.bare.push((below.slot, *id, frame.line()));
        }
        if is_bare
            || book
                .site(site)
                .is_some_and(|info| book.is_same(info.method, *id))
        {
            below.slot += SLOT;
        } else if site != 0 {
            return None;
        } else {
            below.gaps = true;
        }
    }
    Some(below)
}

/// `None` if `site` already says `method` at `line`.
pub fn wanted_site(agent: &Agent, method: u32, line: i32, site: u32) -> Option<u32> {
    let book = agent.book();
    let right = book
        .site(site)
        .is_some_and(|info| book.is_same(info.method, method) && book.line(&info) == line);
    drop(book);
    (!right).then(|| extra_site(agent, method, line))
}

/// The frame with slot `slot` is left: the pointer from before it was entered.
pub fn leave(state: &mut ThreadState, slot: usize) -> usize {
    let Some(upcall) = state.pop(slot) else {
        return slot;
    };
    if let Some((at, word)) = upcall.changed {
        // Without the memo: it was that of another callee.
        slot_write(at, word as u32);
    }
    upcall.pointer
}

/// Gives sites to slots that have none: their frames were entered before the hooks were live.
/// `top` is the slot of the innermost frame. Returns whether `slot` has a site now.
pub fn repair(agent: &Agent, env: Env, state: &ThreadState, slot: usize, top: usize) -> bool {
    count(&agent.counts.repairs);
    let Some(frames) = Walk::new(agent, env, PIECE).rest() else {
        return false;
    };
    // Natives and methods without hooks have slots, too, below what the VM has entered.
    let Some(callers) = callers(agent, state, &frames).filter(|found| found.slot == top + SLOT)
    else {
        return false;
    };
    for (at, method, line) in callers.bare {
        slot_write(at, extra_site(agent, method, line));
    }
    if let (0, Some((method, line))) = (slot_site(top), callers.innermost) {
        slot_write(top, extra_site(agent, method, line));
    }
    slot_site(slot) != 0
}
