//! A thread without a JVM: its slots as hooks write them, and its frames as the VM would report them. A plain stack
//! is the oracle.
//!
//! Calls, returns, exceptions and VM entries come in any order. Frames with hooks do what the helper class does.
//! Before a call they write their site and move the pointer up. When they are called, they use the slot that the
//! pointer names. Frames without hooks do nothing. A VM entry, and a callee of code without hooks, ask for their slot
//! like `LucceRtVmEntries.enterVm`.

use std::sync::Arc;

use lucce_callgraph::{MethodId, SiteId};
use proptest::prelude::*;

use crate::core::VerifyCountdown;
use crate::memory::address_space;
use crate::memory::slots::{LOST, Slot};
use crate::registry::{ClassDefinition, ClassLoaderId, CodeRegistry};
use crate::stack::caller_frames::{self, VmFramePosition};
use crate::stack::frames::{ResolvedFrame, ResolvedMethod};
use crate::stack::innermost_frames;
use crate::stack::vm_entry;
use crate::thread::ThreadState;
use lucce_instrument::MethodInstrumentation;

const METHODS: u32 = 6;
const LINES: i64 = 3;

/// The next step of a program.
#[derive(Clone, Debug)]
enum SimulatedStep {
    /// The innermost frame calls a method.
    Call(u32),
    /// The VM enters a method with hooks in the middle of the innermost frame, such as a class initialiser.
    Enter(u32),
    /// The innermost frame calls a method that can be a VM entry; or the VM enters one in the middle of that call.
    CallEntered(u32),
    Return,
    /// An exception ends this number of frames. VM entries among them do not run their exit hook.
    Throw(usize),
    /// The innermost frame moves to another line.
    Line(i64),
}

/// A frame of the plain stack.
#[derive(Clone, Copy, Debug)]
struct SimulatedFrame {
    method: u32,
    location: i64,
    /// Whether the frame is a VM entry.
    entered: bool,
}

struct SimulatedThread {
    registry: CodeRegistry,
    first_method: u32,
    methods: Vec<Arc<ResolvedMethod>>,
    state: ThreadState,
    pointer: Slot,
    stack: Vec<SimulatedFrame>,
}

/// Location and line, for each method.
fn method_lines() -> Vec<(i64, i32)> {
    (0..LINES).map(|at| (at, 10 + at as i32)).collect()
}

/// Every other method has hooks.
fn has_hooks(method: u32) -> bool {
    method.is_multiple_of(2)
}

impl SimulatedThread {
    /// A thread with `old` frames that are older than the hooks: their methods have hooks, and their slots hold no
    /// site.
    fn new(old: usize) -> SimulatedThread {
        let mut registry = CodeRegistry::default();
        let names: Vec<String> = (0..METHODS).map(|method| format!("m{method}")).collect();
        let methods: Vec<(&str, &str, u16)> =
            names.iter().map(|name| (name.as_str(), "()V", 0)).collect();
        let instrumentations: Vec<MethodInstrumentation> = (0..METHODS)
            .map(|_| MethodInstrumentation::empty())
            .collect();
        let ids = registry.add_class(&ClassDefinition {
            name: "a/B",
            source: None,
            loader: ClassLoaderId::BOOT,
            methods: &methods,
            instrumentations: &instrumentations,
        });
        let first_method = ids.unwrap().first_method;
        let resolved = |method| {
            let id = MethodId(first_method + method);
            Arc::new(ResolvedMethod::new_simulated(
                id,
                has_hooks(method),
                method_lines(),
            ))
        };
        let region = address_space::shared_stacks().take_region(1 << 20).unwrap();
        let state = ThreadState::new(region, false, VerifyCountdown::new(0));
        // The remains of an earlier thread.
        let first = state.first_slot();
        first
            .slots_until(first.up_by(64))
            .for_each(|slot| slot.write_site(SiteId(0)));
        let old_frame = |at: usize| SimulatedFrame {
            method: 2 * (at as u32 % (METHODS / 2)),
            location: at as i64 % LINES,
            entered: false,
        };
        SimulatedThread {
            registry,
            first_method,
            methods: (0..METHODS).map(resolved).collect(),
            pointer: first.up_by(old),
            state,
            stack: (0..old).map(old_frame).collect(),
        }
    }

