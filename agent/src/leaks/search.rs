//! The way from a root to some objects, found by walks through the heap.
//!
//! A walk tells every reference once, in no order that helps: what is near a root may come late. So the search goes
//! backwards. The objects that are looked for have tags; the first walk tells who refers to them, and those get tags, too; the next
//! one tells who refers to those, and so on, until roots refer to some. Each walk adds one step, so the first way that is found
//! is a shortest one, as the heap was then: the program runs on between two walks.
//!
//! Few objects have tags, [`MOST`] at most, and of each at most [`MOST_REFERRERS`] others that refer to it are kept. Where there are
//! more, a shorter way may have been left out, and the search says so.

use std::collections::{HashMap, HashSet, VecDeque};

use lucce_vm::heap::{Next, Reference, ReferenceKind};

/// Objects with tags. The VM has some 60 bytes for each, this search 40.
pub const MOST: usize = 1 << 16;
const MOST_REFERRERS: u32 = 64;

/// A reference that is on a way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The object that refers, by its tag; `None`: a root. A way begins at a root, or at a class, whose static field is what
    /// people look for.
    pub from: Option<i64>,
    pub by: ReferenceKind,
    /// The object that it refers to.
    pub to: i64,
    /// Only until memory is short: the referent of a `SoftReference`.
    pub is_soft: bool,
}

struct Node {
    tag: i64,
    /// Which walk found it.
    found: u32,
    /// A root that refers to it, or a class and its static field.
    root: Option<(ReferenceKind, Option<u32>)>,
    referrers: Vec<Edge>,
    is_cut: bool,
}

#[derive(Clone, Copy)]
struct Edge {
    from: u32,
    by: ReferenceKind,
    is_soft: bool,
}

/// A class whose objects refer to one that they do not hold: `java.lang.ref.Reference` and below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weak {
    /// The number of the field `referent`.
    pub referent: i32,
    /// It is held until memory is short.
    pub is_soft: bool,
}

pub struct Search {
    nodes: Vec<Node>,
    by_tag: HashMap<i64, u32>,
    /// Classes of references have tags below 0, in this order from -1 on.
    weak: Vec<Weak>,
    targets: u32,
    walks: u32,
    is_full: bool,
    references: u64,
}

impl Search {
    /// `targets` objects have the tags 1, 2, …; classes of references -1, -2, …
    pub fn new(targets: u32, weak: Vec<Weak>) -> Search {
        let mut search = Search {
            nodes: Vec::new(),
            by_tag: HashMap::new(),
            weak,
            targets,
            walks: 0,
            is_full: false,
            references: 0,
        };
        for tag in 1..=i64::from(targets) {
            search.add(tag);
        }
        search
    }

    /// The next walk begins.
    pub fn walks(&mut self) {
        self.walks += 1;
        self.references = 0;
    }

    /// For one of the objects at least the next walk may find a way, and there is none yet. There will never be one for an object that
    /// died: all that refers to it, if anything does, is known.
    pub fn goes_on(&self) -> bool {
        (0..self.targets).any(|target| self.way(target).is_none() && self.is_open(target))
    }

    /// Whether something that leads to the object was found by the last walk: who refers to it is not known yet.
    fn is_open(&self, target: u32) -> bool {
        let (mut known, mut next) = (HashSet::from([target]), vec![target]);
        while let Some(at) = next.pop() {
            let Some(node) = self.nodes.get(at as usize) else {
                continue;
            };
            if node.found == self.walks {
                return true;
            }
            let new = node.referrers.iter().map(|edge| edge.from);
            next.extend(new.filter(|from| known.insert(*from)));
        }
        false
    }

    /// References that the last walk told.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Some objects that refer to one on the way were not looked at: there may be a shorter way.
    pub fn is_cut(&self) -> bool {
        self.is_full || self.nodes.iter().any(|node| node.is_cut)
    }

