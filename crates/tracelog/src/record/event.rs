//! Types of events other than allocations by bytecode, as counted by counters by type.

use std::borrow::Cow;

use lucce_callgraph::ContextId;

use super::RecordBody;
use crate::record_codec::{Parsed, RecordDecoder, RecordEncoder};

/// The id of an event type, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct EventTypeId(pub u32);

/// A kind of event and its object. It precedes the first counter with its id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventType<'a> {
    pub id: EventTypeId,
    /// `lock`, `exception`, `call`, …, or a name chosen by the program.
    pub kind: Cow<'a, str>,
    /// Unit of the values: `bytes`, `ns`, or empty.
    pub unit: Cow<'a, str>,
    /// The object of the event: a class's descriptor, `Ljava/lang/String;`, or other text in brackets; empty if none.
    pub detail: Cow<'a, str>,
}

impl<'a> RecordBody<'a> for EventType<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.id.0);
        out.put_text(&self.kind);
        out.put_text(&self.unit);
        out.put_text(&self.detail);
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(EventType {
            id: EventTypeId(input.read_small()?),
            kind: input.read_text()?.into(),
            unit: input.read_text()?.into(),
            detail: input.read_text()?.into(),
        })
    }
}

/// Returns the detail of an event type that counts holders of a lock for which the context `waiting` waits.
///
/// `wait`: the detail of the wait. Behind it are a space and 16 hexadecimal digits.
#[must_use]
pub fn lock_holder_detail(wait: &str, waiting: ContextId) -> String {
    format!("{wait} {:016x}", waiting.0)
}

/// Splits such a detail into the detail of the wait and the context that waits.
#[must_use]
pub fn split_lock_holder_detail(detail: &str) -> Option<(&str, ContextId)> {
    const DIGITS: usize = 16;
    let (wait, digits) = detail.rsplit_once(' ')?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    let is_number = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_number.then_some((wait, ContextId(number)))
}

#[cfg(test)]
mod event_tests {
    use super::*;

    #[test]
    fn the_waiting_context_stands_behind_the_wait() {
        let detail = lock_holder_detail(
            "Ljava/lang/Object; (enter)",
            ContextId(0xfedc_0000_0000_0a1b),
        );
        assert_eq!(detail, "Ljava/lang/Object; (enter) fedc000000000a1b");
        let split = split_lock_holder_detail(&detail);
        assert_eq!(
            split,
            Some((
                "Ljava/lang/Object; (enter)",
                ContextId(0xfedc_0000_0000_0a1b)
            ))
        );
        for other in [
            "",
            "Ljava/lang/Object; (enter)",
            "(park) 12",
            "x +00000000000000a",
        ] {
            assert_eq!(split_lock_holder_detail(other), None, "{other}");
        }
    }
}
