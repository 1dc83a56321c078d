//! One event as two words, or three if it has a value.
//!
//! ```text
//! word 0   63        has a value
//!          62 … 40   type: the log's EventType id; 0: an allocation by bytecode; SWITCH
//!          39 … 0    nanoseconds since the block's clock, never 0
//! word 1   the context id; of SWITCH, the number of the thread whose events follow
//! word 2   the value, signed, unless it is 0
//! ```
//! Word 0 is stored last: if it is 0, there is no entry, and none follows in its block. The helper class writes such
//! entries (`LucceRtCounting.writeToStream`).

use lucce_layout::stream_entry::HAS_VALUE;
pub use lucce_layout::stream_entry::TIME_BITS;
pub(crate) use lucce_layout::stream_entry::{LONGEST, WORD};

/// The largest id of a type.
pub const MAX_TYPE_ID: u32 = THREAD_SWITCH - 1;
pub(crate) const THREAD_SWITCH: u32 = (1 << 23) - 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StreamEntry {
    /// Nanoseconds since the block's clock.
    pub elapsed_ns: u64,
    pub kind: u32,
    pub number: u64,
    pub value: i64,
}

impl StreamEntry {
    /// Returns word 0. `None`: the time or the type does not fit.
    pub fn encode_head(&self) -> Option<u64> {
        let fits =
            self.elapsed_ns != 0 && self.elapsed_ns >> TIME_BITS == 0 && self.kind <= THREAD_SWITCH;
        let flag = if self.value == 0 { 0 } else { HAS_VALUE };
        fits.then_some(flag | u64::from(self.kind) << TIME_BITS | self.elapsed_ns)
    }

    /// Returns the first entry of `bytes` and its length in bytes. `Ok(None)`: there is none.
    ///
    /// # Errors
    /// Why the bytes are no entry.
    pub fn decode_first(bytes: &[u8]) -> Result<Option<(StreamEntry, usize)>, &'static str> {
        let Some(head) = read_word(bytes, 0).filter(|head| *head != 0) else {
            return Ok(None);
        };
        let has_value = head & HAS_VALUE != 0;
        let number = read_word(bytes, 1).ok_or("an event that goes on behind its block")?;
        let value = match has_value {
            true => read_word(bytes, 2).ok_or("an event that goes on behind its block")?,
            false => 0,
        };
        let entry = StreamEntry {
            elapsed_ns: head & ((1 << TIME_BITS) - 1),
            kind: (head >> TIME_BITS) as u32 & THREAD_SWITCH,
            number,
            value: value.cast_signed(),
        };
        if entry.elapsed_ns == 0 {
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

fn read_word(bytes: &[u8], index: usize) -> Option<u64> {
    let bytes = bytes.get(index * WORD..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod entry_tests {
    use super::*;

    fn bytes(entry: StreamEntry) -> Vec<u8> {
        let mut words = vec![entry.encode_head().unwrap(), entry.number];
        words.extend((entry.value != 0).then_some(entry.value.cast_unsigned()));
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn what_was_written_is_read() {
        for value in [0, 1, -1, i64::MIN, i64::MAX] {
            for (passed, kind) in [(1, 0), ((1 << 40) - 1, MAX_TYPE_ID), (77, THREAD_SWITCH)] {
                let number = u64::MAX;
                let entry = StreamEntry {
                    elapsed_ns: passed,
                    kind,
                    number,
                    value,
                };
                let bytes = bytes(entry);
                assert_eq!(bytes.len(), if value == 0 { 16 } else { 24 });
                assert_eq!(
                    StreamEntry::decode_first(&bytes),
                    Ok(Some((entry, bytes.len())))
                );
                for end in 1..bytes.len() {
                    let cut = StreamEntry::decode_first(&bytes[..end]);
                    assert!(matches!(cut, Err(_) | Ok(None)), "{end}: {cut:?}");
                }
            }
        }
        assert_eq!(StreamEntry::decode_first(&[0; 24]), Ok(None));
    }

    #[test]
    fn what_does_not_fit_is_no_entry() {
        let entry = |passed, kind| StreamEntry {
            elapsed_ns: passed,
            kind,
            number: 1,
            value: 0,
        };
        assert_eq!(entry(0, 1).encode_head(), None);
        assert_eq!(entry(1 << TIME_BITS, 1).encode_head(), None);
        assert_eq!(entry(1, THREAD_SWITCH + 1).encode_head(), None);
    }
}
