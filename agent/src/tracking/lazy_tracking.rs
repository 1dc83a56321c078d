//! Lazy tracking alone: memos in the slots hold contexts of the graph.

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::{ContextId, MethodId, NumberingPlan, SiteId};
use lucce_jvmti::JniEnvironment;

use crate::core::fields::ThreadFields;
use crate::core::{AgentCore, OutputFiles};
use crate::memory::locks::WatchedRwLock;
use crate::memory::slots::Slot;
use crate::options::{AgentOptions, LogLevel};
use crate::registry::CodeRegistry;
use crate::registry::file_state::FileState;

/// Inputs that are read before the log is created: none.
pub struct TrackingInputs;

impl TrackingInputs {
    /// # Errors
    /// Never: only the lab's agent reads inputs.
    pub fn read(_: &AgentOptions) -> Result<TrackingInputs, String> {
        Ok(TrackingInputs)
    }

    /// The tracking, and the numbers that were planned in advance: none. `None`: no address space.
    pub fn create_tracking(
        self,
        _: &AgentOptions,
        _: &Arc<WatchedRwLock<CodeRegistry>>,
        _: &mut OutputFiles,
    ) -> Option<(ContextTracking, Option<Box<dyn NumberingPlan>>)> {
        Some((ContextTracking, None))
    }
}

/// How contexts are kept.
pub struct ContextTracking;

/// A thread's part of it: none.
#[derive(Default)]
pub struct ThreadTracking;

impl ContextTracking {
    /// Whether slots have a second part.
    pub fn doubles_slots(_: &AgentOptions) -> bool {
        false
    }

    /// Whether frames publish their call sites, and events compute their contexts.
    pub fn is_lazy(&self) -> bool {
        true
    }

    /// Whether the hooks report every entry and return.
    pub fn records_calls(&self) -> bool {
        false
    }

    /// Whether a thread's counters are indexed by values that mean nothing to other threads.
    pub fn has_own_indices(&self) -> bool {
        false
    }

    /// Whether ids of unloaded classes may be forgotten. Adaptive numbers use ids of methods until the end.
    pub fn may_forget(&self, options: &AgentOptions) -> bool {
        options.encoding.adapt_after == 0
    }

    /// The context of a frame of `callee`, called at a site in a context: `by_graph`.
    pub fn step_to_callee(
        &self,
        _: &ThreadTracking,
        _: (u64, SiteId),
        _: MethodId,
        by_graph: impl FnOnce() -> Option<u64>,
    ) -> Option<u64> {
        by_graph()
    }

    /// The number of a frame's context, which is the context itself.
    pub fn resolve_number(&self, _: &AgentCore, _: &ThreadTracking, context: u64) -> ContextId {
        ContextId(context)
    }

    /// The context of a frame with a slot: `by_memos`.
    pub fn slot_context(
        &self,
        _: &AgentCore,
        _: (Slot, MethodId),
        by_memos: impl FnOnce() -> Option<u64>,
    ) -> Option<u64> {
        by_memos()
    }

    /// A method of this class and name was loaded.
    pub fn on_method_loaded(&self, _class: &str, _name: &str, _method: u32) {}

    /// A thread's part, when it begins.
    pub fn begin_thread(&self, _: JniEnvironment, _: jobject, _: ThreadFields) -> ThreadTracking {
        ThreadTracking
    }

    /// Called when a thread has ended.
    pub fn end_thread(&self, _: &ThreadTracking) {}

    /// Static fields of helper classes that Java code reads: class, field, value.
    pub fn helper_fields(&self, _: &AgentCore) -> Vec<(&'static CStr, &'static CStr, i64)> {
        Vec::new()
    }

    /// Peak memory of the threads' parts in bytes.
    pub fn memory_bytes(&self) -> u64 {
        0
    }

    /// Statistics for the end of the log, by name.
    pub fn collect_stats(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// A warning for the user at the end.
    pub fn mismatch_warning(&self) -> Option<String> {
        None
    }

    /// The file beside the log that belongs to the tracking, and its state.
    pub fn file_state(&self) -> Option<(FileState, &Path)> {
        None
    }

    /// Ends that file. Returns a line for the user.
    pub fn finish_file(&self) -> Option<(LogLevel, String)> {
        None
    }
}
