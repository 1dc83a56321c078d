//! Tasks of executors go on in the context that submitted them, and threads in the one that started them.
//!
//! An executor is given a task in one thread and runs it in another. In between the task carries the number
//! of the place where it was given: in a field that the agent adds to the two classes that almost all tasks
//! are instances of, otherwise in a tag of the object (JVMTI `SetTag`), which is weak. A task that was
//! submitted again from elsewhere before it ran could be run for either, so it goes on nowhere.
//!
//! The frame that runs the task gets a context of its own, put where the helper class keeps the memo of a
//! frame's context. It is worked out from the thread's first frame on, as all contexts are, but the row
//! begins where the task was submitted, and between the two stands a frame of a method that no program has:
//!
//! ```text
//! task … runWorker ← Worker.run ← Thread.run ← SUBMITTED ← execute ← … ← main
//! └── the thread's own stack, as the VM shows it ──┘         └── that of the submitting thread
//! ```
//!
//! What a thread does beside tasks goes on in the same way where the thread was started.
//!
//! So one number says both, and what shows a trace decides whether it ends at that frame. A task that
//! submits itself again would make the row longer for ever: behind [`MOST_HOPS`] it is cut off, and ends
//! with that frame. Only with `tracking=lazy`, as `context_scope`.
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{MutexGuard, OnceLock};

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::{ContextId, Frame, MethodId, SiteId};

use crate::book::{Loader, NO_LINE, NewClass};
use crate::memory::counter::count;
use crate::memory::locks::WatchedMutex;
use crate::memory::slots::{LOST, Slot};
use crate::stack::Stack;
use crate::thread::ThreadState;
use lucce_hooks::Shape;

/// The frame between a thread's own ones and those of the thread that submitted the task: the decoder has the names, too.
const SUBMITTED: (&str, &str) = ("java/lang/LucceRt$Tasks", "submitted");
/// Executors that a trace goes through.
const MOST_HOPS: usize = 8;
/// Places from which tasks go on: beyond, they do not.
const MOST_PLACES: usize = 1 << 16;

/// Where tasks were submitted.
#[derive(Default)]
pub struct Tasks {
    places: WatchedMutex<Places>,
    between: OnceLock<Option<Between>>,
    /// Runs of tasks that go on nowhere because there is no room for more places.
    pub unfollowed: AtomicU64,
}

/// The frame between.
#[derive(Clone, Copy)]
struct Between {
    method: MethodId,
    site: SiteId,
}

#[derive(Default)]
struct Places {
    by_number: HashMap<ContextId, u32>,
    /// The context of the frame between, once one was asked for.
    list: Vec<(ContextId, Option<ContextId>)>,
}

impl Places {
    /// A small number for a place. `None`: there are too many.
    fn index(&mut self, number: ContextId) -> Option<u32> {
        if let Some(known) = self.by_number.get(&number) {
            return Some(*known);
        }
        let next = self.list.len();
        (next < MOST_PLACES).then(|| {
            self.list.push((number, None));
            self.by_number.insert(number, next as u32);
            next as u32
        })
    }
}

/// The tag of a task that carries no field of ours.
///
/// ```text
/// 62     61          32 31         0
/// 1 | runs to come | index of the place, or MANY
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Tag(i64);

impl Tag {
    const OURS: i64 = 1 << 62;
    const ONE_RUN: i64 = 1 << 32;
    const MOST_RUNS: i64 = (1 << 30) - 1;
    const MANY: u32 = u32::MAX;

    fn place(self) -> u32 {
        self.0 as u32
    }

    /// A tag of the agent's: no negative number, and the bit is set.
    fn is_ours(self) -> bool {
        self.0 & Tag::OURS != 0 && self.0 > 0
    }

    fn runs(self) -> i64 {
        (self.0 & !Tag::OURS) >> 32
    }

