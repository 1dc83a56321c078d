//! A thread goes on under other tags: in another lane. See [`tags`](crate::thread::tags).

use lucce_stream::StreamThread;
use lucce_vm::{Env, clock};

use crate::options::Level;
use crate::thread::Counters;
use crate::thread::ThreadState;
use crate::thread::cells;
use crate::thread::lane::Lane;
use crate::thread::tags::{Bound, TagSet};

/// From now on the current thread counts under one more tag. The number by which that is closed; 0: it is as it was.
pub fn open(counters: &Counters, env: Env, state: &ThreadState, (key, value): (&str, &str)) -> u64 {
    let outer = state.tags.borrow().now();
    if state.tags.borrow().is_full() {
        tell(counters, Bound::Nested, key);
        return 0;
    }
    let (set, bound) = counters.tags.with(outer, key, value);
    if let Some(bound) = bound {
        tell(counters, bound, key);
    }
    let number = state.tags.borrow_mut().open(set);
    go_on(counters, env, state, (outer, set));
    number
}

/// What was opened with this number is closed, and what was opened since.
pub fn close(counters: &Counters, env: Env, state: &ThreadState, number: u64) {
    let before = state.tags.borrow().now();
    let outer = state.tags.borrow_mut().close(number);
    if let Some(outer) = outer {
        go_on(counters, env, state, (before, outer));
    }
}

fn tell(counters: &Counters, bound: Bound, key: &str) {
    if counters.tags.is_new(bound) {
        counters.say(Level::Warn, &bound.text(key));
    }
}

/// A thread without a lane has had no event yet: it gets one with the next.
fn go_on(counters: &Counters, env: Env, state: &ThreadState, (from, to): (TagSet, TagSet)) {
    if from == to {
        return;
    }
    let Some(mut old) = state.take_lane() else {
        let untagged = match to == TagSet::NONE {
            true => state.untagged.take(),
            false => None,
        };
        if let Some(lane) = untagged {
            enter(counters, state, *lane);
        }
        return;
    };
    if state.stream_thread.get() != StreamThread::default() {
        old.place = state.place.leave();
    }
    let new = match to == TagSet::NONE {
        true => state.untagged.take().map(|lane| *lane),
        false => {
            let whose = (state.is_virtual, state.origin);
            let named = (to, &*old.kind, &*old.name);
            Some(cells::take_under(counters, env, named, whose))
        }
    };
    match from == TagSet::NONE {
        true => {
            state.untagged.replace(Some(Box::new(old)));
        }
        // Its thread has not ended.
        false => counters.lanes.give(old),
    }
    if let Some(lane) = new {
        enter(counters, state, lane);
    }
}

/// The thread goes on in a lane, and in what is left of its block of the stream.
fn enter(counters: &Counters, state: &ThreadState, mut lane: Lane) {
    let thread = state.stream_thread.get();
    if let Some(streamer) = &counters.streamer
        && thread != StreamThread::default()
    {
        state.place.go_to(std::mem::take(&mut lane.place));
        if state.place.has_block() {
            let now = clock::nano_time();
            if !state.place.hand_over(now, thread) {
                let id = cells::id(counters, &mut lane);
                state.place.renew(&streamer.writer, (id, thread), now);
            }
        }
    }
    state.put_lane(lane);
}
