//! Foreign and damaged files: an error with its offset, whatever the bytes are, and never a panic.

mod support;

use std::fs;

use lucce_stream::{EventStream, OpenError, StreamHeader, StreamWriter};
use proptest::prelude::*;
use support::{START, Thread, read_events};

/// Two threads; blocks that are sealed and one that is open.
fn sample() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.events");
    let writer = StreamWriter::create(&path, &START, 1 << 20).unwrap();
    let mut threads = [1, 2].map(|n| Thread::start(&writer, n, "some thread"));
    for n in 1..400 {
        let thread = &mut threads[n as usize % 2];
        assert!(thread.event(&writer, 600 + n, n as u32, n << 20, n as i64 % 3));
    }
    writer.finish_stream(2000);
    fs::read(&path).unwrap()
}

#[test]
fn what_is_changed_is_found() {
    let bytes = sample();
    let whole = EventStream::from_bytes(bytes.clone()).unwrap();
    assert_eq!((whole.damage(), whole.event_count()), (None, 399));
    let events = read_events(&whole);
    let (mut silent, mut damaged) = (0, 0);
    for at in 64..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x41;
        let stream = EventStream::from_bytes(bytes).unwrap();
        match stream.damage() {
            Some(damage) => {
                // A wrong time shows at the next event.
                assert!(damage.offset <= at as u64 + 24, "{at}: {damage}");
                damaged += 1;
            }
            // Bytes without a meaning, or numbers and values of a block that is open.
            None if read_events(&stream) == events => silent += 1,
            None => {}
        }
    }
    assert!(damaged > 8_000, "{damaged} of {}", bytes.len());
    assert!(silent < 2_000, "{silent} of {}", bytes.len());
}

#[test]
fn a_file_that_was_cut_is_read_up_to_the_cut() {
    let bytes = sample();
    let whole = read_events(&EventStream::from_bytes(bytes.clone()).unwrap());
    for end in (64..bytes.len()).step_by(40) {
        let stream = EventStream::from_bytes(bytes[..end].to_vec()).unwrap();
        let read = read_events(&stream);
        assert!(read.iter().all(|event| whole.contains(event)));
        let is_boundary = stream.damage().is_none();
        assert!(!is_boundary || end % 64 == 0, "{end}");
    }
    for end in 0..64 {
        assert!(EventStream::from_bytes(bytes[..end].to_vec()).is_err());
    }
}

#[test]
fn foreign_newer_and_broken_headers_are_distinguished() {
    let open = |bytes: &[u8]| EventStream::from_bytes(bytes.to_vec()).err();
    assert!(matches!(open(b""), Some(OpenError::Empty(_))));
    assert!(matches!(
        open(b"LUCCELOG and more"),
        Some(OpenError::Foreign(_))
    ));
    let mut bytes = sample();
    bytes[24] ^= 1;
    assert!(matches!(open(&bytes), Some(OpenError::Damaged(_))));
    let mut bytes = sample();
    bytes[8] = 9;
    let sum = crc32fast::hash(&bytes[..40]);
    bytes[40..44].copy_from_slice(&sum.to_le_bytes());
    let newer = open(&bytes);
    assert!(matches!(newer, Some(OpenError::Newer { version: 9, .. })));
    assert_eq!(
        *EventStream::from_bytes(sample()).unwrap().header(),
        StreamHeader { ..START }
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(
        at in 64..6000_usize,
        hostile in prop::collection::vec(any::<u8>(), 1..300),
        mends in any::<bool>(),
    ) {
        let mut bytes = sample();
        let end = (at + hostile.len()).min(bytes.len());
        let at = at.min(end);
        bytes[at..end].copy_from_slice(&hostile[..end - at]);
        if mends {
            // Checksums that fit what is there now.
            for block in (64..bytes.len() - 64).step_by(64) {
                if bytes[block..].starts_with(b"LEVB") {
                    let sum = crc32fast::hash(&bytes[block + 4..block + 32]);
                    bytes[block + 32..block + 36].copy_from_slice(&sum.to_le_bytes());
                }
            }
        }
        let stream = EventStream::from_bytes(bytes).unwrap();
        prop_assert_eq!(stream.iter_events().count() as u64, stream.event_count());
        let mut clock = 0;
        for event in stream.iter_events() {
            prop_assert!(event.clock >= clock);
            clock = event.clock;
            prop_assert!(stream.thread_info(event.thread).is_some());
        }
    }
}