    /// A walk tells one reference.
    pub fn told(&mut self, reference: Reference<'_>) -> Next {
        self.references += 1;
        let weak = self.weak_of(&reference);
        if weak.is_some_and(|weak| !weak.is_soft) {
            return Next::NotThere;
        }
        if reference.tag == 0 {
            return Next::On;
        }
        let Some(&to) = self.by_tag.get(&reference.tag) else {
            return Next::On;
        };
        // Of what earlier walks found all is known.
        if self.found(to) + 1 != self.walks {
            return Next::On;
        }
        let by = reference.kind;
        match reference.referrer {
            None => self.root(to, (by, None)),
            // That an object is there holds its class; it says nothing of who needs it.
            Some(_) if by == ReferenceKind::Class => {}
            Some(tag) => {
                if let Some(from) = self.node_of(tag) {
                    if matches!(by, ReferenceKind::Static(_)) {
                        self.root(to, (by, Some(from)));
                        return Next::On;
                    }
                    let is_soft = weak.is_some();
                    self.edge(to, Edge { from, by, is_soft });
                }
            }
        }
        Next::On
    }

    fn weak_of(&self, reference: &Reference<'_>) -> Option<Weak> {
        let ReferenceKind::Field(field) = reference.kind else {
            return None;
        };
        let at = usize::try_from(reference.referrer_class_tag.checked_neg()?.checked_sub(1)?);
        let weak = self.weak.get(at.ok()?)?;
        (weak.referent == field).then_some(*weak)
    }

    fn found(&self, node: u32) -> u32 {
        self.nodes.get(node as usize).map_or(0, |node| node.found)
    }

    /// Of several roots the one that says most.
    fn root(&mut self, node: u32, root: (ReferenceKind, Option<u32>)) {
        let Some(node) = self.nodes.get_mut(node as usize) else {
            return;
        };
        if node.root.is_none_or(|known| rank(root.0) < rank(known.0)) {
            node.root = Some(root);
        }
    }

    /// The object that refers gets a tag, if it has none. `None`: there are too many.
    fn node_of(&mut self, tag: &mut i64) -> Option<u32> {
        if let Some(known) = self.by_tag.get(tag) {
            return Some(*known);
        }
        if self.nodes.len() >= MOST {
            self.is_full = true;
            return None;
        }
        if *tag == 0 {
            *tag = self.nodes.len() as i64 + 1;
        }
        Some(self.add(*tag))
    }

    fn add(&mut self, tag: i64) -> u32 {
        let node = self.nodes.len() as u32;
        self.by_tag.insert(tag, node);
        self.nodes.push(Node {
            tag,
            found: self.walks,
            root: None,
            referrers: Vec::new(),
            is_cut: false,
        });
        node
    }

    fn edge(&mut self, to: u32, edge: Edge) {
        let Some(node) = self.nodes.get_mut(to as usize) else {
            return;
        };
        let known = |old: &Edge| old.from == edge.from && old.is_soft == edge.is_soft;
        if node.referrers.iter().any(known) {
            return;
        }
        match (node.referrers.len() as u32) < MOST_REFERRERS {
            true => node.referrers.push(edge),
            false => node.is_cut = true,
        }
    }

    /// The shortest way to each object that is looked for, from the root on; `None`: there is none yet.
    pub fn ways(&self) -> Vec<Option<Vec<Step>>> {
        (0..self.targets).map(|target| self.way(target)).collect()
    }

    fn way(&self, target: u32) -> Option<Vec<Step>> {
        // Ways that hold until memory is short only are the last resort.
        self.way_by(target, false)
            .or_else(|| self.way_by(target, true))
    }

