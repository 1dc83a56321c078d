//! A thread without a JVM whose library code has no hooks, as with `instrument=app`. A plain stack is the oracle for what
//! the frames and the slots of deferred VM entries say together.

use std::sync::Arc;

use lucce_callgraph::{MethodId, SiteId};
use lucce_instrument::MethodInstrumentation;
use proptest::prelude::*;

use crate::core::VerifyCountdown;
use crate::memory::address_space;
use crate::memory::slots::{Slot, VM_ENTRY};
use crate::registry::{ClassDefinition, ClassLoaderId, CodeRegistry};
use crate::stack::caller_frames::{
    EventPlace, VmFramePosition, match_callers, match_outer_callers,
};
use crate::stack::deferred_entries::{DEFERRING_PART, defer_at, has_room};
use crate::stack::frames::{ResolvedFrame, ResolvedMethod};
use crate::stack::slot_runs::{DeferredEntry, count_deferrable};
use crate::stack::vm_entry;
use crate::thread::ThreadState;

const METHODS: u32 = 3;
const LINES: i64 = 3;

#[derive(Clone, Debug)]
enum SimulatedStep {
    /// The innermost frame calls a method of the program.
    Call(u32),
    /// It calls a library method.
    CallLibrary,
    /// It calls a library method that can be a VM entry.
    CallEntered,
    /// The VM enters a library method in the middle of the innermost frame.
    Enter,
    /// The VM enters a method of the program there, such as a class initialiser.
    EnterProgram(u32),
    Return,
    /// An exception ends this number of frames, whose handlers run.
    Throw(usize),
    /// This number of frames ends without handlers.
    Vanish(usize),
    Line(i64),
}

#[derive(Clone, Copy, Debug)]
enum SimulatedFrame {
    Program {
        method: u32,
        location: i64,
        slot: Slot,
        /// For a deferred VM entry: the thread's pointer before it.
        before: Option<Slot>,
    },
    /// With the thread's pointer at its entry.
    Library(Slot),
    /// A deferred VM entry: its slot, and the thread's pointer before it.
    Entry(Slot, Slot),
}

struct SimulatedThread {
    registry: CodeRegistry,
    first_method: u32,
    methods: Vec<Arc<ResolvedMethod>>,
    /// The same methods, entered by the VM.
    entered: Vec<Arc<ResolvedMethod>>,
    library: Arc<ResolvedMethod>,
    state: ThreadState,
    pointer: Slot,
    stack: Vec<SimulatedFrame>,
}

/// The location in a library method from which a frame is a VM entry.
const ENTERED: i64 = 1;

impl SimulatedThread {
    fn new() -> SimulatedThread {
        let mut registry = CodeRegistry::default();
        let names: Vec<String> = (0..=METHODS).map(|method| format!("m{method}")).collect();
        let methods: Vec<(&str, &str, u16)> =
            names.iter().map(|name| (name.as_str(), "()V", 0)).collect();
        let instrumentations = vec![MethodInstrumentation::empty(); methods.len()];
        let ids = registry.add_class(&ClassDefinition {
            name: "a/B",
            source: None,
            loader: ClassLoaderId::BOOT,
            methods: &methods,
            instrumentations: &instrumentations,
        });
        let first_method = ids.unwrap().first_method;
        let lines: Vec<(i64, i32)> = (0..LINES).map(|at| (at, 10 + at as i32)).collect();
        let resolved = |method| {
            ResolvedMethod::new_simulated(MethodId(first_method + method), true, lines.clone())
        };
        let region = address_space::shared_stacks().take_region(1 << 20).unwrap();
        let state = ThreadState::new(region, false, VerifyCountdown::new(0));
        SimulatedThread {
            methods: (0..METHODS).map(|id| Arc::new(resolved(id))).collect(),
            entered: (0..METHODS)
                .map(|id| Arc::new(resolved(id).into_deferrable(0)))
                .collect(),
            library: Arc::new(resolved(METHODS).into_deferrable(ENTERED).into_hidden()),
            registry,
            first_method,
            pointer: state.first_slot(),
            state,
            stack: Vec::new(),
        }
    }

    fn frames(&self) -> Vec<ResolvedFrame> {
        let frame = |simulated: &SimulatedFrame| match *simulated {
            SimulatedFrame::Program {
                method,
                location,
                before,
                ..
            } => ResolvedFrame {
                method: Arc::clone(match before {
                    Some(_) => &self.entered[method as usize],
                    None => &self.methods[method as usize],
                }),
                location,
            },
            SimulatedFrame::Library(_) => ResolvedFrame {
                method: Arc::clone(&self.library),
                location: ENTERED - 1,
            },
            SimulatedFrame::Entry(..) => ResolvedFrame {
                method: Arc::clone(&self.library),
                location: ENTERED,
            },
        };
        self.stack.iter().rev().map(frame).collect()
    }

    fn position(&self, method: u32, location: i64) -> VmFramePosition {
        VmFramePosition {
            method: MethodId(self.first_method + method),
            line: 10 + location as i32,
        }
    }

