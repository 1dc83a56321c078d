//! Names and descriptors of the helper methods that hooks call.
//!
//! They must match the sources of the helper classes, `LucceRtFrames.java` and others; a test of the agent compares them.

use lucce_bytecode::{CodeInsertion, HelperMethod, NewField};

/// Prefix of the names of all helper classes.
pub const HELPER_PREFIX: &str = "java/lang/LucceRt";
/// The helper class for frames.
pub const FRAMES: &str = "java/lang/LucceRtFrames";
const VM_ENTRIES: &str = "java/lang/LucceRtVmEntries";
const UNTRACKED: &str = "java/lang/LucceRtUntracked";
const FOREIGN: &str = "java/lang/LucceRtForeign";
const CONTEXTS: &str = "java/lang/LucceRtContexts";
const CLASSES: &str = "java/lang/LucceRtClasses";
const ALLOCATIONS: &str = "java/lang/LucceRtAllocations";
const OBJECTS: &str = "java/lang/LucceRtObjects";
const TRACES: &str = "java/lang/LucceRtTraces";
const CALLS: &str = "java/lang/LucceRtCalls";
const PROGRAM_EVENTS: &str = "java/lang/LucceRtProgramEvents";
pub const DURATIONS: &str = "java/lang/LucceRtDurations";
const TASKS: &str = "java/lang/LucceRtTasks";
const REQUESTS: &str = "java/lang/LucceRtRequests";
const LOCKS: &str = "java/lang/LucceRtLocks";
const TIMES: &str = "java/lang/LucceRtTimes";
const LAB: &str = "java/lang/LucceRtLab";
/// Prefix of the helpers that classes inherit from `java.lang.Object`; no compiler makes such names.
pub const INHERITED: &str = "$lucce$";

