//! Alternative ways to keep and number contexts, for comparison with the product: a calling context tree for each thread
//! (`tracking=cct`), the scheme of the Lucce paper (`tracking=paper`), and numbers planned from an earlier run (`encoding=static`).
//!
//! Only this layer knows which of them is in use. All others call [`AgentComparison`], which returns `None` if the product's own
//! way applies.
//!
//! Read this file first, then `thread_tree` (`tracking=cct`), `paper_tracking` with `frame_locals` (`tracking=paper`), and
//! `named_plan` with `earlier_run` (`encoding=static`).

mod earlier_run;
mod frame_locals;
mod named_plan;
mod paper_tracking;
mod thread_tree;

use std::cell::RefMut;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lucce_callgraph::{ContextId, ContextLayout, MethodId, NumberingPlan, SiteId};

use crate::core::{AgentCore, EventLocation};
use crate::memory::locks::WatchedRwLock;
use crate::memory::slots::Slot;
use crate::options::{AgentOptions, RecordMode, TrackingMode};
use crate::registry::CodeRegistry;

use earlier_run::EarlierRun;
use named_plan::{NamedPlan, PlanMatches};
use paper_tracking::PaperTracking;
use thread_tree::{ThreadTreeNode, ThreadTreeTotals};

pub use thread_tree::ThreadTree;

/// Inputs that are read before the log is created, because the log may replace the earlier log.
pub struct ComparisonInputs {
    earlier: Option<EarlierRun>,
}

impl ComparisonInputs {
    /// Reads the earlier run's log, if there is one.
    ///
    /// # Errors
    /// One line for the user: the log cannot be read.
    pub fn new(options: &AgentOptions) -> Result<ComparisonInputs, String> {
        let earlier = options.graph.as_deref().map(read_earlier).transpose()?;
        Ok(ComparisonInputs { earlier })
    }

    /// The numbering planned in advance, with its statistics.
    pub fn into_plan(
        self,
        options: &AgentOptions,
        book: &Arc<WatchedRwLock<CodeRegistry>>,
    ) -> ComparisonPlan {
        let plan = self.earlier.map(|earlier| {
            NamedPlan::new(
                earlier,
                ContextLayout::DEFAULT,
                &options.encoding,
                Arc::clone(book),
            )
        });
        ComparisonPlan {
            matches: plan.as_ref().map(NamedPlan::matches),
            plan: plan.map(|plan| Box::new(plan) as Box<dyn NumberingPlan>),
        }
    }
}

fn read_earlier(path: &Path) -> Result<EarlierRun, String> {
    EarlierRun::read_log(path).map_err(|e| format!("graph={}: {e}", path.display()))
}

/// The numbering plan of `encoding=static`, if there is one.
pub struct ComparisonPlan {
    pub plan: Option<Box<dyn NumberingPlan>>,
    matches: Option<Arc<PlanMatches>>,
}

/// Whether each slot needs a second part.
pub fn doubles_slots(options: &AgentOptions) -> bool {
    options.tracking == TrackingMode::Paper
}

/// The present way to keep contexts.
pub struct AgentComparison {
    state: ComparisonState,
    matches: Option<Arc<PlanMatches>>,
}

enum ComparisonState {
    /// The product's way.
    Lazy,
    Trees(ThreadTreeTotals),
    Paper(Box<PaperTracking>),
}

/// A thread's tree, and the word from which Java code reads the address of the tree's table.
pub struct ThreadTreeRef<'t> {
    pub tree: RefMut<'t, ThreadTree>,
    pub table: &'t AtomicU64,
}

impl AgentComparison {
    /// `None`: there is no address space for its tables.
    pub fn new(options: &AgentOptions, planned: &ComparisonPlan) -> Option<AgentComparison> {
        let way = match options.tracking {
            TrackingMode::Lazy => ComparisonState::Lazy,
            TrackingMode::Cct => ComparisonState::Trees(ThreadTreeTotals::default()),
            TrackingMode::Paper => ComparisonState::Paper(Box::new(PaperTracking::new()?)),
        };
        let matches = planned.matches.clone();
        Some(AgentComparison {
            state: way,
            matches,
        })
    }

