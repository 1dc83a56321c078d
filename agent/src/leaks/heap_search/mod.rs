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

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Instant;

use lucce_jvmti::heap::{HeapReference, ReferenceKind, WalkControl};

use crate::leaks::chain_runs::{ChainField, ChainRuns, RunArrival};

/// Maximum number of objects with tags. The VM uses some 60 bytes for each, this search 60.
pub const MAX_NODES: usize = 1 << 16;
const MAX_REFERRERS: u32 = 64;
/// Number of equal steps that count as a chain.
const CHAIN: usize = 4;
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

const STRENGTHS: [HoldStrength; 3] = [
    HoldStrength::Strong,
    HoldStrength::Soft,
    HoldStrength::Finalizer,
];

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
        let known = match reference.tag {
            0 => None,
            tag => self.by_tag.get(&tag).copied(),
        };
        if let Some(to) = known {
            let found = self.walk_of_node(to);
            if found == self.walks {
                // A chain may continue behind an object that this walk has found.
                self.runs
                    .follow_reference(&self.by_tag, reference, Some(to));
            } else if found + 1 == self.walks
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
                    let edge = HeapEdge {
                        from,
                        by,
                        times: 1,
                        strength,
                    };
                    self.add_edge(to, edge);
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
        let found = self.walk_of_node(node);
        found == self.walks || self.is_stopped && found + 1 == self.walks
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
        let known = |old: &HeapEdge| {
            old.from == edge.from && old.strength == edge.strength && old.times <= edge.times
        };
        // A class refers to its loader once, and a loader may have thousands of classes.
        let is_bounded = edge.by != ReferenceKind::ClassLoader;
        if is_bounded && node.referrers.iter().any(known) {
            return;
        }
        match !is_bounded || (node.referrers.len() as u32) < MAX_REFERRERS {
            true => node.referrers.push(edge),
            false => node.is_truncated = true,
        }
    }

    /// Tags of classes with unknown loaders, and of loaders with unknown classes, which the last walk has found.
    pub fn unresolved_classes(&self) -> (Vec<i64>, Vec<i64>) {
        let new = |role: NodeRole| {
            let new = self.nodes.iter().filter(move |node| {
                node.role == role && node.found_in_walk == self.walks && !node.is_resolved
            });
            new.map(|node| node.tag).collect()
        };
        (new(NodeRole::Class), new(NodeRole::Loader))
    }

    /// Marks a class that is never unloaded.
    pub fn set_system_class(&mut self, class: i64) {
        let node = self.by_tag.get(&class).copied();
        if let Some(node) = node.and_then(|at| self.nodes.get_mut(at as usize)) {
            (node.is_system_class, node.is_resolved) = (true, true);
            node.root = node.root.or(Some(ReferenceKind::SystemClass));
        }
    }

    /// Marks the object as a class.
    pub fn set_class(&mut self, tag: i64) {
        self.set_role(tag, NodeRole::Class);
    }

    /// Marks the object as a class loader.
    pub fn set_loader(&mut self, tag: i64) {
        self.set_role(tag, NodeRole::Loader);
    }

    fn set_role(&mut self, tag: i64, role: NodeRole) {
        let node = self.by_tag.get(&tag).copied();
        if let Some(node) = node.and_then(|at| self.nodes.get_mut(at as usize)) {
            node.role = role;
        }
    }

    /// Adds the loader that has defined the class. `tag`: the loader's tag or 0. Returns its tag.
    ///
    /// `None`: there are too many nodes.
    pub fn add_loader(&mut self, class: i64, mut tag: i64) -> Option<i64> {
        let to = self.by_tag.get(&class).copied()?;
        let from = self.resolve_node(&mut tag)?;
        if let Some(node) = self.nodes.get_mut(from as usize) {
            node.role = NodeRole::Loader;
        }
        let edge = HeapEdge {
            from,
            by: ReferenceKind::LoadedClass,
            times: 1,
            strength: HoldStrength::Strong,
        };
        self.add_edge(to, edge);
        Some(tag)
    }

    /// Adds a class that holds the loader. Array classes and unlinked classes hold it as well, but no walk reports this. After the
    /// last class, call [`Self::set_resolved`].
    ///
    /// `None`: there are too many nodes.
    pub fn add_class(&mut self, loader: i64, mut tag: i64) -> Option<i64> {
        let to = self.by_tag.get(&loader).copied()?;
        let is_new = !self.by_tag.contains_key(&tag);
        let from = self.resolve_node(&mut tag)?;
        if let Some(node) = self.nodes.get_mut(from as usize)
            && is_new
        {
            // Its loader is known.
            (node.role, node.is_resolved) = (NodeRole::Class, true);
        }
        let edge = HeapEdge {
            from,
            by: ReferenceKind::ClassLoader,
            times: 1,
            strength: HoldStrength::Strong,
        };
        self.add_edge(to, edge);
        Some(tag)
    }

    /// Marks a class whose loader is known, or a loader whose classes are all known.
    pub fn set_resolved(&mut self, tag: i64) {
        let node = self.by_tag.get(&tag).copied();
        if let Some(node) = node.and_then(|at| self.nodes.get_mut(at as usize)) {
            node.is_resolved = true;
        }
    }

    /// Ends of paths that have become chains: the tag of a referrer, and the field.
    pub fn chain_ends(&self) -> Vec<(i64, i32)> {
        let mut ends: Vec<(i64, i32)> = Vec::new();
        for target in (0..self.targets).filter(|target| self.find_path(*target).is_none()) {
            for (at, steps) in self.open_ends(target) {
                let mut fields = steps.iter().take(CHAIN).map(|step| step.by);
                let Some(ReferenceKind::Field(field)) = fields.next() else {
                    continue;
                };
                let is_chain =
                    fields.len() + 1 == CHAIN && fields.all(|by| by == ReferenceKind::Field(field));
                if is_chain && !ends.iter().any(|(_, known)| *known == field) {
                    ends.push((at, field));
                }
            }
        }
        ends
    }

    /// Sets the fields that the next walk follows.
    pub fn follow_chains(&mut self, chains: Vec<ChainField>) {
        self.runs.follow_chains(chains);
    }

    /// The result for each target.
    pub fn target_paths(&self) -> Vec<TargetPath> {
        (0..self.targets)
            .map(|target| match self.find_path(target) {
                Some(path) => TargetPath::Held(path),
                None => match self.open_ends(target).into_iter().next() {
                    Some((_, steps)) => TargetPath::Unfinished(steps),
                    None if self.is_second_pass => TargetPath::Unreached,
                    None => TargetPath::Unfinished(Vec::new()),
                },
            })
            .collect()
    }

    fn find_path(&self, target: u32) -> Option<Vec<HolderPathStep>> {
        // Paths that hold only for a limited time come last.
        STRENGTHS
            .into_iter()
            .find_map(|strength| self.find_path_by(target, strength))
    }

    fn find_path_by(&self, target: u32, strength: HoldStrength) -> Option<Vec<HolderPathStep>> {
        let mut tree = BackwardTraversal::new(self, target, strength);
        while let Some(at) = tree.next_node() {
            if let Some(first) = self.first_step(at, strength) {
                return Some(tree.steps_from(at, Some(first)));
            }
        }
        None
    }

    /// Objects with unknown referrers, and the steps from them to the target.
    fn open_ends(&self, target: u32) -> Vec<(i64, Vec<HolderPathStep>)> {
        let mut tree = BackwardTraversal::new(self, target, HoldStrength::Finalizer);
        let mut ends = Vec::new();
        while let Some(at) = tree.next_node() {
            if self.is_open(at) {
                ends.push((self.tag_of(at), tree.steps_from(at, None)));
            }
        }
        ends
    }

    /// The step from a root that refers to this object; a class may be a root itself.
    fn first_step(&self, at: u32, strength: HoldStrength) -> Option<HolderPathStep> {
        let node = self.nodes.get(at as usize)?;
        let step = |from, by, strength| HolderPathStep {
            from,
            by,
            times: 1,
            to: node.tag,
            strength,
        };
        let of_class = |edge: &HeapEdge| {
            let from = self.nodes.get(edge.from as usize)?;
            let is_root = from.is_system_class && edge.strength <= strength;
            is_root.then(|| step(Some(from.tag), edge.by, edge.strength))
        };
        let classes = node.referrers.iter().filter_map(of_class);
        let root = node.root.map(|by| step(None, by, HoldStrength::Strong));
        classes.chain(root).min_by_key(|step| root_rank(step.by))
    }

    fn tag_of(&self, node: u32) -> i64 {
        self.nodes.get(node as usize).map_or(0, |node| node.tag)
    }
}

