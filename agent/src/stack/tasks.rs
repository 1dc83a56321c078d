//! Origins: a task continues in the context that submitted it, and a thread in the context that started it.
//!
//! An executor receives a task in one thread and runs it in another. Meanwhile the task carries the number of the
//! place of its submission. The agent adds a field for it to the two classes of which almost all tasks are instances.
//! Other tasks have it in a tag of the object (JVMTI `SetTag`), which is weak. If a task was submitted again from
//! another place before it ran, the run may belong to either place. The trace then ends with `unknownCaller`, as does that of
//! a task that an executor runs and nobody has submitted while events were counted.
//!
//! The frame that runs the task gets a context of its own, stored as the memo of that frame. Like all contexts it is
//! computed from the thread's first frame on. But the sequence begins where the task was submitted; a frame of a
//! method that no program has separates the two parts:
//!
//! ```text
//! task … runWorker ← Worker.run ← Thread.run ← SUBMITTED ← execute ← … ← main
//! └── the thread's own stack, as the VM shows it ──┘   └── stack of the submitting thread
//! ```
//!
//! What a thread does outside of tasks continues in the same way at the place where the thread was started.
//!
//! So one number covers both parts, and the display of a trace decides whether it ends at the separating frame. A
//! task that submits itself again would make the sequence longer without end. So it is truncated after [`MOST_HOPS`]
//! submissions, and ends with the separating frame. Only with `tracking=lazy`, like `context_scopes`.
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{MutexGuard, OnceLock};

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::{ContextFrame, ContextId, MethodId, SiteId};

use crate::memory::counter::increment_counter;
use crate::memory::locks::WatchedMutex;
use crate::memory::slots::{LOST, Slot, VM_ENTRY};
use crate::stack::StackParts;
use crate::stack::marker_frames::{MarkerFrame, unknown_caller};
use crate::thread::ThreadState;
use crate::thread::tags::TagSet;

/// The frame between a thread's own frames and those of the submitting thread. The decoder knows the same names.
const SUBMITTED: (&str, &str) = ("java/lang/LucceRt$Tasks", "submitted");
/// Maximum number of submissions in a trace.
const MOST_HOPS: usize = 8;
/// Maximum number of places of submission. Tasks from further places get no origin.
const MOST_PLACES: usize = 1 << 16;

/// Places at which tasks were submitted.
#[derive(Default)]
pub struct TaskOrigins {
    places: WatchedMutex<SubmissionPlaces>,
    submission_frame: OnceLock<Option<MarkerFrame>>,
    /// Runs of tasks without an origin because the table of places is full.
    pub unfollowed: AtomicU64,
}

#[derive(Default)]
struct SubmissionPlaces {
    by_place: HashMap<SubmissionPlace, u32>,
    /// Each place with the context of its separating frame, once that was computed.
    list: Vec<(SubmissionPlace, Option<ContextId>)>,
}

/// Where a task was submitted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SubmissionPlace {
    /// The context; unknown if contexts of submissions are not recorded.
    pub number: ContextId,
    /// The tags of the submitting code.
    pub tags: TagSet,
}

impl SubmissionPlace {
    fn untagged(number: ContextId) -> SubmissionPlace {
        SubmissionPlace {
            number,
            tags: TagSet::NONE,
        }
    }
}

impl SubmissionPlaces {
    /// The index of a place. `None`: the table is full.
    fn place_index(&mut self, place: SubmissionPlace) -> Option<u32> {
        if let Some(known) = self.by_place.get(&place) {
            return Some(*known);
        }
        let next = self.list.len();
        (next < MOST_PLACES).then(|| {
            self.list.push((place, None));
            self.by_place.insert(place, next as u32);
            next as u32
        })
    }
}

/// The tag of a task without the agent's field.
///
/// ```text
/// 62  61          32 31                          0
///  1 | pending runs | index of the place, or MANY
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TaskTag(i64);

impl TaskTag {
    const OURS: i64 = 1 << 62;
    const ONE_RUN: i64 = 1 << 32;
    const MOST_RUNS: i64 = (1 << 30) - 1;
    const MANY: u32 = u32::MAX;

    fn submission_place(self) -> u32 {
        self.0 as u32
    }

    /// Whether the agent made the tag: it is positive and bit 62 is set.
    fn is_ours(self) -> bool {
        self.0 & TaskTag::OURS != 0 && self.0 > 0
    }

    fn remaining_runs(self) -> i64 {
        (self.0 & !TaskTag::OURS) >> 32
    }

