//! Where the JDK asks Java agents (`-javaagent`) to transform a class.
//!
//! The methods of `sun.instrument` are the same in JDK 11 to 25.

use lucce_bytecode::MethodCall;

/// The class is loaded if there are Java agents.
pub const IMPLEMENTATION: &str = "sun/instrument/InstrumentationImpl";

/// The method by which the VM starts each Java agent.
///
/// An agent that precedes lucce's agent on the command line runs before the VM reports its initialization.
pub const RUNS: &str = "loadClassAndCallPremain";

/// Whether this method starts a Java agent when the VM starts.
pub fn runs_agent(class: &str, method: &str) -> bool {
    (class, method) == (IMPLEMENTATION, RUNS)
}

/// Whether this call in the class asks Java agents to transform a class.
pub fn asks_agents(class: &str, call: &MethodCall<'_>) -> bool {
    class == IMPLEMENTATION
        && call.owner == "sun/instrument/TransformerManager"
        && call.name == "transform"
}
