//! `events=io`: reading and writing files and sockets. Each operation is counted twice under one
//! context: as `io`, whose value is the bytes that it moved, and as `io-time`, whose value is how long it took,
//! in nanoseconds.
//!
//! An operation is one call of one of the JDK's native methods ([`OPERATIONS`]), through which all its
//! classes for files and sockets go. A hook before that call notes the time in the thread's state, a hook behind
//! it counts. What the native throws is not counted, nor an answer that says that nothing was done: a channel that
//! does not block and has nothing to give.
//!
//! Where the calling class is out of scope, the VM is asked which frame in scope is behind it.
#![allow(
    unsafe_code,
    reason = "a function that the JVM calls, exported by name"
)]

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jint, jlong};
use lucce_bytecode::{Call, Insert, Scan};
use lucce_callgraph::ContextId;

use crate::agent::Agent;
use crate::book::What;
use crate::gate;
use crate::jvm::Env;
use crate::natives::guard_event;
use crate::planner::event;
use crate::thread::{OwnState, ThreadState};
use crate::vm_events::{Found, Kind, found, lost_unless_out_of_scope, of_number, verified_here};

/// What is counted beside the bytes.
pub const TIME: &str = "io-time";

/// What is done to what, as the events' types have it: by bytes, and by time.
struct Purpose {
    bytes: Kind,
    time: Kind,
}

const fn purpose(how: &'static str) -> Purpose {
    Purpose {
        bytes: Kind::new("io", "bytes", how),
        time: Kind::new(TIME, "ns", how),
    }
}

const FILE_READ: u8 = 0;
const FILE_WRITE: u8 = 1;
const FILE_TRANSFER: u8 = 2;
const SOCKET_READ: u8 = 3;
const SOCKET_WRITE: u8 = 4;
const SOCKET_WAIT: u8 = 5;
const SOCKET_ACCEPT: u8 = 6;
const SOCKET_CONNECT: u8 = 7;

static PURPOSES: [Purpose; 8] = [
    purpose("file read"),
    purpose("file write"),
    purpose("file transfer"),
    purpose("socket read"),
    purpose("socket write"),
    purpose("socket wait"),
    purpose("socket accept"),
    purpose("socket connect"),
];

/// How the bytes are known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    /// The native returns them; below 0: the end, or that nothing was done (`sun.nio.ch.IOStatus`).
    Returned,
    /// The same, in a `long`.
    ReturnedLong,
    /// It returns a byte, or -1 at the end.
    ByteReturned,
    /// There are none; what it returns says whether anything was done.
    Nothing,
    /// The last argument, of two numbers.
    Last,
    /// The last but one.
    LastButOne,
    /// One.
    Byte,
}

/// A native method, by whom it is called, and what for.
struct Operation {
    caller: &'static str,
    owner: &'static str,
    name: &'static str,
    descriptor: &'static str,
    purpose: u8,
    size: Size,
}

const fn own(
    class: &'static str,
    name: &'static str,
    descriptor: &'static str,
    (purpose, size): (u8, Size),
) -> Operation {
    of(class, class, name, descriptor, (purpose, size))
}

const fn of(
    caller: &'static str,
    owner: &'static str,
    name: &'static str,
    descriptor: &'static str,
    (purpose, size): (u8, Size),
) -> Operation {
    Operation {
        caller,
        owner,
        name,
        descriptor,
        purpose,
        size,
    }
}

const IN: &str = "java/io/FileInputStream";
const OUT: &str = "java/io/FileOutputStream";
const RANDOM: &str = "java/io/RandomAccessFile";
/// Files, and pipes in JDK 17; some of its natives are called for sockets as well.
const FILES: &str = "sun/nio/ch/FileDispatcherImpl";
/// From JDK 21 on.
const UNIX_FILES: &str = "sun/nio/ch/UnixFileDispatcherImpl";
const FILE_CHANNEL: &str = "sun/nio/ch/FileChannelImpl";
const SOCKETS: &str = "sun/nio/ch/SocketDispatcher";
const DATAGRAMS: &str = "sun/nio/ch/DatagramDispatcher";
const DATAGRAM_CHANNEL: &str = "sun/nio/ch/DatagramChannelImpl";
const NET: &str = "sun/nio/ch/Net";
const SOCKET: &str = "sun/nio/ch/NioSocketImpl";
const DOMAIN: &str = "sun/nio/ch/UnixDomainSockets";
const SERVER_CHANNEL: &str = "sun/nio/ch/ServerSocketChannelImpl";
const CHANNEL: &str = "sun/nio/ch/SelChImpl";

