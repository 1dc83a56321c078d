//! The native methods by which the JDK reads and writes files and sockets.
//!
//! `kinds::io` has the hooks around their calls.
//!
//! Origin: all natives of `java.base` that take a file descriptor or belong to a class for files and sockets, in JDK
//! 11, 17, 21 and 25 (`javap -p`). Their callers were looked up. A row is harmless in a JDK without its class or native.

use lucce_bytecode::MethodCall;

/// What an operation does, and whether with a file or a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoPurpose {
    FileRead,
    FileWrite,
    FileTransfer,
    SocketRead,
    SocketWrite,
    SocketWait,
    SocketAccept,
    SocketConnect,
}

impl IoPurpose {
    /// The word in the log.
    pub fn word(self) -> &'static str {
        match self {
            IoPurpose::FileRead => "file read",
            IoPurpose::FileWrite => "file write",
            IoPurpose::FileTransfer => "file transfer",
            IoPurpose::SocketRead => "socket read",
            IoPurpose::SocketWrite => "socket write",
            IoPurpose::SocketWait => "socket wait",
            IoPurpose::SocketAccept => "socket accept",
            IoPurpose::SocketConnect => "socket connect",
        }
    }
}

/// How the hook learns the number of bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum IoSizeSource {
    /// The native returns it; a negative value means the end, or that nothing was done (`sun.nio.ch.IOStatus`).
    Returned,
    /// As `Returned`, in a `long`.
    ReturnedLong,
    /// The native returns a byte, or -1 at the end.
    ByteReturned,
    /// No bytes; the return value says whether anything was done.
    Nothing,
    /// No bytes and no return value; the native throws if it does nothing.
    NothingReturned,
    /// The last argument; the last two are numbers.
    Last,
    /// The last argument but one.
    LastButOne,
    /// Always one byte.
    Byte,
    /// The length of the packet (`java.net.DatagramPacket`) that is the last argument.
    PacketSent,
    /// The length that the native gives to the packet, which is the first argument of the calling instance method.
    PacketReceived,
}

/// A native method, its calling class, and its purpose.
pub struct IoOperation {
    caller: &'static str,
    pub owner: &'static str,
    pub name: &'static str,
    pub descriptor: &'static str,
    purpose: IoPurpose,
    pub size: IoSizeSource,
}

const fn own_operation(
    class: &'static str,
    name: &'static str,
    descriptor: &'static str,
    (purpose, size): (IoPurpose, IoSizeSource),
) -> IoOperation {
    new_operation(class, class, name, descriptor, (purpose, size))
}