    /// The innermost `frames`, as the VM reports them.
    fn innermost_frames(&self, frames: usize) -> Vec<ResolvedFrame> {
        let frame = |plain: &SimulatedFrame| ResolvedFrame {
            method: Arc::clone(&self.methods[plain.method as usize]),
            location: plain.location,
        };
        self.stack.iter().rev().take(frames).map(frame).collect()
    }

    fn frame_position(&self, plain: SimulatedFrame) -> VmFramePosition {
        VmFramePosition {
            method: MethodId(self.first_method + plain.method),
            line: 10 + plain.location as i32,
        }
    }

    /// The frame's slot. Each frame below it has a slot by the time of the query.
    fn frame_slot(&self, depth: usize) -> Slot {
        self.state.first_slot().up_by(depth)
    }

    fn site_at(&mut self, position: VmFramePosition) -> SiteId {
        SiteId(
            self.registry
                .resolve_line_site(position.method.0, position.line)
                .unwrap(),
        )
    }

    fn run_step(&mut self, step: &SimulatedStep) {
        match *step {
            SimulatedStep::Call(method) => self.call_method(method),
            SimulatedStep::Enter(method) => self.enter_method(method & !1),
            SimulatedStep::CallEntered(method) => self.call_entered_method(method & !1),
            SimulatedStep::Return => self.return_from_method(),
            SimulatedStep::Throw(frames) => {
                let left = self.stack.len().saturating_sub(frames);
                self.stack.truncate(left);
            }
            SimulatedStep::Line(location) => {
                if let Some(top) = self.stack.last_mut() {
                    top.location = location;
                }
            }
        }
    }

    fn call_method(&mut self, method: u32) {
        let depth = self.stack.len();
        match self.stack.last().copied() {
            Some(caller) if has_hooks(caller.method) => {
                let site = self.site_at(self.frame_position(caller));
                let slot = self.frame_slot(depth - 1);
                slot.write_site(site);
                self.pointer = slot.above();
            }
            Some(_) if has_hooks(method) => return self.enter_method(method),
            Some(_) => {}
            None => self.pointer = self.state.first_slot(),
        }
        if has_hooks(method) {
            assert_eq!(
                self.pointer,
                self.frame_slot(depth),
                "the slot of what is called"
            );
        }
        self.stack.push(SimulatedFrame {
            method,
            location: 0,
            entered: false,
        });
    }

    /// The hook before the call has run, so the caller's frame alone proves the slot.
    fn call_entered_method(&mut self, method: u32) {
        let depth = self.stack.len();
        let caller = self.stack.last().copied();
        let Some(caller) = caller.filter(|caller| has_hooks(caller.method)) else {
            return self.enter_method(method);
        };
        let site = self.site_at(self.frame_position(caller));
        self.frame_slot(depth - 1).write_site(site);
        self.pointer = self.frame_slot(depth);
        let frames = self.innermost_frames(1);
        let near = caller_frames::callers_at_call(&self.registry, &frames[0], self.pointer);
        let near = near.expect("the caller has said where it stands");
        let all = caller_frames::match_callers(
            &self.registry,
            &self.state,
            &self.innermost_frames(usize::MAX),
        )
        .unwrap();
        assert_eq!(
            (near.slot, near.innermost, near.missing),
            (all.slot, all.innermost, all.missing),
            "what the caller alone tells"
        );
        self.enter_method(method);
    }

