//! Decides which hooks the methods of a class need.
//!
//! [`analyze_class`] first finds the leaf methods of the class, then the frame kind and hook places of each other
//! method.

use std::collections::HashMap;

use lucce_bytecode::{
    BytecodeError, ClassFile, ClassFileMethod, CodeScan, LONGEST_COMPILED, MethodCall,
};
use lucce_options::{MethodSelection, NamedMethodUse, ResourceRules};

use crate::api_calls::{BRACKETED, api_site_kind, hidden_definition};
use crate::assembly::{AssemblyHook, creates_operator, has_assembly_hooks, is_hooked_method};
use crate::continuations::{CONTINUATION, find_continuation_call};
use crate::instrumentation::{
    FrameKind, HookPlace, HookSiteKind, MethodInstrumentation, ObjectCreation,
};
use crate::jdk::intrinsics::{INTRINSICS, find_intrinsic};
use crate::jdk::leaf_methods::{is_arithmetic, is_leaf_call, is_native_leaf, is_recorder_leaf};
use crate::jdk::roles::{
    UNTRACKED_CLASS, UNTRACKED_METHODS, calls_to_restore, frame_kind, has_handlers, hides_frames,
    is_counted, is_customizing, is_excluded, is_transparent, is_untouched, is_vm_called,
    may_be_leaf, role_name, switches_thread, unshown_frame,
};
use crate::jdk::{agents, recorder, tasks, untracked_calls, vm_calls};
use crate::kinds::{ALLOC, AnalyzedMethod, CALL, EventHooks, EventKindSet, hooks_of_kinds};
use crate::object_creation::{MAKING, unseen_places};

/// Returns the instrumentation of each method, in the order of the class file.
///
/// # Errors
/// The class's code is malformed; the VM will report it.
pub fn analyze_class(
    class: &ClassFile<'_>,
    wants: InstrumentationOptions<'_>,
) -> Result<Vec<MethodInstrumentation>, BytecodeError> {
    let view = ClassAnalysis::from_class(class, wants)?;
    let methods = class.methods().iter().zip(&view.scans).enumerate();
    Ok(methods
        .map(|(index, (method, scan))| MethodInstrumentation {
            untracked: view.is_untracked(index),
            ..view.analyze_method(method, scan.as_ref())
        })
        .collect())
}

/// What the hooks are for, and what is known about other classes.
#[derive(Clone, Copy)]
pub struct InstrumentationOptions<'w> {
    /// The kinds of events that are counted.
    pub events: EventKindSet,
    /// No event of a method by itself is counted or recorded.
    pub idle: bool,
    /// The VM trusts the class's loader: it is the boot loader or the platform loader.
    pub trusted: bool,
    /// Whether the class of the JDK with this name is in scope.
    pub holds: &'w dyn Fn(&str) -> bool,
    /// Whether no class of the JDK is in scope.
    pub jdk_is_out_of_scope: bool,
    /// The methods of `events=call:METHODS` and `events=time:METHODS`.
    pub methods: &'w MethodSelection,
    /// The option `resource=`.
    pub resources: &'w ResourceRules,
    /// Whether the call reaches a [`MethodInstrumentation::untracked`] method of a loaded class of the JDK.
    pub calls_untracked: &'w dyn Fn(&MethodCall<'_>) -> bool,
}

impl InstrumentationOptions<'_> {
    /// Whether nothing that the call reaches can ask for a context.
    fn is_leaf(&self, call: &MethodCall<'_>) -> bool {
        is_leaf_call(call) && hidden_definition(call).is_none()
            || !self.events.contains(&CALL) && (is_arithmetic(call) || is_recorder_leaf(call))
            || self.jdk_is_out_of_scope && untracked_calls::is_untracked_call(call)
            || (self.calls_untracked)(call)
    }
}

