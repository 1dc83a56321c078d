//! `events=io`: reads and writes of files and sockets, by hooks around the JDK's calls of natives (`jdk::io`).

use lucce_bytecode::{CodeInsertion, HelperMethod, MethodCall};

use crate::helpers::helper_of;
use crate::instrumentation::HookSiteKind;
use crate::jdk::io::{IoPurpose, IoSizeSource, OPERATIONS, find_operation, operation_purpose};
use crate::method_insertions::MethodInsertions;

use super::{AnalyzedMethod, EventHooks, IO, event_call, outside_site};

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
            helper: AFTER_WRITE,
            site,
        };
        match operation.size {
            IoSizeSource::Returned => vec![before(BEFORE_OPERATION), returned(AFTER_READ)],
            IoSizeSource::ReturnedLong => {
                let helper = AFTER_READ_LONG;
                vec![
                    before(BEFORE_OPERATION),
                    CodeInsertion::AfterDup2 { helper, site },
                ]
            }
            IoSizeSource::ByteReturned => vec![before(BEFORE_OPERATION), returned(AFTER_READ_BYTE)],
            IoSizeSource::Nothing => vec![before(BEFORE_OPERATION), returned(AFTER_OTHER)],
            IoSizeSource::NothingReturned => vec![before(BEFORE_OPERATION), written],
            IoSizeSource::Last => vec![given(BEFORE_LAST), written],
            IoSizeSource::LastButOne => vec![given(BEFORE_LAST_BUT_ONE), written],
            IoSizeSource::Byte => vec![before(BEFORE_BYTE), written],
            IoSizeSource::PacketSent => {
                let helper = BEFORE_PACKET;
                vec![CodeInsertion::MarkTop { helper, site }, written]
            }
            IoSizeSource::PacketReceived => {
                let (helper, local) = (AFTER_PACKET, 1);
                let received = CodeInsertion::AfterLocal {
                    helper,
                    site,
                    local,
                };
                vec![before(BEFORE_OPERATION), received]
            }
        }
    }

    fn out_of_scope_insertions(&self, at: &AnalyzedMethod<'_>) -> MethodInsertions {
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
        MethodInsertions::from_places(inserts)
    }

    fn call_word(&self, which: u8) -> Option<&'static str> {
        operation_purpose(which.into()).map(IoPurpose::word)
    }

    fn called_helpers(&self) -> Vec<HelperMethod<'static>> {
        vec![
            BEFORE_OPERATION,
            BEFORE_BYTE,
            BEFORE_LAST,
            BEFORE_LAST_BUT_ONE,
            BEFORE_PACKET,
            AFTER_READ,
            AFTER_READ_LONG,
            AFTER_READ_BYTE,
            AFTER_OTHER,
            AFTER_WRITE,
            AFTER_PACKET,
        ]
    }
}

const fn io_helper(name: &'static str, descriptor: &'static str) -> HelperMethod<'static> {
    helper_of("java/lang/LucceRtIo", name, descriptor)
}

const BEFORE_OPERATION: HelperMethod<'static> = io_helper("beforeOperation", "(JI)V");
const BEFORE_BYTE: HelperMethod<'static> = io_helper("beforeByte", "(JI)V");
const BEFORE_LAST: HelperMethod<'static> = io_helper("beforeLast", "(IIJI)V");
const BEFORE_LAST_BUT_ONE: HelperMethod<'static> = io_helper("beforeLastButOne", "(IIJI)V");
const BEFORE_PACKET: HelperMethod<'static> = io_helper("beforePacket", "(Ljava/lang/Object;JI)V");
const AFTER_READ: HelperMethod<'static> = io_helper("afterRead", "(IJI)V");
const AFTER_READ_LONG: HelperMethod<'static> = io_helper("afterRead", "(JJI)V");
const AFTER_READ_BYTE: HelperMethod<'static> = io_helper("afterReadByte", "(IJI)V");
const AFTER_OTHER: HelperMethod<'static> = io_helper("afterOther", "(IJI)V");
const AFTER_WRITE: HelperMethod<'static> = io_helper("afterWrite", "(JI)V");
const AFTER_PACKET: HelperMethod<'static> = io_helper("afterPacket", "(Ljava/lang/Object;JI)V");

#[cfg(test)]
mod io_tests {
    use super::*;
    use crate::kinds::call_of_site;

    #[test]
    fn all_have_hooks_on_both_sides() {
        for operation in 0..OPERATIONS.len() as u8 {
            assert_eq!(IoHooks.call_insertions(operation, 1).len(), 2);
            assert_eq!(call_of_site(outside_site(operation)), Some(operation));
            assert!(IoHooks.call_word(operation).is_some());
        }
        assert!(
            IoHooks
                .call_insertions(OPERATIONS.len() as u8, 1)
                .is_empty()
        );
        assert_eq!(IoHooks.call_word(OPERATIONS.len() as u8), None);
        assert_eq!(call_of_site(1), None);
    }
}
