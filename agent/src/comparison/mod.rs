//! Ways to keep contexts, and to number them, that are here to be compared with the product's: a calling context tree
//! for each thread (`tracking=cct`), the scheme of the Lucce paper (`tracking=paper`), numbers planned from an earlier run
//! (`encoding=static`). This is the only floor that knows which of them is in use: all others ask [`Comparison`], which says
//! `None` where the product's own way is meant.

mod earlier;
mod locals;
mod paper;
mod plan;
mod tree;

use std::cell::RefMut;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lucce_callgraph::{ContextId, Layout, MethodId, Plan, SiteId};

use crate::book::Book;
use crate::core::{Core, Here};
use crate::memory::locks::WatchedRwLock;
use crate::memory::slots::Slot;
use crate::options::{Options, Record, Tracking};

use earlier::Earlier;
use paper::Paper;
use plan::{Matches, NamedPlan};
use tree::{Node, Trees};

pub use tree::Tree;

/// What a comparison needs before the log is made, which may have the earlier log's name.
pub struct Prepared {
    earlier: Option<Earlier>,
}

impl Prepared {
    /// # Errors
    /// One line for the user: the earlier run's log cannot be read.
    pub fn new(options: &Options) -> Result<Prepared, String> {
        let earlier = options.graph.as_deref().map(earlier).transpose()?;
        Ok(Prepared { earlier })
    }

    /// How calls are numbered in advance, and what is counted of that.
    pub fn plan(self, options: &Options, book: &Arc<WatchedRwLock<Book>>) -> Planned {
        let plan = self.earlier.map(|earlier| {
            NamedPlan::new(
                earlier,
                Layout::DEFAULT,
                &options.encoding,
                Arc::clone(book),
            )
        });
        Planned {
            matches: plan.as_ref().map(NamedPlan::matches),
            plan: plan.map(|plan| Box::new(plan) as Box<dyn Plan>),
        }
    }
}

fn earlier(path: &Path) -> Result<Earlier, String> {
    Earlier::read(path).map_err(|e| format!("graph={}: {e}", path.display()))
}

pub struct Planned {
    pub plan: Option<Box<dyn Plan>>,
    matches: Option<Arc<Matches>>,
}

/// Whether each slot needs a second part.
pub fn doubles_slots(options: &Options) -> bool {
    options.tracking == Tracking::Paper
}

pub struct Comparison {
    way: Way,
    matches: Option<Arc<Matches>>,
}

enum Way {
    /// The product's.
    Lazy,
    Trees(Trees),
    Paper(Box<Paper>),
}

/// What a thread keeps for this: its tree, and where Java code reads the address of the tree's table.
pub struct Own<'t> {
    pub tree: RefMut<'t, Tree>,
    pub table: &'t AtomicU64,
}

impl Comparison {
    /// `None`: there are no addresses for its tables.
    pub fn new(options: &Options, planned: &Planned) -> Option<Comparison> {
        let way = match options.tracking {
            Tracking::Lazy => Way::Lazy,
            Tracking::Cct => Way::Trees(Trees::default()),
            Tracking::Paper => Way::Paper(Box::new(Paper::new()?)),
        };
        let matches = planned.matches.clone();
        Some(Comparison { way, matches })
    }

    /// Contexts are kept as the product keeps them.
    pub fn is_off(&self) -> bool {
        matches!(self.way, Way::Lazy)
    }

    /// Whether the index of a thread's lane means nothing to other threads.
    pub fn has_own_indices(&self) -> bool {
        matches!(self.way, Way::Trees(_))
    }

    /// Whether ids of classes that are gone may be forgotten: recordings, plans and other ways to keep contexts name
    /// methods by their ids until the end.
    pub fn may_forget(&self, options: &Options) -> bool {
        self.is_off()
            && options.record != Record::Calls
            && options.encoding.adapt_after == 0
            && self.matches.is_none()
    }

