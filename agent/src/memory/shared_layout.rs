//! What the helper classes and the agent both know: where things lie in memory that both use, and which number stands for
//! what. The agent's build reads this file, too, and makes the constants of `LucceRtLayout` of it, which the Java compiler
//! copies into the helper classes. So no such number is written in Java.
//!
//! Offsets are in bytes. `…_BITS` are powers of two. What other crates define (`callgraph`: ids and the encoder's
//! tables; `stream`: entries; `hooks`: bits of the gate) the build takes from there.

/// Words of an entry of so many bytes, a power of two.
#[allow(dead_code, reason = "for the agent")]
pub const fn entry_words(bits: u32) -> usize {
    (1 << bits) / size_of::<u64>()
}

/// Defines constants, and the list of them.
macro_rules! shared {
    ($($(#[$about:meta])* $name:ident: $kind:ident = $value:expr;)*) => {
        $($(#[$about])* #[allow(dead_code, reason = "some are for Java code alone")] pub const $name: $kind = $value;)*

        /// Name, type and value of each.
        #[allow(dead_code, reason = "for the agent's build")]
        pub const ALL: &[(&str, &str, i64)] = &[$((stringify!($name), stringify!($kind), $name as i64)),*];
    };
}

shared! {
    // ---- addresses that the agent puts in place of these constants when it makes a class live -------------------------

    /// What addresses of slots are relative to, so that 0, what a thread's field holds at first, is a place that may
    /// be written, too.
    BASE: u64 = 0x1C5C_BA5E_1C5C_BA5E;
    /// The method that each site lies in, of [`INT_BITS`].
    METHODS: u64 = 0x1C5C_BA5E_1C5C_BA5F;
    /// The block of the encoder's tables.
    TABLES: u64 = 0x1C5C_BA5E_1C5C_BA60;
    /// An entry of a row of ints.
    INT_BITS: u32 = 2;

    // ---- slots: see `slots` --------------------------------------------------------------------------------------------

    SLOT: usize = 16;
    /// Behind the site: the method whose context the memo is.
    TAG: usize = 4;
    /// In the slot's first word.
    TAG_SHIFT: usize = 8 * TAG;
    /// The memo.
    CONTEXT: usize = 8;
    /// In place of the memo: a C function has been called (`java.lang.foreign`) with this slot for what it calls.
    IN_DOWNCALL: i64 = -1;
    /// The word that says which kinds of events are counted lies so far below [`BASE`].
    GATE: usize = 4096;
    /// The memory for frames of threads that are not known: see `memory`.
    SCRATCH_BITS: u32 = 26;
    /// With `tracking=paper`, in a slot's second part: see `locals`.
    BESIDE_VERSION: usize = 0;
    BESIDE_NUMBER: usize = 8;

    // ---- a thread's state: see `thread` --------------------------------------------------------------------------------

    STATE_INDEX: usize = 0;
    /// Events until the next one is compared.
    STATE_LEFT: usize = 8;
    STATE_START: usize = 24;
    STATE_END: usize = 32;
    /// With `tracking=cct`: the tree's table.
    STATE_TREE: usize = 40;
    /// Of what the thread is doing that takes time: when it began, 0: nothing.
    SINCE: usize = 48;
    /// And an amount, such as the bytes that it was given.
    AMOUNT: usize = 56;
    /// The slot of the frame that has called `Object.clone` itself, until that returns.
    CLONING: usize = 64;
    /// Bytes of the text that an exception is made with, until its trace has been noted.
    TEXT: usize = 72;
    /// With `record=stream`: where the thread's next event goes.
    PLACE: usize = 80;

    // ---- fields for contexts that go on elsewhere: see `tasks` -----------------------------------------------------------

    /// Of a running thread: what it submits next is a virtual thread's own continuation, and no task.
    SCHEDULING: i64 = -1;
    /// Of a task: it was submitted in several contexts.
    SEVERAL: i64 = -1;

    // ---- a thread's index of cells: see `lane` ---------------------------------------------------------------------------

    INDEX_TRANSITIONS: usize = 16;
    INDEX_WAYS: usize = 24;
    INDEX_WAYS_SHIFT: usize = 32;
    INDEX_BY_TYPE: usize = 40;
    INDEX_TRANSITIONS_SHIFT: usize = 48;
    /// In the low bits of the address, below [`COPY_BITS`]: how many there are, as a power of two.
    INDEX_TYPED: usize = 56;
    /// An entry: context or number, low bits of the site or type, and the cell.
    INDEX_ENTRY_BITS: u32 = 4;
    INDEX_CELL: usize = 8;
    /// Low bits of a site that an entry has, above the address of the cell.
    LOW_SITE_BITS: u32 = 20;
    /// Low bits of a cell's address, which are 0 and which an entry leaves out.
    CELL_ALIGNMENT_BITS: u32 = 3;

    // ---- copies of what a thread looked up lately, Java code's own: see `copies` -------------------------------------------

    /// Of a transition, or of a typed site: a key and its value.
    COPY_BITS: u32 = 4;
    COPY_VALUE: usize = 8;
    /// Of a way: the known context, 0: an empty line; the event's site and the last call's; those of the two calls before it;
    /// the cell; the contexts of the called frames, the last one first.
    WAY_BITS: u32 = 6;
    WAY_CALL: usize = 8;
    WAY_BEFORE: usize = 16;
    WAY_CELL: usize = 24;
    WAY_CONTEXTS: usize = 32;
    /// For what is hashed by several words at once.
    SECOND_MULTIPLIER: u64 = 0xBF58_476D_1CE4_E5B9;
    THIRD_MULTIPLIER: u64 = 0x94D0_49BB_1331_11EB;

    // ---- cells of the log: `tracelog` defines them ---------------------------------------------------------------------------

    CELL_NUMBER: usize = 0;
    CELL_COUNT: usize = 8;
    CELL_BYTES: usize = 16;
    EVENT_CELL_TYPE: usize = 8;
    EVENT_CELL_COUNT: usize = 16;
    EVENT_CELL_VALUE: usize = 24;

    // ---- with `tracking=cct`, entries of the tree's table: see `tree` ----------------------------------------------------------

    TREE_ENTRY_BITS: u32 = 4;
    TREE_PARENT: usize = 8;
    TREE_CHILD: usize = 12;

    // ---- with `tracking=paper`: see `paper` --------------------------------------------------------------------------------------

    PAPER_UPDATES: usize = 0;
    PAPER_VERSION: usize = 8;
    PAPER_TABLE: usize = 16;
    PAPER_NODES: usize = 24;
    NODE_BITS: u32 = 4;
    NODE_VERSION: usize = 0;
    NODE_INPUTS: usize = 8;
    EDGE_ENTRY_BITS: u32 = 5;
    EDGE_INPUTS: usize = 8;
    EDGE_ADDITION: usize = 16;
    /// A callId that no `long` holds.
    LOST_CALL: i64 = -1;

    // ---- the program's own kinds: see `own_kinds` ----------------------------------------------------------------------------------------

    /// Bytes of the text of a kind that is remembered.
    LONGEST_KIND: usize = 100;

    // ---- the word of a class: see `types` ------------------------------------------------------------------------------------------------

    /// Above it the class's number, below it what one of its objects takes; below 0: an array.
    CLASS_NUMBER_SHIFT: u32 = 32;
    /// It clones as `SampledObject` does.
    CLASS_CLONES: u32 = 1;
    /// Objects take multiples of it.
    OBJECT_ALIGNMENT: u32 = 8;
    /// An instruction that makes exceptions, where a type's number stands otherwise.
    MAKER: u32 = 1 << 31;

    // ---- what natives are told and answer ----------------------------------------------------------------------------------------------------

    /// With `record=calls`: a frame is about to call; an event happens; the frame returns; an exception has ended
    /// the frames from this slot on; a method was entered.
    TOLD_CALL: i32 = 0;
    TOLD_EVENT: i32 = 1;
    TOLD_RETURNED: i32 = 2;
    TOLD_THROWN: i32 = 3;
    TOLD_ENTERED: i32 = 4;
    /// Of a trace: nothing is to be done; count it; count it and remember the instruction.
    TRACE_COUNTED: i32 = 0;
    TRACE_COUNT: i32 = 1;
    TRACE_REMEMBER: i32 = 2;

    // ---- sites that are reserved: the places of `Arrays` among the intrinsics, counted from 1 ---------------------------------------------------

    COPY_OF: u32 = 1;
    COPY_OF_RANGE: u32 = 2;
    /// In place of a site, in code that traces do not show.
    UNSEEN: i32 = -1;
}
