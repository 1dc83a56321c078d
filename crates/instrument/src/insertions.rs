//! Turns the instrumentation of methods into insertions for the rewriter, once ids are known.

use lucce_bytecode::{
    BytecodeError, ClassFile, ClassFileMethod, ClassPlan, CodeInsertion, CodeScan, EntryHook,
    MethodPlan,
};

use crate::assembly::{AssemblyHook, assembly_fields, assembly_insertions};
use crate::class_analysis::find_frame_hiding;
use crate::continuations::{continuation_fields, continuation_insertion};
use crate::helpers::{
    ACQUIRE_LOCK, AFTER_CLONE, AFTER_DOWNCALL, ALLOC, ALLOC_HERE, ALLOC_KEEPING, ARRAYS,
    BEFORE_CLONE, BEGIN_REQUEST, BEGIN_REQUEST_OF, BEGIN_SCOPE, BEGIN_TIME, CODE_CHANGED,
    COUNT_CREATED, COUNT_CREATED_HERE, COUNT_OBJECT, COUNT_OBJECTS, COUNT_REFLECTED,
    COUNT_REFLECTED_HERE, COUNT_TEXTS, COUNT_TRACE, CURRENT, DOWNCALL, END_REQUEST,
    END_REQUEST_FROM_VM, END_SCOPE, END_TASK, END_TIME, END_TIME_FROM_VM, END_TIME_THROWN,
    END_TIME_THROWN_FROM_VM, ENTER, ENTER_AT, ENTER_COUNTED, ENTER_FIRST, ENTER_FIRST_COUNTED,
    ENTER_PINNED, ENTER_PREMAIN, ENTER_PREMAIN_COUNTED, ENTER_THREAD, ENTER_THREAD_COUNTED,
    ENTER_UPCALL, ENTER_VM, ENTER_VM_AT, ENTER_VM_COUNTED, ENTER_VM_LATER, EVENT, EXIT,
    EXIT_PINNED, EXIT_UNTRACKED, EXIT_UPCALL, EXIT_VM, INHERITED, KEEP_MESSAGE, NEW_BYTES_FOR,
    PUBLISH, PUBLISH_HERE, PUBLISH_NATIVE, PUBLISH_RARE, PUBLISH_RARE_HERE, PUBLISH_SWITCHING,
    PUBLISH_UNTRACKED, REDIRECT_ASKING, REDIRECT_HIDING, RESTORE, RESTORE_UPCALL, TO_CARRIER,
    TO_VIRTUAL, UNSEEN, UNSEEN_COPY, UNSEEN_NEW, UNWIND_DOWNCALL, UNWIND_VM, array_helper,
    keeping_array_helper, new_fields, redirect_definition,
};
use crate::inherited;
use crate::instrumentation::{
    FrameKind, HookPlace, HookSiteKind, MethodInstrumentation, ObjectCreation,
};
use crate::jdk::foreign;
use crate::jdk::intrinsics::INTRINSICS;
use crate::jdk::roles::{calls_to_restore, role_name, switch_frame_kind, unshown_frame};
use crate::jdk::tasks;
use crate::jdk::{recorder, vm_calls};
use crate::kinds::{self, EventKindSet, THREAD, hooks_of_kinds};
use crate::method_insertions::{InsertsAt, MethodInsertions};
use crate::object_creation::unseen_places;

/// What the hooks of a method with a slot do beyond the default mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HookOptions {
    /// The recording is notified when the method ends.
    pub exits: bool,
    /// The method's context is looked up at entry.
    pub at_entry: bool,
    /// The method restores `$lucceStack` when it ends, because code without hooks may call it.
    pub restores: bool,
    /// See [`super::InstrumentationOptions::trusted`].
    pub trusted: bool,
    /// No class of the JDK is in scope.
    pub jdk_is_out_of_scope: bool,
    /// The class calls inherited helpers, because its loader may not find the helper class: see `inherited`.
    pub inherits: bool,
    /// VM entries ask the VM for their caller only if a context is needed.
    pub defers_entries: bool,
    /// The counted kinds; some add fields to classes of the JDK.
    pub kinds: EventKindSet,
    /// See [`vm_calls::has_native_actions`].
    pub native_actions: bool,
}

