//! The bits of the event mask, one for each kind of events.
//!
//! The agent's build also reads this file. Java code has constants of these names.

/// Defines a constant for each bit, and the list of all.
macro_rules! bits {
    ($($(#[$about:meta])* $name:ident = $bit:literal;)*) => {
        $($(#[$about])* #[allow(dead_code, reason = "the agent's build needs the list alone")] pub const $name: u64 = 1 << $bit;)*

        /// Name and value of each bit.
        #[allow(dead_code, reason = "for the agent's build")]
        pub const ALL: &[(&str, u64)] = &[$((stringify!($name), $name)),*];
    };
}

bits! {
    ALLOC = 0;
    /// Events that the program counts itself; they are no kind of `events=`.
    OWN = 1;
    LEAK = 2;
    LOCK = 3;
    EXCEPTION = 4;
    OBJECTS = 5;
    CALL = 6;
    THREAD = 7;
    IO = 8;
    SAMPLES = 16;
    /// Not a kind of events: the agent follows objects that are passed to other threads, to measure allocations.
    FOLLOW = 17;
}
