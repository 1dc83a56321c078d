//! A thread without a JVM: what its hooks write, and what the VM would say of its frames. A plain stack is the oracle.
//!
//! Calls, returns, exceptions and frames that the VM enters by itself come in any order. Frames with hooks do here
//! what the helper class does: before a call they write their site and move the pointer up; entered by a call they
//! take the slot that the pointer names. Frames without hooks do nothing. What the VM enters, or code without
//! hooks calls, asks as `LucceRt.upcall` does.

use std::sync::Arc;

use lucce_callgraph::{MethodId, SiteId};
use proptest::prelude::*;

use crate::book::{Book, Loader, NewClass};
use crate::core::VerifyCountdown;
use crate::memory::map;
use crate::memory::slots::{LOST, Slot};
use crate::stack::frames::{Frame, Resolved};
use crate::stack::innermost;
use crate::stack::upcall;
use crate::stack::upcall::Stands;
use crate::thread::ThreadState;
use lucce_hooks::Shape;

const METHODS: u32 = 6;
const LINES: i64 = 3;

/// What a program does next.
#[derive(Clone, Debug)]
enum Step {
    /// The innermost frame calls a method.
    Call(u32),
    /// The VM enters a method with hooks in the middle of the innermost frame: a class initialiser, say.
    Enter(u32),
    /// The innermost frame calls a method that the VM enters, too, or the VM enters one in the middle of that call.
    CallEntered(u32),
    Return,
    /// An exception ends so many frames. Those that the VM has entered do not say so.
    Throw(usize),
    /// The innermost frame goes on to another line.
    Line(i64),
}

/// A frame of the plain stack.
#[derive(Clone, Copy, Debug)]
struct Plain {
    method: u32,
    location: i64,
    /// Whether the VM has entered it.
    entered: bool,
}

struct Thread {
    book: Book,
    first_method: u32,
    methods: Vec<Arc<Resolved>>,
    state: ThreadState,
    pointer: Slot,
    stack: Vec<Plain>,
}

/// Of each method: location and line.
fn lines() -> Vec<(i64, i32)> {
    (0..LINES).map(|at| (at, 10 + at as i32)).collect()
}

/// Every other method has hooks.
fn has_hooks(method: u32) -> bool {
    method.is_multiple_of(2)
}

impl Thread {
    /// `old` frames, all with hooks, are older than those: their slots hold no site.
    fn new(old: usize) -> Thread {
        let mut book = Book::default();
        let names: Vec<String> = (0..METHODS).map(|method| format!("m{method}")).collect();
        let methods: Vec<(&str, &str, u16)> =
            names.iter().map(|name| (name.as_str(), "()V", 0)).collect();
        let shapes: Vec<Shape> = (0..METHODS).map(|_| Shape::none()).collect();
        let ids = book.add(&NewClass {
            name: "a/B",
            source: None,
            loader: Loader::BOOT,
            methods: &methods,
            shapes: &shapes,
        });
        let first_method = ids.unwrap().first_method;
        let resolved = |method| {
            let id = MethodId(first_method + method);
            Arc::new(Resolved::simulated(id, has_hooks(method), lines()))
        };
        let region = map::shared().take(1 << 20).unwrap();
        let state = ThreadState::new(region, false, VerifyCountdown::new(0));
        // What an earlier thread has left.
        let first = state.first_slot();
        first
            .until(first.up(64))
            .for_each(|slot| slot.write(SiteId(0)));
        let old_frame = |at: usize| Plain {
            method: 2 * (at as u32 % (METHODS / 2)),
            location: at as i64 % LINES,
            entered: false,
        };
        Thread {
            book,
            first_method,
            methods: (0..METHODS).map(resolved).collect(),
            pointer: first.up(old),
            state,
            stack: (0..old).map(old_frame).collect(),
        }
    }

    /// What the VM says of the innermost `frames`.
    fn frames(&self, frames: usize) -> Vec<Frame> {
        let frame = |plain: &Plain| Frame {
            method: Arc::clone(&self.methods[plain.method as usize]),
            location: plain.location,
        };
        self.stack.iter().rev().take(frames).map(frame).collect()
    }

    fn stands(&self, plain: Plain) -> Stands {
        Stands {
            method: MethodId(self.first_method + plain.method),
            line: 10 + plain.location as i32,
        }
    }

    /// Where the frame's slot is: each frame below it has one by the time that it is asked for.
    fn slot(&self, depth: usize) -> Slot {
        self.state.first_slot().up(depth)
    }

