//! `requests=auto`: methods that receive requests, messages and scheduled jobs (module `request_entries`).
//!
//! A hook at the method's entry opens a request; hooks at its ends close it, exceptions included.

use lucce_bytecode::HelperMethod;

use super::request_entries::find_request_entry;
use crate::helpers::{BEGIN_REQUEST, BEGIN_REQUEST_OF, END_REQUEST, END_REQUEST_FROM_VM};
use crate::instrumentation::{HookPlace, HookSiteKind};

use super::{AnalyzedMethod, EventHooks};

/// The hooks of the kind.
pub(super) struct RequestHooks;

impl EventHooks for RequestHooks {
    fn find_places(&self, at: &AnalyzedMethod<'_>) -> Vec<HookPlace> {
        let entry = find_request_entry(at).map(|entry| HookPlace {
            bci: 0,
            kind: HookSiteKind::Request(entry),
        });
        entry.into_iter().collect()
    }

    fn happens_in(&self, at: &AnalyzedMethod<'_>) -> bool {
        find_request_entry(at).is_some()
    }

    fn called_helpers(&self) -> Vec<HelperMethod<'static>> {
        vec![
            BEGIN_REQUEST,
            BEGIN_REQUEST_OF,
            END_REQUEST,
            END_REQUEST_FROM_VM,
        ]
    }

    fn inherited_helpers(&self) -> Vec<HelperMethod<'static>> {
        self.called_helpers()
    }
}