/// A class with the facts that several steps of the analysis need.
struct ClassAnalysis<'v, 'a> {
    class: &'v ClassFile<'a>,
    /// See [`role_name`].
    name: &'v str,
    wants: InstrumentationOptions<'v>,
    scans: Vec<Option<CodeScan<'a>>>,
    by_name: HashMap<(&'v str, &'v str), usize>,
    /// Methods that need no frame: getters and small helpers.
    leaves: Vec<bool>,
    /// See `assembly`.
    is_operator: bool,
}

impl<'v, 'a> ClassAnalysis<'v, 'a> {
    fn from_class(
        class: &'v ClassFile<'a>,
        wants: InstrumentationOptions<'v>,
    ) -> Result<Self, BytecodeError> {
        let mut scans = Vec::with_capacity(class.methods().len());
        let mut by_name = HashMap::new();
        for (index, method) in class.methods().iter().enumerate() {
            by_name.insert((&*method.name, &*method.descriptor), index);
            scans.push(
                method
                    .code
                    .as_ref()
                    .map(|code| class.scan_code(code))
                    .transpose()?,
            );
        }
        let mut view = ClassAnalysis {
            class,
            name: role_name(class, wants.trusted),
            is_operator: has_assembly_hooks(class),
            wants,
            leaves: vec![false; scans.len()],
            scans,
            by_name,
        };
        view.find_leaves();
        Ok(view)
    }

    /// Finds the leaf methods: methods that call only leaf methods.
    ///
    /// A new leaf may turn its callers into leaves. Only those are examined again, so each call is examined at most
    /// twice, except in methods that call many leaves.
    fn find_leaves(&mut self) {
        // `open`: for each method, the number of its calls of methods of this class that are not yet known to be
        // leaves. `callers`: for each method, the methods that call it.
        let mut open = vec![0_usize; self.scans.len()];
        let mut callers = vec![Vec::new(); self.scans.len()];
        let mut leaves = Vec::new();
        for (index, method) in self.class.methods().iter().enumerate() {
            let Some(scan) = self.scans.get(index).and_then(Option::as_ref) else {
                continue;
            };
            if !self.may_be_leaf(method, scan) {
                continue;
            }
            let Some(called) = self.undecided_own_calls(scan) else {
                continue;
            };
            if let Some(open) = open.get_mut(index) {
                *open = called.len();
            }
            if called.is_empty() {
                leaves.push(index);
            }
            for one in called {
                if let Some(callers) = callers.get_mut(one) {
                    callers.push(index);
                }
            }
        }
        while let Some(leaf) = leaves.pop() {
            if let Some(leaf) = self.leaves.get_mut(leaf) {
                *leaf = true;
            }
            for caller in callers
                .get_mut(leaf)
                .map(std::mem::take)
                .unwrap_or_default()
            {
                if let Some(open) = open.get_mut(caller) {
                    *open -= 1;
                    if *open == 0 {
                        leaves.push(caller);
                    }
                }
            }
        }
    }

    /// Returns the methods of this class that decide whether all calls of `scan` are leaf calls; `None`: one call never
    /// is.
    fn undecided_own_calls(&self, scan: &CodeScan<'_>) -> Option<Vec<usize>> {
        let mut called = Vec::new();
        for call in &scan.calls {
            if !self.wants.is_leaf(call) && !self.calls_own_leaf(call) {
                called.push(self.fixed_own_method(call)?);
            }
        }
        Some(called)
    }

    /// Whether the method, apart from its calls, causes no event.
    ///
    /// The VM may throw an exception there, and the exception's constructors move `$lucceStack`. A method that catches it
    /// continues with the moved `$lucceStack`, and so would a caller that published no site and keeps no slot. So a leaf has no
    /// handlers.
    fn may_be_leaf(&self, method: &ClassFileMethod<'_>, scan: &CodeScan<'_>) -> bool {
        let at = &self.analyzed_method(method, scan);
        may_be_leaf(self.name, method)
            && self.entry_kind(method).is_none()
            && !has_handlers(method)
            && self.class.name() != CONTINUATION
            && !self.is_operator
            && !self.event_hooks().any(|code| code.happens_in(at))
    }