    /// Submitted from a place. `None`: the tag is not ours, or counts no further.
    fn submitted(self, place: u32) -> Option<Tag> {
        if self.0 == 0 {
            return Some(Tag(Tag::OURS | Tag::ONE_RUN | i64::from(place)));
        }
        (self.is_ours() && self.runs() < Tag::MOST_RUNS).then(|| {
            let place = match self.place() == place {
                true => place,
                false => Tag::MANY,
            };
            Tag(Tag::OURS | ((self.runs() + 1) * Tag::ONE_RUN) | i64::from(place))
        })
    }

    /// Runs: the tag from now on, and the place if it is one.
    fn run(self) -> Option<(Tag, Option<u32>)> {
        self.is_ours().then(|| {
            let left = match self.runs() {
                ..=1 => Tag(0),
                _ => Tag(self.0 - Tag::ONE_RUN),
            };
            (left, (self.place() != Tag::MANY).then_some(self.place()))
        })
    }
}

/// A task without a field is submitted.
pub fn submitted(stack: &Stack, task: jobject, number: ContextId) {
    let mut places = stack.tasks.lock();
    // Too many places: the task must not go on where it was submitted before.
    let place = places.index(number).unwrap_or(Tag::MANY);
    let tag = stack.jvmti.tag(task).ok().map(Tag);
    if let Some(tag) = tag.and_then(|tag| tag.submitted(place)) {
        // On failure the VM has no memory for it, and the task goes on nowhere.
        let _ = stack.jvmti.set_tag(task, tag.0);
    }
}

/// A task without a field that was submitted just now is rejected: that run will not come.
pub fn rejected(stack: &Stack, task: jobject) {
    taken(stack, task);
}

/// Where a task was submitted that runs now. `carried`: what its field says; unknown if it has none. `None`: it was
/// submitted nowhere, or in several places.
pub fn number_of(stack: &Stack, task: jobject, carried: ContextId) -> Option<ContextId> {
    match carried {
        ContextId::UNKNOWN => taken(stack, task),
        number => Some(number),
    }
}

/// The context of the frame of `method` with slot `slot`, which runs a task that was submitted in the context `number`.
/// `None`: it goes on nowhere.
pub fn handed(
    stack: &Stack,
    state: &ThreadState,
    number: ContextId,
    (slot, method): (Slot, MethodId),
) -> Option<ContextId> {
    let begin = submitted_at(stack, number)?;
    frame(stack, state, begin, slot, method.0)
}

/// What the tag of a task says that runs now.
fn taken(stack: &Stack, task: jobject) -> Option<ContextId> {
    let places = stack.tasks.lock();
    let (left, place) = Tag(stack.jvmti.tag(task).ok()?).run()?;
    stack.jvmti.set_tag(task, left.0).ok()?;
    let (number, _) = places.list.get(place? as usize)?;
    Some(*number)
}

/// The context of a thread's first frame, of `method`: it goes on where the thread was started.
pub fn first(stack: &Stack, state: &ThreadState, method: MethodId) -> ContextId {
    let begun = (state.origin != ContextId::UNKNOWN)
        .then(|| submitted_at(stack, state.origin))
        .flatten()
        .and_then(|begin| begin.step(stack, method));
    begun.unwrap_or_else(|| stack.encoder.root(method))
}

/// The frame between, in a context.
#[derive(Clone, Copy)]
struct Begin {
    context: ContextId,
    between: Between,
}

impl Begin {
    fn step(self, stack: &Stack, first: MethodId) -> Option<ContextId> {
        let Between { method, site } = self.between;
        known(stack.encoder.step(self.context, site, method, first))
    }
}

