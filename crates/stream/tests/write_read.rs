//! What threads wrote is what is read, in the order of time, however much each of them wrote.

mod support;

use std::fs;

use lucce_stream::{EventStream, MAX_TYPE_ID, StreamThread, StreamWriter};
use proptest::prelude::*;
use support::{EventFields, START, Thread, read_events};

fn written(limit: u64, write: impl FnOnce(&StreamWriter)) -> (Vec<u8>, StreamWriter) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.events");
    let writer = StreamWriter::create(&path, &START, limit).unwrap();
    write(&writer);
    (fs::read(&path).unwrap(), writer)
}

proptest! {
    #[test]
    fn events_of_all_threads_in_time_order(
        events in prop::collection::vec(
            (0..4_usize, 0..90_u64, 0..=MAX_TYPE_ID, 1..u64::MAX, prop_oneof![Just(0), any::<i64>()]),
            0..3000,
        ),
        ends in any::<bool>(),
    ) {
        let mut expected: Vec<EventFields> = Vec::new();
        let (bytes, _) = written(1 << 30, |writer| {
            let mut threads: Vec<_> = (0..4)
                .map(|n| Thread::start(writer, n + 10, &format!("t{n}")))
                .collect();
            let mut now = START.clock;
            for (at, passed, kind, number, value) in &events {
                // Sometimes longer than a block's clock reaches.
                now += if *passed == 89 { 1 << 41 } else { *passed };
                assert!(threads[*at].event(writer, now, *kind, *number, *value));
                expected.push((now, *at as u32 + 1, *kind, *number, *value));
            }
            if ends {
                writer.finish_stream(now);
            }
        });
        let stream = EventStream::from_bytes(bytes).unwrap();
        prop_assert_eq!(stream.damage(), None);
        prop_assert_eq!(stream.end_clock().is_some(), ends);
        prop_assert_eq!(stream.event_count(), expected.len() as u64);
        // At one time the order of threads is not known.
        expected.sort_by_key(|event| (event.0, event.1));
        prop_assert_eq!(read_events(&stream), expected);
        prop_assert_eq!(&*stream.threads()[3].name, "t3");
    }
}

#[test]
fn a_thread_goes_on_in_the_block_of_one_that_ended() {
    let (bytes, _) = written(1 << 20, |writer| {
        let mut first = Thread::start(writer, 1, "pool-1-thread-1");
        assert!(first.event(writer, 600, 1, 11, 5));
        let mut second = Thread::start(writer, 1, "pool-1-thread-2");
        second.place = first.place;
        assert!(second.place.hand_over_to(700, second.id));
        assert!(second.event(writer, 700, 2, 12, 0));
        writer.finish_stream(800);
    });
    let stream = EventStream::from_bytes(bytes).unwrap();
    assert_eq!(stream.damage(), None);
    assert_eq!(
        read_events(&stream),
        [(600, 1, 1, 11, 5), (700, 2, 2, 12, 0)]
    );
    let name = |n| {
        &*stream
            .thread_info(lucce_stream::StreamThread(n))
            .unwrap()
            .name
    };
    assert_eq!((name(1), name(2)), ("pool-1-thread-1", "pool-1-thread-2"));
    assert_eq!(
        (stream.since_start(700), stream.end_clock()),
        (200, Some(800))
    );
}

/// A copy of the file may have the words by which a thread begins, in a block that was there before, and not
/// that thread, which came behind what was copied.
#[test]
fn a_copy_ends_where_a_thread_begins_that_is_not_in_it() {
    let goes_on = |ended| {
        written(1 << 20, |writer| {
            let mut first = Thread::start(writer, 1, "main");
            assert!(first.event(writer, 600, 1, 11, 5));
            assert!(first.place.hand_over_to(700, StreamThread(2)));
            assert!(first.event(writer, 700, 2, 12, 0));
            if ended {
                writer.finish_stream(800);
            }
        })
    };
    let (bytes, _writer) = goes_on(false);
    let stream = EventStream::from_bytes(bytes).unwrap();
    assert_eq!((stream.damage(), stream.event_count()), (None, 1));
    assert_eq!(read_events(&stream), [(600, 1, 1, 11, 5)]);
    let (bytes, _writer) = goes_on(true);
    let stream = EventStream::from_bytes(bytes).unwrap();
    assert!(stream.damage().is_some());
}

/// The last block of a running JVM's file ends in a hole: nothing was written there.
#[test]
fn the_last_block_may_end_in_a_hole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.events");
    let writer = StreamWriter::create(&path, &START, 1 << 30).unwrap();
    let mut thread = Thread::start(&writer, 1, "main");
    for n in 1..=100_000 {
        assert!(thread.event(&writer, 1000 + n, 3, n, 0));
        // A new block has one event, and a hole behind it.
        if n % 64 == 0 {
            let stream = EventStream::open(&path).unwrap();
            assert_eq!((stream.damage(), stream.event_count()), (None, n));
        }
    }
}

#[test]
fn the_file_keeps_its_limit_and_has_the_time_when_it_was_full() {
    const LIMIT: u64 = 256 << 10;
    let mut kept = 0;
    let (bytes, writer) = written(LIMIT, |writer| {
        let mut thread = Thread::start(writer, 1, "main");
        for n in 1..=100_000 {
            if !thread.event(writer, 1000 + n, 3, n, 1) {
                break;
            }
            kept = n;
        }
        assert!(writer.is_full());
        assert!(!thread.event(writer, 2_000_000, 3, 1, 1), "full for good");
        let mut late = Thread::start(writer, 2, "late");
        assert!(!late.event(writer, 2_000_000, 3, 1, 1));
    });
    assert!(bytes.len() as u64 <= LIMIT && writer.size_bytes() <= LIMIT);
    let stream = EventStream::from_bytes(bytes).unwrap();
    assert_eq!(stream.damage(), None);
    assert_eq!(stream.event_count(), kept);
    assert!(kept > 8000, "{kept}");
    assert_eq!(stream.full_since(), Some(1000 + kept + 1));
}

#[test]
fn what_a_killed_process_wrote_is_there_without_any_end() {
    let (bytes, _) = written(1 << 20, |writer| {
        let mut thread = Thread::start(writer, 1, &"n".repeat(5000));
        for n in 1..500 {
            assert!(thread.event(writer, n, 1, n, 0));
        }
    });
    let stream = EventStream::from_bytes(bytes).unwrap();
    assert_eq!(
        (stream.damage(), stream.end_clock(), stream.event_count()),
        (None, None, 499)
    );
    assert_eq!(stream.threads()[0].name.len(), 1 << 10);
}
