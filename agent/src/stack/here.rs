//! Where the current thread is, asked by native code: a callback of the VM or a native method.
//!
//! The thread's pointer may be stale then. So the VM is asked for the frames, as for an upcall, and
//! the slots are counted. The context of the innermost frame with a slot is worked out as the helper
//! class does it; from there one step for each frame above. No slot gets another site, so nothing has
//! to be put back: what is written are memos, and sites of slots that have none.

use lucce_callgraph::{ContextId, MethodId, SiteId};

use crate::core::Here;
use crate::memory::slots::{LOST, Slot};
use crate::stack::frames::{Frame, MethodKind, Walk};
use crate::stack::innermost;
use crate::stack::upcall;
use crate::stack::upcall::Callers;
use crate::stack::{Stack, contexts};
use crate::thread::ThreadState;
use crate::thread::carrier;
use lucce_vm::Env;

/// Where the current thread is; the innermost `own` frames that the VM shows do not count. `None`: there
/// is no frame, or the caller of one is not known. `state` must be the current thread's.
pub fn current(stack: &Stack, env: Env, state: &ThreadState, own: usize) -> Option<Here> {
    asked(stack, env, state, (own, None)).here
}

/// Where an object has been made.
pub enum Made {
    /// By the helper class, for the agent itself.
    Ours,
    Here(Here),
    /// By the VM for itself: no frame is shown.
    Nowhere,
    /// The caller of a frame is not known.
    Unknown,
}

/// Where the current thread has just made an object of which the VM tells.
pub fn made(stack: &Stack, env: Env, state: &ThreadState) -> Made {
    match asked(stack, env, state, (0, None)) {
        Asked {
            in_helper: true, ..
        } => Made::Ours,
        Asked {
            here: Some(here), ..
        } => Made::Here(here),
        Asked { is_empty: true, .. } => Made::Nowhere,
        Asked { here: None, .. } => Made::Unknown,
    }
}

struct Asked {
    here: Option<Here>,
    /// The innermost frame is the helper's.
    in_helper: bool,
    /// No trace shows any of the frames.
    is_empty: bool,
}

/// As `current`, where the innermost frame stands at `location`, even if the VM says another place.
pub fn standing_at(
    stack: &Stack,
    env: Env,
    state: &ThreadState,
    location: Option<i64>,
) -> Option<Here> {
    asked(stack, env, state, (0, location)).here
}

/// First for the innermost frames alone, then for all. Again, if a method was resolved meanwhile: its code may have been replaced
/// behind the walk.
fn asked(stack: &Stack, env: Env, state: &ThreadState, place: (usize, Option<i64>)) -> Asked {
    const MOST_WALKS: usize = 8;
    let mut walks = 1;
    loop {
        let before = stack.frames.resolutions();
        let asked = asked_once(stack, env, state, place);
        if stack.frames.resolutions() == before || walks == MOST_WALKS {
            return asked;
        }
        walks += 1;
    }
}

fn asked_once(
    stack: &Stack,
    env: Env,
    state: &ThreadState,
    (own, location): (usize, Option<i64>),
) -> Asked {
    let mut walk = Walk::new(stack, env, own + innermost::FEW).standing_at(location);
    let mut frames = Vec::new();
    let here = found(stack, env, state, (&mut frames, own, &mut walk));
    let is_shown = |frame: &Frame| frame.method.kind != MethodKind::Hidden;
    let has_all = frames.len() < own + innermost::FRAMES;
    Asked {
        in_helper: walk.is_in_helper(),
        is_empty: has_all && !frames.iter().skip(own).any(is_shown),
        here,
    }
}

/// `frames`: all that `walk` was asked for.
fn found(
    stack: &Stack,
    env: Env,
    state: &ThreadState,
    (frames, own, walk): (&mut Vec<Frame>, usize, &mut Walk<'_>),
) -> Option<Here> {
    let asked = (&mut *frames, own, &mut *walk);
    let near =
        pointer(stack, env).and_then(|pointer| innermost::callers(stack, state, asked, pointer));
    let callers = match near {
        Some(callers) => callers,
        None => {
            frames.extend(walk.rest()?);
            upcall::all_callers(&stack.book(), state, frames.get(own..)?)?
        }
    };
    locate(stack, state, &callers)
}

/// The current thread's, stale or not.
fn pointer(stack: &Stack, env: Env) -> Option<Slot> {
    let fields = stack.fields.get()?;
    let thread = stack.jvmti.current_thread()?;
    let field = fields.pointer.id();
    let pointer = carrier::holder(stack, env, thread, |thread| env.get_long(thread, field));
    env.forget(thread);
    usize::try_from(pointer).ok().map(Slot::at)
}

/// The place of the innermost frame by what is known of all.
pub fn locate(stack: &Stack, state: &ThreadState, callers: &Callers) -> Option<Here> {
    if !callers.whole {
        return None;
    }
    for &(slot, stands) in &callers.bare {
        slot.write(known_site(stands.site(stack))?);
    }
    let mut here = innermost(stack, state, callers)?;
    for &stands in callers
        .missing
        .iter()
        .skip(usize::from(callers.innermost.is_none()))
    {
        here = Here {
            context: contexts::step(stack, state, here, stands.method)?,
            site: known_site(stands.site(stack))?,
            method: stands.method,
        };
    }
    Some(here)
}

/// The innermost frame with a slot, or without any such frame the thread's first one.
fn innermost(stack: &Stack, state: &ThreadState, callers: &Callers) -> Option<Here> {
    let slot = callers.slot.below();
    let (stands, known) = match callers.innermost {
        Some(stands) => (stands, slot.site()),
        None => (*callers.missing.first()?, SiteId(0)),
    };
    let site = upcall::wanted_site(stack, stands, known).unwrap_or(known);
    let site = known_site(site)?;
    // The frame may run older code, whose site it has, and which has another id.
    let method = method(stack.method_of_site.get(site.0))?;
    let context = match callers.innermost {
        Some(_) => context(stack, state, slot, method)?,
        None => contexts::first(stack, state, method)?,
    };
    Some(Here {
        context,
        site,
        method,
    })
}

/// The context of the frame of `method` with slot `slot`, from the nearest one that is known: what
/// the helper class does in `walk`. All slots below must be those of frames that are calling.
pub fn context(stack: &Stack, state: &ThreadState, slot: Slot, method: MethodId) -> Option<u64> {
    if let Some(context) = stack.comparison.in_slots(stack, slot, method) {
        return context;
    }
    let methods = &stack.method_of_site;
    let (mut at, mut callee) = (slot, method);
    let mut context = loop {
        let below = at.below();
        let (known, context) = below.memo();
        if known == callee {
            break context.0;
        }
        match below.site() {
            SiteId::ENTRY => {
                let context = contexts::first(stack, state, callee)?;
                below.remember(callee, ContextId(context));
                break context;
            }
            SiteId(LOST) => return None,
            site => callee = self::method(methods.get(site.0))?,
        }
        at = below;
    };
    while at != slot {
        let site = at.site();
        let caller = self::method(methods.get(site.0))?;
        let callee = match at.above() == slot {
            true => method,
            false => self::method(methods.get(at.above().site().0))?,
        };
        let here = Here {
            context,
            site,
            method: caller,
        };
        context = contexts::step(stack, state, here, callee)?;
        at.remember(callee, ContextId(context));
        at = at.above();
    }
    Some(context)
}

fn known_site(site: SiteId) -> Option<SiteId> {
    (site != SiteId(0)).then_some(site)
}

fn method(id: u32) -> Option<MethodId> {
    (id != 0).then_some(MethodId(id))
}