    /// Whether contexts are kept in the product's way.
    pub fn is_off(&self) -> bool {
        matches!(self.state, ComparisonState::Lazy)
    }

    /// Whether a thread's counters are indexed by values that mean nothing to other threads.
    pub fn has_own_indices(&self) -> bool {
        matches!(self.state, ComparisonState::Trees(_))
    }

    /// Whether ids of unloaded classes may be forgotten. Recordings, plans and alternative ways use ids of methods until the end.
    pub fn may_forget(&self, options: &AgentOptions) -> bool {
        self.is_off()
            && options.record != RecordMode::Calls
            && options.encoding.adapt_after == 0
            && self.matches.is_none()
    }

    /// The context of a frame of `callee`, called from `from`. [`SiteId::ENTRY`] in context 0: the thread's first frame.
    pub fn step_to_callee<'t>(
        &self,
        own: impl FnOnce() -> ThreadTreeRef<'t>,
        (context, site): (u64, SiteId),
        callee: MethodId,
    ) -> Option<Option<u64>> {
        let ComparisonState::Trees(trees) = &self.state else {
            return None;
        };
        let Ok(node) = u32::try_from(context) else {
            return Some(None);
        };
        let ThreadTreeRef { mut tree, table } = own();
        let before = tree.memory_bytes();
        let child = tree.get_or_add_child(ThreadTreeNode(node), site, callee);
        table.store(tree.table_address() as u64, Ordering::Relaxed);
        trees.record_growth(tree.memory_bytes() - before);
        Some(child.map(|child| child.0.into()))
    }

    /// Like [`AgentComparison::step_to_callee`].
    pub fn step_from<'t>(
        &self,
        own: impl FnOnce() -> ThreadTreeRef<'t>,
        from: EventLocation,
        callee: MethodId,
    ) -> Option<Option<u64>> {
        self.step_to_callee(own, (from.context, from.site), callee)
    }

    /// The number of a frame's context.
    pub fn resolve_number<'t>(
        &self,
        core: &AgentCore,
        own: impl FnOnce() -> ThreadTreeRef<'t>,
        context: u64,
    ) -> Option<ContextId> {
        if !self.has_own_indices() {
            return None;
        }
        let Ok(node) = u32::try_from(context) else {
            return Some(ContextId::UNKNOWN);
        };
        let method = |site: SiteId| MethodId(core.method_of_site.get(site.0));
        let ThreadTreeRef { mut tree, .. } = own();
        Some(tree.resolve_number(ThreadTreeNode(node), &core.encoder, method))
    }

    /// The context of the frame of `method` with slot `slot`, if slots contain contexts.
    pub fn context_in_slots(
        &self,
        core: &AgentCore,
        slot: Slot,
        method: MethodId,
    ) -> Option<Option<u64>> {
        let ComparisonState::Paper(paper) = &self.state else {
            return None;
        };
        let number = frame_locals::resolve_context(core, paper, slot, method);
        Some(number.map(|number| number.0))
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

    /// Called when a thread with this tree has ended.
    pub fn end_thread(&self, tree: &ThreadTree) {
        if let ComparisonState::Trees(trees) = &self.state {
            trees.record_drop(tree.memory_bytes());
        }
    }

    /// The address at which Java code reads the graph; 0: it does not.
    pub fn graph_address(&self) -> usize {
        match &self.state {
            ComparisonState::Paper(paper) => paper.block_address(),
            ComparisonState::Lazy | ComparisonState::Trees(_) => 0,
        }
    }

    /// Peak memory of all trees in bytes.
    pub fn tree_bytes(&self) -> u64 {
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
}