/// Defines a constant for each helper, and the list of all.
macro_rules! helpers {
    ($list:ident: $($(#[$about:meta])* $name:ident = $class:ident($method:literal, $descriptor:literal);)*) => {
        $($(#[$about])* pub const $name: HelperMethod = helper_of($class, $method, $descriptor);)*

        const $list: &[HelperMethod<'static>] = &[$($name),*];
    };
}

helpers! {
    NAMED:
    ENTER = FRAMES("enter", "()J");
    ENTER_FIRST = VM_ENTRIES("enterFirst", "()J");
    ENTER_THREAD = VM_ENTRIES("enterThread", "()J");
    ENTER_PREMAIN = VM_ENTRIES("enterPremain", "()J");
    ENTER_VM = VM_ENTRIES("enterVm", "()J");
    /// The VM is asked only if a context is needed.
    ENTER_VM_LATER = VM_ENTRIES("enterVmLater", "()J");
    EXIT_VM = VM_ENTRIES("exitVm", "(J)V");
    /// In place of `EXIT_VM`: the caller's further calls may be untracked. `PUBLISH_UNTRACKED` is in place of `PUBLISH`; see
    /// `recorder`.
    EXIT_UNTRACKED = UNTRACKED("exitUntracked", "(J)V");
    /// Behind a call that redefines classes.
    CODE_CHANGED = UNTRACKED("onCodeChanged", "(JI)V");
    PUBLISH_UNTRACKED = UNTRACKED("publishUntracked", "(JI)V");
    RESTORE = FRAMES("restore", "(J)V");
    PUBLISH = FRAMES("publishSite", "(JI)V");
    /// For methods that do not keep their slot's address.
    PUBLISH_HERE = FRAMES("publishSite", "(I)V");
    /// In code that runs rarely.
    PUBLISH_RARE = FRAMES("publishRareSite", "(JI)V");
    PUBLISH_RARE_HERE = FRAMES("publishRareSite", "(I)V");
    ALLOC_HERE = ALLOCATIONS("countNew", "(I)V");
    PUBLISH_SWITCHING = FRAMES("publishSwitching", "(JI)V");
    TO_CARRIER = FRAMES("toCarrier", "()J");
    TO_VIRTUAL = FRAMES("toVirtual", "(J)V");
    /// In stubs of `java.lang.foreign`: around the call of a C function, and in methods that C code calls.
    DOWNCALL = FOREIGN("downcall", "(J)V");
    AFTER_DOWNCALL = FOREIGN("afterDowncall", "(JI)V");
    UNWIND_DOWNCALL = FOREIGN("unwindDowncall", "(J)V");
    ENTER_UPCALL = FOREIGN("enterUpcall", "()J");
    RESTORE_UPCALL = FOREIGN("restoreUpcall", "(J)V");
    EXIT_UPCALL = FOREIGN("exitUpcall", "(J)V");
    ENTER_PINNED = FRAMES("enterPinned", "()J");
    EXIT_PINNED = FRAMES("exitPinned", "(J)V");
    PUBLISH_NATIVE = FRAMES("publishNative", "(JII)V");
    ALLOC = ALLOCATIONS("countNew", "(JI)V");
    /// In loops.
    ALLOC_KEEPING = ALLOCATIONS("countNew", "(JIJ)J");
    ARRAYS = ALLOCATIONS("countArrays", "(Ljava/lang/Object;JI)V");
    NEW_BYTES_FOR = ALLOCATIONS("newBytesFor", "(I)[B");
    CURRENT = CONTEXTS("current", "(JI)J");
    EVENT = PROGRAM_EVENTS("event", "(Ljava/lang/String;JJI)V");
    ENTER_COUNTED = CALLS("enterCounted", "(I)J");
    ENTER_FIRST_COUNTED = CALLS("enterFirstCounted", "(I)J");
    ENTER_THREAD_COUNTED = CALLS("enterThreadCounted", "(I)J");
    ENTER_PREMAIN_COUNTED = CALLS("enterPremainCounted", "(I)J");
    ENTER_VM_COUNTED = CALLS("enterVmCounted", "(I)J");
    BEGIN_SCOPE = TASKS("beginScope", "(JJI)V");
    END_SCOPE = TASKS("endScope", "(JI)V");
    /// In classes of Kotlin's continuations: see `continuations`.
    CREATE_CONTINUATION = TASKS("createContinuation", "(JI)J");
    BEFORE_RESTRICTED = TASKS("beforeRestricted", "(JI)V");
    BEFORE_RESUME = TASKS("beforeResume", "(JJI)V");
    /// In classes of operators of Reactor and RxJava: see `assembly`.
    CREATE_OPERATOR = TASKS("createOperator", "(JI)J");
    BEFORE_SIGNAL = TASKS("beforeSignal", "(JJI)V");
    /// At the ends of a method that has run a task.
    END_TASK = TASKS("endTask", "(J)V");
    /// At the entry of a method that receives requests, without and with its first parameter; and at its ends.
    BEGIN_REQUEST = REQUESTS("beginRequest", "(JI)V");
    BEGIN_REQUEST_OF = REQUESTS("beginRequest", "(Ljava/lang/Object;JI)V");
    END_REQUEST = REQUESTS("endRequest", "(J)V");
    /// If the VM may have called the method.
    END_REQUEST_FROM_VM = REQUESTS("endRequestFromVm", "(J)V");
    /// Behind the acquisition of a lock, and before its release.
    ACQUIRE_LOCK = LOCKS("acquireLock", "(Ljava/lang/Object;JI)V");
    RELEASE_LOCK = LOCKS("releaseLock", "(Ljava/lang/Object;JI)V");
    /// Behind a change of the thread that owns a lock of `java.util.concurrent`.
    CHANGE_OWNER = LOCKS("changeOwner", "(Ljava/lang/Object;JI)V");
    /// At the entry of a method whose time is recorded; at its ends, by a return and by an exception.
    BEGIN_TIME = TIMES("beginTime", "(JI)V");
    END_TIME = TIMES("endTime", "(J)V");
    END_TIME_THROWN = TIMES("endTimeThrown", "(J)V");
    /// If the VM may have called the method.
    END_TIME_FROM_VM = TIMES("endTimeFromVm", "(J)V");
    END_TIME_THROWN_FROM_VM = TIMES("endTimeThrownFromVm", "(J)V");
    /// For an object made by a native method, or by the compiler's replacement of it.
    COUNT_OBJECT = OBJECTS("countObject", "(Ljava/lang/Object;JI)V");
    /// For an object made by the compilers' own code, which may remove it.
    COUNT_CREATED = OBJECTS("countCreated", "(Ljava/lang/Object;JI)V");
    /// For methods that do not keep their slot's address.
    COUNT_CREATED_HERE = OBJECTS("countCreated", "(Ljava/lang/Object;I)V");
    /// For an array together with all arrays that it holds.
    COUNT_OBJECTS = OBJECTS("countObjects", "(Ljava/lang/Object;JI)V");
    COUNT_TEXTS = OBJECTS("countTexts", "(Ljava/lang/Object;JI)V");
    /// In `Array.newInstance`.
    COUNT_REFLECTED = OBJECTS("countReflected", "(Ljava/lang/Object;JI)V");
    COUNT_REFLECTED_HERE = OBJECTS("countReflected", "(Ljava/lang/Object;I)V");
    /// In `Throwable.fillInStackTrace`.
    COUNT_TRACE = TRACES("countTrace", "(Ljava/lang/Object;JI)V");
    /// In constructors of `Throwable`.
    KEEP_MESSAGE = TRACES("keepMessage", "(Ljava/lang/Object;JI)V");
    /// Before and behind a call of `clone` that may reach `Object.clone`.
    BEFORE_CLONE = OBJECTS("beforeClone", "(Ljava/lang/Object;JI)V");
    AFTER_CLONE = OBJECTS("afterClone", "(Ljava/lang/Object;JI)V");
    /// In code that traces omit: behind a `new`, and behind a call of one of `INTRINSICS`.
    UNSEEN_NEW = OBJECTS("countUnseenNew", "(Ljava/lang/Class;J)V");
    UNSEEN_COPY = OBJECTS("countUnseenCopy", "(Ljava/lang/Object;JI)V");
}

helpers! {
    NAMED_IN_LAB:
    /// Entry hooks that look up the context.
    ENTER_AT = LAB("enter", "(I)J");
    ENTER_VM_AT = LAB("enterVm", "(I)J");
    /// Only if calls are recorded.
    EXIT = LAB("exit", "(J)V");
    UNWIND_VM = LAB("unwindVm", "(J)V");
}

/// In place of a site, in code that traces omit: use the site that the caller has published.
pub const UNSEEN: i32 = -1;

/// Of `Unsafe.defineAnonymousClass`.
pub const DEFINE_ANONYMOUS_CLASS: &str =
    "(Ljava/lang/Class;[B[Ljava/lang/Object;)Ljava/lang/Class;";
pub const DEFINE_CLASS_0: &str = "(Ljava/lang/ClassLoader;Ljava/lang/Class;Ljava/lang/String;[BIILjava/security/ProtectionDomain;ZILjava/lang/Object;)Ljava/lang/Class;";
/// The class that replaces the callee of earlier hooks, and the names of its methods.
///
/// The name depends on the hook: `noop` returns nothing, `enterNoop` returns a slot's address, and `askVm` replaces a call
/// of the program.
pub const NOOP: &str = "java/lang/LucceRtNoop";
pub const NOOP_PLAIN: &str = "noop";
pub const NOOP_ENTER: &str = "enterNoop";
pub const NOOP_ASK: &str = "askVm";
/// Helpers that replace a call of the program; for them the VM finds the caller. Includes their disabled form.
pub const ASKING: [&str; 4] = [NOOP_ASK, "current", "event", "park"];
/// Replaces the call that asks Java agents.
pub const REDIRECT_ASKING: CodeInsertion = CodeInsertion::Redirect {
    helper: helper_of(CLASSES, "transform", TRANSFORM),
};
pub const TRANSFORM: &str = "(Ljava/lang/Object;Ljava/lang/Module;Ljava/lang/ClassLoader;Ljava/lang/String;Ljava/lang/Class;Ljava/security/ProtectionDomain;[B)[B";
/// Replaces the call that hides frames: the VM continues to report events to agents.
pub const REDIRECT_HIDING: CodeInsertion = CodeInsertion::Redirect {
    helper: helper_of(FRAMES, "hideFrames", "(Ljava/lang/Object;Z)V"),
};
/// Replaces the call that defines a hidden class.
const REDIRECT_DEFINITION: CodeInsertion = CodeInsertion::Redirect {
    helper: helper_of(CLASSES, "defineClass0", DEFINE_CLASS_0),
};
/// The same for a class that is anonymous for the VM (JDK 11).
const REDIRECT_ANONYMOUS: CodeInsertion = CodeInsertion::Redirect {
    helper: helper_of(
        CLASSES,
        "defineAnonymousClass",
        "(Ljdk/internal/misc/Unsafe;Ljava/lang/Class;[B[Ljava/lang/Object;)Ljava/lang/Class;",
    ),
};

/// How the JDK defines a class that the VM does not report, and that traces omit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClassDefinitionCall {
    /// `ClassLoader.defineClass0`: a hidden class.
    Hidden,
    /// `Unsafe.defineAnonymousClass` of JDK 11: a class that is anonymous for the VM.
    Anonymous,
}

/// Returns what replaces a call that defines a class which the VM does not report.
pub const fn redirect_definition(call: ClassDefinitionCall) -> CodeInsertion<'static> {
    match call {
        ClassDefinitionCall::Hidden => REDIRECT_DEFINITION,
        ClassDefinitionCall::Anonymous => REDIRECT_ANONYMOUS,
    }
}

/// A helper for allocations.
pub const fn allocation(name: &'static str, descriptor: &'static str) -> HelperMethod<'static> {
    helper_of(ALLOCATIONS, name, descriptor)
}

/// A helper for contexts that continue elsewhere.
pub const fn task(name: &'static str, descriptor: &'static str) -> HelperMethod<'static> {
    helper_of(TASKS, name, descriptor)
}

/// A method of the given helper class.
pub const fn helper_of(
    class: &'static str,
    name: &'static str,
    descriptor: &'static str,
) -> HelperMethod<'static> {
    HelperMethod {
        class,
        name,
        descriptor,
    }
}