    fn run_step(&mut self, step: &SimulatedStep) {
        match *step {
            SimulatedStep::Call(method) => {
                self.publish_call();
                let slot = self.pointer;
                self.stack.push(SimulatedFrame::Program {
                    method,
                    location: 0,
                    slot,
                    before: None,
                });
            }
            SimulatedStep::EnterProgram(method) => {
                let before = self.pointer;
                self.pointer = defer_at(&self.state, before);
                self.stack.push(SimulatedFrame::Program {
                    method,
                    location: 0,
                    slot: self.pointer,
                    before: Some(before),
                });
            }
            SimulatedStep::CallLibrary => {
                self.publish_call();
                self.stack.push(SimulatedFrame::Library(self.pointer));
            }
            SimulatedStep::CallEntered => {
                self.publish_call();
                self.enter_library();
            }
            SimulatedStep::Enter => self.enter_library(),
            SimulatedStep::Return => self.end_frame(),
            SimulatedStep::Throw(frames) => (0..frames).for_each(|_| self.end_frame()),
            SimulatedStep::Vanish(frames) => {
                let left = self.stack.len().saturating_sub(frames);
                self.stack.truncate(left);
                // Library code that creates objects of the program restores the pointer.
                if let Some(SimulatedFrame::Library(pointer)) = self.stack.last() {
                    self.pointer = *pointer;
                }
            }
            SimulatedStep::Line(line) => {
                if let Some(SimulatedFrame::Program { location, .. }) = self.stack.last_mut() {
                    *location = line;
                }
            }
        }
    }

    /// The hook before a call. Library code restores the pointer, or has not changed it.
    fn publish_call(&mut self) {
        match self.stack.last().copied() {
            Some(SimulatedFrame::Program {
                method,
                location,
                slot,
                ..
            }) => {
                let VmFramePosition { method, line } = self.position(method, location);
                let site = self.registry.resolve_line_site(method.0, line).unwrap();
                slot.write_site(SiteId(site));
                self.pointer = slot.above();
            }
            Some(SimulatedFrame::Library(pointer)) => self.pointer = pointer,
            Some(SimulatedFrame::Entry(slot, _)) => self.pointer = slot,
            None => self.pointer = self.state.first_slot(),
        }
    }

    fn enter_library(&mut self) {
        assert!(has_room(&self.state, self.pointer));
        let slot = defer_at(&self.state, self.pointer);
        self.stack.push(SimulatedFrame::Entry(slot, self.pointer));
        self.pointer = slot;
    }

    fn end_frame(&mut self) {
        match self.stack.pop() {
            Some(SimulatedFrame::Program {
                slot, before: None, ..
            }) => self.pointer = slot,
            Some(
                SimulatedFrame::Entry(slot, before)
                | SimulatedFrame::Program {
                    slot,
                    before: Some(before),
                    ..
                },
            ) => {
                self.pointer = vm_entry::leave_frame(&self.state, slot);
                // An entry that vanished may have taken this one with it.
                assert!(self.pointer == before || self.pointer == slot);
            }
            Some(SimulatedFrame::Library(_)) | None => {}
        }
    }

    /// Compares what frames and slots say with the plain stack. Returns whether they say something.
    fn compare(&self) -> bool {
        let frames = self.frames();
        let Some(callers) = match_callers(&self.registry, &self.state, &frames) else {
            return false;
        };
        let innermost = self.stack.iter().rev().find_map(|frame| match *frame {
            SimulatedFrame::Program {
                method,
                location,
                slot,
                ..
            } => Some((self.position(method, location), slot.above())),
            _ => None,
        });
        let above = innermost.map_or(self.state.first_slot(), |(_, above)| above);
        assert_eq!(callers.innermost, innermost.map(|(position, _)| position));
        assert_eq!(callers.slot, above);
        assert!(callers.missing.is_empty() && callers.is_complete);
        let index = |at: usize| self.stack.len() - 1 - at;
        // An entry counts if a frame of the program is between it and the next entry, or if none is above it.
        let mut deferred = Vec::new();
        let mut last = None;
        for (at, frame) in self.stack.iter().enumerate() {
            match *frame {
                SimulatedFrame::Entry(slot, _) => {
                    last = Some(DeferredEntry {
                        slot,
                        caller: index(at) + 1,
                    });
                }
                SimulatedFrame::Program {
                    slot,
                    before: Some(_),
                    ..
                } => {
                    last = None;
                    deferred.push(DeferredEntry {
                        slot,
                        caller: index(at) + 1,
                    });
                }
                SimulatedFrame::Program { .. } => deferred.extend(last.take()),
                SimulatedFrame::Library(_) => {}
            }
        }
        let free = last.map_or(above, |entry| entry.slot);
        deferred.extend(last);
        assert_eq!((callers.free, callers.unfilled), (free, 0));
        assert_eq!(callers.deferred, deferred);
        // The callers of each entry are those of its time.
        for (at, entry) in deferred.iter().enumerate() {
            let below = &frames[entry.caller..];
            let inner = self.state.deferrable_entries().len() - count_deferrable(below);
            let below = match_outer_callers(&self.registry, &self.state, below, inner).unwrap();
            let innermost = self.stack[..self.stack.len() - entry.caller]
                .iter()
                .rev()
                .find_map(|frame| match *frame {
                    SimulatedFrame::Program { slot, .. } => Some(slot.above()),
                    _ => None,
                });
            assert_eq!(below.slot, innermost.unwrap_or(self.state.first_slot()));
            assert!(below.deferred.len() <= at + 1);
        }
        true
    }

