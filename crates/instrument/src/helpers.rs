//! The methods of the helper classes that hooks call: what `LucceRt.java`, `LucceRtEvents.java` and `LucceRtTasks.java`
//! promise the planner.

use lucce_bytecode::{CodeInsertion, HelperMethod, NewField};

/// What the names of all helper classes begin with, and the one for frames.
pub const RT: &str = "java/lang/LucceRt";
pub const RT_EVENTS: &str = "java/lang/LucceRtEvents";
pub const RT_TASKS: &str = "java/lang/LucceRtTasks";
/// What the names of the helpers begin with that a class inherits; no compiler makes such names.
pub const INHERITED: &str = "$lucce$";

/// Defines constants, and the list of them.
macro_rules! helpers {
    ($($(#[$about:meta])* $name:ident = $of:ident($method:literal, $descriptor:literal);)*) => {
        $($(#[$about])* pub const $name: HelperMethod = $of($method, $descriptor);)*

        const NAMED: &[HelperMethod<'static>] = &[$($name),*];
    };
}

helpers! {
    ENTER = helper("enter", "()J");
    /// Where contexts are looked up at entry.
    ENTER_AT = helper("enter", "(I)J");
    ENTER_FIRST = helper("enterFirst", "()J");
    ENTER_THREAD = helper("enterThread", "()J");
    ENTER_PREMAIN = helper("enterPremain", "()J");
    ENTER_VM = helper("enterVm", "(I)J");
    EXIT_VM = helper("exitVm", "(J)V");
    /// In place of `EXIT_VM`, and of `PUB`: see `recorder`.
    EXIT_UNSAID = helper("exitUnsaid", "(J)V");
    /// After a call that gives classes other code.
    CHANGED = helper("changed", "(JI)V");
    PUB_UNSAID = helper("pubUnsaid", "(JI)V");
    RESTORE = helper("restore", "(J)V");
    /// Only where calls are recorded.
    EXIT = helper("exit", "(J)V");
    UNWIND_VM = helper("unwindVm", "(J)V");
    PUB = helper("pub", "(JI)V");
    /// In a method that does not keep where its slot is.
    PUB_HERE = helper("pub", "(I)V");
    ALLOC_HERE = event("alloc", "(I)V");
    PUB_SWITCHING = helper("pubSwitching", "(JI)V");
    TO_CARRIER = helper("toCarrier", "()J");
    TO_VIRTUAL = helper("toVirtual", "(J)V");
    /// In stubs of `java.lang.foreign`: around the call of a C function, and where C code calls.
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
    /// What a native method has made, and the compiler may make in its place.
    MADE = event("made", "(Ljava/lang/Object;JI)V");
    /// In a method that does not keep where its slot is.
    MADE_HERE = event("made", "(Ljava/lang/Object;I)V");
    /// An array with all that it holds.
    MADE_ALL = event("madeAll", "(Ljava/lang/Object;JI)V");
    MADE_TEXTS = event("madeTexts", "(Ljava/lang/Object;JI)V");
    /// In `Array.newInstance`.
    REFLECTED = event("reflected", "(Ljava/lang/Object;JI)V");
    REFLECTED_HERE = event("reflected", "(Ljava/lang/Object;I)V");
    /// In `Throwable.fillInStackTrace`.
    TRACED = event("traced", "(Ljava/lang/Object;JI)V");
    /// In constructors of `Throwable`.
    DESCRIBES = event("describes", "(Ljava/lang/Object;JI)V");
    /// Around a call of `clone` that may be one of `Object.clone`.
    CLONES = event("clones", "(Ljava/lang/Object;JI)V");
    CLONED = event("cloned", "(Ljava/lang/Object;JI)V");
    /// In code that traces do not show: behind a `new`, and behind a call of one of `INTRINSICS`.
    UNSEEN_NEW = event("unseenNew", "(Ljava/lang/Class;J)V");
    UNSEEN_COPY = event("unseenCopy", "(Ljava/lang/Object;JI)V");
}

/// In place of a site, in such code: the one that the caller has published.
pub const UNSEEN: i32 = -1;

pub const DEFINE_CLASS_0: &str = "(Ljava/lang/ClassLoader;Ljava/lang/Class;Ljava/lang/String;[BIILjava/security/ProtectionDomain;ZILjava/lang/Object;)Ljava/lang/Class;";
/// In place of hooks of an earlier time: the class, and the name of its methods by whether they return where a slot is, or
/// stand in place of a call of the program.
pub const WAS: &str = "java/lang/LucceRtWas";
pub const WAS_SAID: &str = "was";
pub const WAS_ENTERED: &str = "entered";
pub const WAS_ASKED: &str = "asked";
/// What such hooks stand in place of a call with, also if they have been silenced before: the VM knows who calls.
pub const ASKING: [&str; 4] = [WAS_ASKED, "current", "event", "park"];
/// Java agents are asked.
pub const REDIRECT_ASKING: CodeInsertion = CodeInsertion::Redirect {
    helper: helper("transform", TRANSFORM),
};
pub const TRANSFORM: &str = "(Ljava/lang/Object;Ljava/lang/Module;Ljava/lang/ClassLoader;Ljava/lang/String;Ljava/lang/Class;Ljava/security/ProtectionDomain;[B)[B";
/// The VM goes on telling agents what happens.
pub const REDIRECT_HIDING: CodeInsertion = CodeInsertion::Redirect {
    helper: helper("hides", "(Ljava/lang/Object;Z)V"),
};
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

/// Of this helper class.
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

/// Those of this file; `kinds::kind_helpers` has those of kinds.
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

/// The types of arrays that have a helper of their own.
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

/// The helper that knows the size of such an array. `here`: in a method that does not keep where its slot is.
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

/// Fields of `java.lang.Thread`: see the helper class. Public, synthetic.
const THREAD_FIELDS: [&str; 5] = ["$fp", "$ev", "$ts", "$rc", "$cx"];
/// What is added to this class of the JDK for frames.
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
mod tests {
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
