//! Frames that the VM enters by itself: what lies between them and the last slot.
//!
//! A class initialiser, say, runs in the middle of a method: its caller's slot may still hold the
//! site of an earlier call, and callers without a slot (methods without hooks, natives) are not on
//! the shadow stack at all. The VM knows them. Frames are matched from the innermost one outward
//! until one is found that has a slot; those in between get slots of their own.

use std::sync::atomic::Ordering;

use crate::agent::{Agent, count};
use crate::book::What;
use crate::frames::{Frame, Kind, Walk};
use crate::hook::extra_site;
use crate::jvm::Env;
use crate::memory::{slot_site, slot_write, word64};
use crate::thread::{ThreadState, Upcall};

/// What the VM says about a frame's callers.
#[derive(Default)]
struct Callers {
    /// Sites of frames without a slot, innermost first.
    missing: Vec<u32>,
    /// What the site of the topmost slot must be; 0: it is right as it is.
    site: u32,
    /// There is no frame with a slot: whatever lies on the shadow stack is left from frames that
    /// an exception ended.
    bottom: bool,
}

/// The slot for a frame that the VM entered when the pointer was `pointer`, and whether that is
/// anything but the pointer itself: then bit 0 is set. `own` frames on top of the stack are the
/// frame itself.
pub fn enter(
    agent: &Agent,
    env: Env,
    state: &mut ThreadState,
    pointer: usize,
    own: usize,
) -> usize {
    count(&agent.counts.upcalls);
    state.forget_above(pointer);
    let walk = Walk::new(agent, env, 8);
    let callers = callers(agent, walk.skip(own), state, pointer - 16);
    let base = if callers.bottom {
        state.first_slot()
    } else {
        pointer
    };
    let below = base - 16;
    let changed = (callers.site != 0).then(|| (below, word64(below).load(Ordering::Relaxed)));
    if callers.missing.is_empty() && changed.is_none() && base == pointer {
        return pointer;
    }
    if callers.site != 0 {
        slot_write(below, callers.site);
    }
    let mut slot = base;
    for &site in callers.missing.iter().rev() {
        slot_write(slot, site);
        slot += 16;
    }
    state.push(Upcall {
        slot,
        pointer: base,
        changed,
    });
    slot | 1
}

fn callers(
    agent: &Agent,
    frames: impl Iterator<Item = Frame>,
    state: &ThreadState,
    top: usize,
) -> Callers {
    let mut callers = Callers::default();
    for frame in frames {
        let Kind::Known(id) = frame.method.kind else {
            continue;
        };
        let line = frame.line();
        let entered = frame.location >= frame.method.entry_end;
        if frame.method.slot && entered && top >= state.first_slot() {
            callers.site = wanted_site(agent, id, line, slot_site(top));
            return callers;
        }
        if frame.method.native && is_bracket(agent, id, slot_site(top)) {
            return callers;
        }
        callers.missing.push(extra_site(agent, id, line));
    }
    callers.bottom = true;
    callers
}

/// 0 if `site` already says `method` at `line`.
fn wanted_site(agent: &Agent, method: u32, line: i32, site: u32) -> u32 {
    let book = agent.book();
    let right = book
        .site(site)
        .is_some_and(|info| info.method == method && book.line(info) == line);
    drop(book);
    if right {
        0
    } else {
        extra_site(agent, method, line)
    }
}

/// Whether `site` is that of the native method itself: it was called with a bracket.
fn is_bracket(agent: &Agent, method: u32, site: u32) -> bool {
    let book = agent.book();
    book.site(site)
        .is_some_and(|info| info.method == method && info.what == What::Native)
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
/// `pointer` is the thread's. Returns whether `slot` has a site now.
pub fn repair(agent: &Agent, env: Env, state: &ThreadState, slot: usize, pointer: usize) -> bool {
    count(&agent.counts.repairs);
    let with_slot = Walk::new(agent, env, 64)
        .filter(|frame| frame.method.slot && matches!(frame.method.kind, Kind::Known(_)));
    let frames: Vec<Frame> = with_slot.collect();
    let slots = pointer.saturating_sub(state.first_slot()) / 16;
    if frames.len() != slots {
        return false;
    }
    for (index, frame) in frames.iter().rev().enumerate() {
        let at = state.first_slot() + 16 * index;
        if let (0, Kind::Known(id)) = (slot_site(at), frame.method.kind) {
            slot_write(at, extra_site(agent, id, frame.line()));
        }
    }
    slot_site(slot) != 0
}
