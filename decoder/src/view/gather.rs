//! Sums by context of the page: events of a node that the page has are there with their number, those
//! below it in one sum for each kind.

use std::collections::{HashMap, HashSet};

use lucce_contentid::StackId;

use crate::Number;
use crate::joined::{EventMeaning, Joined, LaneName, Names, Run};
use crate::tree::{FrameKey, NodeId, Tree};

use super::columns::{Contexts, Nodes, Rest, Shares};
use super::heavy::{Heavy, ShownAt};

/// A context of the page, or a sum of what is not shown one by one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PageContext {
    place: ShownAt,
    kind: u32,
    what: Option<u32>,
    /// Idle events and others have sums of their own.
    is_idle: bool,
}

pub struct Gathered<'p> {
    heavy: &'p Heavy,
    nodes: Nodes,
    /// The node that sums up what is below a node.
    rests: HashMap<u32, u32>,
    known: HashMap<PageContext, u32>,
    contexts: Contexts,
    /// By context: the run whose number it has.
    numbered_by: Vec<Option<u32>>,
    shares: HashMap<(u32, u32, u32), (u64, u64)>,
    /// By node of the page.
    stacks: Vec<StackId>,
    /// The contexts that are in sums only.
    small: HashSet<NodeId>,
}

impl<'p> Gathered<'p> {
    pub fn new(joined: &Joined, heavy: &'p Heavy) -> Self {
        let (tree, names) = (&joined.tree, &joined.names);
        Gathered {
            nodes: Nodes::new(tree, heavy, names),
            stacks: stacks(tree, heavy, names),
            heavy,
            rests: HashMap::new(),
            known: HashMap::new(),
            contexts: Contexts::default(),
            numbered_by: Vec::new(),
            shares: HashMap::new(),
            small: HashSet::new(),
        }
    }

    pub fn add(&mut self, run: u32, of: &Run) {
        for row in &of.counted {
            let key = self.context_of(row.meaning());
            let context = self.context(key);
            match key.place {
                ShownAt::Own(_) if of.has_numbers => self.number(
                    context,
                    run,
                    Number {
                        run: of.id,
                        id: row.id,
                    },
                ),
                ShownAt::Below(_) => {
                    self.small.insert(row.node);
                }
                ShownAt::Own(_) => {}
            }
            let sums = self.shares.entry((context, run, row.lane)).or_default();
            sums.0 = sums.0.saturating_add(row.count);
            sums.1 = sums.1.saturating_add(row.value);
        }
    }

    /// Of several numbers of a context the newest run's count, and of those the smallest, which come first.
    fn number(&mut self, context: u32, run: u32, number: Number) {
        let by = self.numbered_by.get_mut(context as usize);
        let text = self.contexts.number.get_mut(context as usize);
        if let (Some(by), Some(text)) = (by, text)
            && *by != Some(run)
        {
            *by = Some(run);
            *text = number.to_string();
        }
    }

    fn context_of(&self, meaning: EventMeaning) -> PageContext {
        let EventMeaning {
            node,
            kind,
            what,
            is_idle,
        } = meaning;
        let place = self.heavy.place(node);
        PageContext {
            place,
            kind,
            what: what.filter(|_| matches!(place, ShownAt::Own(_))),
            is_idle,
        }
    }

    fn context(&mut self, key: PageContext) -> u32 {
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let (node, stack) = match key.place {
            ShownAt::Own(node) => (node, self.stacks.get(node as usize)),
            ShownAt::Below(parent) => (self.rest(parent), None),
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
        self.known.insert(key, context);
        context
    }

    fn rest(&mut self, parent: u32) -> u32 {
        let nodes = &mut self.nodes;
        *self
            .rests
            .entry(parent)
            .or_insert_with(|| nodes.rest(parent))
    }

    /// The context of the page that an event belongs to.
    pub fn of(&self, meaning: EventMeaning) -> Option<u32> {
        self.known.get(&self.context_of(meaning)).copied()
    }

    /// The context for events of a kind that are not told apart.
    pub fn others(&mut self, kind: u32, is_idle: bool) -> u32 {
        self.context(PageContext {
            place: ShownAt::Below(0),
            kind,
            what: None,
            is_idle,
        })
    }

    /// `lanes`: the thread and the tags of each.
    pub fn columns(self, lanes: &[LaneName]) -> (Nodes, Contexts, Shares, Rest) {
        let mut rows: Vec<_> = self.shares.into_iter().collect();
        rows.sort_unstable();
        let mut shares = Shares::default();
        let has_tags = lanes.iter().any(|lane| lane.tags > 0);
        for ((context, run, lane), (count, value)) in rows {
            let lane = lanes.get(lane as usize);
            shares.context.push(context);
            shares.run.push(run);
            shares.thread.push(lane.map_or(0, |lane| lane.thread));
            if has_tags {
                shares.tag.push(lane.map_or(0, |lane| lane.tags));
            }
            shares.count.push(count);
            shares.value.push(value);
        }
        let rest = Rest {
            contexts: self.small.len() as u64,
        };
        (self.nodes, self.contexts, shares, rest)
    }
}

/// The content ids of the page's nodes.
fn stacks(tree: &Tree, heavy: &Heavy, names: &Names) -> Vec<StackId> {
    let id = |key: FrameKey| names.frames.get(key.0).map(|frame| frame.id);
    let all = tree.stacks(id);
    let kept = heavy.kept().iter();
    kept.map(|node| all.get(node.0 as usize).copied().unwrap_or(StackId::EMPTY))
        .collect()
}
