//! What to insert into a class: decided from its bytes and names alone.
//!
//! ```text
//! class ─► view: which hooks each method needs ─► shapes ─► ids (book) ─► inserts: what the rewriter puts in
//!           │
//!           └─ asks about calls (calls, leaves, intrinsics) and about methods (roles)
//! ```
//!
//! A method's frame is of one [`FrameKind`].

mod shape;

mod helpers;

mod calls;
mod intrinsics;
mod leaves;
mod making;
mod roles;

mod view;

mod inherited;
mod inserts;

pub use calls::{defines_hidden, park, starts};
pub use helpers::{
    ASKING, CALLED_BY_HOOKS, ENTER, ENTER_FIRST, ENTER_PINNED, ENTER_VM, EXIT_PINNED, EXIT_VM,
    REDIRECT_ASKING, REDIRECT_DEFINITION, RESTORE, RT, STARTS_OUTSIDE, WAS, WAS_ASKED, WAS_ENTERED,
    WAS_SAID, event, new_fields,
};
pub use inherited::{
    PREFIX as INHERITED, SILENT_ASKED as INHERITED_WAS_ASKED,
    SILENT_ENTERED as INHERITED_WAS_ENTERED, SILENT_SAID as INHERITED_WAS,
    methods as inherited_methods,
};
pub use inserts::{Hooks, hidden_plan, plan, switch_plan, unseen_inserts};
pub use intrinsics::INTRINSICS;
pub use leaves::{is_leaf, is_leaf_call};
pub use roles::{CLASS_INITIALIZER, is_pinned, role_name, starts_virtual_thread};
pub use shape::{FrameKind, Mark, Shape};
pub use view::{Wants, shapes};

#[cfg(test)]
mod closed;

#[cfg(test)]
pub use {helpers::UNSEEN, roles::HIDDEN, shape::Place};