const ARRAY_READ: &str = "([BII)I";
const ONE: &str = "(Ljava/io/FileDescriptor;JI)I";
const AT: &str = "(Ljava/io/FileDescriptor;JIJ)I";
const VECTOR: &str = "(Ljava/io/FileDescriptor;JI)J";
const POLL: &str = "(Ljava/io/FileDescriptor;IJ)I";
const ACCEPT: &str =
    "(Ljava/io/FileDescriptor;Ljava/io/FileDescriptor;[Ljava/net/InetSocketAddress;)I";

const READ: (u8, Size) = (FILE_READ, Size::Returned);
const WRITE: (u8, Size) = (FILE_WRITE, Size::Returned);
const READ_VECTOR: (u8, Size) = (FILE_READ, Size::ReturnedLong);
const WRITE_VECTOR: (u8, Size) = (FILE_WRITE, Size::ReturnedLong);
const TRANSFER: (u8, Size) = (FILE_TRANSFER, Size::ReturnedLong);
const RECEIVE: (u8, Size) = (SOCKET_READ, Size::Returned);
const SEND: (u8, Size) = (SOCKET_WRITE, Size::Returned);
const RECEIVE_VECTOR: (u8, Size) = (SOCKET_READ, Size::ReturnedLong);
const SEND_VECTOR: (u8, Size) = (SOCKET_WRITE, Size::ReturnedLong);
const WAIT: (u8, Size) = (SOCKET_WAIT, Size::Nothing);

/// The natives of JDK 17 to 25.
#[rustfmt::skip]
const OPERATIONS: [Operation; 44] = [
    own(IN, "read0", "()I", (FILE_READ, Size::ByteReturned)),
    own(IN, "readBytes", ARRAY_READ, READ),
    own(OUT, "write", "(IZ)V", (FILE_WRITE, Size::Byte)),
    own(OUT, "writeBytes", "([BIIZ)V", (FILE_WRITE, Size::LastButOne)),
    own(RANDOM, "read0", "()I", (FILE_READ, Size::ByteReturned)),
    own(RANDOM, "write0", "(I)V", (FILE_WRITE, Size::Byte)),
    // JDK 17 has these natives without the 0, later ones have Java methods of that name.
    own(RANDOM, "readBytes", ARRAY_READ, READ),
    own(RANDOM, "readBytes0", ARRAY_READ, READ),
    own(RANDOM, "writeBytes", "([BII)V", (FILE_WRITE, Size::Last)),
    own(RANDOM, "writeBytes0", "([BII)V", (FILE_WRITE, Size::Last)),
    own(FILES, "read0", ONE, READ),
    own(FILES, "pread0", AT, READ),
    own(FILES, "readv0", VECTOR, READ_VECTOR),
    own(FILES, "write0", ONE, WRITE),
    own(FILES, "pwrite0", AT, WRITE),
    own(FILES, "writev0", VECTOR, WRITE_VECTOR),
    own(UNIX_FILES, "read0", ONE, READ),
    own(UNIX_FILES, "pread0", AT, READ),
    own(UNIX_FILES, "readv0", VECTOR, READ_VECTOR),
    own(UNIX_FILES, "write0", ONE, WRITE),
    own(UNIX_FILES, "pwrite0", AT, WRITE),
    own(UNIX_FILES, "writev0", VECTOR, WRITE_VECTOR),
    own(FILE_CHANNEL, "transferTo0", "(Ljava/io/FileDescriptor;JJLjava/io/FileDescriptor;)J", TRANSFER),
    own(FILES, "transferTo0", "(Ljava/io/FileDescriptor;JJLjava/io/FileDescriptor;Z)J", TRANSFER),
    own(FILES, "transferFrom0", "(Ljava/io/FileDescriptor;Ljava/io/FileDescriptor;JJZ)J", TRANSFER),
    own(SOCKETS, "read0", ONE, RECEIVE),
    own(SOCKETS, "readv0", VECTOR, RECEIVE_VECTOR),
    own(SOCKETS, "write0", ONE, SEND),
    own(SOCKETS, "writev0", VECTOR, SEND_VECTOR),
    of(SOCKETS, FILES, "write0", ONE, SEND),
    of(SOCKETS, FILES, "writev0", VECTOR, SEND_VECTOR),
    own(DATAGRAMS, "read0", ONE, RECEIVE),
    own(DATAGRAMS, "readv0", VECTOR, RECEIVE_VECTOR),
    own(DATAGRAMS, "write0", ONE, SEND),
    own(DATAGRAMS, "writev0", VECTOR, SEND_VECTOR),
    own(DATAGRAM_CHANNEL, "receive0", "(Ljava/io/FileDescriptor;JIJZ)I", RECEIVE),
    own(DATAGRAM_CHANNEL, "send0", "(Ljava/io/FileDescriptor;JIJI)I", SEND),
    of(DATAGRAM_CHANNEL, NET, "poll", POLL, WAIT),
    of(SOCKET, NET, "poll", POLL, WAIT),
    of(CHANNEL, NET, "poll", POLL, WAIT),
    of(SOCKET, NET, "accept", ACCEPT, (SOCKET_ACCEPT, Size::Nothing)),
    of(SERVER_CHANNEL, NET, "accept", ACCEPT, (SOCKET_ACCEPT, Size::Nothing)),
    own(NET, "connect0", "(ZLjava/io/FileDescriptor;Ljava/net/InetAddress;I)I", (SOCKET_CONNECT, Size::Nothing)),
    own(DOMAIN, "connect0", "(Ljava/io/FileDescriptor;[B)I", (SOCKET_CONNECT, Size::Nothing)),
];

