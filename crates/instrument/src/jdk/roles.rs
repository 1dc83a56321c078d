//! Methods that the VM treats specially: their frame kind, whether traces show them, whether entries are counted.

use lucce_bytecode::{ClassFile, ClassFileMethod, CodeAttribute, CodeScan, MethodCall};

use crate::helpers::HELPER_PREFIX;
use crate::instrumentation::{FrameKind, MethodInstrumentation};
use crate::jdk::leaf_methods::{INVOKE_CLEANER, UNSAFE, is_leaf, is_leaf_call};
use crate::jdk::{agents, foreign, older_names, recorder, vm_calls};

pub const CLASS_INITIALIZER: &str = "<clinit>";
/// Methods that customize a method handle.
///
/// For an upcall stub (`java.lang.foreign`), the VM enters the last of these without a preceding hook. It compiles a
/// handle for the stub's target, once. The others only lead to it: they have no hooks, and it asks the VM for its
/// caller.
pub const CUSTOMIZING: [(&str, &str); 3] = [
    ("java/lang/invoke/Invokers", "checkCustomized"),
    ("java/lang/invoke/Invokers", "maybeCustomize"),
    ("java/lang/invoke/MethodHandle", "maybeCustomize"),
];
const CONTINUATION: &str = "jdk/internal/vm/Continuation";
/// Methods of `Continuation` that do not take part in mounting. In all others `$lucceStack` must not change: the VM may unmount a
/// thread between a call's hook and the callee's entry.
const NO_MOUNTING: [&str; 5] = [
    CLASS_INITIALIZER,
    "getStackTrace",
    "stackWalker",
    "lambda$getStackTrace$0",
    "lambda$getStackTrace$1",
];

/// Callees of the mounting methods, in the class that implements `JavaLangAccess`: see [`UNTRACKED_CLASS`].
pub const UNTRACKED_METHODS: [&str; 6] = [
    "currentCarrierThread",
    "getContinuation",
    "setContinuation",
    "virtualThreadContinuationScope",
    "scopedValueCache",
    "setScopedValueCache",
];
/// Prefix of the name of the class that implements `JavaLangAccess`, a class nested in `System`.
pub const UNTRACKED_CLASS: &str = "java/lang/System$";

/// Returns the name under which the tables know a class; empty unless `trusted`.
///
/// The VM gives no special role to classes of other loaders than the boot and platform loader, whatever their names and
/// annotations.
pub fn role_name<'a>(class: &'a ClassFile<'_>, trusted: bool) -> &'a str {
    if trusted { class.name() } else { OTHERS }
}

const OTHERS: &str = "";

/// The annotation of methods that the VM omits from stack traces.
pub const HIDDEN: &str = "Ljdk/internal/vm/annotation/Hidden;";

/// The annotation of methods whose entry and exit happen on different threads (JDK 21 and later).
const SWITCHES: &str = "Ljdk/internal/vm/annotation/ChangesCurrentThread;";

/// Whether the method is part of the helper, or a frame in which a virtual thread is mounted and unmounted. Such
/// methods have no hooks and are omitted from traces.
pub fn is_untouched(class: &str, method: &str) -> bool {
    class.starts_with(HELPER_PREFIX) || class == CONTINUATION && !NO_MOUNTING.contains(&method)
}

/// Methods that switch threads and still take a slot.
///
/// A carrier's trace shows `runContinuation`. The others, of JDK 21, have switched back when they end.
const SHOWN_SWITCHES: [&str; 4] = ["runContinuation", "scheduleUnpark", "cancel", "unpark"];

/// Whether traces omit the method: it is untouched, switches threads, or has the annotation [`HIDDEN`].
pub fn is_transparent(class: &str, method: &ClassFileMethod<'_>) -> bool {
    is_untouched(class, &method.name)
        || switches_thread(class, method) && !SHOWN_SWITCHES.contains(&&*method.name)
        || class != OTHERS && has_hidden_annotation(method)
}

/// Whether the method has the annotation of methods that the VM omits from stack traces, in any JDK.
pub fn has_hidden_annotation(method: &ClassFileMethod<'_>) -> bool {
    method.has_annotation(HIDDEN) || method.has_annotation(older_names::HIDDEN)
}

