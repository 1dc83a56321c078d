//! `events=call:METHODS` and `events=time:METHODS`: calls of methods that match patterns, and times within them.
//!
//! The hook at the method's entry counts (`class_analysis`, `insertions`). With `time`, hooks at the method's ends end its
//! time, exceptions included.

use lucce_bytecode::{ClassFile, ClassFileMethod, ClassPlan, EntryHook, HelperMethod, MethodPlan};
use lucce_options::{MethodSelection, NamedMethodUse};

use crate::helpers::helper_of;
use crate::helpers::{
    BEGIN_TIME, END_TIME, END_TIME_FROM_VM, END_TIME_THROWN, END_TIME_THROWN_FROM_VM,
};
use crate::instrumentation::{FrameKind, MethodInstrumentation};
use crate::jdk::roles::{is_counted, is_transparent, role_name};

use super::EventHooks;

/// The hooks of `events=call:METHODS`: the common ones at entries.
pub(super) struct NamedCallHooks;

impl EventHooks for NamedCallHooks {}

/// The hooks of `events=time:METHODS`.
pub(super) struct NamedTimeHooks;

impl EventHooks for NamedTimeHooks {
    fn called_helpers(&self) -> Vec<HelperMethod<'static>> {
        vec![
            BEGIN_TIME,
            END_TIME,
            END_TIME_THROWN,
            END_TIME_FROM_VM,
            END_TIME_THROWN_FROM_VM,
        ]
    }

    fn inherited_helpers(&self) -> Vec<HelperMethod<'static>> {
        self.called_helpers()
    }
}

/// The class that hooks call in a JVM where other classes have none.
pub const NAMED: &str = "java/lang/LucceRtNamed";
const BEGIN: HelperMethod<'static> = helper_of(NAMED, "begin", "(I)J");
const END: HelperMethod<'static> = helper_of(NAMED, "end", "(J)V");
const END_THROWN: HelperMethod<'static> = helper_of(NAMED, "endThrown", "(J)V");

/// At the entry of a method whose calls are not counted, but that has other hooks.
pub(super) const NO_CALL: EntryHook<'static> = EntryHook {
    helper: BEGIN,
    argument: Some(0),
};

/// Returns the hooks of the named methods of a class in a JVM where other classes have none.
///
/// `number_method`: returns the number of a method, which is not 0, by its name and descriptor; `None`: it gets no hooks.
/// `report`: is told why a named method is not recorded. `trusted`: see `InstrumentationOptions`.
pub fn plan_named_methods(
    class: &ClassFile<'_>,
    (methods, trusted): (&MethodSelection, bool),
    mut number_method: impl FnMut(&str, &str, NamedMethodUse) -> Option<i32>,
    mut report: impl FnMut(&str, &'static str),
) -> ClassPlan<'static> {
    let mut plan = ClassPlan::default();
    let role = role_name(class, trusted);
    for (index, method) in class.methods().iter().enumerate() {
        let Some(named) = methods.find_use(class.name(), &method.name) else {
            continue;
        };
        if method.access & ABSTRACT != 0 {
            continue;
        }
        if method.access & NATIVE != 0 {
            report(&method.name, NATIVE_REASON);
            continue;
        }
        if !is_counted(role, method) || is_transparent(role, method) {
            report(&method.name, NEEDED_REASON);
            continue;
        }
        // A constructor cannot have a handler for what it throws.
        let has_time = named == NamedMethodUse::Timed && method.name != "<init>";
        if named == NamedMethodUse::Timed && !has_time {
            report(&method.name, CONSTRUCTOR_REASON);
        }
        let used = match has_time {
            true => NamedMethodUse::Timed,
            false => NamedMethodUse::Counted,
        };
        let Some(number) = number_method(&method.name, &method.descriptor, used) else {
            continue;
        };
        let hooks = MethodPlan {
            entry: Some(EntryHook {
                helper: BEGIN,
                argument: Some(number),
            }),
            exit: has_time.then_some(END),
            unwind: has_time.then_some(END_THROWN),
            ..MethodPlan::default()
        };
        plan.methods.insert(index, hooks);
    }
    plan
}

const NATIVE_REASON: &str = "calls not counted: it is native; name a method that calls it";
const NEEDED_REASON: &str = "calls not counted: the JVM or the hooks themselves need it unchanged";
const CONSTRUCTOR_REASON: &str = "times not recorded: attached, lucce cannot see exceptions of constructors; its calls are counted";
const NATIVE: u16 = 0x0100;
const ABSTRACT: u16 = 0x0400;

/// Returns why calls of a named method, or its times, are not recorded; `None`: they are, or the method is abstract.
#[must_use]
pub fn unrecorded_reason(
    method: &ClassFileMethod<'_>,
    instrumentation: &MethodInstrumentation,
    named: NamedMethodUse,
) -> Option<&'static str> {
    if method.access & ABSTRACT != 0 {
        return None;
    }
    if method.access & NATIVE != 0 {
        return Some(NATIVE_REASON);
    }
    if !instrumentation.has_entry_site() {
        return Some(NEEDED_REASON);
    }
    let is_counted = matches!(
        instrumentation.frame,
        FrameKind::OwnSlot
            | FrameKind::VmEntered
            | FrameKind::ThreadEntry
            | FrameKind::AttachedThread
            | FrameKind::Premain
    );
    if !is_counted {
        return Some("calls not counted: traces omit it");
    }
    let has_time = instrumentation.is_timed()
        && matches!(
            instrumentation.frame,
            FrameKind::OwnSlot | FrameKind::VmEntered
        );
    (named == NamedMethodUse::Timed && !has_time)
        .then_some("times not recorded: a thread or a task begins with it; its calls are counted")
}
