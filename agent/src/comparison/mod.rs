//! Alternative ways to keep and number contexts, for comparison with the product: a calling context tree for each thread
//! (`tracking=cct`), the scheme of the Lucce paper (`tracking=paper`), and numbers planned from an earlier run (`encoding=static`).
//!
//! Only in the lab's agent, and only this layer knows which of them is in use. All others call [`LabTracking`] under the name
//! that `tracking` gives it.
//!
//! Read this file first, then `thread_tree` (`tracking=cct`), `paper_tracking` with `frame_locals` (`tracking=paper`), and
//! `named_plan` with `earlier_run` (`encoding=static`), and `call_recorder` (`calls=on`).

mod call_recorder;
mod earlier_run;
mod frame_locals;
mod named_plan;
mod paper_tracking;
mod thread_tree;

use std::cell::{OnceCell, RefCell};
use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::{ContextId, ContextLayout, MethodId, NumberingPlan, SiteId};
use lucce_jvmti::JniEnvironment;

use crate::core::fields::ThreadFields;
use crate::core::{AgentCore, OutputFiles};
use crate::memory::locks::{WatchedMutex, WatchedRwLock};
use crate::memory::slots::Slot;
use crate::options::{AgentOptions, LogLevel, TrackingMode};
use crate::registry::CodeRegistry;
use crate::registry::file_state::FileState;

use call_recorder::CallRecorder;
use earlier_run::EarlierRun;
use named_plan::{NamedPlan, PlanMatches};
use paper_tracking::PaperTracking;
use thread_tree::{ThreadTree, ThreadTreeNode, ThreadTreeTotals};

pub use call_recorder::{RecordedFrame, ThreadCallRecord};

/// Inputs that are read before the log is created, because the log may replace the earlier log.
pub struct LabInputs {
    earlier: Option<EarlierRun>,
}

impl LabInputs {
    /// Reads the earlier run's log, if there is one.
    ///
    /// # Errors
    /// One line for the user: the log cannot be read.
    pub fn read(options: &AgentOptions) -> Result<LabInputs, String> {
        let earlier = options.graph.as_deref().map(read_earlier).transpose()?;
        Ok(LabInputs { earlier })
    }

    /// The tracking, and the numbers that were planned in advance. `None`: no address space.
    pub fn create_tracking(
        self,
        options: &AgentOptions,
        registry: &Arc<WatchedRwLock<CodeRegistry>>,
        outputs: &mut OutputFiles,
    ) -> Option<(LabTracking, Option<Box<dyn NumberingPlan>>)> {
        let plan = self.earlier.map(|earlier| {
            NamedPlan::new(
                earlier,
                ContextLayout::DEFAULT,
                &options.encoding,
                Arc::clone(registry),
            )
        });
        let state = match options.tracking {
            TrackingMode::Lazy => ComparisonState::Lazy,
            TrackingMode::Cct => ComparisonState::Trees(ThreadTreeTotals::default()),
            TrackingMode::Paper => ComparisonState::Paper(Box::new(PaperTracking::new()?)),
        };
        let calls = outputs.calls.take();
        let tracking = LabTracking {
            state,
            matches: plan.as_ref().map(NamedPlan::matches),
            recorder: calls.map(|calls| CallRecorder::new(calls, Arc::clone(registry))),
        };
        let plan = plan.map(|plan| Box::new(plan) as Box<dyn NumberingPlan>);
        Some((tracking, plan))
    }
}

fn read_earlier(path: &Path) -> Result<EarlierRun, String> {
    EarlierRun::read_log(path).map_err(|e| format!("graph={}: {e}", path.display()))
}

/// The present way to keep contexts.
pub struct LabTracking {
    state: ComparisonState,
    matches: Option<Arc<PlanMatches>>,
    /// Only with `calls=on`.
    pub recorder: Option<CallRecorder>,
}

enum ComparisonState {
    /// The product's way.
    Lazy,
    Trees(ThreadTreeTotals),
    Paper(Box<PaperTracking>),
}

/// A thread's part. Java code reads the first word.
#[repr(C)]
#[derive(Default)]
pub struct LabThreadTracking {
    /// Address of the tree's table; 0: none yet.
    table: AtomicU64,
    tree: RefCell<ThreadTree>,
    /// With `calls=on`: the thread's part of the recording, from its first call on.
    recording: OnceCell<Arc<WatchedMutex<ThreadCallRecord>>>,
    /// The ticket from the thread that started this one; 0: no such thread is known.
    ticket: usize,
}

