//! Sums events by context of the page. Events at nodes of the page keep their context ids; events below them are in one
//! sum for each kind.

use std::collections::{HashMap, HashSet};

use lucce_contentid::StackId;

use lucce_decoder::ContextNumber;
use lucce_decoder::{CallTree, NodeId, TreeFrameKey};
use lucce_decoder::{EventMeaning, MergedNames, MergedProfile, MergedRun, TaggedThread};

use super::columns::{ContextColumns, CounterColumns, NodeColumns, OmittedContexts};
use super::heavy_nodes::{HeavyNodes, NodePlacement};
use super::own_paths::{OwnPath, OwnPaths};

/// Maximum number of sums of omitted contexts that are divided by own code; further ones are not.
const MAX_OWN_SUMS: usize = 20_000;

/// A context of the page, or a sum of omitted contexts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PageContext {
    place: NodePlacement,
    kind: u32,
    what: Option<u32>,
    /// Idle events and others have sums of their own.
    is_idle: bool,
    /// The own code of omitted contexts.
    own: OwnPath,
}

impl PageContext {
    fn without_own_code(self) -> PageContext {
        PageContext {
            own: OwnPath::default(),
            ..self
        }
    }
}

pub struct PageSums<'p> {
    heavy: &'p HeavyNodes,
    names: &'p MergedNames,
    nodes: NodeColumns,
    /// The nodes of sums by caller and frame; no frame: the rest node.
    rest_nodes: HashMap<(u32, Option<TreeFrameKey>), u32>,
    own_paths: OwnPaths,
    /// Number of sums that are divided by own code.
    own_sums: usize,
    context_indexes: HashMap<PageContext, u32>,
    contexts: ContextColumns,
    /// The run of each context's id.
    numbered_by: Vec<Option<u32>>,
    shares: HashMap<(u32, u32, u32), (u64, u64)>,
    /// Content ids by node of the page.
    stacks: Vec<StackId>,
    /// The contexts that are only in sums.
    omitted: HashSet<NodeId>,
}

impl<'p> PageSums<'p> {
    pub fn new(joined: &'p MergedProfile, heavy: &'p HeavyNodes) -> Self {
        let (tree, names) = (&joined.tree, &joined.names);
        PageSums {
            nodes: NodeColumns::new(tree, heavy, names),
            stacks: page_stack_ids(tree, heavy, names),
            own_paths: OwnPaths::new(joined, heavy),
            own_sums: 0,
            heavy,
            names,
            rest_nodes: HashMap::new(),
            context_indexes: HashMap::new(),
            contexts: ContextColumns::default(),
            numbered_by: Vec::new(),
            shares: HashMap::new(),
            omitted: HashSet::new(),
        }
    }

    pub fn add_run(&mut self, run: u32, of: &MergedRun) {
        for row in &of.counters {
            let key = self.page_context(row.event_meaning());
            let context = self.context_index(key);
            match key.place {
                NodePlacement::Own(_) if of.has_numbers => self.set_number(
                    context,
                    run,
                    ContextNumber {
                        run: of.id,
                        id: row.id,
                    },
                ),
                NodePlacement::Below(_) => {
                    self.omitted.insert(row.node);
                }
                NodePlacement::Own(_) => {}
            }
            let sums = self
                .shares
                .entry((context, run, row.tagged_thread))
                .or_default();
            sums.0 = sums.0.saturating_add(row.count);
            sums.1 = sums.1.saturating_add(row.value);
        }
    }

    /// Sets the context id of a context. The newest run's id wins; within a run the smallest, which comes first.
    fn set_number(&mut self, context: u32, run: u32, number: ContextNumber) {
        let by = self.numbered_by.get_mut(context as usize);
        let text = self.contexts.number.get_mut(context as usize);
        if let (Some(by), Some(text)) = (by, text)
            && *by != Some(run)
        {
            *by = Some(run);
            *text = number.to_string();
        }
    }

    fn page_context(&self, meaning: EventMeaning) -> PageContext {
        let EventMeaning {
            node,
            kind,
            what,
            is_idle,
        } = meaning;
        let place = self.heavy.node_placement(node);
        PageContext {
            place,
            kind,
            what: what.filter(|_| matches!(place, NodePlacement::Own(_))),
            is_idle,
            own: self.own_paths.find_path(node),
        }
    }