    fn way_by(&self, target: u32, soft: bool) -> Option<Vec<Step>> {
        // From which node each was reached, towards the target.
        let mut towards: HashMap<u32, Option<(u32, Edge)>> = HashMap::from([(target, None)]);
        let mut next = VecDeque::from([target]);
        while let Some(at) = next.pop_front() {
            let node = self.nodes.get(at as usize)?;
            if let Some(root) = node.root {
                return Some(self.steps(at, root, &towards));
            }
            for edge in &node.referrers {
                if (soft || !edge.is_soft) && !towards.contains_key(&edge.from) {
                    towards.insert(edge.from, Some((at, *edge)));
                    next.push_back(edge.from);
                }
            }
        }
        None
    }

    fn steps(
        &self,
        root: u32,
        (by, class): (ReferenceKind, Option<u32>),
        towards: &HashMap<u32, Option<(u32, Edge)>>,
    ) -> Vec<Step> {
        let tag = |node: u32| self.nodes.get(node as usize).map_or(0, |node| node.tag);
        let mut steps = vec![Step {
            from: class.map(tag),
            by,
            to: tag(root),
            is_soft: false,
        }];
        let mut at = root;
        while let Some(Some((to, edge))) = towards.get(&at) {
            steps.push(Step {
                from: Some(tag(at)),
                by: edge.by,
                to: tag(*to),
                is_soft: edge.is_soft,
            });
            at = *to;
        }
        steps
    }
}

