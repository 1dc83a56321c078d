//! The layout that helper classes and agent share: offsets in shared memory, and the meaning of numbers.
//!
//! The agent's build makes the constants of `LucceRtLayout` from them, which the Java compiler copies into the helper
//! classes. So no such number is written in Java.
//!
//! Offsets are in bytes. `…_BITS` are powers of two. The build takes constants of other crates from there
//! (`callgraph`: ids and the encoder's tables).

/// Words of an entry of `1 << bits` bytes.
pub const fn entry_words(bits: u32) -> usize {
    (1 << bits) / size_of::<u64>()
}

/// Defines constants, and a list of them.
macro_rules! shared_constants {
    ($($(#[$about:meta])* $name:ident: $kind:ident = $value:expr;)*) => {
        $($(#[$about])* pub const $name: $kind = $value;)*

        /// Name, type and value of each.
        pub const ALL: &[(&str, &str, i64)] = &[$((stringify!($name), stringify!($kind), $name as i64)),*];
    };
}

#[allow(unused_imports, reason = "for the lab's constants")]
pub(crate) use shared_constants;

shared_constants! {
    // ---- addresses: the agent replaces these constants when it makes a class live -----------------------------------

    /// Addresses of slots are relative to it. So 0, the initial value of a thread's field, is a writable address.
    BASE: u64 = 0x1C5C_BA5E_1C5C_BA5E;
    /// The array of each site's method, of entries of [`INT_BITS`]. Words with a bit for each site lie below it, the first
    /// sites' last: 1 if Java code may add counters of the site.
    METHODS: u64 = 0x1C5C_BA5E_1C5C_BA5F;
    /// The block of the encoder's tables.
    TABLES: u64 = 0x1C5C_BA5E_1C5C_BA60;
    /// Size of an entry in an array of ints.
    INT_BITS: u32 = 2;
    /// Number of sites with a bit in one word.
    WORD_SITES_BITS: u32 = 6;

    // ---- slots: see `slots` -----------------------------------------------------------------------------------------

    SLOT: usize = 16;
    /// After the site: the method whose context is memoized.
    TAG: usize = 4;
    /// Position of that method in the slot's first word.
    TAG_SHIFT: usize = 8 * TAG;
    /// The memo.
    CONTEXT: usize = 8;
    /// In place of the memo: a C function (`java.lang.foreign`) was called. Java code that it calls gets this slot.
    IN_DOWNCALL: i64 = -1;
    /// The word of the event mask lies this far below [`BASE`].
    EVENT_MASK: usize = 4096;
    /// The word of [`EVENT_MASK`]'s page that has a bit for each wait without a known holder. It begins a cache line.
    LOCK_WAITS: usize = 4032;
    /// For each of those waits, the word with its turn: see `events::lock_holders`. Seven of them share that line.
    LOCK_TURNS: usize = 4024;
    /// Number of waits whose holder can be found at a time.
    LOCK_SLOTS: usize = 64;
    /// Size of the memory for frames of unknown threads: see `address_space`.
    SCRATCH_BITS: u32 = 26;

    // ---- a thread's state: see `thread` -----------------------------------------------------------------------------

    STATE_INDEX: usize = 0;
    /// Events until the next one is verified.
    STATE_VERIFY_COUNTDOWN: usize = 8;
    STATE_START: usize = 24;
    STATE_END: usize = 32;
    /// Start of the timed operation that the thread is in; 0: none.
    OPERATION_START: usize = 40;
    /// Amount of that operation, such as bytes.
    OPERATION_AMOUNT: usize = 48;
    /// The slot of a frame that has called `Object.clone` itself, until the call returns.
    CLONING: usize = 56;
    /// Bytes of the message of an exception, until its trace is counted.
    MESSAGE_BYTES: usize = 64;
    /// The slot of the frame with the thread's open request; 0: none.
    REQUEST_SLOT: usize = 72;
    /// The number of the thread's tags; 0: it has none.
    TAG_SET: usize = 80;
    /// The slot of the innermost frame that runs a task under other tags than its thread's; 0: none.
    TAGGED_TASK_SLOT: usize = 88;
    /// The block of methods in progress whose times are recorded; 0: none.
    TIMES_BLOCK: usize = 96;
    /// The number of the thread's counters, above the bits of a kept counter; [`NOT_KEPT`]: no counter is kept.
    STATE_KEPT: usize = 104;
    /// The address of the room for counters that Java code adds; 0: the thread has no counters yet.
    STATE_ROOM: usize = 112;
    /// With `stream=on`: where the thread's next event is written.
    STREAM_CURSOR: usize = 120;

    // ---- times of methods: see `counting::method_times` -------------------------------------------------------------

    /// An entry of the block: slot, site, start, number.
    TIME_BITS_OF_ENTRY: u32 = 5;
    TIME_SITE: usize = 8;
    TIME_START: usize = 16;
    TIME_NUMBER: usize = 24;
    /// The index of a time is the power of two below it. From here on: of times that an exception ended.
    THROWN_TIMES: u32 = 64;
    /// The index of the longest time.
    LONGEST_TIME: u32 = 128;
    /// The index of array sizes of 1 byte. The others follow, by the power of two below a size.
    FIRST_SIZE: u32 = 129;

    // ---- fields for contexts that continue elsewhere: see `tasks` ---------------------------------------------------

    /// Field of a running thread: its next submission is a virtual thread's own continuation, not a task.
    SCHEDULING: i64 = -1;
    /// Field of a running thread: the continuation that it creates is a generator's. Field of such a continuation.
    RESTRICTED: i64 = -2;
    /// Field of a task that was submitted in several contexts.
    SEVERAL: i64 = -1;
    /// Field of a task that was submitted under several sets of tags.
    SEVERAL_TAGS: i32 = -1;

    // ---- the index of per-thread counters: see `thread_counters` ----------------------------------------------------

    INDEX_TRANSITIONS: usize = 16;
    INDEX_PATHS: usize = 24;
    INDEX_PATHS_SHIFT: usize = 32;
    INDEX_BY_TYPE: usize = 40;
    INDEX_TRANSITIONS_SHIFT: usize = 48;
    /// In the low bits of the address, below [`COPY_BITS`]: the binary logarithm of the number of lines.
    INDEX_TYPED: usize = 56;
    /// An entry: context or number; low bits of the site, or type, with the counter.
    INDEX_ENTRY_BITS: u32 = 4;
    INDEX_COUNTER: usize = 8;
    /// Low bits of a site in an entry, above the address of the counter.
    LOW_SITE_BITS: u32 = 20;
    /// Low bits of a counter's address, which are 0 and not stored.
    COUNTER_ALIGNMENT_BITS: u32 = 3;

    // ---- the room for counters that Java code adds: see `thread_counters` -------------------------------------------

    /// The address of the next counter, and of the first one that Java code may not add.
    ROOM_NEXT: usize = 0;
    ROOM_END: usize = 8;

    // ---- counters that frames with loops keep: see `thread_counters` ------------------------------------------------

    /// In a local variable: the number of the counters, and below this bit a counter's address without its lowest
    /// [`COUNTER_ALIGNMENT_BITS`].
    KEPT_SHIFT: u32 = 44;
    /// In place of the number of counters: the highest one.
    NOT_KEPT: u64 = 0xFFFF_F000_0000_0000;

    // ---- caches of recent look-ups, Java code's own: see `java_caches` ----------------------------------------------

    /// A transition, or a typed site: a key and its value.
    COPY_BITS: u32 = 4;
    COPY_VALUE: usize = 8;
    /// A recent call path: the known context, 0: an empty line; sites of the event and of the last call; sites of the
    /// two calls before it; the counter; the contexts of the callees, the last one first.
    PATH_BITS: u32 = 6;
    PATH_SITES: usize = 8;
    PATH_CALLERS: usize = 16;
    PATH_COUNTER: usize = 24;
    PATH_CONTEXTS: usize = 32;
    /// For hashes of several words.
    SECOND_MULTIPLIER: u64 = 0xBF58_476D_1CE4_E5B9;
    THIRD_MULTIPLIER: u64 = 0x94D0_49BB_1331_11EB;

    // ---- counters of the log: `tracelog` defines them ---------------------------------------------------------------

    COUNTER_CONTEXT: usize = 0;
    COUNTER_COUNT: usize = 8;
    COUNTER_BYTES: usize = 16;
    COUNTER_SIZE: usize = 24;
    EVENT_COUNTER_TYPE: usize = 8;
    EVENT_COUNTER_COUNT: usize = 16;
    EVENT_COUNTER_VALUE: usize = 24;

    // ---- kinds of the program: see `counting::program_kinds` --------------------------------------------------------

    /// Maximum bytes of the name of a kind.
    LONGEST_KIND: usize = 100;

    // ---- the word of a class: see `counting::object_types` ----------------------------------------------------------

    /// The class's number is above this bit. Below it is the size of an object in bytes; negative: an array.
    CLASS_NUMBER_SHIFT: u32 = 32;
    /// The class is cloned by `Object.clone`.
    CLASS_CLONES: u32 = 1;
    /// Sizes of objects are multiples of it.
    OBJECT_ALIGNMENT: u32 = 8;
    /// In place of a type's number: an instruction that makes exceptions.
    MAKER: u32 = 1 << 31;

    // ---- arguments and results of native methods --------------------------------------------------------------------

    /// For a trace: do nothing; count it; count it and remember the instruction.
    TRACE_COUNTED: i32 = 0;
    TRACE_COUNT: i32 = 1;
    TRACE_REMEMBER: i32 = 2;

    // ---- reserved sites: positions of `Arrays` among the intrinsics, counted from 1 ---------------------------------

    COPY_OF: u32 = 1;
    COPY_OF_RANGE: u32 = 2;
    /// In place of a site, in code that traces do not show.
    UNSEEN: i32 = -1;
}
