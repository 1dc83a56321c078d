//! What to insert into a class: decided from its bytes and names alone.
//!
//! ```text
//! class ─► view: which hooks each method needs ─► shapes ─► ids (book) ─► inserts: what the rewriter puts in
//!           │
//!           ├─ asks about calls (calls, `jdk::leaf_methods`, `jdk::intrinsics`) and about methods (`jdk::roles`)
//!           └─ asks each kind of events that is counted (kinds)
//! ```
//!
//! A method's frame is of one [`FrameKind`].

pub mod helpers;
mod instrumentation;

pub mod jdk;

mod api_calls;
mod object_creation;

pub mod kinds;

mod class_analysis;

pub mod inherited;
mod insertions;

mod neutralize;
mod out_of_scope;
mod published_calls;

pub use class_analysis::{InstrumentationOptions, analyze_class, is_bound};
pub use helpers::{INHERITED, RT, TRANSFORM};
pub use inherited::inherited_methods;
pub use insertions::{HookOptions, plan_class, plan_hidden_class};
pub use instrumentation::{EventCall, FrameKind, HookPlace, HookSiteKind, MethodInstrumentation};
pub use jdk::intrinsics::INTRINSICS;
pub use jdk::leaf_methods::{is_leaf, is_leaf_call};
pub use jdk::roles::{CLASS_INITIALIZER, acts_as_carrier};
pub use kinds::{EventKindInfo, EventKindSet};
pub use neutralize::{REPLACEMENT_HELPERS, neutralize_class};
pub use out_of_scope::{
    plan_class_outside as plan_outside, plan_hidden_class_outside as hidden_plan_outside,
};
pub use published_calls::is_published_call;

#[cfg(test)]
mod closed_world_tests;
