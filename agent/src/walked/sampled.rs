//! An allocation that the VM tells of: its whole stack, made into a number.
//!
//! Two stacks of a thread that follow each other mostly differ near their tops only. So the thread keeps
//! the last one with the context of each frame, and goes on from the outermost frame that differs.
use std::cell::RefCell;
use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_callgraph::{ContextId, MethodId, SiteId};
use lucce_tracelog::{EventTypeId, RunId};
use lucce_vm::{Env, Failed, FrameInfo};

use crate::book::names::external;
use crate::core::VerifyCountdown;
use crate::core::inside::Inside;
use crate::counting::Counting;
use crate::events::samples;
use crate::memory::counter::count;
use crate::stack::frames::{MethodKind, Resolved, Walk, can_watch};
use crate::stack::throwable_trace::{TraceLine, match_lines, read_trace};
use crate::stack::{scopes, verify};
use crate::thread::cells;
use crate::thread::lane::{Lane, kind};
use crate::thread::tags::TagSet;
use crate::walked::kept::{self, Scope};
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
    places: HashMap<(usize, i64), Place>,
    /// Whose it is: virtual threads', or its own; and what they count under.
    lanes: Vec<((bool, TagSet), Lane)>,
    /// The scopes that the last stack was seen with.
    scopes: Vec<Scope>,
    countdown: Arc<VerifyCountdown>,
    walked: Walked,
    /// It has been told of an allocation.
    is_told: bool,
}

