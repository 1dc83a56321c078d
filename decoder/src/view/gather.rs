//! Sums by context of the page: events of a node that the page has are there with their number, those
//! below it in one sum for each kind.

use std::collections::HashMap;

use lucce_contentid::StackId;

use crate::Number;
use crate::joined::{Joined, LaneName, Meaning, Names, Run};
use crate::tree::Tree;

use super::columns::{Contexts, Nodes, Rest, Shares};
use super::heavy::{Heavy, ShownAt};

/// A context of the page.
type Key = (ShownAt, u32, Option<u32>);

pub struct Gathered<'p> {
    heavy: &'p Heavy,
    nodes: Nodes,
    /// The node that sums up what is below a node.
    rests: HashMap<u32, u32>,
    known: HashMap<Key, u32>,
    contexts: Contexts,
    /// By context: the run whose number it has.
    numbered_by: Vec<Option<u32>>,
    shares: HashMap<(u32, u32, u32), (u64, u64)>,
    /// By node of the page.
    stacks: Vec<StackId>,
    /// How many contexts are in sums only.
    small: u64,
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
            small: 0,
        }
    }

    pub fn add(&mut self, run: u32, of: &Run) {
        let mut last = None;
        for row in &of.counted {
            let key = self.key((row.node, row.kind, row.what));
            let context = self.context(key);
            match key.0 {
                ShownAt::Own(_) if of.has_numbers => self.number(
                    context,
                    run,
                    Number {
                        run: of.id,
                        id: row.id,
                    },
                ),
                ShownAt::Below(_) if last != Some(row.id) || !of.has_numbers => self.small += 1,
                ShownAt::Own(_) | ShownAt::Below(_) => {}
            }
            last = Some(row.id);
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

    fn key(&self, (node, kind, what): Meaning) -> Key {
        match self.heavy.place(node) {
            own @ ShownAt::Own(_) => (own, kind, what),
            below @ ShownAt::Below(_) => (below, kind, None),
        }
    }

    fn context(&mut self, key: Key) -> u32 {
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let (place, kind, what) = key;
        let (node, stack) = match place {
            ShownAt::Own(node) => (node, self.stacks.get(node as usize)),
            ShownAt::Below(parent) => (self.rest(parent), None),
        };
        let context = self.contexts.node.len() as u32;
        self.contexts.node.push(node);
        self.contexts.kind.push(kind);
        self.contexts.what.push(what.map_or(-1, |what| what as i32));
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
    pub fn of(&self, meaning: Meaning) -> Option<u32> {
        self.known.get(&self.key(meaning)).copied()
    }

    /// The context for events of a kind that are not told apart.
    pub fn others(&mut self, kind: u32) -> u32 {
        self.context((ShownAt::Below(0), kind, None))
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
            contexts: self.small,
        };
        (self.nodes, self.contexts, shares, rest)
    }
}

/// The content ids of the page's nodes.
fn stacks(tree: &Tree, heavy: &Heavy, names: &Names) -> Vec<StackId> {
    let mut stacks = Vec::with_capacity(heavy.kept().len());
    for node in heavy.kept() {
        let step = tree.step(*node).and_then(|(caller, key)| {
            let frame = names.frames.get(key.0)?;
            let ShownAt::Own(caller) = heavy.place(caller) else {
                return None;
            };
            let caller: &StackId = stacks.get(caller as usize)?;
            Some(caller.then(frame.id))
        });
        stacks.push(step.unwrap_or(StackId::EMPTY));
    }
    stacks
}
