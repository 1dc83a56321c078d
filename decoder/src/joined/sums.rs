//! Amounts of a run by context, type, thread, or by method, class, package and line with all that is called.

use std::collections::HashMap;

use crate::tree::{FrameKey, NodeId, Tree};

use super::{Counted, Joined, LaneName};

/// What events are summed up by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum By {
    /// By trace, with lines, and type.
    #[default]
    Context,
    Type,
    Thread,
    /// By all tags of the program's own that events are under.
    Tag,
    /// These four with all that is called: a stack counts once, however often it has the method.
    Class,
    Package,
    Method,
    Line,
}

/// What is added up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// In the kind's unit.
    Value,
    Count,
}

impl Measure {
    #[must_use]
    pub fn of(self, counted: &Counted) -> u64 {
        match self {
            Measure::Value => counted.value,
            Measure::Count => counted.count,
        }
    }
}

/// One of what events are summed up by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Key {
    Context(NodeId, Option<u32>),
    Type(Option<u32>),
    Thread(u32),
    Tag(u32),
    Class(u32),
    Package(u32),
    Method(u32),
    Line(u32),
}

impl Joined {
    /// The number of a kind of events; `None`: no run has any.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<u32> {
        let at = self
            .names
            .kinds
            .all()
            .iter()
            .position(|of| of.name == name)?;
        u32::try_from(at).ok()
    }

    /// What a run counted of the events that are wanted.
    pub fn counted(
        &self,
        run: usize,
        is_wanted: impl Fn(&Counted) -> bool,
    ) -> impl Iterator<Item = &Counted> {
        let counted = self.runs.get(run).into_iter().flat_map(|run| &run.counted);
        counted.filter(move |row| is_wanted(row))
    }

    /// The sums of a run's events that `is_wanted`, each with all that it calls.
    pub fn sums(
        &self,
        run: usize,
        measure: Measure,
        by: By,
        is_wanted: impl Fn(&Counted) -> bool,
    ) -> HashMap<Key, u64> {
        let counted = self.counted(run, is_wanted);
        let mut sums = HashMap::new();
        let own = |row: &Counted| match by {
            By::Context => Some(Key::Context(row.node, row.what)),
            By::Type => Some(Key::Type(row.what)),
            By::Thread => Some(Key::Thread(self.lane(row).thread)),
            By::Tag => Some(Key::Tag(self.lane(row).tags)),
            By::Class | By::Package | By::Method | By::Line => None,
        };
        let mut nodes: HashMap<NodeId, u64> = HashMap::new();
        for row in counted {
            let amount = measure.of(row);
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

    /// The sums of a run's events that `is_wanted`, each without what it calls: of a method those that
    /// happened in its own code. What has no frame at all has no method either.
    pub fn own_sums(
        &self,
        run: usize,
        measure: Measure,
        by: By,
        is_wanted: impl Fn(&Counted) -> bool,
    ) -> HashMap<Key, u64> {
        let keys = match by {
            By::Context | By::Type | By::Thread | By::Tag => {
                return self.sums(run, measure, by, is_wanted);
            }
            By::Class | By::Package | By::Method | By::Line => Keys::new(self, by),
        };
        let mut sums: HashMap<Key, u64> = HashMap::new();
        for row in self.counted(run, is_wanted) {
            if let Some(key) = keys.of(row.node) {
                let sum = sums.entry(key).or_default();
                *sum = sum.saturating_add(measure.of(row));
            }
        }
        sums
    }

    /// Adds what nodes have to each frame of their paths, once to those that are one by what is asked for.
    fn add_frames(&self, nodes: &HashMap<NodeId, u64>, by: By, sums: &mut HashMap<Key, u64>) {
        let mut whole = vec![0_u64; self.tree.len()];
        for (node, amount) in nodes {
            if let Some(sum) = whole.get_mut(node.0 as usize) {
                *sum = *amount;
            }
        }
        for node in (1..self.tree.len()).rev() {
            let amount = whole.get(node).copied().unwrap_or_default();
            if let Some((caller, _)) = self.tree.step(NodeId(node as u32))
                && let Some(sum) = whole.get_mut(caller.0 as usize)
            {
                *sum = sum.saturating_add(amount);
            }
        }
        let keys = Keys::new(self, by);
        for (node, amount) in whole
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, amount)| **amount > 0)
        {
            let node = NodeId(node as u32);
            if let Some(key) = keys.of(node)
                && !keys.is_called_by(node, key)
            {
                let sum = sums.entry(key).or_default();
                *sum = sum.saturating_add(*amount);
            }
        }
    }

    /// The thread and the tags of an event.
    #[must_use]
    pub fn lane(&self, row: &Counted) -> LaneName {
        let none = LaneName {
            thread: u32::MAX,
            tags: u32::MAX,
        };
        self.names.lanes.get(row.lane).copied().unwrap_or(none)
    }

    /// Whether a frame of the path is one that `is_it`, by node; asked for each different frame once.
    pub fn through(&self, is_it: impl Fn(&str) -> bool) -> Vec<bool> {
        let mut known: HashMap<FrameKey, bool> = HashMap::new();
        let mut through = vec![false; self.tree.len()];
        for node in 1..self.tree.len() {
            let Some((caller, key)) = self.tree.step(NodeId(node as u32)) else {
                continue;
            };
            let own = *known.entry(key).or_insert_with(|| {
                let frame = self.names.shown(key);
                frame.is_some_and(|frame| is_it(&frame.called()))
            });
            let above = through.get(caller.0 as usize).copied().unwrap_or_default();
            if let Some(is) = through.get_mut(node) {
                *is = own || above;
            }
        }
        through
    }

    /// What a person calls it.
    #[must_use]
    pub fn name(&self, key: Key) -> String {
        let names = &self.names;
        let text = |found: Option<&String>, none: &str| {
            found.map_or_else(|| none.to_owned(), String::clone)
        };
        match key {
            Key::Context(_, what) | Key::Type(what) => {
                text(what.and_then(|what| names.types.get(what)), "(no type)")
            }
            Key::Thread(thread) => text(names.threads.get(thread), "?"),
            Key::Tag(tags) => text(names.tags.get(tags), "?"),
            Key::Class(class) => text(names.classes.get(class), "?"),
            Key::Package(class) => {
                let class = names.classes.get(class).map_or("", String::as_str);
                package(class).unwrap_or("(no package)").to_owned()
            }
            Key::Method(method) => {
                let method = names.methods.get(method);
                let named = method
                    .and_then(|of| Some(format!("{}.{}", names.classes.get(of.class)?, of.name)));
                named.unwrap_or_else(|| "?".to_owned())
            }
            Key::Line(frame) => {
                let frame = names.shown(FrameKey(frame));
                frame.map_or_else(|| "?".to_owned(), |frame| frame.to_string())
            }
        }
    }
}