/// Traverses from a target to its referrers, the nearest first.
struct BackwardTraversal<'s> {
    search: &'s HeapSearch,
    strength: HoldStrength,
    /// By node: the node towards the target, and the edge.
    towards: HashMap<u32, Option<(u32, HeapEdge)>>,
    next: VecDeque<u32>,
}

impl<'s> BackwardTraversal<'s> {
    fn new(search: &'s HeapSearch, target: u32, strength: HoldStrength) -> BackwardTraversal<'s> {
        BackwardTraversal {
            search,
            strength,
            towards: HashMap::from([(target, None)]),
            next: VecDeque::from([target]),
        }
    }

    fn next_node(&mut self) -> Option<u32> {
        let at = self.next.pop_front()?;
        let node = self.search.nodes.get(at as usize)?;
        for edge in &node.referrers {
            if edge.strength <= self.strength && !self.towards.contains_key(&edge.from) {
                self.towards.insert(edge.from, Some((at, *edge)));
                self.next.push_back(edge.from);
            }
        }
        Some(at)
    }

    fn steps_from(&self, from: u32, first: Option<HolderPathStep>) -> Vec<HolderPathStep> {
        let mut steps: Vec<HolderPathStep> = first.into_iter().collect();
        let mut at = from;
        while let Some(Some((to, edge))) = self.towards.get(&at) {
            steps.push(HolderPathStep {
                from: Some(self.search.tag_of(at)),
                by: edge.by,
                times: edge.times,
                to: self.search.tag_of(*to),
                strength: edge.strength,
            });
            at = *to;
        }
        steps
    }
}

/// Local variables come last: an object that code is using is seldom the leak.
fn root_rank(root: ReferenceKind) -> u32 {
    match root {
        ReferenceKind::Static(_) => 0,
        ReferenceKind::Thread => 1,
        ReferenceKind::Local { .. } => 3,
        ReferenceKind::JniLocal { .. } => 4,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A heap: references and roots. Objects are numbers from 1.
    struct Heap {
        roots: Vec<usize>,
        references: HashMap<usize, Vec<(usize, ReferenceKind)>>,
        tags: Vec<i64>,
        class_tags: Vec<i64>,
        walks: u32,
    }

    impl Heap {
        fn new(size: usize, roots: &[usize], references: &[(usize, usize)]) -> Heap {
            let by_field = |(at, &(from, to)): (usize, &(usize, usize))| {
                (from, to, ReferenceKind::Field(at as i32))
            };
            let references: Vec<_> = references.iter().enumerate().map(by_field).collect();
            Heap::of_kinds(size, roots, &references)
        }

        fn of_kinds(
            size: usize,
            roots: &[usize],
            references: &[(usize, usize, ReferenceKind)],
        ) -> Heap {
            let mut by_object: HashMap<usize, Vec<_>> = HashMap::new();
            for &(from, to, kind) in references {
                by_object.entry(from).or_default().push((to, kind));
            }
            Heap {
                roots: roots.to_vec(),
                references: by_object,
                tags: vec![0; size + 1],
                class_tags: vec![0; size + 1],
                walks: 0,
            }
        }

        /// Walks like the VM: depth first, each object once.
        fn walk(&mut self, search: &mut HeapSearch) {
            self.walks += 1;
            let mut visited = vec![false; self.tags.len()];
            let mut stack = Vec::new();
            for root in self.roots.clone() {
                let mut reference = HeapReference {
                    kind: ReferenceKind::JniGlobal,
                    class_tag: self.class_tags[root],
                    referrer_class_tag: 0,
                    tag: self.tags[root],
                    referrer: None,
                };
                if search.visit_reference(&mut reference) == WalkControl::Continue {
                    stack.push(root);
                }
                self.tags[root] = reference.tag;
            }
            while let Some(at) = stack.pop() {
                if std::mem::replace(&mut visited[at], true) {
                    continue;
                }
                for (to, kind) in self.references.get(&at).cloned().unwrap_or_default() {
                    let mut from = self.tags[at];
                    let mut reference = HeapReference {
                        kind,
                        class_tag: self.class_tags[to],
                        referrer_class_tag: self.class_tags[at],
                        tag: self.tags[to],
                        referrer: Some(&mut from),
                    };
                    let next = search.visit_reference(&mut reference);
                    let tag = reference.tag;
                    self.tags[at] = from;
                    if to != at {
                        self.tags[to] = tag;
                    }
                    match next {
                        WalkControl::Continue => stack.push(to),
                        WalkControl::Ignore => {}
                        WalkControl::Stop => return,
                    }
                }
            }
        }

        /// Walks until the end. `system`: the classes of the VM's own loaders.
        fn search_all(&mut self, search: &mut HeapSearch, system: &[usize]) -> Vec<TargetPath> {
            while search.needs_another_walk() {
                search.begin_walk(None);
                self.walk(search);
                search.end_walk();
                for class in search.unresolved_classes().0 {
                    match system.iter().any(|object| self.tags[*object] == class) {
                        true => search.set_system_class(class),
                        false => search.set_resolved(class),
                    }
                }
                let chains = search.chain_ends().into_iter().take(1);
                let chains = chains.map(|(end, field)| ChainField {
                    class_tag: self.class_tags[self.object(end)],
                    field,
                });
                let chains: Vec<_> = chains.filter(|chain| chain.class_tag != 0).collect();
                search.follow_chains(chains);
            }
            search.target_paths()
        }

        fn object(&self, tag: i64) -> usize {
            self.tags.iter().position(|known| *known == tag).unwrap()
        }

        fn objects(&self, path: &TargetPath) -> Option<Vec<usize>> {
            match path {
                TargetPath::Held(steps) => {
                    Some(steps.iter().map(|step| self.object(step.to)).collect())
                }
                _ => None,
            }
        }

        /// Objects on the path to object `target`, from the root; without the root's own step.
        fn search(
            &mut self,
            target: usize,
            roles: Vec<ClassRole>,
        ) -> (Option<Vec<usize>>, HeapSearch) {
            let mut search = HeapSearch::new(1, roles);
            self.tags[target] = 1;
            let paths = self.search_all(&mut search, &[]);
            (self.objects(&paths[0]), search)
        }
    }

    #[test]
    fn the_shortest_way_is_found_whatever_order_a_walk_has() {
        // A long path 1-2-3-4-5-6 and a short one 1-7-6.
        let references = [(1, 7), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (7, 6)];
        for turned in [false, true] {
            let mut references = references.to_vec();
            if turned {
                references.reverse();
            }
            let mut heap = Heap::new(7, &[1], &references);
            assert_eq!(heap.search(6, Vec::new()).0, Some(vec![1, 7, 6]));
        }
    }

    #[test]
    fn what_no_root_reaches_is_not_held() {
        // Only a circle refers to the object.
        let mut heap = Heap::new(5, &[1], &[(1, 2), (3, 4), (4, 3), (4, 5)]);
        let (way, search) = heap.search(5, Vec::new());
        assert!(way.is_none() && !search.is_truncated());
        assert_eq!(search.target_paths(), [TargetPath::Unreached]);
    }

    #[test]
    fn of_several_roots_the_most_specific_is_reported() {
        let local = ReferenceKind::Local {
            thread: 1,
            method: 0,
            location: 0,
            slot: 0,
        };
        let tell = |search: &mut HeapSearch, kind, referrer: Option<&mut i64>| {
            search.visit_reference(&mut HeapReference {
                kind,
                class_tag: 0,
                referrer_class_tag: 0,
                tag: 1,
                referrer,
            });
        };
        let first = |search: &HeapSearch| match &search.target_paths()[0] {
            TargetPath::Held(steps) => steps[0],
            other => panic!("{other:?}"),
        };
        let mut search = HeapSearch::new(1, Vec::new());
        search.begin_walk(None);
        tell(&mut search, local, None);
        assert_eq!(first(&search).by, local);
        let mut class = 0;
        tell(&mut search, ReferenceKind::Static(3), Some(&mut class));
        tell(&mut search, ReferenceKind::Thread, None);
        assert_eq!(first(&search).by, ReferenceKind::Thread);
        search.set_system_class(class);
        let step = first(&search);
        assert_eq!(
            (step.by, step.from, class),
            (ReferenceKind::Static(3), Some(2), 2)
        );
    }

    /// One of the class's objects holds the class, and a root holds the object.
    #[test]
    fn a_static_field_is_followed_to_what_holds_its_class() {
        use ReferenceKind::{Class, Field, Static};
        let references = [(1, 2, Field(0)), (2, 3, Class), (3, 4, Static(1))];
        let heap = || Heap::of_kinds(4, &[1], &references);
        assert_eq!(heap().search(4, Vec::new()).0, Some(vec![1, 2, 3, 4]));
        // The VM never unloads a class of its own loaders: the path begins there.
        let mut heap = heap();
        heap.tags[4] = 1;
        let mut search = HeapSearch::new(1, Vec::new());
        let paths = heap.search_all(&mut search, &[3]);
        assert_eq!((heap.objects(&paths[0]), heap.walks), (Some(vec![4]), 1));
    }

    #[test]
    fn circles_and_objects_that_refer_to_themselves_end() {
        let mut heap = Heap::new(4, &[1], &[(1, 2), (2, 1), (2, 3), (3, 3), (3, 2)]);
        assert_eq!(heap.search(3, Vec::new()).0, Some(vec![1, 2, 3]));
        assert_eq!(
            Heap::new(1, &[1], &[]).search(1, Vec::new()).0,
            Some(vec![1])
        );
    }

    fn referent(strength: Option<HoldStrength>) -> Vec<ClassRole> {
        let number = 1;
        vec![ClassRole::Reference(ReferentField { number, strength })]
    }

    #[test]
    fn weak_references_hold_nothing_and_others_come_last() {
        // 1 refers to 2, a reference whose field 1 is the object; field 2 of 2 is 4, which also refers to the object.
        let references = [(1, 2), (2, 3), (2, 4), (4, 5), (5, 3)];
        let search = |strength, references: &[(usize, usize)]| {
            let mut heap = Heap::new(5, &[1], references);
            heap.class_tags[2] = -1;
            heap.search(3, referent(strength))
        };
        let (soft, last) = (Some(HoldStrength::Soft), Some(HoldStrength::Finalizer));
        assert_eq!(search(None, &references[..3]).0, None);
        for strength in [None, soft, last] {
            // A strong path comes first, whatever its length.
            assert_eq!(search(strength, &references).0, Some(vec![1, 2, 4, 5, 3]));
        }
        for strength in [soft, last] {
            let (way, found) = search(strength, &references[..3]);
            assert_eq!(way, Some(vec![1, 2, 3]));
            let TargetPath::Held(steps) = &found.target_paths()[0] else {
                panic!("{:?}", found.target_paths());
            };
            assert_eq!(Some(steps[2].strength), strength);
        }
    }

    #[test]
    fn what_is_left_out_is_said() {
        let many = 2 * MAX_REFERRERS as usize;
        let mut references: Vec<(usize, usize)> = (2..2 + many).map(|from| (1, from)).collect();
        references.extend((2..2 + many).map(|from| (from, many + 2)));
        let mut heap = Heap::new(many + 2, &[1], &references);
        let (way, search) = heap.search(many + 2, Vec::new());
        assert_eq!(way.map(|way| way.len()), Some(3));
        assert!(search.is_truncated());
        // Skipped referrers get no tags.
        let tags = heap.tags.iter().filter(|tag| **tag != 0).count();
        assert_eq!(tags, MAX_REFERRERS as usize + 2);
    }

    /// Referrers of a class of the VM's own loaders do not matter, nor referrers of nodes that lead to an object with a path.
    #[test]
    fn only_what_was_looked_for_is_said_to_be_left_out() {
        let many = 3 * MAX_REFERRERS as usize;
        use ReferenceKind::{Class, Field, Static};
        // 1 refers to all; class 2 holds object 3 and is the class of the others; object 4 is dead.
        let mut references = vec![(1, 2, Field(0)), (2, 3, Static(0))];
        references.extend((5..5 + many).map(|at| (1, at, ReferenceKind::Element(at as i32))));
        references.extend((5..5 + many).map(|at| (at, 2, Class)));
        let mut heap = Heap::of_kinds(many + 5, &[1], &references);
        (heap.tags[3], heap.tags[4]) = (1, 2);
        let mut search = HeapSearch::new(2, Vec::new());
        let paths = heap.search_all(&mut search, &[2]);
        assert_eq!(heap.objects(&paths[0]), Some(vec![3]));
        assert!(paths[1] == TargetPath::Unreached && !search.is_truncated());
    }

    /// Many parts of the object refer back to it. None of them counts as its holder.
    #[test]
    fn what_only_the_object_itself_holds_takes_no_room() {
        let many = 3 * MAX_REFERRERS as usize;
        // 1 holds 2, and 2 holds the object 3, whose parts refer to it.
        let mut references: Vec<(usize, usize)> = (4..4 + many).map(|part| (3, part)).collect();
        references.extend((4..4 + many).map(|part| (part, 3)));
        references.extend([(1, 2), (2, 3)]);
        let mut heap = Heap::new(many + 4, &[1], &references);
        let (way, search) = heap.search(3, Vec::new());
        assert_eq!(way, Some(vec![1, 2, 3]));
        assert!(!search.is_truncated());
    }

    /// An unreachable target does not prolong the search, however far the others are.
    #[test]
    fn what_died_keeps_no_search_going() {
        let mut heap = Heap::new(6, &[1], &[(1, 2), (2, 3), (5, 4)]);
        let mut search = HeapSearch::new(2, Vec::new());
        (heap.tags[3], heap.tags[4]) = (1, 2);
        let paths = heap.search_all(&mut search, &[]);
        // The second pass searches for it once more.
        assert_eq!((heap.walks, &paths[1]), (4, &TargetPath::Unreached));
    }

    #[test]
    fn several_objects_are_looked_for_at_once() {
        let mut heap = Heap::new(5, &[1], &[(1, 2), (2, 3), (2, 4), (1, 5)]);
        let mut search = HeapSearch::new(3, Vec::new());
        (heap.tags[3], heap.tags[4], heap.tags[5]) = (1, 2, 3);
        let paths = heap.search_all(&mut search, &[]);
        let lengths: Vec<_> = paths
            .iter()
            .map(|path| heap.objects(path).map(|path| path.len()))
            .collect();
        assert_eq!(lengths, [Some(3), Some(3), Some(2)]);
        assert_eq!(heap.walks, 3);
    }

    /// A target that only another target holds.
    #[test]
    fn one_object_may_hold_another_one() {
        let references = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8)];
        for targets in [vec![4, 8], vec![8, 4], vec![2, 4, 6, 8]] {
            let mut heap = Heap::new(8, &[1], &references);
            let mut search = HeapSearch::new(targets.len() as u32, Vec::new());
            for (tag, target) in (1..).zip(&targets) {
                heap.tags[*target] = tag;
            }
            let paths = heap.search_all(&mut search, &[]);
            for (path, target) in paths.iter().zip(&targets) {
                assert_eq!(heap.objects(path), Some((1..=*target).collect()));
            }
        }
    }

