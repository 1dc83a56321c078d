//! `tracking=paper`: the two local variables of each frame. They are stored in its caller's slot, in place of the memo, and
//! in the slot's second part:
//!
//! ```text
//! slot    +0 u32 site, +4 u32 tag   the frame's method, if the variables are set; 0: it was not entered yet
//!         +8 u64 callId             all ones: there was no number, or the caller is unknown
//! beside  +0 u64 version            0: the caller is unknown
//!         +8 u64 number             our graph's number of the context; 0: not resolved yet
//! ```

use lucce_callgraph::{CallEdge, ContextId, MethodId, SiteId};
use lucce_encodings::CallIdVersion;

use crate::comparison::paper_tracking::PaperTracking;
use crate::core::AgentCore;
use crate::memory::slots::{LOST, Slot, SlotRange};
use lucce_layout::lab_layout::{BESIDE_NUMBER, BESIDE_VERSION};

/// The local variables of a frame whose caller is unknown.
const UNKNOWN: CallIdVersion = CallIdVersion {
    call_id: CallIdVersion::NO_CALL_ID,
    version: 0,
};

/// Sets the local variables of the frame of `callee` with slot `slot`, called at `site`.
pub fn enter_frame(
    core: &AgentCore,
    paper: &PaperTracking,
    slot: Slot,
    site: SiteId,
    callee: MethodId,
) {
    let (edge, from) = match site {
        SiteId::ENTRY => (CallEdge::from_thread_entry(callee), CallIdVersion::ROOT),
        SiteId(LOST) => return store_locals(core, slot, callee, UNKNOWN),
        _ => {
            let caller = MethodId(core.method_of_site.get(site.0));
            let edge = CallEdge {
                site,
                caller,
                callee,
            };
            (edge, load_locals(core, slot.below()))
        }
    };
    let to = match from == UNKNOWN {
        true => UNKNOWN,
        false => paper.update_edge(edge, from, |versions| collect_versions(core, versions)),
    };
    store_locals(core, slot, callee, to);
}

fn store_locals(core: &AgentCore, slot: Slot, method: MethodId, pair: CallIdVersion) {
    let caller = slot.below();
    caller.store_word(core.stacks.beside + BESIDE_VERSION, pair.version);
    store_number(core, slot, ContextId::UNKNOWN);
    caller.write_memo(method, ContextId(pair.call_id));
}

fn load_locals(core: &AgentCore, slot: Slot) -> CallIdVersion {
    let (_, call) = slot.below().memo();
    let version = load_version(core, slot.below());
    CallIdVersion {
        call_id: call.0,
        version,
    }
}

/// The version of the frame called from the frame with slot `slot`.
fn load_version(core: &AgentCore, slot: Slot) -> u64 {
    slot.load_word(core.stacks.beside + BESIDE_VERSION)
}

fn load_number(core: &AgentCore, slot: Slot) -> ContextId {
    ContextId(slot.below().load_word(core.stacks.beside + BESIDE_NUMBER))
}

fn store_number(core: &AgentCore, slot: Slot, number: ContextId) {
    let caller = slot.below();
    caller.store_word(core.stacks.beside + BESIDE_NUMBER, number.0);
}

/// The context number of the entered frame of `method` with slot `slot`. Callers keep their numbers, so that a deep stack is not
/// decoded completely each time.
pub fn resolve_number(
    core: &AgentCore,
    paper: &PaperTracking,
    slot: Slot,
    method: MethodId,
) -> ContextId {
    let number = load_number(core, slot);
    if number != ContextId::UNKNOWN {
        return number;
    }
    let (mut at, mut alike) = (slot, 1);
    // A caller's number is valid if its slot still has the decoded local variables: then its context is the same.
    let caller = |method: MethodId, pair| {
        let is_first = matches!(at.below().site(), SiteId::ENTRY | SiteId(LOST));
        if is_first || alike != slot.frames_above(at) + 1 {
            return ContextId::UNKNOWN;
        }
        at = at.below();
        if at.below().memo().0 != method || load_locals(core, at) != pair {
            return ContextId::UNKNOWN;
        }
        alike += 1;
        load_number(core, at)
    };
    let numbers = paper.resolve_path(method, load_locals(core, slot), &core.encoder, caller);
    let innermost_first = numbers.iter().rev().take(alike);
    let mut frame = slot;
    for number in innermost_first {
        store_number(core, frame, *number);
        frame = frame.below();
    }
    numbers.last().copied().unwrap_or(ContextId::UNKNOWN)
}

/// The context of the frame, even if frames below were not entered yet. Does the same as the helper class in `enterFrames`. All
/// slots below must belong to frames that are calling.
pub fn resolve_context(
    core: &AgentCore,
    paper: &PaperTracking,
    slot: Slot,
    method: MethodId,
) -> Option<ContextId> {
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
        if callee == CallEdge::NO_CALLER {
            return None;
        }
    }
    for (at, site, callee) in missing.into_iter().rev() {
        enter_frame(core, paper, at, site, callee);
    }
    let number = resolve_number(core, paper, slot, method);
    (number != ContextId::UNKNOWN).then_some(number)
}

/// Collects the versions of all present frames, and of some that have ended.
fn collect_versions(core: &AgentCore, versions: &mut Vec<u64>) {
    core.threads
        .for_each_stack(|stack| collect_stack_versions(core, stack, versions));
}

fn collect_stack_versions(core: &AgentCore, stack: SlotRange, versions: &mut Vec<u64>) {
    /// Frames entered before the hooks were live have no site. After this number of empty slots there are no frames.
    const EMPTY: u32 = 256;
    let mut empty = 0;
    for slot in stack.slots() {
        let version = load_version(core, slot);
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