    fn analyze_method(
        &self,
        method: &ClassFileMethod<'_>,
        scan: Option<&CodeScan<'_>>,
    ) -> MethodInstrumentation {
        let mut instrumentation = MethodInstrumentation::empty();
        let name = self.name;
        instrumentation.transparent = is_transparent(name, method);
        let Some(scan) = scan else {
            return instrumentation;
        };
        let quiet = name.starts_with(UNTRACKED_CLASS) && UNTRACKED_METHODS.contains(&&*method.name)
            || is_customizing(name, method)
            || self.wants.idle && vm_calls::only_allocates(name, &method.name);
        if !instrumentation.transparent && !is_excluded(name, method) && !quiet {
            instrumentation.places = self.find_places(method, scan);
            if self.wants.events.contains(&ALLOC) {
                let _ = self.leave_counting_to_callers(method, &mut instrumentation);
            }
        }
        let entry = self.entry_kind(method).filter(|_| !quiet);
        if let Some(kind) = entry {
            instrumentation.places.insert(0, HookPlace { bci: 0, kind });
        }
        instrumentation.switches = switches_thread(name, method);
        if instrumentation.transparent
            && !instrumentation.switches
            && !is_untouched(name, &method.name)
        {
            instrumentation.restores = calls_to_restore(unshown_frame(name, method), method, scan);
        }
        if instrumentation.transparent
            && !instrumentation.switches
            && self.wants.events.contains(&ALLOC)
            && !is_untouched(name, &method.name)
        {
            instrumentation.unseen = unseen_places(self.class, scan);
        }
        instrumentation.frame = frame_kind(name, method, &instrumentation);
        let major = self.class.major();
        if instrumentation.frame == FrameKind::OwnSlot
            && recorder::makes_value(name, &method.name, major)
        {
            instrumentation.frame = FrameKind::VmEntered;
        }
        if matches!(
            instrumentation.frame,
            FrameKind::ToCarrier | FrameKind::ToVirtual
        ) {
            instrumentation.places = find_frame_hiding(name, scan);
        }
        if instrumentation.has_entry_site()
            && instrumentation.frame == FrameKind::OwnSlot
            && (is_vm_called(name, method) || self.may_lack_call_site(method))
        {
            instrumentation.frame = FrameKind::VmEntered;
        }
        instrumentation.kept = find_kept_places(&instrumentation, scan);
        instrumentation.needs_no_slot_local = instrumentation.kept.is_empty()
            && !recorder::restores_pointer(name, &method.name, major)
            && needs_no_slot_local(&instrumentation, scan.has_loops, has_handlers(method));
        instrumentation.lines.clone_from(&scan.lines);
        instrumentation.rare_calls.clone_from(&scan.rare_calls);
        instrumentation
    }

    /// Returns the site of the method's entry, if entries are counted.
    fn entry_kind(&self, method: &ClassFileMethod<'_>) -> Option<HookSiteKind> {
        if !is_counted(self.name, method) {
            return None;
        }
        let named = self.wants.methods.find_use(self.class.name(), &method.name);
        match named {
            // Hooks at the ends of these do something else.
            Some(NamedMethodUse::Timed)
                if !tasks::ends_with_task(self.name, &method.name)
                    && !recorder::may_call_untracked(self.name, &method.name)
                    && !recorder::restores_pointer(self.name, &method.name, self.class.major()) =>
            {
                Some(HookSiteKind::TimedEntry)
            }
            Some(_) => Some(HookSiteKind::Entry),
            None => self
                .wants
                .events
                .contains(&CALL)
                .then_some(HookSiteKind::Entry),
        }
    }

    /// Whether classes may call this method, which is a leaf method without the hook at its entry, without a site.
    fn may_lack_call_site(&self, method: &ClassFileMethod<'_>) -> bool {
        let call = MethodCall {
            bci: 0,
            opcode: 0,
            owner: self.class.name().into(),
            name: method.name.clone(),
            descriptor: method.descriptor.clone(),
        };
        !self.wants.events.contains(&CALL) && (is_arithmetic(&call) || is_recorder_leaf(&call))
            || is_native_leaf(&call)
    }

