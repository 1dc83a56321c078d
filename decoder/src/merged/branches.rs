//! Builds the call tree of a run's events, by method, class or line: top-down from the threads' entries, or inverted from
//! the events.
//!
//! ```text
//! main ── parse ── = String     inverted:   parse ── main
//!      └─ = byte[]                          main
//! ```
//! Branches below a threshold are summed up in their parent, so a node's amount is the sum of its own events, its branches
//! and its rest. Memory is bounded by the nodes of the calling context tree and by the branches above the threshold. No
//! function recurs, since stacks may have a hundred thousand frames.

use std::collections::{HashMap, VecDeque};

use crate::call_tree::NodeId;
use crate::frame::CodeOrigin;

use super::group_sums::FrameGroupKeys;
use super::{GroupKey, MergedCounter, MergedProfile};
use crate::measure::{GroupBy, Measure};

/// Options of a call tree.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CallTreeOptions {
    pub measure: Measure,
    /// The grouping of frames: class, package, method or line. With entries, frames are grouped by method, and callers of
    /// entries are left out.
    pub group_by: GroupBy,
    /// Whether only own code has branches; inverted: own code, and the frames of the events.
    pub own_only: bool,
    /// Whether the tree is inverted: from events to the threads' entries.
    pub inverted: bool,
    /// The minimum amount of a branch; smaller ones are summed up.
    pub min_amount: u64,
    /// Maximum depth of the tree.
    pub depth: usize,
}

/// One node of the call tree.
#[derive(Clone, PartialEq, Debug)]
pub struct CallTreeBranch {
    /// The index of its parent; `None`: the root, which has the total.
    pub parent: Option<usize>,
    pub key: Option<GroupKey>,
    pub amount: u64,
    /// Amounts of its own code by type; inverted: of stacks whose thread's first frame this is.
    pub own: Vec<(Option<u32>, u64)>,
    /// The sum of the omitted branches.
    pub rest: u64,
    /// Number of omitted branches.
    pub small: u64,
}

impl CallTreeBranch {
    fn new(parent: Option<usize>, key: Option<GroupKey>, amount: u64) -> Self {
        CallTreeBranch {
            parent,
            key,
            amount,
            own: Vec::new(),
            rest: 0,
            small: 0,
        }
    }

    /// The sum of its own amounts.
    #[must_use]
    pub fn own_amount(&self) -> u64 {
        sum_amounts(self.own.iter().map(|(_, amount)| *amount))
    }
}

impl MergedProfile {
    /// Builds the call tree of a run's events for which `is_wanted` is true. Parents precede their children, and siblings
    /// are sorted by amount, largest first. The first branch is the root.
    pub fn build_call_tree(
        &self,
        run: usize,
        drawing: &CallTreeOptions,
        is_wanted: impl Fn(&MergedCounter) -> bool,
    ) -> Vec<CallTreeBranch> {
        let rows = self
            .filter_counters(run, is_wanted)
            .map(|row| (row, row.amount(drawing.measure)));
        match drawing.inverted {
            true => BottomUpTree::new(self, drawing).build_branches(rows),
            false => TopDownTree::new(self, drawing, rows).build_branches(),
        }
    }
}

fn sum_amounts(amounts: impl Iterator<Item = u64>) -> u64 {
    amounts.fold(0, u64::saturating_add)
}

/// The branches that still have to be divided, with their content.
struct BranchBuilder<'d, T> {
    drawing: &'d CallTreeOptions,
    branches: Vec<CallTreeBranch>,
    pending: VecDeque<(usize, usize, T)>,
}

impl<'d, T> BranchBuilder<'d, T> {
    fn new(drawing: &'d CallTreeOptions, amount: u64, whole: T) -> Self {
        BranchBuilder {
            drawing,
            branches: vec![CallTreeBranch::new(None, None, amount)],
            pending: VecDeque::from([(0, 0, whole)]),
        }
    }

    fn branch_key(&self, at: usize) -> Option<GroupKey> {
        self.branches.get(at)?.key
    }

    /// The next branch to be divided, its depth and its content.
    fn next_branch(&mut self) -> Option<(usize, usize, T)> {
        self.pending.pop_front()
    }

