//! All threads' events in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::slice;

use lucce_callgraph::ContextId;
use lucce_tracelog::{EventTypeId, ThreadId};

use crate::StreamThread;
use crate::entry::{StreamEntry, THREAD_SWITCH};
use crate::reader::BlockEntries;

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamEvent {
    /// What `System.nanoTime` said when it happened, or when it was over.
    pub clock: u64,
    pub thread: StreamThread,
    /// The log's thread, by which its counters are known.
    pub log_thread: ThreadId,
    pub event: EventTypeId,
    pub id: ContextId,
    /// In the type's unit. What `new` took is not among an allocation's bytes, as in the log's counters.
    pub value: i64,
    /// Of its entry, in the file.
    pub offset: u64,
}

/// See [`EventStream::iter_events`](crate::EventStream::iter_events).
pub struct StreamEventIter<'s> {
    cursors: Vec<LogThreadCursor<'s>>,
    /// The next event of each lane: its time and the lane.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

/// What one thread after the other wrote.
struct LogThreadCursor<'s> {
    id: ThreadId,
    bytes: &'s [u8],
    parts: slice::Iter<'s, BlockEntries>,
    /// Of the part that is read: the entries left, and where they are.
    unread: &'s [u8],
    at: usize,
    clock: u64,
    thread: StreamThread,
    event: Option<StreamEvent>,
}

impl<'s> StreamEventIter<'s> {
    pub(crate) fn new(
        bytes: &'s [u8],
        lanes: impl Iterator<Item = (&'s ThreadId, &'s Vec<BlockEntries>)>,
    ) -> Self {
        let lanes = lanes.map(|(id, parts)| LogThreadCursor {
            id: *id,
            bytes,
            parts: parts.iter(),
            unread: &[],
            at: 0,
            clock: 0,
            thread: StreamThread(0),
            event: None,
        });
        let mut events = StreamEventIter {
            cursors: lanes.collect(),
            next: BinaryHeap::new(),
        };
        for index in 0..events.cursors.len() {
            events.advance_cursor(index);
        }
        events
    }

    /// The lane's next event is the one to compare.
    fn advance_cursor(&mut self, index: usize) -> Option<StreamEvent> {
        let lane = self.cursors.get_mut(index)?;
        let before = lane.event.take();
        lane.event = lane.next_event();
        if let Some(event) = lane.event {
            self.next.push(Reverse((event.clock, index)));
        }
        before
    }
}

impl Iterator for StreamEventIter<'_> {
    type Item = StreamEvent;

    fn next(&mut self) -> Option<StreamEvent> {
        let Reverse((_, index)) = self.next.pop()?;
        self.advance_cursor(index)
    }
}

impl LogThreadCursor<'_> {
    fn next_event(&mut self) -> Option<StreamEvent> {
        loop {
            // Entries were checked when the stream was opened.
            let Some((entry, length)) = StreamEntry::decode_first(self.unread).ok().flatten()
            else {
                let part = *self.parts.next()?;
                self.open_block(part);
                continue;
            };
            let offset = self.at as u64;
            self.unread = self.unread.get(length..).unwrap_or_default();
            self.at += length;
            if entry.kind == THREAD_SWITCH {
                self.thread = StreamThread(entry.number as u32);
                continue;
            }
            return Some(StreamEvent {
                clock: self.clock.saturating_add(entry.elapsed_ns),
                thread: self.thread,
                log_thread: self.id,
                event: EventTypeId(entry.kind),
                id: ContextId(entry.number),
                value: entry.value,
                offset,
            });
        }
    }

    fn open_block(&mut self, part: BlockEntries) {
        let entries = self.bytes.get(part.offset..part.offset + part.used);
        self.unread = entries.unwrap_or_default();
        (self.at, self.clock, self.thread) = (part.offset, part.clock, part.thread);
    }
}