/// Returns the helpers that this file defines; `kinds::kind_helpers` returns those that kinds define.
pub fn all_helpers() -> impl Iterator<Item = HelperMethod<'static>> {
    let arrays = ARRAYS_OF.iter();
    let arrays = arrays.flat_map(|of| [false, true].map(|here| array_helper(of, here)));
    let redirects = [
        REDIRECT_ASKING,
        REDIRECT_HIDING,
        REDIRECT_DEFINITION,
        REDIRECT_ANONYMOUS,
    ];
    let redirects = redirects.into_iter().filter_map(|insert| match insert {
        CodeInsertion::Redirect { helper } => Some(helper),
        _ => None,
    });
    let keeping = ARRAYS_OF.iter().map(|of| keeping_array_helper(of));
    NAMED
        .iter()
        .copied()
        .chain(arrays)
        .chain(keeping)
        .chain(redirects)
}

/// Returns the helpers that only the lab's agent has.
pub fn lab_helpers() -> impl Iterator<Item = HelperMethod<'static>> {
    NAMED_IN_LAB.iter().copied()
}

/// Array types that have their own helper.
pub const ARRAYS_OF: [&str; 9] = [
    "[B",
    "[Z",
    "[S",
    "[C",
    "[I",
    "[F",
    "[J",
    "[D",
    "[Ljava/lang/Object;",
];

