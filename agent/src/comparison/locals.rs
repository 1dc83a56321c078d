//! With `tracking=paper`: the two local variables of each frame. They lie in its caller's slot, where the
//! default mode has memos, and beside it:
//!
//! ```text
//! slot    +0 u32 site, +4 u32 tag   the frame's method, if it has them; 0: it was not entered yet
//!         +8 u64 callId             all ones: there was no number, or the caller is not known
//! beside  +0 u64 version            0: the caller is not known
//!         +8 u64 number             that our graph has for the context, 0: not asked for yet
//! ```

use lucce_callgraph::encodings::Pair;
use lucce_callgraph::{ContextId, Edge, MethodId, SiteId};

use crate::comparison::paper::Paper;
use crate::core::Core;
use crate::memory::shared_layout::{BESIDE_NUMBER, BESIDE_VERSION};
use crate::memory::slots::{LOST, Slot, SlotRange};

/// Of a frame whose caller is not known.
const UNKNOWN: Pair = Pair {
    call: Pair::LOST,
    version: 0,
};

/// The frame of `callee`, with slot `slot`, was called at `site`.
pub fn enter(core: &Core, paper: &Paper, slot: Slot, site: SiteId, callee: MethodId) {
    let (edge, from) = match site {
        SiteId::ENTRY => (Edge::entry(callee), Pair::ROOT),
        SiteId(LOST) => return set(core, slot, callee, UNKNOWN),
        _ => {
            let caller = MethodId(core.method_of_site.get(site.0));
            let edge = Edge {
                site,
                caller,
                callee,
            };
            (edge, of(core, slot.below()))
        }
    };
    let to = match from == UNKNOWN {
        true => UNKNOWN,
        false => paper.update(edge, from, |versions| all_versions(core, versions)),
    };
    set(core, slot, callee, to);
}

fn set(core: &Core, slot: Slot, method: MethodId, pair: Pair) {
    let caller = slot.below();
    caller.store(core.stacks.beside + BESIDE_VERSION, pair.version);
    set_known_number(core, slot, ContextId::UNKNOWN);
    caller.remember(method, ContextId(pair.call));
}

fn of(core: &Core, slot: Slot) -> Pair {
    let (_, call) = slot.below().memo();
    let version = version(core, slot.below());
    Pair {
        call: call.0,
        version,
    }
}

/// Of the frame called from the one with slot `slot`.
fn version(core: &Core, slot: Slot) -> u64 {
    slot.load(core.stacks.beside + BESIDE_VERSION)
}

fn known_number(core: &Core, slot: Slot) -> ContextId {
    ContextId(slot.below().load(core.stacks.beside + BESIDE_NUMBER))
}

fn set_known_number(core: &Core, slot: Slot, number: ContextId) {
    let caller = slot.below();
    caller.store(core.stacks.beside + BESIDE_NUMBER, number.0);
}

/// The number of the context of the frame of `method` with slot `slot`, which was entered. Callers
/// keep theirs, so that a deep stack is not decoded to its end each time.
pub fn number(core: &Core, paper: &Paper, slot: Slot, method: MethodId) -> ContextId {
    let known = known_number(core, slot);
    if known != ContextId::UNKNOWN {
        return known;
    }
    let (mut at, mut alike) = (slot, 1);
    // A caller's number, if its slot has the local variables that were decoded: then its context is that one.
    let caller = |method: MethodId, pair| {
        let is_first = matches!(at.below().site(), SiteId::ENTRY | SiteId(LOST));
        if is_first || alike != slot.since(at) + 1 {
            return ContextId::UNKNOWN;
        }
        at = at.below();
        if at.below().memo().0 != method || of(core, at) != pair {
            return ContextId::UNKNOWN;
        }
        alike += 1;
        known_number(core, at)
    };
    let numbers = paper.context(method, of(core, slot), &core.encoder, caller);
    let innermost_first = numbers.iter().rev().take(alike);
    let mut frame = slot;
    for number in innermost_first {
        set_known_number(core, frame, *number);
        frame = frame.below();
    }
    numbers.last().copied().unwrap_or(ContextId::UNKNOWN)
}

/// The context of the frame, when frames below may not have been entered: what the helper class does in `enteredAll`.
/// All slots below must be those of frames that are calling.
pub fn context(core: &Core, paper: &Paper, slot: Slot, method: MethodId) -> Option<ContextId> {
    let mut missing = Vec::new();
    let (mut at, mut callee) = (slot, method);
    while at.below().memo().0 != callee {
        let site = at.below().site();
        missing.push((at, site, callee));
        if matches!(site, SiteId::ENTRY | SiteId(LOST)) {
            break;
        }
        at = at.below();
        callee = MethodId(core.method_of_site.get(site.0));
        if callee == Edge::NOBODY {
            return None;
        }
    }
    for (at, site, callee) in missing.into_iter().rev() {
        enter(core, paper, at, site, callee);
    }
    let number = number(core, paper, slot, method);
    (number != ContextId::UNKNOWN).then_some(number)
}

/// The versions of all frames that are there, and of some that have ended.
fn all_versions(core: &Core, versions: &mut Vec<u64>) {
    core.threads
        .each(|stack| versions_of(core, stack, versions));
}

fn versions_of(core: &Core, stack: SlotRange, versions: &mut Vec<u64>) {
    /// Frames that were entered before the hooks were live have no site. Behind so many there is none.
    const EMPTY: u32 = 256;
    let mut empty = 0;
    for slot in stack.slots() {
        let version = version(core, slot);
        empty = if slot.site() == SiteId(0) {
            empty + 1
        } else {
            0
        };
        if empty > EMPTY {
            break;
        }
        if versions.last() != Some(&version) {
            versions.push(version);
        }
    }
}
