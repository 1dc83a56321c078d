//! What the VM does with a method in a way of its own: which frame it gets, whether it is shown, whether its
//! entries are counted.

use lucce_bytecode::{ClassFile, ClassFileMethod, CodeAttribute, CodeScan, MethodCall};

use crate::helpers::RT;
use crate::instrumentation::{FrameKind, MethodInstrumentation};
use crate::jdk::leaf_methods::{INVOKE_CLEANER, UNSAFE, is_leaf, is_leaf_call};
use crate::jdk::{agents, foreign, recorder, vm_calls};

pub const CLASS_INITIALIZER: &str = "<clinit>";
/// The VM enters the last method of these without a hook before it, for an upcall stub (`java.lang.foreign`). It compiles a
/// handle for its target, once. The others only lead there, so they have no hooks, and that one asks the VM.
pub const CUSTOMIZING: [(&str, &str); 3] = [
    ("java/lang/invoke/Invokers", "checkCustomized"),
    ("java/lang/invoke/Invokers", "maybeCustomize"),
    ("java/lang/invoke/MethodHandle", "maybeCustomize"),
];
const CONTINUATION: &str = "jdk/internal/vm/Continuation";
/// Its methods that have nothing to do with mounting. In all others the pointer must not change: the VM
/// may unmount a thread between a call's hook and the callee's entry.
const NO_MOUNTING: [&str; 5] = [
    CLASS_INITIALIZER,
    "getStackTrace",
    "stackWalker",
    "lambda$getStackTrace$0",
    "lambda$getStackTrace$1",
];

/// What those others call: methods of the class that implements `JavaLangAccess`, see [`QUIET_CLASS`].
pub const QUIET: [&str; 6] = [
    "currentCarrierThread",
    "getContinuation",
    "setContinuation",
    "virtualThreadContinuationScope",
    "scopedValueCache",
    "setScopedValueCache",
];
pub const QUIET_CLASS: &str = "java/lang/System$";

/// The name by which what the VM does with a class is known: of classes that others than the boot loader
/// and the platform loader define there is nothing to know, whatever they are called and annotated with.
pub fn role_name<'a>(class: &'a ClassFile<'_>, trusted: bool) -> &'a str {
    if trusted { class.name() } else { OTHERS }
}

const OTHERS: &str = "";

/// The annotation of methods that the VM leaves out of stack traces.
pub const HIDDEN: &str = "Ljdk/internal/vm/annotation/Hidden;";

/// Entry and exit of these happen on different threads (JDK 21 and later).
const SWITCHES: &str = "Ljdk/internal/vm/annotation/ChangesCurrentThread;";

/// The helper itself, and the frames in which a virtual thread is mounted and unmounted: neither
/// hooked nor shown.
pub fn is_untouched(class: &str, method: &str) -> bool {
    class.starts_with(RT) || class == CONTINUATION && !NO_MOUNTING.contains(&method)
}

/// Methods that switch threads and nevertheless take a slot: `runContinuation`, for a carrier's trace shows it, and
/// those of JDK 21 that have switched back when they end.
const SHOWN_SWITCHES: [&str; 4] = ["runContinuation", "scheduleUnpark", "cancel", "unpark"];

pub fn is_transparent(class: &str, method: &ClassFileMethod<'_>) -> bool {
    is_untouched(class, &method.name)
        || switches_thread(class, method) && !SHOWN_SWITCHES.contains(&&*method.name)
        || class != OTHERS && method.has_annotation(HIDDEN)
}

pub fn switches_thread(class: &str, method: &ClassFileMethod<'_>) -> bool {
    class != OTHERS && method.has_annotation(SWITCHES)
}

/// Unsafe is what the helper class itself stands on.
pub fn is_excluded(class: &str, method: &ClassFileMethod<'_>) -> bool {
    class == UNSAFE && method.name != INVOKE_CLEANER || is_transparent(class, method)
}

pub fn frame_kind(
    class: &str,
    method: &ClassFileMethod<'_>,
    shape: &MethodInstrumentation,
) -> FrameKind {
    if let Some(kind) = switch_frame_kind(class, method) {
        kind
    } else if recorder::may_call_untracked(class, &method.name) {
        FrameKind::VmEntered
    } else if !shape.restores.is_empty() || !shape.unseen.is_empty() {
        unshown_frame(class, method)
    } else if shape.places.is_empty() {
        FrameKind::Leaf
    } else {
        kind_by_name(class, method)
    }
}

/// What JDK 21 has for this; in 25 a virtual thread stays the current one while it is mounted.
pub fn switch_frame_kind(class: &str, method: &ClassFileMethod<'_>) -> Option<FrameKind> {
    match (class, &*method.name) {
        ("java/lang/VirtualThread", "switchToCarrierThread") => Some(FrameKind::ToCarrier),
        ("java/lang/VirtualThread", "switchToVirtualThread") => Some(FrameKind::ToVirtual),
        _ => None,
    }
}