    /// Moves the count of an intrinsic's allocation from its body to its callers. `None`: the method is no intrinsic.
    fn leave_counting_to_callers(
        &self,
        method: &ClassFileMethod<'_>,
        instrumentation: &mut MethodInstrumentation,
    ) -> Option<()> {
        let index = find_intrinsic(self.name, &method.name, &method.descriptor)?;
        let through = INTRINSICS.get(index)?.allocator;
        let allocates = |place: &&HookPlace| match through {
            None => matches!(place.kind, HookSiteKind::Array(_)),
            Some(_) => place.kind == HookSiteKind::Uncounted,
        };
        let bci = instrumentation.places.iter().find(allocates)?.bci;
        instrumentation.intrinsic = Some((index, bci));
        instrumentation
            .places
            .retain(|place| !matches!(place.kind, HookSiteKind::Array(_)));
        Some(())
    }

    fn find_places(&self, method: &ClassFileMethod<'_>, scan: &CodeScan<'_>) -> Vec<HookPlace> {
        let calls = scan.calls.iter().filter_map(|call| {
            let mark = self.call_site_kind(method, scan, call)?;
            Some(HookPlace {
                bci: call.bci,
                kind: mark,
            })
        });
        let mut places: Vec<HookPlace> = calls.collect();
        let at = &self.analyzed_method(method, scan);
        let more = self.event_hooks().flat_map(|code| code.find_places(at));
        places.extend(more);
        let is_signal = self.is_operator && is_hooked_method(self.class.name(), method);
        places.extend(is_signal.then_some(HookPlace {
            bci: 0,
            kind: HookSiteKind::Assembly(AssemblyHook::Signal),
        }));
        places.sort_by_key(|place| place.bci);
        places
    }

    fn call_site_kind(
        &self,
        method: &ClassFileMethod<'_>,
        scan: &CodeScan<'_>,
        call: &MethodCall<'_>,
    ) -> Option<HookSiteKind> {
        let at = &self.analyzed_method(method, scan);
        if let Some(mark) = self
            .event_hooks()
            .find_map(|code| code.call_site_kind(at, call))
        {
            return Some(mark);
        }
        if let Some(mark) = api_site_kind(call) {
            return Some(mark);
        }
        let within = (self.class.name(), &*method.name);
        if let Some(call) = find_continuation_call(within, call) {
            return Some(HookSiteKind::Continuation(call));
        }
        if self.is_operator && creates_operator(self.class, (method, scan), call) {
            return Some(HookSiteKind::Assembly(AssemblyHook::Create));
        }
        if let Some(definition) = hidden_definition(call).filter(|_| self.wants.trusted) {
            return Some(HookSiteKind::DefineHidden(definition));
        }
        if self.wants.is_leaf(call) || self.calls_own_leaf(call) {
            return None;
        }
        if self.wants.events.contains(&ALLOC)
            && let Some(mark) = self.intrinsic_site_kind(method, call)
        {
            return Some(mark);
        }
        if agents::asks_agents(self.name, call) {
            return Some(HookSiteKind::AgentQuery);
        }
        if BRACKETED.contains(&(self.name, &*call.name)) {
            let makes = self.wants.events.contains(&ALLOC) && call.name == MAKING;
            let bracket = if makes {
                HookSiteKind::CreatingBracket
            } else {
                HookSiteKind::NativeBracket
            };
            return self.own_method(call).map(bracket);
        }
        Some(
            if recorder::calls_back_repeatedly(&call.owner, &call.name) {
                HookSiteKind::Untracked
            } else if recorder::redefines_classes(&call.owner, &call.name) {
                HookSiteKind::ClassRedefinition
            } else {
                HookSiteKind::Call
            },
        )
    }