/// Which of the operations a call is; `is_native`: of methods of the calling class itself.
pub fn operation(
    class: &str,
    call: &Call<'_>,
    is_native: &dyn Fn(&Call<'_>) -> bool,
) -> Option<u8> {
    let found = OPERATIONS.iter().position(|operation| {
        (
            operation.caller,
            operation.owner,
            operation.name,
            operation.descriptor,
        ) == (class, &*call.owner, &*call.name, &*call.descriptor)
    })?;
    (call.owner != class || is_native(call)).then_some(found as u8)
}

/// The hooks around a call of an operation. `site`: as [`outside`] if the class is out of scope.
pub fn inserts(operation: u8, site: i32) -> Vec<Insert<'static>> {
    let Some(operation) = OPERATIONS.get(usize::from(operation)) else {
        return Vec::new();
    };
    let before = |name| Insert::Mark {
        helper: event(name, "(JI)V"),
        site,
    };
    let given = |name| Insert::MarkPair {
        helper: event(name, "(IIJI)V"),
        site,
    };
    let returned = |name| Insert::AfterDup {
        helper: event(name, "(IJI)V"),
        site,
    };
    let written = Insert::After {
        helper: event("ioWritten", "(JI)V"),
        site,
    };
    match operation.size {
        Size::Returned => vec![before("io"), returned("ioRead")],
        Size::ReturnedLong => {
            let helper = event("ioRead", "(JJI)V");
            vec![before("io"), Insert::AfterDup2 { helper, site }]
        }
        Size::ByteReturned => vec![before("io"), returned("ioReadByte")],
        Size::Nothing => vec![before("io"), returned("ioPassed")],
        Size::Last => vec![given("ioOfLast"), written],
        Size::LastButOne => vec![given("ioOfLastButOne"), written],
        Size::Byte => vec![before("ioOfByte"), written],
    }
}

/// In place of a site, where the calling class is out of scope.
fn outside(operation: u8) -> i32 {
    -1 - i32::from(operation)
}

