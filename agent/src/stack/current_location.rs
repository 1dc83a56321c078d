//! The current location of a thread for queries by native code: a callback of the VM, or a native method.
//!
//! The thread's pointer may be stale at that time. So the VM is asked for the frames, as at a VM entry, and each slot
//! is compared with its frame. The context of the innermost frame with a slot is computed like in the helper class,
//! then one transition follows for each frame above. The query writes only memos, and sites of slots that hold none.
//! No slot's site changes, so nothing needs to be restored.

use crate::core::EventLocation;
use crate::memory::slots::Slot;
use crate::stack::StackParts;
use crate::stack::caller_frames;
use crate::stack::caller_location::locate_by_callers;
use crate::stack::deferred_entries::locate_entries;
use crate::stack::frames::{MethodKind, ResolvedFrame, StackWalk};
use crate::stack::innermost_frames;
use crate::stack::innermost_frames::WalkedFrames;
use crate::stack::slot_runs::count_deferrable;
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
            let inner = count_deferrable(own);
            let callers = {
                let registry = agent.core.registry();
                caller_frames::match_all_callers(&registry, state, frames, inner)?
            };
            locate_entries(agent, state, frames, &callers.deferred)?;
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