impl HookOptions {
    /// Whether hooks call helpers that only the lab's agent has.
    pub(crate) fn needs_lab_helpers(self) -> bool {
        self.exits || self.at_entry
    }

    /// Whether a method may do without its own slot's address.
    fn needs_no_slot_address(self) -> bool {
        !self.exits && !self.at_entry && !self.restores
    }

    fn extend_plan(self, method: &mut MethodPlan<'static>, frame: FrameKind, id: u32, name: &str) {
        // Without the handler, which a constructor cannot have, an exception would hide the entry's end.
        if self.defers_entries && frame == FrameKind::VmEntered && name != "<init>" {
            method.entry = Some(EntryHook {
                helper: ENTER_VM_LATER,
                argument: None,
            });
        }
        let returns = matches!(
            frame,
            FrameKind::OwnSlot
                | FrameKind::ThreadEntry
                | FrameKind::AttachedThread
                | FrameKind::Premain
        );
        // For the agent, a virtual thread ends before its first method returns.
        if self.exits && returns && frame != FrameKind::ThreadEntry {
            method.exit = Some(EXIT);
        }
        if self.exits && frame == FrameKind::VmEntered && method.unwind.is_some() {
            method.unwind = Some(UNWIND_VM);
        }
        let look_up = match frame {
            FrameKind::OwnSlot => Some(ENTER_AT),
            FrameKind::VmEntered => Some(ENTER_VM_AT),
            _ => None,
        };
        if let Some(helper) = look_up.filter(|_| self.at_entry) {
            let argument = Some(id as i32);
            method.entry = Some(EntryHook { helper, argument });
        }
        if self.restores
            && returns
            && method
                .inserts
                .iter()
                .map(|(_, insert)| insert)
                .chain(&method.begin)
                .any(moves_pointer)
        {
            method.exit = Some(RESTORE);
            // The creator of the object restores `$lucceStack` for constructors: see `out_of_scope`.
            method.unwind = Some(RESTORE).filter(|_| name != "<init>");
        }
    }
}

/// Whether the insertion moves `$lucceStack`.
fn moves_pointer(insert: &CodeInsertion<'_>) -> bool {
    matches!(
        insert,
        CodeInsertion::Mark { .. }
            | CodeInsertion::MarkTwo { .. }
            | CodeInsertion::MarkLocal { .. }
            | CodeInsertion::MarkTop { .. }
            | CodeInsertion::MarkClass { .. }
            | CodeInsertion::MarkPair { .. }
            | CodeInsertion::ReplaceWithContext { .. }
    )
}