    fn return_region(self) {
        address_space::shared_stacks().return_region(self.state.region);
    }
}

fn step_sequences(vanishes: bool) -> impl Strategy<Value = Vec<SimulatedStep>> {
    let step = prop_oneof![
        6 => (0..METHODS).prop_map(SimulatedStep::Call),
        2 => Just(SimulatedStep::CallLibrary),
        2 => Just(SimulatedStep::CallEntered),
        3 => Just(SimulatedStep::Enter),
        2 => (0..METHODS).prop_map(SimulatedStep::EnterProgram),
        4 => Just(SimulatedStep::Return),
        1 => (1..5_usize).prop_map(move |frames| match vanishes {
            true => SimulatedStep::Vanish(frames),
            false => SimulatedStep::Throw(frames),
        }),
        2 => (0..LINES).prop_map(SimulatedStep::Line),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// After any steps, frames and slots say what the stack is.
    #[test]
    fn deferred_entries_are_matched(steps in step_sequences(false)) {
        let mut thread = SimulatedThread::new();
        for step in &steps {
            thread.run_step(step);
            prop_assert!(thread.compare(), "{:?}", thread.stack);
        }
        thread.return_region();
    }

    /// An entry that ended without its hook makes frames and slots say nothing, never something wrong.
    #[test]
    fn entries_that_vanish_prove_nothing(steps in step_sequences(true)) {
        let mut thread = SimulatedThread::new();
        for step in &steps {
            thread.run_step(step);
            thread.compare();
        }
        thread.return_region();
    }
}

/// Two entries wait on one stack, and calls have left higher slots behind.
#[test]
fn two_entries_wait_on_one_stack() {
    let mut thread = SimulatedThread::new();
    let first = thread.state.first_slot();
    for step in [
        SimulatedStep::Call(0),
        SimulatedStep::Call(1),
        SimulatedStep::Enter,
        SimulatedStep::Call(2),
        SimulatedStep::CallLibrary,
        SimulatedStep::Enter,
        SimulatedStep::Call(0),
    ] {
        thread.run_step(&step);
    }
    let entries: Vec<Slot> = thread
        .state
        .deferrable_entries()
        .into_iter()
        .flatten()
        .collect();
    // Each takes two slots above the pointer for its caller.
    assert_eq!(entries, [first.up_by(4), first.up_by(8)]);
    assert!(
        entries
            .iter()
            .all(|slot| slot.below().site() == SiteId(VM_ENTRY))
    );
    assert!(thread.compare());
    (0..2).for_each(|_| thread.run_step(&SimulatedStep::Return));
    assert_eq!(thread.pointer, first.up_by(5), "as before the second entry");
    thread.return_region();
}

/// Near the end of a thread's slots nothing is deferred.
#[test]
fn a_deep_stack_defers_nothing() {
    let thread = SimulatedThread::new();
    let slots = thread.state.slots();
    let room = slots.end.frames_above(slots.start);
    assert!(has_room(
        &thread.state,
        slots.start.up_by(room / DEFERRING_PART - 1)
    ));
    assert!(!has_room(
        &thread.state,
        slots.start.up_by(room / DEFERRING_PART)
    ));
    assert!(!has_room(&thread.state, slots.end));
    assert!(!has_room(&thread.state, Slot::from_pointer(0)));
    thread.return_region();
}

/// A frame counts for an intrinsic that it has called, in the slot above its own.
#[test]
fn an_intrinsic_is_counted_above_its_caller() {
    let mut thread = SimulatedThread::new();
    let event = |thread: &SimulatedThread, method, slot| {
        let event = EventPlace {
            slot,
            method: MethodId(thread.first_method + method),
        };
        event.frame_slot(&thread.registry, &thread.frames())
    };
    // Of methods 1, 2, the latter is the intrinsic.
    thread.run_step(&SimulatedStep::Call(1));
    thread.run_step(&SimulatedStep::Enter);
    let entered = thread.pointer;
    assert_eq!(event(&thread, 2, entered), entered.below());
    let place = EventPlace {
        slot: entered.below(),
        method: MethodId(0),
    };
    let place = place.frame_slot(&thread.registry, &thread.frames());
    assert_eq!(place, entered.below(), "the caller's place itself");
    for slot in [entered, entered.above()] {
        thread.run_step(&SimulatedStep::Call(1));
        assert_eq!(event(&thread, 1, slot), slot);
        assert_eq!(event(&thread, 2, slot.above()), slot);
    }
    thread.run_step(&SimulatedStep::CallLibrary);
    assert_eq!(event(&thread, 1, entered.above()), entered.above());
    thread.return_region();
}
