//! `stream=on`: each counted event is also written with its time to a file beside the log.
//!
//! A thread's position for its next entry lies in its state (`thread`), where Java code writes as well: the helper variants with
//! STREAM do for Java's counters what [`record_event`] does here. When a thread has ended, the next thread that takes over its
//! counters continues in its block. Events without room are only counted, so the log's counters reveal their number.
use lucce_callgraph::ContextId;
use lucce_stream::{EventCursor, MAX_TYPE_ID, StreamThread, ThreadId};
use lucce_tracelog::EventTypeId;

use crate::core::EventStreamer;
use crate::counting::CountingParts;
use crate::thread::ThreadState;
use crate::thread::counter_access;
use crate::thread::counter_access::current_counters;
use crate::thread::thread_counters::ThreadCounters;
use lucce_jvmti::JniEnvironment;
use lucce_jvmti::clock;

impl EventStreamer {
    /// Makes room for the thread's next event at time `now`, or records that there is none.
    fn make_room(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &ThreadState,
        now: u64,
    ) {
        let thread = state.stream_thread.get();
        let mut counters = current_counters(agent.thread_parts(), env, state);
        let id = counter_access::log_thread_id(agent.thread_parts(), &mut counters);
        if thread != StreamThread::default() {
            return state.place.renew_block(&self.writer, (id, thread), now);
        }
        let (thread, place) = self.begin_thread(&mut counters, id, now);
        state.stream_thread.set(thread);
        state.place.move_to(place);
    }

    /// Registers the thread at its first event, and returns its position.
    fn begin_thread(
        &self,
        counters: &mut ThreadCounters,
        id: ThreadId,
        now: u64,
    ) -> (StreamThread, EventCursor) {
        let Some(thread) = self
            .writer
            .add_thread(id, &counters.name, counters.is_virtual)
        else {
            return (StreamThread::default(), self.writer.refuse_event(now));
        };
        let place = std::mem::take(&mut counters.place);
        if !place.hand_over_to(now, thread) {
            place.renew_block(&self.writer, (id, thread), now);
        }
        (thread, place)
    }
}

/// With `stream=on`, writes an event that the current thread, whose state is passed, has just counted.
pub fn record_event(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (event, number): (EventTypeId, ContextId),
    value: i64,
) {
    let Some(streamer) = &agent.core.streamer else {
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
        streamer.make_room(agent, env, state, now);
        // Without room the event is only counted.
        state.place.write_event(now, event.0, number.0, value);
    }
}

/// Makes room for an event that Java code writes at time `now`.
pub fn make_room(agent: CountingParts<'_>, env: JniEnvironment, state: &ThreadState, now: u64) {
    if let Some(streamer) = &agent.core.streamer {
        streamer.make_room(agent, env, state, now);
    }
}