/// Returns the insertions of a class.
///
/// Methods get ids from `first_method`, places get ids from `first_site`, in order. `native_site` returns the site of a
/// bracketed native by its method index.
pub fn plan_class(
    class: &ClassFile<'_>,
    instrumentations: &[MethodInstrumentation],
    first_method: u32,
    first_site: u32,
    native_site: &dyn Fn(usize) -> u32,
    hooks: HookOptions,
) -> ClassPlan<'static> {
    let mut plan = ClassPlan::default();
    let mut site = first_site;
    for (index, instrumentation) in instrumentations.iter().enumerate() {
        let id = first_method + index as u32;
        let entry_site = instrumentation.has_entry_site().then_some(site as i32);
        let timed_site = entry_site.filter(|_| instrumentation.is_timed());
        let request = find_request(instrumentation, site as i32);
        let here = instrumentation.needs_no_slot_local && hooks.needs_no_slot_address();
        let mut insertions = MethodInsertions::default();
        for place in &instrumentation.places {
            let kept = instrumentation
                .kept
                .iter()
                .position(|bci| *bci == place.bci);
            let kept = kept.filter(|_| !hooks.needs_lab_helpers());
            let keeping = kept.and_then(|kept| keeping_insertion(place, site as i32, kept as u8));
            let hooks = match keeping {
                Some(insert) => vec![(place.bci, insert)],
                None => insertions_at(place, (instrumentation, here), site as i32, native_site),
            };
            insertions.add_hooks(hooks, runs_at_entry(&place.kind));
            site += 1;
        }
        if instrumentation.frame != FrameKind::Leaf {
            let method = class.methods().get(index);
            let name = method.map_or("", |method| &method.name);
            let mut method = method_plan(instrumentation, insertions, name == "<init>");
            hooks.extend_plan(&mut method, instrumentation.frame, id, name);
            let role = role_name(class, hooks.trusted);
            let untracked = recorder::may_call_untracked(role, name);
            let asks_at_once = untracked || recorder::makes_value(role, name, class.major());
            if hooks.defers_entries && asks_at_once {
                // What follows has no known caller, whoever called this method.
                method.entry = Some(EntryHook {
                    helper: ENTER_VM,
                    argument: None,
                });
            }
            if untracked {
                method.exit = Some(EXIT_UNTRACKED);
            }
            if recorder::restores_pointer(role, name, class.major()) {
                // If it throws, so does the code that calls it.
                method.exit = method.exit.or(Some(RESTORE));
            }
            if hooks.kinds.contains(&THREAD)
                && !here
                && !hooks.needs_lab_helpers()
                && tasks::ends_with_task(role_name(class, hooks.trusted), name)
            {
                method.exit = Some(END_TASK);
                method.unwind = Some(END_TASK);
            }
            count_entries(&mut method, instrumentation.frame, entry_site);
            if let Some(request) = request
                && !hooks.needs_lab_helpers()
            {
                open_requests(&mut method, instrumentation.frame, request);
            }
            if let Some(site) = timed_site.filter(|_| !hooks.needs_lab_helpers()) {
                record_time(&mut method, instrumentation.frame, site);
                // As in `method_plan`.
                method.unwind = method.unwind.filter(|_| name != "<init>");
            }
            if here {
                method.entry = None;
            }
            plan.methods.insert(index, method);
        }
    }
    plan.fields = new_fields(class.name(), hooks.exits);
    plan.fields.extend(continuation_fields(class.name()));
    plan.fields.extend(assembly_fields(class));
    let fields = hooks_of_kinds(hooks.kinds);
    plan.fields
        .extend(fields.flat_map(|code| code.added_fields(class.name(), true)));
    if class.name() == "java/lang/Object" {
        plan.new_methods = inherited::inherited_methods(hooks.needs_lab_helpers());
    }
    if hooks.inherits {
        plan.inherited = Some(INHERITED);
    }
    plan
}

/// Returns the hook that opens requests, if the method receives them. `first_site`: the site of its first place.
fn find_request(
    instrumentation: &MethodInstrumentation,
    first_site: i32,
) -> Option<CodeInsertion<'static>> {
    let mut sites = (first_site..).zip(&instrumentation.places);
    sites.find_map(|(site, place)| match &place.kind {
        HookSiteKind::Request(entry) if entry.needs_argument() => Some(CodeInsertion::MarkLocal {
            helper: BEGIN_REQUEST_OF,
            site,
            local: 1,
        }),
        HookSiteKind::Request(_) => Some(CodeInsertion::Mark {
            helper: BEGIN_REQUEST,
            site,
        }),
        _ => None,
    })
}

/// Makes the method count its call and begin its time at its entry, and end the time however it ends. The hooks at its
/// ends also close a request.
fn record_time(method: &mut MethodPlan<'static>, frame: FrameKind, site: i32) {
    let [exit, unwind] = match frame {
        FrameKind::OwnSlot => [END_TIME, END_TIME_THROWN],
        FrameKind::VmEntered => [END_TIME_FROM_VM, END_TIME_THROWN_FROM_VM],
        // Its call alone is counted.
        _ => return,
    };
    method.entry = Some(EntryHook {
        helper: match frame {
            FrameKind::VmEntered => ENTER_VM,
            _ => ENTER,
        },
        argument: None,
    });
    let helper = BEGIN_TIME;
    method.begin.insert(0, CodeInsertion::Mark { helper, site });
    method.exit = Some(exit);
    method.unwind = Some(unwind);
}

