//! Which bit of the gate's word stands for which kind of events. The agent's build reads this file, too, and Java code has
//! constants of these names.

/// Defines constants, and the list of them.
macro_rules! bits {
    ($($(#[$about:meta])* $name:ident = $bit:literal;)*) => {
        $($(#[$about])* #[allow(dead_code, reason = "the agent's build needs the list alone")] pub const $name: u64 = 1 << $bit;)*

        /// Name and value of each.
        #[allow(dead_code, reason = "for the agent's build")]
        pub const ALL: &[(&str, u64)] = &[$((stringify!($name), $name)),*];
    };
}

bits! {
    ALLOC = 0;
    /// Events of the program's own: they are no kind that is asked for.
    OWN = 1;
    LEAK = 2;
    LOCK = 3;
    EXCEPTION = 4;
    OBJECTS = 5;
    CALL = 6;
    THREAD = 7;
    IO = 8;
    SAMPLES = 16;
    /// No kind of events: what is handed to other threads is told to the agent, for measurements of allocations.
    FOLLOW = 17;
}
