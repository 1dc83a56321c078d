//! Hooks of classes that are out of scope, so that their callees in scope find their slots.
//!
//! Their frames have no slots and are in no trace. Meanwhile `$lucceStack` holds the slot of the next method in scope: a method
//! in scope restores `$lucceStack` when it returns or throws. These methods still need hooks:
//!
//! | method | hook |
//! |---|---|
//! | VM entries, including class initializers | ask the VM if a context is needed; not [`vm_calls::reaches_no_program`] |
//! | the first method of a virtual thread | gives the thread its slots |
//! | the method that starts a Java agent when the VM starts | activates the hooks, as in scope |
//! | the methods of JDK 21 by which a virtual thread acts as its carrier | as in scope: see `roles::switch_frame_kind` |
//! | methods that create objects of a class that may be in scope | restore `$lucceStack`: no handler may surround the call of a constructor in a constructor (JVMS 4.10.1.6) |
//! | methods with an event (`EventHooks::out_of_scope_insertions`): `Thread.start`, I/O, parking | ask the VM which frame in scope causes it |
//! | `JavaLangAccess.defineClass` | passes hidden classes to the agent: they also create objects |

use lucce_bytecode::{
    BytecodeError, ClassFile, ClassFileMethod, ClassPlan, CodeInsertion, CodeScan, EntryHook,
    HelperMethod, MethodCall, MethodPlan,
};

use lucce_options::ResourceRules;

use crate::api_calls::hidden_definition;
use crate::helpers::{
    ENTER, ENTER_FIRST, ENTER_PINNED, ENTER_PREMAIN, ENTER_VM, ENTER_VM_LATER, EXIT_PINNED,
    EXIT_VM, HELPER_PREFIX, REDIRECT_ASKING, RESTORE, new_fields, redirect_definition,
};
use crate::inherited::inherited_methods;
use crate::insertions::{HookOptions, switch_plan, unseen_inserts};
use crate::instrumentation::FrameKind;
use crate::jdk::leaf_methods::is_leaf_call;
use crate::jdk::roles::{CLASS_INITIALIZER, is_pinned, role_name, starts_virtual_thread};
use crate::jdk::{agents, foreign, vm_calls};
use crate::kinds::{AnalyzedMethod, hooks_of_kinds};
use crate::method_insertions::MethodInsertions;

/// Returns the insertions of a class that is out of scope.
///
/// `creates`: whether constructors of this class may be in scope, or may call one in scope. `hooks` has the counted
/// kinds. `resources`: the option `resource=`. `trusted`: see `InstrumentationOptions`.
///
/// # Errors
/// The class's code is malformed; the VM will report it.
pub fn plan_class_outside(
    class: &ClassFile<'_>,
    creates: &dyn Fn(&str) -> bool,
    (hooks, resources): (HookOptions, &ResourceRules),
) -> Result<ClassPlan<'static>, BytecodeError> {
    let mut plan = ClassPlan::default();
    let name = role_name(class, hooks.trusted);
    for (index, method) in class.methods().iter().enumerate() {
        let Some(code) = &method.code else { continue };
        let scan = class.scan_code(code)?;
        let is_idle = hooks.jdk_is_out_of_scope && vm_calls::reaches_no_program(name, &method.name);
        let mut planned = match is_idle {
            true => None,
            false => method_plan((name, method), &scan, (creates, hooks)),
        };
        let at = AnalyzedMethod {
            class: name,
            method,
            scan: &scan,
            file: class,
            resources,
        };
        for code in hooks_of_kinds(hooks.kinds) {
            planned = add_insertions(planned, code.out_of_scope_insertions(&at));
        }
        if is_pinned(name, &method.name) && !scan.calls.is_empty() {
            let entry = Some(EntryHook {
                helper: ENTER_PINNED,
                argument: None,
            });
            let pinned = MethodPlan {
                entry,
                begin: Vec::new(),
                exit: Some(EXIT_PINNED),
                unwind: Some(EXIT_PINNED),
                inserts: Vec::new(),
            };
            planned = Some(pinned);
        }
        let asks = scan.calls.iter();
        let asks = asks.filter(|call| agents::asks_agents(name, call));
        planned = add_insertions(
            planned,
            MethodInsertions::from_places(asks.map(|call| (call.bci, REDIRECT_ASKING))),
        );
        planned = switch_plan(name, method, &scan).or(planned);
        if let Some(planned) = planned {
            plan.methods.insert(index, planned);
        }
    }
    plan.fields = new_fields(name, hooks.exits);
    let fields = hooks_of_kinds(hooks.kinds);
    plan.fields
        .extend(fields.flat_map(|code| code.added_fields(name, false)));
    if name == "java/lang/Object" {
        plan.new_methods = inherited_methods(hooks.needs_lab_helpers());
    }
    Ok(plan)
}

