//! Decides what to insert into a class, from its bytes and names alone.
//!
//! ```text
//! class ─► class_analysis: hooks of each method ─► MethodInstrumentation ─► ids (CodeRegistry) ─► insertions: ClassPlan
//!           │                                                                                          for the rewriter
//!           ├─ about calls: api_calls, object_creation, `jdk::leaf_methods`, `jdk::intrinsics`
//!           ├─ about methods: `jdk::roles`, `jdk::vm_calls`
//!           └─ about counted kinds of events: kinds
//! ```
//!
//! Read `instrumentation` first: each method has one [`FrameKind`] and a list of [`HookPlace`]s. Then read
//! `class_analysis`, `insertions` and `out_of_scope`. `old_hooks` disables earlier hooks in a class that is loaded
//! again.

pub mod helpers;
mod instrumentation;

pub mod jdk;

mod api_calls;
pub mod assembly;
pub mod continuations;
mod method_insertions;
mod object_creation;

pub mod kinds;

mod class_analysis;

pub mod inherited;
mod insertions;

mod old_hooks;
mod out_of_scope;
mod published_calls;

pub use class_analysis::{InstrumentationOptions, analyze_class, is_bound};
pub use helpers::{HELPER_PREFIX, INHERITED, TRANSFORM};
pub use inherited::inherited_methods;
pub use insertions::{HookOptions, plan_class, plan_hidden_class};
pub use instrumentation::{
    EventCall, FrameKind, HookPlace, HookSiteKind, MethodInstrumentation, RequestEntry,
};
pub use jdk::intrinsics::INTRINSICS;
pub use jdk::leaf_methods::{is_leaf, is_leaf_call};
pub use jdk::roles::{CLASS_INITIALIZER, acts_as_carrier};
pub use kinds::{EventKindInfo, EventKindSet};
pub use old_hooks::{REPLACEMENT_HELPERS, disable_old_hooks};
pub use out_of_scope::{
    plan_class_outside as plan_outside, plan_hidden_class_outside as hidden_plan_outside,
};
pub use published_calls::{deferred_entry_end, is_published_call};

#[cfg(test)]
mod closed_world_tests;