/// The frame below which a task goes on that was submitted at `number`.
fn submitted_at(stack: &Stack, number: ContextId) -> Option<Begin> {
    if !stack.comparison.is_off() {
        return None;
    }
    let between = stack.tasks.between(stack)?;
    let place = {
        let mut places = stack.tasks.lock();
        let Some(place) = places.index(number) else {
            count(&stack.tasks.unfollowed);
            return None;
        };
        if let Some((_, Some(context))) = places.list.get(place as usize) {
            return Some(Begin {
                context: *context,
                between,
            });
        }
        place
    };
    // Two threads may get here at once: both find one context.
    let context = between_at(stack, between, number)?;
    if let Some((_, known)) = stack.tasks.lock().list.get_mut(place as usize) {
        *known = Some(context);
    }
    Some(Begin { context, between })
}

fn between_at(stack: &Stack, between: Between, number: ContextId) -> Option<ContextId> {
    let frames = stack.encoder.decode(number, MethodId::EVENT).ok()?;
    let is_between = |frame: &&Frame| frame.method == between.method;
    let (caller, leaf) = match frames.iter().filter(is_between).count() {
        0..MOST_HOPS => stack.encoder.caller(number, MethodId::EVENT).ok()??,
        _ => cut(stack, between, &frames)?,
    };
    known(
        stack
            .encoder
            .step(caller, leaf.site, leaf.method, between.method),
    )
}

/// The context of the innermost of `frames`, of which those of its own thread count.
///
/// Where allocations are measured, the frames from the measurement on count, too: whose a task is must be known however often
/// it was submitted.
fn cut(stack: &Stack, between: Between, frames: &[Frame]) -> Option<(ContextId, Frame)> {
    let (own, others) = frames.split_at_checked(stack.tasks.own(frames))?;
    let mut own = own.iter().rev();
    let mut at = *own.next()?;
    let mut below: Option<(ContextId, Frame)> = None;
    for frame in measured(stack, between, others).iter().rev() {
        let context = match below {
            None => stack.encoder.root(frame.method),
            Some((caller, last)) => {
                stack
                    .encoder
                    .step(caller, last.site, last.method, frame.method)
            }
        };
        below = Some((known(context)?, *frame));
    }
    let context = match below {
        None => known(stack.encoder.root(between.method))?,
        Some((context, _)) => context,
    };
    let mut context = Begin { context, between }.step(stack, at.method)?;
    for frame in own {
        let next = stack
            .encoder
            .step(context, at.site, at.method, frame.method);
        context = known(next)?;
        at = *frame;
    }
    Some((context, at))
}

/// The method from whose call sites allocations are measured: `io.lucce.Allocations`.
pub const MEASURING: (&str, &str) = ("io/lucce/Allocations", "run");

/// Of the frames of submissions those from the innermost measurement on, with the frame between before them; none: nothing is
/// measured.
fn measured<'f>(stack: &Stack, between: Between, frames: &'f [Frame]) -> &'f [Frame] {
    let is_measured = |frame: &Frame| is_measuring(stack, frame.method);
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

fn is_measuring(stack: &Stack, method: MethodId) -> bool {
    let book = stack.book();
    let names = book.method(method.0).and_then(|method| {
        let class = book.class(method.class)?;
        Some((book.text(class.name), book.text(method.name)))
    });
    names == Some(MEASURING)
}

/// The context of the frame of `method` with slot `slot`, if its thread's first frame goes on from `begin`.
/// `None`: the caller of one is not known.
fn frame(
    stack: &Stack,
    state: &ThreadState,
    begin: Begin,
    slot: Slot,
    method: u32,
) -> Option<ContextId> {
    let methods = &stack.method_of_site;
    let of = |at: Slot| match at == slot {
        true => MethodId(method),
        false => MethodId(methods.get(at.site().0)),
    };
    let mut at = bottom(state, slot)?;
    let mut context = begin.step(stack, of(at))?;
    while at != slot {
        let next = at.above();
        context = known(stack.encoder.step(context, at.site(), of(at), of(next)))?;
        at = next;
    }
    Some(context)
}

