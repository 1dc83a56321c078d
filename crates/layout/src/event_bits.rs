//! The bits of the event mask, one for each kind of events.
//!
//! Java code has constants of these names.

/// Defines a constant for each bit, and the list of all.
macro_rules! bits {
    ($($(#[$about:meta])* $name:ident = $bit:literal;)*) => {
        $($(#[$about])* pub const $name: u64 = 1 << $bit;)*

        /// Name and value of each bit.
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
    REQUEST = 9;
    /// Not a kind of events: tasks keep the context that submits them.
    ORIGINS = 10;
    /// Not a kind of events: tags are in use, and tasks keep them.
    TAGS = 11;
    SAMPLES = 16;
    /// Not a kind of events: the agent follows objects that are passed to other threads, to measure allocations.
    FOLLOW = 17;
}
