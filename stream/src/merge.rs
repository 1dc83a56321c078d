//! All threads' events in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::slice;

use lucce_callgraph::ContextId;
use lucce_tracelog::{EventTypeId, ThreadId};

use crate::StreamThread;
use crate::entry::{Entry, SWITCH};
use crate::reader::Part;

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// What `System.nanoTime` said when it happened, or when it was over.
    pub clock: u64,
    pub thread: StreamThread,
    /// The log's thread, by which its counters are known.
    pub lane: ThreadId,
    pub event: EventTypeId,
    pub id: ContextId,
    /// In the type's unit. What `new` took is not among an allocation's bytes, as in the log's counters.
    pub value: i64,
    /// Of its entry, in the file.
    pub offset: u64,
}

/// See [`Stream::events`](crate::Stream::events).
pub struct Events<'s> {
    lanes: Vec<Lane<'s>>,
    /// The next event of each lane: its time and the lane.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

/// What one thread after the other wrote.
struct Lane<'s> {
    id: ThreadId,
    bytes: &'s [u8],
    parts: slice::Iter<'s, Part>,
    /// Of the part that is read: the entries left, and where they are.
    rest: &'s [u8],
    at: usize,
    clock: u64,
    thread: StreamThread,
    event: Option<Event>,
}

impl<'s> Events<'s> {
    pub(crate) fn new(
        bytes: &'s [u8],
        lanes: impl Iterator<Item = (&'s ThreadId, &'s Vec<Part>)>,
    ) -> Self {
        let lanes = lanes.map(|(id, parts)| Lane {
            id: *id,
            bytes,
            parts: parts.iter(),
            rest: &[],
            at: 0,
            clock: 0,
            thread: StreamThread(0),
            event: None,
        });
        let mut events = Events {
            lanes: lanes.collect(),
            next: BinaryHeap::new(),
        };
        for index in 0..events.lanes.len() {
            events.advance(index);
        }
        events
    }

    /// The lane's next event is the one to compare.
    fn advance(&mut self, index: usize) -> Option<Event> {
        let lane = self.lanes.get_mut(index)?;
        let before = lane.event.take();
        lane.event = lane.next();
        if let Some(event) = lane.event {
            self.next.push(Reverse((event.clock, index)));
        }
        before
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let Reverse((_, index)) = self.next.pop()?;
        self.advance(index)
    }
}

impl Lane<'_> {
    fn next(&mut self) -> Option<Event> {
        loop {
            // Entries were checked when the stream was opened.
            let Some((entry, length)) = Entry::first(self.rest).ok().flatten() else {
                let part = *self.parts.next()?;
                self.open(part);
                continue;
            };
            let offset = self.at as u64;
            self.rest = self.rest.get(length..).unwrap_or_default();
            self.at += length;
            if entry.kind == SWITCH {
                self.thread = StreamThread(entry.number as u32);
                continue;
            }
            return Some(Event {
                clock: self.clock.saturating_add(entry.passed),
                thread: self.thread,
                lane: self.id,
                event: EventTypeId(entry.kind),
                id: ContextId(entry.number),
                value: entry.value,
                offset,
            });
        }
    }

    fn open(&mut self, part: Part) {
        let entries = self.bytes.get(part.offset..part.offset + part.used);
        self.rest = entries.unwrap_or_default();
        (self.at, self.clock, self.thread) = (part.offset, part.clock, part.thread);
    }
}
