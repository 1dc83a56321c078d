//! `record=stream`: each event that is counted is also an entry, with its time, of a file beside the log.
//!
//! A thread's place for its next entry lies in its state (`thread`), where Java code writes as well: the
//! helper class's editions with STREAM do for what is counted in Java what [`record_event`] does here. When a
//! thread has ended, the next one of its lane goes on in its block. What finds no room is counted
//! only, so the log's counters say how much that was.
use lucce_callgraph::ContextId;
use lucce_stream::{EventCursor, MAX_TYPE_ID, StreamThread, ThreadId};
use lucce_tracelog::EventTypeId;

use crate::core::EventStreamer;
use crate::counting::AgentCounting;
use crate::thread::ThreadState;
use crate::thread::counter_access;
use crate::thread::counter_access::current_counters;
use crate::thread::thread_counters::ThreadCounters;
use lucce_jvmti::JniEnvironment;
use lucce_jvmti::clock;

impl EventStreamer {
    /// Room for the thread's next event, at the time `now`, or the certainty that there is none.
    fn make_room(
        &self,
        counting: &AgentCounting,
        env: JniEnvironment,
        state: &ThreadState,
        now: u64,
    ) {
        let known = state.stream_thread.get();
        let mut lane = current_counters(counting, env, state);
        let id = counter_access::log_thread_id(counting, &mut lane);
        if known != StreamThread::default() {
            return state.place.renew_block(&self.writer, (id, known), now);
        }
        let (thread, place) = self.begin_thread(&mut lane, id, now);
        state.stream_thread.set(thread);
        state.place.move_to(place);
    }

    /// A thread's first event: who it is, and a place.
    fn begin_thread(
        &self,
        lane: &mut ThreadCounters,
        id: ThreadId,
        now: u64,
    ) -> (StreamThread, EventCursor) {
        let Some(thread) = self.writer.add_thread(id, &lane.name, lane.is_virtual) else {
            return (StreamThread::default(), self.writer.refuse_event(now));
        };
        let place = std::mem::take(&mut lane.place);
        if !place.hand_over_to(now, thread) {
            place.renew_block(&self.writer, (id, thread), now);
        }
        (thread, place)
    }
}

/// With `record=stream`: an event of the current thread, whose state this is, has just been counted.
pub fn record_event(
    counting: &AgentCounting,
    env: JniEnvironment,
    state: &ThreadState,
    (event, number): (EventTypeId, ContextId),
    value: i64,
) {
    let Some(streamer) = &counting.streamer else {
        return;
    };
    if number == ContextId::UNKNOWN || event.0 > MAX_TYPE_ID {
        return;
    }
    if state.place.is_refused() {
        return;
    }
    let now = clock::nano_time();
    if !state.place.write_event(now, event.0, number.0, value) {
        streamer.make_room(counting, env, state, now);
        // Without room it is counted only.
        state.place.write_event(now, event.0, number.0, value);
    }
}

/// Room for an event that Java code writes, at the time `now`.
pub fn make_room(counting: &AgentCounting, env: JniEnvironment, state: &ThreadState, now: u64) {
    if let Some(streamer) = &counting.streamer {
        streamer.make_room(counting, env, state, now);
    }
}