    const LINK: ReferenceKind = ReferenceKind::Field(7);
    const BACK: ReferenceKind = ReferenceKind::Field(8);

    /// 1 is a list, the others are its elements; the element before the last holds the target.
    fn list(length: usize, links: impl Fn(usize) -> Vec<(usize, usize, ReferenceKind)>) -> Heap {
        let mut references: Vec<_> = (2..length).flat_map(links).collect();
        references.push((length - 1, length + 1, ReferenceKind::Field(9)));
        references.push((1, 2, ReferenceKind::Field(0)));
        references.push((1, length, ReferenceKind::Field(1)));
        let mut heap = Heap::of_kinds(length + 1, &[1], &references);
        for element in 2..=length {
            heap.class_tags[element] = -9;
        }
        heap.tags[length + 1] = 1;
        heap
    }

    fn search_list(mut heap: Heap) -> (u32, u32, usize) {
        let mut search = HeapSearch::new(1, Vec::new());
        let paths = heap.search_all(&mut search, &[]);
        let TargetPath::Held(steps) = &paths[0] else {
            panic!("{paths:?}");
        };
        let links = steps.iter().filter(|step| [LINK, BACK].contains(&step.by));
        let links = links.map(|step| step.times).sum();
        let tags = heap.tags.iter().filter(|tag| **tag != 0).count();
        (heap.walks, links, tags)
    }

