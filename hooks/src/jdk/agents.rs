//! Where the JDK asks Java agents (`-javaagent`) what they make of a class: the same in JDK 17 to 25, looked up in
//! `sun.instrument`.

use lucce_bytecode::Call;

/// The class is loaded when there are Java agents.
pub const IMPLEMENTATION: &str = "sun/instrument/InstrumentationImpl";

/// Whether this call, in a class with this name, asks the Java agents.
pub fn asks(class: &str, call: &Call<'_>) -> bool {
    class == IMPLEMENTATION
        && call.owner == "sun/instrument/TransformerManager"
        && call.name == "transform"
}