    fn site(&mut self, stands: Stands) -> SiteId {
        SiteId(self.book.extra_site(stands.method.0, stands.line).unwrap())
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Call(method) => self.call(method),
            Step::Enter(method) => self.enter(method & !1),
            Step::CallEntered(method) => self.call_entered(method & !1),
            Step::Return => self.return_(),
            Step::Throw(frames) => {
                let left = self.stack.len().saturating_sub(frames);
                self.stack.truncate(left);
            }
            Step::Line(location) => {
                if let Some(top) = self.stack.last_mut() {
                    top.location = location;
                }
            }
        }
    }

    fn call(&mut self, method: u32) {
        let depth = self.stack.len();
        match self.stack.last().copied() {
            Some(caller) if has_hooks(caller.method) => {
                let site = self.site(self.stands(caller));
                let slot = self.slot(depth - 1);
                slot.write(site);
                self.pointer = slot.above();
            }
            Some(_) if has_hooks(method) => return self.enter(method),
            Some(_) => {}
            None => self.pointer = self.state.first_slot(),
        }
        if has_hooks(method) {
            assert_eq!(self.pointer, self.slot(depth), "the slot of what is called");
        }
        self.stack.push(Plain {
            method,
            location: 0,
            entered: false,
        });
    }

    /// The hook before the call has run: the caller's frame alone tells where the slot is.
    fn call_entered(&mut self, method: u32) {
        let depth = self.stack.len();
        let caller = self.stack.last().copied();
        let Some(caller) = caller.filter(|caller| has_hooks(caller.method)) else {
            return self.enter(method);
        };
        let site = self.site(self.stands(caller));
        self.slot(depth - 1).write(site);
        self.pointer = self.slot(depth);
        let frames = self.frames(1);
        let near = upcall::called_here(&self.book, &frames[0], self.pointer);
        let near = near.expect("the caller has said where it stands");
        let all = upcall::callers(&self.book, &self.state, &self.frames(usize::MAX)).unwrap();
        assert_eq!(
            (near.slot, near.innermost, near.missing),
            (all.slot, all.innermost, all.missing),
            "what the caller alone tells"
        );
        self.enter(method);
    }

    /// As `upcall::enter`.
    fn enter(&mut self, method: u32) {
        let all = self.frames(usize::MAX);
        let counted = upcall::callers(&self.book, &self.state, &all).expect("every slot is right");
        for many in [innermost::FEW, innermost::FRAMES] {
            let frames = self.frames(many);
            if let Some(near) = innermost::proven(&self.book, &self.state, &frames, self.pointer) {
                assert_eq!(
                    (near.slot, near.innermost, near.missing),
                    (counted.slot, counted.innermost, counted.missing.clone()),
                    "what the {many} innermost frames prove"
                );
            }
        }
        let book = &mut self.book;
        let slot = counted.begin(&self.state, (self.pointer, false), &mut |stands, site| {
            let said = book.site(site.0).is_some_and(|info| {
                info.method == stands.method.0 && book.line(&info) == stands.line
            });
            (!said).then(|| SiteId(book.extra_site(stands.method.0, stands.line).unwrap()))
        });
        assert_eq!(
            slot,
            self.slot(self.stack.len()),
            "the slot of what is entered"
        );
        self.compare(slot);
        self.pointer = slot;
        self.stack.push(Plain {
            method,
            location: 0,
            entered: true,
        });
    }

    fn return_(&mut self) {
        let Some(ended) = self.stack.pop() else {
            return;
        };
        if ended.entered {
            self.pointer = upcall::leave(&self.state, self.slot(self.stack.len()));
        }
    }

    /// The slots below `end` say what the plain stack says; those of old frames may say nothing.
    fn compare(&self, end: Slot) {
        let slots = self.state.first_slot().until(end);
        for (slot, plain) in slots.zip(&self.stack) {
            let site = slot.site();
            assert!(site != SiteId(LOST));
            if site != SiteId(0) {
                let info = self.book.site(site.0).unwrap();
                let said = (MethodId(info.method), self.book.line(&info));
                let stands = self.stands(*plain);
                assert_eq!(said, (stands.method, stands.line), "{:?}", self.stack);
            }
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..METHODS).prop_map(Step::Call),
        3 => (0..METHODS).prop_map(Step::Enter),
        2 => (0..METHODS).prop_map(Step::CallEntered),
        4 => Just(Step::Return),
        1 => (1..5_usize).prop_map(Step::Throw),
        2 => (0..LINES).prop_map(Step::Line),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// After any steps, each frame that the VM enters finds its slot, and below it stands the plain stack.
    #[test]
    fn slots_say_what_the_stack_is(old in 0..6_usize, steps in steps()) {
        let mut thread = Thread::new(old);
        for step in &steps {
            thread.step(step);
        }
        map::shared().give(thread.state.region);
    }

    /// Slots of frames that are older than the hooks get their sites when somebody asks.
    #[test]
    fn old_frames_get_their_sites(old in 1..6_usize, steps in steps()) {
        let mut thread = Thread::new(old);
        for step in &steps {
            thread.step(step);
        }
        let frames = thread.frames(usize::MAX);
        let found = upcall::callers(&thread.book, &thread.state, &frames).unwrap();
        if found.innermost.is_some() {
            let book = &mut thread.book;
            found.repair(found.slot.below(), &mut |stands, _| {
                book.extra_site(stands.method.0, stands.line).map(SiteId)
            });
            let first = thread.state.first_slot();
            let below = first.until(found.slot.below());
            let bare = below.filter(|slot| slot.site() == SiteId(0)).count();
            prop_assert_eq!(bare, 0);
            thread.compare(found.slot.below());
        }
        map::shared().give(thread.state.region);
    }
}