    fn context_index(&mut self, key: PageContext) -> u32 {
        if let Some(known) = self.context_indexes.get(&key) {
            return *known;
        }
        if !key.own.is_empty() {
            if self.own_sums >= MAX_OWN_SUMS {
                return self.context_index(key.without_own_code());
            }
            self.own_sums += 1;
        }
        let (node, stack) = match key.place {
            NodePlacement::Own(node) => (node, self.stacks.get(node as usize)),
            NodePlacement::Below(parent) => (self.rest_node(parent, key.own), None),
        };
        let context = self.contexts.node.len() as u32;
        self.contexts.node.push(node);
        self.contexts.kind.push(key.kind);
        let what = key.what.map_or(-1, |what| what as i32);
        self.contexts.what.push(what);
        if key.is_idle {
            self.contexts.idle.push(context);
        }
        self.contexts.number.push(String::new());
        self.numbered_by.push(None);
        self.contexts
            .stack
            .push(stack.map_or_else(String::new, ToString::to_string));
        self.context_indexes.insert(key, context);
        context
    }

    /// The node of a sum: below the caller's rest node, the frames of own code with further rest nodes below them.
    fn rest_node(&mut self, caller: u32, own: OwnPath) -> u32 {
        let frames = [own.outermost, own.innermost.filter(|_| own.has_several())];
        let mut node = self.sum_node(caller, None);
        for frame in frames.into_iter().flatten() {
            let of_frame = self.sum_node(node, Some(frame));
            node = self.sum_node(of_frame, None);
        }
        node
    }

    fn sum_node(&mut self, caller: u32, frame: Option<TreeFrameKey>) -> u32 {
        let (nodes, names) = (&mut self.nodes, self.names);
        *self.rest_nodes.entry((caller, frame)).or_insert_with(|| {
            nodes.push_node(caller, frame.and_then(|key| names.frames.get(key.0)))
        })
    }

    /// The context of the page that an event belongs to.
    pub fn find_context(&self, meaning: EventMeaning) -> Option<u32> {
        let key = self.page_context(meaning);
        let of_own = self.context_indexes.get(&key);
        of_own
            .or_else(|| self.context_indexes.get(&key.without_own_code()))
            .copied()
    }

    /// The context for all omitted events of a kind.
    pub fn rest_context(&mut self, kind: u32, is_idle: bool) -> u32 {
        self.context_index(PageContext {
            place: NodePlacement::Below(0),
            kind,
            what: None,
            is_idle,
            own: OwnPath::default(),
        })
    }

    /// Converts the sums to columns. `tagged_threads`: thread and tags, indexed by `MergedCounter::tagged_thread`.
    pub fn into_columns(
        self,
        tagged_threads: &[TaggedThread],
    ) -> (NodeColumns, ContextColumns, CounterColumns, OmittedContexts) {
        let mut rows: Vec<_> = self.shares.into_iter().collect();
        rows.sort_unstable();
        let mut shares = CounterColumns::default();
        let has_tags = tagged_threads.iter().any(|thread| thread.tags > 0);
        for ((context, run, thread), (count, value)) in rows {
            let thread = tagged_threads.get(thread as usize);
            shares.context.push(context);
            shares.run.push(run);
            shares.thread.push(thread.map_or(0, |thread| thread.thread));
            if has_tags {
                shares.tag.push(thread.map_or(0, |thread| thread.tags));
            }
            shares.count.push(count);
            shares.value.push(value);
        }
        let rest = OmittedContexts {
            contexts: self.omitted.len() as u64,
            mixed: self.own_sums >= MAX_OWN_SUMS,
        };
        (self.nodes, self.contexts, shares, rest)
    }
}

/// The content ids of the page's nodes.
fn page_stack_ids(tree: &CallTree, heavy: &HeavyNodes, names: &MergedNames) -> Vec<StackId> {
    let id = |key: TreeFrameKey| names.frames.get(key.0).map(|frame| frame.id);
    let all = tree.stack_ids(id);
    let kept = heavy.kept_nodes().iter();
    kept.map(|node| all.get(node.0 as usize).copied().unwrap_or(StackId::EMPTY))
        .collect()
}