    /// Does what `vm_entry::enter_frame` does.
    fn enter_method(&mut self, method: u32) {
        let all = self.innermost_frames(usize::MAX);
        let counted = caller_frames::match_callers(&self.registry, &self.state, &all)
            .expect("every slot is right");
        for many in [
            innermost_frames::FIRST_FRAMES,
            innermost_frames::MOST_FRAMES,
        ] {
            let frames = self.innermost_frames(many);
            if let Some(near) =
                innermost_frames::prove_callers(&self.registry, &self.state, &frames, self.pointer)
            {
                assert_eq!(
                    (near.slot, near.innermost, near.missing),
                    (counted.slot, counted.innermost, counted.missing.clone()),
                    "what the {many} innermost frames prove"
                );
            }
        }
        let registry = &mut self.registry;
        let slot =
            counted.begin_entry(&self.state, (self.pointer, false), &mut |position, site| {
                let is_same_line = registry.site(site.0).is_some_and(|info| {
                    info.method == position.method.0
                        && registry.line_of_site(&info) == position.line
                });
                (!is_same_line).then(|| {
                    SiteId(
                        registry
                            .resolve_line_site(position.method.0, position.line)
                            .unwrap(),
                    )
                })
            });
        assert_eq!(
            slot,
            self.frame_slot(self.stack.len()),
            "the slot of what is entered"
        );
        self.compare_slots(slot);
        self.pointer = slot;
        self.stack.push(SimulatedFrame {
            method,
            location: 0,
            entered: true,
        });
    }

    fn return_from_method(&mut self) {
        let Some(ended) = self.stack.pop() else {
            return;
        };
        if ended.entered {
            self.pointer = vm_entry::leave_frame(&self.state, self.frame_slot(self.stack.len()));
        }
    }

    /// The slots below `end` agree with the plain stack; slots of old frames may hold no site.
    fn compare_slots(&self, end: Slot) {
        let slots = self.state.first_slot().slots_until(end);
        for (slot, plain) in slots.zip(&self.stack) {
            let site = slot.site();
            assert!(site != SiteId(LOST));
            if site != SiteId(0) {
                let info = self.registry.site(site.0).unwrap();
                let site_position = (MethodId(info.method), self.registry.line_of_site(&info));
                let position = self.frame_position(*plain);
                assert_eq!(
                    site_position,
                    (position.method, position.line),
                    "{:?}",
                    self.stack
                );
            }
        }
    }
}