/// A pointer that was left too high by calls that are over, where the same methods stand at the same lines, proves nothing.
#[test]
fn recursion_that_is_over_proves_nothing() {
    let mut thread = Thread::new(0);
    for _ in 0..12 {
        thread.step(&Step::Call(0));
    }
    (0..4).for_each(|_| thread.step(&Step::Return));
    for many in [innermost::FEW, innermost::FRAMES] {
        let frames = thread.frames(many);
        let found = innermost::proven(&thread.book, &thread.state, &frames, thread.pointer);
        assert!(found.is_none(), "{many} frames");
    }
    thread.step(&Step::Enter(2));
}

/// A frame that the VM has entered is ended by an exception, and has left the pointer above its slot. The next one that
/// the VM enters at the same place puts the pointer back to where it was before both.
#[test]
fn the_pointer_is_put_back_behind_a_frame_that_threw() {
    let mut thread = Thread::new(0);
    thread.step(&Step::Call(0));
    let before = thread.pointer;
    assert_eq!(before, thread.slot(0), "the frame has called nothing");
    for step in [Step::Enter(2), Step::Call(4), Step::Throw(2)] {
        thread.step(&step);
    }
    assert!(thread.pointer > thread.slot(1));
    thread.step(&Step::Enter(4));
    thread.step(&Step::Call(2));
    thread.step(&Step::Return);
    thread.step(&Step::Return);
    assert_eq!(thread.pointer, before);
    map::shared().give(thread.state.region);
}

/// The VM enters the constructor of an error of its own in the middle of a native, and asks for no slot: the slots from there on say
/// nothing, and where each frame stands is known all the same.
#[test]
fn frames_of_an_error_that_the_vm_makes_have_callers() {
    let mut thread = Thread::new(0);
    for method in [0, 2, 1] {
        thread.step(&Step::Call(method));
    }
    // As code that is called: it takes the slot that the pointer names, which is the native's.
    for method in [4, 0] {
        let entered = Plain {
            method,
            location: 0,
            entered: false,
        };
        thread.stack.push(entered);
        let site = thread.site(thread.stands(entered));
        thread.pointer.write(site);
        thread.pointer = thread.pointer.above();
    }
    let told = |thread: &Thread| {
        let frames = thread.frames(usize::MAX);
        let all = upcall::all_callers(&thread.book, &thread.state, &frames);
        all.map(|all| (all.slot, all.innermost, all.missing, all.whole))
    };
    assert!(told(&thread).is_none(), "no frame is an error's");
    let id = MethodId(thread.first_method + 4);
    let mut constructor = Resolved::simulated(id, true, lines());
    constructor.class_name = "java/lang/NoSuchMethodError".into();
    constructor.method_name = "<init>".into();
    thread.methods[4] = Arc::new(constructor);
    let stand = |at: usize| thread.stands(thread.stack[at]);
    let expected = (
        thread.slot(2),
        Some(stand(1)),
        vec![stand(2), stand(3), stand(4)],
        true,
    );
    assert_eq!(told(&thread), Some(expected));
    map::shared().give(thread.state.region);
}
