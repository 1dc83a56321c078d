//! The ∞-CCF in linear space: paths without branches are one edge, as in a suffix tree.
//!
//! A k-CCF may be k times as large as the CCT (Theorem 1), the ∞-CCF as large as its depth. But it
//! branches in fewer places than the CCT has nodes, and the k-CCF is its part down to level k
//! (Section 4.1, property 4). So one compact forest tells the sizes of all k-CCFs, pruned k-CCFs and
//! x%-similar forests, and who the hot k-contexts are, without building any of them.
//!
//! Construction: contexts are sorted by their labels read backwards, by prefix doubling (the order of
//! suffixes of length 2^(i+1) from the order of those of length 2^i and of the ancestor 2^i levels
//! above); the lengths of common prefixes of neighbours make the tree. Time O(n log n log d), space
//! O(n log d) while it is built, for n nodes and depth d.

use crate::forest::LabelForest;
use crate::ids::ForestNodeId;
use crate::similar::is_similar;

/// All k-CCFs of one CCT.
pub struct CompactForest {
    edges: Vec<CompactEdge>,
}

/// A path of the ∞-CCF without branches. It holds the levels `from ..= to`, all with one counter.
#[derive(Clone, Copy, Debug)]
struct CompactEdge {
    parent: Option<u32>,
    from: u32,
    to: u32,
    count: u64,
    /// What is counted by the context that ends at `to`, if one does.
    own: u64,
    children: u32,
}

/// How large an x%-similar ∞-CCF is.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SimilarForestSize {
    pub nodes: u64,
    /// The sum of the trees' depths.
    pub depths: u64,
    pub trees: u64,
}

impl CompactForest {
    /// From a CCT.
    #[must_use]
    pub fn new<C>(tree: &LabelForest<C>) -> Self {
        let order = ReverseLabelOrder::new(tree);
        let mut builder = CompactForestBuilder::default();
        let mut before = None;
        for &node in &order.sorted {
            let shared = before.map_or(0, |before| order.count_shared_labels(before, node));
            builder.add_context(shared, tree.level(node) + 1, tree.count(node));
            before = Some(node);
        }
        builder.close_edges(0);
        CompactForest {
            edges: builder.edges,
        }
    }

    /// Nodes of the k-CCF for k = 0, 1, … up to the depth of the CCT. The last is the ∞-CCF.
    #[must_use]
    pub fn inverse_sizes(&self) -> Vec<u64> {
        let mut sums = LevelSums::new(self.depth());
        for edge in &self.edges {
            sums.add_difference(edge.from, 1);
            sums.add_difference(edge.to + 1, -1);
        }
        sums.accumulate_levels().accumulate_levels().into_values()
    }

    /// Nodes of the pruned k-CCF for k = 0, 1, … up to the depth of the CCT.
    #[must_use]
    pub fn pruned_sizes(&self) -> Vec<u64> {
        let mut sums = LevelSums::new(self.depth());
        for edge in &self.edges {
            if edge.from == 0 {
                sums.add_difference(0, 1);
            }
            if edge.children > 0 {
                // In forests down to a level above the branch, all below the path's first node is a
                // chain and is cut; from then on the rest of the path and the branches are there.
                let rest = edge.to - edge.from + edge.children;
                sums.add_difference(edge.to + 1, i64::from(rest));
            }
        }
        sums.accumulate_levels().into_values()
    }

    /// The x%-similar ∞-CCF.
    #[must_use]
    pub fn similar_size(&self, percent: u32) -> SimilarForestSize {
        let mut similar = SimilarForestSize::default();
        // Parents come after their children.
        let mut roots: Vec<(u64, u32)> = vec![(0, 0); self.edges.len()];
        for (at, edge) in self.edges.iter().enumerate().rev() {
            let (count, tree) = match edge.parent {
                None => (edge.count, at as u32),
                Some(parent) => roots.get(parent as usize).copied().unwrap_or_default(),
            };
            if let Some(root) = roots.get_mut(at) {
                *root = (count, tree);
            }
        }
        let mut depths = vec![0u32; self.edges.len()];
        for (edge, (root, tree)) in self.edges.iter().zip(roots) {
            if !is_similar(edge.count, root, percent) {
                continue;
            }
            similar.nodes += u64::from(edge.to - edge.from) + 1;
            similar.trees += u64::from(edge.parent.is_none());
            if let Some(depth) = depths.get_mut(tree as usize) {
                *depth = edge.to.max(*depth);
            }
        }
        similar.depths = depths.into_iter().map(u64::from).sum();
        similar
    }

    /// The counters of all distinct k-contexts (of length k, or less where a stack ends): leaves of
    /// the k-CCF, and contexts that end within it where a root function recurs. Their sum is the
    /// number of activations.
    #[must_use]
    pub fn context_counts(&self, k: u32) -> Vec<u64> {
        let cut = |edge: &CompactEdge| edge.from <= k && k <= edge.to;
        let whole = |edge: &CompactEdge| edge.to < k && edge.own > 0;
        let counts = self.edges.iter().filter_map(|edge| match edge {
            edge if cut(edge) => Some(edge.count),
            edge if whole(edge) => Some(edge.own),
            _ => None,
        });
        counts.collect()
    }

    /// Calls of the longest context.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.edges.iter().map(|edge| edge.to).max().unwrap_or(0)
    }
}

/// Numbers by level, given as differences.
struct LevelSums(Vec<i64>);

impl LevelSums {
    fn new(depth: u32) -> Self {
        LevelSums(vec![0; depth as usize + 1])
    }

    fn add_difference(&mut self, level: u32, more: i64) {
        if let Some(sum) = self.0.get_mut(level as usize) {
            *sum += more;
        }
    }