/// Makes the method open a request at its entry, and close it however it ends.
fn open_requests(
    method: &mut MethodPlan<'static>,
    frame: FrameKind,
    request: CodeInsertion<'static>,
) {
    let end = match frame {
        FrameKind::OwnSlot => END_REQUEST,
        FrameKind::VmEntered => END_REQUEST_FROM_VM,
        _ => return,
    };
    method.begin.insert(0, request);
    method.exit = Some(end);
    method.unwind = Some(end);
}

/// Makes the entry hook also count or record, if entries have a site.
fn count_entries(method: &mut MethodPlan<'static>, frame: FrameKind, site: Option<i32>) {
    let helper = match frame {
        FrameKind::OwnSlot => ENTER_COUNTED,
        FrameKind::ThreadEntry => ENTER_FIRST_COUNTED,
        FrameKind::AttachedThread => ENTER_THREAD_COUNTED,
        FrameKind::Premain => ENTER_PREMAIN_COUNTED,
        FrameKind::VmEntered => ENTER_VM_COUNTED,
        FrameKind::Leaf
        | FrameKind::Hidden
        | FrameKind::HiddenVmEntered
        | FrameKind::Downcall
        | FrameKind::Upcall
        | FrameKind::ToCarrier
        | FrameKind::ToVirtual
        | FrameKind::Pinned => return,
    };
    if site.is_some() {
        method.entry = Some(EntryHook {
            helper,
            argument: site,
        });
    }
}

fn method_plan(
    instrumentation: &MethodInstrumentation,
    insertions: MethodInsertions,
    is_constructor: bool,
) -> MethodPlan<'static> {
    let MethodInsertions { begin, mut inserts } = insertions;
    // Native code that calls the same method again finds `$lucceStack` unchanged.
    let (entry, exit, unwind) = match instrumentation.frame {
        FrameKind::Hidden => {
            let moves = !instrumentation.restores.is_empty();
            (ENTER, moves.then_some(RESTORE), None)
        }
        FrameKind::Downcall => (ENTER, Some(RESTORE), Some(UNWIND_DOWNCALL)),
        FrameKind::Upcall => (ENTER_UPCALL, Some(EXIT_UPCALL), Some(EXIT_UPCALL)),
        FrameKind::OwnSlot | FrameKind::Leaf => (ENTER, None, None),
        FrameKind::ThreadEntry => (ENTER_FIRST, None, None),
        FrameKind::ToCarrier => (TO_CARRIER, None, None),
        FrameKind::ToVirtual => (ENTER, Some(TO_VIRTUAL), None),
        FrameKind::Pinned => (ENTER_PINNED, Some(EXIT_PINNED), Some(EXIT_PINNED)),
        FrameKind::AttachedThread => (ENTER_THREAD, None, None),
        FrameKind::Premain => (ENTER_PREMAIN, None, None),
        FrameKind::VmEntered | FrameKind::HiddenVmEntered => {
            (ENTER_VM, Some(EXIT_VM), Some(EXIT_VM))
        }
    };
    let helper = match instrumentation.frame {
        FrameKind::Upcall => RESTORE_UPCALL,
        _ => RESTORE,
    };
    let restores = instrumentation.restores.iter();
    let restores = restores.map(|bci| (*bci, CodeInsertion::Before { helper }));
    inserts.extend(restores);
    inserts.extend(instrumentation.unseen.iter().flat_map(unseen_insertions_at));
    inserts.sort_by_key(|(bci, _)| *bci);
    // A constructor cannot have a handler for what it throws; the next VM entry restores `$lucceStack`.
    let unwind = unwind.filter(|_| !is_constructor);
    MethodPlan {
        entry: Some(EntryHook {
            helper: entry,
            argument: None,
        }),
        begin,
        exit,
        unwind,
        inserts,
    }
}

