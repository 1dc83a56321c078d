//! Sums a run's amounts by context, type or thread, or by method, class, package or line with all callees.

use std::collections::HashMap;

use crate::call_tree::{CallTree, NodeId, TreeFrameKey};
use crate::frame::CodeOrigin;
use crate::measure::{GroupBy, Measure};

use super::{MergedCounter, MergedProfile, TaggedThread};

/// A group of a grouping.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum GroupKey {
    Context(NodeId, Option<u32>),
    Type(Option<u32>),
    Thread(u32),
    Tag(u32),
    Class(u32),
    Package(u32),
    Method(u32),
    Line(u32),
    /// The method of the entry; `None`: no frame is own code.
    Entry(Option<u32>),
}

impl MergedProfile {
    /// The number of a kind of events; `None`: no run has this kind.
    #[must_use]
    pub fn find_kind(&self, name: &str) -> Option<u32> {
        let at = self
            .names
            .kinds
            .as_slice()
            .iter()
            .position(|of| of.name == name)?;
        u32::try_from(at).ok()
    }

    /// The counters of a run for which `is_wanted` is true.
    pub fn filter_counters(
        &self,
        run: usize,
        is_wanted: impl Fn(&MergedCounter) -> bool,
    ) -> impl Iterator<Item = &MergedCounter> {
        let counted = self.runs.get(run).into_iter().flat_map(|run| &run.counters);
        counted.filter(move |row| is_wanted(row))
    }

    /// Sums by group the events for which `is_wanted` is true, with all callees.
    pub fn sum_by_group(
        &self,
        run: usize,
        measure: Measure,
        by: GroupBy,
        is_wanted: impl Fn(&MergedCounter) -> bool,
    ) -> HashMap<GroupKey, u64> {
        let counted = self.filter_counters(run, is_wanted);
        let mut sums = HashMap::new();
        let entries = match by {
            GroupBy::Entry => self.list_entries(),
            _ => Vec::new(),
        };
        let entry = |node: NodeId| entries.get(node.0 as usize).copied().flatten();
        let own = |row: &MergedCounter| match by {
            GroupBy::Context => Some(GroupKey::Context(row.node, row.what)),
            GroupBy::Type => Some(GroupKey::Type(row.what)),
            GroupBy::Thread => Some(GroupKey::Thread(self.tagged_thread(row).thread)),
            GroupBy::Tag => Some(GroupKey::Tag(self.tagged_thread(row).tags)),
            GroupBy::Entry => Some(GroupKey::Entry(entry(row.node))),
            GroupBy::Class | GroupBy::Package | GroupBy::Method | GroupBy::Line => None,
        };
        let mut nodes: HashMap<NodeId, u64> = HashMap::new();
        for row in counted {
            let amount = row.amount(measure);
            let sum = match own(row) {
                Some(key) => sums.entry(key).or_default(),
                None => nodes.entry(row.node).or_default(),
            };
            *sum = sum.saturating_add(amount);
        }
        if !nodes.is_empty() {
            self.add_frames(&nodes, by, &mut sums);
        }
        sums
    }

    /// Sums by group the events for which `is_wanted` is true, without callees: a method has only the events of its own
    /// code. Events without frames belong to no method.
    pub fn own_sums_by_group(
        &self,
        run: usize,
        measure: Measure,
        by: GroupBy,
        is_wanted: impl Fn(&MergedCounter) -> bool,
    ) -> HashMap<GroupKey, u64> {
        let keys = match by {
            GroupBy::Context | GroupBy::Type | GroupBy::Entry | GroupBy::Thread | GroupBy::Tag => {
                return self.sum_by_group(run, measure, by, is_wanted);
            }
            GroupBy::Class | GroupBy::Package | GroupBy::Method | GroupBy::Line => {
                FrameGroupKeys::new(self, by)
            }
        };
        let mut sums: HashMap<GroupKey, u64> = HashMap::new();
        for row in self.filter_counters(run, is_wanted) {
            if let Some(key) = keys.node_key(row.node) {
                let sum = sums.entry(key).or_default();
                *sum = sum.saturating_add(row.amount(measure));
            }
        }
        sums
    }

    /// The entry of each node: the method of the outermost frame of own code, with its number as in [`GroupKey::Method`].
    #[must_use]
    pub fn list_entries(&self) -> Vec<Option<u32>> {
        let keys = FrameGroupKeys::new(self, GroupBy::Method);
        let mut entries: Vec<Option<u32>> = vec![None; self.tree.len()];
        for node in 1..self.tree.len() {
            let at = NodeId(node as u32);
            let Some((caller, frame)) = self.tree.caller_and_frame(at) else {
                continue;
            };
            let inherited = entries.get(caller.0 as usize).copied().flatten();
            let is_own = || self.names.frame_origin(frame) == CodeOrigin::Application;
            let found = inherited.or_else(|| match keys.node_key(at) {
                Some(GroupKey::Method(method)) if is_own() => Some(method),
                _ => None,
            });
            if let Some(entry) = entries.get_mut(node) {
                *entry = found;
            }
        }
        entries
    }