    /// The tag after a submission at `place`. `None`: the tag is not the agent's, or the count is full.
    fn add_submission(self, place: u32) -> Option<TaskTag> {
        if self.0 == 0 {
            return Some(TaskTag(TaskTag::OURS | TaskTag::ONE_RUN | i64::from(place)));
        }
        (self.is_ours() && self.remaining_runs() < TaskTag::MOST_RUNS).then(|| {
            let place = match self.submission_place() == place {
                true => place,
                false => TaskTag::MANY,
            };
            TaskTag(
                TaskTag::OURS | ((self.remaining_runs() + 1) * TaskTag::ONE_RUN) | i64::from(place),
            )
        })
    }

    /// The tag after one run, and the place of submission if there is exactly one. `None`: the tag is not the
    /// agent's.
    fn take_run(self) -> Option<(TaskTag, Option<u32>)> {
        self.is_ours().then(|| {
            let left = match self.remaining_runs() {
                ..=1 => TaskTag(0),
                _ => TaskTag(self.0 - TaskTag::ONE_RUN),
            };
            (
                left,
                (self.submission_place() != TaskTag::MANY).then_some(self.submission_place()),
            )
        })
    }
}

/// Records the submission of a task without the field.
pub fn submit_task(agent: StackParts<'_>, task: jobject, submission: SubmissionPlace) {
    let mut places = agent.stack.tasks.lock();
    // The table is full: the task must not continue at an earlier place.
    let place = places.place_index(submission).unwrap_or(TaskTag::MANY);
    let tag = agent.core.jvmti.get_tag(task).ok().map(TaskTag);
    if let Some(tag) = tag.and_then(|tag| tag.add_submission(place)) {
        // Fails if the VM has no memory for the tag. Then the task gets no origin.
        let _ = agent.core.jvmti.set_tag(task, tag.0);
    }
}

/// Undoes the last submission of a task without the field: the executor rejected it.
pub fn reject_task(agent: StackParts<'_>, task: jobject) {
    take_submission(agent, task);
}

/// What the tag of a task without the field says when the task starts to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskSubmission {
    /// It was not submitted, or another agent has tagged it.
    Unknown,
    /// At several places.
    Several,
    At(SubmissionPlace),
}

/// The context of the frame of `method` with slot `slot`, which runs a task that was submitted in the context
/// `number`. `None`: the task gets no origin.
pub fn task_context(
    agent: StackParts<'_>,
    state: &ThreadState,
    number: ContextId,
    (slot, method): (Slot, MethodId),
) -> Option<ContextId> {
    let begin = submission_context(agent, number)?;
    frame_context(agent, state, begin, slot, method.0)
}

/// As [`task_context`], for a task whose submitter is not known: never the context that started the thread.
pub fn unknown_task_context(
    agent: StackParts<'_>,
    state: &ThreadState,
    (slot, method): (Slot, MethodId),
) -> Option<ContextId> {
    if !agent.counters.tracking.is_lazy() {
        return None;
    }
    let frame = agent.stack.tasks.submission_frame(agent)?;
    let (
        root,
        MarkerFrame {
            method: caller,
            site,
        },
    ) = unknown_caller(agent)?;
    let encoder = &agent.core.encoder;
    let context = known_context(encoder.encode_call(root, site, caller, frame.method))?;
    frame_context(
        agent,
        state,
        SubmissionContext { context, frame },
        slot,
        method.0,
    )
}

/// Takes one run from the task's tag and returns its place.
pub fn take_submission(agent: StackParts<'_>, task: jobject) -> TaskSubmission {
    let places = agent.stack.tasks.lock();
    let tag = agent.core.jvmti.get_tag(task).ok();
    let Some((left, place)) = tag.and_then(|tag| TaskTag(tag).take_run()) else {
        return TaskSubmission::Unknown;
    };
    if agent.core.jvmti.set_tag(task, left.0).is_err() {
        return TaskSubmission::Unknown;
    }
    let place = place.and_then(|place| places.list.get(place as usize));
    place.map_or(TaskSubmission::Several, |(place, _)| {
        TaskSubmission::At(*place)
    })
}

/// The context of a thread's first frame, of `method`. It continues where the thread was started.
pub fn first_context(agent: StackParts<'_>, state: &ThreadState, method: MethodId) -> ContextId {
    let begun = (state.origin != ContextId::UNKNOWN)
        .then(|| submitted_context(agent, state.origin, method))
        .flatten();
    begun.unwrap_or_else(|| agent.core.encoder.root_context(method))
}

/// The context of a frame of `method` that continues where `number` was submitted.
pub fn submitted_context(
    agent: StackParts<'_>,
    number: ContextId,
    method: MethodId,
) -> Option<ContextId> {
    submission_context(agent, number)?.step_into(agent, method)
}

/// A separating frame and its context.
#[derive(Clone, Copy)]
struct SubmissionContext {
    context: ContextId,
    frame: MarkerFrame,
}