/// The hooks of a method out of scope.
pub fn inserts_outside(
    class: &str,
    scan: &Scan<'_>,
    is_native: &dyn Fn(&Call<'_>) -> bool,
) -> Vec<(u16, Insert<'static>)> {
    let operations = scan.calls.iter().filter_map(|call| {
        let operation = operation(class, call, is_native)?;
        Some((call.bci, operation))
    });
    let inserts = operations.flat_map(|(bci, operation)| {
        let inserts = inserts(operation, outside(operation)).into_iter();
        inserts.map(move |insert| (bci, insert))
    });
    inserts.collect()
}

/// An operation at `site` is over: it moved so many bytes and took so long. `number` is its context's;
/// below 0, `site` is the operation, and the VM is asked for the context.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtEvents_io0(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    number: jlong,
    site: jint,
    bytes: jlong,
    passed: jlong,
) {
    guard_event(gate::IO, |agent| {
        let Some(state) = own.get() else {
            return;
        };
        let env = agent.env(env);
        let done = Done {
            bytes: u64::try_from(bytes).unwrap_or(0),
            passed: u64::try_from(passed).unwrap_or(0),
        };
        match usize::try_from(-1 - i64::from(site)) {
            Ok(operation) => done.count_outside(agent, env, state, operation),
            Err(_) => done.count(agent, env, state, (number, site as u32)),
        }
    });
}

struct Done {
    bytes: u64,
    passed: u64,
}

impl Done {
    fn count(self, agent: &Agent, env: Env, state: &ThreadState, (number, site): (jlong, u32)) {
        let what = agent.book().site(site).map(|info| info.what);
        let Some(What::Io(operation)) = what else {
            return;
        };
        let number = ContextId(number as u64);
        self.each(agent, env, state, operation.into(), |state, kind| {
            of_number(agent, env, state, number, (kind, std::ptr::null_mut()))
        });
    }

    fn count_outside(self, agent: &Agent, env: Env, state: &ThreadState, operation: usize) {
        let Some(here) = verified_here(agent, env, state) else {
            lost_unless_out_of_scope(agent, env);
            return;
        };
        self.each(agent, env, state, operation, |state, kind| {
            let nothing = std::ptr::null_mut();
            found(agent, env, state, Some(here), (kind, nothing))
        });
    }

    fn each(
        &self,
        agent: &Agent,
        env: Env,
        state: &ThreadState,
        operation: usize,
        find: impl Fn(&ThreadState, &'static Kind) -> Option<Found>,
    ) {
        let Some(purpose) = purpose_of(operation) else {
            return;
        };
        for (kind, value) in [(&purpose.bytes, self.bytes), (&purpose.time, self.passed)] {
            if let Some(found) = find(state, kind) {
                found.count(agent, env, state, value);
            }
        }
    }
}

fn purpose_of(operation: usize) -> Option<&'static Purpose> {
    let operation = OPERATIONS.get(operation)?;
    PURPOSES.get(usize::from(operation.purpose))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(owner: &'static str, name: &'static str, descriptor: &'static str) -> Call<'static> {
        Call {
            bci: 0,
            opcode: 184,
            owner: owner.into(),
            name: name.into(),
            descriptor: descriptor.into(),
        }
    }

    #[test]
    fn what_a_call_is_depends_on_who_calls() {
        let write = call(FILES, "write0", ONE);
        let purpose = |class| {
            let operation = operation(class, &write, &|_| true)?;
            Some(purpose_of(operation.into())?.bytes.how)
        };
        assert_eq!(purpose(FILES), Some("file write"));
        assert_eq!(purpose(SOCKETS), Some("socket write"));
        assert_eq!(purpose("sun/nio/ch/IOUtil"), None);
    }

    #[test]
    fn a_java_method_that_calls_the_native_is_none() {
        let write = call(RANDOM, "writeBytes", "([BII)V");
        assert!(operation(RANDOM, &write, &|_| true).is_some());
        assert!(operation(RANDOM, &write, &|_| false).is_none());
        // Overloads of natives.
        assert!(
            operation(
                RANDOM,
                &call(RANDOM, "writeBytes", "(Ljava/lang/String;)V"),
                &|_| true
            )
            .is_none()
        );
    }

    #[test]
    fn all_have_a_purpose_and_hooks_on_both_sides() {
        for operation in 0..OPERATIONS.len() {
            assert!(purpose_of(operation).is_some());
            assert_eq!(inserts(operation as u8, 1).len(), 2);
            assert_eq!(
                usize::try_from(-1 - outside(operation as u8)),
                Ok(operation)
            );
        }
        assert!(purpose_of(OPERATIONS.len()).is_none());
        assert!(inserts(OPERATIONS.len() as u8, 1).is_empty());
    }
}
