//! The methods that the VM enters by itself (VM entries), when the thread's `$lucceStack` may be stale.
//!
//! Origin: `HotSpot` enters Java by `JavaCalls`, and by the stubs of foreign functions and of continuations, whose
//! methods are hidden. Every call of `JavaCalls::*` in `libjvm.so` of JDK 17 and JDK 25 was examined for the names and
//! descriptors that it passes. Of JDK 11, the names in `libjvm.so` that JDK 17 lacks were examined, and all natives of
//! `java.base`. `foreign` has the stubs of foreign functions. Not in the lists:
//!
//! - Calls by JNI and by reflection's natives: these are bracketed.
//! - `Thread.run`, a thread's first frame, for which `$lucceStack` is right. Also `VirtualThread.run`, and the method that
//!   makes a `Thread` for native code that attaches itself: they have their own frame kinds.
//! - Methods that run before the VM is initialized, such as `ClassLoader.getPlatformClassLoader`.
//! - Methods that run only while an archive of classes is written, or for classes from one, such as `URL.<init>` and
//!   `SecureClassLoader.getProtectionDomain`. With hooks the VM uses no archive.
//! - Methods without anything that can ask for a context: constructors of boxes, of `MemoryUsage`, `EventWriter`,
//!   `ByteArrayInputStream`, and of exceptions that the VM throws; `System.getProperty`, `Throwable.getCause`,
//!   `Character.isJavaIdentifierStart` and `…Part`. [`METHODS`] does have the exception that makes a text of its own,
//!   and what JFR calls from such constructors. Constructors that record a trace have their callers checked in the
//!   agent.
//! - `Thread.interrupt` for debuggers: asking the VM each time would cost every program more than these traces are
//!   worth.
//! - `ArrayList.add` for JFR's list of events: see `recorder`.
//!
//! Below a frame that is in no list, a class initializer finds slots that do not match the frames, and its events are
//! dropped.

use lucce_bytecode::ClassFileMethod;

use crate::jdk::recorder;

/// VM entries on objects of any class, by name and descriptor.
const ANY_CLASS: [&str; 5] = [
    "loadClass(Ljava/lang/String;)Ljava/lang/Class;",
    "printStackTrace()V",
    "getStackTrace()[Ljava/lang/StackTraceElement;",
    "appendToClassPathForInstrumentation(Ljava/lang/String;)V",
    // For compilers written in Java: see [`JVMCI`].
    "visitFrame(Ljdk/vm/ci/code/stack/InspectedFrame;)Ljava/lang/Object;",
];

/// VM entries by class and method, with the descriptor if other overloads are called often. `*` makes a prefix.
pub const METHODS: [(&str, &str); 55] = [
    // In the middle of any method: linking, loading and initialising.
    ("java/lang/invoke/MethodHandleNatives", "linkCallSite"),
    (
        "java/lang/invoke/MethodHandleNatives",
        "linkDynamicConstant",
    ),
    ("java/lang/invoke/MethodHandleNatives", "linkMethod"),
    (
        "java/lang/invoke/MethodHandleNatives",
        "linkMethodHandleConstant",
    ),
    (
        "java/lang/invoke/MethodHandleNatives",
        "findMethodHandleType",
    ),
    ("java/lang/ref/Finalizer", "register"),
    ("java/lang/ClassLoader", "addClass"),
    ("java/lang/ClassLoader", "checkPackageAccess"),
    ("java/lang/ClassLoader", "findNative"),
    ("java/lang/ClassLoader", "getResourceAsByteArray"),
    ("jdk/internal/loader/NativeLibraries", "getFromClass"),
    // JDK 11.
    ("java/lang/ClassLoader$NativeLibrary", "getFromClass"),
    (
        "java/security/ProtectionDomain",
        "impliesCreateAccessControlContext",
    ),
    ("java/lang/Throwable", "initCause"),
    (
        "java/lang/BootstrapMethodError",
        "<init>(Ljava/lang/Throwable;)V",
    ),
    // Called by a native method repeatedly, or without a bracket.
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
    // Ends of threads and of the VM.
    ("java/lang/Thread", "dispatchUncaughtException"),
    ("java/lang/Thread", "exit"),
    ("java/lang/Shutdown", "shutdown"),
    // Repeatedly called on the VM's own threads: signals, notifications, sensors.
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
    // Diagnostic commands, from an attached tool or through the MBean.
    ("jdk/internal/vm/VMSupport", "serialize*"),
    // The agent's properties, one call each.
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
    // Called in constructors of exceptions, which the VM may have called.
    ("jdk/jfr/internal/instrument/ThrowableTracer", "trace*"),
    ("jdk/internal/event/ThrowableTracer", "trace*"),
    // Other agents, and modules for them and for attaching tools.
    ("jdk/internal/module/Modules", "transformedByAgent"),
    ("jdk/internal/module/Modules", "loadModule"),
    ("jdk/internal/module/Modules", "add*"),
    ("java/lang/ThreadGroup", "subgroupsAsArray"),
];

/// VM entries into a compiler written in Java (`-XX:+UseJVMCICompiler`).
///
/// The VM requests compilations from its own threads, one call after the other. It also enters in the middle of that
/// compiler's natives, for objects that represent classes, methods and constants. The names stand together in
/// `vmSymbols_jvmci.hpp`, and so in `libjvm.so`.
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