    /// Divides a branch into its children, each with its amount and content.
    fn divide_branch(
        &mut self,
        (at, depth): (usize, usize),
        children: HashMap<GroupKey, (u64, T)>,
    ) {
        let mut children: Vec<_> = children.into_iter().collect();
        children.sort_by_key(|(key, (amount, _))| (std::cmp::Reverse(*amount), *key));
        for (key, (amount, of)) in children {
            let is_drawn = amount >= self.drawing.min_amount && depth < self.drawing.depth;
            if is_drawn {
                self.pending.push_back((self.branches.len(), depth + 1, of));
                self.branches
                    .push(CallTreeBranch::new(Some(at), Some(key), amount));
            } else if amount > 0
                && let Some(parent) = self.branches.get_mut(at)
            {
                parent.rest = parent.rest.saturating_add(amount);
                parent.small += 1;
            }
        }
    }

    fn set_own_amounts(&mut self, at: usize, own: impl Iterator<Item = (Option<u32>, u64)>) {
        let mut sums: HashMap<Option<u32>, u64> = HashMap::new();
        for (what, amount) in own.filter(|(_, amount)| *amount > 0) {
            let sum = sums.entry(what).or_default();
            *sum = sum.saturating_add(amount);
        }
        if let Some(branch) = self.branches.get_mut(at) {
            branch.own = sums.into_iter().collect();
            branch
                .own
                .sort_by_key(|(what, amount)| (std::cmp::Reverse(*amount), *what));
        }
    }
}

/// Which nodes have branches. The amounts of other nodes belong to the nearest caller with a branch.
struct BranchNodes(Option<Vec<bool>>);

impl BranchNodes {
    fn new(joined: &MergedProfile, drawing: &CallTreeOptions) -> BranchNodes {
        let is_own = |node| {
            let frame = joined.tree.caller_and_frame(NodeId(node));
            frame.is_some_and(|(_, frame)| {
                joined.names.frame_origin(frame) == CodeOrigin::Application
            })
        };
        let nodes = 0..joined.tree.len() as u32;
        BranchNodes(match (drawing.own_only, drawing.group_by) {
            (true, _) => Some(nodes.map(is_own).collect()),
            (false, GroupBy::Entry) => {
                let entries = joined.list_entries().into_iter();
                Some(entries.map(|entry| entry.is_some()).collect())
            }
            (false, _) => None,
        })
    }

    fn contains(&self, node: NodeId) -> bool {
        let all = self.0.as_ref();
        all.is_none_or(|nodes| nodes.get(node.0 as usize) == Some(&true))
    }
}

/// The branch of all stacks without own code.
const NO_OWN_CODE: GroupKey = GroupKey::Entry(None);

/// The tree from the threads' entries.
struct TopDownTree<'j> {
    keys: FrameGroupKeys<'j>,
    shown: BranchNodes,
    drawing: &'j CallTreeOptions,
    /// The amount of each node with all its callees.
    whole: Vec<u64>,
    own: HashMap<NodeId, Vec<(Option<u32>, u64)>>,
    /// The first child with an amount, by node; a linked list through `next_sibling`.
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl<'j> TopDownTree<'j> {
    fn new<'r>(
        joined: &'j MergedProfile,
        drawing: &'j CallTreeOptions,
        rows: impl Iterator<Item = (&'r MergedCounter, u64)>,
    ) -> Self {
        let size = joined.tree.len();
        let mut upright = TopDownTree {
            keys: FrameGroupKeys::new(joined, drawing.group_by),
            shown: BranchNodes::new(joined, drawing),
            drawing,
            whole: vec![0; size],
            own: HashMap::new(),
            first_child: vec![NONE; size],
            next_sibling: vec![NONE; size],
        };
        for (row, amount) in rows {
            upright
                .own
                .entry(row.node)
                .or_default()
                .push((row.what, amount));
            if let Some(sum) = upright.whole.get_mut(row.node.0 as usize) {
                *sum = sum.saturating_add(amount);
            }
        }
        for node in (1..size as u32).rev() {
            upright.add_to_caller(joined, NodeId(node));
        }
        upright
    }

    /// Adds a node's amount to its caller; the node's callees were added before.
    fn add_to_caller(&mut self, joined: &MergedProfile, node: NodeId) {
        let amount = self.whole.get(node.0 as usize).copied().unwrap_or_default();
        let Some((caller, _)) = joined.tree.caller_and_frame(node).filter(|_| amount > 0) else {
            return;
        };
        let caller = caller.0 as usize;
        if let (Some(sum), Some(first), Some(beside)) = (
            self.whole.get_mut(caller),
            self.first_child.get_mut(caller),
            self.next_sibling.get_mut(node.0 as usize),
        ) {
            *sum = sum.saturating_add(amount);
            *beside = std::mem::replace(first, node.0);
        }
    }

    fn child_nodes(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        let at = |list: &[u32], node: u32| list.get(node as usize).copied().filter(|n| *n != NONE);
        std::iter::successors(at(&self.first_child, node.0), move |node| {
            at(&self.next_sibling, *node)
        })
        .map(NodeId)
    }

    fn build_branches(self) -> Vec<CallTreeBranch> {
        let all = self.whole.first().copied().unwrap_or_default();
        let mut growing = BranchBuilder::new(self.drawing, all, vec![NodeId(0)]);
        while let Some((at, depth, mut nodes)) = growing.next_branch() {
            let mut children: HashMap<GroupKey, (u64, Vec<NodeId>)> = HashMap::new();
            let has_callees = growing.branch_key(at) != Some(NO_OWN_CODE);
            let mut next = 0;
            // Nodes without a branch are appended to the nodes of this one.
            while let Some(node) = nodes.get(next).copied().filter(|_| has_callees) {
                next += 1;
                for child in self.child_nodes(node) {
                    let Some(key) = self.keys.node_key(child) else {
                        continue;
                    };
                    if !self.shown.contains(child) {
                        nodes.push(child);
                        continue;
                    }
                    let amount = self.whole.get(child.0 as usize).copied();
                    let (sum, nodes) = children.entry(key).or_default();
                    *sum = sum.saturating_add(amount.unwrap_or_default());
                    nodes.push(child);
                }
            }
            if at == 0 {
                // Only the root has nodes without own callers.
                let hidden = nodes.split_off(nodes.len().min(1));
                let own = hidden.iter().flat_map(|node| self.own_amounts(*node));
                let amount = sum_amounts(own.map(|(_, amount)| amount));
                if amount > 0 {
                    children.insert(NO_OWN_CODE, (amount, hidden));
                }
            }
            let own = nodes.iter().flat_map(|node| self.own_amounts(*node));
            growing.set_own_amounts(at, own);
            growing.divide_branch((at, depth), children);
        }
        growing.branches
    }

    fn own_amounts(&self, node: NodeId) -> impl Iterator<Item = (Option<u32>, u64)> {
        self.own.get(&node).into_iter().flatten().copied()
    }
}

