//! An allocation that the VM tells of: its whole stack, made into a number.
//!
//! Two stacks of a thread that follow each other mostly differ near their tops only. So the thread keeps
//! the last one with the context of each frame, and goes on from the outermost frame that differs.
#![allow(unsafe_code, reason = "a callback of the JVM")]

use std::cell::RefCell;
use std::collections::HashMap;

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::{ContextId, MethodId, SiteId};
use lucce_tracelog::EventTypeId;

use crate::agent::{Agent, count};
use crate::frames::{Kind, Walk};
use crate::gate;
use crate::hook::{extra_allocation, extra_site};
use crate::jvm::{Env, Failed, FrameInfo};
use crate::lane::Lane;
use crate::natives::guard_event;
use crate::{cells, samples, verify};

/// `JVMTI_ERROR_THREAD_NOT_ALIVE`
const NOT_ALIVE: i32 = 15;
/// Frames beyond it make an event count as lost.
const MOST_FRAMES: usize = 1 << 20;
/// More places than that and all are forgotten.
const MOST_PLACES: usize = 1 << 16;

/// # Safety
/// Called by the VM.
pub unsafe extern "system" fn callback(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    class: jclass,
    size: i64,
) {
    let size = u64::try_from(size).unwrap_or(0);
    guard_event(gate::LEAK, |agent| {
        if let Some(leaks) = &agent.leaks {
            leaks.sampled(agent, agent.env(env), object, class, size);
        }
    });
    guard_event(gate::ALLOC, |agent| {
        let env = agent.env(env);
        let recorded = with_local(|local| local.record(agent, env, thread, (class, size)));
        if recorded.flatten().is_none() {
            count(&agent.counts.events_lost);
        }
    });
}

thread_local! {
    /// Not in the thread's own block, in which a library that is loaded late has little room.
    static LOCAL: RefCell<Option<Box<Local>>> = const { RefCell::new(None) };
}

/// What the current thread keeps. `None`: it is being used, by an event that is being recorded, or the
/// thread ends.
pub fn with_local<T>(body: impl FnOnce(&mut Local) -> T) -> Option<T> {
    let with = LOCAL.try_with(|local| {
        local
            .try_borrow_mut()
            .ok()
            .map(|mut local| body(local.get_or_insert_default()))
    });
    with.ok().flatten()
}

/// What a native thread keeps. Virtual threads that it carries have one lane together.
#[derive(Default)]
pub struct Local {
    frames: Vec<FrameInfo>,
    /// The last stack, outermost frame first.
    last: Vec<Known>,
    places: HashMap<(usize, i64), Place>,
    lane: Option<Lane>,
    virtual_lane: Option<Lane>,
    until_verified: u32,
}

/// A frame of the last stack.
#[derive(Clone, Copy)]
struct Known {
    method: usize,
    location: i64,
    /// The innermost shown frame up to here.
    at: Option<At>,
}

/// A shown frame: its context, and where in it its callee, or the event, is.
#[derive(Clone, Copy)]
struct At {
    context: ContextId,
    place: Site,
}

#[derive(Clone, Copy)]
enum Place {
    NotShown,
    Shown(Site),
    /// The VM does not say enough.
    Unknown,
}

#[derive(Clone, Copy)]
struct Site {
    method: MethodId,
    site: SiteId,
    line: i32,
}

impl Local {
    /// `None`: it is lost.
    fn record(
        &mut self,
        agent: &Agent,
        env: Env,
        thread: jobject,
        (class, size): (jclass, u64),
    ) -> Option<()> {
        // Without a Java frame it has no context: the VM's own.
        let Some(at) = self.here(agent, env, None)? else {
            return Some(());
        };
        let allocated = agent.jvmti.signature(class)?;
        let site = extra_allocation(agent, at.place.method.0, at.place.line, &allocated)?;
        let number = agent
            .encoder
            .event(at.context, SiteId(site), at.place.method);
        if number == ContextId::UNKNOWN {
            return None;
        }
        self.add(agent, env, thread, number, size);
        if self.must_verify(agent) {
            verify::compare(agent, env, number, 0);
        }
        Some(())
    }

    /// Where the current thread is; its innermost frame stands at `location`, if that is not where the VM
    /// says. `None`: it is lost; without any: no frame is shown.
    fn here(&mut self, agent: &Agent, env: Env, location: Option<i64>) -> Option<Option<At>> {
        self.stack(agent)?;
        if let (Some(top), Some(location)) = (self.frames.first_mut(), location) {
            top.location = location;
        }
        self.contexts(agent, env)?;
        Some(self.last.last().and_then(|known| known.at))
    }

    /// The number of an event that happens where the current thread is. As [`Local::here`].
    pub fn number(
        &mut self,
        agent: &Agent,
        env: Env,
        location: Option<i64>,
    ) -> Option<Option<ContextId>> {
        let Some(at) = self.here(agent, env, location)? else {
            return Some(None);
        };
        let Site { method, site, .. } = at.place;
        let number = agent.encoder.event(at.context, site, method);
        if number == ContextId::UNKNOWN {
            return None;
        }
        if self.must_verify(agent) {
            let frames = Walk::new(agent, env, 256).standing_at(location);
            verify::compare_with(agent, frames, number, 0);
        }
        Some(Some(number))
    }

