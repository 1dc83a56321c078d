//! The code that Flight Recorder inserts into classes when it starts.
//!
//! That happens after lucce's hooks were inserted. Flight Recorder adds code to methods that read and write files and
//! sockets (JDK 17 and 21). It also makes the bodies of methods of event classes, and adds methods to them. Calls in
//! that code publish no site, so its callees must not rely on one:
//!
//! - `isEnabled`, `timestamp` and `duration`, called before an event, call nothing that has hooks (see `leaf_methods`).
//!   They have no hooks themselves and leave `$lucceStack` unchanged.
//! - Methods that write an event ask the VM for their caller ([`CALLED`]).
//! - Behind `shouldCommit`, the code makes texts of paths and addresses, by `StringBuilder` and others that cannot ask
//!   the VM. From there on the frame's callees have no context ([`may_call_untracked`]).
//!
//! JDK 11 keeps a thread's event in a `ThreadLocal`. `ThreadLocal.get` has hooks, and asking the VM for each of its callers
//! would cost every program too much. There it restores `$lucceStack` ([`restores_pointer`]). The method that makes a
//! missing value asks the VM ([`makes_value`]). `get` reaches no other method that can ask for a context.
//!
//! A method that Flight Recorder adds enters the code registry when it is first seen on a stack.

/// Methods with hooks that this code calls: class and method, as in `vm_calls`.
pub const CALLED: [(&str, &str); 6] = [
    ("jdk/jfr/internal/event/EventConfiguration", "*"),
    ("jdk/jfr/internal/event/EventWriter", "*"),
    ("jdk/jfr/FlightRecorder", "register"),
    ("jdk/jfr/events/*", "commit"),
    // JDK 17.
    ("jdk/jfr/internal/handlers/EventHandler*", "*"),
    ("jdk/jfr/internal/EventWriter", "*"),
];

/// Whether the caller of this method may make its further calls without publishing their sites.
pub fn may_call_untracked(class: &str, method: &str) -> bool {
    let asks = class == "jdk/jfr/internal/event/EventConfiguration"
        || class.starts_with("jdk/jfr/internal/handlers/EventHandler");
    asks && matches!(method, "shouldCommit" | "shouldThrottleCommit")
}

/// The major version of JDK 11's own classes.
const CLASSES_OF_11: u16 = 55;
const THREAD_LOCAL: &str = "java/lang/ThreadLocal";

/// Whether the method takes a slot, and code that JDK 11 inserts calls it without a site. `major`: the version of its class
/// file.
pub fn restores_pointer(class: &str, method: &str, major: u16) -> bool {
    (class, method, major) == (THREAD_LOCAL, "get", CLASSES_OF_11)
}

/// Whether a method of [`restores_pointer`] calls this one, which then asks the VM for its callers.
pub fn makes_value(class: &str, method: &str, major: u16) -> bool {
    (class, method, major) == (THREAD_LOCAL, "setInitialValue", CLASSES_OF_11)
}

/// Whether this is a native method that redefines classes, for Java agents or Flight Recorder.
pub fn redefines_classes(class: &str, method: &str) -> bool {
    matches!(
        (class, method),
        ("jdk/jfr/internal/JVM", "retransformClasses")
            | (
                "sun/instrument/InstrumentationImpl",
                "retransformClasses0" | "redefineClasses0"
            )
    )
}

/// Whether this is a native method that makes the VM call `ArrayList.add` repeatedly.
pub fn calls_back_repeatedly(class: &str, method: &str) -> bool {
    (class, method) == ("jdk/jfr/internal/JVM", "getAllEventClasses")
}
