//! `events=alloc`: allocations by Java code, with a hook behind each instruction and each call that makes an object.

use lucce_bytecode::{MethodCall, NewField};

use crate::api_calls::allocation_site_kind;
use crate::helpers::public_field;
use crate::instrumentation::{HookPlace, HookSiteKind};
use crate::object_creation::{fills_stack_trace, message_local, object_creation};

use super::{AnalyzedMethod, EventHooks};

/// The hooks of the kind.
pub(super) struct AllocationHooks;

/// A field of `java.lang.Class`: how objects of the class are counted.
const CLASS_FIELD: &str = "$lucceType";

impl EventHooks for AllocationHooks {
    fn call_site_kind(
        &self,
        at: &AnalyzedMethod<'_>,
        call: &MethodCall<'_>,
    ) -> Option<HookSiteKind> {
        if let Some(making) = object_creation(call) {
            return Some(HookSiteKind::Creation(making));
        }
        if fills_stack_trace(call) {
            return Some(HookSiteKind::StackTrace);
        }
        let (name, descriptor) = (&at.method.name, &at.method.descriptor);
        message_local(at.class, name, descriptor, call).map(HookSiteKind::ThrowableMessage)
    }

    fn find_places(&self, at: &AnalyzedMethod<'_>) -> Vec<HookPlace> {
        let places = at.scan.allocations.iter().map(|alloc| HookPlace {
            bci: alloc.bci,
            kind: allocation_site_kind(alloc),
        });
        places.collect()
    }

    fn happens_in(&self, at: &AnalyzedMethod<'_>) -> bool {
        let mut calls = at.scan.calls.iter();
        !at.scan.allocations.is_empty() || calls.any(|call| object_creation(call).is_some())
    }

    fn added_fields(&self, class: &str, _in_scope: bool) -> Vec<NewField<'static>> {
        match class {
            "java/lang/Class" => vec![public_field(CLASS_FIELD)],
            _ => Vec::new(),
        }
    }
}
