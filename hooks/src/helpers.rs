//! The methods of the helper class that hooks call: what `LucceRt.java` promises the planner.

use lucce_bytecode::{Helper, Insert, NewField};

pub const RT: &str = "java/lang/LucceRt";

pub const ENTER: Helper = helper("enter", "()J");
/// Where contexts are looked up at entry.
pub const ENTER_AT: Helper = helper("enter", "(I)J");
pub const ENTER_FIRST: Helper = helper("enterFirst", "()J");
pub const ENTER_THREAD: Helper = helper("enterThread", "()J");
pub const ENTER_VM: Helper = helper("enterVm", "(I)J");
pub const EXIT_VM: Helper = helper("exitVm", "(J)V");
/// In place of `EXIT_VM`, and of `PUB`: see `recorder`.
pub const EXIT_UNSAID: Helper = helper("exitUnsaid", "(J)V");
/// After a call that gives classes other code.
pub const CHANGED: Helper = helper("changed", "(JI)V");
pub const PUB_UNSAID: Helper = helper("pubUnsaid", "(JI)V");
pub const RESTORE: Helper = helper("restore", "(J)V");
/// Only where calls are recorded.
pub const EXIT: Helper = helper("exit", "(J)V");
pub const UNWIND_VM: Helper = helper("unwindVm", "(J)V");
pub const PUB: Helper = helper("pub", "(JI)V");
/// In a method that does not keep where its slot is.
pub const PUB_HERE: Helper = helper("pub", "(I)V");
pub const ALLOC_HERE: Helper = helper("alloc", "(I)V");
pub const PUB_SWITCHING: Helper = helper("pubSwitching", "(JI)V");
pub const TO_CARRIER: Helper = helper("toCarrier", "()J");
pub const TO_VIRTUAL: Helper = helper("toVirtual", "(J)V");
pub const ENTER_PINNED: Helper = helper("enterPinned", "()J");
pub const EXIT_PINNED: Helper = helper("exitPinned", "(J)V");
pub const PUB_NATIVE: Helper = helper("pubNative", "(JII)V");
pub const ALLOC: Helper = helper("alloc", "(JI)V");
pub const ARRAYS: Helper = helper("arrays", "(Ljava/lang/Object;JI)V");
pub const NEW_BYTES_FOR: Helper = helper("newBytesFor", "(I)[B");
pub const CURRENT: Helper = helper("current", "(JI)J");
pub const EVENT: Helper = helper("event", "(Ljava/lang/String;JJI)V");
pub const CALLED: Helper = helper("called", "(I)J");
pub const CALLED_FIRST: Helper = helper("calledFirst", "(I)J");
pub const CALLED_THREAD: Helper = helper("calledThread", "(I)J");
pub const CALLED_VM: Helper = helper("calledVm", "(I)J");
pub const STARTS: Helper = helper("starts", "(Ljava/lang/Thread;JI)V");
/// In classes out of scope.
pub const STARTS_OUTSIDE: Helper = helper("startsOutside", "(Ljava/lang/Thread;JI)V");
pub const SUBMITTED: Helper = helper("submitted", "(Ljava/lang/Object;JI)V");
pub const REJECTED: Helper = helper("rejected", "(Ljava/lang/Object;JI)V");
pub const RUNS: Helper = helper("runs", "(Ljava/lang/Object;JI)V");
pub const RAN: Helper = helper("ran", "(JI)V");
pub const SCHEDULES: Helper = helper("schedules", "(JI)V");
pub const SCOPE: Helper = helper("scope", "(JJI)V");
pub const SCOPE_END: Helper = helper("scopeEnd", "(JI)V");
/// What a native method has made, and the compiler may make in its place.
pub const MADE: Helper = helper("made", "(Ljava/lang/Object;JI)V");
/// In a method that does not keep where its slot is.
pub const MADE_HERE: Helper = helper("made", "(Ljava/lang/Object;I)V");
/// An array with all that it holds.
pub const MADE_ALL: Helper = helper("madeAll", "(Ljava/lang/Object;JI)V");
pub const MADE_TEXTS: Helper = helper("madeTexts", "(Ljava/lang/Object;JI)V");
/// In `Array.newInstance`.
pub const REFLECTED: Helper = helper("reflected", "(Ljava/lang/Object;JI)V");
pub const REFLECTED_HERE: Helper = helper("reflected", "(Ljava/lang/Object;I)V");
/// In `Throwable.fillInStackTrace`.
pub const TRACED: Helper = helper("traced", "(Ljava/lang/Object;JI)V");
/// In constructors of `Throwable`.
pub const DESCRIBES: Helper = helper("describes", "(Ljava/lang/Object;JI)V");
/// Around a call of `clone` that may be one of `Object.clone`.
pub const CLONES: Helper = helper("clones", "(Ljava/lang/Object;JI)V");
pub const CLONED: Helper = helper("cloned", "(Ljava/lang/Object;JI)V");
/// In code that traces do not show: behind a `new`, and behind a call of one of `INTRINSICS`.
pub const UNSEEN_NEW: Helper = helper("unseenNew", "(Ljava/lang/Class;J)V");
pub const UNSEEN_COPY: Helper = helper("unseenCopy", "(Ljava/lang/Object;JI)V");
/// In place of a site, in such code: the one that the caller has published.
pub const UNSEEN: i32 = -1;