/// A stack during the walk from its event to its thread's first frame.
#[derive(Clone, Copy)]
struct AscendingStack {
    at: NodeId,
    what: Option<u32>,
    amount: u64,
}

/// The inverted tree.
struct BottomUpTree<'j> {
    merged: &'j MergedProfile,
    keys: FrameGroupKeys<'j>,
    shown: BranchNodes,
    drawing: &'j CallTreeOptions,
}

impl<'j> BottomUpTree<'j> {
    fn new(joined: &'j MergedProfile, drawing: &'j CallTreeOptions) -> Self {
        BottomUpTree {
            merged: joined,
            keys: FrameGroupKeys::new(joined, drawing.group_by),
            shown: BranchNodes::new(joined, drawing),
            drawing,
        }
    }

    /// The nearest node with a branch: the node itself, or a caller. Without one, the root.
    fn branch_node(&self, mut node: NodeId) -> NodeId {
        while let Some((caller, _)) = self.merged.tree.caller_and_frame(node) {
            if self.shown.contains(node) {
                break;
            }
            node = caller;
        }
        node
    }

    fn build_branches<'r>(
        self,
        rows: impl Iterator<Item = (&'r MergedCounter, u64)>,
    ) -> Vec<CallTreeBranch> {
        let rows = rows.map(|(row, amount)| AscendingStack {
            at: row.node,
            what: row.what,
            amount,
        });
        let all: Vec<_> = rows.collect();
        let whole = sum_amounts(all.iter().map(|one| one.amount));
        let mut growing = BranchBuilder::new(self.drawing, whole, all);
        while let Some((at, depth, stacks)) = growing.next_branch() {
            let mut children: HashMap<GroupKey, (u64, Vec<AscendingStack>)> = HashMap::new();
            let mut ended = Vec::new();
            for stack in stacks {
                let Some((caller, _)) = self.merged.tree.caller_and_frame(stack.at) else {
                    ended.push((stack.what, stack.amount));
                    continue;
                };
                let Some(key) = self.keys.node_key(stack.at) else {
                    continue;
                };
                let (sum, above) = children.entry(key).or_default();
                *sum = sum.saturating_add(stack.amount);
                above.push(AscendingStack {
                    at: self.branch_node(caller),
                    ..stack
                });
            }
            growing.set_own_amounts(at, ended.into_iter());
            growing.divide_branch((at, depth), children);
        }
        growing.branches
    }
}