/// Returns the hook of an allocation in a loop; `kept`: the number of its variable.
fn keeping_insertion(place: &HookPlace, site: i32, kept: u8) -> Option<CodeInsertion<'static>> {
    let helper = match &place.kind {
        HookSiteKind::New(_) => ALLOC_KEEPING,
        HookSiteKind::Array(descriptor) => keeping_array_helper(descriptor),
        _ => return None,
    };
    Some(CodeInsertion::AfterKeeping { helper, site, kept })
}

/// Returns the hooks of one place. `here`: see [`MethodInstrumentation::needs_no_slot_local`].
fn insertions_at(
    place: &HookPlace,
    (instrumentation, here): (&MethodInstrumentation, bool),
    site: i32,
    native_site: &dyn Fn(usize) -> u32,
) -> Vec<(u16, CodeInsertion<'static>)> {
    let is_rare = instrumentation.rare_calls.binary_search(&place.bci).is_ok();
    let mark = CodeInsertion::Mark {
        helper: match (here, instrumentation.switches) {
            (true, _) if is_rare => PUBLISH_RARE_HERE,
            (true, _) => PUBLISH_HERE,
            (false, true) => PUBLISH_SWITCHING,
            (false, false) if is_rare => PUBLISH_RARE,
            (false, false) => PUBLISH,
        },
        site,
    };
    let after = |helper| CodeInsertion::After { helper, site };
    let after_dup = |helper| CodeInsertion::AfterDup { helper, site };
    let in_its_place = |helper| CodeInsertion::ReplaceWithContext { helper, site };
    let inserts = match &place.kind {
        HookSiteKind::Entry | HookSiteKind::TimedEntry | HookSiteKind::Request(_) => Vec::new(),
        HookSiteKind::Untracked => vec![CodeInsertion::Mark {
            helper: PUBLISH_UNTRACKED,
            site,
        }],
        HookSiteKind::Call | HookSiteKind::Monitor => vec![mark],
        HookSiteKind::FollowedMonitor(local) => {
            let (helper, local) = (ACQUIRE_LOCK, *local);
            let acquired = CodeInsertion::AfterLocal {
                helper,
                site,
                local,
            };
            vec![mark, acquired]
        }
        HookSiteKind::FrameHiding => vec![REDIRECT_HIDING],
        HookSiteKind::AgentQuery => vec![mark, REDIRECT_ASKING],
        HookSiteKind::DefineHidden(call) => vec![mark, redirect_definition(*call)],
        HookSiteKind::ClassRedefinition => vec![mark, after(CODE_CHANGED)],
        HookSiteKind::StackTrace => vec![mark, after_dup(COUNT_TRACE)],
        HookSiteKind::ThrowableMessage(local) => vec![CodeInsertion::MarkLocal {
            helper: KEEP_MESSAGE,
            site,
            local: *local,
        }],
        HookSiteKind::Creation(making) => {
            return creation_insertions(*making, place.bci, (here, site));
        }
        HookSiteKind::EventCall(of) => kinds::event_call_insertions(*of, site),
        HookSiteKind::NativeBracket(native) => {
            vec![bracket_native_call(native_site(*native), site)]
        }
        HookSiteKind::CreatingBracket(native) => {
            vec![
                bracket_native_call(native_site(*native), site),
                after_dup(COUNT_OBJECT),
            ]
        }
        HookSiteKind::New(_) => vec![after(if here { ALLOC_HERE } else { ALLOC })],
        HookSiteKind::Array(descriptor) => vec![after_dup(array_helper(descriptor, here))],
        HookSiteKind::Arrays(_) => vec![after_dup(ARRAYS)],
        HookSiteKind::Intrinsic(index) => {
            let helper = INTRINSICS[*index].counting_helper;
            let site = *index as i32 + 1;
            vec![mark, CodeInsertion::AfterDup { helper, site }]
        }
        HookSiteKind::Uncounted => {
            let helper = NEW_BYTES_FOR;
            vec![mark, CodeInsertion::Redirect { helper }]
        }
        HookSiteKind::Current => vec![in_its_place(CURRENT)],
        HookSiteKind::Event => vec![in_its_place(EVENT)],
        HookSiteKind::Scope => vec![in_its_place(BEGIN_SCOPE)],
        HookSiteKind::ScopeEnd => vec![in_its_place(END_SCOPE)],
        HookSiteKind::Assembly(hook) => assembly_insertions(*hook, site),
        HookSiteKind::Continuation(call) => vec![continuation_insertion(*call, site)],
    };
    let each = inserts.into_iter();
    each.map(|insert| (place.bci, insert)).collect()
}

