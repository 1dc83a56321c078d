//! Sampled allocations: the number of the thread's whole stack.
//!
//! Consecutive stacks of a thread mostly differ near their tops only. So each thread keeps its last stack with the context of
//! each frame, and continues from the outermost frame that differs.
use std::cell::RefCell;
use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_callgraph::{ContextId, MethodId, SiteId};
use lucce_jvmti::{FrameInfo, JniEnvironment, JvmError};
use lucce_tracelog::{EventCounter, EventTypeId, RunId, ThreadId};

use crate::core::agent_use::AgentUseGuard;
use crate::core::{SampleBudget, SampleDraws, VerifyCountdown};
use crate::counting::CountingParts;
use crate::events::samples;
use crate::hookless::thread_storage::{self, CallContextScope};
use crate::hookless::walk_cost;
use crate::memory::counter::increment_counter;
use crate::registry::NO_LINE;
use crate::registry::written_records::external_name;
use crate::stack::context_scopes::continues_elsewhere;
use crate::stack::frames::{MethodKind, ResolvedMethod, StackWalk, can_watch};
use crate::stack::marker_frames::{MarkerFrame, thread_caller};
use crate::stack::tasks::known_context;
use crate::stack::throwable_trace::{TraceLine, match_lines, read_trace};
use crate::stack::{context_scopes, verify};
use crate::thread::counter_access::{self, CounterUser};
use crate::thread::tags::TagSet;
use crate::thread::thread_counters::{ThreadCounters, thread_kind};

/// `JVMTI_ERROR_THREAD_NOT_ALIVE`
const NOT_ALIVE: i32 = 15;
/// An event with more frames counts as dropped.
const MAX_FRAMES: usize = 1 << 20;
/// Maximum number of cached places; beyond it, the cache is cleared.
const MAX_PLACES: usize = 1 << 16;

/// Records an object of `size` bytes that the current thread has created and that the VM sampled.
pub fn record_allocation(
    agent: CountingParts<'static>,
    env: JniEnvironment,
    thread: jobject,
    (class, size): (jclass, u64),
) {
    let budget = agent.core.budget.as_ref();
    let since = budget.and_then(SampleBudget::begin_sample);
    let recorded = with_current(agent, |local| {
        let recorded = local.record_sample(env, thread, (class, size));
        if let Some(budget) = budget {
            budget.end_sample(agent.core, local.draws.sample_interval(), since);
        }
        recorded
    });
    if recorded.flatten().is_none() {
        increment_counter(&agent.core.counts.events_dropped);
    }
}

thread_local! {
    /// Boxed: the thread-local block of a library that is loaded late has little room.
    static LOCAL: RefCell<Option<Box<HooklessThread>>> = const { RefCell::new(None) };
}

/// Runs `body` with the current thread's data. `None`: an event being recorded uses it, or the thread ends.
pub fn with_current<T>(
    agent: CountingParts<'static>,
    body: impl FnOnce(&mut HooklessThread) -> T,
) -> Option<T> {
    let with = LOCAL.try_with(|local| {
        local.try_borrow_mut().ok().map(|mut local| {
            // Data of an earlier agent is invalid, except for the VM's last draw.
            let earlier = local.take_if(|earlier| earlier.run != agent.core.run);
            let earlier = earlier.map(|earlier| earlier.draws);
            body(local.get_or_insert_with(|| Box::new(HooklessThread::new(agent, earlier))))
        })
    });
    with.ok().flatten()
}

/// The data of a native thread. The virtual threads that it carries share counters.
pub struct HooklessThread {
    /// The run of its agent, which may have left. The data is only valid in the same run.
    run: RunId,
    agent: CountingParts<'static>,
    frames: Vec<FrameInfo>,
    /// The last stack, outermost frame first.
    last_stack: Vec<WalkedFrame>,
    places: HashMap<(usize, i64), FramePlace>,
    /// Counters, by whether virtual threads use them, and by tags.
    counters: Vec<((bool, TagSet), ThreadCounters)>,
    /// The scopes of the last stack.
    scopes: Vec<CallContextScope>,
    countdown: Arc<VerifyCountdown>,
    walk_reuse: WalkReuse,
    /// An allocation of the thread was sampled.
    has_sampled: bool,
    draws: SampleDraws,
}