const fn new_operation(
    caller: &'static str,
    owner: &'static str,
    name: &'static str,
    descriptor: &'static str,
    (purpose, size): (IoPurpose, IoSizeSource),
) -> IoOperation {
    IoOperation {
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
/// Files, and pipes in JDK 17; some of its natives also serve sockets.
const FILES: &str = "sun/nio/ch/FileDispatcherImpl";
/// Since JDK 21.
const UNIX_FILES: &str = "sun/nio/ch/UnixFileDispatcherImpl";
const FILE_CHANNEL: &str = "sun/nio/ch/FileChannelImpl";
const SOCKETS: &str = "sun/nio/ch/SocketDispatcher";
const DATAGRAMS: &str = "sun/nio/ch/DatagramDispatcher";
const DATAGRAM_CHANNEL: &str = "sun/nio/ch/DatagramChannelImpl";
const NET: &str = "sun/nio/ch/Net";
const SOCKET: &str = "sun/nio/ch/NioSocketImpl";
const DOMAIN: &str = "sun/nio/ch/UnixDomainSockets";
const SOCKET_CHANNEL: &str = "sun/nio/ch/SocketChannelImpl";
const SERVER_CHANNEL: &str = "sun/nio/ch/ServerSocketChannelImpl";
const CHANNEL: &str = "sun/nio/ch/SelChImpl";
/// Sockets of JDK 11, and of JDK 17 with `-Djdk.net.usePlainSocketImpl`. Their abstract methods have natives in a subclass.
const PLAIN_SOCKET: &str = "java/net/AbstractPlainSocketImpl";
const SOCKET_IN: &str = "java/net/SocketInputStream";
const SOCKET_OUT: &str = "java/net/SocketOutputStream";
/// Datagrams of JDK 11, and of JDK 17 with `-Djdk.net.usePlainDatagramSocketImpl`.
const PLAIN_DATAGRAMS: &str = "java/net/AbstractPlainDatagramSocketImpl";
const DATAGRAM_IMPL: &str = "java/net/DatagramSocketImpl";
const DATAGRAM_SOCKET: &str = "java/net/DatagramSocket";
const MULTICAST_SOCKET: &str = "java/net/MulticastSocket";

const ARRAY_READ: &str = "([BII)I";
const ONE: &str = "(Ljava/io/FileDescriptor;JI)I";
const AT: &str = "(Ljava/io/FileDescriptor;JIJ)I";
const VECTOR: &str = "(Ljava/io/FileDescriptor;JI)J";
const POLL: &str = "(Ljava/io/FileDescriptor;IJ)I";
const ACCEPT: &str =
    "(Ljava/io/FileDescriptor;Ljava/io/FileDescriptor;[Ljava/net/InetSocketAddress;)I";

const PACKET: &str = "(Ljava/net/DatagramPacket;)V";

const READ: (IoPurpose, IoSizeSource) = (IoPurpose::FileRead, IoSizeSource::Returned);
const WRITE: (IoPurpose, IoSizeSource) = (IoPurpose::FileWrite, IoSizeSource::Returned);
const READ_VECTOR: (IoPurpose, IoSizeSource) = (IoPurpose::FileRead, IoSizeSource::ReturnedLong);
const WRITE_VECTOR: (IoPurpose, IoSizeSource) = (IoPurpose::FileWrite, IoSizeSource::ReturnedLong);
const TRANSFER: (IoPurpose, IoSizeSource) = (IoPurpose::FileTransfer, IoSizeSource::ReturnedLong);
const RECEIVE: (IoPurpose, IoSizeSource) = (IoPurpose::SocketRead, IoSizeSource::Returned);
const SEND: (IoPurpose, IoSizeSource) = (IoPurpose::SocketWrite, IoSizeSource::Returned);
const RECEIVE_VECTOR: (IoPurpose, IoSizeSource) =
    (IoPurpose::SocketRead, IoSizeSource::ReturnedLong);
const SEND_VECTOR: (IoPurpose, IoSizeSource) = (IoPurpose::SocketWrite, IoSizeSource::ReturnedLong);
const WAIT: (IoPurpose, IoSizeSource) = (IoPurpose::SocketWait, IoSizeSource::Nothing);

/// The natives of JDK 11 to 25.
#[rustfmt::skip]
pub const OPERATIONS: [IoOperation; 59] = [
    own_operation(IN, "read0", "()I", (IoPurpose::FileRead, IoSizeSource::ByteReturned)),
    own_operation(IN, "readBytes", ARRAY_READ, READ),
    own_operation(OUT, "write", "(IZ)V", (IoPurpose::FileWrite, IoSizeSource::Byte)),
    own_operation(OUT, "writeBytes", "([BIIZ)V", (IoPurpose::FileWrite, IoSizeSource::LastButOne)),
    own_operation(RANDOM, "read0", "()I", (IoPurpose::FileRead, IoSizeSource::ByteReturned)),
    own_operation(RANDOM, "write0", "(I)V", (IoPurpose::FileWrite, IoSizeSource::Byte)),
    // JDK 17 has these natives without the 0; later JDKs have Java methods of that name.
    own_operation(RANDOM, "readBytes", ARRAY_READ, READ),
    own_operation(RANDOM, "readBytes0", ARRAY_READ, READ),
    own_operation(RANDOM, "writeBytes", "([BII)V", (IoPurpose::FileWrite, IoSizeSource::Last)),
    own_operation(RANDOM, "writeBytes0", "([BII)V", (IoPurpose::FileWrite, IoSizeSource::Last)),
    own_operation(FILES, "read0", ONE, READ),
    own_operation(FILES, "pread0", AT, READ),
    own_operation(FILES, "readv0", VECTOR, READ_VECTOR),
    own_operation(FILES, "write0", ONE, WRITE),
    own_operation(FILES, "pwrite0", AT, WRITE),
    own_operation(FILES, "writev0", VECTOR, WRITE_VECTOR),
    own_operation(UNIX_FILES, "read0", ONE, READ),
    own_operation(UNIX_FILES, "pread0", AT, READ),
    own_operation(UNIX_FILES, "readv0", VECTOR, READ_VECTOR),
    own_operation(UNIX_FILES, "write0", ONE, WRITE),
    own_operation(UNIX_FILES, "pwrite0", AT, WRITE),
    own_operation(UNIX_FILES, "writev0", VECTOR, WRITE_VECTOR),
    own_operation(FILE_CHANNEL, "transferTo0", "(Ljava/io/FileDescriptor;JJLjava/io/FileDescriptor;)J", TRANSFER),
    own_operation(FILES, "transferTo0", "(Ljava/io/FileDescriptor;JJLjava/io/FileDescriptor;Z)J", TRANSFER),
    own_operation(FILES, "transferFrom0", "(Ljava/io/FileDescriptor;Ljava/io/FileDescriptor;JJZ)J", TRANSFER),
    own_operation(SOCKETS, "read0", ONE, RECEIVE),
    own_operation(SOCKETS, "readv0", VECTOR, RECEIVE_VECTOR),
    own_operation(SOCKETS, "write0", ONE, SEND),
    own_operation(SOCKETS, "writev0", VECTOR, SEND_VECTOR),
    new_operation(SOCKETS, FILES, "write0", ONE, SEND),
    new_operation(SOCKETS, FILES, "writev0", VECTOR, SEND_VECTOR),
    own_operation(DATAGRAMS, "read0", ONE, RECEIVE),
    own_operation(DATAGRAMS, "readv0", VECTOR, RECEIVE_VECTOR),
    own_operation(DATAGRAMS, "write0", ONE, SEND),
    own_operation(DATAGRAMS, "writev0", VECTOR, SEND_VECTOR),
    own_operation(DATAGRAM_CHANNEL, "receive0", "(Ljava/io/FileDescriptor;JIJZ)I", RECEIVE),
    own_operation(DATAGRAM_CHANNEL, "send0", "(Ljava/io/FileDescriptor;JIJI)I", SEND),
    new_operation(DATAGRAM_CHANNEL, NET, "poll", POLL, WAIT),
    new_operation(SOCKET, NET, "poll", POLL, WAIT),
    new_operation(CHANNEL, NET, "poll", POLL, WAIT),
    new_operation(SOCKET, NET, "accept", ACCEPT, (IoPurpose::SocketAccept, IoSizeSource::Nothing)),
    new_operation(SERVER_CHANNEL, NET, "accept", ACCEPT, (IoPurpose::SocketAccept, IoSizeSource::Nothing)),
    own_operation(NET, "connect0", "(ZLjava/io/FileDescriptor;Ljava/net/InetAddress;I)I", (IoPurpose::SocketConnect, IoSizeSource::Nothing)),
    own_operation(DOMAIN, "connect0", "(Ljava/io/FileDescriptor;[B)I", (IoPurpose::SocketConnect, IoSizeSource::Nothing)),
    // JDK 11.
    own_operation(SOCKET_IN, "socketRead0", "(Ljava/io/FileDescriptor;[BIII)I", RECEIVE),
    own_operation(SOCKET_OUT, "socketWrite0", "(Ljava/io/FileDescriptor;[BII)V", (IoPurpose::SocketWrite, IoSizeSource::Last)),
    own_operation(PLAIN_SOCKET, "socketAccept", "(Ljava/net/SocketImpl;)V", (IoPurpose::SocketAccept, IoSizeSource::NothingReturned)),
    own_operation(PLAIN_SOCKET, "socketConnect", "(Ljava/net/InetAddress;II)V", (IoPurpose::SocketConnect, IoSizeSource::NothingReturned)),
    own_operation(PLAIN_DATAGRAMS, "receive0", PACKET, (IoPurpose::SocketRead, IoSizeSource::PacketReceived)),
    own_operation(PLAIN_DATAGRAMS, "send0", PACKET, (IoPurpose::SocketWrite, IoSizeSource::PacketSent)),
    new_operation(DATAGRAM_SOCKET, DATAGRAM_IMPL, "send", PACKET, (IoPurpose::SocketWrite, IoSizeSource::PacketSent)),
    new_operation(MULTICAST_SOCKET, DATAGRAM_IMPL, "send", PACKET, (IoPurpose::SocketWrite, IoSizeSource::PacketSent)),
    new_operation(SOCKETS, FILES, "read0", ONE, RECEIVE),
    new_operation(SOCKETS, FILES, "readv0", VECTOR, RECEIVE_VECTOR),
    new_operation(SOCKET_CHANNEL, NET, "poll", POLL, WAIT),
    new_operation(SERVER_CHANNEL, NET, "poll", POLL, WAIT),
    own_operation(SERVER_CHANNEL, "accept0", ACCEPT, (IoPurpose::SocketAccept, IoSizeSource::Nothing)),
    own_operation(DATAGRAM_CHANNEL, "receive0", "(Ljava/io/FileDescriptor;JIZ)I", RECEIVE),
    own_operation(DATAGRAM_CHANNEL, "send0", "(ZLjava/io/FileDescriptor;JILjava/net/InetAddress;I)I", SEND),
];

/// Returns the index of the operation that a call is. `is_native`: whether the calling class itself declares it native or
/// abstract.
pub fn find_operation(
    class: &str,
    call: &MethodCall<'_>,
    is_native: &dyn Fn(&MethodCall<'_>) -> bool,
) -> Option<u8> {
    let position = OPERATIONS.iter().position(|operation| {
        (
            operation.caller,
            operation.owner,
            operation.name,
            operation.descriptor,
        ) == (class, &*call.owner, &*call.name, &*call.descriptor)
    })?;
    (call.owner != class || is_native(call)).then_some(position as u8)
}

/// Returns the purpose of an operation.
pub fn operation_purpose(operation: usize) -> Option<IoPurpose> {
    OPERATIONS.get(operation).map(|operation| operation.purpose)
}

#[cfg(test)]
mod io_tests {
    use super::*;

    fn call(
        owner: &'static str,
        name: &'static str,
        descriptor: &'static str,
    ) -> MethodCall<'static> {
        MethodCall {
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
            let operation = find_operation(class, &write, &|_| true)?;
            operation_purpose(operation.into())
        };
        assert_eq!(purpose_in(FILES), Some(IoPurpose::FileWrite));
        assert_eq!(purpose_in(SOCKETS), Some(IoPurpose::SocketWrite));
        assert_eq!(purpose_in("sun/nio/ch/IOUtil"), None);
    }

    #[test]
    fn a_java_method_that_calls_the_native_is_none() {
        let write = call(RANDOM, "writeBytes", "([BII)V");
        assert!(find_operation(RANDOM, &write, &|_| true).is_some());
        assert!(find_operation(RANDOM, &write, &|_| false).is_none());
        // Overloads of natives.
        assert!(
            find_operation(
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
            assert!(operation_purpose(operation).is_some());
        }
        assert!(operation_purpose(OPERATIONS.len()).is_none());
    }
}
