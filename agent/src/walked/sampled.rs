//! An allocation that the VM tells of: its whole stack, made into a number.
//!
//! Two stacks of a thread that follow each other mostly differ near their tops only. So the thread keeps
//! the last one with the context of each frame, and goes on from the outermost frame that differs.
use std::cell::RefCell;
use std::collections::HashMap;

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_callgraph::{ContextId, MethodId, SiteId};
use lucce_tracelog::{EventTypeId, RunId};
use lucce_vm::{Env, Failed, FrameInfo, clock};

use crate::core::inside::Inside;
use crate::counting::Counting;
use crate::events::samples;
use crate::memory::counter::count;
use crate::stack::frames::{MethodKind, Walk};
use crate::stack::verify;
use crate::thread::cells;
use crate::thread::lane::Lane;
use crate::walked::often;

/// `JVMTI_ERROR_THREAD_NOT_ALIVE`
const NOT_ALIVE: i32 = 15;
/// Frames beyond it make an event count as lost.
const MOST_FRAMES: usize = 1 << 20;
/// More places than that and all are forgotten.
const MOST_PLACES: usize = 1 << 16;

/// The current thread has made an object of `size` bytes, and the VM took it as a sample.
pub fn allocated(
    counting: &'static Counting,
    env: Env,
    thread: jobject,
    (class, size): (jclass, u64),
) {
    let recorded = with_local(counting, |local| local.record(env, thread, (class, size)));
    if recorded.flatten().is_none() {
        count(&counting.counts.events_lost);
    }
}

thread_local! {
    /// Not in the thread's own block, in which a library that is loaded late has little room.
    static LOCAL: RefCell<Option<Box<Local>>> = const { RefCell::new(None) };
}

/// What the current thread keeps. `None`: it is being used, by an event that is being recorded, or the
/// thread ends.
pub fn with_local<T>(counting: &'static Counting, body: impl FnOnce(&mut Local) -> T) -> Option<T> {
    let with = LOCAL.try_with(|local| {
        local.try_borrow_mut().ok().map(|mut local| {
            // What an earlier agent has left means nothing.
            if local
                .as_ref()
                .is_some_and(|local| local.run != counting.run)
            {
                *local = None;
            }
            body(local.get_or_insert_with(|| Box::new(Local::new(counting))))
        })
    });
    with.ok().flatten()
}

/// What a native thread keeps. Virtual threads that it carries have one lane together.
pub struct Local {
    /// That of its agent, which may have left: it is used only when that is the one that works.
    run: RunId,
    counting: &'static Counting,
    frames: Vec<FrameInfo>,
    /// The last stack, outermost frame first.
    last: Vec<Known>,
    places: HashMap<(usize, i64), Standing>,
    lane: Option<Lane>,
    virtual_lane: Option<Lane>,
    until_verified: u32,
    walked: Walked,
}

/// How often the VM is asked for the stack.
#[derive(Clone, Copy)]
enum Walked {
    EachTime,
    /// Several things are asked at one moment.
    Once {
        done: bool,
    },
}

