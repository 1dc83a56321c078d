//! Names and descriptors of the helper methods that hooks call.
//!
//! They must match `LucceRt.java`, `LucceRtEvents.java` and `LucceRtTasks.java`.

use lucce_bytecode::{CodeInsertion, HelperMethod, NewField};

/// Prefix of the names of all helper classes, and the name of the helper class for frames.
pub const RT: &str = "java/lang/LucceRt";
pub const RT_EVENTS: &str = "java/lang/LucceRtEvents";
pub const RT_TASKS: &str = "java/lang/LucceRtTasks";
/// Prefix of the helpers that classes inherit from `java.lang.Object`; no compiler makes such names.
pub const INHERITED: &str = "$lucce$";

/// Defines a constant for each helper, and the list of all.
macro_rules! helpers {
    ($($(#[$about:meta])* $name:ident = $of:ident($method:literal, $descriptor:literal);)*) => {
        $($(#[$about])* pub const $name: HelperMethod = $of($method, $descriptor);)*

        const NAMED: &[HelperMethod<'static>] = &[$($name),*];
    };
}

helpers! {
    ENTER = helper("enter", "()J");
    /// Entry hook that looks up the context.
    ENTER_AT = helper("enter", "(I)J");
    ENTER_FIRST = helper("enterFirst", "()J");
    ENTER_THREAD = helper("enterThread", "()J");
    ENTER_PREMAIN = helper("enterPremain", "()J");
    ENTER_VM = helper("enterVm", "(I)J");
    EXIT_VM = helper("exitVm", "(J)V");
    /// In place of `EXIT_VM`: the caller's further calls may be untracked. `PUB_UNSAID` is in place of `PUB`; see
    /// `recorder`.
    EXIT_UNSAID = helper("exitUnsaid", "(J)V");
    /// Behind a call that redefines classes.
    CHANGED = helper("changed", "(JI)V");
    PUB_UNSAID = helper("pubUnsaid", "(JI)V");
    RESTORE = helper("restore", "(J)V");
    /// Only if calls are recorded.
    EXIT = helper("exit", "(J)V");
    UNWIND_VM = helper("unwindVm", "(J)V");
    PUB = helper("pub", "(JI)V");
    /// For methods that do not keep their slot's address.
    PUB_HERE = helper("pub", "(I)V");
    ALLOC_HERE = event("alloc", "(I)V");
    PUB_SWITCHING = helper("pubSwitching", "(JI)V");
    TO_CARRIER = helper("toCarrier", "()J");
    TO_VIRTUAL = helper("toVirtual", "(J)V");
    /// In stubs of `java.lang.foreign`: around the call of a C function, and in methods that C code calls.
    DOWNCALL = helper("downcall", "(J)V");
    DOWNCALLED = helper("downcalled", "(JI)V");
    UNWIND_DOWNCALL = helper("unwindDowncall", "(J)V");
    ENTER_UPCALL = helper("enterUpcall", "()J");
    RESTORE_UPCALL = helper("restoreUpcall", "(J)V");
    EXIT_UPCALL = helper("exitUpcall", "(J)V");
    ENTER_PINNED = helper("enterPinned", "()J");
    EXIT_PINNED = helper("exitPinned", "(J)V");
    PUB_NATIVE = helper("pubNative", "(JII)V");
    ALLOC = event("alloc", "(JI)V");
    ARRAYS = event("arrays", "(Ljava/lang/Object;JI)V");
    NEW_BYTES_FOR = event("newBytesFor", "(I)[B");
    CURRENT = helper("current", "(JI)J");
    EVENT = event("event", "(Ljava/lang/String;JJI)V");
    CALLED = event("called", "(I)J");
    CALLED_FIRST = event("calledFirst", "(I)J");
    CALLED_THREAD = event("calledThread", "(I)J");
    CALLED_PREMAIN = event("calledPremain", "(I)J");
    CALLED_VM = event("calledVm", "(I)J");
    SCOPE = task("scope", "(JJI)V");
    SCOPE_END = task("scopeEnd", "(JI)V");
    /// For an object made by a native method, or by the compiler's replacement of it.
    MADE = event("made", "(Ljava/lang/Object;JI)V");
    /// For methods that do not keep their slot's address.
    MADE_HERE = event("made", "(Ljava/lang/Object;I)V");
    /// For an array together with all arrays that it holds.
    MADE_ALL = event("madeAll", "(Ljava/lang/Object;JI)V");
    MADE_TEXTS = event("madeTexts", "(Ljava/lang/Object;JI)V");
    /// In `Array.newInstance`.
    REFLECTED = event("reflected", "(Ljava/lang/Object;JI)V");
    REFLECTED_HERE = event("reflected", "(Ljava/lang/Object;I)V");
    /// In `Throwable.fillInStackTrace`.
    TRACED = event("traced", "(Ljava/lang/Object;JI)V");
    /// In constructors of `Throwable`.
    DESCRIBES = event("describes", "(Ljava/lang/Object;JI)V");
    /// Before and behind a call of `clone` that may reach `Object.clone`.
    CLONES = event("clones", "(Ljava/lang/Object;JI)V");
    CLONED = event("cloned", "(Ljava/lang/Object;JI)V");
    /// In code that traces omit: behind a `new`, and behind a call of one of `INTRINSICS`.
    UNSEEN_NEW = event("unseenNew", "(Ljava/lang/Class;J)V");
    UNSEEN_COPY = event("unseenCopy", "(Ljava/lang/Object;JI)V");
}

/// In place of a site, in code that traces omit: use the site that the caller has published.
pub const UNSEEN: i32 = -1;

pub const DEFINE_CLASS_0: &str = "(Ljava/lang/ClassLoader;Ljava/lang/Class;Ljava/lang/String;[BIILjava/security/ProtectionDomain;ZILjava/lang/Object;)Ljava/lang/Class;";
/// The class that replaces the callee of earlier hooks, and the names of its methods.
///
/// The name depends on the hook: `was` returns nothing, `entered` returns a slot's address, and `asked` replaces a call
/// of the program.
pub const WAS: &str = "java/lang/LucceRtWas";
pub const WAS_SAID: &str = "was";
pub const WAS_ENTERED: &str = "entered";
pub const WAS_ASKED: &str = "asked";
/// Helpers that replace a call of the program; for them the VM finds the caller. Includes their disabled form.
pub const ASKING: [&str; 4] = [WAS_ASKED, "current", "event", "park"];
/// Replaces the call that asks Java agents.
pub const REDIRECT_ASKING: CodeInsertion = CodeInsertion::Redirect {
    helper: helper("transform", TRANSFORM),
};
pub const TRANSFORM: &str = "(Ljava/lang/Object;Ljava/lang/Module;Ljava/lang/ClassLoader;Ljava/lang/String;Ljava/lang/Class;Ljava/security/ProtectionDomain;[B)[B";
/// Replaces the call that hides frames: the VM continues to report events to agents.
pub const REDIRECT_HIDING: CodeInsertion = CodeInsertion::Redirect {
    helper: helper("hides", "(Ljava/lang/Object;Z)V"),
};
/// Replaces the call that defines a hidden class.
pub const REDIRECT_DEFINITION: CodeInsertion = CodeInsertion::Redirect {
    helper: helper("defineClass0", DEFINE_CLASS_0),
};

const fn helper(name: &'static str, descriptor: &'static str) -> HelperMethod<'static> {
    helper_of(RT, name, descriptor)
}

pub const fn event(name: &'static str, descriptor: &'static str) -> HelperMethod<'static> {
    helper_of(RT_EVENTS, name, descriptor)
}

pub const fn task(name: &'static str, descriptor: &'static str) -> HelperMethod<'static> {
    helper_of(RT_TASKS, name, descriptor)
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
    let redirects = [REDIRECT_ASKING, REDIRECT_HIDING, REDIRECT_DEFINITION];
    let redirects = redirects.into_iter().filter_map(|insert| match insert {
        CodeInsertion::Redirect { helper } => Some(helper),
        _ => None,
    });
    NAMED.iter().copied().chain(arrays).chain(redirects)
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
    event("array", if here { without } else { kept })
}

/// Fields added to `java.lang.Thread`; the helper class explains them. Public and synthetic.
const THREAD_FIELDS: [&str; 5] = ["$fp", "$ev", "$ts", "$rc", "$cx"];
/// Returns the fields that frames need in this class of the JDK.
pub fn new_fields(class: &str) -> Vec<NewField<'static>> {
    match class {
        "java/lang/Thread" => THREAD_FIELDS.map(public_field).to_vec(),
        _ => Vec::new(),
    }
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
