//! The methods that the VM enters by itself, where the thread's pointer may be stale.
//!
//! How the lists were made: `HotSpot` enters Java by `JavaCalls` (and by the stubs of foreign
//! functions and of continuations, whose methods are hidden ones). Every call of `JavaCalls::*` in the
//! code of the `libjvm.so` of JDK 17 and of JDK 25 was looked up, and which names and descriptors it
//! passes. The stubs of foreign functions are in `foreign`. Not in the lists:
//!
//! - what JNI calls: that is bracketed; reflection's natives: bracketed as well;
//! - `Thread.run`: a thread's first frame, for which the pointer is right; what makes a `Thread` for
//!   native code that attaches itself, and `VirtualThread.run`: they are kinds of frames of their own;
//! - what runs before the VM is initialised, or only while an archive of classes is written;
//! - methods in which nothing happens that could ask for a context: constructors of exceptions that
//!   the VM throws (but [`METHODS`] has the one with a text of its own to make, and what JFR calls
//!   from them, and `thrown` asks who has called those in which a trace is noted), of boxes, `MemoryUsage`, `EventWriter`, `ByteArrayInputStream`;
//!   `System.getProperty`, `Throwable.getCause`, `Character.isJavaIdentifierStart` and `…Part`;
//! - `Thread.interrupt` for debuggers: asking the VM each time would cost every program more than these
//!   traces are worth; `ArrayList.add` for JFR's list of events, see `recorder`.
//!
//! A class initialiser below a frame that is in no list finds slots that are not those of the frames,
//! and its events count as lost.

use crate::jdk::recorder;

/// Called on objects of any class, by name and descriptor.
const ANY_CLASS: [&str; 5] = [
    "loadClass(Ljava/lang/String;)Ljava/lang/Class;",
    "printStackTrace()V",
    "getStackTrace()[Ljava/lang/StackTraceElement;",
    "appendToClassPathForInstrumentation(Ljava/lang/String;)V",
    // Of a compiler that is written in Java, see [`JVMCI`].
    "visitFrame(Ljdk/vm/ci/code/stack/InspectedFrame;)Ljava/lang/Object;",
];