impl LabThreadTracking {
    /// The thread's part of the recording. If no thread gave it one, it begins under the name that `name` returns.
    pub fn get_or_start_recording(
        &self,
        recorder: &CallRecorder,
        name: impl FnOnce() -> String,
    ) -> Arc<WatchedMutex<ThreadCallRecord>> {
        let recorded = self.recording.get_or_init(|| {
            let started = recorder.claim_started_thread(self.ticket);
            started.unwrap_or_else(|| recorder.record_thread(&name()))
        });
        Arc::clone(recorded)
    }
}

impl LabTracking {
    /// Whether slots have a second part.
    pub fn doubles_slots(options: &AgentOptions) -> bool {
        options.tracking == TrackingMode::Paper
    }

    /// Whether contexts are kept in the product's way.
    pub fn is_lazy(&self) -> bool {
        matches!(self.state, ComparisonState::Lazy)
    }

    /// Whether the hooks report every entry and return.
    pub fn records_calls(&self) -> bool {
        self.recorder.is_some()
    }

    /// Whether a thread's counters are indexed by values that mean nothing to other threads.
    pub fn has_own_indices(&self) -> bool {
        matches!(self.state, ComparisonState::Trees(_))
    }

    /// Whether ids of unloaded classes may be forgotten. Recordings, plans and alternative ways use ids of methods until the end.
    pub fn may_forget(&self, options: &AgentOptions) -> bool {
        self.is_lazy()
            && !options.calls
            && options.encoding.adapt_after == 0
            && self.matches.is_none()
    }

    /// The context of a frame of `callee`, called at a site in a context. [`SiteId::ENTRY`] in context 0: the thread's first
    /// frame. `by_graph`: the context if tracking is lazy.
    pub fn step_to_callee(
        &self,
        thread: &LabThreadTracking,
        place: (u64, SiteId),
        callee: MethodId,
        by_graph: impl FnOnce() -> Option<u64>,
    ) -> Option<u64> {
        match &self.state {
            ComparisonState::Trees(trees) => add_child(trees, thread, place, callee),
            ComparisonState::Lazy | ComparisonState::Paper(_) => by_graph(),
        }
    }

    /// The node for `callee` with `tracking=cct`. `None`: other modes, or no numbers are left.
    pub fn add_node(
        &self,
        thread: &LabThreadTracking,
        place: (u64, SiteId),
        callee: MethodId,
    ) -> Option<u64> {
        self.step_to_callee(thread, place, callee, || None)
    }

    /// The number of a frame's context.
    pub fn resolve_number(
        &self,
        core: &AgentCore,
        thread: &LabThreadTracking,
        context: u64,
    ) -> ContextId {
        if !self.has_own_indices() {
            return ContextId(context);
        }
        let Ok(node) = u32::try_from(context) else {
            return ContextId::UNKNOWN;
        };
        let method = |site: SiteId| MethodId(core.method_of_site.get(site.0));
        let mut tree = thread.tree.borrow_mut();
        tree.resolve_number(ThreadTreeNode(node), &core.encoder, method)
    }

    /// The context of the frame of a method with a slot. `by_memos`: the context if slots hold memos.
    pub fn slot_context(
        &self,
        core: &AgentCore,
        (slot, method): (Slot, MethodId),
        by_memos: impl FnOnce() -> Option<u64>,
    ) -> Option<u64> {
        let ComparisonState::Paper(paper) = &self.state else {
            return by_memos();
        };
        let number = frame_locals::resolve_context(core, paper, slot, method);
        number.map(|number| number.0)
    }

    /// A method of this class and name was loaded.
    pub fn on_method_loaded(&self, class: &str, name: &str, method: u32) {
        if let Some(recorder) = &self.recorder {
            recorder.on_method_loaded(class, name, method);
        }
    }

    /// A thread's part, when it begins.
    pub fn begin_thread(
        &self,
        env: JniEnvironment,
        thread: jobject,
        fields: ThreadFields,
    ) -> LabThreadTracking {
        LabThreadTracking {
            ticket: take_ticket(env, thread, fields),
            ..LabThreadTracking::default()
        }
    }

    /// Called when a thread has ended.
    pub fn end_thread(&self, thread: &LabThreadTracking) {
        if let (Some(recorder), Some(recorded)) = (&self.recorder, thread.recording.get()) {
            recorder.end_thread(recorded);
        }
        if let ComparisonState::Trees(trees) = &self.state {
            trees.record_drop(thread.tree.borrow().memory_bytes());
        }
    }