/// Where in the current thread something happens.
#[derive(Clone, Copy, Default)]
pub struct Spot {
    /// So many of the innermost frames ask, and are none of the trace.
    pub own: usize,
    /// Where the innermost frame stands, if that is not where the VM says.
    pub location: Option<i64>,
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
struct Known {
    method: usize,
    location: i64,
    place: Place,
    /// The innermost shown frame up to here.
    at: Option<At>,
}

/// Where a frame stands, which holds as long as the method is current.
#[derive(Clone)]
struct Place {
    method: Arc<Resolved>,
    standing: Standing,
}

/// A shown frame: its context, and where in it its callee, or the event, is.
#[derive(Clone, Copy)]
struct At {
    context: ContextId,
    place: Site,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    NotShown,
    Shown(Site),
    /// The VM does not say enough.
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq)]
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
            lanes: Vec::new(),
            scopes: Vec::new(),
            countdown: counting.verify.begin_shared(),
            walked: Walked::EachTime,
            is_told: false,
        }
    }

    /// `None`: it is lost.
    fn record(&mut self, env: Env, thread: jobject, (class, size): (jclass, u64)) -> Option<()> {
        let counting = self.counting;
        if counting.coverage.is_leaving(env, size) {
            return Some(());
        }
        let is_first = !mem::replace(&mut self.is_told, true);
        if is_first && counting.sampled_bytes().is_none() {
            counting.coverage.first_told(env, size);
        }
        // Without a Java frame it has no context: the VM's own.
        let Some(at) = self.here((env, thread), Spot::default())? else {
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
        self.add(env, thread, number, size)?;
        if self.must_verify() {
            verify::compare(self.counting, env, number, 0);
        }
        Some(())
    }

    /// Where the current thread is. `None`: it is lost; without any: no frame is shown.
    fn here(&mut self, whose: (Env, jobject), spot: Spot) -> Option<Option<At>> {
        let is_plain = spot.own == 0 && spot.location.is_none();
        let is_known = is_plain && matches!(self.walked, Walked::Once { done: true });
        if !is_known {
            self.walk(whose, spot)?;
            if let Walked::Once { done } = &mut self.walked {
                *done = is_plain;
            }
        }
        Some(self.last.last().and_then(|known| known.at))
    }

    fn walk(&mut self, (env, thread): (Env, jobject), spot: Spot) -> Option<()> {
        let since = often::begin();
        self.go_on_in(kept::scopes(self.counting, thread));
        // What a method is may be found out after frames were asked for, and after its code was replaced. Then the frames
        // may be those of the old code, and are asked for again.
        const MOST_WALKS: usize = 16;
        for _ in 0..MOST_WALKS {
            let before = self.counting.frames.resolutions();
            self.stack(spot.own)?;
            if let (Some(top), Some(location)) = (self.frames.first_mut(), spot.location) {
                top.location = location;
            }
            let resolved = self.resolve_contexts(env, spot);
            if self.counting.frames.resolutions() == before {
                often::walked(self.counting, self.frames.len(), since);
                return resolved;
            }
        }
        None
    }

    /// Frames whose callers are others than in the last stack are looked at anew.
    fn go_on_in(&mut self, scopes: Vec<Scope>) {
        let same = self.scopes.iter().zip(&scopes);
        let same = same.take_while(|(known, now)| known == now).count();
        let others = self
            .scopes
            .iter()
            .skip(same)
            .chain(scopes.iter().skip(same));
        if let Some(depth) = others.map(|scope| scope.depth).min() {
            self.last.truncate(depth.saturating_sub(1));
            self.scopes = scopes;
        }
    }

    /// The number of what happens there. As [`Local::here`].
    pub fn number(&mut self, whose: (Env, jobject), spot: Spot) -> Option<Option<ContextId>> {
        let Some(at) = self.here(whose, spot)? else {
            return Some(None);
        };
        let Site { method, site, .. } = at.place;
        let number = self.counting.encoder.event(at.context, site, method);
        if number == ContextId::UNKNOWN {
            return None;
        }
        if self.must_verify() {
            let frames = Walk::new(self.counting, whose.0, 256);
            let frames = frames.standing_at(spot.location).below(spot.own);
            verify::compare_with(self.counting, frames, number, 0);
        }
        Some(Some(number))
    }

    /// How many frames the current thread has, but the innermost `own`.
    pub fn depth(&mut self, own: usize) -> Option<usize> {
        self.stack(own)?;
        Some(self.frames.len())
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
        let lane = self.lane(env, thread)?;
        cells::event_cell(counting, lane, number, event)?.count(value);
        Some(())
    }

    /// The VM's frames but the innermost `own`, innermost first.
    fn stack(&mut self, own: usize) -> Option<()> {
        let empty = FrameInfo {
            method: std::ptr::null_mut(),
            location: 0,
        };
        self.frames.resize(self.frames.capacity().max(128), empty);
        loop {
            let found = match self
                .counting
                .jvmti
                .stack(std::ptr::null_mut(), own, &mut self.frames)
            {
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
    fn resolve_contexts(&mut self, env: Env, spot: Spot) -> Option<()> {
        let can_watch = can_watch(self.counting, env);
        let mut older = OlderLines::new(spot);
        let frames = mem::take(&mut self.frames);
        let resolved = self.resolve_frames(env, &frames, (can_watch, &mut older));
        self.frames = frames;
        resolved
    }

    fn resolve_frames(
        &mut self,
        env: Env,
        frames: &[FrameInfo],
        (can_watch, older): (bool, &mut OlderLines),
    ) -> Option<()> {
        let mut common = 0;
        let mut checked = CheckedVersions::default();
        let outermost_first = || frames.iter().enumerate().rev();
        for ((index, frame), known) in outermost_first().zip(&self.last) {
            let method = &known.place.method;
            let is_same = known.method == frame.method as usize && known.location == frame.location;
            if !is_same {
                break;
            }
            if !checked.is_current(env, method, can_watch) {
                break;
            }
            if method.has_older_lines() {
                let standing = older.standing(self.counting, env, (frames, index), &known.place);
                if standing != known.standing() {
                    break;
                }
            }
            common += 1;
        }
        self.last.truncate(common);
        let mut at = self.last.last().and_then(|known| known.at);
        for (index, frame) in outermost_first().skip(common) {
            let mut place = self.place(env, *frame, can_watch);
            if place.method.has_older_lines() {
                place.standing = older.standing(self.counting, env, (frames, index), &place);
            }
            match place.standing {
                Standing::NotShown => {}
                Standing::Unknown => return None,
                Standing::Shown(place) => {
                    let elsewhere = self.elsewhere(place.method);
                    let context = elsewhere.unwrap_or_else(|| match at {
                        None => self.counting.encoder.root(place.method),
                        Some(caller) => self.counting.encoder.step(
                            caller.context,
                            caller.place.site,
                            caller.place.method,
                            place.method,
                        ),
                    });
                    if context == ContextId::UNKNOWN {
                        return None;
                    }
                    at = Some(At { context, place });
                }
            }
            self.last.push(Known {
                method: frame.method as usize,
                location: frame.location,
                place,
                at,
            });
        }
        Some(())
    }

    /// The context of the next frame, of `method`, if a scope has it go on elsewhere.
    fn elsewhere(&self, method: MethodId) -> Option<ContextId> {
        let depth = self.last.len() + 1;
        let scope = self.scopes.iter().find(|scope| scope.depth == depth)?;
        let is_scope = scopes::goes_on(&self.counting.book(), method.0);
        let found = is_scope.then(|| scopes::going_on(self.counting, scope.number, method));
        found.flatten()
    }

    fn place(&mut self, env: Env, frame: FrameInfo, can_watch: bool) -> Place {
        let key = (frame.method as usize, frame.location);
        if let Some(known) = self.places.get(&key)
            && known.method.is_current(env, can_watch)
        {
            return known.clone();
        }
        let counting = self.counting;
        let method = counting.frames.resolve(counting, env, frame.method);
        let line = method.line(frame.location);
        let standing = standing(counting, &method, line);
        let place = Place { method, standing };
        if self.places.len() >= MOST_PLACES {
            self.places.clear();
        }
        self.places.insert(key, place.clone());
        place
    }

    /// For a context's number: it stands for the site, too.
    fn add(&mut self, env: Env, thread: jobject, number: ContextId, size: u64) -> Option<()> {
        let counting = self.counting;
        let interval = counting.sampled_bytes().unwrap_or(0);
        let lane = self.lane(env, thread)?;
        samples::add(counting, lane, number, (size, interval));
        Some(())
    }

    fn lane(&mut self, env: Env, thread: jobject) -> Option<&mut Lane> {
        let tags = kept::tags(self.counting, thread);
        let whose = (env.is_virtual_thread(thread), tags);
        let known = self.lanes.iter().position(|(of, _)| *of == whose);
        let at = known.unwrap_or_else(|| {
            let lane = self.new_lane(env, whose);
            self.lanes.push((whose, lane));
            self.lanes.len() - 1
        });
        self.lanes.get_mut(at).map(|(_, lane)| lane)
    }

    fn new_lane(&self, env: Env, (is_virtual, tags): (bool, TagSet)) -> Lane {
        let counting = self.counting;
        let name = match is_virtual {
            false => counting.jvmti.thread_name(env).unwrap_or_default(),
            true => "virtual threads".into(),
        };
        let whose = (is_virtual, ContextId::UNKNOWN);
        if tags == TagSet::NONE {
            return cells::take(counting, env, name, whose);
        }
        let kind = kind(&name);
        let lane = cells::take_under(counting, env, (tags, &*kind, &*name), whose);
        counting.coverage.counts_in(&lane);
        lane
    }

    /// No thread that is here counts under these tags any more: others may go on with the lanes.
    pub fn leaves(&mut self, tags: TagSet) {
        let (left, kept) = mem::take(&mut self.lanes)
            .into_iter()
            .partition(|((_, of), _)| *of == tags && tags != TagSet::NONE);
        self.lanes = kept;
        let left: Vec<_> = left;
        for (_, lane) in left {
            self.counting.lanes.give(lane);
        }
    }

    /// One more event: whether it is the one to compare, of so many.
    fn must_verify(&mut self) -> bool {
        self.countdown.count_event(self.counting.options.verify)
    }
}

/// Versions that were found to be current in this walk, the last few: stacks go to and fro between a few classes.
#[derive(Default)]
struct CheckedVersions {
    keys: [Option<(usize, i32)>; 8],
    next: usize,
}

impl CheckedVersions {
    fn is_current(&mut self, env: Env, method: &Resolved, can_watch: bool) -> bool {
        let key = method.version_key();
        if key.is_some() && self.keys.contains(&key) {
            return true;
        }
        let is_current = method.is_current(env, can_watch);
        if is_current
            && key.is_some()
            && let Some(place) = self.keys.get_mut(self.next)
        {
            *place = key;
            self.next = (self.next + 1) % self.keys.len();
        }
        is_current
    }
}

impl Known {
    fn standing(&self) -> Standing {
        self.place.standing
    }
}

/// Where a frame of `method` at `line` stands.
fn standing(counting: &Counting, method: &Resolved, line: i32) -> Standing {
    match method.kind {
        MethodKind::Hidden | MethodKind::Helper => Standing::NotShown,
        MethodKind::Unknown => Standing::Unknown,
        MethodKind::Known(id) => match counting.extra_site(id, line) {
            0 => Standing::Unknown,
            site => Standing::Shown(Site {
                method: MethodId(id),
                site: SiteId(site),
                line,
            }),
        },
    }
}

/// Lines of frames that may run older code, which the VM is asked for once in a walk, if at all.
struct OlderLines {
    spot: Spot,
    /// By frame, innermost first.
    lines: Option<Vec<TraceLine>>,
}

impl OlderLines {
    fn new(spot: Spot) -> OlderLines {
        OlderLines { spot, lines: None }
    }

    /// Where the frame with this index stands, counted from the innermost one. `place`: where it would stand in code as it is now.
    fn standing(
        &mut self,
        counting: &Counting,
        env: Env,
        (frames, index): (&[FrameInfo], usize),
        place: &Place,
    ) -> Standing {
        if place.standing == Standing::NotShown || index == 0 && self.spot.location.is_some() {
            return place.standing;
        }
        let lines = self
            .lines
            .get_or_insert_with(|| older_lines(counting, env, frames));
        match lines.get(index) {
            Some(TraceLine::Line(line)) => standing(counting, &place.method, *line),
            Some(TraceLine::NotShown) => place.standing,
            Some(TraceLine::TooDeep) | None => Standing::Unknown,
        }
    }
}

/// The lines of all frames, innermost first, as a `Throwable` has them.
fn older_lines(counting: &Counting, env: Env, frames: &[FrameInfo]) -> Vec<TraceLine> {
    let Some(trace) = read_trace(counting, env) else {
        return Vec::new();
    };
    let resolve = |frame: &FrameInfo| counting.frames.resolve(counting, env, frame.method);
    let methods: Vec<_> = frames.iter().map(resolve).collect();
    let classes: Vec<_> = methods
        .iter()
        .map(|method| external(&method.class_name))
        .collect();
    let names = classes.iter().zip(&methods);
    let names = names.map(|(class, method)| (class.as_str(), method.method_name.as_str()));
    match_lines(&trace, names)
}

impl Drop for Local {
    /// The thread ends: another one of its kind goes on with its lanes.
    fn drop(&mut self) {
        let lanes = mem::take(&mut self.lanes);
        let inside = Inside::enter();
        if !inside.is_of(self.run) {
            return;
        }
        self.counting.verify.end_shared(&self.countdown);
        for ((_, tags), lane) in lanes {
            match tags == TagSet::NONE {
                true => cells::give(self.counting, lane),
                false => self.counting.lanes.give(lane),
            }
        }
    }
}
