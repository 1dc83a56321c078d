//! `record=stream`: each event that is counted is also an entry, with its time, of a file beside the log.
//!
//! A thread's place for its next entry lies in its state (`thread`), where Java code writes as well: the
//! helper class's editions with STREAM do for what is counted in Java what [`record`] does here. When a
//! thread has ended, the next one of its lane goes on in its block. What finds no room is counted
//! only, so the log's counters say how much that was.
use lucce_callgraph::ContextId;
use lucce_stream::{MOST_TYPE, Place, StreamThread, ThreadId};
use lucce_tracelog::EventTypeId;

use crate::core::Streamer;
use crate::counting::Counting;
use crate::thread::ThreadState;
use crate::thread::cells;
use crate::thread::cells::lane_of;
use crate::thread::lane::Lane;
use lucce_vm::Env;
use lucce_vm::clock;

impl Streamer {
    /// Room for the thread's next event, at the time `now`, or the certainty that there is none.
    fn make_room(&self, counting: &Counting, env: Env, state: &ThreadState, now: u64) {
        let known = state.stream_thread.get();
        let mut lane = lane_of(counting, env, state);
        let id = cells::id(counting, &mut lane);
        if known != StreamThread::default() {
            return state.place.renew(&self.writer, (id, known), now);
        }
        let (thread, place) = self.begin(&mut lane, id, now);
        state.stream_thread.set(thread);
        state.place.go_to(place);
    }

    /// A thread's first event: who it is, and a place.
    fn begin(&self, lane: &mut Lane, id: ThreadId, now: u64) -> (StreamThread, Place) {
        let Some(thread) = self.writer.thread(id, &lane.name, lane.is_virtual) else {
            return (StreamThread::default(), self.writer.refuse(now));
        };
        let place = std::mem::take(&mut lane.place);
        if !place.hand_over(now, thread) {
            place.renew(&self.writer, (id, thread), now);
        }
        (thread, place)
    }
}

/// With `record=stream`: an event of the current thread, whose state this is, has just been counted.
pub fn record(
    counting: &Counting,
    env: Env,
    state: &ThreadState,
    (event, number): (EventTypeId, ContextId),
    value: i64,
) {
    let Some(streamer) = &counting.streamer else {
        return;
    };
    if number == ContextId::UNKNOWN || event.0 > MOST_TYPE {
        return;
    }
    if state.place.is_refused() {
        return;
    }
    let now = clock::nano_time();
    if !state.place.put(now, event.0, number.0, value) {
        streamer.make_room(counting, env, state, now);
        // Without room it is counted only.
        state.place.put(now, event.0, number.0, value);
    }
}

/// Room for an event that Java code writes, at the time `now`.
pub fn make_room(counting: &Counting, env: Env, state: &ThreadState, now: u64) {
    if let Some(streamer) = &counting.streamer {
        streamer.make_room(counting, env, state, now);
    }
}
