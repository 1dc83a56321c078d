//! Switches a thread's counters when its tags change. See [`tags`](crate::thread::tags).

use std::sync::atomic::Ordering;

use lucce_jvmti::{JniEnvironment, clock};
use lucce_stream::StreamThread;

use crate::memory::event_mask;
use crate::options::LogLevel;
use crate::thread::TaggedTask;
use crate::thread::ThreadParts;
use crate::thread::ThreadState;
use crate::thread::counter_access::{self, CounterUser};
use crate::thread::tags::{OpenTags, TagLimit, TagSet};
use crate::thread::thread_counters::ThreadCounters;

/// Opens one more tag for the current thread. Returns the number that closes it; 0: the tags did not change.
pub fn open_tag(
    agent: ThreadParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    tag: (&str, &str),
) -> u64 {
    let opened = push_tag(agent, &mut state.tags.borrow_mut(), tag);
    let Some((number, sets)) = opened else {
        return 0;
    };
    if agent.core.options.passes_tags() && !agent.core.event_mask.is_enabled(event_mask::TAGS) {
        agent.core.event_mask.set_permanent(event_mask::TAGS);
    }
    switch_counters(agent, env, state, sets);
    number
}

/// The current thread's tags, for code that continues in another thread; none if tags belong to threads.
pub fn captured_tags(agent: ThreadParts<'_>, state: &ThreadState) -> TagSet {
    match agent.core.options.passes_tags() {
        true => state.tags.borrow().current_set(),
        false => TagSet::NONE,
    }
}

/// Continues under captured tags in place of the current thread's. Returns the number that closes them as a tag is closed;
/// 0: too many are open.
pub fn open_captured_tags(
    agent: ThreadParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    set: TagSet,
) -> u64 {
    let opened = {
        let mut tags = state.tags.borrow_mut();
        let outer = tags.current_set();
        (!tags.is_full()).then(|| (tags.open_tag(set), (outer, set)))
    };
    let Some((number, sets)) = opened else {
        report_limit(agent, TagLimit::Nested, "");
        return 0;
    };
    switch_counters(agent, env, state, sets);
    number
}

/// Opens one more tag in `tags`. Returns the number that closes it, and the sets before and after. `None`: too many
/// are open. Reports the first occurrence of each limit to the user.
pub fn push_tag(
    agent: ThreadParts<'_>,
    tags: &mut OpenTags,
    (key, value): (&str, &str),
) -> Option<(u64, (TagSet, TagSet))> {
    if tags.is_full() {
        report_limit(agent, TagLimit::Nested, key);
        return None;
    }
    let outer = tags.current_set();
    let (set, bound) = agent.counters.tags.add_tag(outer, key, value);
    if let Some(bound) = bound {
        report_limit(agent, bound, key);
    }
    Some((tags.open_tag(set), (outer, set)))
}

/// Closes the tag with this number, and all tags opened after it.
pub fn close_tag(agent: ThreadParts<'_>, env: JniEnvironment, state: &ThreadState, number: u64) {
    let closed = pop_tag(&mut state.tags.borrow_mut(), number);
    if let Some(sets) = closed {
        switch_counters(agent, env, state, sets);
    }
}

/// Closes the tag in `tags`. Returns the sets before and after. `None`: it is not open.
pub fn pop_tag(tags: &mut OpenTags, number: u64) -> Option<(TagSet, TagSet)> {
    let before = tags.current_set();
    tags.close_tag(number).map(|outer| (before, outer))
}

/// The current thread begins to run a task that was submitted under the tags `set`, in the frame with this slot.
pub fn begin_tagged_task(
    agent: ThreadParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (set, slot): (TagSet, u64),
) {
    // Tasks at or above the slot have ended without a report.
    end_tagged_tasks(agent, env, state, slot);
    let outer = state.tags.borrow_mut().replace_by_set(set);
    let from = outer.current_set();
    state
        .tagged_tasks
        .borrow_mut()
        .push(TaggedTask { slot, outer });
    state.tagged_task_slot.store(slot, Ordering::Relaxed);
    switch_counters(agent, env, state, (from, set));
}

/// The tasks of the current thread in the frame with this slot, and in frames above it, have ended.
pub fn end_tagged_tasks(
    agent: ThreadParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    slot: u64,
) {
    let outermost = {
        let mut tasks = state.tagged_tasks.borrow_mut();
        let first = tasks.iter().position(|task| task.slot >= slot);
        let ended = first.map(|first| tasks.split_off(first));
        let innermost = tasks.last().map_or(0, |task| task.slot);
        state.tagged_task_slot.store(innermost, Ordering::Relaxed);
        ended.and_then(|ended| ended.into_iter().next())
    };
    if let Some(task) = outermost {
        let to = task.outer.current_set();
        let from = state.tags.borrow_mut().restore(task.outer);
        switch_counters(agent, env, state, (from, to));
    }
}

fn report_limit(agent: ThreadParts<'_>, bound: TagLimit, key: &str) {
    if agent.counters.tags.is_first_report(bound) {
        agent
            .core
            .report_message(LogLevel::Warn, &bound.warning_text(key));
    }
}

/// Switches counters. A thread without counters has had no event yet: it gets them with the next event.
fn switch_counters(
    agent: ThreadParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (from, to): (TagSet, TagSet),
) {
    state.publish_tags();
    if from == to {
        return;
    }
    let Some(mut old) = state.take_counters() else {
        let untagged = match to == TagSet::NONE {
            true => state.untagged_counters.take(),
            false => None,
        };
        if let Some(counters) = untagged {
            adopt_counters(agent, state, *counters);
        }
        return;
    };
    if state.stream_thread.get() != StreamThread::default() {
        old.place = state.place.take_cursor();
    }
    let new = match to == TagSet::NONE {
        true => state.untagged_counters.take().map(|counters| *counters),
        false => {
            let whose = (state.is_virtual, state.origin);
            let user = CounterUser {
                tags: to,
                kind: &old.kind,
                name: &old.name,
            };
            Some(counter_access::take_tagged_counters(
                agent, env, user, whose,
            ))
        }
    };
    match from == TagSet::NONE {
        true => {
            state.untagged_counters.replace(Some(Box::new(old)));
        }
        // The thread itself has not ended, so its end is not logged.
        false => agent.counters.counter_pool.return_counters(old),
    }
    if let Some(counters) = new {
        adopt_counters(agent, state, counters);
    }
}

/// Continues the thread in these counters, and in the rest of their block of the stream.
fn adopt_counters(agent: ThreadParts<'_>, state: &ThreadState, mut counters: ThreadCounters) {
    let thread = state.stream_thread.get();
    if let Some(streamer) = &agent.core.streamer
        && thread != StreamThread::default()
    {
        state.place.move_to(std::mem::take(&mut counters.place));
        if state.place.has_block() {
            let now = clock::nano_time();
            if !state.place.hand_over_to(now, thread) {
                let id = counter_access::log_thread_id(agent, &mut counters);
                state.place.renew_block(&streamer.writer, (id, thread), now);
            }
        }
    }
    state.put_counters(counters);
}
