//! The shortest path from a root to some objects, found by walks through the heap.
//!
//! A walk reports every reference once, in an arbitrary order: objects near a root may come late. So the search goes
//! backwards. The targets have tags. The first walk reports their referrers, which get tags as well. The next walk reports the
//! referrers of those, and so on, until a root refers to one of them. Each walk adds one step, so the first path found is a
//! shortest one in the heap at that time. The program continues between two walks.
//!
//! The search has two passes. In the first pass, a walk does not continue from known objects. So everything that it reports is
//! reachable without the known objects: each referrer leads to a root, even if few are kept, and no circle is entered. But one
//! target may only be reachable through objects that another target has made known. The second pass continues through known
//! objects, soft references and finalizers, and searches for the remaining targets.
//!
//! A third pass is for objects that only classes and loaders hold that no walk reaches: see [`HeapSearch::visit_side_reference`].
//!
//! A chain of many objects, such as a linked list, would need a walk for each object. If the last steps of a path are one field
//! of one class, the next walk follows this field by itself: it numbers the objects of the chain while it passes them.
//! See [`ChainRuns`].
//!
//! At most [`MAX_NODES`] objects have tags, and at most [`MAX_REFERRERS`] referrers of each are kept. If there are more, a
//! shorter path may be missing, and the search reports this.
//!
//! `paths` reads the paths, `classes` adds what walks do not report.

mod classes;
#[cfg(test)]
mod heap_search_tests;
mod paths;

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use lucce_jvmti::heap::{HeapReference, ReferenceKind, WalkControl};

use crate::leaks::chain_runs::{ChainField, ChainRuns, RunArrival};

use paths::{STRENGTHS, root_rank};

/// Maximum number of objects with tags. The VM uses some 60 bytes for each, this search 60.
pub const MAX_NODES: usize = 1 << 16;
const MAX_REFERRERS: u32 = 64;
/// The tag of class loaders that a walk has reached and that have no node.
const REACHED: i64 = -(1 << 42);
/// The first tag of the loaders at which side walks begin; the others are below.
pub const SIDE_LOADER: i64 = -(1 << 41);
/// Maximum number of side walks.
pub const MAX_SIDE_LOADERS: i64 = 32;
/// Number of references between two readings of the clock.
const CLOCK: u64 = 512;

/// A reference on a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HolderPathStep {
    /// The tag of the referring object; `None`: a root. A path begins at a root, or at a class of the VM's own loaders, which are
    /// never unloaded.
    pub from: Option<i64>,
    pub by: ReferenceKind,
    /// Number of consecutive references of this kind, through objects without tags. At least 1.
    pub times: u32,
    /// The tag of the object that is referred to.
    pub to: i64,
    pub strength: HoldStrength,
}

/// How long a reference holds its object, the longest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HoldStrength {
    Strong,
    /// Until memory is short: the referent of a `SoftReference`.
    Soft,
    /// Until the object's finalizer has run: the referent of a `java.lang.ref.Finalizer`.
    Finalizer,
}

/// The field `referent` of a subclass of `java.lang.ref.Reference`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReferentField {
    /// The field's number, as heap walks number fields.
    pub number: i32,
    /// `None`: the reference holds nothing.
    pub strength: Option<HoldStrength>,
}

/// Classes that the search treats specially.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClassRole {
    Reference(ReferentField),
    /// Its objects are class loaders.
    Loader,
}

struct HeapNode {
    tag: i64,
    /// The number of the walk that found it.
    found_in_walk: u32,
    root: Option<ReferenceKind>,
    /// A class of one of the VM's own loaders, which are never unloaded.
    is_system_class: bool,
    role: NodeRole,
    /// A class whose loader is known, or a loader whose classes are known.
    is_resolved: bool,
    /// It leads to a target without a path.
    is_wanted: bool,
    referrers: Vec<HeapEdge>,
    is_truncated: bool,
}

/// The kind of an object, by its references.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NodeRole {
    Object,
    /// A `java.lang.Class`.
    Class,
    Loader,
}

#[derive(Clone, Copy)]
struct HeapEdge {
    from: u32,
    by: ReferenceKind,
    times: u32,
    strength: HoldStrength,
}

impl HeapEdge {
    /// One reference from a node.
    fn single(from: u32, by: ReferenceKind, strength: HoldStrength) -> HeapEdge {
        HeapEdge {
            from,
            by,
            times: 1,
            strength,
        }
    }
}

