//! Kinds whose events are calls with hooks before and behind them, such as `events=io`.
//!
//! A hook before the call stores the time in the thread's state; a hook behind it reports size and duration. The call is counted
//! in each of the kind's `log_kinds`, for example as `io` with its bytes, and as `io-time` with its duration in nanoseconds. Calls
//! that throw are not counted, nor calls that did nothing: for example, a non-blocking channel without data.
//!
//! If the calling class is out of scope, the agent asks the VM for the calling frame in scope.
use std::sync::LazyLock;

use lucce_callgraph::ContextId;
use lucce_instrument::kinds::{
    self, BYTES, EventHooks, EventKindInfo, NANOS, call_of_site, has_event_call,
};

use crate::counting::CountingParts;
use crate::counting::counter_lookup::{
    count_dropped_in_scope, find_counter, find_counter_by_number, verified_location,
};
use crate::events::HookEvent;
use crate::registry::RegisteredSiteKind;
use crate::thread::ThreadState;
use crate::thread::event_kind::{EventCounterRef, EventKind};
use lucce_jvmti::JniEnvironment;

/// The calls of a kind, as the log names them.
struct HookCallKinds {
    info: &'static EventKindInfo,
    /// By the call's number, an index of `words`.
    by_call: Vec<usize>,
    /// The event kinds of each word, one for each of the kind's `log_kinds`. Calls of the same word share them.
    words: Vec<Vec<EventKind>>,
}

impl HookCallKinds {
    fn new(info: &'static EventKindInfo, hooks: &dyn EventHooks) -> HookCallKinds {
        let names = (0..=u8::MAX).map_while(|which| hooks.call_word(which));
        let mut known: Vec<&str> = Vec::new();
        let mut index_of = |name: &'static str| {
            known
                .iter()
                .position(|other| *other == name)
                .unwrap_or_else(|| {
                    known.push(name);
                    known.len() - 1
                })
        };
        let by_call = names.map(&mut index_of).collect();
        let kinds_of = |word: &'static str| {
            let log_kinds = info.log_kinds.iter();
            log_kinds.map(|kind| EventKind::new(kind, word)).collect()
        };
        HookCallKinds {
            info,
            by_call,
            words: known.into_iter().map(kinds_of).collect(),
        }
    }

    fn event_kinds(&self, which: u8) -> &[EventKind] {
        let word = self.by_call.get(usize::from(which));
        word.and_then(|word| self.words.get(*word))
            .map_or(&[], Vec::as_slice)
    }
}

/// All kinds with hooks around calls.
static CALL_KINDS: LazyLock<Vec<HookCallKinds>> = LazyLock::new(|| {
    let hooked = kinds::ALL.into_iter();
    let hooked = hooked.filter_map(|info| Some((info, kinds::hooks_of_kind(info)?)));
    let kinds = hooked.map(|(info, hooks)| HookCallKinds::new(info, hooks));
    kinds.filter(|kinds| !kinds.by_call.is_empty()).collect()
});

/// Counts a finished call of the kind with this bit of the event mask.
pub fn count_call(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    mask_bit: u64,
    event: HookEvent,
) {
    let mut kinds = CALL_KINDS.iter();
    let Some(kinds) = kinds.find(|kinds| kinds.info.mask_bit == mask_bit) else {
        return;
    };
    match call_of_site(event.site) {
        Some(which) => count_outside_scope(agent, env, state, kinds.event_kinds(which), event),
        None => count_at_site(agent, env, state, kinds, event),
    }
}

fn count_at_site(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    kinds: &'static HookCallKinds,
    event: HookEvent,
) {
    let site = agent.core.registry().site(event.site as u32);
    let call = match site.map(|info| info.kind) {
        Some(RegisteredSiteKind::EventCall(call)) if has_event_call(kinds.info, call) => call,
        _ => return,
    };
    let number: ContextId = event.number;
    let counted = kinds.event_kinds(call.which);
    count_each_kind(agent, env, state, (counted, event), |kind| {
        find_counter_by_number(agent, env, state, number, (kind, std::ptr::null_mut()))
    });
}

fn count_outside_scope(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    counted: &'static [EventKind],
    event: HookEvent,
) {
    let Some(here) = verified_location(agent, env, state) else {
        count_dropped_in_scope(agent, env);
        return;
    };
    count_each_kind(agent, env, state, (counted, event), |kind| {
        let nothing = std::ptr::null_mut();
        find_counter(agent, env, state, Some(here), (kind, nothing))
    });
}

fn count_each_kind(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (counted, event): (&'static [EventKind], HookEvent),
    find: impl Fn(&'static EventKind) -> Option<EventCounterRef>,
) {
    for kind in counted {
        let value = match kind.unit {
            BYTES => event.amount,
            NANOS => event.passed,
            _ => 0,
        };
        if let Some(counter) = find(kind) {
            counter.count_event(agent, env, state, value);
        }
    }
}

#[cfg(test)]
mod hook_calls_tests {
    use super::*;
    use lucce_instrument::kinds::IO;

    #[test]
    fn a_call_has_an_event_kind_for_each_kind_of_the_log() {
        let mut all = CALL_KINDS.iter();
        let io = all
            .find(|kinds| kinds.info.mask_bit == IO.mask_bit)
            .unwrap();
        let names: Vec<_> = io.words.iter().flatten().map(|kind| kind.name).collect();
        assert_eq!(names, ["io", "io-time"].repeat(8));
        let first = io.event_kinds(0);
        let facts: Vec<_> = first.iter().map(|kind| (kind.unit, kind.how)).collect();
        assert_eq!(facts, [("bytes", "file read"), ("ns", "file read")]);
        // `FileInputStream.readBytes` reads a file as well.
        assert!(std::ptr::eq(first, io.event_kinds(1)));
        assert!(io.event_kinds(u8::MAX).is_empty());
    }
}
