//! With `tracking=paper`: the two local variables of each frame. They lie in its caller's slot, where the
//! default mode has memos, and beside it:
//!
//! ```text
//! slot    +0 u32 site, +4 u32 tag   the frame's method, if it has them; 0: it was not entered yet
//!         +8 u64 callId             all ones: there was no number, or nobody knows who called
//! beside  +0 u64 version            0: nobody knows who called
//!         +8 u64 number             that our graph has for the context, 0: not asked for yet
//! ```

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use lucce_callgraph::encodings::Pair;
use lucce_callgraph::{ContextId, Edge, MethodId, SiteId};

use crate::agent::Agent;
use crate::memory::{LOST, SLOT, slot_memo, slot_part, slot_remember, slot_site, word64};
use crate::paper::Paper;

/// Of a frame whose caller nobody knows.
const UNKNOWN: Pair = Pair {
    call: Pair::LOST,
    version: 0,
};

/// The frame of `callee`, with slot `slot`, was called at `site`.
pub fn enter(agent: &Agent, paper: &Paper, slot: usize, site: SiteId, callee: MethodId) {
    let (edge, from) = match site {
        SiteId::ENTRY => (Edge::entry(callee), Pair::ROOT),
        SiteId(LOST) => return set(agent, slot, callee, UNKNOWN),
        _ => {
            let caller = MethodId(agent.method_of_site.get(site.0));
            let edge = Edge {
                site,
                caller,
                callee,
            };
            (edge, of(agent, slot - SLOT))
        }
    };
    let to = match from == UNKNOWN {
        true => UNKNOWN,
        false => paper.update(edge, from, |versions| all_versions(agent, versions)),
    };
    set(agent, slot, callee, to);
}

fn set(agent: &Agent, slot: usize, method: MethodId, pair: Pair) {
    // Relaxed: the thread's own; whoever asks for versions takes older ones, too.
    version(agent, slot - SLOT).store(pair.version, Ordering::Relaxed);
    known_number(agent, slot).store(0, Ordering::Relaxed);
    slot_remember(slot - SLOT, method.0, pair.call);
}

fn of(agent: &Agent, slot: usize) -> Pair {
    let (_, call) = slot_memo(slot - SLOT);
    let version = version(agent, slot - SLOT).load(Ordering::Relaxed);
    Pair { call, version }
}

/// Of the frame called from the one with slot `slot`.
fn version<'a>(agent: &Agent, slot: usize) -> &'a AtomicU64 {
    slot_part(slot, agent.stacks.beside)
}

fn known_number<'a>(agent: &Agent, slot: usize) -> &'a AtomicU64 {
    slot_part(slot - SLOT, agent.stacks.beside + 8)
}

/// The number of the context of the frame of `method` with slot `slot`, which was entered. Callers
/// keep theirs, so that a deep stack is not decoded to its end each time.
pub fn number(agent: &Agent, paper: &Paper, slot: usize, method: MethodId) -> ContextId {
    let known = ContextId(known_number(agent, slot).load(Ordering::Relaxed));
    if known != ContextId::UNKNOWN {
        return known;
    }
    let (mut at, mut alike) = (slot, 1);
    // A caller's number, if its slot has the local variables that were decoded: the same context then.
    let caller = |method: MethodId, pair| {
        let is_first = matches!(SiteId(slot_site(at - SLOT)), SiteId::ENTRY | SiteId(LOST));
        if is_first || alike != (slot - at) / SLOT + 1 {
            return ContextId::UNKNOWN;
        }
        at -= SLOT;
        if slot_memo(at - SLOT).0 != method.0 || of(agent, at) != pair {
            return ContextId::UNKNOWN;
        }
        alike += 1;
        ContextId(known_number(agent, at).load(Ordering::Relaxed))
    };
    let numbers = paper.context(method, of(agent, slot), &agent.encoder, caller);
    let innermost_first = numbers.iter().rev().take(alike);
    for (frame, number) in innermost_first.enumerate() {
        known_number(agent, slot - frame * SLOT).store(number.0, Ordering::Relaxed);
    }
    numbers.last().copied().unwrap_or(ContextId::UNKNOWN)
}

/// The same, when frames below may not have been entered: what the helper class does in `enteredAll`.
/// All slots below must be those of frames that are calling.
pub fn context(agent: &Agent, paper: &Paper, slot: usize, method: MethodId) -> Option<ContextId> {
    let mut missing = Vec::new();
    let (mut at, mut callee) = (slot, method);
    while slot_memo(at - SLOT).0 != callee.0 {
        let site = SiteId(slot_site(at - SLOT));
        missing.push((at, site, callee));
        if matches!(site, SiteId::ENTRY | SiteId(LOST)) {
            break;
        }
        at -= SLOT;
        callee = MethodId(agent.method_of_site.get(site.0));
        if callee == Edge::NOBODY {
            return None;
        }
    }
    for (at, site, callee) in missing.into_iter().rev() {
        enter(agent, paper, at, site, callee);
    }
    let number = number(agent, paper, slot, method);
    (number != ContextId::UNKNOWN).then_some(number)
}

/// The versions of all frames that are there, and of some that have ended.
fn all_versions(agent: &Agent, versions: &mut Vec<u64>) {
    let threads = agent.threads.lock();
    for address in &*threads.unwrap_or_else(PoisonError::into_inner) {
        versions_of(agent, *address, versions);
    }
}

/// `thread`: the address of its state, which must stay while this runs.
fn versions_of(agent: &Agent, thread: usize, versions: &mut Vec<u64>) {
    /// Frames that were entered before the hooks were live have no site. Behind so many there is none.
    const EMPTY: u32 = 256;
    let [start, end] = [16, 24].map(|at| word64(thread + at).load(Ordering::Relaxed) as usize);
    let mut empty = 0;
    for slot in (start..end).step_by(SLOT) {
        let version = version(agent, slot).load(Ordering::Relaxed);
        empty = if slot_site(slot) == 0 { empty + 1 } else { 0 };
        if empty > EMPTY {
            break;
        }
        if versions.last() != Some(&version) {
            versions.push(version);
        }
    }
}