    /// Records that a method with this slot was called at `site`. The graph may change.
    pub fn record_entry(&self, core: &AgentCore, slot: Slot, site: SiteId, callee: MethodId) {
        if let ComparisonState::Paper(paper) = &self.state {
            frame_locals::enter_frame(core, paper, slot, site, callee);
        }
    }

    /// The number of the frame of `method` with this slot.
    pub fn number_in_slots(&self, core: &AgentCore, slot: Slot, method: MethodId) -> ContextId {
        match &self.state {
            ComparisonState::Paper(paper) => {
                frame_locals::resolve_number(core, paper, slot, method)
            }
            ComparisonState::Lazy | ComparisonState::Trees(_) => ContextId::UNKNOWN,
        }
    }

    /// Static fields of helper classes that Java code reads: class, field, value.
    pub fn helper_fields(&self, core: &AgentCore) -> Vec<(&'static CStr, &'static CStr, i64)> {
        const CLASS: &CStr = c"java/lang/LucceRtComparison";
        let graph = match &self.state {
            ComparisonState::Paper(paper) => paper.block_address(),
            ComparisonState::Lazy | ComparisonState::Trees(_) => 0,
        };
        vec![
            (CLASS, c"graph", graph as i64),
            (CLASS, c"beside", core.stacks.beside as i64),
        ]
    }

    /// Peak memory of all trees in bytes.
    pub fn memory_bytes(&self) -> u64 {
        match &self.state {
            ComparisonState::Trees(trees) => trees.max_bytes(),
            ComparisonState::Lazy | ComparisonState::Paper(_) => 0,
        }
    }

    /// Statistics for the end of the log, by name.
    pub fn collect_stats(&self) -> Vec<(&'static str, u64)> {
        let mut stats = Vec::new();
        if let Some(matches) = &self.matches {
            stats.extend(matches.collect_stats());
        }
        match &self.state {
            ComparisonState::Lazy => {}
            ComparisonState::Trees(trees) => stats.extend([
                ("trees.nodes", trees.node_count()),
                ("trees.memory", trees.max_bytes()),
            ]),
            ComparisonState::Paper(paper) => stats.extend(paper.collect_stats()),
        }
        stats
    }

    /// A warning for the user at the end.
    pub fn mismatch_warning(&self) -> Option<String> {
        self.matches.as_ref()?.mismatch_warning()
    }

    /// The recording of calls, and its state.
    pub fn file_state(&self) -> Option<(FileState, &Path)> {
        let recorder = self.recorder.as_ref()?;
        Some((recorder.file_state(), recorder.path()))
    }

    /// Ends the recording of calls. Returns a line for the user.
    pub fn finish_file(&self) -> Option<(LogLevel, String)> {
        let recorder = self.recorder.as_ref()?;
        let (bytes, whole) = recorder.finish_file();
        let state = recorder.file_state();
        let path = state.current_path(recorder.path()).display();
        let megabytes = bytes as f64 / 1e6;
        let cut = match whole {
            true => "",
            false => ", cut: the limit was reached",
        };
        let loss = state.describe_loss(recorder.path());
        Some(match loss.filter(|_| state.has_lost_data()) {
            Some(what) => (LogLevel::Error, format!("{what}: the calls are lost")),
            None => (
                LogLevel::Info,
                format!("calls recorded in {path} ({megabytes:.1} MB{cut})"),
            ),
        })
    }
}

/// The node for `callee`, called at a site in a node.
fn add_child(
    trees: &ThreadTreeTotals,
    thread: &LabThreadTracking,
    (node, site): (u64, SiteId),
    callee: MethodId,
) -> Option<u64> {
    let node = ThreadTreeNode(u32::try_from(node).ok()?);
    let mut tree = thread.tree.borrow_mut();
    let before = tree.memory_bytes();
    let child = tree.get_or_add_child(node, site, callee);
    thread
        .table
        .store(tree.table_address() as u64, Ordering::Relaxed);
    trees.record_growth(tree.memory_bytes() - before);
    child.map(|child| child.0.into())
}

/// The ticket that the thread's starter has left in the thread's field, negated.
fn take_ticket(env: JniEnvironment, thread: jobject, fields: ThreadFields) -> usize {
    let Some(ticket) = fields.ticket else {
        return 0;
    };
    let held = env.get_long(thread, ticket.as_raw());
    if held >= 0 {
        return 0;
    }
    env.set_long(thread, ticket.as_raw(), 0);
    usize::try_from(-held).unwrap_or(0)
}