    /// Returns the hooks of the counted kinds.
    fn event_hooks(&self) -> impl Iterator<Item = &'static dyn EventHooks> {
        hooks_of_kinds(self.wants.events)
    }

    fn analyzed_method<'m>(
        &'m self,
        method: &'m ClassFileMethod<'m>,
        scan: &'m CodeScan<'m>,
    ) -> AnalyzedMethod<'m> {
        AnalyzedMethod {
            class: self.name,
            method,
            scan,
            file: self.class,
            resources: self.wants.resources,
        }
    }

    fn intrinsic_site_kind(
        &self,
        method: &ClassFileMethod<'_>,
        call: &MethodCall<'_>,
    ) -> Option<HookSiteKind> {
        if let Some(index) = find_intrinsic(&call.owner, &call.name, &call.descriptor) {
            let counted = (self.wants.holds)(&call.owner);
            return counted.then_some(HookSiteKind::Intrinsic(index));
        }
        let within = find_intrinsic(self.name, &method.name, &method.descriptor)?;
        let through = INTRINSICS.get(within)?.allocator?;
        (call.name == through).then_some(HookSiteKind::Uncounted)
    }

    fn own_method(&self, call: &MethodCall<'_>) -> Option<usize> {
        let key = (&*call.name, &*call.descriptor);
        let own = call.owner == self.class.name();
        own.then(|| self.by_name.get(&key).copied()).flatten()
    }

    /// Whether the call reaches a native method of this class.
    fn is_native(&self, call: &MethodCall<'_>) -> bool {
        let method = self.own_method(call);
        method.is_some_and(|index| self.scans.get(index).is_some_and(Option::is_none))
    }

    /// Whether the call reaches a leaf method of this class that cannot be overridden.
    fn calls_own_leaf(&self, call: &MethodCall<'_>) -> bool {
        let Some(index) = self.fixed_own_method(call) else {
            return false;
        };
        let leaf = self.leaves.get(index).copied().unwrap_or(false);
        leaf || is_native_leaf(call) && self.is_native(call)
    }

    /// Returns the method of this class that the call reaches, if no class can override it.
    fn fixed_own_method(&self, call: &MethodCall<'_>) -> Option<usize> {
        let index = self.own_method(call)?;
        let method = self.class.methods().get(index)?;
        is_bound(self.class, method).then_some(index)
    }

    /// Whether no class can override the method: it has one of `flags`, or its class is final.
    fn is_fixed(&self, index: usize, flags: u16) -> bool {
        let access = self.class.methods().get(index).map_or(0, |m| m.access);
        access & flags != 0 || self.class.access() & FINAL != 0
    }

    /// See [`MethodInstrumentation::untracked`]. Private methods are excluded: a call may name another method of that
    /// name.
    fn is_untracked(&self, index: usize) -> bool {
        let leaf = self.leaves.get(index).copied().unwrap_or(false);
        let is_constructor = |method: &ClassFileMethod<'_>| method.name == "<init>";
        let constructs = self.class.methods().get(index).is_some_and(is_constructor);
        leaf && (constructs || self.is_fixed(index, STATIC | FINAL))
            && self.class.access() & INTERFACE == 0
    }
}

/// Whether a call that names a method of this class always reaches it, because no class can override it.
///
/// Other methods of the class may then call it without publishing a site.
#[must_use]
pub fn is_bound(class: &ClassFile<'_>, method: &ClassFileMethod<'_>) -> bool {
    let is_fixed = method.access & (PRIVATE | STATIC | FINAL) != 0
        || class.access() & FINAL != 0
        || method.name == "<init>";
    is_fixed && class.access() & INTERFACE == 0
}

/// Access flags of methods and classes.
const PRIVATE: u16 = 0x0002;
const STATIC: u16 = 0x0008;
const FINAL: u16 = 0x0010;
const INTERFACE: u16 = 0x0200;

