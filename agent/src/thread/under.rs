//! A thread goes on under other tags: in another lane. See [`tags`](crate::thread::tags).

use lucce_stream::StreamThread;
use lucce_vm::{Env, clock};

use crate::options::Level;
use crate::thread::Counters;
use crate::thread::ThreadState;
use crate::thread::cells;
use crate::thread::lane::Lane;
use crate::thread::tags::{Bound, OpenTags, TagSet};

/// From now on the current thread counts under one more tag. The number by which that is closed; 0: it is as it was.
pub fn open(counters: &Counters, env: Env, state: &ThreadState, tag: (&str, &str)) -> u64 {
    let opened = opened(counters, &mut state.tags.borrow_mut(), tag);
    let Some((number, sets)) = opened else {
        return 0;
    };
    go_on(counters, env, state, sets);
    number
}

/// One more tag is open in `tags`: the number by which it is closed, and the sets before and from now on. `None`: too many
/// are open. The user is told of what is not told apart.
pub fn opened(
    counters: &Counters,
    tags: &mut OpenTags,
    (key, value): (&str, &str),
) -> Option<(u64, (TagSet, TagSet))> {
    if tags.is_full() {
        tell(counters, Bound::Nested, key);
        return None;
    }
    let outer = tags.now();
    let (set, bound) = counters.tags.with(outer, key, value);
    if let Some(bound) = bound {
        tell(counters, bound, key);
    }
    Some((tags.open(set), (outer, set)))
}

/// What was opened with this number is closed, and what was opened since.
pub fn close(counters: &Counters, env: Env, state: &ThreadState, number: u64) {
    let closed = closed(&mut state.tags.borrow_mut(), number);
    if let Some(sets) = closed {
        go_on(counters, env, state, sets);
    }
}

/// It is closed in `tags`: the sets before and from now on. `None`: it is not open.
pub fn closed(tags: &mut OpenTags, number: u64) -> Option<(TagSet, TagSet)> {
    let before = tags.now();
    tags.close(number).map(|outer| (before, outer))
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