/// Whether entry and exit of the method happen on different threads (JDK 21 and later).
pub fn switches_thread(class: &str, method: &ClassFileMethod<'_>) -> bool {
    class != OTHERS && method.has_annotation(SWITCHES)
}

/// Whether the method gets no hooks. The helper class itself uses `Unsafe`.
pub fn is_excluded(class: &str, method: &ClassFileMethod<'_>) -> bool {
    class == UNSAFE && method.name != INVOKE_CLEANER || is_transparent(class, method)
}

/// Returns the frame kind of a method, from its role and from its hook places.
pub fn frame_kind(
    class: &str,
    method: &ClassFileMethod<'_>,
    instrumentation: &MethodInstrumentation,
) -> FrameKind {
    if let Some(kind) = switch_frame_kind(class, method) {
        kind
    } else if recorder::may_call_untracked(class, &method.name) {
        FrameKind::VmEntered
    } else if !instrumentation.restores.is_empty() || !instrumentation.unseen.is_empty() {
        unshown_frame(class, method)
    } else if instrumentation.places.is_empty() {
        FrameKind::Leaf
    } else {
        kind_by_name(class, method)
    }
}

/// Returns the frame kind of methods that switch to the carrier and back (JDK 21). In JDK 25, a mounted virtual thread
/// stays the current thread.
pub fn switch_frame_kind(class: &str, method: &ClassFileMethod<'_>) -> Option<FrameKind> {
    match (class, &*method.name) {
        ("java/lang/VirtualThread", "switchToCarrierThread") => Some(FrameKind::ToCarrier),
        ("java/lang/VirtualThread", "switchToVirtualThread") => Some(FrameKind::ToVirtual),
        _ => None,
    }
}