    /// One more event of a kind that has types.
    pub fn count(
        &mut self,
        agent: &Agent,
        env: Env,
        thread: jobject,
        (number, event): (ContextId, EventTypeId),
        value: u64,
    ) -> Option<()> {
        let lane = self.lane(agent, env, thread);
        cells::event_cell(agent, lane, number, event)?.count(value);
        Some(())
    }

    /// The VM's frames, innermost first.
    fn stack(&mut self, agent: &Agent) -> Option<()> {
        let empty = FrameInfo {
            method: std::ptr::null_mut(),
            location: 0,
        };
        self.frames.resize(self.frames.capacity().max(128), empty);
        loop {
            let found = match agent.jvmti.stack(0, &mut self.frames) {
                Ok(found) => found,
                // It has left its last frame, and waits for its own monitor to end.
                Err(Failed(code)) if code == NOT_ALIVE => 0,
                Err(_) => return None,
            };
            let room = self.frames.len();
            if found < room {
                self.frames.truncate(found);
                return Some(());
            }
            if room >= MOST_FRAMES {
                return None;
            }
            self.frames.resize(room * 2, empty);
        }
    }

    /// Brings `last` to what `frames` says.
    fn contexts(&mut self, agent: &Agent, env: Env) -> Option<()> {
        let same = |(known, frame): &(&Known, &FrameInfo)| {
            known.method == frame.method as usize && known.location == frame.location
        };
        let frames = self.frames.iter().rev();
        let common = self.last.iter().zip(frames).take_while(same).count();
        self.last.truncate(common);
        let mut at = self.last.last().and_then(|known| known.at);
        let frames: Vec<FrameInfo> = self.frames.iter().rev().skip(common).copied().collect();
        for frame in frames {
            match self.place(agent, env, frame) {
                Place::NotShown => {}
                Place::Unknown => return None,
                Place::Shown(place) => {
                    let context = match at {
                        None => agent.encoder.root(place.method),
                        Some(caller) => agent.encoder.step(
                            caller.context,
                            caller.place.site,
                            caller.place.method,
                            place.method,
                        ),
                    };
                    if context == ContextId::UNKNOWN {
                        return None;
                    }
                    at = Some(At { context, place });
                }
            }
            self.last.push(Known {
                method: frame.method as usize,
                location: frame.location,
                at,
            });
        }
        Some(())
    }

    fn place(&mut self, agent: &Agent, env: Env, frame: FrameInfo) -> Place {
        let key = (frame.method as usize, frame.location);
        if let Some(known) = self.places.get(&key) {
            return *known;
        }
        let method = agent.frames.resolve(agent, env, frame.method);
        let place = match method.kind {
            Kind::Hidden | Kind::Helper => Place::NotShown,
            Kind::Unknown => Place::Unknown,
            Kind::Known(id) => {
                let line = method.line(frame.location);
                match extra_site(agent, id, line) {
                    0 => Place::Unknown,
                    site => Place::Shown(Site {
                        method: MethodId(id),
                        site: SiteId(site),
                        line,
                    }),
                }
            }
        };
        if self.places.len() >= MOST_PLACES {
            self.places.clear();
        }
        self.places.insert(key, place);
        place
    }

    /// For a context's number: it stands for the site, too.
    fn add(&mut self, agent: &Agent, env: Env, thread: jobject, number: ContextId, size: u64) {
        let lane = self.lane(agent, env, thread);
        let interval = super::interval(agent).unwrap_or(0);
        samples::add(agent, lane, number, (size, interval));
    }

    fn lane(&mut self, agent: &Agent, env: Env, thread: jobject) -> &mut Lane {
        let is_virtual = env.is_virtual_thread(thread);
        let lane = match is_virtual {
            false => &mut self.lane,
            true => &mut self.virtual_lane,
        };
        lane.get_or_insert_with(|| {
            let name = match is_virtual {
                false => agent.jvmti.thread_name(env).unwrap_or_default(),
                true => "virtual threads".into(),
            };
            cells::take(agent, env, name, (is_virtual, ContextId::UNKNOWN))
        })
    }

    /// One more event: whether it is the one to compare, of so many.
    fn must_verify(&mut self, agent: &Agent) -> bool {
        self.until_verified = self.until_verified.saturating_sub(1);
        let must = agent.options.verify > 0 && self.until_verified == 0;
        if must {
            self.until_verified = agent.options.verify;
        }
        must
    }
}

impl Drop for Local {
    /// The thread ends: another one of its kind goes on with its lanes.
    fn drop(&mut self) {
        let Some(agent) = Agent::get() else { return };
        let lanes = [self.lane.take(), self.virtual_lane.take()];
        for lane in lanes.into_iter().flatten() {
            cells::give(agent, lane);
        }
    }
}