impl SubmissionContext {
    fn step_into(self, agent: StackParts<'_>, first: MethodId) -> Option<ContextId> {
        let MarkerFrame { method, site } = self.frame;
        known_context(
            agent
                .core
                .encoder
                .encode_call(self.context, site, method, first),
        )
    }
}

/// The separating frame of a task that was submitted at `number`.
fn submission_context(agent: StackParts<'_>, number: ContextId) -> Option<SubmissionContext> {
    if !agent.counters.tracking.is_lazy() {
        return None;
    }
    let between = agent.stack.tasks.submission_frame(agent)?;
    let place = {
        let mut places = agent.stack.tasks.lock();
        let Some(place) = places.place_index(SubmissionPlace::untagged(number)) else {
            increment_counter(&agent.stack.tasks.unfollowed);
            return None;
        };
        if let Some((_, Some(context))) = places.list.get(place as usize) {
            return Some(SubmissionContext {
                context: *context,
                frame: between,
            });
        }
        place
    };
    // Two threads may get here at once. Both compute the same context.
    let context = step_to_submission(agent, between, number)?;
    if let Some((_, known)) = agent.stack.tasks.lock().list.get_mut(place as usize) {
        *known = Some(context);
    }
    Some(SubmissionContext {
        context,
        frame: between,
    })
}

fn step_to_submission(
    agent: StackParts<'_>,
    between: MarkerFrame,
    number: ContextId,
) -> Option<ContextId> {
    let frames = agent
        .core
        .encoder
        .decode_context(number, MethodId::EVENT)
        .ok()?;
    let is_between = |frame: &&ContextFrame| frame.method == between.method;
    let (caller, leaf) = match frames.iter().filter(is_between).count() {
        0..MOST_HOPS => agent
            .core
            .encoder
            .find_caller(number, MethodId::EVENT)
            .ok()??,
        _ => truncate_submissions(agent, between, &frames)?,
    };
    known_context(
        agent
            .core
            .encoder
            .encode_call(caller, leaf.site, leaf.method, between.method),
    )
}

/// The context of the innermost of `frames`, built again from its own thread's frames alone.
///
/// If allocations are measured, the frames from the measurement on stay in the context. So a task belongs to its
/// measurement however often it was submitted.
fn truncate_submissions(
    agent: StackParts<'_>,
    between: MarkerFrame,
    frames: &[ContextFrame],
) -> Option<(ContextId, ContextFrame)> {
    let (own, others) = frames.split_at_checked(agent.stack.tasks.own_frame_count(frames))?;
    let mut own = own.iter().rev();
    let mut at = *own.next()?;
    let mut below: Option<(ContextId, ContextFrame)> = None;
    for frame in measured_frames(agent, between, others).iter().rev() {
        let context = match below {
            None => agent.core.encoder.root_context(frame.method),
            Some((caller, last)) => {
                agent
                    .core
                    .encoder
                    .encode_call(caller, last.site, last.method, frame.method)
            }
        };
        below = Some((known_context(context)?, *frame));
    }
    let context = match below {
        None => known_context(agent.core.encoder.root_context(between.method))?,
        Some((context, _)) => context,
    };
    let mut context = SubmissionContext {
        context,
        frame: between,
    }
    .step_into(agent, at.method)?;
    for frame in own {
        let next = agent
            .core
            .encoder
            .encode_call(context, at.site, at.method, frame.method);
        context = known_context(next)?;
        at = *frame;
    }
    Some((context, at))
}

/// Allocations are measured from the call sites of this method: `io.lucce.Allocations`.
pub const MEASURING: (&str, &str) = ("io/lucce/Allocations", "run");

/// The frames of submissions from the innermost measurement on, beginning with the separating frame before them.
/// Empty: nothing is measured.
fn measured_frames<'f>(
    agent: StackParts<'_>,
    between: MarkerFrame,
    frames: &'f [ContextFrame],
) -> &'f [ContextFrame] {
    let is_measured = |frame: &ContextFrame| is_measurement(agent, frame.method);
    let measurement = frames.iter().position(is_measured);
    let begin = measurement.and_then(|at| {
        let before = frames.get(..at)?;
        before
            .iter()
            .rposition(|frame| frame.method == between.method)
    });
    begin
        .and_then(|begin| frames.get(begin..))
        .unwrap_or_default()
}

fn is_measurement(agent: StackParts<'_>, method: MethodId) -> bool {
    let registry = agent.core.registry();
    let names = registry.method(method.0).and_then(|method| {
        let class = registry.class(method.class)?;
        Some((
            registry.name_text(class.name),
            registry.name_text(method.name),
        ))
    });
    names == Some(MEASURING)
}