fn package(class: &str) -> Option<&str> {
    class.rsplit_once('.').map(|(package, _)| package)
}

/// What each frame counts for.
pub(super) struct Keys<'j> {
    tree: &'j Tree,
    /// By the frame's number.
    keys: Vec<Key>,
}

impl<'j> Keys<'j> {
    pub(super) fn new(joined: &'j Joined, by: By) -> Self {
        let names = &joined.names;
        // A package, a method and a line are named by the first one that a person calls the same.
        let mut packages: HashMap<&str, u32> = HashMap::new();
        let of_class: Vec<u32> = (0..)
            .zip(names.classes.all())
            .map(|(number, class)| {
                *packages
                    .entry(package(class).unwrap_or_default())
                    .or_insert(number)
            })
            .collect();
        let mut methods: HashMap<(u32, &str), u32> = HashMap::new();
        let of_method: Vec<u32> = (0..)
            .zip(names.methods.all())
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
            By::Class => Key::Class(class(frame.method)),
            By::Package => {
                let class = class(frame.method);
                Key::Package(of_class.get(class as usize).copied().unwrap_or(class))
            }
            By::Line => {
                let line = lines.entry((frame.method, frame.line));
                Key::Line(*line.or_insert(number))
            }
            _ => {
                let method = of_method.get(frame.method as usize).copied();
                Key::Method(method.unwrap_or(frame.method))
            }
        };
        Keys {
            tree: &joined.tree,
            keys: (0..).zip(names.frames.all()).map(key).collect(),
        }
    }

    pub(super) fn of(&self, node: NodeId) -> Option<Key> {
        let (_, frame) = self.tree.step(node)?;
        self.keys.get(frame.0 as usize).copied()
    }

    fn is_called_by(&self, node: NodeId, key: Key) -> bool {
        let mut at = node;
        while let Some((caller, _)) = self.tree.step(at) {
            if self.of(caller) == Some(key) {
                return true;
            }
            at = caller;
        }
        false
    }
}