/// Class and method, with the descriptor where other overloads are called often. `*`: every prefix
/// match.
pub const METHODS: [(&str, &str); 58] = [
    // In the middle of any method: linking, loading and initialising.
    ("java/lang/invoke/MethodHandleNatives", "link*"),
    (
        "java/lang/invoke/MethodHandleNatives",
        "findMethodHandleType",
    ),
    ("java/lang/ref/Finalizer", "register"),
    ("java/lang/ClassLoader", "addClass"),
    ("java/lang/ClassLoader", "checkPackageAccess"),
    ("java/lang/ClassLoader", "findNative"),
    ("java/lang/ClassLoader", "getPlatformClassLoader"),
    ("java/lang/ClassLoader", "getSystemClassLoader"),
    ("java/lang/ClassLoader", "getResourceAsByteArray"),
    ("jdk/internal/loader/NativeLibraries", "getFromClass"),
    ("java/lang/Throwable", "initCause"),
    (
        "java/lang/BootstrapMethodError",
        "<init>(Ljava/lang/Throwable;)V",
    ),
    // Classes from an archive: where they come from.
    ("jdk/internal/loader/ClassLoaders", "toFileURL"),
    (
        "jdk/internal/loader/BuiltinClassLoader",
        "defineOrCheckPackage",
    ),
    ("java/security/SecureClassLoader", "getProtectionDomain"),
    (
        "java/security/CodeSource",
        "<init>(Ljava/net/URL;[Ljava/security/CodeSigner;)V",
    ),
    ("java/util/jar/Manifest", "<init>(Ljava/io/InputStream;)V"),
    ("java/net/URL", "<init>(Ljava/lang/String;)V"),
    // Repeatedly, or without a bracket, from a native method.
    (
        "java/lang/StackStreamFactory$AbstractStackWalker",
        "doStackWalk",
    ),
    ("java/lang/LiveStackFrameInfo", "asPrimitive"),
    (
        "java/lang/StackTraceElement",
        "of([Ljava/lang/StackTraceElement;)[Ljava/lang/StackTraceElement;",
    ),
    ("java/lang/management/ThreadInfo", "<init>*"),
    ("sun/management/ManagementFactoryHelper", "create*"),
    (
        "com/sun/management/internal/GarbageCollectorExtImpl",
        "createGarbageCollector",
    ),
    (
        "jdk/internal/foreign/abi/ProgrammableUpcallHandler",
        "invoke",
    ),
    // Upcalls without classes of their own (-Djdk.internal.foreign.UpcallLinker.USE_SPEC=false).
    (
        "jdk/internal/foreign/abi/UpcallLinker",
        "invokeInterpBindings",
    ),
    // See `roles::CUSTOMIZING`.
    ("java/lang/invoke/MethodHandle", "customize"),
    // The ends of threads and of the VM.
    ("java/lang/Thread", "dispatchUncaughtException"),
    ("java/lang/Thread", "exit"),
    ("java/lang/Shutdown", "shutdown"),
    // The VM's own threads, one call after the other: signals, notifications, sensors.
    ("jdk/internal/misc/Signal", "dispatch"),
    (
        "com/sun/management/internal/GarbageCollectorExtImpl",
        "createGCNotification",
    ),
    (
        "com/sun/management/internal/GarbageCollectorExtImpl",
        "getGcInfoBuilder",
    ),
    ("com/sun/management/GcInfo", "<init>*"),
    (
        "com/sun/management/internal/DiagnosticCommandImpl",
        "getDiagnosticCommandMBean",
    ),
    (
        "com/sun/management/internal/DiagnosticCommandImpl",
        "createDiagnosticFrameworkNotification",
    ),
    ("sun/management/Sensor", "trigger*"),
    ("sun/management/Sensor", "clear*"),
    // Diagnostic commands: of a tool that attaches, or through the MBean.
    ("jdk/internal/vm/VMSupport", "serialize*"),
    // The agent's properties, one by one.
    ("java/util/Properties", "put"),
    ("jdk/internal/vm/ThreadDumper", "dumpThreads*"),
    ("jdk/internal/vm/JcmdVThreadCommands", "print*"),
    ("jdk/internal/agent/Agent", "startAgent"),
    ("jdk/internal/agent/Agent", "startLocalManagementAgent"),
    ("jdk/internal/agent/Agent", "startRemoteManagementAgent"),
    ("jdk/internal/agent/Agent", "stopRemoteManagementAgent"),
    ("jdk/internal/agent/Agent", "getManagementAgentStatus"),
    ("jdk/internal/misc/CDS", "dumpSharedArchive"),
    ("java/lang/System", "runFinalization"),
    ("java/lang/ref/FinalizerHistogram", "getFinalizerHistogram"),
    // JFR.
    ("jdk/jfr/internal/JVMUpcalls", "*"),
    ("jdk/jfr/internal/dcmd/*", "*"),
    // In constructors of exceptions, which the VM may have called.
    ("jdk/jfr/internal/instrument/ThrowableTracer", "trace*"),
    ("jdk/internal/event/ThrowableTracer", "trace*"),
    // Other agents, and modules for them and for attaching tools.
    ("jdk/internal/module/Modules", "transformedByAgent"),
    ("jdk/internal/module/Modules", "loadModule"),
    ("jdk/internal/module/Modules", "add*"),
    ("java/lang/ThreadGroup", "subgroupsAsArray"),
];