fn bracket_native_call(native: u32, site: i32) -> CodeInsertion<'static> {
    CodeInsertion::MarkTwo {
        helper: PUBLISH_NATIVE,
        site,
        inner: native as i32,
    }
}

/// Returns the hooks of a call that makes an object. Native callees need no site published before the call.
fn creation_insertions(
    making: ObjectCreation,
    bci: u16,
    (here, site): (bool, i32),
) -> Vec<(u16, CodeInsertion<'static>)> {
    let after = |helper| (bci, CodeInsertion::AfterDup { helper, site });
    match making {
        ObjectCreation::Object if here => vec![after(COUNT_CREATED_HERE)],
        ObjectCreation::Object => vec![after(COUNT_CREATED)],
        ObjectCreation::All => vec![after(COUNT_OBJECTS)],
        ObjectCreation::Texts => vec![after(COUNT_TEXTS)],
        ObjectCreation::Reflected if here => vec![after(COUNT_REFLECTED_HERE)],
        ObjectCreation::Reflected => vec![after(COUNT_REFLECTED)],
        ObjectCreation::Clone => {
            let helper = BEFORE_CLONE;
            vec![
                (bci, CodeInsertion::MarkTop { helper, site }),
                after(AFTER_CLONE),
            ]
        }
    }
}

/// Counts objects made in code that traces omit; they count for the caller of that code.
fn unseen_insertions_at(place: &HookPlace) -> Vec<(u16, CodeInsertion<'static>)> {
    let site = UNSEEN;
    let after = |helper, site| vec![(place.bci, CodeInsertion::AfterDup { helper, site })];
    match &place.kind {
        HookSiteKind::New(_) => vec![(place.bci, CodeInsertion::AfterNew { helper: UNSEEN_NEW })],
        HookSiteKind::Array(_) => after(COUNT_OBJECT, site),
        HookSiteKind::Arrays(_) => after(COUNT_OBJECTS, site),
        HookSiteKind::Creation(making) => creation_insertions(*making, place.bci, (false, site)),
        HookSiteKind::Intrinsic(index) => after(UNSEEN_COPY, *index as i32 + 1),
        _ => Vec::new(),
    }
}

/// Returns the insertions for hidden classes, which traces omit and which never reach the class file load hook.
///
/// Their methods have no slots; their callees use the slot that they would use without them. Of `hooks`, `trusted` and
/// `native_actions` matter. `alloc`: allocations in them are counted.
///
/// # Errors
/// The class's code is malformed.
pub fn plan_hidden_class(
    class: &ClassFile<'_>,
    hooks: HookOptions,
    alloc: bool,
) -> Result<ClassPlan<'static>, BytecodeError> {
    let mut plan = ClassPlan::default();
    let name = role_name(class, hooks.trusted);
    for (index, method) in class.methods().iter().enumerate() {
        let Some(code) = &method.code else { continue };
        let mut instrumentation = MethodInstrumentation::empty();
        let scan = class.scan_code(code)?;
        instrumentation.frame = match hooks.native_actions && vm_calls::is_action(method) {
            true => FrameKind::HiddenVmEntered,
            false => unshown_frame(name, method),
        };
        if alloc {
            instrumentation.unseen = unseen_places(class, &scan);
        }
        // Counting needs the slot unchanged.
        if instrumentation.frame == FrameKind::Upcall && !instrumentation.unseen.is_empty() {
            instrumentation.frame = FrameKind::HiddenVmEntered;
        }
        instrumentation.restores = calls_to_restore(instrumentation.frame, method, &scan);
        if !instrumentation.restores.is_empty() || !instrumentation.unseen.is_empty() {
            let mut method = method_plan(&instrumentation, MethodInsertions::default(), false);
            if instrumentation.frame == FrameKind::Downcall {
                mark_function_calls(&scan, &mut method.inserts);
            }
            plan.methods.insert(index, method);
        }
    }
    Ok(plan)
}