/// Whether the VM calls this method other than through JNI, or code without hooks calls it. Class initializers are not
/// covered.
pub fn is_vm_entered(class: &str, method: &str, descriptor: &str) -> bool {
    matches_any(&METHODS, class, method, descriptor)
        || matches_any(&JVMCI, class, method, descriptor)
        || matches_any(&recorder::CALLED, class, method, descriptor)
        || ANY_CLASS
            .iter()
            .any(|name| matches_pattern(name, method, descriptor))
}

/// Whether the VM enters privileged actions. `release`: the JDK's feature version, such as 11.
///
/// In JDK 11 `AccessController.doPrivileged` is a native method that calls its action's `run`. It is Java code in later
/// JDKs.
#[must_use]
pub fn has_native_actions(release: u32) -> bool {
    release <= 11
}

/// Whether the method may be that of a privileged action: `run` of `PrivilegedAction` and `PrivilegedExceptionAction`.
#[must_use]
pub fn is_action(method: &ClassFileMethod<'_>) -> bool {
    method.name == "run" && method.descriptor == "()Ljava/lang/Object;"
}

/// Whether code of Flight Recorder calls this method.
pub fn recorder_calls(class: &str, method: &str) -> bool {
    matches_any(&recorder::CALLED, class, method, "")
}

/// Whether a pattern matches the method.
///
/// The check runs for every method of every class, so other classes must be rejected cheaply: names of other lengths
/// are not compared.
fn matches_any(patterns: &[(&str, &str)], class: &str, method: &str, descriptor: &str) -> bool {
    patterns.iter().any(|(owner, pattern)| {
        is_owner(owner, class) && matches_pattern(pattern, method, descriptor)
    })
}

fn is_owner(owner: &str, class: &str) -> bool {
    let is_prefixed = |prefix| class.starts_with(prefix);
    owner == class || owner.strip_suffix('*').is_some_and(is_prefixed)
}

/// VM entries without any event but the entry itself; they matter if entries are counted.
pub const ONLY_ENTERED: [(&str, &str); 7] = [
    ("java/lang/System", "getProperty"),
    ("java/lang/Throwable", "getCause"),
    ("java/lang/Character", "isJavaIdentifierStart"),
    ("java/lang/Character", "isJavaIdentifierPart"),
    ("java/lang/management/MemoryUsage", "<init>"),
    ("jdk/jfr/internal/event/EventWriter", "<init>"),
    ("java/io/ByteArrayInputStream", "<init>"),
];

/// Whether the VM calls this method and only its entry matters.
pub fn only_enters(class: &str, method: &str) -> bool {
    ONLY_ENTERED.contains(&(class, method))
}

/// Methods that the VM runs at the end of the constructor of an object with a finalizer.
///
/// They make a reference and call nothing else, so they need no frame if nothing is counted.
pub const FINALIZABLE: [(&str, &str); 3] = [
    ("java/lang/ref/Finalizer", "register"),
    ("java/lang/ref/Finalizer", "<init>"),
    ("java/lang/ref/FinalReference", "<init>"),
];

/// VM entries that reach no code of the program. Entered by the VM, `put` gets texts.
///
/// If no class of the JDK is in scope, nothing in them can ask for a context.
const WITHOUT_PROGRAM: [(&str, &str); 3] = [
    ("java/lang/ClassLoader", "addClass"),
    (
        "java/lang/invoke/MethodHandleNatives",
        "findMethodHandleType",
    ),
    ("java/util/Properties", "put"),
];

/// Whether this VM entry needs no hooks if no class of the JDK is in scope.
pub fn reaches_no_program(class: &str, method: &str) -> bool {
    WITHOUT_PROGRAM.contains(&(class, method))
}

/// Whether this VM entry does nothing but allocate and lock.
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
mod vm_calls_tests {
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
        // Called by `linkCallSite`, not by the VM.
        assert!(!is_vm_entered(natives, "linkCallSiteImpl", "()V"));
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
        let descriptor = "(J)Ljdk/vm/ci/hotspot/HotSpotConstantPool;";
        assert!(is_vm_entered(constants, "fromMetaspace", descriptor));
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
        let element = "java/lang/StackTraceElement";
        let of_frames = "([Ljava/lang/StackTraceElement;)[Ljava/lang/StackTraceElement;";
        assert!(is_vm_entered(element, "of", of_frames));
        assert!(!is_vm_entered(
            element,
            "of",
            "(Ljava/lang/Object;I)[Ljava/lang/StackTraceElement;"
        ));
        assert!(!is_vm_entered(element, "of", ""));
    }

    #[test]
    fn what_the_vm_calls_only_at_start_or_for_an_archive_is_no_entry() {
        let loader = "java/lang/ClassLoader";
        let get = "()Ljava/lang/ClassLoader;";
        assert!(!is_vm_entered(loader, "getPlatformClassLoader", get));
        assert!(!is_vm_entered(
            "java/net/URL",
            "<init>",
            "(Ljava/lang/String;)V"
        ));
        assert!(is_vm_entered(loader, "addClass", "(Ljava/lang/Class;)V"));
        assert!(reaches_no_program(loader, "addClass"));
        assert!(!reaches_no_program(loader, "checkPackageAccess"));
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