pub const DEFINE_CLASS_0: &str = "(Ljava/lang/ClassLoader;Ljava/lang/Class;Ljava/lang/String;[BIILjava/security/ProtectionDomain;ZILjava/lang/Object;)Ljava/lang/Class;";
/// In place of hooks of an earlier time: the class, and the name of its methods by whether they return where a slot is, or
/// stand in place of a call of the program.
pub const WAS: &str = "java/lang/LucceRt$Was";
pub const WAS_SAID: &str = "was";
pub const WAS_ENTERED: &str = "entered";
pub const WAS_ASKED: &str = "asked";
/// What such hooks stand in place of a call with, also if they have been silenced before: the VM knows who calls.
pub const ASKING: [&str; 4] = [WAS_ASKED, "current", "event", "park"];
/// Java agents are asked.
pub const REDIRECT_ASKING: Insert = Insert::Redirect {
    helper: helper("transform", TRANSFORM),
};
pub const TRANSFORM: &str = "(Ljava/lang/Object;Ljava/lang/Module;Ljava/lang/ClassLoader;Ljava/lang/String;Ljava/lang/Class;Ljava/security/ProtectionDomain;[B)[B";
/// The VM goes on telling agents what happens.
pub const REDIRECT_HIDING: Insert = Insert::Redirect {
    helper: helper("hides", "(Ljava/lang/Object;Z)V"),
};
pub const REDIRECT_DEFINITION: Insert = Insert::Redirect {
    helper: helper("defineClass0", DEFINE_CLASS_0),
};

pub const fn helper(name: &'static str, descriptor: &'static str) -> Helper<'static> {
    Helper {
        class: RT,
        name,
        descriptor,
    }
}

/// The helper that knows the size of such an array. `here`: in a method that does not keep where its slot is.
pub fn array_helper(descriptor: &str, here: bool) -> Helper<'static> {
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
    helper("array", if here { without } else { kept })
}

/// Fields of `java.lang.Thread`: see the helper class. Public, synthetic.
const THREAD_FIELDS: [&str; 5] = ["$fp", "$ev", "$ts", "$rc", "$cx"];
/// Of `java.lang.Class`, where allocations are counted.
const CLASS_FIELD: &str = "$lc";

/// What is added to this class of the JDK; `alloc`: allocations are counted.
pub fn new_fields(class: &str, alloc: bool) -> Vec<NewField<'static>> {
    const PUBLIC_SYNTHETIC: u16 = 0x1001;
    let field = |name| NewField {
        name,
        descriptor: "J",
        access: PUBLIC_SYNTHETIC,
    };
    match class {
        "java/lang/Thread" => THREAD_FIELDS.map(field).to_vec(),
        "java/lang/Class" if alloc => vec![field(CLASS_FIELD)],
        _ => Vec::new(),
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
