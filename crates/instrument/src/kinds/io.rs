//! `events=io`: reads and writes of files and sockets, by hooks around the JDK's calls of natives (`jdk::io`).

use lucce_bytecode::{CodeInsertion, HelperMethod, MethodCall};

use crate::helpers::helper_of;
use crate::instrumentation::HookSiteKind;
use crate::jdk::io::{IoSizeSource, OPERATIONS, find_operation};

use super::{AnalyzedMethod, EventHooks, IO, event_call};

/// The hooks of the kind.
pub(super) struct IoHooks;

impl EventHooks for IoHooks {
    fn call_site_kind(
        &self,
        at: &AnalyzedMethod<'_>,
        call: &MethodCall<'_>,
    ) -> Option<HookSiteKind> {
        let operation = find_operation(at.class, call, &|call| at.is_own_native(call))?;
        Some(HookSiteKind::EventCall(event_call(&IO, operation)))
    }

    /// `site`: for a class out of scope, see [`outside_site`].
    fn call_insertions(&self, which: u8, site: i32) -> Vec<CodeInsertion<'static>> {
        let Some(operation) = OPERATIONS.get(usize::from(which)) else {
            return Vec::new();
        };
        let before = |helper| CodeInsertion::Mark { helper, site };
        let given = |helper| CodeInsertion::MarkPair { helper, site };
        let returned = |helper| CodeInsertion::AfterDup { helper, site };
        let written = CodeInsertion::After {
            helper: WRITTEN,
            site,
        };
        match operation.size {
            IoSizeSource::Returned => vec![before(BEGINS), returned(READ)],
            IoSizeSource::ReturnedLong => {
                let helper = READ_LONG;
                vec![before(BEGINS), CodeInsertion::AfterDup2 { helper, site }]
            }
            IoSizeSource::ByteReturned => vec![before(BEGINS), returned(READ_BYTE)],
            IoSizeSource::Nothing => vec![before(BEGINS), returned(PASSED)],
            IoSizeSource::Last => vec![given(OF_LAST), written],
            IoSizeSource::LastButOne => vec![given(OF_LAST_BUT_ONE), written],
            IoSizeSource::Byte => vec![before(OF_BYTE), written],
        }
    }

    fn out_of_scope_insertions(
        &self,
        at: &AnalyzedMethod<'_>,
    ) -> Vec<(u16, CodeInsertion<'static>)> {
        let operations = at.scan.calls.iter().filter_map(|call| {
            let operation = find_operation(at.class, call, &|call| at.is_own_native(call))?;
            Some((call.bci, operation))
        });
        let inserts = operations.flat_map(|(bci, operation)| {
            let inserts = self
                .call_insertions(operation, outside_site(operation))
                .into_iter();
            inserts.map(move |insert| (bci, insert))
        });
        inserts.collect()
    }

    fn called_helpers(&self) -> Vec<HelperMethod<'static>> {
        vec![
            BEGINS,
            OF_BYTE,
            OF_LAST,
            OF_LAST_BUT_ONE,
            READ,
            READ_LONG,
            READ_BYTE,
            PASSED,
            WRITTEN,
        ]
    }
}

const fn io_helper(name: &'static str, descriptor: &'static str) -> HelperMethod<'static> {
    helper_of("java/lang/LucceRtIo", name, descriptor)
}

const BEGINS: HelperMethod<'static> = io_helper("begins", "(JI)V");
const OF_BYTE: HelperMethod<'static> = io_helper("ofByte", "(JI)V");
const OF_LAST: HelperMethod<'static> = io_helper("ofLast", "(IIJI)V");
const OF_LAST_BUT_ONE: HelperMethod<'static> = io_helper("ofLastButOne", "(IIJI)V");
const READ: HelperMethod<'static> = io_helper("read", "(IJI)V");
const READ_LONG: HelperMethod<'static> = io_helper("read", "(JJI)V");
const READ_BYTE: HelperMethod<'static> = io_helper("readByte", "(IJI)V");
const PASSED: HelperMethod<'static> = io_helper("passed", "(IJI)V");
const WRITTEN: HelperMethod<'static> = io_helper("written", "(JI)V");

/// Returns the number in place of a site, if the calling class is out of scope.
fn outside_site(operation: u8) -> i32 {
    -1 - i32::from(operation)
}

/// Returns the operation that a number in place of a site names; `None`: it is a site.
#[must_use]
pub fn operation_of_site(site: i32) -> Option<u8> {
    u8::try_from(-1 - i64::from(site)).ok()
}

#[cfg(test)]
mod io_tests {
    use super::*;

    #[test]
    fn all_have_hooks_on_both_sides() {
        for operation in 0..OPERATIONS.len() as u8 {
            assert_eq!(IoHooks.call_insertions(operation, 1).len(), 2);
            assert_eq!(operation_of_site(outside_site(operation)), Some(operation));
        }
        assert!(
            IoHooks
                .call_insertions(OPERATIONS.len() as u8, 1)
                .is_empty()
        );
        assert_eq!(operation_of_site(1), None);
    }
}