/// Surrounds the call of the C function in a downcall stub.
fn mark_function_calls(scan: &CodeScan<'_>, inserts: &mut InsertsAt) {
    for call in scan
        .calls
        .iter()
        .filter(|call| foreign::calls_function(call))
    {
        let is_before = |at: &u16, insert: &CodeInsertion<'_>| {
            *at == call.bci && matches!(insert, CodeInsertion::Before { .. })
        };
        inserts.retain(|(at, insert)| !is_before(at, insert));
        let helper = DOWNCALL;
        inserts.push((call.bci, CodeInsertion::Before { helper }));
        let helper = AFTER_DOWNCALL;
        inserts.push((call.bci, CodeInsertion::After { helper, site: 0 }));
    }
    inserts.sort_by_key(|(bci, _)| *bci);
}

/// Returns the hooks of a method in which a virtual thread acts as its carrier, if its class is out of scope: the
/// carrier may run code in scope.
pub fn switch_plan(
    class: &str,
    method: &ClassFileMethod<'_>,
    scan: &CodeScan<'_>,
) -> Option<MethodPlan<'static>> {
    let instrumentation = MethodInstrumentation {
        frame: switch_frame_kind(class, method)?,
        ..MethodInstrumentation::empty()
    };
    let places = find_frame_hiding(class, scan).into_iter();
    let inserts = MethodInsertions::from_places(places.map(|place| (place.bci, REDIRECT_HIDING)));
    Some(method_plan(&instrumentation, inserts, false))
}

/// Whether the hooks of such a place run once, at the entry of the method.
fn runs_at_entry(kind: &HookSiteKind) -> bool {
    match kind {
        HookSiteKind::Assembly(hook) => *hook == AssemblyHook::Signal,
        HookSiteKind::EventCall(of) => kinds::runs_at_entry(*of),
        _ => false,
    }
}

/// Returns, for each method, the insertions that count objects made in code that traces omit.
///
/// The class is otherwise treated as out of scope. `holds`: whether a class of the JDK is in scope; the
/// allocation of an intrinsic is counted only if its class is.
///
/// # Errors
/// The class's code is malformed.
pub fn unseen_inserts(
    class: &ClassFile<'_>,
    holds: &dyn Fn(&str) -> bool,
) -> Result<Vec<(usize, InsertsAt)>, BytecodeError> {
    let mut unseen = Vec::new();
    for (index, method) in class.methods().iter().enumerate() {
        let Some(code) = &method.code else { continue };
        let places = unseen_places(class, &class.scan_code(code)?);
        let counts = |place: &&HookPlace| match place.kind {
            HookSiteKind::Intrinsic(index) => {
                INTRINSICS.get(index).is_some_and(|of| holds(of.class))
            }
            _ => true,
        };
        let inserts: Vec<_> = places
            .iter()
            .filter(counts)
            .flat_map(unseen_insertions_at)
            .collect();
        if !inserts.is_empty() {
            unseen.push((index, inserts));
        }
    }
    Ok(unseen)
}

#[cfg(test)]
mod insertions_tests {
    use lucce_options::{MethodSelection, ResourceRules};