/// Returns the insertions of a hidden class, which is in no trace.
///
/// `hooks`: as in `plan_hidden_class`. `counts`: the class is in scope, so its allocations count for the innermost frame in scope. `holds`: whether a class
/// of the JDK is in scope.
///
/// # Errors
/// The class's code is malformed.
pub fn plan_hidden_class_outside(
    class: &ClassFile<'_>,
    hooks: HookOptions,
    creates: &dyn Fn(&str) -> bool,
    (counts, holds): (bool, &dyn Fn(&str) -> bool),
) -> Result<ClassPlan<'static>, BytecodeError> {
    let mut plan = plan_class_outside(class, creates, (hooks, &ResourceRules::default()))?;
    if counts {
        for (index, inserts) in unseen_inserts(class, holds)? {
            let inserts = MethodInsertions::from_places(inserts);
            let planned = add_insertions(plan.methods.remove(&index), inserts);
            plan.methods.extend(planned.map(|planned| (index, planned)));
        }
    }
    Ok(plan)
}

/// Adds insertions at the method's entry, and at calls that have only [`RESTORE`] before them.
fn add_insertions(
    planned: Option<MethodPlan<'static>>,
    insertions: MethodInsertions,
) -> Option<MethodPlan<'static>> {
    if insertions.is_empty() {
        return planned;
    }
    let mut planned = planned.unwrap_or_default();
    let entry = EntryHook {
        helper: ENTER,
        argument: None,
    };
    planned.entry.get_or_insert(entry);
    insertions.add_to(&mut planned);
    Some(planned)
}

fn method_plan(
    (class, method): (&str, &ClassFileMethod<'_>),
    scan: &CodeScan<'_>,
    (creates, hooks): (&dyn Fn(&str) -> bool, HookOptions),
) -> Option<MethodPlan<'static>> {
    if class.starts_with(HELPER_PREFIX) {
        return None;
    }
    let definition = |call: &MethodCall<'_>| {
        let defined = hidden_definition(call).filter(|_| !class.is_empty())?;
        Some((call.bci, redirect_definition(defined)))
    };
    if let Some(redirected) = scan.calls.iter().find_map(definition) {
        return Some(MethodPlan {
            inserts: vec![redirected],
            ..MethodPlan::default()
        });
    }
    let calls = || scan.calls.iter().filter(|call| !is_leaf_call(call));
    let (entry, exit, unwind) = entry_exit_hooks((class, method), scan, (creates, hooks))?;
    calls().next()?;
    let restores = calls().map(|call| (call.bci, CodeInsertion::Before { helper: RESTORE }));
    Some(MethodPlan {
        entry: Some(entry),
        begin: Vec::new(),
        exit,
        unwind: unwind.filter(|_| method.name != "<init>"),
        inserts: restores.collect(),
    })
}

type EntryExitHooks = (
    EntryHook<'static>,
    Option<HelperMethod<'static>>,
    Option<HelperMethod<'static>>,
);

/// Returns the hooks at entry, before returns, and for passing exceptions; `None`: no hooks.
fn entry_exit_hooks(
    (class, method): (&str, &ClassFileMethod<'_>),
    scan: &CodeScan<'_>,
    (creates, hooks): (&dyn Fn(&str) -> bool, HookOptions),
) -> Option<EntryExitHooks> {
    let name = &*method.name;
    let entry = |helper| EntryHook {
        helper,
        argument: None,
    };
    if starts_virtual_thread(class, name, &method.descriptor) {
        return Some((entry(ENTER_FIRST), None, None));
    }
    if agents::runs_agent(class, name) {
        return Some((entry(ENTER_PREMAIN), None, None));
    }
    if vm_calls::only_allocates(class, name) {
        return None;
    }
    let is_action = hooks.native_actions && vm_calls::is_action(method);
    if is_action || is_entered_by_vm(class, name, &method.descriptor) {
        // Without the handler, which a constructor cannot have, an exception would hide the entry's end.
        let may_defer = hooks.defers_entries && name != "<init>" && !is_upcall(class, name);
        let helper = if may_defer { ENTER_VM_LATER } else { ENTER_VM };
        return Some((entry(helper), Some(EXIT_VM), Some(EXIT_VM)));
    }
    let mut calls = scan.calls.iter();
    let may_create = class == CONSTRUCTOR && name.starts_with("newInstance")
        || calls.any(|call| match &*call.name {
            "<init>" => !is_leaf_call(call) && creates(&call.owner),
            // The handle of a constructor.
            "linkToSpecial" => call.owner == METHOD_HANDLE,
            _ => false,
        });
    may_create.then_some((entry(ENTER), None, Some(RESTORE)))
}

/// Whether the method is a VM entry.
fn is_entered_by_vm(class: &str, method: &str, descriptor: &str) -> bool {
    method == CLASS_INITIALIZER
        || is_upcall(class, method)
        || vm_calls::is_vm_entered(class, method, descriptor)
}

fn is_upcall(class: &str, method: &str) -> bool {
    foreign::stub_frame(class, method) == Some(FrameKind::Upcall)
}

const METHOD_HANDLE: &str = "java/lang/invoke/MethodHandle";
const CONSTRUCTOR: &str = "java/lang/reflect/Constructor";
