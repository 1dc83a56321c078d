//! Streams for tests, and what is in them.

use lucce_stream::{
    EventCursor, EventStream, StreamEvent, StreamHeader, StreamThread, StreamWriter, ThreadId,
};

pub const START: StreamHeader = StreamHeader {
    pid: 7,
    start: 1_000_000,
    clock: 500,
};

/// A thread's side of a stream, as the agent has it.
pub struct Thread {
    pub place: EventCursor,
    pub thread_id: ThreadId,
    pub id: StreamThread,
}

impl Thread {
    pub fn start(writer: &StreamWriter, thread_id: u32, name: &str) -> Thread {
        let thread_id = ThreadId(thread_id);
        let id = writer.add_thread(thread_id, name, false);
        Thread {
            place: EventCursor::default(),
            thread_id,
            id: id.unwrap_or_default(),
        }
    }

    /// `false`: no room.
    pub fn event(
        &mut self,
        writer: &StreamWriter,
        now: u64,
        kind: u32,
        number: u64,
        value: i64,
    ) -> bool {
        if self.place.write_event(now, kind, number, value) {
            return true;
        }
        if self.place.is_refused() || self.id == StreamThread(0) {
            return false;
        }
        self.place
            .renew_block(writer, (self.thread_id, self.id), now);
        self.place.write_event(now, kind, number, value)
    }
}

/// Clock, thread, type, number and value.
pub type EventFields = (u64, u32, u32, u64, i64);

pub fn read_events(stream: &EventStream) -> Vec<EventFields> {
    let to_fields = |event: StreamEvent| {
        let StreamEvent {
            clock,
            thread,
            event,
            id,
            value,
            ..
        } = event;
        (clock, thread.0, event.0, id.0, value)
    };
    stream.iter_events().map(to_fields).collect()
}
