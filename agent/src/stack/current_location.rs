//! The current location of a thread for queries by native code: a callback of the VM, or a native method.
//!
//! The thread's pointer may be stale at that time. So the VM is asked for the frames, as at a VM entry, and each slot
//! is compared with its frame. The context of the innermost frame with a slot is computed like in the helper class,
//! then one transition follows for each frame above. The query writes only memos, and sites of slots that hold none.
//! No slot's site changes, so nothing needs to be restored.

use lucce_callgraph::{ContextId, MethodId, SiteId};

use crate::core::EventLocation;
use crate::memory::slots::{LOST, Slot, VM_ENTRY};
use crate::stack::caller_frames::{self, CallerFrames};
use crate::stack::deferred_entries;
use crate::stack::frames::{MethodKind, ResolvedFrame, StackWalk};
use crate::stack::innermost_frames;
use crate::stack::innermost_frames::WalkedFrames;
use crate::stack::{StackParts, contexts};
use crate::thread::ThreadState;
use crate::thread::carrier;
use lucce_jvmti::JniEnvironment;

/// The location of the current thread, without the innermost `own` frames that the VM reports. `None`: no frame is
/// left, or the caller of a frame is not known. `state` must be the current thread's.
pub fn locate_current(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    own: usize,
) -> Option<EventLocation> {
    locate_stable(agent, env, state, (own, None)).here
}

/// The place of an allocation.
pub enum AllocationPlace {
    /// In the helper class, for the agent itself.
    Ours,
    Here(EventLocation),
    /// By the VM for itself: no frame is shown.
    Nowhere,
    /// The caller of a frame is not known.
    Unknown,
}

/// The place at which the current thread has just made the object that the VM reports.
pub fn locate_allocation(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
) -> AllocationPlace {
    match locate_stable(agent, env, state, (0, None)) {
        CurrentLocation {
            in_helper: true, ..
        } => AllocationPlace::Ours,
        CurrentLocation {
            here: Some(here), ..
        } => AllocationPlace::Here(here),
        CurrentLocation { is_empty: true, .. } => AllocationPlace::Nowhere,
        CurrentLocation { here: None, .. } => AllocationPlace::Unknown,
    }
}

struct CurrentLocation {
    here: Option<EventLocation>,
    /// The innermost frame belongs to the helper class.
    in_helper: bool,
    /// No trace shows any of the frames.
    is_empty: bool,
}

/// Like [`locate_current`], with `location` as the location of the innermost frame, even if the VM reports another
/// one.
pub fn locate_at(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    location: Option<i64>,
) -> Option<EventLocation> {
    locate_stable(agent, env, state, (0, location)).here
}

/// Tries the innermost frames alone, then all frames. Repeats the walk if a method was resolved meanwhile: its code
/// may have been replaced after the walk.
fn locate_stable(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    place: (usize, Option<i64>),
) -> CurrentLocation {
    const MOST_WALKS: usize = 8;
    let mut walks = 1;
    loop {
        let before = agent.stack.frames.resolution_count();
        let location = locate_once(agent, env, state, place);
        if agent.stack.frames.resolution_count() == before || walks == MOST_WALKS {
            return location;
        }
        walks += 1;
    }
}

fn locate_once(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (own, location): (usize, Option<i64>),
) -> CurrentLocation {
    let mut walk = StackWalk::new(agent, env, own + innermost_frames::FIRST_FRAMES)
        .with_innermost_location(location);
    let mut frames = Vec::new();
    let mut walked = WalkedFrames {
        frames: &mut frames,
        own,
        walk: &mut walk,
    };
    let here = find_location(agent, env, state, &mut walked);
    let is_shown = |frame: &ResolvedFrame| frame.method.kind != MethodKind::Hidden;
    let has_all = frames.len() < own + innermost_frames::MOST_FRAMES;
    CurrentLocation {
        in_helper: walk.is_in_helper() && !walk.creates_for_program(),
        is_empty: has_all && !frames.iter().skip(own).any(is_shown),
        here,
    }
}

fn find_location(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    walked: &mut WalkedFrames<'_, '_>,
) -> Option<EventLocation> {
    let near = thread_pointer(agent, env)
        .and_then(|pointer| innermost_frames::find_callers(agent, state, walked, pointer));
    let callers = match near {
        Some(callers) => callers,
        None => {
            walked.frames.extend(walked.walk.collect_rest()?);
            let frames = walked.callers()?;
            let own = walked.frames.get(..walked.own)?;
            let inner = deferred_entries::count_deferrable(own);
            let callers = {
                let registry = agent.core.registry();
                caller_frames::match_all_callers(&registry, state, frames, inner)?
            };
            deferred_entries::locate_entries(agent, state, frames, &callers.deferred)?;
            callers
        }
    };
    locate_by_callers(agent, state, &callers)
}

/// The current thread's pointer, which may be stale.
fn thread_pointer(agent: StackParts<'_>, env: JniEnvironment) -> Option<Slot> {
    let fields = agent.core.fields.get()?;
    let thread = agent.core.jvmti.current_thread()?;
    let field = fields.pointer.as_raw();
    let pointer = carrier::with_field_holder(agent.thread_parts(), env, thread, |thread| {
        env.get_long(thread, field)
    });
    env.delete_local(thread);
    usize::try_from(pointer).ok().map(Slot::from_pointer)
}

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