/// The location of an event in the current thread.
#[derive(Clone, Copy, Default)]
pub struct WalkPosition {
    /// Number of innermost frames that belong to the caller of this module and not to the trace.
    pub own: usize,
    /// The bci of the innermost frame, if the VM's differs.
    pub location: Option<i64>,
}

/// The innermost frame that traces show, or what is known of it.
#[derive(Clone, Copy)]
pub enum ShownFrame<T> {
    Visible(T),
    /// Traces omit all frames of the thread.
    AllHidden,
}

/// How often the stack is walked.
#[derive(Clone, Copy)]
enum WalkReuse {
    EachTime,
    /// Several events happen at one moment.
    Once {
        done: bool,
    },
}

/// The VM has sampled an object of the current thread, and has drawn the distance to the next one.
pub fn note_sample(agent: CountingParts<'static>) {
    if let Some(budget) = &agent.core.budget {
        let _ = with_current(agent, |local| {
            local.draws.note_sample(budget.interval());
        });
    }
}

/// The current thread starts: the VM has drawn the distance to its first sample.
pub fn note_thread_start(agent: CountingParts<'static>) {
    if let Some(budget) = &agent.core.budget {
        let _ = with_current(agent, |local| local.draws.note_draw(budget.interval()));
    }
}

/// Until the next call with `false`, the current thread's location does not change: its stack is walked once.
pub fn walk_once(agent: CountingParts<'static>, is_so: bool) {
    let walked = match is_so {
        true => WalkReuse::Once { done: false },
        false => WalkReuse::EachTime,
    };
    // If an event is being recorded, this event comes from the agent's own actions, and is not counted.
    let _ = with_current(agent, |local| local.walk_reuse = walked);
}

/// A frame of the last stack.
struct WalkedFrame {
    method: usize,
    location: i64,
    place: FramePlace,
    /// The innermost visible frame up to this one.
    shown: Option<FrameContext>,
    logical_caller: CallerKnowledge,
}

/// Whether the frames up to one have only callers that are on the stack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallerKnowledge {
    OnStack,
    /// The next visible frame gets a frame that says that its caller is not known.
    Unknown,
    /// A caller further out has that frame.
    Marked,
}

/// The place of a frame; valid while the method's version is current.
#[derive(Clone)]
struct FramePlace {
    method: Arc<ResolvedMethod>,
    visibility: FrameVisibility,
    /// Whether its logical caller is another one than the caller of its frame.
    continues_elsewhere: bool,
}

