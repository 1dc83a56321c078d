//! One event: two words, or three if it has a value.
//!
//! ```text
//! word 0   63        has a value
//!          62 … 40   type: the log's EventType id; 0: an allocation by bytecode; SWITCH
//!          39 … 0    nanoseconds since the block's clock, never 0
//! word 1   the context's number; of SWITCH, the number of the thread whose events follow
//! word 2   the value, signed, unless it is 0
//! ```
//! Word 0 is stored last: where it is 0 there is no entry, and in its block none follows. The helper
//! class writes such entries (`LucceRtEvents.stream`).

use crate::java::HAS_VALUE;
pub use crate::java::TIME_BITS;
pub(crate) use crate::java::{LONGEST, WORD};

/// The largest id of a type.
pub const MOST_TYPE: u32 = SWITCH - 1;
pub(crate) const SWITCH: u32 = (1 << 23) - 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// Since the block's clock.
    pub passed: u64,
    pub kind: u32,
    pub number: u64,
    pub value: i64,
}

impl Entry {
    /// Word 0. `None`: the time or the type does not fit.
    pub fn head(&self) -> Option<u64> {
        let fits = self.passed != 0 && self.passed >> TIME_BITS == 0 && self.kind <= SWITCH;
        let flag = if self.value == 0 { 0 } else { HAS_VALUE };
        fits.then_some(flag | u64::from(self.kind) << TIME_BITS | self.passed)
    }

    /// The first entry of `bytes` and how long it is. `Ok(None)`: there is none.
    ///
    /// # Errors
    /// Why it cannot be one.
    pub fn first(bytes: &[u8]) -> Result<Option<(Entry, usize)>, &'static str> {
        let Some(head) = word(bytes, 0).filter(|head| *head != 0) else {
            return Ok(None);
        };
        let has_value = head & HAS_VALUE != 0;
        let number = word(bytes, 1).ok_or("an event that goes on behind its block")?;
        let value = match has_value {
            true => word(bytes, 2).ok_or("an event that goes on behind its block")?,
            false => 0,
        };
        let entry = Entry {
            passed: head & ((1 << TIME_BITS) - 1),
            kind: (head >> TIME_BITS) as u32 & SWITCH,
            number,
            value: value.cast_signed(),
        };
        if entry.passed == 0 {
            return Err("an event at no time");
        }
        if has_value && value == 0 {
            return Err("an event with a value that is none");
        }
        if number == 0 {
            return Err("an event without a context");
        }
        let words = if has_value { 3 } else { 2 };
        Ok(Some((entry, words * WORD)))
    }
}

fn word(bytes: &[u8], index: usize) -> Option<u64> {
    let bytes = bytes.get(index * WORD..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(entry: Entry) -> Vec<u8> {
        let mut words = vec![entry.head().unwrap(), entry.number];
        words.extend((entry.value != 0).then_some(entry.value.cast_unsigned()));
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn what_was_written_is_read() {
        for value in [0, 1, -1, i64::MIN, i64::MAX] {
            for (passed, kind) in [(1, 0), ((1 << 40) - 1, MOST_TYPE), (77, SWITCH)] {
                let number = u64::MAX;
                let entry = Entry {
                    passed,
                    kind,
                    number,
                    value,
                };
                let bytes = bytes(entry);
                assert_eq!(bytes.len(), if value == 0 { 16 } else { 24 });
                assert_eq!(Entry::first(&bytes), Ok(Some((entry, bytes.len()))));
                for end in 1..bytes.len() {
                    let cut = Entry::first(&bytes[..end]);
                    assert!(matches!(cut, Err(_) | Ok(None)), "{end}: {cut:?}");
                }
            }
        }
        assert_eq!(Entry::first(&[0; 24]), Ok(None));
    }

    #[test]
    fn what_does_not_fit_is_no_entry() {
        let entry = |passed, kind| Entry {
            passed,
            kind,
            number: 1,
            value: 0,
        };
        assert_eq!(entry(0, 1).head(), None);
        assert_eq!(entry(1 << TIME_BITS, 1).head(), None);
        assert_eq!(entry(1, SWITCH + 1).head(), None);
    }
}
