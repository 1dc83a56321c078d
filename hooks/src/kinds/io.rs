//! `events=io`: reading and writing files and sockets, by hooks before and behind the JDK's calls of natives (`jdk::io`).

use lucce_bytecode::{Call, Helper, Insert};

use crate::helpers::of;
use crate::jdk::io::{OPERATIONS, Size, operation};
use crate::shape::Mark;

use super::{Against, At, InCode, Kind, PLAIN, gate};

/// What the log has beside the bytes of `io`: how long it took.
pub const IO_TIME: &str = "io-time";

pub static IO: Kind = Kind {
    name: "io",
    gate: gate::IO,
    also: &[IO_TIME],
    can_come_later: true,
    against: &[(
        Against::Attach,
        "events=io counts in hooks, which need the agent from the start (-agentpath)",
    )],
    code: Some(&Operations),
    ..PLAIN
};

struct Operations;

impl InCode for Operations {
    fn call(&self, at: &At<'_>, call: &Call<'_>) -> Option<Mark> {
        let operation = operation(at.class, call, &|call| at.is_own_native(call))?;
        Some(Mark::Of(IO.of(operation)))
    }

    /// `site` of a class out of scope: see [`outside`].
    fn inserts(&self, which: u8, site: i32) -> Vec<Insert<'static>> {
        let Some(operation) = OPERATIONS.get(usize::from(which)) else {
            return Vec::new();
        };
        let before = |helper| Insert::Mark { helper, site };
        let given = |helper| Insert::MarkPair { helper, site };
        let returned = |helper| Insert::AfterDup { helper, site };
        let written = Insert::After {
            helper: WRITTEN,
            site,
        };
        match operation.size {
            Size::Returned => vec![before(BEGINS), returned(READ)],
            Size::ReturnedLong => {
                let helper = READ_LONG;
                vec![before(BEGINS), Insert::AfterDup2 { helper, site }]
            }
            Size::ByteReturned => vec![before(BEGINS), returned(READ_BYTE)],
            Size::Nothing => vec![before(BEGINS), returned(PASSED)],
            Size::Last => vec![given(OF_LAST), written],
            Size::LastButOne => vec![given(OF_LAST_BUT_ONE), written],
            Size::Byte => vec![before(OF_BYTE), written],
        }
    }

    fn outside(&self, at: &At<'_>) -> Vec<(u16, Insert<'static>)> {
        let operations = at.scan.calls.iter().filter_map(|call| {
            let operation = operation(at.class, call, &|call| at.is_own_native(call))?;
            Some((call.bci, operation))
        });
        let inserts = operations.flat_map(|(bci, operation)| {
            let inserts = self.inserts(operation, outside(operation)).into_iter();
            inserts.map(move |insert| (bci, insert))
        });
        inserts.collect()
    }

    fn helpers(&self) -> Vec<Helper<'static>> {
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

const fn io(name: &'static str, descriptor: &'static str) -> Helper<'static> {
    of("java/lang/LucceRtIo", name, descriptor)
}

const BEGINS: Helper<'static> = io("begins", "(JI)V");
const OF_BYTE: Helper<'static> = io("ofByte", "(JI)V");
const OF_LAST: Helper<'static> = io("ofLast", "(IIJI)V");
const OF_LAST_BUT_ONE: Helper<'static> = io("ofLastButOne", "(IIJI)V");
const READ: Helper<'static> = io("read", "(IJI)V");
const READ_LONG: Helper<'static> = io("read", "(JJI)V");
const READ_BYTE: Helper<'static> = io("readByte", "(IJI)V");
const PASSED: Helper<'static> = io("passed", "(IJI)V");
const WRITTEN: Helper<'static> = io("written", "(JI)V");

/// In place of a site, where the calling class is out of scope.
fn outside(operation: u8) -> i32 {
    -1 - i32::from(operation)
}

/// The operation that stands in place of the site; `None`: it is a site.
#[must_use]
pub fn outside_of(site: i32) -> Option<u8> {
    u8::try_from(-1 - i64::from(site)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_have_hooks_on_both_sides() {
        for operation in 0..OPERATIONS.len() as u8 {
            assert_eq!(Operations.inserts(operation, 1).len(), 2);
            assert_eq!(outside_of(outside(operation)), Some(operation));
        }
        assert!(Operations.inserts(OPERATIONS.len() as u8, 1).is_empty());
        assert_eq!(outside_of(1), None);
    }
}
