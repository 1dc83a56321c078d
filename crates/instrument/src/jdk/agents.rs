//! Where the JDK asks Java agents (`-javaagent`) what they make of a class: the same in JDK 17 to 25, looked up in
//! `sun.instrument`.

use lucce_bytecode::MethodCall;

/// The class is loaded when there are Java agents.
pub const IMPLEMENTATION: &str = "sun/instrument/InstrumentationImpl";

/// By which the VM has the first Java agent run, and each that follows. One that stands before this agent on the command
/// line runs before the VM has told this agent that it is initialised.
pub const RUNS: &str = "loadClassAndCallPremain";

/// Whether this method runs a Java agent at the VM's start.
pub fn runs_agent(class: &str, method: &str) -> bool {
    (class, method) == (IMPLEMENTATION, RUNS)
}

/// Whether this call, in a class with this name, asks the Java agents.
pub fn asks_agents(class: &str, call: &MethodCall<'_>) -> bool {
    class == IMPLEMENTATION
        && call.owner == "sun/instrument/TransformerManager"
        && call.name == "transform"
}