/// Whether no hook runs after a hook that moved `$lucceStack`, so that the method need not keep its slot's address.
///
/// The method has at most one such hook, no loop back to it, and no hook behind it. Methods that the VM calls in
/// between restore `$lucceStack`, unless they throw; so the method may have no exception handler.
fn needs_no_slot_local(
    instrumentation: &MethodInstrumentation,
    has_loops: bool,
    has_handlers: bool,
) -> bool {
    let Some((last, before)) = instrumentation.places.split_last() else {
        return false;
    };
    let stays = |place: &HookPlace| {
        matches!(
            place.kind,
            HookSiteKind::New(_)
                | HookSiteKind::Array(_)
                | HookSiteKind::Creation(ObjectCreation::Object | ObjectCreation::Reflected)
        )
    };
    let ordered =
        before.iter().all(stays) && (stays(last) || last.kind == HookSiteKind::Call && !has_loops);
    let plain = instrumentation.frame == FrameKind::OwnSlot
        && !instrumentation.switches
        && instrumentation.intrinsic.is_none();
    plain && ordered && !has_handlers
}

/// The number of counters that a frame keeps at most.
const MOST_KEPT: usize = 4;

/// Returns the bytecode indices of allocations in loops whose counters the frame may keep: its context never changes.
///
/// Hooks of tasks, scopes, continuations and operators change the context of their own frame.
fn find_kept_places(instrumentation: &MethodInstrumentation, scan: &CodeScan<'_>) -> Vec<u16> {
    let is_plain = |place: &HookPlace| {
        matches!(
            place.kind,
            HookSiteKind::Call
                | HookSiteKind::New(_)
                | HookSiteKind::Array(_)
                | HookSiteKind::Arrays(_)
                | HookSiteKind::Intrinsic(_)
                | HookSiteKind::Creation(_)
                | HookSiteKind::Monitor
                | HookSiteKind::Current
                | HookSiteKind::Event
        )
    };
    // Code that compilers leave alone gains nothing, and may have no room.
    let calls = scan.calls.iter().map(|call| call.bci);
    let lines = scan.lines.iter().map(|(bci, _)| *bci);
    let bcis = calls
        .chain(lines)
        .chain(scan.loops.iter().map(|(_, end)| *end));
    let is_compiled = bcis
        .max()
        .is_none_or(|last| usize::from(last) < LONGEST_COMPILED);
    if scan.loops.is_empty()
        || !is_compiled
        || instrumentation.frame != FrameKind::OwnSlot
        || instrumentation.switches
        || instrumentation.intrinsic.is_some()
        || !instrumentation.places.iter().all(is_plain)
    {
        return Vec::new();
    }
    let is_repeated =
        |bci: u16| (scan.loops.iter()).any(|(start, end)| (*start..*end).contains(&bci));
    let places = instrumentation.places.iter().filter(|place| {
        let allocates = matches!(place.kind, HookSiteKind::New(_) | HookSiteKind::Array(_));
        allocates && is_repeated(place.bci) && !scan.last_allocations.contains(&place.bci)
    });
    places.map(|place| place.bci).take(MOST_KEPT).collect()
}

/// Returns the calls in a method that switches threads that would hide the following frames from agents.
pub fn find_frame_hiding(class: &str, scan: &CodeScan<'_>) -> Vec<HookPlace> {
    let calls = scan.calls.iter().filter(|call| hides_frames(class, call));
    let places = calls.map(|call| HookPlace {
        bci: call.bci,
        kind: HookSiteKind::FrameHiding,
    });
    places.collect()
}

#[cfg(test)]
mod class_analysis_tests {
    use super::*;
    use crate::instrumentation::EventCall;

    fn instrumentation(marks: &[HookSiteKind]) -> MethodInstrumentation {
        let places = marks.iter().enumerate().map(|(at, mark)| HookPlace {
            bci: 3 * at as u16,
            kind: mark.clone(),
        });
        MethodInstrumentation {
            frame: FrameKind::OwnSlot,
            places: places.collect(),
            ..MethodInstrumentation::empty()
        }
    }

    fn new() -> HookSiteKind {
        HookSiteKind::New("La/B;".into())
    }

