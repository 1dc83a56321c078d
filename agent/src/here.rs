//! Where the current thread is, asked by native code: a callback of the VM or a native method.
//!
//! The thread's pointer may be stale then. So the VM is asked for the frames, as for an upcall, and
//! the slots are counted. The context of the innermost frame with a slot is worked out as the helper
//! class does it; from there one step for each frame above. No slot gets another site, so nothing has
//! to be put back: what is written are memos, and sites of slots that have none.

use lucce_callgraph::{ContextId, MethodId, SiteId};

use crate::acting;
use crate::agent::Agent;
use crate::frames::{Frame, Walk};
use crate::jvm::Env;
use crate::locals;
use crate::natives::{child, context_id};
use crate::near;
use crate::options::Tracking;
use crate::slots::{LOST, Slot};
use crate::tasks;
use crate::thread::ThreadState;
use crate::upcall::{self, Callers};

/// A place where an event may happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Here {
    /// The innermost frame's context as its thread's events have it: a number, or with `tracking=cct` a node of
    /// the thread's tree.
    pub context: u64,
    /// The method and line at which that frame is.
    pub site: SiteId,
    pub method: MethodId,
}

impl Here {
    /// The number for an event here; unknown if no numbers are left.
    pub fn number(self, agent: &Agent, state: &ThreadState) -> ContextId {
        let frame = context_id(agent, state, self.context);
        match frame {
            ContextId::UNKNOWN => frame,
            _ => agent.encoder.event(frame, self.site, self.method),
        }
    }
}

/// Where the current thread is; the innermost `own` frames that the VM shows do not count. `None`: there
/// is no frame, or nobody knows who called one. `state` must be the current thread's.
pub fn current(agent: &Agent, env: Env, state: &ThreadState, own: usize) -> Option<Here> {
    asked(agent, env, state, (own, None)).here
}

/// Where an object has been made.
pub enum Made {
    /// By the helper class, for the agent itself.
    Ours,
    Here(Here),
    /// As `current`.
    Unknown,
}

/// Where the current thread has just made an object of which the VM tells.
pub fn made(agent: &Agent, env: Env, state: &ThreadState) -> Made {
    match asked(agent, env, state, (0, None)) {
        Asked {
            in_helper: true, ..
        } => Made::Ours,
        Asked {
            here: Some(here), ..
        } => Made::Here(here),
        Asked { here: None, .. } => Made::Unknown,
    }
}

struct Asked {
    here: Option<Here>,
    /// The innermost frame is the helper's.
    in_helper: bool,
}

/// The same, if the innermost frame stands at `location`, whatever the VM says.
pub fn standing_at(
    agent: &Agent,
    env: Env,
    state: &ThreadState,
    location: Option<i64>,
) -> Option<Here> {
    asked(agent, env, state, (0, location)).here
}

/// First for the innermost frames alone, then for all.
fn asked(
    agent: &Agent,
    env: Env,
    state: &ThreadState,
    (own, location): (usize, Option<i64>),
) -> Asked {
    let mut walk = Walk::new(agent, env, own + near::FRAMES).standing_at(location);
    let top: Vec<Frame> = walk.by_ref().take(own + near::FRAMES).collect();
    Asked {
        in_helper: walk.is_in_helper(),
        here: found(agent, env, state, (own, top, walk)),
    }
}

fn found(
    agent: &Agent,
    env: Env,
    state: &ThreadState,
    (own, mut frames, walk): (usize, Vec<Frame>, Walk),
) -> Option<Here> {
    let near = pointer(agent, env)
        .and_then(|pointer| near::callers(agent, state, frames.get(own..)?, pointer));
    let callers = match near {
        Some(callers) => callers,
        None => {
            frames.extend(walk.rest()?);
            upcall::callers(&agent.book(), state, frames.get(own..)?)?
        }
    };
    of(agent, state, &callers)
}

/// The current thread's, stale or not.
fn pointer(agent: &Agent, env: Env) -> Option<Slot> {
    let fields = agent.fields.get()?;
    let thread = agent.jvmti.current_thread()?;
    let field = fields.pointer.id();
    let pointer = acting::holder(agent, env, thread, |thread| env.get_long(thread, field));
    env.forget(thread);
    usize::try_from(pointer).ok().map(Slot::at)
}

fn of(agent: &Agent, state: &ThreadState, callers: &Callers) -> Option<Here> {
    if !callers.whole {
        return None;
    }
    for &(slot, stands) in &callers.bare {
        slot.write(known_site(stands.site(agent))?);
    }
    let mut here = innermost(agent, state, callers)?;
    for &stands in callers
        .missing
        .iter()
        .skip(usize::from(callers.innermost.is_none()))
    {
        here = Here {
            context: step(agent, state, here, stands.method)?,
            site: known_site(stands.site(agent))?,
            method: stands.method,
        };
    }
    Some(here)
}

/// The innermost frame with a slot, or without any such frame the thread's first one.
fn innermost(agent: &Agent, state: &ThreadState, callers: &Callers) -> Option<Here> {
    let slot = callers.slot.below();
    let (stands, context) = match callers.innermost {
        Some(stands) => (stands, context(agent, state, slot, stands.method)?),
        None => {
            let &stands = callers.missing.first()?;
            (stands, first(agent, state, stands.method)?)
        }
    };
    let known = callers.innermost.map_or(SiteId(0), |_| slot.site());
    let site = upcall::wanted_site(agent, stands, known).unwrap_or(known);
    Some(Here {
        context,
        site: known_site(site)?,
        method: stands.method,
    })
}

/// The context of the frame of `method` with slot `slot`, from the nearest one that is known: what
/// the helper class does in `walk`. All slots below must be those of frames that are calling.
pub fn context(agent: &Agent, state: &ThreadState, slot: Slot, method: MethodId) -> Option<u64> {
    if let Some(paper) = &agent.paper {
        return locals::context(agent, paper, slot, method).map(|number| number.0);
    }
    let methods = &agent.method_of_site;
    let (mut at, mut callee) = (slot, method);
    let mut context = loop {
        let below = at.below();
        let (known, context) = below.memo();
        if known == callee {
            break context.0;
        }
        match below.site() {
            SiteId::ENTRY => {
                let context = first(agent, state, callee)?;
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
        context = step(agent, state, here, callee)?;
        at.remember(callee, ContextId(context));
        at = at.above();
    }
    Some(context)
}

fn step(agent: &Agent, state: &ThreadState, from: Here, callee: MethodId) -> Option<u64> {
    match agent.options.tracking {
        Tracking::Lazy | Tracking::Paper => {
            let caller = ContextId(from.context);
            number(agent.encoder.step(caller, from.site, from.method, callee))
        }
        Tracking::Cct => child(agent, state, from.context, from.site, callee),
    }
}

/// The context of a thread's first frame.
fn first(agent: &Agent, state: &ThreadState, method: MethodId) -> Option<u64> {
    match agent.options.tracking {
        Tracking::Lazy | Tracking::Paper => number(tasks::first(agent, state, method)),
        Tracking::Cct => child(agent, state, 0, SiteId::ENTRY, method),
    }
}

fn number(id: ContextId) -> Option<u64> {
    (id != ContextId::UNKNOWN).then_some(id.0)
}

fn known_site(site: SiteId) -> Option<SiteId> {
    (site != SiteId(0)).then_some(site)
}

fn method(id: u32) -> Option<MethodId> {
    (id != 0).then_some(MethodId(id))
}