    /// The context of a frame of `callee`, called from `from`; [`SiteId::ENTRY`] in context 0: the thread's first one.
    pub fn step<'t>(
        &self,
        own: impl FnOnce() -> Own<'t>,
        (context, site): (u64, SiteId),
        callee: MethodId,
    ) -> Option<Option<u64>> {
        let Way::Trees(trees) = &self.way else {
            return None;
        };
        let Ok(node) = u32::try_from(context) else {
            return Some(None);
        };
        let Own { mut tree, table } = own();
        let before = tree.bytes();
        let child = tree.child(Node(node), site, callee);
        table.store(tree.table() as u64, Ordering::Relaxed);
        trees.grown(tree.bytes() - before);
        Some(child.map(|child| child.0.into()))
    }

    /// As [`Comparison::step`].
    pub fn step_from<'t>(
        &self,
        own: impl FnOnce() -> Own<'t>,
        from: Here,
        callee: MethodId,
    ) -> Option<Option<u64>> {
        self.step(own, (from.context, from.site), callee)
    }

    /// The number of a frame's context.
    pub fn number<'t>(
        &self,
        core: &Core,
        own: impl FnOnce() -> Own<'t>,
        context: u64,
    ) -> Option<ContextId> {
        if !self.has_own_indices() {
            return None;
        }
        let Ok(node) = u32::try_from(context) else {
            return Some(ContextId::UNKNOWN);
        };
        let method = |site: SiteId| MethodId(core.method_of_site.get(site.0));
        let Own { mut tree, .. } = own();
        Some(tree.context(Node(node), &core.encoder, method))
    }

    /// The context of the frame of `method` with slot `slot`, where slots have it.
    pub fn in_slots(&self, core: &Core, slot: Slot, method: MethodId) -> Option<Option<u64>> {
        let Way::Paper(paper) = &self.way else {
            return None;
        };
        let number = locals::context(core, paper, slot, method);
        Some(number.map(|number| number.0))
    }

    /// A method with this slot was called at `site`, and the graph may change.
    pub fn entered(&self, core: &Core, slot: Slot, site: SiteId, callee: MethodId) {
        if let Way::Paper(paper) = &self.way {
            locals::enter(core, paper, slot, site, callee);
        }
    }

    /// The number of the frame of `method` with this slot.
    pub fn number_of(&self, core: &Core, slot: Slot, method: MethodId) -> ContextId {
        match &self.way {
            Way::Paper(paper) => locals::number(core, paper, slot, method),
            Way::Lazy | Way::Trees(_) => ContextId::UNKNOWN,
        }
    }

    /// A thread has ended that kept this.
    pub fn ended(&self, tree: &Tree) {
        if let Way::Trees(trees) = &self.way {
            trees.dropped(tree.bytes());
        }
    }

    /// Where Java code reads the graph; 0: it does not.
    pub fn graph(&self) -> usize {
        match &self.way {
            Way::Paper(paper) => paper.block(),
            Way::Lazy | Way::Trees(_) => 0,
        }
    }

    /// The most bytes of trees at one time.
    pub fn tree_bytes(&self) -> u64 {
        match &self.way {
            Way::Trees(trees) => trees.most_bytes(),
            Way::Lazy | Way::Paper(_) => 0,
        }
    }

    /// For the log's end, by name.
    pub fn stats(&self) -> Vec<(&'static str, u64)> {
        let mut stats = Vec::new();
        if let Some(matches) = &self.matches {
            stats.extend(matches.stats());
        }
        match &self.way {
            Way::Lazy => {}
            Way::Trees(trees) => stats.extend([
                ("trees.nodes", trees.nodes()),
                ("trees.memory", trees.most_bytes()),
            ]),
            Way::Paper(paper) => stats.extend(paper.stats()),
        }
        stats
    }

    /// What the user should hear at the end.
    pub fn warning(&self) -> Option<String> {
        self.matches.as_ref()?.warning()
    }
}