#[cfg(test)]
mod branches_tests {
    use super::*;
    use crate::call_tree::TreeFrameKey;
    use crate::merged::MergedRun;
    use lucce_callgraph::ContextId;
    use lucce_contentid::{ContentDetail, FrameId, FrameText};

    use crate::merged::names::{FrameName, MethodName};

    /// Paths of methods of one class, and the bytes that each allocated.
    fn joined(paths: &[(&[&str], u64)]) -> MergedProfile {
        let mut joined = MergedProfile::default();
        let mut counted = Vec::new();
        for (path, value) in paths {
            let mut node = crate::call_tree::CallTree::ROOT;
            for name in *path {
                let class = joined.names.classes.intern_value("C".to_owned());
                let method = joined.names.methods.intern_value(MethodName {
                    class,
                    name: (*name).to_owned(),
                    file: None,
                });
                let text = FrameText {
                    class: "C",
                    method: name,
                    descriptor: "()V",
                    line: 1,
                };
                let id = FrameId::from_frame(text, ContentDetail::ByLine);
                let frame = joined.names.frames.intern_value(FrameName {
                    method,
                    line: 1,
                    id,
                    by_method: FrameId::from_frame(text, ContentDetail::ByMethod),
                });
                node = joined
                    .tree
                    .get_or_insert_child(node, TreeFrameKey(frame))
                    .unwrap();
            }
            counted.push(MergedCounter {
                node,
                kind: 0,
                what: None,
                tagged_thread: 0,
                is_idle: false,
                id: ContextId(1),
                count: 1,
                value: *value,
            });
        }
        joined.runs.push(MergedRun {
            id: None,
            counters: counted,
            unknown: 0,
            outside: 0,
            has_numbers: true,
        });
        joined
    }

    fn drawn(joined: &MergedProfile, inverted: bool, least: u64, depth: usize) -> Vec<String> {
        let drawing = CallTreeOptions {
            measure: Measure::Value,
            group_by: GroupBy::Method,
            own_only: false,
            inverted,
            min_amount: least,
            depth,
        };
        let branches = joined.build_call_tree(0, &drawing, |_| true);
        let lines = branches.iter().map(|branch| {
            let name = branch
                .key
                .map_or_else(|| "all".to_owned(), |key| joined.group_name(key));
            let parent = branch.parent.map_or(-1, |at| at as i64);
            format!(
                "{parent} {name} {} own {} rest {}/{}",
                branch.amount,
                branch.own_amount(),
                branch.rest,
                branch.small
            )
        });
        lines.collect()
    }

    #[test]
    fn branches_have_what_is_below_them() {
        let joined = joined(&[
            (&["main", "a"], 10),
            (&["main", "b", "a"], 5),
            (&["main"], 1),
            (&["main", "b"], 2),
        ]);
        assert_eq!(
            drawn(&joined, false, 0, 9),
            [
                "-1 all 18 own 0 rest 0/0",
                "0 C.main 18 own 1 rest 0/0",
                "1 C.a 10 own 10 rest 0/0",
                "1 C.b 7 own 2 rest 0/0",
                "3 C.a 5 own 5 rest 0/0",
            ]
        );
        assert_eq!(
            drawn(&joined, true, 0, 9),
            [
                "-1 all 18 own 0 rest 0/0",
                "0 C.a 15 own 0 rest 0/0",
                "0 C.b 2 own 0 rest 0/0",
                "0 C.main 1 own 1 rest 0/0",
                "1 C.main 10 own 10 rest 0/0",
                "1 C.b 5 own 0 rest 0/0",
                "2 C.main 2 own 2 rest 0/0",
                "5 C.main 5 own 5 rest 0/0",
            ]
        );
    }

    #[test]
    fn what_is_small_or_deep_is_summed_up() {
        let joined = joined(&[
            (&["main", "a", "x"], 10),
            (&["main", "b"], 3),
            (&["main", "c"], 2),
        ]);
        assert_eq!(
            drawn(&joined, false, 5, 2),
            [
                "-1 all 15 own 0 rest 0/0",
                "0 C.main 15 own 0 rest 5/2",
                "1 C.a 10 own 0 rest 10/1",
            ]
        );
    }

    #[test]
    fn deep_recursions_need_no_deep_stack() {
        let path = vec!["r"; 50_000];
        let joined = joined(&[(&path, 7)]);
        for inverted in [false, true] {
            let drawn = drawn(&joined, inverted, 1, usize::MAX);
            assert_eq!(drawn.len(), 50_001);
            assert!(drawn.iter().all(|line| line.contains(" 7 own")));
        }
    }
}
