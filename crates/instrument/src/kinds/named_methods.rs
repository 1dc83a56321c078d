//! `events=call:METHODS` and `events=time:METHODS`: calls of methods that match patterns, and times within them.
//!
//! The hook at the method's entry counts (`class_analysis`, `insertions`). With `time`, hooks at the method's ends end its
//! time, exceptions included.

use lucce_bytecode::{ClassFileMethod, HelperMethod};
use lucce_options::NamedMethodUse;

use crate::helpers::{
    BEGIN_TIME, END_TIME, END_TIME_FROM_VM, END_TIME_THROWN, END_TIME_THROWN_FROM_VM,
};
use crate::instrumentation::{FrameKind, MethodInstrumentation};

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
        return Some("calls not counted: it is native; name a method that calls it");
    }
    if !instrumentation.has_entry_site() {
        return Some("calls not counted: the JVM or the hooks themselves need it unchanged");
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
    (named == NamedMethodUse::Timed && !has_time).then_some(
        "times not recorded: a thread or a task begins with it; its calls are counted",
    )
}