/// A visible frame: its context, and the site of its callee or of the event.
#[derive(Clone, Copy)]
struct FrameContext {
    context: ContextId,
    site: FrameSite,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameVisibility {
    NotShown,
    Shown(FrameSite),
    /// The VM does not provide enough information.
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct FrameSite {
    method: MethodId,
    site: SiteId,
    line: i32,
}

impl HooklessThread {
    /// `earlier`: the draws of the thread under an earlier agent.
    fn new(agent: CountingParts<'static>, earlier: Option<SampleDraws>) -> HooklessThread {
        let interval = match &agent.core.budget {
            Some(budget) => budget.earlier_interval(),
            None => agent.core.sampling_interval().unwrap_or(0),
        };
        let mut draws = SampleDraws::new(interval);
        draws.continue_earlier(earlier);
        HooklessThread {
            run: agent.core.run,
            agent,
            frames: Vec::new(),
            last_stack: Vec::new(),
            places: HashMap::new(),
            counters: Vec::new(),
            scopes: Vec::new(),
            countdown: agent.core.verify.begin_shared(),
            walk_reuse: WalkReuse::EachTime,
            has_sampled: false,
            draws,
        }
    }

    /// `None`: the event is dropped.
    fn record_sample(
        &mut self,
        env: JniEnvironment,
        thread: jobject,
        (class, size): (jclass, u64),
    ) -> Option<()> {
        let agent = self.agent;
        let interval = self.draws.sample_interval();
        if agent.core.budget.is_none() {
            // The VM has drawn with the same interval, which a later agent needs to know.
            self.draws.note_draw(interval);
        }
        if agent.counters.coverage.is_leaving(env, size) {
            return Some(());
        }
        let is_first = !mem::replace(&mut self.has_sampled, true);
        if is_first && agent.core.sampling_interval().is_none() {
            agent.counters.coverage.record_first_allocation(env, size);
        }
        // Without a Java frame, the VM allocates for itself, and there is no context.
        let ShownFrame::Visible(at) =
            self.find_shown_frame((env, thread), WalkPosition::default())?
        else {
            return Some(());
        };
        let allocated = self.agent.core.jvmti.class_signature(class)?;
        let site =
            self.agent
                .core
                .find_or_add_allocation(at.site.method.0, at.site.line, &allocated)?;
        let number = self
            .agent
            .core
            .encoder
            .encode_event(at.context, SiteId(site), at.site.method);
        if number == ContextId::UNKNOWN {
            return None;
        }
        self.add_sample(env, thread, number, size)?;
        if self.must_verify() {
            verify::compare_number(self.agent.stack_parts(), env, number, 0);
        }
        Some(())
    }

    /// The innermost visible frame of the current thread. `None`: it is unknown.
    fn find_shown_frame(
        &mut self,
        whose: (JniEnvironment, jobject),
        spot: WalkPosition,
    ) -> Option<ShownFrame<FrameContext>> {
        let is_plain = spot.own == 0 && spot.location.is_none();
        let is_known = is_plain && matches!(self.walk_reuse, WalkReuse::Once { done: true });
        if !is_known {
            self.walk_stack(whose, spot)?;
            if let WalkReuse::Once { done } = &mut self.walk_reuse {
                *done = is_plain;
            }
        }
        let shown = self.last_stack.last().and_then(|frame| frame.shown);
        Some(shown.map_or(ShownFrame::AllHidden, ShownFrame::Visible))
    }

    fn walk_stack(
        &mut self,
        (env, thread): (JniEnvironment, jobject),
        spot: WalkPosition,
    ) -> Option<()> {
        let since = walk_cost::begin_walk();
        self.set_scopes(thread_storage::current_scopes(self.agent, thread));
        // A method may be resolved after the frames were read and after its code was replaced. Then the frames may belong to the old
        // code, and are read again.
        const MOST_WALKS: usize = 16;
        for _ in 0..MOST_WALKS {
            let before = self.agent.stack.frames.resolution_count();
            self.read_frames(spot.own)?;
            if let (Some(top), Some(location)) = (self.frames.first_mut(), spot.location) {
                top.location = location;
            }
            let resolved = self.resolve_contexts(env, spot);
            if self.agent.stack.frames.resolution_count() == before {
                walk_cost::end_walk(self.agent, self.frames.len(), since);
                return resolved;
            }
        }
        None
    }

    /// Sets the scopes. Frames whose callers differ from the last stack are resolved again.
    fn set_scopes(&mut self, scopes: Vec<CallContextScope>) {
        let same = self.scopes.iter().zip(&scopes);
        let same = same.take_while(|(known, now)| known == now).count();
        let others = self
            .scopes
            .iter()
            .skip(same)
            .chain(scopes.iter().skip(same));
        if let Some(depth) = others.map(|scope| scope.depth).min() {
            self.last_stack.truncate(depth.saturating_sub(1));
            self.scopes = scopes;
        }
    }

    /// The number of an event at this location. Results as in [`HooklessThread::find_shown_frame`].
    pub fn find_number(
        &mut self,
        whose: (JniEnvironment, jobject),
        spot: WalkPosition,
    ) -> Option<ShownFrame<ContextId>> {
        let ShownFrame::Visible(at) = self.find_shown_frame(whose, spot)? else {
            return Some(ShownFrame::AllHidden);
        };
        let FrameSite { method, site, .. } = at.site;
        let number = self
            .agent
            .core
            .encoder
            .encode_event(at.context, site, method);
        if number == ContextId::UNKNOWN {
            return None;
        }
        if self.must_verify() {
            let frames = StackWalk::new(self.agent.stack_parts(), whose.0, 256);
            let frames = frames
                .with_innermost_location(spot.location)
                .without_own_frames(spot.own);
            verify::compare_frames(self.agent.stack_parts(), frames, number, 0);
        }
        Some(ShownFrame::Visible(number))
    }

    /// The number of the current thread's frames, without the innermost `own`.
    pub fn count_frames(&mut self, own: usize) -> Option<usize> {
        self.read_frames(own)?;
        Some(self.frames.len())
    }

    /// The thread id of the current thread's counters.
    pub fn find_thread_id(&mut self, env: JniEnvironment, thread: jobject) -> Option<ThreadId> {
        let agent = self.agent;
        let counters = self.find_or_add_counters(env, thread)?;
        Some(counter_access::log_thread_id(
            agent.thread_parts(),
            counters,
        ))
    }

    /// Counts one event of a typed kind.
    pub fn count_event(
        &mut self,
        env: JniEnvironment,
        thread: jobject,
        counter: (ContextId, EventTypeId),
        value: u64,
    ) -> Option<()> {
        self.find_or_add_counter(env, thread, counter)?
            .count_event(value);
        Some(())
    }

    /// Keeps the longest value of a typed kind.
    pub fn keep_longest(
        &mut self,
        env: JniEnvironment,
        thread: jobject,
        counter: (ContextId, EventTypeId),
        value: u64,
    ) -> Option<()> {
        self.find_or_add_counter(env, thread, counter)?
            .keep_longest(value);
        Some(())
    }

    fn find_or_add_counter(
        &mut self,
        env: JniEnvironment,
        thread: jobject,
        (number, event): (ContextId, EventTypeId),
    ) -> Option<&'static EventCounter> {
        let agent = self.agent;
        let counters = self.find_or_add_counters(env, thread)?;
        counter_access::event_counter(agent.thread_parts(), counters, number, event)
    }

    /// Reads the VM's frames without the innermost `own`, innermost first.
    fn read_frames(&mut self, own: usize) -> Option<()> {
        let empty = FrameInfo {
            method: std::ptr::null_mut(),
            location: 0,
        };
        self.frames.resize(self.frames.capacity().max(128), empty);
        loop {
            let found = match self.agent.core.jvmti.read_stack_from(
                std::ptr::null_mut(),
                own,
                &mut self.frames,
            ) {
                Ok(found) => found,
                // The thread has left its last frame, and waits for its own monitor to end.
                Err(JvmError(code)) if code == NOT_ALIVE => 0,
                Err(_) => return None,
            };
            let room = self.frames.len();
            if found < room {
                self.frames.truncate(found);
                return Some(());
            }
            if room >= MAX_FRAMES {
                return None;
            }
            self.frames.resize(room * 2, empty);
        }
    }

    /// Updates `last_stack` to match `frames`.
    fn resolve_contexts(&mut self, env: JniEnvironment, spot: WalkPosition) -> Option<()> {
        let can_watch = can_watch(self.agent.stack_parts(), env);
        let mut older = OlderLines::new(spot);
        let frames = mem::take(&mut self.frames);
        let resolved = self.resolve_frames(env, &frames, (can_watch, &mut older));
        self.frames = frames;
        resolved
    }

    fn resolve_frames(
        &mut self,
        env: JniEnvironment,
        frames: &[FrameInfo],
        (can_watch, older): (bool, &mut OlderLines),
    ) -> Option<()> {
        let mut common = 0;
        let mut checked = CheckedVersions::default();
        let outermost_first = || frames.iter().enumerate().rev();
        for ((index, frame), known) in outermost_first().zip(&self.last_stack) {
            let method = &known.place.method;
            let is_same = known.method == frame.method as usize && known.location == frame.location;
            if !is_same {
                break;
            }
            if !checked.is_current(env, method, can_watch) {
                break;
            }
            if method.has_older_lines() {
                let standing =
                    older.find_visibility(self.agent, env, (frames, index), &known.place);
                if standing != known.visibility() {
                    break;
                }
            }
            common += 1;
        }
        self.last_stack.truncate(common);
        let mut at = self.last_stack.last().and_then(|frame| frame.shown);
        let last = self.last_stack.last();
        let mut caller = last.map_or(CallerKnowledge::OnStack, |frame| frame.logical_caller);
        for (index, frame) in outermost_first().skip(common) {
            let mut place = self.resolve_place(env, *frame, can_watch);
            if place.method.has_older_lines() {
                place.visibility = older.find_visibility(self.agent, env, (frames, index), &place);
            }
            if place.continues_elsewhere && caller == CallerKnowledge::OnStack {
                caller = CallerKnowledge::Unknown;
            }
            match place.visibility {
                FrameVisibility::NotShown => {}
                FrameVisibility::Unknown => return None,
                FrameVisibility::Shown(shown) => {
                    let elsewhere = self.find_scope_context(shown.method);
                    if elsewhere.is_some() {
                        caller = CallerKnowledge::OnStack;
                    } else if caller == CallerKnowledge::Unknown {
                        at = Some(self.step_into_thread_caller(at)?);
                        caller = CallerKnowledge::Marked;
                    }
                    let context = elsewhere.unwrap_or_else(|| self.step_into(at, shown.method));
                    if context == ContextId::UNKNOWN {
                        return None;
                    }
                    at = Some(FrameContext {
                        context,
                        site: shown,
                    });
                }
            }
            self.last_stack.push(WalkedFrame {
                method: frame.method as usize,
                location: frame.location,
                place,
                shown: at,
                logical_caller: caller,
            });
        }
        Some(())
    }

    /// The context of a frame of `method` with this caller.
    fn step_into(&self, caller: Option<FrameContext>, method: MethodId) -> ContextId {
        let encoder = &self.agent.core.encoder;
        match caller {
            None => encoder.root_context(method),
            Some(FrameContext { context, site }) => {
                encoder.encode_call(context, site.site, site.method, method)
            }
        }
    }

    /// The frame that says that the logical caller of the next one is not known. `None`: no ids are left.
    fn step_into_thread_caller(&self, caller: Option<FrameContext>) -> Option<FrameContext> {
        let MarkerFrame { method, site } = thread_caller(self.agent.stack_parts())?;
        let context = known_context(self.step_into(caller, method))?;
        let line = NO_LINE;
        let site = FrameSite { method, site, line };
        Some(FrameContext { context, site })
    }

    /// The context of the next frame, of `method`, if a scope replaces it.
    fn find_scope_context(&self, method: MethodId) -> Option<ContextId> {
        let depth = self.last_stack.len() + 1;
        let scope = self.scopes.iter().find(|scope| scope.depth == depth)?;
        let is_scope = context_scopes::is_scope_method(&self.agent.core.registry(), method.0);
        let context = is_scope
            .then(|| context_scopes::scope_context(self.agent.stack_parts(), scope.number, method));
        context.flatten()
    }

    fn resolve_place(
        &mut self,
        env: JniEnvironment,
        frame: FrameInfo,
        can_watch: bool,
    ) -> FramePlace {
        let key = (frame.method as usize, frame.location);
        if let Some(known) = self.places.get(&key)
            && known.method.is_current(env, can_watch)
        {
            return known.clone();
        }
        let agent = self.agent;
        let method = agent
            .stack
            .frames
            .resolve_method(agent.stack_parts(), env, frame.method);
        let line = method.line_number(frame.location);
        let standing = find_visibility(agent, &method, line);
        let continues_elsewhere = continues_elsewhere(&method.class_name, &method.method_name);
        let place = FramePlace {
            method,
            visibility: standing,
            continues_elsewhere,
        };
        if self.places.len() >= MAX_PLACES {
            self.places.clear();
        }
        self.places.insert(key, place.clone());
        place
    }

    /// Counts a sample for a context number that includes the site.
    fn add_sample(
        &mut self,
        env: JniEnvironment,
        thread: jobject,
        number: ContextId,
        size: u64,
    ) -> Option<()> {
        let agent = self.agent;
        let interval = self.draws.sample_interval();
        let counters = self.find_or_add_counters(env, thread)?;
        samples::add_sample(agent, counters, number, (size, interval));
        if let Some(budget) = &agent.core.budget {
            samples::add_variance(agent, budget, counters, number, (size, interval));
        }
        Some(())
    }

    fn find_or_add_counters(
        &mut self,
        env: JniEnvironment,
        thread: jobject,
    ) -> Option<&mut ThreadCounters> {
        let tags = thread_storage::current_tags(self.agent, thread);
        let whose = (env.is_virtual_thread(thread), tags);
        let index = self.counters.iter().position(|(of, _)| *of == whose);
        let at = index.unwrap_or_else(|| {
            let counters = self.acquire_counters(env, whose);
            self.counters.push((whose, counters));
            self.counters.len() - 1
        });
        self.counters.get_mut(at).map(|(_, counters)| counters)
    }

    fn acquire_counters(
        &self,
        env: JniEnvironment,
        (is_virtual, tags): (bool, TagSet),
    ) -> ThreadCounters {
        let agent = self.agent;
        let name = match is_virtual {
            false => agent.core.jvmti.thread_name(env).unwrap_or_default(),
            true => "virtual threads".into(),
        };
        let whose = (is_virtual, ContextId::UNKNOWN);
        if tags == TagSet::NONE {
            return counter_access::take_counters(agent.thread_parts(), env, name, whose);
        }
        let kind = thread_kind(&name);
        let user = CounterUser {
            tags,
            kind: &kind,
            name: &name,
        };
        let counters = counter_access::take_tagged_counters(agent.thread_parts(), env, user, whose);
        agent.counters.coverage.assign_counters(&counters);
        counters
    }

    /// Returns the counters of tags that no thread here uses any more to the pool.
    pub fn release_counters(&mut self, tags: TagSet) {
        let (left, kept) = mem::take(&mut self.counters)
            .into_iter()
            .partition(|((_, of), _)| *of == tags && tags != TagSet::NONE);
        self.counters = kept;
        let left: Vec<_> = left;
        for (_, counters) in left {
            self.agent.counters.counter_pool.return_counters(counters);
        }
    }

    /// Whether this event is the N-th, which is verified.
    fn must_verify(&mut self) -> bool {
        self.countdown.count_event(self.agent.core.options.verify)
    }
}

/// The last few versions found to be current in this walk: stacks alternate between a few classes.
#[derive(Default)]
struct CheckedVersions {
    keys: [Option<(usize, i32)>; 8],
    next: usize,
}

impl CheckedVersions {
    fn is_current(
        &mut self,
        env: JniEnvironment,
        method: &ResolvedMethod,
        can_watch: bool,
    ) -> bool {
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

impl WalkedFrame {
    fn visibility(&self) -> FrameVisibility {
        self.place.visibility
    }
}

/// The visibility of a frame of `method` at `line`.
fn find_visibility(
    agent: CountingParts<'_>,
    method: &ResolvedMethod,
    line: i32,
) -> FrameVisibility {
    match method.kind {
        MethodKind::Hidden | MethodKind::Helper => FrameVisibility::NotShown,
        MethodKind::Unknown => FrameVisibility::Unknown,
        MethodKind::Known(id) => match agent.core.find_or_add_site(id, line) {
            0 => FrameVisibility::Unknown,
            site => FrameVisibility::Shown(FrameSite {
                method: MethodId(id),
                site: SiteId(site),
                line,
            }),
        },
    }
}

/// Lines of frames that may run older code. The VM is asked at most once in a walk.
struct OlderLines {
    spot: WalkPosition,
    /// By frame, innermost first.
    lines: Option<Vec<TraceLine>>,
}

impl OlderLines {
    fn new(spot: WalkPosition) -> OlderLines {
        OlderLines { spot, lines: None }
    }

    /// The visibility of the frame with this index, counted from the innermost one. `place`: its place in the current code.
    fn find_visibility(
        &mut self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        (frames, index): (&[FrameInfo], usize),
        place: &FramePlace,
    ) -> FrameVisibility {
        if place.visibility == FrameVisibility::NotShown
            || index == 0 && self.spot.location.is_some()
        {
            return place.visibility;
        }
        let lines = self
            .lines
            .get_or_insert_with(|| read_older_lines(agent, env, frames));
        match lines.get(index) {
            Some(TraceLine::Line(line)) => find_visibility(agent, &place.method, *line),
            Some(TraceLine::NotShown) => place.visibility,
            Some(TraceLine::TooDeep) | None => FrameVisibility::Unknown,
        }
    }
}

/// The lines of all frames, innermost first, as a `Throwable` has them.
fn read_older_lines(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    frames: &[FrameInfo],
) -> Vec<TraceLine> {
    let Some(trace) = read_trace(agent.stack_parts(), env) else {
        return Vec::new();
    };
    let resolve = |frame: &FrameInfo| {
        agent
            .stack
            .frames
            .resolve_method(agent.stack_parts(), env, frame.method)
    };
    let methods: Vec<_> = frames.iter().map(resolve).collect();
    let classes: Vec<_> = methods
        .iter()
        .map(|method| external_name(&method.class_name))
        .collect();
    let names = classes.iter().zip(&methods);
    let names = names.map(|(class, method)| (class.as_str(), method.method_name.as_str()));
    match_lines(&trace, names)
}

impl Drop for HooklessThread {
    /// The thread ends: the next thread of its kind takes over its counters.
    fn drop(&mut self) {
        let all_counters = mem::take(&mut self.counters);
        let inside = AgentUseGuard::enter();
        if !inside.is_for_run(self.run) {
            return;
        }
        self.agent.core.verify.end_shared(&self.countdown);
        for ((_, tags), counters) in all_counters {
            match tags == TagSet::NONE {
                true => counter_access::return_counters(self.agent.thread_parts(), counters),
                false => self.agent.counters.counter_pool.return_counters(counters),
            }
        }
    }
}