    /// Adds the amounts of nodes to the groups of their paths' frames, once for each group of a path.
    fn add_frames(
        &self,
        nodes: &HashMap<NodeId, u64>,
        by: GroupBy,
        sums: &mut HashMap<GroupKey, u64>,
    ) {
        let mut whole = vec![0_u64; self.tree.len()];
        for (node, amount) in nodes {
            if let Some(sum) = whole.get_mut(node.0 as usize) {
                *sum = *amount;
            }
        }
        for node in (1..self.tree.len()).rev() {
            let amount = whole.get(node).copied().unwrap_or_default();
            if let Some((caller, _)) = self.tree.caller_and_frame(NodeId(node as u32))
                && let Some(sum) = whole.get_mut(caller.0 as usize)
            {
                *sum = sum.saturating_add(amount);
            }
        }
        let keys = FrameGroupKeys::new(self, by);
        for (node, amount) in whole
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, amount)| **amount > 0)
        {
            let node = NodeId(node as u32);
            if let Some(key) = keys.node_key(node)
                && !keys.is_called_by(node, key)
            {
                let sum = sums.entry(key).or_default();
                *sum = sum.saturating_add(*amount);
            }
        }
    }

    /// The thread and the tags of an event.
    #[must_use]
    pub fn tagged_thread(&self, row: &MergedCounter) -> TaggedThread {
        let none = TaggedThread {
            thread: u32::MAX,
            tags: u32::MAX,
        };
        self.names
            .tagged_threads
            .get(row.tagged_thread)
            .copied()
            .unwrap_or(none)
    }

    /// Whether a path has a frame for which `is_it` is true, by node. Calls `is_it` once for each different frame.
    pub fn mark_paths_through(&self, is_it: impl Fn(&str) -> bool) -> Vec<bool> {
        let mut cache: HashMap<TreeFrameKey, bool> = HashMap::new();
        let mut through = vec![false; self.tree.len()];
        for node in 1..self.tree.len() {
            let Some((caller, key)) = self.tree.caller_and_frame(NodeId(node as u32)) else {
                continue;
            };
            let own = *cache.entry(key).or_insert_with(|| {
                let frame = self.names.resolve_frame(key);
                frame.is_some_and(|frame| is_it(&frame.qualified_method()))
            });
            let above = through.get(caller.0 as usize).copied().unwrap_or_default();
            if let Some(is) = through.get_mut(node) {
                *is = own || above;
            }
        }
        through
    }

    /// The shown name of a group.
    #[must_use]
    pub fn group_name(&self, key: GroupKey) -> String {
        let names = &self.names;
        let text =
            |name: Option<&String>, none: &str| name.map_or_else(|| none.to_owned(), String::clone);
        match key {
            GroupKey::Context(_, what) | GroupKey::Type(what) => {
                text(what.and_then(|what| names.types.get(what)), "(no type)")
            }
            GroupKey::Thread(thread) => text(names.threads.get(thread), "?"),
            GroupKey::Tag(tags) => text(names.tags.get(tags), "?"),
            GroupKey::Class(class) => text(names.classes.get(class), "?"),
            GroupKey::Package(class) => {
                let class = names.classes.get(class).map_or("", String::as_str);
                package_name(class).unwrap_or("(no package)").to_owned()
            }
            GroupKey::Entry(None) => "(no own code)".to_owned(),
            GroupKey::Method(method) | GroupKey::Entry(Some(method)) => {
                let method = names.methods.get(method);
                let named = method
                    .and_then(|of| Some(format!("{}.{}", names.classes.get(of.class)?, of.name)));
                named.unwrap_or_else(|| "?".to_owned())
            }
            GroupKey::Line(frame) => {
                let frame = names.resolve_frame(TreeFrameKey(frame));
                frame.map_or_else(|| "?".to_owned(), |frame| frame.to_string())
            }
        }
    }
}

fn package_name(class: &str) -> Option<&str> {
    class.rsplit_once('.').map(|(package, _)| package)
}

/// The group of each frame.
pub(super) struct FrameGroupKeys<'j> {
    tree: &'j CallTree,
    /// Groups by the frame's number.
    keys: Vec<GroupKey>,
}

impl<'j> FrameGroupKeys<'j> {
    pub(super) fn new(joined: &'j MergedProfile, by: GroupBy) -> Self {
        let names = &joined.names;
        // A package, method or line group is named by its first frame; groups are equal by their shown names.
        let mut packages: HashMap<&str, u32> = HashMap::new();
        let of_class: Vec<u32> = (0..)
            .zip(names.classes.as_slice())
            .map(|(number, class)| {
                *packages
                    .entry(package_name(class).unwrap_or_default())
                    .or_insert(number)
            })
            .collect();
        let mut methods: HashMap<(u32, &str), u32> = HashMap::new();
        let of_method: Vec<u32> = (0..)
            .zip(names.methods.as_slice())
            .map(|(number, method)| {
                *methods
                    .entry((method.class, &method.name))
                    .or_insert(number)
            })
            .collect();
        let mut lines: HashMap<(u32, i32), u32> = HashMap::new();
        let class = |method: u32| {
            names
                .methods
                .get(method)
                .map_or(u32::MAX, |method| method.class)
        };
        let key = |(number, frame): (u32, &super::names::FrameName)| match by {
            GroupBy::Class => GroupKey::Class(class(frame.method)),
            GroupBy::Package => {
                let class = class(frame.method);
                GroupKey::Package(of_class.get(class as usize).copied().unwrap_or(class))
            }
            GroupBy::Line => {
                let line = lines.entry((frame.method, frame.line));
                GroupKey::Line(*line.or_insert(number))
            }
            _ => {
                let method = of_method.get(frame.method as usize).copied();
                GroupKey::Method(method.unwrap_or(frame.method))
            }
        };
        FrameGroupKeys {
            tree: &joined.tree,
            keys: (0..).zip(names.frames.as_slice()).map(key).collect(),
        }
    }

    pub(super) fn node_key(&self, node: NodeId) -> Option<GroupKey> {
        let (_, frame) = self.tree.caller_and_frame(node)?;
        self.keys.get(frame.0 as usize).copied()
    }

    fn is_called_by(&self, node: NodeId, key: GroupKey) -> bool {
        let mut at = node;
        while let Some((caller, _)) = self.tree.caller_and_frame(at) {
            if self.node_key(caller) == Some(key) {
                return true;
            }
            at = caller;
        }
        false
    }
}
