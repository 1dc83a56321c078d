//! The layout that helper classes and agent share in the lab's agent, beyond `shared_layout`.

use crate::shared_layout::shared_constants;

shared_constants! {
    // ---- with `tracking=paper`, in a slot's second part: see `comparison::frame_locals` ------------------------------

    BESIDE_VERSION: usize = 0;
    BESIDE_NUMBER: usize = 8;

    // ---- with `tracking=cct` ----------------------------------------------------------------------------------------

    /// In a thread's state: the tree's table.
    STATE_TREE: usize = 184;

    // ---- with `tracking=cct`, entries of the tree's table: see `comparison::thread_tree` ----------------------------

    TREE_ENTRY_BITS: u32 = 4;
    TREE_PARENT: usize = 8;
    TREE_CHILD: usize = 12;

    // ---- with `tracking=paper`: see `comparison::paper_tracking` ----------------------------------------------------

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
    /// A callId that does not fit into a `long`.
    LOST_CALL: i64 = -1;

    // ---- with `calls=on` ----------------------------------------------------------------------------------------

    /// A frame is about to call; an event happens; the frame returns; an exception has ended the
    /// frames from this slot on; a method was entered.
    STEP_CALL: i32 = 0;
    STEP_EVENT: i32 = 1;
    STEP_RETURNED: i32 = 2;
    STEP_THROWN: i32 = 3;
    STEP_ENTERED: i32 = 4;
}