/// Where the VM enters a compiler that is written in Java (`-XX:+UseJVMCICompiler`): to have something compiled, which is
/// one call after the other of a thread of the VM's own, and in the middle of that compiler's natives, for objects that stand
/// for classes, methods and constants. The names stand side by side in `vmSymbols_jvmci.hpp`, and so in `libjvm.so`.
pub const JVMCI: [(&str, &str); 21] = [
    ("jdk/vm/ci/runtime/JVMCI", "getRuntime"),
    (RUNTIME, "runtime"),
    (RUNTIME, "getCompiler"),
    (RUNTIME, "compileMethod"),
    (RUNTIME, "isGCSupported"),
    (RUNTIME, "isIntrinsicSupported"),
    (RUNTIME, "postTranslation"),
    (RUNTIME, "bootstrapFinished"),
    (RUNTIME, "shutdown"),
    (RUNTIME, "exceptionToString"),
    (RUNTIME, "callToString"),
    (RUNTIME, "encodeThrowable"),
    (RUNTIME, "decodeAndThrowThrowable"),
    (
        "jdk/vm/ci/hotspot/HotSpotResolvedObjectTypeImpl",
        "fromMetaspace",
    ),
    (
        "jdk/vm/ci/hotspot/HotSpotResolvedJavaMethodImpl",
        "fromMetaspace",
    ),
    (
        "jdk/vm/ci/hotspot/HotSpotResolvedPrimitiveType",
        "fromMetaspace",
    ),
    ("jdk/vm/ci/hotspot/HotSpotConstantPool", "fromMetaspace"),
    ("jdk/vm/ci/hotspot/HotSpotNmethod", "<init>"),
    ("jdk/vm/ci/meta/JavaConstant", "forPrimitive"),
    ("jdk/internal/vm/VMSupport", "encodeThrowable"),
    ("jdk/internal/vm/VMSupport", "decodeAndThrowThrowable"),
];

const RUNTIME: &str = "jdk/vm/ci/hotspot/HotSpotJVMCIRuntime";

/// Whether the VM calls this method by itself, other than by JNI, or code without hooks does. Class initialisers are
/// not asked for.
pub fn is_vm_entered(class: &str, method: &str, descriptor: &str) -> bool {
    matches_any(&METHODS, class, method, descriptor)
        || matches_any(&JVMCI, class, method, descriptor)
        || matches_any(&recorder::CALLED, class, method, descriptor)
        || ANY_CLASS
            .iter()
            .any(|name| matches_pattern(name, method, descriptor))
}

/// Whether code of Flight Recorder calls this method.
pub fn recorder_calls(class: &str, method: &str) -> bool {
    matches_any(&recorder::CALLED, class, method, "")
}

/// Every method of every class is asked for, so a class that is not the owner must cost little: names of other
/// lengths are not compared.
fn matches_any(patterns: &[(&str, &str)], class: &str, method: &str, descriptor: &str) -> bool {
    patterns.iter().any(|(owner, pattern)| {
        is_owner(owner, class) && matches_pattern(pattern, method, descriptor)
    })
}

fn is_owner(owner: &str, class: &str) -> bool {
    let is_prefixed = |prefix| class.starts_with(prefix);
    owner == class || owner.strip_suffix('*').is_some_and(is_prefixed)
}

/// Methods that the VM enters in which nothing else happens: they matter where entries are counted.
pub const ONLY_ENTERED: [(&str, &str); 7] = [
    ("java/lang/System", "getProperty"),
    ("java/lang/Throwable", "getCause"),
    ("java/lang/Character", "isJavaIdentifierStart"),
    ("java/lang/Character", "isJavaIdentifierPart"),
    ("java/lang/management/MemoryUsage", "<init>"),
    ("jdk/jfr/internal/event/EventWriter", "<init>"),
    ("java/io/ByteArrayInputStream", "<init>"),
];

/// Whether the VM calls this method by itself, if every entry of a method matters.
pub fn only_enters(class: &str, method: &str) -> bool {
    ONLY_ENTERED.contains(&(class, method))
}

/// What the VM runs at the end of the constructor of an object with a finalizer: it makes a reference,
/// and calls nothing else. It needs no frame if nothing is counted.
pub const FINALIZABLE: [(&str, &str); 3] = [
    ("java/lang/ref/Finalizer", "register"),
    ("java/lang/ref/Finalizer", "<init>"),
    ("java/lang/ref/FinalReference", "<init>"),
];

