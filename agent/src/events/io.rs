//! `events=io`: reading and writing files and sockets.
//!
//! Each operation is counted twice in one context: as `io`, with the bytes that it moved, and as `io-time`, with its duration in
//! nanoseconds.
//!
//! An operation is one call of one of the JDK's native methods (`lucce_instrument::jdk::io`), which all its classes for files
//! and sockets use. A hook before the call stores the time in the thread's state; a hook after it counts. Calls that throw are
//! not counted, nor calls that did nothing: for example, a non-blocking channel without data.
//!
//! If the calling class is out of scope, the agent asks the VM for the calling frame in scope.
use lucce_callgraph::ContextId;
use lucce_instrument::EventKindInfo;
use lucce_instrument::jdk::io;
use lucce_instrument::kinds::{IO, IO_TIME, has_event_call, operation_of_site};

use crate::counting::CountingParts;
use crate::counting::counter_lookup::{
    count_dropped_in_scope, find_counter, find_counter_by_number, verified_location,
};
use crate::events::{EventSource, HookEvent};
use crate::registry::RegisteredSiteKind;
use crate::thread::ThreadState;
use crate::thread::event_kind::{EventCounterRef, EventKind};
use lucce_jvmti::JniEnvironment;

/// The event kinds of an operation: by bytes, and by time.
struct IoEventKinds {
    bytes: EventKind,
    time: EventKind,
}

const fn io_event_kinds(how: &'static str) -> IoEventKinds {
    IoEventKinds {
        bytes: EventKind::new("io", "bytes", how),
        time: EventKind::new(IO_TIME, "ns", how),
    }
}

/// In the order of [`io::IoPurpose`].
static IO_EVENT_KINDS: [IoEventKinds; 8] = [
    io_event_kinds("file read"),
    io_event_kinds("file write"),
    io_event_kinds("file transfer"),
    io_event_kinds("socket read"),
    io_event_kinds("socket write"),
    io_event_kinds("socket wait"),
    io_event_kinds("socket accept"),
    io_event_kinds("socket connect"),
];

/// I/O operations that hooks report.
pub struct IoSource;

impl EventSource for IoSource {
    fn kind(&self) -> &'static EventKindInfo {
        &IO
    }

    /// Counts a finished operation. Below 0, the site is the operation, and the agent asks the VM for the context.
    fn record_hook_event(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &ThreadState,
        event: HookEvent,
    ) {
        let done = IoCompletion {
            bytes: event.amount,
            passed: event.passed,
        };
        match operation_of_site(event.site) {
            Some(operation) => done.count_outside_scope(agent, env, state, operation),
            None => done.count_event(agent, env, state, (event.number, event.site as u32)),
        }
    }
}

/// The bytes that an operation moved, and its duration in nanoseconds.
struct IoCompletion {
    bytes: u64,
    passed: u64,
}

impl IoCompletion {
    fn count_event(
        self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &ThreadState,
        (number, site): (ContextId, u32),
    ) {
        let what = agent.core.registry().site(site).map(|info| info.kind);
        let of = match what {
            Some(RegisteredSiteKind::EventCall(of)) if has_event_call(&IO, of) => of,
            _ => return,
        };
        self.count_each_kind(agent, env, state, of.which, |state, kind| {
            find_counter_by_number(agent, env, state, number, (kind, std::ptr::null_mut()))
        });
    }

    fn count_outside_scope(
        self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &ThreadState,
        operation: u8,
    ) {
        let Some(here) = verified_location(agent, env, state) else {
            count_dropped_in_scope(agent, env);
            return;
        };
        self.count_each_kind(agent, env, state, operation, |state, kind| {
            let nothing = std::ptr::null_mut();
            find_counter(agent, env, state, Some(here), (kind, nothing))
        });
    }

    fn count_each_kind(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &ThreadState,
        operation: u8,
        find: impl Fn(&ThreadState, &'static EventKind) -> Option<EventCounterRef>,
    ) {
        let Some(counted) = kinds_of_operation(operation) else {
            return;
        };
        for (kind, value) in [(&counted.bytes, self.bytes), (&counted.time, self.passed)] {
            if let Some(found) = find(state, kind) {
                found.count_event(agent, env, state, value);
            }
        }
    }
}

fn kinds_of_operation(operation: u8) -> Option<&'static IoEventKinds> {
    IO_EVENT_KINDS.get(io::operation_purpose(operation.into())? as usize)
}

#[cfg(test)]
mod io_tests {
    use super::*;

    #[test]
    fn purposes_have_their_words() {
        let how = |purpose| {
            IO_EVENT_KINDS
                .get(purpose as usize)
                .map(|counted| counted.bytes.how)
        };
        assert_eq!(how(io::IoPurpose::FileRead), Some("file read"));
        assert_eq!(how(io::IoPurpose::SocketConnect), Some("socket connect"));
    }
}