    use super::*;
    use crate::class_analysis::{InstrumentationOptions, analyze_class};
    use crate::kinds::OPEN;
    use crate::kinds::open::plan_resources;
    use crate::out_of_scope::plan_class_outside;

    /// A class with the method `void method(Object o)` alone, whose loop begins at its first instruction:
    /// `while (o != null) o = o;`
    fn class_with_loop(class: &str, method: &str) -> Vec<u8> {
        const LOOP: [u8; 10] = [0x2b, 0xc6, 0, 8, 0x2b, 0x4c, 0xa7, 0xff, 0xfa, 0xb1];
        let mut bytes = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 49, 0, 8];
        let texts = [
            class,
            "java/lang/Object",
            method,
            "(Ljava/lang/Object;)V",
            "Code",
        ];
        for text in texts {
            bytes.extend([1, 0, text.len() as u8]);
            bytes.extend(text.bytes());
        }
        // The class, its superclass; public; no interfaces and fields; one public method.
        bytes.extend([7, 0, 1, 7, 0, 2]);
        bytes.extend([0, 1, 0, 6, 0, 7, 0, 0, 0, 0, 0, 1]);
        bytes.extend([
            0, 1, 0, 3, 0, 4, 0, 1, 0, 5, 0, 0, 0, 22, 0, 1, 0, 2, 0, 0, 0, 10,
        ]);
        bytes.extend(LOOP);
        // No handlers, no attributes of the code and of the class.
        bytes.extend([0, 0, 0, 0, 0, 0]);
        bytes
    }

    fn plan_in_scope(class: &ClassFile<'_>, resources: &ResourceRules) -> ClassPlan<'static> {
        let wants = InstrumentationOptions {
            events: EventKindSet::default().with_kind(&OPEN),
            idle: false,
            trusted: false,
            holds: &|_| true,
            jdk_is_out_of_scope: false,
            methods: &MethodSelection::default(),
            resources,
            calls_untracked: &|_| false,
        };
        let instrumentations = analyze_class(class, wants).unwrap();
        plan_class(
            class,
            &instrumentations,
            1,
            1,
            &|_| 0,
            HookOptions::default(),
        )
    }

    /// Returns the locals that the hooks at the method's entry report; `None`: the object's own field. There are no others.
    fn locals_at_entry(plan: &ClassPlan<'_>) -> Vec<Option<u8>> {
        let method = &plan.methods[&0];
        assert_eq!(method.inserts, []);
        let hooks = method.begin.iter().map(|insertion| match insertion {
            CodeInsertion::MarkLocal { local, .. } => Some(*local),
            CodeInsertion::MarkOwnField { .. } => None,
            other => panic!("{other:?}"),
        });
        hooks.collect()
    }

    #[test]
    fn hooks_at_the_entry_are_in_no_loop() {
        let mut resources = ResourceRules::default();
        resources.add_rules("a.B.open:shut").unwrap();
        let bytes = class_with_loop("a/B", "shut");
        let class = ClassFile::parse(&bytes).unwrap();
        let closed = [Some(0), Some(1)];
        assert_eq!(locals_at_entry(&plan_in_scope(&class, &resources)), closed);

        let hooks = HookOptions {
            kinds: EventKindSet::default().with_kind(&OPEN),
            ..HookOptions::default()
        };
        let outside = plan_class_outside(&class, &|_| false, (hooks, &resources)).unwrap();
        assert_eq!(locals_at_entry(&outside), closed);

        let mut hookless = ClassPlan::default();
        plan_resources(&mut hookless, &class, (&resources, false));
        assert_eq!(locals_at_entry(&hookless), closed);
    }

    #[test]
    fn a_signal_is_noted_once() {
        let bytes = class_with_loop("reactor/core/publisher/FluxLoop", "onNext");
        let class = ClassFile::parse(&bytes).unwrap();
        let plan = plan_in_scope(&class, &ResourceRules::default());
        assert_eq!(locals_at_entry(&plan), [None]);
    }
}