/// Returns the helper that computes the size of such an array. `here`: the method does not keep its slot's address.
pub fn array_helper(descriptor: &str, here: bool) -> HelperMethod<'static> {
    let (kept, without) = match descriptor {
        "[B" => ("([BJI)V", "([BI)V"),
        "[Z" => ("([ZJI)V", "([ZI)V"),
        "[S" => ("([SJI)V", "([SI)V"),
        "[C" => ("([CJI)V", "([CI)V"),
        "[I" => ("([IJI)V", "([II)V"),
        "[F" => ("([FJI)V", "([FI)V"),
        "[J" => ("([JJI)V", "([JI)V"),
        "[D" => ("([DJI)V", "([DI)V"),
        _ => ("([Ljava/lang/Object;JI)V", "([Ljava/lang/Object;I)V"),
    };
    allocation("countArray", if here { without } else { kept })
}

/// Returns the helper that counts such an array in a loop.
pub fn keeping_array_helper(descriptor: &str) -> HelperMethod<'static> {
    let keeping = match descriptor {
        "[B" => "([BJIJ)J",
        "[Z" => "([ZJIJ)J",
        "[S" => "([SJIJ)J",
        "[C" => "([CJIJ)J",
        "[I" => "([IJIJ)J",
        "[F" => "([FJIJ)J",
        "[J" => "([JJIJ)J",
        "[D" => "([DJIJ)J",
        _ => "([Ljava/lang/Object;JIJ)J",
    };
    allocation("countArray", keeping)
}

/// Fields added to `java.lang.Thread`; the stub that helper classes are compiled against explains them. Public and synthetic.
const THREAD_FIELDS: [&str; 5] = [
    "$lucceStack",
    "$lucceCounters",
    "$lucceState",
    "$lucceOrigin",
    "$lucceTags",
];
/// Further field of `java.lang.Thread` for the lab's recordings of calls. In a thread that has not begun: which part of the
/// recording it continues.
const RECORDING_FIELD: &str = "$lucceRecording";

/// Returns the fields that frames need in this class of the JDK. `recorded`: calls are recorded.
pub fn new_fields(class: &str, recorded: bool) -> Vec<NewField<'static>> {
    if class != "java/lang/Thread" {
        return Vec::new();
    }
    let lab = recorded.then_some(RECORDING_FIELD);
    let names = THREAD_FIELDS.into_iter().chain(lab);
    names.map(public_field).collect()
}

pub const fn public_field(name: &'static str) -> NewField<'static> {
    const PUBLIC_SYNTHETIC: u16 = 0x1001;
    NewField {
        name,
        descriptor: "J",
        access: PUBLIC_SYNTHETIC,
    }
}

#[cfg(test)]
mod helpers_tests {
    use super::*;

    #[test]
    fn each_array_type_has_its_helper() {
        assert_eq!(array_helper("[J", false).descriptor, "([JJI)V");
        assert_eq!(
            array_helper("[[J", false).descriptor,
            "([Ljava/lang/Object;JI)V"
        );
        assert_eq!(
            array_helper("[Ljava/lang/String;", false).descriptor,
            "([Ljava/lang/Object;JI)V"
        );
        for descriptor in ["[B", "[Z", "[S", "[C", "[I", "[F", "[J", "[D", "[[I"] {
            let [kept, here] = [false, true].map(|here| array_helper(descriptor, here));
            assert_eq!(kept.descriptor.replace("JI)", "I)"), here.descriptor);
        }
    }
}