    #[test]
    fn a_method_whose_last_hook_is_its_only_call_keeps_nothing() {
        for marks in [
            vec![HookSiteKind::Call],
            vec![new(), HookSiteKind::Array("[I".into()), HookSiteKind::Call],
            vec![new(), new()],
        ] {
            assert!(
                needs_no_slot_local(&instrumentation(&marks), false, false),
                "{marks:?}"
            );
            // An exception may come from code that the VM calls, and leave `$lucceStack` moved.
            assert!(
                !needs_no_slot_local(&instrumentation(&marks), false, true),
                "{marks:?}"
            );
            let calls = marks.contains(&HookSiteKind::Call);
            assert_eq!(
                needs_no_slot_local(&instrumentation(&marks), true, false),
                !calls,
                "{marks:?}"
            );
        }
    }

    #[test]
    fn frames_keep_the_counters_of_allocations_in_loops() {
        let loops = |loops: &[(u16, u16)]| CodeScan {
            has_loops: true,
            loops: loops.to_vec(),
            ..CodeScan::default()
        };
        let kept = |marks: &[HookSiteKind], all: &[(u16, u16)]| {
            find_kept_places(&instrumentation(marks), &loops(all))
        };
        let array = HookSiteKind::Array("[I".into());
        // Places at 0, 3, 6, 9: the loop begins with the second and its branch is behind the third.
        let marks = [new(), array.clone(), new(), new()];
        assert_eq!(kept(&marks, &[(3, 8)]), [3, 6]);
        assert_eq!(kept(&marks, &[(3, 5), (8, 11)]), [3, 9]);
        assert_eq!(kept(&marks, &[]), []);
        let thrown = CodeScan {
            last_allocations: vec![3],
            ..loops(&[(3, 8)])
        };
        assert_eq!(find_kept_places(&instrumentation(&marks), &thrown), [6]);
        assert_eq!(kept(&vec![new(); 9], &[(0, 30)]), [0, 3, 6, 9]);
        let calls = [HookSiteKind::Call, new(), HookSiteKind::Current];
        assert_eq!(kept(&calls, &[(0, 30)]), [3]);
        let long = CodeScan {
            lines: vec![(0, 1), (8000, 2)],
            ..loops(&[(0, 30)])
        };
        assert_eq!(find_kept_places(&instrumentation(&calls), &long), []);
        // In these methods the frame's own context may change.
        let task = HookSiteKind::EventCall(EventCall { bit: 1, which: 5 });
        for changes in [HookSiteKind::Scope, HookSiteKind::ScopeEnd, task] {
            assert_eq!(kept(&[changes, new()], &[(0, 30)]), []);
        }
        let switching = MethodInstrumentation {
            switches: true,
            ..instrumentation(&[new()])
        };
        assert_eq!(find_kept_places(&switching, &loops(&[(0, 30)])), []);
    }

    #[test]
    fn a_method_that_goes_on_after_a_call_keeps_its_slot() {
        for marks in [
            vec![HookSiteKind::Call, HookSiteKind::Call],
            vec![HookSiteKind::Call, new()],
            vec![HookSiteKind::Monitor],
            vec![HookSiteKind::Current],
            vec![HookSiteKind::Arrays("[[I".into())],
            vec![HookSiteKind::Entry, HookSiteKind::Call],
        ] {
            assert!(
                !needs_no_slot_local(&instrumentation(&marks), false, false),
                "{marks:?}"
            );
        }
        for frame in [
            FrameKind::VmEntered,
            FrameKind::ThreadEntry,
            FrameKind::AttachedThread,
            FrameKind::Premain,
            FrameKind::Leaf,
        ] {
            let instrumentation = MethodInstrumentation {
                frame,
                ..instrumentation(&[HookSiteKind::Call])
            };
            assert!(
                !needs_no_slot_local(&instrumentation, false, false),
                "{frame:?}"
            );
        }
        let switching = MethodInstrumentation {
            switches: true,
            ..instrumentation(&[HookSiteKind::Call])
        };
        assert!(!needs_no_slot_local(&switching, false, false));
    }
}