/// From now on, until this is called with `false`, the current thread stands where it stands: its stack is walked once.
pub fn walk_once(counting: &'static Counting, is_so: bool) {
    let walked = match is_so {
        true => Walked::Once { done: false },
        false => Walked::EachTime,
    };
    // Where an event is being recorded, this one comes of what the agent does, and is not counted.
    let _ = with_local(counting, |local| local.walked = walked);
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
enum Standing {
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
    fn new(counting: &'static Counting) -> Local {
        Local {
            run: counting.run,
            counting,
            frames: Vec::new(),
            last: Vec::new(),
            places: HashMap::new(),
            lane: None,
            virtual_lane: None,
            until_verified: 0,
            walked: Walked::EachTime,
        }
    }

    /// `None`: it is lost.
    fn record(&mut self, env: Env, thread: jobject, (class, size): (jclass, u64)) -> Option<()> {
        // Without a Java frame it has no context: the VM's own.
        let Some(at) = self.here(env, None)? else {
            return Some(());
        };
        let allocated = self.counting.jvmti.signature(class)?;
        let site = self
            .counting
            .extra_allocation(at.place.method.0, at.place.line, &allocated)?;
        let number = self
            .counting
            .encoder
            .event(at.context, SiteId(site), at.place.method);
        if number == ContextId::UNKNOWN {
            return None;
        }
        self.add(env, thread, number, size);
        if self.must_verify() {
            verify::compare(self.counting, env, number, 0);
        }
        Some(())
    }

    /// Where the current thread is; its innermost frame stands at `location`, if that is not where the VM
    /// says. `None`: it is lost; without any: no frame is shown.
    fn here(&mut self, env: Env, location: Option<i64>) -> Option<Option<At>> {
        let is_known = location.is_none() && matches!(self.walked, Walked::Once { done: true });
        if !is_known {
            self.walk(env, location)?;
        }
        Some(self.last.last().and_then(|known| known.at))
    }

    fn walk(&mut self, env: Env, location: Option<i64>) -> Option<()> {
        let since = clock::nano_time();
        self.stack()?;
        if let (Some(top), Some(location)) = (self.frames.first_mut(), location) {
            top.location = location;
        }
        self.contexts(env)?;
        often::walked(self.counting, self.frames.len(), since);
        if let Walked::Once { done } = &mut self.walked {
            *done = location.is_none();
        }
        Some(())
    }

    /// The number of an event that happens where the current thread is. As [`Local::here`].
    pub fn number(&mut self, env: Env, location: Option<i64>) -> Option<Option<ContextId>> {
        let Some(at) = self.here(env, location)? else {
            return Some(None);
        };
        let Site { method, site, .. } = at.place;
        let number = self.counting.encoder.event(at.context, site, method);
        if number == ContextId::UNKNOWN {
            return None;
        }
        if self.must_verify() {
            let frames = Walk::new(self.counting, env, 256).standing_at(location);
            verify::compare_with(self.counting, frames, number, 0);
        }
        Some(Some(number))
    }

    /// One more event of a kind that has types.
    pub fn count(
        &mut self,
        env: Env,
        thread: jobject,
        (number, event): (ContextId, EventTypeId),
        value: u64,
    ) -> Option<()> {
        let counting = self.counting;
        let lane = self.lane(env, thread);
        cells::event_cell(counting, lane, number, event)?.count(value);
        Some(())
    }

    /// The VM's frames, innermost first.
    fn stack(&mut self) -> Option<()> {
        let empty = FrameInfo {
            method: std::ptr::null_mut(),
            location: 0,
        };
        self.frames.resize(self.frames.capacity().max(128), empty);
        loop {
            let found = match self.counting.jvmti.stack(0, &mut self.frames) {
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
    fn contexts(&mut self, env: Env) -> Option<()> {
        let same = |(known, frame): &(&Known, &FrameInfo)| {
            known.method == frame.method as usize && known.location == frame.location
        };
        let frames = self.frames.iter().rev();
        let common = self.last.iter().zip(frames).take_while(same).count();
        self.last.truncate(common);
        let mut at = self.last.last().and_then(|known| known.at);
        let frames: Vec<FrameInfo> = self.frames.iter().rev().skip(common).copied().collect();
        for frame in frames {
            match self.place(env, frame) {
                Standing::NotShown => {}
                Standing::Unknown => return None,
                Standing::Shown(place) => {
                    let context = match at {
                        None => self.counting.encoder.root(place.method),
                        Some(caller) => self.counting.encoder.step(
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

    fn place(&mut self, env: Env, frame: FrameInfo) -> Standing {
        let key = (frame.method as usize, frame.location);
        if let Some(known) = self.places.get(&key) {
            return *known;
        }
        let method = self
            .counting
            .frames
            .resolve(self.counting, env, frame.method);
        let place = match method.kind {
            MethodKind::Hidden | MethodKind::Helper => Standing::NotShown,
            MethodKind::Unknown => Standing::Unknown,
            MethodKind::Known(id) => {
                let line = method.line(frame.location);
                match self.counting.extra_site(id, line) {
                    0 => Standing::Unknown,
                    site => Standing::Shown(Site {
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
    fn add(&mut self, env: Env, thread: jobject, number: ContextId, size: u64) {
        let counting = self.counting;
        let interval = counting.sampled_bytes().unwrap_or(0);
        let lane = self.lane(env, thread);
        samples::add(counting, lane, number, (size, interval));
    }

    fn lane(&mut self, env: Env, thread: jobject) -> &mut Lane {
        let is_virtual = env.is_virtual_thread(thread);
        let lane = match is_virtual {
            false => &mut self.lane,
            true => &mut self.virtual_lane,
        };
        lane.get_or_insert_with(|| {
            let name = match is_virtual {
                false => self.counting.jvmti.thread_name(env).unwrap_or_default(),
                true => "virtual threads".into(),
            };
            cells::take(self.counting, env, name, (is_virtual, ContextId::UNKNOWN))
        })
    }

    /// One more event: whether it is the one to compare, of so many.
    fn must_verify(&mut self) -> bool {
        self.until_verified = self.until_verified.saturating_sub(1);
        let must = self.counting.options.verify > 0 && self.until_verified == 0;
        if must {
            self.until_verified = self.counting.options.verify;
        }
        must
    }
}

impl Drop for Local {
    /// The thread ends: another one of its kind goes on with its lanes.
    fn drop(&mut self) {
        let lanes = [self.lane.take(), self.virtual_lane.take()];
        let inside = Inside::enter();
        if !inside.is_of(self.run) {
            return;
        }
        for lane in lanes.into_iter().flatten() {
            cells::give(self.counting, lane);
        }
    }
}