    #[test]
    fn a_chain_of_any_length_takes_few_walks_and_tags() {
        const LENGTH: usize = 100_000;
        let (walks, links, tags) = search_list(list(LENGTH, |at| vec![(at, at + 1, LINK)]));
        assert_eq!(links as usize, LENGTH - 3);
        assert!(walks < 10 && tags < 100, "{walks} {tags}");
    }

    /// Each element refers to the previous one, and a walk may begin at the end.
    #[test]
    fn a_chain_is_measured_from_either_end() {
        const LENGTH: usize = 10_000;
        let both = |at| vec![(at, at + 1, LINK), (at + 1, at, BACK)];
        let turned = |at| vec![(at + 1, at, BACK), (at, at + 1, LINK)];
        for heap in [list(LENGTH, both), list(LENGTH, turned)] {
            let (walks, links, _) = search_list(heap);
            // The target is near the end.
            assert!(walks < 10 && links == 1, "{walks} {links}");
        }
        // Only a variable in the middle and the head hold the list: elements are visited from the end to the head.
        let mut heap = list(LENGTH, both);
        heap.references.remove(&1);
        heap.references
            .insert(1, vec![(LENGTH, ReferenceKind::Field(1)), (2, LINK)]);
        heap.references.get_mut(&(LENGTH - 1)).unwrap().clear();
        heap.references
            .get_mut(&5_000)
            .unwrap()
            .push((LENGTH + 1, ReferenceKind::Field(9)));
        let (walks, links, _) = search_list(heap);
        assert!(walks < 12 && links > 4_000, "{walks} {links}");
    }

