//! The native methods by which the JDK reads and writes files and sockets. `kinds::io` has the hooks around their calls.
//!
//! How the table was made: all natives of `java.base` that take a file descriptor or belong to a class for files and sockets,
//! in JDK 17, 21 and 25 (`javap -p`), and who calls them. A row whose class or native a JDK does not have does no harm
//! there.

use lucce_bytecode::Call;

/// What is done to what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    FileRead,
    FileWrite,
    FileTransfer,
    SocketRead,
    SocketWrite,
    SocketWait,
    SocketAccept,
    SocketConnect,
}

/// How the bytes are known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// The native returns them; below 0: the end, or that nothing was done (`sun.nio.ch.IOStatus`).
    Returned,
    /// As `Returned`, in a `long`.
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
pub struct Operation {
    caller: &'static str,
    pub owner: &'static str,
    pub name: &'static str,
    pub descriptor: &'static str,
    purpose: Purpose,
    pub size: Size,
}

const fn own(
    class: &'static str,
    name: &'static str,
    descriptor: &'static str,
    (purpose, size): (Purpose, Size),
) -> Operation {
    of(class, class, name, descriptor, (purpose, size))
}

const fn of(
    caller: &'static str,
    owner: &'static str,
    name: &'static str,
    descriptor: &'static str,
    (purpose, size): (Purpose, Size),
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

const READ: (Purpose, Size) = (Purpose::FileRead, Size::Returned);
const WRITE: (Purpose, Size) = (Purpose::FileWrite, Size::Returned);
const READ_VECTOR: (Purpose, Size) = (Purpose::FileRead, Size::ReturnedLong);
const WRITE_VECTOR: (Purpose, Size) = (Purpose::FileWrite, Size::ReturnedLong);
const TRANSFER: (Purpose, Size) = (Purpose::FileTransfer, Size::ReturnedLong);
const RECEIVE: (Purpose, Size) = (Purpose::SocketRead, Size::Returned);
const SEND: (Purpose, Size) = (Purpose::SocketWrite, Size::Returned);
const RECEIVE_VECTOR: (Purpose, Size) = (Purpose::SocketRead, Size::ReturnedLong);
const SEND_VECTOR: (Purpose, Size) = (Purpose::SocketWrite, Size::ReturnedLong);
const WAIT: (Purpose, Size) = (Purpose::SocketWait, Size::Nothing);

/// The natives of JDK 17 to 25.
#[rustfmt::skip]
pub const OPERATIONS: [Operation; 44] = [
    own(IN, "read0", "()I", (Purpose::FileRead, Size::ByteReturned)),
    own(IN, "readBytes", ARRAY_READ, READ),
    own(OUT, "write", "(IZ)V", (Purpose::FileWrite, Size::Byte)),
    own(OUT, "writeBytes", "([BIIZ)V", (Purpose::FileWrite, Size::LastButOne)),
    own(RANDOM, "read0", "()I", (Purpose::FileRead, Size::ByteReturned)),
    own(RANDOM, "write0", "(I)V", (Purpose::FileWrite, Size::Byte)),
    // JDK 17 has these natives without the 0, later ones have Java methods of that name.
    own(RANDOM, "readBytes", ARRAY_READ, READ),
    own(RANDOM, "readBytes0", ARRAY_READ, READ),
    own(RANDOM, "writeBytes", "([BII)V", (Purpose::FileWrite, Size::Last)),
    own(RANDOM, "writeBytes0", "([BII)V", (Purpose::FileWrite, Size::Last)),
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
    of(SOCKET, NET, "accept", ACCEPT, (Purpose::SocketAccept, Size::Nothing)),
    of(SERVER_CHANNEL, NET, "accept", ACCEPT, (Purpose::SocketAccept, Size::Nothing)),
    own(NET, "connect0", "(ZLjava/io/FileDescriptor;Ljava/net/InetAddress;I)I", (Purpose::SocketConnect, Size::Nothing)),
    own(DOMAIN, "connect0", "(Ljava/io/FileDescriptor;[B)I", (Purpose::SocketConnect, Size::Nothing)),
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

/// What an operation is for.
pub fn purpose(operation: usize) -> Option<Purpose> {
    OPERATIONS.get(operation).map(|operation| operation.purpose)
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
        let purpose_in = |class| {
            let operation = operation(class, &write, &|_| true)?;
            purpose(operation.into())
        };
        assert_eq!(purpose_in(FILES), Some(Purpose::FileWrite));
        assert_eq!(purpose_in(SOCKETS), Some(Purpose::SocketWrite));
        assert_eq!(purpose_in("sun/nio/ch/IOUtil"), None);
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
    fn all_have_a_purpose() {
        for operation in 0..OPERATIONS.len() {
            assert!(purpose(operation).is_some());
        }
        assert!(purpose(OPERATIONS.len()).is_none());
    }
}