/// The context of the frame of `method` with slot `slot`, if its thread's first frame continues from `begin`. `None`:
/// the caller of a frame is not known.
fn frame_context(
    agent: StackParts<'_>,
    state: &ThreadState,
    begin: SubmissionContext,
    slot: Slot,
    method: u32,
) -> Option<ContextId> {
    let methods = &agent.core.method_of_site;
    let of = |at: Slot| match at == slot {
        true => MethodId(method),
        false => MethodId(methods.get(at.site().0)),
    };
    let mut at = first_frame_slot(state, slot)?;
    let mut context = begin.step_into(agent, of(at))?;
    while at != slot {
        let next = at.above();
        context = known_context(agent.core.encoder.encode_call(
            context,
            at.site(),
            of(at),
            of(next),
        ))?;
        at = next;
    }
    Some(context)
}

/// The slot of the thread's first frame, at or below `slot`. `None`: a slot on the way has no site, or is lost.
fn first_frame_slot(state: &ThreadState, slot: Slot) -> Option<Slot> {
    let mut at = slot;
    while state.owns_slot(at) {
        let below = at.below();
        match below.site() {
            SiteId(0 | LOST | VM_ENTRY) => return None,
            SiteId::ENTRY => return Some(at),
            _ => at = below,
        }
    }
    None
}

pub fn known_context(context: ContextId) -> Option<ContextId> {
    (context != ContextId::UNKNOWN).then_some(context)
}

impl TaskOrigins {
    fn lock(&self) -> MutexGuard<'_, SubmissionPlaces> {
        self.places.lock()
    }

    /// The separating frame, registered at the first call. `None`: no ids are left.
    fn submission_frame(&self, agent: StackParts<'_>) -> Option<MarkerFrame> {
        *self
            .submission_frame
            .get_or_init(|| MarkerFrame::register(agent, SUBMITTED))
    }

    /// Whether this is the method of the separating frame.
    pub fn is_submission_frame(&self, method: MethodId) -> bool {
        let between = self.submission_frame.get().copied().flatten();
        between.is_some_and(|between| between.method == method)
    }

    /// The number of `frames`, innermost first, that belong to the thread itself.
    pub fn own_frame_count(&self, frames: &[ContextFrame]) -> usize {
        let between = self.submission_frame.get().copied().flatten();
        let end = between.and_then(|between| {
            frames
                .iter()
                .position(|frame| frame.method == between.method)
        });
        end.unwrap_or(frames.len())
    }
}

#[cfg(test)]
mod tasks_tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn a_task_goes_on_where_it_was_submitted_if_that_is_one_place() {
        let tag = TaskTag(0).add_submission(7).unwrap();
        assert_eq!(tag.take_run(), Some((TaskTag(0), Some(7))));
        let twice = tag.add_submission(7).unwrap();
        assert_eq!(twice.take_run(), Some((tag, Some(7))));
        let mixed = tag.add_submission(8).unwrap();
        let (left, place) = mixed.take_run().unwrap();
        assert_eq!(place, None);
        assert_eq!(left.take_run(), Some((TaskTag(0), None)));
        assert_eq!(TaskTag(0).take_run(), None);
    }

    #[test]
    fn tags_of_others_are_left_alone() {
        for foreign in [1, -1, i64::MIN, 1 << 61] {
            assert_eq!(TaskTag(foreign).add_submission(1), None);
            assert_eq!(TaskTag(foreign).take_run(), None);
        }
    }

    /// The oracle is a queue that stores who submitted each run. Whichever pending run starts first, the tag names
    /// its place or none.
    #[test]
    fn a_tag_never_names_the_place_of_another_run() {
        let mut random = 1_u64;
        let (mut tag, mut waiting) = (TaskTag(0), VecDeque::new());
        let mut named = 0;
        for _ in 0..100_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let choice = random >> 40;
            if choice % 5 < 2 && waiting.len() < 6 {
                let place = (choice / 5 % 8 / 7) as u32;
                tag = tag.add_submission(place).unwrap();
                waiting.push_back(place);
            } else if !waiting.is_empty() {
                let at = choice as usize / 5 % waiting.len();
                let place = waiting.remove(at).unwrap();
                let (left, submitted_at) = tag.take_run().unwrap();
                assert!(submitted_at.is_none_or(|submitted_at| submitted_at == place));
                named += u32::from(submitted_at.is_some());
                tag = left;
                assert_eq!(tag == TaskTag(0), waiting.is_empty());
            }
        }
        assert!(named > 10_000, "{named}");
    }

    #[test]
    fn there_is_room_for_so_many_places() {
        let mut places = SubmissionPlaces::default();
        for number in 0..MOST_PLACES {
            let number = ContextId(number as u64 + 5);
            let place = SubmissionPlace::untagged(number);
            assert_eq!(places.place_index(place), Some(number.0 as u32 - 5));
        }
        let at = |number| SubmissionPlace::untagged(ContextId(number));
        assert_eq!(places.place_index(at(1)), None);
        assert_eq!(places.place_index(at(5)), Some(0));
    }
}