    #[test]
    fn a_circle_of_elements_ends() {
        const LENGTH: usize = 1_000;
        let next = |at| if at + 1 == LENGTH { 2 } else { at + 1 };
        let (walks, links, _) = search_list(list(LENGTH, |at| vec![(at, next(at), LINK)]));
        assert!(
            walks < 10 && links as usize == LENGTH - 3,
            "{walks} {links}"
        );
    }

    /// The steps found so far are reported.
    #[test]
    fn a_walk_ends_at_its_deadline() {
        let many = 4 * CLOCK as usize;
        let mut references: Vec<(usize, usize)> = (2..many).map(|at| (at, at + 1)).collect();
        references.push((1, 2));
        let mut heap = Heap::new(many, &[1], &references);
        let mut search = HeapSearch::new(1, Vec::new());
        heap.tags[many] = 1;
        for _ in 0..3 {
            assert!(search.needs_another_walk());
            search.begin_walk(None);
            heap.walk(&mut search);
            search.end_walk();
        }
        assert!(search.needs_another_walk());
        search.begin_walk(Some(Instant::now() - Duration::from_millis(1)));
        heap.walk(&mut search);
        search.end_walk();
        assert!(search.is_stopped() && !search.needs_another_walk());
        assert_eq!(search.reference_count(), CLOCK);
        let TargetPath::Unfinished(steps) = &search.target_paths()[0] else {
            panic!("{:?}", search.target_paths());
        };
        assert_eq!(steps.len(), 3);
    }
}
