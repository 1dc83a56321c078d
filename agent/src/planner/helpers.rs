//! The methods of the helper classes that hooks call: what `LucceRt.java`, `LucceRtEvents.java` and `LucceRtTasks.java`
//! promise the planner.

use lucce_bytecode::{Helper, Insert, NewField};

/// What the names of all helper classes begin with, and the one for frames.
pub const RT: &str = "java/lang/LucceRt";
const RT_EVENTS: &str = "java/lang/LucceRtEvents";
const RT_TASKS: &str = "java/lang/LucceRtTasks";
/// The classes that hooks call.
pub const CALLED_BY_HOOKS: [&str; 3] = [RT, RT_EVENTS, RT_TASKS];

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
pub const ALLOC_HERE: Helper = event("alloc", "(I)V");
pub const PUB_SWITCHING: Helper = helper("pubSwitching", "(JI)V");
pub const TO_CARRIER: Helper = helper("toCarrier", "()J");
pub const TO_VIRTUAL: Helper = helper("toVirtual", "(J)V");
pub const ENTER_PINNED: Helper = helper("enterPinned", "()J");
pub const EXIT_PINNED: Helper = helper("exitPinned", "(J)V");
pub const PUB_NATIVE: Helper = helper("pubNative", "(JII)V");
pub const ALLOC: Helper = event("alloc", "(JI)V");
pub const ARRAYS: Helper = event("arrays", "(Ljava/lang/Object;JI)V");
pub const NEW_BYTES_FOR: Helper = event("newBytesFor", "(I)[B");
pub const CURRENT: Helper = helper("current", "(JI)J");
pub const EVENT: Helper = event("event", "(Ljava/lang/String;JJI)V");
pub const CALLED: Helper = event("called", "(I)J");
pub const CALLED_FIRST: Helper = event("calledFirst", "(I)J");
pub const CALLED_THREAD: Helper = event("calledThread", "(I)J");
pub const CALLED_VM: Helper = event("calledVm", "(I)J");
pub const STARTS: Helper = task("starts", "(Ljava/lang/Thread;JI)V");
/// In classes out of scope.
pub const STARTS_OUTSIDE: Helper = task("startsOutside", "(Ljava/lang/Thread;JI)V");
pub const SUBMITTED: Helper = task("submitted", "(Ljava/lang/Object;JI)V");
pub const REJECTED: Helper = task("rejected", "(Ljava/lang/Object;JI)V");
pub const RUNS: Helper = task("runs", "(Ljava/lang/Object;JI)V");
pub const RAN: Helper = task("ran", "(JI)V");
pub const SCHEDULES: Helper = task("schedules", "(JI)V");
pub const SCOPE: Helper = task("scope", "(JJI)V");
pub const SCOPE_END: Helper = task("scopeEnd", "(JI)V");
/// What a native method has made, and the compiler may make in its place.
pub const MADE: Helper = event("made", "(Ljava/lang/Object;JI)V");
/// In a method that does not keep where its slot is.
pub const MADE_HERE: Helper = event("made", "(Ljava/lang/Object;I)V");
/// An array with all that it holds.
pub const MADE_ALL: Helper = event("madeAll", "(Ljava/lang/Object;JI)V");
pub const MADE_TEXTS: Helper = event("madeTexts", "(Ljava/lang/Object;JI)V");
/// In `Array.newInstance`.
pub const REFLECTED: Helper = event("reflected", "(Ljava/lang/Object;JI)V");
pub const REFLECTED_HERE: Helper = event("reflected", "(Ljava/lang/Object;I)V");
/// In `Throwable.fillInStackTrace`.
pub const TRACED: Helper = event("traced", "(Ljava/lang/Object;JI)V");
/// In constructors of `Throwable`.
pub const DESCRIBES: Helper = event("describes", "(Ljava/lang/Object;JI)V");
/// Around a call of `clone` that may be one of `Object.clone`.
pub const CLONES: Helper = event("clones", "(Ljava/lang/Object;JI)V");
pub const CLONED: Helper = event("cloned", "(Ljava/lang/Object;JI)V");
/// In code that traces do not show: behind a `new`, and behind a call of one of `INTRINSICS`.
pub const UNSEEN_NEW: Helper = event("unseenNew", "(Ljava/lang/Class;J)V");
pub const UNSEEN_COPY: Helper = event("unseenCopy", "(Ljava/lang/Object;JI)V");
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

const fn helper(name: &'static str, descriptor: &'static str) -> Helper<'static> {
    of(RT, name, descriptor)
}

pub const fn event(name: &'static str, descriptor: &'static str) -> Helper<'static> {
    of(RT_EVENTS, name, descriptor)
}

const fn task(name: &'static str, descriptor: &'static str) -> Helper<'static> {
    of(RT_TASKS, name, descriptor)
}

const fn of(class: &'static str, name: &'static str, descriptor: &'static str) -> Helper<'static> {
    Helper {
        class,
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
    event("array", if here { without } else { kept })
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