    /// Each level with all before it.
    fn accumulate_levels(mut self) -> Self {
        let mut sum = 0;
        for level in &mut self.0 {
            sum += *level;
            *level = sum;
        }
        self
    }

    fn into_values(self) -> Vec<u64> {
        self.0.into_iter().map(i64::unsigned_abs).collect()
    }
}

/// Contexts in the order of their labels, read backwards.
struct ReverseLabelOrder {
    sorted: Vec<ForestNodeId>,
    /// Row i: by node, the order of the 2^i labels up from it, and the ancestor that many levels
    /// above. Nodes count from 1; 0 is above all roots.
    rows: Vec<DoublingRow>,
}

struct DoublingRow {
    ranks: Vec<u32>,
    ancestors: Vec<u32>,
}

impl ReverseLabelOrder {
    fn new<C>(tree: &LabelForest<C>) -> Self {
        let mut rows = vec![DoublingRow::from_tree(tree)];
        let mut height = 1u64;
        while height <= u64::from(tree.depth()) {
            let next = rows.last().map(DoublingRow::double_height);
            rows.extend(next);
            height *= 2;
        }
        let mut sorted: Vec<ForestNodeId> =
            tree.nodes().filter(|node| tree.count(*node) > 0).collect();
        let ranks = rows
            .last()
            .map(|row| row.ranks.as_slice())
            .unwrap_or_default();
        sorted.sort_unstable_by_key(|node| entry_at(ranks, node.0 + 1));
        ReverseLabelOrder { sorted, rows }
    }

    /// How many labels two contexts have in common, read backwards.
    fn count_shared_labels(&self, a: ForestNodeId, b: ForestNodeId) -> u32 {
        let (mut a, mut b, mut shared) = (a.0 + 1, b.0 + 1, 0);
        for (i, row) in self.rows.iter().enumerate().rev() {
            // Different nodes: equal labels all the way to both roots would make them one.
            if a != 0 && b != 0 && entry_at(&row.ranks, a) == entry_at(&row.ranks, b) {
                (a, b) = (entry_at(&row.ancestors, a), entry_at(&row.ancestors, b));
                shared += 1 << i;
            }
        }
        shared
    }
}

fn entry_at(list: &[u32], index: u32) -> u32 {
    list.get(index as usize).copied().unwrap_or(0)
}

impl DoublingRow {
    fn from_tree<C>(tree: &LabelForest<C>) -> Self {
        let keys = tree.nodes().map(|node| u64::from(tree.label(node).0) + 1);
        let parents = tree.nodes().map(|node| tree.parent(node));
        let parents = parents.map(|parent| parent.map_or(0, |parent| parent.0 + 1));
        DoublingRow {
            ranks: rank_keys([0].into_iter().chain(keys).collect()),
            ancestors: [0].into_iter().chain(parents).collect(),
        }
    }

    /// Twice as high.
    fn double_height(&self) -> Self {
        let above = |node: u32| entry_at(&self.ranks, node);
        let pairs = self.ranks.iter().zip(&self.ancestors);
        let keys = pairs.map(|(rank, up)| u64::from(*rank) << 32 | u64::from(above(*up)));
        let ancestors = self
            .ancestors
            .iter()
            .map(|up| entry_at(&self.ancestors, *up));
        DoublingRow {
            ranks: rank_keys(keys.collect()),
            ancestors: ancestors.collect(),
        }
    }
}

/// For each key how many different ones are smaller.
fn rank_keys(keys: Vec<u64>) -> Vec<u32> {
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    let key = |index: u32| keys.get(index as usize).copied().unwrap_or(0);
    order.sort_unstable_by_key(|index| key(*index));
    let mut ranks = vec![0; keys.len()];
    let (mut rank, mut before) = (0, None);
    for index in order {
        let key = key(index);
        rank += u32::from(before.is_some_and(|before| before != key));
        before = Some(key);
        if let Some(place) = ranks.get_mut(index as usize) {
            *place = rank;
        }
    }
    ranks
}

/// Makes the tree from sorted contexts; `open` is the path of the last one. Lengths count labels.
#[derive(Default)]
struct CompactForestBuilder {
    edges: Vec<CompactEdge>,
    open: Vec<OpenEdge>,
}

struct OpenEdge {
    length: u32,
    count: u64,
    own: u64,
    /// Edges that are done and hang here.
    children: Vec<u32>,
}

impl CompactForestBuilder {
    /// A context of `length` labels, the first `shared` of which are the last one's too.
    fn add_context(&mut self, shared: u32, length: u32, count: u64) {
        self.close_edges(shared);
        self.open.push(OpenEdge {
            length,
            count,
            own: count,
            children: Vec::new(),
        });
    }

    /// Ends what is longer than `shared`.
    fn close_edges(&mut self, shared: u32) {
        while self.open.last().is_some_and(|open| open.length > shared) {
            let Some(done) = self.open.pop() else { return };
            let above = self.open.last().map_or(0, |open| open.length);
            if above < shared {
                // The last context branches within this edge.
                self.open.push(OpenEdge {
                    length: shared,
                    count: 0,
                    own: 0,
                    children: Vec::new(),
                });
            }
            self.finish_edge(&done, above.max(shared));
        }
    }

    fn finish_edge(&mut self, done: &OpenEdge, from: u32) {
        let number = self.edges.len() as u32;
        for child in &done.children {
            if let Some(child) = self.edges.get_mut(*child as usize) {
                child.parent = Some(number);
            }
        }
        self.edges.push(CompactEdge {
            parent: None,
            from,
            to: done.length - 1,
            count: done.count,
            own: done.own,
            children: done.children.len() as u32,
        });
        if let Some(above) = self.open.last_mut() {
            above.count = above.count.saturating_add(done.count);
            above.children.push(number);
        }
    }
}