/// The result of the search for one target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TargetPath {
    /// The shortest known path, from the root.
    Held(Vec<HolderPathStep>),
    /// The search ended early. The steps begin at the farthest known object.
    Unfinished(Vec<HolderPathStep>),
    /// No reference that walks report leads from a root to it.
    Unreached,
}

/// A search over several walks; see the module.
pub struct HeapSearch {
    nodes: Vec<HeapNode>,
    by_tag: HashMap<i64, u32>,
    /// Classes with a role have the tags -1, -2, … in this order.
    roles: Vec<ClassRole>,
    targets: u32,
    walks: u32,
    is_second_pass: bool,
    is_full: bool,
    references: u64,
    deadline: Option<Instant>,
    is_stopped: bool,
    runs: ChainRuns,
}

impl HeapSearch {
    /// The `targets` objects have the tags 1, 2, …; classes with a role -1, -2, …
    pub fn new(targets: u32, roles: Vec<ClassRole>) -> HeapSearch {
        let mut search = HeapSearch {
            nodes: Vec::new(),
            by_tag: HashMap::new(),
            roles,
            targets,
            walks: 0,
            is_second_pass: false,
            is_full: false,
            references: 0,
            deadline: None,
            is_stopped: false,
            runs: ChainRuns::default(),
        };
        for tag in 1..=i64::from(targets) {
            search.add_node(tag);
        }
        search
    }

    /// Begins the next walk, which stops at the deadline.
    pub fn begin_walk(&mut self, deadline: Option<Instant>) {
        self.walks += 1;
        self.references = 0;
        self.deadline = deadline;
        self.runs.begin_walk(self.walks);
        self.mark_wanted();
    }

    /// Marks the nodes whose referrers are needed. Referrers of the VM's own classes are not.
    fn mark_wanted(&mut self) {
        let mut wanted = HashSet::new();
        for target in 0..self.targets {
            if self.find_path_by(target, HoldStrength::Strong).is_none() {
                wanted.extend(self.nodes_leading_to(target, HoldStrength::Finalizer));
            }
        }
        for (at, node) in (0..).zip(&mut self.nodes) {
            node.is_wanted = !node.is_system_class && wanted.contains(&at);
        }
    }

    /// Ends a walk, whether complete or stopped at its deadline.
    pub fn end_walk(&mut self) {
        for arrival in self.runs.end_walk() {
            let RunArrival { to, head, .. } = arrival;
            let from = match self.by_tag.get(&head) {
                Some(known) => *known,
                None if self.nodes.len() < MAX_NODES => self.add_node(head),
                None => {
                    self.is_full = true;
                    continue;
                }
            };
            let edge = HeapEdge {
                from,
                by: ReferenceKind::Field(arrival.field),
                times: arrival.times,
                strength: HoldStrength::Strong,
            };
            self.add_edge(to, edge);
        }
    }

    /// Whether the last walk was stopped at its deadline.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Whether the next walk may find a path for at least one target. A dead object never gets a path: all its referrers, if any,
    /// are known.
    pub fn needs_another_walk(&mut self) -> bool {
        if self.is_stopped {
            return false;
        }
        if (0..self.targets).any(|target| self.is_wanted(target)) {
            return true;
        }
        let left: Vec<u32> = (0..self.targets)
            .filter(|target| self.find_path_by(*target, HoldStrength::Strong).is_none())
            .collect();
        if self.is_second_pass || left.is_empty() {
            return false;
        }
        self.is_second_pass = true;
        for target in left {
            for node in self.nodes_leading_to(target, HoldStrength::Finalizer) {
                self.reopen_node(node);
            }
        }
        true
    }

    /// Whether a better path than the known one may exist.
    fn is_wanted(&self, target: u32) -> bool {
        for strength in STRENGTHS {
            if self.find_path_by(target, strength).is_some() {
                return false;
            }
            let mut behind = self.nodes_leading_to(target, strength).into_iter();
            if behind.any(|node| self.is_open(node)) {
                return true;
            }
            // The second pass searches for weaker paths.
            if !self.is_second_pass {
                return false;
            }
        }
        false
    }

    /// All nodes that lead to the target by references of at least this strength, and the target.
    fn nodes_leading_to(&self, target: u32, strength: HoldStrength) -> HashSet<u32> {
        let (mut known, mut next) = (HashSet::from([target]), vec![target]);
        while let Some(at) = next.pop() {
            let Some(node) = self.nodes.get(at as usize) else {
                continue;
            };
            let strong = node.referrers.iter().filter(|e| e.strength <= strength);
            let new = strong.map(|edge| edge.from);
            next.extend(new.filter(|from| known.insert(*from)));
        }
        known
    }

