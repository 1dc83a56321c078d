//! `tracking=cct`: a thread's calling context tree (Ammons et al., PLDI 1997), for comparison.
//!
//! A node is a method called at a site in its parent. The root lies below the thread's first frame. Every entry of a method
//! looks its node up in a table for Java code (`java_table`). The table's entries are
//! `[site << 24 | callee, child << 32 | parent]`.
//!
//! The first event in a node gives it the graph's number for its path, so logs equal the logs of the default mode.

use std::sync::atomic::{AtomicU64, Ordering};

use lucce_callgraph::raw::ROTATION;
use lucce_callgraph::{ContextEncoder, ContextId, GraphJournal, MethodId, SiteId};

use crate::memory::java_table::{JavaTable, MULTIPLIER};
use crate::memory::shared_layout::entry_words;
use lucce_layout::lab_layout::{TREE_CHILD, TREE_ENTRY_BITS, TREE_PARENT};

/// A node of one thread's tree; 0 is the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadTreeNode(pub u32);

/// A thread's tree. Nodes live as long as their thread.
#[derive(Default)]
pub struct ThreadTree {
    /// The n-th entry is node n + 1.
    nodes: Vec<ThreadTreeEntry>,
    table: JavaTable<{ entry_words(TREE_ENTRY_BITS) }, FIRST_ENTRIES>,
}

#[derive(Clone, Copy)]
struct ThreadTreeEntry {
    place: u64,
    parent: ThreadTreeNode,
    /// Set by the first event.
    number: ContextId,
}

impl ThreadTreeEntry {
    fn site(&self) -> SiteId {
        SiteId((self.place >> MethodId::BITS) as u32)
    }

    fn callee(&self) -> MethodId {
        MethodId(self.place as u32 & ((1 << MethodId::BITS) - 1))
    }
}

const FIRST_ENTRIES: usize = 256;
/// Position of the child in an entry's second word, above the parent.
const CHILD_SHIFT: usize = 8 * (TREE_CHILD - TREE_PARENT);
const _: () = assert!(TREE_PARENT == size_of::<u64>());

impl ThreadTree {
    /// Address of the table, for Java code.
    pub fn table_address(&self) -> usize {
        self.table.table_address() as usize
    }

    /// The node for `callee`, called at `site` in `parent`; a new one if necessary. `None`: the parent does not exist, or no numbers
    /// are left.
    pub fn get_or_add_child(
        &mut self,
        parent: ThreadTreeNode,
        site: SiteId,
        callee: MethodId,
    ) -> Option<ThreadTreeNode> {
        if parent.0 as usize > self.nodes.len() {
            return None;
        }
        let place = u64::from(site.0) << MethodId::BITS | u64::from(callee.0);
        if let Some(known) = self.find_child(place, parent) {
            return Some(known);
        }
        let child = ThreadTreeNode(i32::try_from(self.nodes.len() + 1).ok()? as u32);
        self.nodes.push(ThreadTreeEntry {
            place,
            parent,
            number: ContextId::UNKNOWN,
        });
        let nodes = u64::from(child.0) << CHILD_SHIFT | u64::from(parent.0);
        let hash = |[place, nodes]: &[u64; 2]| hash_child(*place, *nodes as u32);
        self.table.insert_entry([place, nodes], hash, |_| false);
        Some(child)
    }

    /// The graph's number for the path to `node`. `method` returns the method that contains a site.
    pub fn resolve_number<J: GraphJournal>(
        &mut self,
        node: ThreadTreeNode,
        encoder: &ContextEncoder<J>,
        method: impl Fn(SiteId) -> MethodId,
    ) -> ContextId {
        let mut path = Vec::new();
        let mut at = node;
        let mut number = ContextId::UNKNOWN;
        while let Some(made) = self.get_entry(at) {
            if made.number != ContextId::UNKNOWN {
                number = made.number;
                break;
            }
            path.push(at);
            at = made.parent;
        }
        for at in path.into_iter().rev() {
            let Some(made) = self.get_entry(at) else {
                break;
            };
            number = match made.site() {
                SiteId::ENTRY => encoder.root_context(made.callee()),
                site => encoder.encode_call(number, site, method(site), made.callee()),
            };
            if number == ContextId::UNKNOWN {
                return number;
            }
            self.nodes[at.0 as usize - 1].number = number;
        }
        number
    }

    /// Bytes of nodes and table.
    pub fn memory_bytes(&self) -> u64 {
        (self.nodes.capacity() * size_of::<ThreadTreeEntry>() + self.table.byte_count()) as u64
    }