/// Whether virtual threads of this JDK act as their carriers: the class has the methods for it.
pub fn acts_as_carrier(class: &str, methods: &[ClassFileMethod<'_>]) -> bool {
    let mut methods = methods.iter();
    methods.any(|method| switch_frame_kind(class, method) == Some(FrameKind::ToCarrier))
}

/// Whether this call, in a method that switches threads, hides the following frames.
///
/// The VM then reports nothing to agents, not even the loading of a class, which would get no hooks.
pub fn hides_frames(class: &str, call: &MethodCall<'_>) -> bool {
    class == "java/lang/VirtualThread" && call.name == "notifyJvmtiHideFrames"
}

/// Whether a pinned virtual thread calls the method while it is being unmounted.
pub fn is_pinned(class: &str, method: &str) -> bool {
    (class, method) == (VIRTUAL_THREAD_CONTINUATION, "onPinned")
}

const VIRTUAL_THREAD_CONTINUATION: &str = "java/lang/VirtualThread$VThreadContinuation";

/// Returns the frame kind of a method that traces omit. `class`: its [`role_name`].
pub fn unshown_frame(class: &str, method: &ClassFileMethod<'_>) -> FrameKind {
    match &*method.name {
        CLASS_INITIALIZER => FrameKind::HiddenVmEntered,
        name => foreign::stub_frame(class, name).unwrap_or(FrameKind::Hidden),
    }
}

/// Whether the method may continue after an exception.
pub fn has_handlers(method: &ClassFileMethod<'_>) -> bool {
    method
        .code
        .as_ref()
        .is_some_and(CodeAttribute::has_handlers)
}

/// Returns the calls of a method that traces omit, unless the method only passes one call on.
pub fn calls_to_restore(
    frame: FrameKind,
    method: &ClassFileMethod<'_>,
    scan: &CodeScan<'_>,
) -> Vec<u16> {
    let calls = scan.calls.iter();
    let calls = calls.filter(|call| !is_leaf_call(call));
    let calls: Vec<_> = calls.map(|call| call.bci).collect();
    match calls.len() {
        1 if !scan.has_loops && !has_handlers(method) && frame == FrameKind::Hidden => Vec::new(),
        _ => calls,
    }
}

/// Returns the frame kind of a method with hooks, by its class, name and descriptor.
pub fn kind_by_name(class: &str, method: &ClassFileMethod<'_>) -> FrameKind {
    if starts_virtual_thread(class, &method.name, &method.descriptor) {
        return FrameKind::ThreadEntry;
    }
    if is_pinned(class, &method.name) {
        return FrameKind::Pinned;
    }
    if agents::runs_agent(class, &method.name) {
        return FrameKind::Premain;
    }
    match (class, &*method.name) {
        ("java/lang/Thread", "<init>") | ("java/lang/ThreadGroup", "add") => {
            return FrameKind::AttachedThread;
        }
        _ => {}
    }
    let entered = method.name == CLASS_INITIALIZER
        || vm_calls::is_vm_entered(class, &method.name, &method.descriptor);
    if entered {
        FrameKind::VmEntered
    } else {
        FrameKind::OwnSlot
    }
}

/// Whether a method that causes no event may go without hooks.
pub fn may_be_leaf(class: &str, method: &ClassFileMethod<'_>) -> bool {
    let name = &*method.name;
    kind_by_name(class, method) == FrameKind::OwnSlot
        || vm_calls::recorder_calls(class, name) && !recorder::may_call_untracked(class, name)
}

/// Whether this is the first method of a virtual thread, above its continuation.
pub fn starts_virtual_thread(class: &str, method: &str, descriptor: &str) -> bool {
    let wanted = ("java/lang/VirtualThread", "run", "(Ljava/lang/Runnable;)V");
    (class, method, descriptor) == wanted
}

/// Methods that `Unsafe` calls. `Unsafe` has no hooks, so they find no published slot.
pub const CALLED_BY_UNSAFE: [(&str, &str); 7] = [
    ("java/lang/Character", "reverseBytes"),
    ("java/lang/Class", "getComponentType"),
    ("java/lang/Class", "isPrimitive"),
    ("java/lang/Integer", "reverseBytes"),
    ("java/lang/Integer", "toUnsignedLong"),
    ("java/lang/Long", "reverseBytes"),
    ("java/lang/Short", "reverseBytes"),
];

/// Methods of `Thread` that are called while a virtual thread is mounted or unmounted. The VM hides the events there.
pub const MOUNTING: [&str; 6] = [
    "isInterrupted",
    "clearInterrupt",
    "setInterrupt",
    "getContinuation",
    "setContinuation",
    "setCurrentThread",
];

/// Whether the method is one of [`CUSTOMIZING`].
pub fn is_customizing(class: &str, method: &ClassFileMethod<'_>) -> bool {
    CUSTOMIZING.contains(&(class, &*method.name))
}

/// Whether entries of the method are counted if entries are requested. Callers publish no site for leaf methods.
pub fn is_counted(class: &str, method: &ClassFileMethod<'_>) -> bool {
    // With code in it, an empty `finalize()` would make every object finalizable.
    let is_empty_finalize =
        |code: &CodeAttribute<'_>| method.name == "finalize" && code.bytes.len() == 1;
    let has_code = method
        .code
        .as_ref()
        .is_some_and(|code| !is_empty_finalize(code));
    let of_unsafe = CALLED_BY_UNSAFE.contains(&(class, &*method.name));
    let mounts = match class {
        "java/lang/VirtualThread" => method.name != "run",
        "java/lang/Thread" => MOUNTING.contains(&&*method.name),
        _ => class.starts_with(VIRTUAL_THREAD_CONTINUATION),
    };
    has_code
        && !of_unsafe
        && !mounts
        && !is_leaf(class, &method.name)
        && !is_customizing(class, method)
        && !is_excluded(class, method)
        && !switches_thread(class, method)
}

/// Whether the VM calls the method in the middle of others, and only its entry matters: see `vm_calls`.
pub fn is_vm_called(class: &str, method: &ClassFileMethod<'_>) -> bool {
    let is_thrown = class.ends_with("Exception")
        || class.ends_with("Error")
        || matches!(class, "java/lang/Throwable" | "java/lang/ThreadDeath");
    is_thrown && method.name == "<init>" || vm_calls::only_enters(class, &method.name)
}
