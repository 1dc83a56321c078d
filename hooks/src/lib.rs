//! What to insert into a class: decided from its bytes and names alone.
//!
//! ```text
//! class ─► view: which hooks each method needs ─► shapes ─► ids (book) ─► inserts: what the rewriter puts in
//!           │
//!           ├─ asks about calls (calls, `jdk::leaves`, `jdk::intrinsics`) and about methods (`jdk::roles`)
//!           └─ asks each kind of events that is counted (kinds)
//! ```
//!
//! A method's frame is of one [`FrameKind`].

pub mod helpers;
mod shape;

pub mod jdk;

mod calls;
mod making;

pub mod kinds;

mod view;

pub mod inherited;
mod inserts;

mod announced;
mod outside;
mod silence;

pub use announced::is_announced;
pub use helpers::{INHERITED, RT, TRANSFORM};
pub use inherited::methods as inherited_methods;
pub use inserts::{Hooks, hidden_plan, plan};
pub use jdk::intrinsics::INTRINSICS;
pub use jdk::leaves::{is_leaf, is_leaf_call};
pub use jdk::roles::{CLASS_INITIALIZER, acts_as_carrier};
pub use kinds::{Kind, Kinds};
pub use outside::{hidden_plan as hidden_plan_outside, plan as plan_outside};
pub use shape::{FrameKind, HookPlace, Mark, Of, Shape};
pub use silence::{INSTEAD, silenced};
pub use view::{Wants, is_bound, shapes};

#[cfg(test)]
mod closed;
