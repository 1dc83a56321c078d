//! `events=io`: reading and writing files and sockets. Each operation is counted twice under one
//! context: as `io`, whose value is the bytes that it moved, and as `io-time`, whose value is how long it took,
//! in nanoseconds.
//!
//! An operation is one call of one of the JDK's native methods (`hooks::jdk::io`), through which all its
//! classes for files and sockets go. A hook before that call notes the time in the thread's state, a hook behind
//! it counts. What the native throws is not counted, nor an answer that says that nothing was done: a channel that
//! does not block and has nothing to give.
//!
//! Where the calling class is out of scope, the VM is asked which frame in scope is behind it.
use lucce_callgraph::ContextId;
use lucce_hooks::Kind;
use lucce_hooks::jdk::io;
use lucce_hooks::kinds::{IO, IO_TIME, outside_of};

use crate::book::What;
use crate::counting::Counting;
use crate::counting::found::{found, lost_unless_out_of_scope, of_number, verified_here};
use crate::events::{EventSource, Told};
use crate::thread::ThreadState;
use crate::thread::found::{EventKind, Found};
use lucce_vm::Env;

/// What is done to what, as the events' types have it: by bytes, and by time.
struct Counted {
    bytes: EventKind,
    time: EventKind,
}

const fn counted(how: &'static str) -> Counted {
    Counted {
        bytes: EventKind::new("io", "bytes", how),
        time: EventKind::new(IO_TIME, "ns", how),
    }
}

/// In the order of [`io::Purpose`].
static COUNTED: [Counted; 8] = [
    counted("file read"),
    counted("file write"),
    counted("file transfer"),
    counted("socket read"),
    counted("socket write"),
    counted("socket wait"),
    counted("socket accept"),
    counted("socket connect"),
];

pub struct Operations;

impl EventSource for Operations {
    fn kind(&self) -> &'static Kind {
        &IO
    }

    /// An operation is over. Below 0 the site is the operation, and the VM is asked for the context.
    fn told(&self, counting: &Counting, env: Env, state: &ThreadState, told: Told) {
        let done = Done {
            bytes: told.amount,
            passed: told.passed,
        };
        match outside_of(told.site) {
            Some(operation) => done.count_outside(counting, env, state, operation),
            None => done.count(counting, env, state, (told.number, told.site as u32)),
        }
    }
}

/// What an operation moved, in bytes, and how long it took, in nanoseconds.
struct Done {
    bytes: u64,
    passed: u64,
}

impl Done {
    fn count(
        self,
        counting: &Counting,
        env: Env,
        state: &ThreadState,
        (number, site): (ContextId, u32),
    ) {
        let what = counting.book().site(site).map(|info| info.what);
        let of = match what {
            Some(What::Of(of)) if IO.marks(of) => of,
            _ => return,
        };
        self.each(counting, env, state, of.which, |state, kind| {
            of_number(counting, env, state, number, (kind, std::ptr::null_mut()))
        });
    }

    fn count_outside(self, counting: &Counting, env: Env, state: &ThreadState, operation: u8) {
        let Some(here) = verified_here(counting, env, state) else {
            lost_unless_out_of_scope(counting, env);
            return;
        };
        self.each(counting, env, state, operation, |state, kind| {
            let nothing = std::ptr::null_mut();
            found(counting, env, state, Some(here), (kind, nothing))
        });
    }

    fn each(
        &self,
        counting: &Counting,
        env: Env,
        state: &ThreadState,
        operation: u8,
        find: impl Fn(&ThreadState, &'static EventKind) -> Option<Found>,
    ) {
        let Some(counted) = counted_as(operation) else {
            return;
        };
        for (kind, value) in [(&counted.bytes, self.bytes), (&counted.time, self.passed)] {
            if let Some(found) = find(state, kind) {
                found.count(counting, env, state, value);
            }
        }
    }
}

fn counted_as(operation: u8) -> Option<&'static Counted> {
    COUNTED.get(io::purpose(operation.into())? as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_have_their_words() {
        let how = |purpose| {
            COUNTED
                .get(purpose as usize)
                .map(|counted| counted.bytes.how)
        };
        assert_eq!(how(io::Purpose::FileRead), Some("file read"));
        assert_eq!(how(io::Purpose::SocketConnect), Some("socket connect"));
    }
}
