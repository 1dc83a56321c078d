//! The resources that are known without the option `resource=`: of the JDK, and of libraries that have pools.
//!
//! Names are those of JDK 17 to 25. A name that a version does not have is not found there.

use lucce_bytecode::{ClassFile, MethodCall};

use super::AnalyzedMethod;

/// Methods that open resources, or that close them.
struct ResourceMethods {
    class: ResourceClass,
    /// A star at the end stands for any characters.
    methods: &'static [&'static str],
    /// The end of the descriptor; empty: any.
    descriptor_end: &'static str,
}

enum ResourceClass {
    Named(&'static str),
    /// All classes of a package.
    Package(&'static str),
    /// A class of a driver: it uses `java.sql`, and belongs to no pool.
    Sql,
}

const fn of_class(class: &'static str, methods: &'static [&'static str]) -> ResourceMethods {
    ResourceMethods {
        class: ResourceClass::Named(class),
        methods,
        descriptor_end: "",
    }
}

const fn of_package(class: &'static str, methods: &'static [&'static str]) -> ResourceMethods {
    ResourceMethods {
        class: ResourceClass::Package(class),
        methods,
        descriptor_end: "",
    }
}

const fn of_driver(
    methods: &'static [&'static str],
    descriptor_end: &'static str,
) -> ResourceMethods {
    ResourceMethods {
        class: ResourceClass::Sql,
        methods,
        descriptor_end,
    }
}

const INIT: &[&str] = &["<init>"];
const OPEN: &[&str] = &["open"];
const CLOSE: &[&str] = &["close"];
const GET_CONNECTION: &[&str] = &["getConnection"];

const OPENERS: &[ResourceMethods] = &[
    // Files. A stream around an open descriptor opens nothing.
    of_class("java/io/FileInputStream", OPEN),
    of_class("java/io/FileOutputStream", OPEN),
    of_class("java/io/RandomAccessFile", OPEN),
    of_class(
        "sun/nio/fs/UnixChannelFactory",
        &["newFileChannel", "newAsynchronousFileChannel"],
    ),
    of_class("sun/nio/fs/UnixDirectoryStream", INIT),
    of_class("java/util/zip/ZipFile", INIT),
    // It stays mapped until it is collected.
    ResourceMethods {
        descriptor_end: "Ljava/nio/MappedByteBuffer;",
        ..of_class("sun/nio/ch/FileChannelImpl", &["map"])
    },
    // Sockets and channels
    of_class("java/net/Socket", &["connect"]),
    of_class("java/net/ServerSocket", &["accept", "bind"]),
    of_class("sun/security/ssl/SSLServerSocketImpl", &["accept"]),
    of_class("sun/nio/ch/SocketChannelImpl", INIT),
    of_class("sun/nio/ch/ServerSocketChannelImpl", INIT),
    of_class("sun/nio/ch/DatagramChannelImpl", INIT),
    of_class("sun/nio/ch/UnixAsynchronousSocketChannelImpl", INIT),
    of_class("sun/nio/ch/UnixAsynchronousServerSocketChannelImpl", INIT),
    of_class("sun/nio/ch/EPollSelectorImpl", INIT),
    of_class("sun/nio/ch/PollSelectorImpl", INIT),
    // Executors
    of_class("java/util/concurrent/ThreadPoolExecutor", INIT),
    // The common pool has another constructor, and is never shut down.
    ResourceMethods {
        descriptor_end: "Ljava/util/concurrent/TimeUnit;)V",
        ..of_class("java/util/concurrent/ForkJoinPool", INIT)
    },
    of_class("java/util/concurrent/ThreadPerTaskExecutor", INIT),
    of_class("java/util/Timer", INIT),
    // Memory
    of_class(
        "jdk/internal/foreign/MemorySessionImpl",
        &["createConfined", "createShared"],
    ),
    // HTTP clients
    of_class(
        "jdk/internal/net/http/ResponseSubscribers$HttpResponseInputStream",
        INIT,
    ),
    of_class(
        "org/apache/http/impl/conn/PoolingHttpClientConnectionManager",
        &["leaseConnection"],
    ),
    of_class(
        "org/apache/hc/client5/http/impl/classic/InternalExecRuntime",
        &["acquireEndpoint"],
    ),
    // Pools
    of_class("com/zaxxer/hikari/HikariDataSource", GET_CONNECTION),
    of_class(
        "org/apache/commons/pool2/impl/GenericObjectPool",
        &["borrowObject"],
    ),
    of_class(
        "org/apache/commons/pool2/impl/GenericKeyedObjectPool",
        &["borrowObject"],
    ),
    of_class("org/apache/commons/dbcp2/PoolingDataSource", GET_CONNECTION),
    of_class("io/netty/buffer/PooledByteBuf", &["init0"]),
    of_class("io/netty/buffer/UnpooledHeapByteBuf", INIT),
    of_class("io/netty/buffer/UnpooledDirectByteBuf", INIT),
    of_class(
        "io/netty/buffer/AdaptivePoolingAllocator$AdaptiveByteBuf",
        &["init"],
    ),
    // Statements and result sets
    of_driver(&["createStatement"], "Ljava/sql/Statement;"),
    of_driver(&["prepareStatement"], "Ljava/sql/PreparedStatement;"),
    of_driver(&["prepareCall"], "Ljava/sql/CallableStatement;"),
    of_driver(
        &["executeQuery", "getResultSet", "getGeneratedKeys"],
        "Ljava/sql/ResultSet;",
    ),
];

/// Methods whose own object is open when they begin: it may be closed before they return.
const OPENERS_AT_ENTRY: &[ResourceMethods] = &[of_class("java/lang/ProcessImpl", &["initStreams"])];

const CLOSERS: &[ResourceMethods] = &[
    of_class("java/io/FileInputStream", CLOSE),
    of_class("java/io/FileOutputStream", CLOSE),
    of_class("java/io/RandomAccessFile", CLOSE),
    of_class("sun/nio/ch/FileChannelImpl", &["implCloseChannel"]),
    of_class("sun/nio/ch/SimpleAsynchronousFileChannelImpl", CLOSE),
    of_class("sun/nio/fs/UnixDirectoryStream", &["closeImpl"]),
    of_class("java/util/zip/ZipFile", CLOSE),
    of_class("java/net/Socket", CLOSE),
    of_class("java/net/ServerSocket", CLOSE),
    of_class(
        "sun/nio/ch/SocketChannelImpl",
        &["implCloseSelectableChannel"],
    ),
    of_class(
        "sun/nio/ch/ServerSocketChannelImpl",
        &["implCloseSelectableChannel"],
    ),
    of_class(
        "sun/nio/ch/DatagramChannelImpl",
        &["implCloseSelectableChannel"],
    ),
    of_class(
        "sun/nio/ch/UnixAsynchronousSocketChannelImpl",
        &["implClose"],
    ),
    of_class(
        "sun/nio/ch/UnixAsynchronousServerSocketChannelImpl",
        &["implClose"],
    ),
    of_class("sun/nio/ch/EPollSelectorImpl", &["implClose"]),
    of_class("sun/nio/ch/PollSelectorImpl", &["implClose"]),
    // Called when the process has ended.
    of_class("java/lang/ProcessImpl", &["lambda$initStreams$*"]),
    of_class(
        "java/util/concurrent/ThreadPoolExecutor",
        &["shutdown", "shutdownNow"],
    ),
    of_class(
        "java/util/concurrent/ForkJoinPool",
        &["shutdown", "shutdownNow", "close"],
    ),
    of_class(
        "java/util/concurrent/ThreadPerTaskExecutor",
        &["shutdown", "shutdownNow", "close"],
    ),
    of_class("java/util/Timer", &["cancel"]),
    of_class("jdk/internal/foreign/MemorySessionImpl", CLOSE),
    of_class("jdk/internal/ref/PhantomCleanable", &["clean"]),
    of_class(
        "jdk/internal/net/http/ResponseSubscribers$HttpResponseInputStream",
        CLOSE,
    ),
    of_class(
        "org/apache/http/impl/conn/PoolingHttpClientConnectionManager",
        &["releaseConnection"],
    ),
    of_class(
        "org/apache/hc/client5/http/impl/classic/InternalExecRuntime",
        &["releaseEndpoint", "discardEndpoint"],
    ),
    of_class("com/zaxxer/hikari/pool/ProxyConnection", CLOSE),
    of_class(
        "org/apache/commons/pool2/impl/GenericObjectPool",
        &["returnObject", "invalidateObject"],
    ),
    of_class(
        "org/apache/commons/pool2/impl/GenericKeyedObjectPool",
        &["returnObject", "invalidateObject"],
    ),
    of_package("org/apache/commons/dbcp2/", CLOSE),
    of_package("io/netty/buffer/", &["deallocate"]),
    // The latter are the names by which a statement closes its results: H2, PostgreSQL, MySQL.
    of_driver(
        &["close", "closeInternal", "closeInternally", "realClose"],
        "",
    ),
];

/// Classes of pools, whose statements are those of a driver.
const POOLS: [&str; 6] = [
    "com/zaxxer/",
    "org/apache/commons/",
    "org/apache/tomcat/",
    "com/mchange/",
    "com/alibaba/",
    "io/agroal/",
];

/// Packages of drivers.
const DRIVERS: [&str; 5] = [
    "org/h2/jdbc/",
    "org/postgresql/jdbc/",
    "com/mysql/cj/jdbc/",
    "org/mariadb/jdbc/",
    "oracle/jdbc/",
];

/// Whether the program registers an object with a cleaner by this call. The JDK has cleaners for most of its own resources.
pub(super) fn registers_cleaner(at: &AnalyzedMethod<'_>, call: &MethodCall<'_>) -> bool {
    at.class.is_empty() && (&*call.owner, &*call.name) == ("java/lang/ref/Cleaner", "register")
}

/// Whether a class with this internal name may have a method of the lists. Of classes of drivers, only known ones.
pub(super) fn concerns_class(class: &str) -> bool {
    let mut entries = OPENERS.iter().chain(OPENERS_AT_ENTRY).chain(CLOSERS);
    entries.any(|entry| match entry.class {
        ResourceClass::Named(name) => name == class,
        ResourceClass::Package(package) => class.starts_with(package),
        ResourceClass::Sql => DRIVERS.iter().any(|package| class.starts_with(package)),
    })
}

/// Whether the method opens a resource.
pub(super) fn opens(at: &AnalyzedMethod<'_>) -> bool {
    at.resources.opens(at.file.name(), &at.method.name) || is_listed(OPENERS, at)
}

/// Whether the method's own object is open when the method begins.
pub(super) fn opens_at_entry(at: &AnalyzedMethod<'_>) -> bool {
    is_listed(OPENERS_AT_ENTRY, at)
}

/// Whether the method closes resources.
pub(super) fn closes(at: &AnalyzedMethod<'_>) -> bool {
    at.resources.closes(at.file.name(), &at.method.name) || is_listed(CLOSERS, at)
}

fn is_listed(list: &[ResourceMethods], at: &AnalyzedMethod<'_>) -> bool {
    let (class, method) = (at.file.name(), at.method);
    let mut entries = list.iter();
    entries.any(|entry| {
        let mut names = entry.methods.iter();
        names.any(|name| matches_name(name, &method.name))
            && method.descriptor.ends_with(entry.descriptor_end)
            && match entry.class {
                ResourceClass::Named(name) => name == class,
                ResourceClass::Package(package) => class.starts_with(package),
                ResourceClass::Sql => is_driver_class(at.file),
            }
    })
}

fn matches_name(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

/// Whether the class may implement an interface of `java.sql`, outside of pools.
fn is_driver_class(class: &ClassFile<'_>) -> bool {
    let is_of_pool = || POOLS.iter().any(|pool| class.name().starts_with(pool));
    class.mentions_text("java/sql/") && !is_of_pool()
}