/// Whether nothing happens in this method that the VM enters but an allocation and a lock.
pub fn only_allocates(class: &str, method: &str) -> bool {
    FINALIZABLE.contains(&(class, method))
}

/// A pattern is a name, a name with its descriptor, or a prefix of a name with `*`.
fn matches_pattern(pattern: &str, name: &str, descriptor: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest == descriptor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_flight_recorder_calls_asks_the_vm() {
        let write = "(JJLjava/lang/String;Z)V";
        assert!(is_vm_entered(
            "jdk/jfr/internal/handlers/EventHandler12_3",
            "write",
            write
        ));
        assert!(is_vm_entered(
            "jdk/jfr/internal/event/EventWriter",
            "putString",
            "(Ljava/lang/String;)V"
        ));
        assert!(!is_vm_entered(
            "jdk/jfr/internal/StringPool",
            "addString",
            "(Ljava/lang/String;)J"
        ));
    }

    #[test]
    fn names_and_prefixes_match_every_descriptor() {
        let natives = "java/lang/invoke/MethodHandleNatives";
        assert!(is_vm_entered(natives, "linkCallSite", "()V"));
        assert!(is_vm_entered("java/lang/ref/Finalizer", "register", "(I)V"));
        assert!(!is_vm_entered(
            "java/lang/ref/Finalizer",
            "runFinalizer",
            "()V"
        ));
        assert!(!is_vm_entered(
            "a/MethodHandleNatives",
            "linkCallSite",
            "()V"
        ));
        assert!(is_vm_entered(
            "jdk/jfr/internal/dcmd/DCmdStart",
            "execute",
            "()V"
        ));
        assert!(!is_vm_entered("jdk/jfr/internal/dcmd", "execute", "()V"));
    }

    #[test]
    fn a_compiler_that_is_written_in_java_is_entered_by_the_vm() {
        let constants = "jdk/vm/ci/hotspot/HotSpotConstantPool";
        let made = "(J)Ljdk/vm/ci/hotspot/HotSpotConstantPool;";
        assert!(is_vm_entered(constants, "fromMetaspace", made));
        assert!(!is_vm_entered(constants, "length", "()I"));
        assert!(is_vm_entered(RUNTIME, "compileMethod", ""));
        assert!(!is_vm_entered(RUNTIME, "getHostJVMCIBackend", ""));
        let frame = "(Ljdk/vm/ci/code/stack/InspectedFrame;)Ljava/lang/Object;";
        assert!(is_vm_entered("a/Visitor", "visitFrame", frame));
        assert!(!is_vm_entered("a/Visitor", "visitFrame", "()V"));
    }

    #[test]
    fn only_what_makes_objects_finalizable_needs_no_frame() {
        assert!(only_allocates("java/lang/ref/Finalizer", "register"));
        assert!(!only_allocates("java/lang/ref/Finalizer", "runFinalizer"));
        assert!(!only_allocates("java/lang/ref/Reference", "<init>"));
    }

    #[test]
    fn a_descriptor_leaves_out_the_other_overloads() {
        let url = "java/net/URL";
        assert!(is_vm_entered(url, "<init>", "(Ljava/lang/String;)V"));
        assert!(!is_vm_entered(
            url,
            "<init>",
            "(Ljava/net/URL;Ljava/lang/String;)V"
        ));
        assert!(!is_vm_entered(url, "<init>", ""));
    }

    #[test]
    fn some_are_called_on_any_class() {
        assert!(is_vm_entered("a/B", "printStackTrace", "()V"));
        assert!(!is_vm_entered(
            "a/B",
            "printStackTrace",
            "(Ljava/io/PrintStream;)V"
        ));
        assert!(!is_vm_entered(
            "a/B",
            "loadClass",
            "(Ljava/lang/String;Z)Ljava/lang/Class;"
        ));
    }
}