    fn get_entry(&self, node: ThreadTreeNode) -> Option<ThreadTreeEntry> {
        let index = (node.0 as usize).checked_sub(1)?;
        self.nodes.get(index).copied()
    }

    /// As the helper class does it.
    fn find_child(&self, place: u64, parent: ThreadTreeNode) -> Option<ThreadTreeNode> {
        let is = |[found, nodes]: &[u64; 2]| *found == place && *nodes as u32 == parent.0;
        let [_, nodes] = self.table.find_entry(hash_child(place, parent.0), is)?;
        Some(ThreadTreeNode((nodes >> CHILD_SHIFT) as u32))
    }
}

fn hash_child(place: u64, parent: u32) -> u64 {
    (place ^ u64::from(parent).rotate_left(ROTATION)).wrapping_mul(MULTIPLIER)
}

/// Totals of all threads' trees.
#[derive(Default)]
pub struct ThreadTreeTotals {
    nodes: AtomicU64,
    bytes: AtomicU64,
    max_bytes: AtomicU64,
}

impl ThreadTreeTotals {
    /// Records a new node, and the bytes by which its table grew.
    pub fn record_growth(&self, bytes: u64) {
        // Relaxed: counts, nothing depends on them.
        self.nodes.fetch_add(1, Ordering::Relaxed);
        if bytes > 0 {
            let now = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
            self.max_bytes.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// Records the end of a thread.
    pub fn record_drop(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Total number of nodes created.
    pub fn node_count(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed)
    }

    /// Peak memory in bytes.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod thread_tree_tests {
    use std::collections::HashMap;

    use lucce_callgraph::{ContextFrame, ContextLayout, EncodingPolicy};

    use super::*;

    /// A tree and, as an oracle, the same paths in a map.
    fn grown(steps: u32) -> (ThreadTree, HashMap<Vec<(u32, u32)>, ThreadTreeNode>) {
        let mut tree = ThreadTree::default();
        let mut known = HashMap::new();
        let mut random = 1_u64;
        for _ in 0..steps {
            let (mut node, mut path) = (ThreadTreeNode(0), Vec::new());
            let mut site = SiteId::ENTRY.0;
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            for depth in 0..(random >> 60) {
                let callee = (random >> (depth * 3)) as u32 & 3 | 4;
                path.push((site, callee));
                node = tree
                    .get_or_add_child(node, SiteId(site), MethodId(callee))
                    .unwrap();
                assert_eq!(*known.entry(path.clone()).or_insert(node), node);
                // Two sites in each method.
                site = callee * 2 + ((random >> (depth + 20)) & 1) as u32;
            }
        }
        (tree, known)
    }

    #[test]
    fn a_path_has_one_node_and_a_node_one_path() {
        let (tree, known) = grown(3000);
        assert!(known.len() > FIRST_ENTRIES);
        assert_eq!(tree.nodes.len(), known.len());
        let mut nodes: Vec<u32> = known.values().map(|node| node.0).collect();
        nodes.sort_unstable();
        nodes.dedup();
        assert_eq!(nodes.len(), known.len());
    }

    #[test]
    fn a_nodes_number_decodes_to_its_path() {
        let (mut tree, known) = grown(3000);
        let encoder =
            ContextEncoder::new(ContextLayout::DEFAULT, EncodingPolicy::LUCCE, Vec::new());
        let method = |site: SiteId| MethodId(site.0 / 2);
        for (path, node) in &known {
            let number = tree.resolve_number(*node, &encoder, method);
            let (_, last) = path.last().unwrap();
            let mut frames = encoder.decode_context(number, MethodId(*last)).unwrap();
            frames.reverse();
            let expected: Vec<ContextFrame> = path[1..]
                .iter()
                .map(|(site, _)| ContextFrame {
                    site: SiteId(*site),
                    method: MethodId(site / 2),
                })
                .collect();
            assert_eq!(frames, expected);
        }
    }

    #[test]
    fn an_unknown_parent_has_no_children() {
        let mut tree = ThreadTree::default();
        assert_eq!(
            tree.get_or_add_child(ThreadTreeNode(1), SiteId(1), MethodId(1)),
            None
        );
        assert_eq!(
            tree.get_or_add_child(ThreadTreeNode(0), SiteId::ENTRY, MethodId(1)),
            Some(ThreadTreeNode(1))
        );
        assert_eq!(
            tree.get_or_add_child(ThreadTreeNode(2), SiteId(1), MethodId(1)),
            None
        );
        assert_eq!(
            tree.get_or_add_child(ThreadTreeNode(1), SiteId(1), MethodId(1)),
            Some(ThreadTreeNode(2))
        );
    }
}
