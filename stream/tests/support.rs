//! Streams for tests, and what is in them.

use lucce_stream::{Event, Header, Place, Stream, StreamThread, ThreadId, Writer};

pub const START: Header = Header {
    pid: 7,
    start: 1_000_000,
    clock: 500,
};

/// A thread's side of a stream, as the agent has it.
pub struct Thread {
    pub place: Place,
    pub lane: ThreadId,
    pub id: StreamThread,
}

impl Thread {
    pub fn start(writer: &Writer, lane: u32, name: &str) -> Thread {
        let lane = ThreadId(lane);
        let id = writer.thread(lane, name, false);
        Thread {
            place: Place::default(),
            lane,
            id: id.unwrap_or_default(),
        }
    }

    /// `false`: no room.
    pub fn event(
        &mut self,
        writer: &Writer,
        now: u64,
        (kind, number, value): (u32, u64, i64),
    ) -> bool {
        if self.place.put(now, kind, number, value) {
            return true;
        }
        if self.place.is_refused() || self.id == StreamThread(0) {
            return false;
        }
        self.place.renew(writer, (self.lane, self.id), now);
        self.place.put(now, kind, number, value)
    }
}

/// Clock, thread, type, number and value.
pub type Told = (u64, u32, u32, u64, i64);

pub fn told(stream: &Stream) -> Vec<Told> {
    let told = |event: Event| {
        let Event {
            clock,
            thread,
            event,
            id,
            value,
            ..
        } = event;
        (clock, thread.0, event.0, id.0, value)
    };
    stream.events().map(told).collect()
}
