//! Flight Recorder changes classes when it starts, after their hooks have been inserted: it puts code of its own into
//! methods that read and write files and sockets (JDK 17 and 21), and makes the bodies of methods of event classes, and
//! new methods of them. Nothing is said before calls in that code, so what it calls must not rely on it:
//!
//! - what is asked before an event (`isEnabled`, `timestamp`, `duration`) calls nothing that has hooks, see
//!   `leaves`: it has none itself and leaves the pointer where it is;
//! - what writes an event asks the VM who calls it ([`CALLED`]);
//! - behind `shouldCommit` the code makes texts of paths and addresses, by `StringBuilder` and others that
//!   cannot ask the VM: from there on the frame's callees have no number ([`may_call_untracked`]).
//!
//! A method that was made gets into the book when it is first seen on a stack (`known::add_method` in the agent).

/// Class and method, as in `vm_calls`: what that code calls, and has hooks.
pub const CALLED: [(&str, &str); 6] = [
    ("jdk/jfr/internal/event/EventConfiguration", "*"),
    ("jdk/jfr/internal/event/EventWriter", "*"),
    ("jdk/jfr/FlightRecorder", "register"),
    ("jdk/jfr/events/*", "commit"),
    // JDK 17.
    ("jdk/jfr/internal/handlers/EventHandler*", "*"),
    ("jdk/jfr/internal/EventWriter", "*"),
];

/// Whether the caller may go on without saying so before its calls.
pub fn may_call_untracked(class: &str, method: &str) -> bool {
    let asks = class == "jdk/jfr/internal/event/EventConfiguration"
        || class.starts_with("jdk/jfr/internal/handlers/EventHandler");
    asks && matches!(method, "shouldCommit" | "shouldThrottleCommit")
}

/// A native method that gives classes other code, that of Java agents as well.
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

/// A native method that has the VM call `ArrayList.add` again and again.
pub fn calls_back_repeatedly(class: &str, method: &str) -> bool {
    (class, method) == ("jdk/jfr/internal/JVM", "getAllEventClasses")
}