/// Variables come last: what runs just now is seldom what leaks.
fn rank(root: ReferenceKind) -> u32 {
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
    use super::*;

    /// A heap: who refers to whom, and roots. Objects are numbers from 1 on.
    struct Heap {
        roots: Vec<usize>,
        references: Vec<(usize, usize, ReferenceKind)>,
        tags: Vec<i64>,
        class_tags: Vec<i64>,
    }

    impl Heap {
        fn new(size: usize, roots: &[usize], references: &[(usize, usize)]) -> Heap {
            let by_field = |(at, &(from, to)): (usize, &(usize, usize))| {
                (from, to, ReferenceKind::Field(at as i32))
            };
            Heap {
                roots: roots.to_vec(),
                references: references.iter().enumerate().map(by_field).collect(),
                tags: vec![0; size + 1],
                class_tags: vec![0; size + 1],
            }
        }

        /// As the VM does it: in depth, and each object once.
        fn walk(&mut self, search: &mut Search) {
            search.walks();
            let mut visited = vec![false; self.tags.len()];
            let mut stack = Vec::new();
            for root in self.roots.clone() {
                let next = search.told(Reference {
                    kind: ReferenceKind::JniGlobal,
                    class_tag: self.class_tags[root],
                    referrer_class_tag: 0,
                    tag: self.tags[root],
                    referrer: None,
                });
                if next == Next::On {
                    stack.push(root);
                }
            }
            while let Some(at) = stack.pop() {
                if std::mem::replace(&mut visited[at], true) {
                    continue;
                }
                for (from, to, kind) in self.references.clone() {
                    if from != at {
                        continue;
                    }
                    let tag = self.tags[to];
                    let next = search.told(Reference {
                        kind,
                        class_tag: self.class_tags[to],
                        referrer_class_tag: self.class_tags[from],
                        tag,
                        referrer: Some(&mut self.tags[from]),
                    });
                    if next == Next::On {
                        stack.push(to);
                    }
                }
            }
        }

        /// Objects on the way to object `target`, the first from the root on; the root's own step is left out.
        fn search(&mut self, target: usize, weak: Vec<Weak>) -> (Option<Vec<usize>>, Search) {
            let mut search = Search::new(1, weak);
            self.tags[target] = 1;
            while search.goes_on() {
                self.walk(&mut search);
            }
            let way = search.ways().remove(0);
            let object = |tag| self.tags.iter().position(|known| *known == tag).unwrap();
            let way = way.map(|steps| steps.iter().map(|step| object(step.to)).collect());
            (way, search)
        }
    }

    #[test]
    fn the_shortest_way_is_found_whatever_order_a_walk_has() {
        // A long way 1-2-3-4-5-6 and a short one 1-7-6.
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
        // A circle that refers to the object, and nothing else.
        let mut heap = Heap::new(5, &[1], &[(1, 2), (3, 4), (4, 3), (4, 5)]);
        let (way, search) = heap.search(5, Vec::new());
        assert!(way.is_none() && !search.is_cut());
    }

    #[test]
    fn of_several_roots_the_one_is_told_that_says_most() {
        let local = ReferenceKind::Local {
            thread: 1,
            method: 0,
            location: 0,
            slot: 0,
        };
        let told = |search: &mut Search, kind, referrer: Option<&mut i64>| {
            search.told(Reference {
                kind,
                class_tag: 0,
                referrer_class_tag: 0,
                tag: 1,
                referrer,
            });
        };
        let mut search = Search::new(1, Vec::new());
        search.walks();
        told(&mut search, local, None);
        assert_eq!(search.ways()[0].as_ref().unwrap()[0].by, local);
        let mut class = 0;
        told(&mut search, ReferenceKind::Static(3), Some(&mut class));
        told(&mut search, ReferenceKind::Thread, None);
        let step = search.ways()[0].as_ref().unwrap()[0];
        assert_eq!(
            (step.by, step.from, class),
            (ReferenceKind::Static(3), Some(2), 2)
        );
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

    #[test]
    fn weak_references_hold_nothing_and_soft_ones_come_last() {
        let weak = |is_soft| Weak {
            referent: 1,
            is_soft,
        };
        // 1 refers to 2, a reference, whose field 1 is the object; field 2 of 2 is 4, which refers to it, too.
        let references = [(1, 2), (2, 3), (2, 4), (4, 5), (5, 3)];
        let search = |is_soft: bool, references: &[(usize, usize)]| {
            let mut heap = Heap::new(5, &[1], references);
            heap.class_tags[2] = -1;
            heap.search(3, vec![weak(is_soft)])
        };
        assert_eq!(search(false, &references).0, Some(vec![1, 2, 4, 5, 3]));
        assert_eq!(search(false, &references[..3]).0, None);
        let (way, found) = search(true, &references[..3]);
        assert_eq!(way, Some(vec![1, 2, 3]));
        assert!(found.ways()[0].as_ref().unwrap()[2].is_soft);
    }

    #[test]
    fn what_is_left_out_is_said() {
        let many = 2 * MOST_REFERRERS as usize;
        let mut references: Vec<(usize, usize)> = (2..2 + many).map(|from| (1, from)).collect();
        references.extend((2..2 + many).map(|from| (from, many + 2)));
        let mut heap = Heap::new(many + 2, &[1], &references);
        let (way, search) = heap.search(many + 2, Vec::new());
        assert_eq!(way.map(|way| way.len()), Some(3));
        assert!(search.is_cut());
    }

    /// One that nothing reaches is not waited for, however far the others are.
    #[test]
    fn what_died_keeps_no_search_going() {
        let mut heap = Heap::new(6, &[1], &[(1, 2), (2, 3), (5, 4)]);
        let mut search = Search::new(2, Vec::new());
        (heap.tags[3], heap.tags[4]) = (1, 2);
        let mut walks = 0;
        while search.goes_on() {
            heap.walk(&mut search);
            walks += 1;
        }
        assert_eq!((walks, search.ways()[1].is_none()), (3, true));
    }

    #[test]
    fn several_objects_are_looked_for_at_once() {
        let mut heap = Heap::new(5, &[1], &[(1, 2), (2, 3), (2, 4), (1, 5)]);
        let mut search = Search::new(3, Vec::new());
        (heap.tags[3], heap.tags[4], heap.tags[5]) = (1, 2, 3);
        for _ in 0..3 {
            heap.walk(&mut search);
        }
        let lengths: Vec<_> = search
            .ways()
            .iter()
            .map(|way| way.as_ref().map(Vec::len))
            .collect();
        assert_eq!(lengths, [Some(3), Some(3), Some(2)]);
    }
}