fn step_sequences() -> impl Strategy<Value = Vec<SimulatedStep>> {
    let step = prop_oneof![
        6 => (0..METHODS).prop_map(SimulatedStep::Call),
        3 => (0..METHODS).prop_map(SimulatedStep::Enter),
        2 => (0..METHODS).prop_map(SimulatedStep::CallEntered),
        4 => Just(SimulatedStep::Return),
        1 => (1..5_usize).prop_map(SimulatedStep::Throw),
        2 => (0..LINES).prop_map(SimulatedStep::Line),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// After any steps, each VM entry finds its slot, and the slots below it agree with the plain stack.
    #[test]
    fn slots_say_what_the_stack_is(old in 0..6_usize, steps in step_sequences()) {
        let mut thread = SimulatedThread::new(old);
        for step in &steps {
            thread.run_step(step);
        }
        address_space::shared_stacks().return_region(thread.state.region);
    }

    /// Slots of frames older than the hooks get their sites at a query.
    #[test]
    fn old_frames_get_their_sites(old in 1..6_usize, steps in step_sequences()) {
        let mut thread = SimulatedThread::new(old);
        for step in &steps {
            thread.run_step(step);
        }
        let frames = thread.innermost_frames(usize::MAX);
        let callers = caller_frames::match_callers(&thread.registry, &thread.state, &frames).unwrap();
        if callers.innermost.is_some() {
            let registry = &mut thread.registry;
            callers.repair_sites(callers.slot.below(), &mut |position, _| {
                registry.resolve_line_site(position.method.0, position.line).map(SiteId)
            });
            let first = thread.state.first_slot();
            let below = first.slots_until(callers.slot.below());
            let bare = below.filter(|slot| slot.site() == SiteId(0)).count();
            prop_assert_eq!(bare, 0);
            thread.compare_slots(callers.slot.below());
        }
        address_space::shared_stacks().return_region(thread.state.region);
    }
}

/// Finished calls left the pointer too high, with the same methods at the same lines. Such a pointer proves nothing.
#[test]
fn recursion_that_is_over_proves_nothing() {
    let mut thread = SimulatedThread::new(0);
    for _ in 0..12 {
        thread.run_step(&SimulatedStep::Call(0));
    }
    (0..4).for_each(|_| thread.run_step(&SimulatedStep::Return));
    for many in [
        innermost_frames::FIRST_FRAMES,
        innermost_frames::MOST_FRAMES,
    ] {
        let frames = thread.innermost_frames(many);
        let callers = innermost_frames::prove_callers(
            &thread.registry,
            &thread.state,
            &frames,
            thread.pointer,
        );
        assert!(callers.is_none(), "{many} frames");
    }
    thread.run_step(&SimulatedStep::Enter(2));
}

/// An exception ends a VM entry, which has left the pointer above its slot. The next VM entry at the same place
/// restores the pointer from before both.
#[test]
fn the_pointer_is_put_back_behind_a_frame_that_threw() {
    let mut thread = SimulatedThread::new(0);
    thread.run_step(&SimulatedStep::Call(0));
    let before = thread.pointer;
    assert_eq!(before, thread.frame_slot(0), "the frame has called nothing");
    for step in [
        SimulatedStep::Enter(2),
        SimulatedStep::Call(4),
        SimulatedStep::Throw(2),
    ] {
        thread.run_step(&step);
    }
    assert!(thread.pointer > thread.frame_slot(1));
    thread.run_step(&SimulatedStep::Enter(4));
    thread.run_step(&SimulatedStep::Call(2));
    thread.run_step(&SimulatedStep::Return);
    thread.run_step(&SimulatedStep::Return);
    assert_eq!(thread.pointer, before);
    address_space::shared_stacks().return_region(thread.state.region);
}

/// The VM enters the constructor of its own error in the middle of a native method and asks for no slot. The slots
/// from there on hold nothing, but the position of each frame is known.
#[test]
fn frames_of_an_error_that_the_vm_makes_have_callers() {
    let mut thread = SimulatedThread::new(0);
    for method in [0, 2, 1] {
        thread.run_step(&SimulatedStep::Call(method));
    }
    // Like called code, it uses the slot that the pointer names, which is the native method's.
    for method in [4, 0] {
        let entered = SimulatedFrame {
            method,
            location: 0,
            entered: false,
        };
        thread.stack.push(entered);
        let site = thread.site_at(thread.frame_position(entered));
        thread.pointer.write_site(site);
        thread.pointer = thread.pointer.above();
    }
    let traced = |thread: &SimulatedThread| {
        let frames = thread.innermost_frames(usize::MAX);
        let all = caller_frames::match_all_callers(&thread.registry, &thread.state, &frames, 0);
        all.map(|all| (all.slot, all.innermost, all.missing, all.is_complete))
    };
    assert!(traced(&thread).is_none(), "no frame is an error's");
    let id = MethodId(thread.first_method + 4);
    let mut constructor = ResolvedMethod::new_simulated(id, true, method_lines());
    constructor.class_name = "java/lang/NoSuchMethodError".into();
    constructor.method_name = "<init>".into();
    thread.methods[4] = Arc::new(constructor);
    let stand = |at: usize| thread.frame_position(thread.stack[at]);
    let expected = (
        thread.frame_slot(2),
        Some(stand(1)),
        vec![stand(2), stand(3), stand(4)],
        true,
    );
    assert_eq!(traced(&thread), Some(expected));
    address_space::shared_stacks().return_region(thread.state.region);
}