/// The slot of the first frame below the one with slot `slot`.
fn bottom(state: &ThreadState, slot: Slot) -> Option<Slot> {
    let mut at = slot;
    while state.owns(at) {
        let below = at.below();
        match below.site() {
            SiteId(0 | LOST) => return None,
            SiteId::ENTRY => return Some(at),
            _ => at = below,
        }
    }
    None
}

fn known(context: ContextId) -> Option<ContextId> {
    (context != ContextId::UNKNOWN).then_some(context)
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock()
    }

    /// `None`: no ids are left for it.
    fn between(&self, stack: &Stack) -> Option<Between> {
        *self.between.get_or_init(|| {
            let (class, method) = SUBMITTED;
            let ids = stack.book_mut().add(&NewClass {
                name: class,
                source: None,
                loader: Loader::BOOT,
                methods: &[(method, "()V", 0)],
                shapes: &[Shape::without_hooks(false)],
            })?;
            let site = stack.extra_site(ids.first_method, NO_LINE);
            (site != 0).then_some(Between {
                method: MethodId(ids.first_method),
                site: SiteId(site),
            })
        })
    }

    /// Whether it is the method of the frame between.
    pub fn is_between(&self, method: MethodId) -> bool {
        let between = self.between.get().copied().flatten();
        between.is_some_and(|between| between.method == method)
    }

    /// How many of a trace's `frames`, innermost first, are of the thread itself.
    pub fn own(&self, frames: &[Frame]) -> usize {
        let between = self.between.get().copied().flatten();
        let end = between.and_then(|between| {
            frames
                .iter()
                .position(|frame| frame.method == between.method)
        });
        end.unwrap_or(frames.len())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn a_task_goes_on_where_it_was_submitted_if_that_is_one_place() {
        let tag = Tag(0).submitted(7).unwrap();
        assert_eq!(tag.run(), Some((Tag(0), Some(7))));
        let twice = tag.submitted(7).unwrap();
        assert_eq!(twice.run(), Some((tag, Some(7))));
        let mixed = tag.submitted(8).unwrap();
        let (left, place) = mixed.run().unwrap();
        assert_eq!(place, None);
        assert_eq!(left.run(), Some((Tag(0), None)));
        assert_eq!(Tag(0).run(), None);
    }

    #[test]
    fn tags_of_others_are_left_alone() {
        for foreign in [1, -1, i64::MIN, 1 << 61] {
            assert_eq!(Tag(foreign).submitted(1), None);
            assert_eq!(Tag(foreign).run(), None);
        }
    }

    /// The oracle is a queue that knows who put each run into it: whichever of the waiting runs comes first,
    /// the tag says its place or nothing.
    #[test]
    fn a_tag_never_names_the_place_of_another_run() {
        let mut random = 1_u64;
        let (mut tag, mut waiting) = (Tag(0), VecDeque::new());
        let mut named = 0;
        for _ in 0..100_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let choice = random >> 40;
            if choice % 5 < 2 && waiting.len() < 6 {
                let place = (choice / 5 % 8 / 7) as u32;
                tag = tag.submitted(place).unwrap();
                waiting.push_back(place);
            } else if !waiting.is_empty() {
                let at = choice as usize / 5 % waiting.len();
                let place = waiting.remove(at).unwrap();
                let (left, said) = tag.run().unwrap();
                assert!(said.is_none_or(|said| said == place));
                named += u32::from(said.is_some());
                tag = left;
                assert_eq!(tag == Tag(0), waiting.is_empty());
            }
        }
        assert!(named > 10_000, "{named}");
    }

    #[test]
    fn there_is_room_for_so_many_places() {
        let mut places = Places::default();
        for number in 0..MOST_PLACES {
            let number = ContextId(number as u64 + 5);
            assert_eq!(places.index(number), Some(number.0 as u32 - 5));
        }
        assert_eq!(places.index(ContextId(1)), None);
        assert_eq!(places.index(ContextId(5)), Some(0));
    }
}
