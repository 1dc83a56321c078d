//! Merges all threads' events in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::slice;

use lucce_callgraph::ContextId;
use lucce_tracelog::{EventTypeId, ThreadId};

use crate::StreamThread;
use crate::entry::{StreamEntry, THREAD_SWITCH};

/// An event of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamEvent {
    /// `System.nanoTime` when it happened or ended.
    pub clock: u64,
    pub thread: StreamThread,
    /// The log's thread id, by which its counters are found.
    pub log_thread: ThreadId,
    pub event: EventTypeId,
    pub id: ContextId,
    /// In the type's unit. As in the log's counters, bytes of `new` are not included for allocations.
    pub value: i64,
    /// The file offset of its entry.
    pub offset: u64,
}

/// The entries of one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockEntries {
    /// The file offset of the first entry.
    pub offset: usize,
    pub used: usize,
    pub clock: u64,
    pub thread: StreamThread,
}

/// See [`EventStream::iter_events`](crate::EventStream::iter_events).
pub struct StreamEventIter<'s> {
    cursors: Vec<LogThreadCursor<'s>>,
    /// The next event of each cursor: its time and the cursor's index.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

/// The blocks of one thread id, which several threads wrote in succession.
struct LogThreadCursor<'s> {
    id: ThreadId,
    bytes: &'s [u8],
    parts: slice::Iter<'s, BlockEntries>,
    /// The unread entries of the current block, and their offset.
    unread: &'s [u8],
    at: usize,
    clock: u64,
    thread: StreamThread,
    event: Option<StreamEvent>,
}

impl<'s> StreamEventIter<'s> {
    pub(crate) fn new(
        bytes: &'s [u8],
        threads: impl Iterator<Item = (&'s ThreadId, &'s Vec<BlockEntries>)>,
    ) -> Self {
        let threads = threads.map(|(id, parts)| LogThreadCursor {
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
            cursors: threads.collect(),
            next: BinaryHeap::new(),
        };
        for index in 0..events.cursors.len() {
            events.advance_cursor(index);
        }
        events
    }

    /// Advances a cursor and returns its event.
    fn advance_cursor(&mut self, index: usize) -> Option<StreamEvent> {
        let cursor = self.cursors.get_mut(index)?;
        let before = cursor.event.take();
        cursor.event = cursor.next_event();
        if let Some(event) = cursor.event {
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
