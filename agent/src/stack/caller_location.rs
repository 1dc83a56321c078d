//! The location of a frame whose callers are known, from their slots.

use lucce_callgraph::{ContextId, MethodId, SiteId};

use crate::core::EventLocation;
use crate::memory::slots::{LOST, Slot, VM_ENTRY};
use crate::stack::caller_frames::{self, CallerFrames};
use crate::stack::{StackParts, contexts};
use crate::thread::ThreadState;

/// The location of the innermost frame, computed from the known callers.
pub fn locate_by_callers(
    agent: StackParts<'_>,
    state: &ThreadState,
    callers: &CallerFrames,
) -> Option<EventLocation> {
    if !callers.is_complete {
        return None;
    }
    for &(slot, position) in &callers.slots_without_site {
        slot.write_site(known_site(position.extra_site(agent))?);
    }
    let mut here = innermost_location(agent, state, callers)?;
    for &position in callers
        .missing
        .iter()
        .skip(usize::from(callers.innermost.is_none()))
    {
        here = EventLocation {
            context: contexts::step_context(agent, state, here, position.method)?,
            site: known_site(position.extra_site(agent))?,
            method: position.method,
        };
    }
    Some(here)
}

/// The location of the innermost frame that has a slot. If there is none: of the thread's first frame.
fn innermost_location(
    agent: StackParts<'_>,
    state: &ThreadState,
    callers: &CallerFrames,
) -> Option<EventLocation> {
    let slot = callers.slot.below();
    let (position, known) = match callers.innermost {
        Some(position) => (position, slot.site()),
        None => (*callers.missing.first()?, SiteId(0)),
    };
    let site = caller_frames::wanted_site(agent, position, known).unwrap_or(known);
    let site = known_site(site)?;
    // The frame may run older code. Then the slot's site belongs to that code's method, which has another id.
    let method = known_method(agent.core.method_of_site.get(site.0))?;
    let context = match callers.innermost {
        Some(_) => slot_context(agent, state, slot, method)?,
        None => contexts::first_context(agent, state, method)?,
    };
    Some(EventLocation {
        context,
        site,
        method,
    })
}

/// The context of the frame of `method` with slot `slot`. Computed from the nearest known context below, like
/// `LucceRtContexts.findContext`. All slots below must belong to frames that are calling.
pub fn slot_context(
    agent: StackParts<'_>,
    state: &ThreadState,
    slot: Slot,
    method: MethodId,
) -> Option<u64> {
    agent
        .counters
        .tracking
        .slot_context(agent.core, (slot, method), || {
            context_by_memos(agent, state, slot, method)
        })
}

fn context_by_memos(
    agent: StackParts<'_>,
    state: &ThreadState,
    slot: Slot,
    method: MethodId,
) -> Option<u64> {
    let methods = &agent.core.method_of_site;
    let (mut at, mut callee) = (slot, method);
    let mut context = loop {
        let below = at.below();
        let (known, context) = below.memo();
        if known == callee {
            break context.0;
        }
        match below.site() {
            SiteId::ENTRY => {
                let context = contexts::first_context(agent, state, callee)?;
                below.write_memo(callee, ContextId(context));
                break context;
            }
            SiteId(LOST | VM_ENTRY) => return None,
            site => callee = self::known_method(methods.get(site.0))?,
        }
        at = below;
    };
    while at != slot {
        let site = at.site();
        let caller = self::known_method(methods.get(site.0))?;
        let callee = match at.above() == slot {
            true => method,
            false => self::known_method(methods.get(at.above().site().0))?,
        };
        let here = EventLocation {
            context,
            site,
            method: caller,
        };
        context = contexts::step_context(agent, state, here, callee)?;
        at.write_memo(callee, ContextId(context));
        at = at.above();
    }
    Some(context)
}

fn known_site(site: SiteId) -> Option<SiteId> {
    (site != SiteId(0)).then_some(site)
}

fn known_method(id: u32) -> Option<MethodId> {
    (id != 0).then_some(MethodId(id))
}