/// Whether virtual threads of the JDK that has this class act as their carriers: it has the methods for it.
pub fn acts_as_carrier(class: &str, methods: &[ClassFileMethod<'_>]) -> bool {
    let mut methods = methods.iter();
    methods.any(|method| switch_frame_kind(class, method) == Some(FrameKind::ToCarrier))
}

/// Of methods that switch threads: whether this call, in a class with this name, hides the frames of what follows. The VM tells
/// agents nothing then, not even that a class is loaded, which so would get no hooks.
pub fn hides_frames(class: &str, call: &MethodCall<'_>) -> bool {
    class == "java/lang/VirtualThread" && call.name == "notifyJvmtiHideFrames"
}

/// What a virtual thread that is pinned calls in the middle of being unmounted.
pub fn is_pinned(class: &str, method: &str) -> bool {
    (class, method) == (VIRTUAL_THREAD_CONTINUATION, "onPinned")
}

const VIRTUAL_THREAD_CONTINUATION: &str = "java/lang/VirtualThread$VThreadContinuation";

/// The frame of a method that is not shown. `class`: by its [`role_name`].
pub fn unshown_frame(class: &str, method: &ClassFileMethod<'_>) -> FrameKind {
    match &*method.name {
        CLASS_INITIALIZER => FrameKind::NoSlotVmEntered,
        name => foreign::stub_frame(class, name).unwrap_or(FrameKind::NoSlot),
    }
}

/// Whether the method may go on after an exception.
pub fn has_handlers(method: &ClassFileMethod<'_>) -> bool {
    method
        .code
        .as_ref()
        .is_some_and(CodeAttribute::has_handlers)
}

/// The calls of a method that is not shown, unless it only passes one call on.
pub fn calls_to_restore(
    frame: FrameKind,
    method: &ClassFileMethod<'_>,
    scan: &CodeScan<'_>,
) -> Vec<u16> {
    let calls = scan.calls.iter();
    let calls = calls.filter(|call| !is_leaf_call(call));
    let calls: Vec<_> = calls.map(|call| call.bci).collect();
    match calls.len() {
        1 if !scan.has_loops && !has_handlers(method) && frame == FrameKind::NoSlot => Vec::new(),
        _ => calls,
    }
}

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

/// Whether a method in which nothing happens needs no hooks.
pub fn may_be_leaf(class: &str, method: &ClassFileMethod<'_>) -> bool {
    let name = &*method.name;
    kind_by_name(class, method) == FrameKind::OwnSlot
        || vm_calls::recorder_calls(class, name) && !recorder::may_call_untracked(class, name)
}

/// The first method of a virtual thread, behind its continuation.
pub fn starts_virtual_thread(class: &str, method: &str, descriptor: &str) -> bool {
    let wanted = ("java/lang/VirtualThread", "run", "(Ljava/lang/Runnable;)V");
    (class, method, descriptor) == wanted
}

/// Unsafe has no hooks, so what it calls does not know where its slot is.
pub const CALLED_BY_UNSAFE: [(&str, &str); 7] = [
    ("java/lang/Character", "reverseBytes"),
    ("java/lang/Class", "getComponentType"),
    ("java/lang/Class", "isPrimitive"),
    ("java/lang/Integer", "reverseBytes"),
    ("java/lang/Integer", "toUnsignedLong"),
    ("java/lang/Long", "reverseBytes"),
    ("java/lang/Short", "reverseBytes"),
];

/// Methods of `Thread` that are called while a virtual thread is mounted and unmounted: the VM hides what
/// happens then.
pub const MOUNTING: [&str; 6] = [
    "isInterrupted",
    "clearInterrupt",
    "setInterrupt",
    "getContinuation",
    "setContinuation",
    "setCurrentThread",
];

/// Whether this is one of [`CUSTOMIZING`].
pub fn is_customizing(class: &str, method: &ClassFileMethod<'_>) -> bool {
    CUSTOMIZING.contains(&(class, &*method.name))
}

/// Whether entries are counted where they are asked for. Callers say nothing to leaves.
pub fn is_counted(class: &str, method: &ClassFileMethod<'_>) -> bool {
    // With code in it, an empty finalize() would make every object finalizable.
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

/// Methods that the VM calls by itself in the middle of others, and in which nothing happens but that they
/// are entered: see `vm_calls`.
pub fn is_vm_called(class: &str, method: &ClassFileMethod<'_>) -> bool {
    let is_thrown = class.ends_with("Exception")
        || class.ends_with("Error")
        || matches!(class, "java/lang/Throwable" | "java/lang/ThreadDeath");
    is_thrown && method.name == "<init>" || vm_calls::only_enters(class, &method.name)
}