    /// Makes the next walk search for the node's referrers once more.
    fn reopen_node(&mut self, node: u32) {
        let walks = self.walks;
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.found_in_walk = walks;
        }
    }

    /// Number of references that the last walk reported.
    pub fn reference_count(&self) -> u64 {
        self.references
    }

    /// Whether some referrers of objects on a path were skipped. Then a shorter path may exist.
    pub fn is_truncated(&self) -> bool {
        self.is_full || self.runs.is_full() || self.nodes.iter().any(|node| node.is_truncated)
    }

    /// Handles one reference that a walk reports.
    pub fn visit_reference(&mut self, reference: &mut HeapReference<'_>) -> WalkControl {
        self.references += 1;
        if self.references.is_multiple_of(CLOCK)
            && self.deadline.is_some_and(|end| Instant::now() >= end)
        {
            self.is_stopped = true;
            return WalkControl::Stop;
        }
        let Some(strength) = self.strength_of(reference) else {
            return WalkControl::Ignore;
        };
        let target = match reference.tag {
            0 => None,
            tag => self.by_tag.get(&tag).copied(),
        };
        if let Some(to) = target {
            let walk = self.walk_of_node(to);
            if walk == self.walks {
                // A chain may continue behind an object that this walk has found.
                self.runs
                    .follow_reference(&self.by_tag, reference, Some(to));
            } else if walk + 1 == self.walks
                && !self
                    .runs
                    .follow_reference(&self.by_tag, reference, Some(to))
            {
                self.visit_referrer(to, reference, strength);
            }
            let is_wanted = |node: &HeapNode| node.is_wanted;
            if !self.is_second_pass && self.nodes.get(to as usize).is_some_and(is_wanted) {
                return WalkControl::Ignore;
            }
        } else {
            self.runs.follow_reference(&self.by_tag, reference, None);
        }
        if reference.tag == 0 && self.role_of(reference.class_tag) == Some(ClassRole::Loader) {
            reference.tag = REACHED;
        }
        match strength == HoldStrength::Strong || self.is_second_pass {
            true => WalkControl::Continue,
            false => WalkControl::Ignore,
        }
    }

    /// Handles one reference of a walk from a loader. Walks from the roots do not lead from an array or an unlinked class to its
    /// loader, so they miss objects that this loader's classes hold. A side walk stays with these classes: it continues to no other
    /// loader, and from no object to its class.
    pub fn visit_side_reference(&mut self, reference: &mut HeapReference<'_>) -> WalkControl {
        let next = self.visit_reference(reference);
        let is_loader = self.role_of(reference.class_tag) == Some(ClassRole::Loader);
        let own = SIDE_LOADER - MAX_SIDE_LOADERS + 1..=SIDE_LOADER;
        let leaves = match reference.kind {
            ReferenceKind::Field(_) | ReferenceKind::Static(_) | ReferenceKind::Element(_) => {
                is_loader && !own.contains(&reference.tag)
            }
            _ => true,
        };
        match next {
            WalkControl::Continue if leaves => WalkControl::Ignore,
            next => next,
        }
    }

    /// Whether the walks have reported no path for some target.
    pub fn has_unreached(&self) -> bool {
        self.is_second_pass
            && !self.is_stopped
            && (0..self.targets).any(|target| self.find_path(target).is_none())
    }

    /// Makes the next walks search for unreached targets once more.
    pub fn reopen_unreached(&mut self) {
        for target in 0..self.targets {
            if self.find_path(target).is_none() {
                for node in self.nodes_leading_to(target, HoldStrength::Finalizer) {
                    self.reopen_node(node);
                }
            }
        }
    }

    fn visit_referrer(
        &mut self,
        to: u32,
        reference: &mut HeapReference<'_>,
        strength: HoldStrength,
    ) {
        let by = reference.kind;
        let is_loader = self.role_of(reference.class_tag) == Some(ClassRole::Loader);
        if let Some(node) = self.nodes.get_mut(to as usize) {
            if is_loader {
                node.role = NodeRole::Loader;
            }
            if node.is_system_class {
                return;
            }
            // All its classes are known.
            if by == ReferenceKind::ClassLoader && node.is_resolved {
                return;
            }
        }
        let role = match by {
            _ if self.role_of(reference.referrer_class_tag) == Some(ClassRole::Loader) => {
                NodeRole::Loader
            }
            ReferenceKind::Static(_)
            | ReferenceKind::ClassLoader
            | ReferenceKind::ProtectionDomain
            | ReferenceKind::Signers
            | ReferenceKind::Interface
            | ReferenceKind::ConstantPool
            | ReferenceKind::Superclass => NodeRole::Class,
            _ => NodeRole::Object,
        };
        match &mut reference.referrer {
            None => self.add_root(to, by),
            Some(tag) => {
                if by != ReferenceKind::ClassLoader && !self.has_room(to, **tag) {
                    return;
                }
                if let Some(from) = self.resolve_node(tag) {
                    if let Some(node) = self.nodes.get_mut(from as usize) {
                        node.role = role;
                    }
                    self.add_edge(to, HeapEdge::single(from, by, strength));
                }
            }
        }
    }

    fn role_of(&self, class_tag: i64) -> Option<ClassRole> {
        let at = usize::try_from(class_tag.checked_neg()?.checked_sub(1)?);
        self.roles.get(at.ok()?).copied()
    }

    /// `None`: the reference holds nothing.
    fn strength_of(&self, reference: &HeapReference<'_>) -> Option<HoldStrength> {
        match (reference.kind, self.role_of(reference.referrer_class_tag)) {
            (ReferenceKind::Field(field), Some(ClassRole::Reference(referent)))
                if referent.number == field =>
            {
                referent.strength
            }
            _ => Some(HoldStrength::Strong),
        }
    }

    fn walk_of_node(&self, node: u32) -> u32 {
        self.nodes
            .get(node as usize)
            .map_or(0, |node| node.found_in_walk)
    }

    /// Whether the node's referrers are not completely known.
    fn is_open(&self, node: u32) -> bool {
        let walk = self.walk_of_node(node);
        walk == self.walks || self.is_stopped && walk + 1 == self.walks
    }

    /// Records a root of the node; the most informative one is kept.
    fn add_root(&mut self, node: u32, root: ReferenceKind) {
        let Some(node) = self.nodes.get_mut(node as usize) else {
            return;
        };
        if node
            .root
            .is_none_or(|known| root_rank(root) < root_rank(known))
        {
            node.root = Some(root);
        }
    }

    /// Whether the node has room for one more referrer.
    fn has_room(&mut self, to: u32, tag: i64) -> bool {
        let is_new = !self.by_tag.contains_key(&tag);
        let Some(node) = self.nodes.get_mut(to as usize) else {
            return false;
        };
        let is_full = node.referrers.len() as u32 >= MAX_REFERRERS;
        node.is_truncated |= is_full && is_new && node.is_wanted;
        !is_full
    }

    /// The referrer's node. The referrer gets a tag if it has none. `None`: there are too many nodes.
    fn resolve_node(&mut self, tag: &mut i64) -> Option<u32> {
        if let Some(known) = self.by_tag.get(tag) {
            return Some(*known);
        }
        if self.nodes.len() >= MAX_NODES {
            self.is_full = true;
            return None;
        }
        if [0, REACHED].contains(tag) {
            *tag = self.next_tag();
        }
        Some(self.add_node(*tag))
    }

    /// The tag for the next object without a tag.
    fn next_tag(&self) -> i64 {
        self.nodes.len() as i64 + 1
    }

    fn add_node(&mut self, tag: i64) -> u32 {
        let node = self.nodes.len() as u32;
        self.by_tag.insert(tag, node);
        self.nodes.push(HeapNode {
            tag,
            found_in_walk: self.walks,
            root: None,
            is_system_class: false,
            role: NodeRole::Object,
            is_resolved: false,
            is_wanted: false,
            referrers: Vec::new(),
            is_truncated: false,
        });
        node
    }

    fn add_edge(&mut self, to: u32, edge: HeapEdge) {
        let Some(node) = self.nodes.get_mut(to as usize) else {
            return;
        };
        let is_same_edge = |old: &HeapEdge| {
            old.from == edge.from && old.strength == edge.strength && old.times <= edge.times
        };
        // A class refers to its loader once, and a loader may have thousands of classes.
        let is_bounded = edge.by != ReferenceKind::ClassLoader;
        if is_bounded && node.referrers.iter().any(is_same_edge) {
            return;
        }
        match !is_bounded || (node.referrers.len() as u32) < MAX_REFERRERS {
            true => node.referrers.push(edge),
            false => node.is_truncated = true,
        }
    }

    /// Sets the fields that the next walk follows.
    pub fn follow_chains(&mut self, chains: Vec<ChainField>) {
        self.runs.follow_chains(chains);
    }

    fn tag_of(&self, node: u32) -> i64 {
        self.nodes.get(node as usize).map_or(0, |node| node.tag)
    }
}
