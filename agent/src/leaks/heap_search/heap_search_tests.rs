//! Searches in small heaps, compared with known shortest paths.

use std::time::Duration;

use super::*;

#[derive(Clone, Copy)]
struct TestReference {
    from: usize,
    to: usize,
    by: ReferenceKind,
}

fn refer(from: usize, to: usize, by: ReferenceKind) -> TestReference {
    TestReference { from, to, by }
}

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
            refer(from, to, ReferenceKind::Field(at as i32))
        };
        let references: Vec<_> = references.iter().enumerate().map(by_field).collect();
        Heap::of_kinds(size, roots, &references)
    }

    fn of_kinds(size: usize, roots: &[usize], references: &[TestReference]) -> Heap {
        let mut by_object: HashMap<usize, Vec<_>> = HashMap::new();
        for &TestReference { from, to, by } in references {
            by_object.entry(from).or_default().push((to, by));
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
    fn search(&mut self, target: usize, roles: Vec<ClassRole>) -> (Option<Vec<usize>>, HeapSearch) {
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
    let references = [
        refer(1, 2, Field(0)),
        refer(2, 3, Class),
        refer(3, 4, Static(1)),
    ];
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
fn omitted_objects_are_reported() {
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
fn only_searched_objects_are_reported_as_omitted() {
    let many = 3 * MAX_REFERRERS as usize;
    use ReferenceKind::{Class, Field, Static};
    // 1 refers to all; class 2 holds object 3 and is the class of the others; object 4 is dead.
    let mut references = vec![refer(1, 2, Field(0)), refer(2, 3, Static(0))];
    references.extend((5..5 + many).map(|at| refer(1, at, ReferenceKind::Element(at as i32))));
    references.extend((5..5 + many).map(|at| refer(at, 2, Class)));
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
fn list(length: usize, links: impl Fn(usize) -> Vec<TestReference>) -> Heap {
    let mut references: Vec<_> = (2..length).flat_map(links).collect();
    references.push(refer(length - 1, length + 1, ReferenceKind::Field(9)));
    references.push(refer(1, 2, ReferenceKind::Field(0)));
    references.push(refer(1, length, ReferenceKind::Field(1)));
    let mut heap = Heap::of_kinds(length + 1, &[1], &references);
    for element in 2..=length {
        heap.class_tags[element] = -9;
    }
    heap.tags[length + 1] = 1;
    heap
}

struct ListSearch {
    walks: u32,
    links: u32,
    tags: usize,
}

fn search_list(mut heap: Heap) -> ListSearch {
    let mut search = HeapSearch::new(1, Vec::new());
    let paths = heap.search_all(&mut search, &[]);
    let TargetPath::Held(steps) = &paths[0] else {
        panic!("{paths:?}");
    };
    let links = steps.iter().filter(|step| [LINK, BACK].contains(&step.by));
    let links = links.map(|step| step.times).sum();
    let tags = heap.tags.iter().filter(|tag| **tag != 0).count();
    ListSearch {
        walks: heap.walks,
        links,
        tags,
    }
}

#[test]
fn a_chain_of_any_length_takes_few_walks_and_tags() {
    const LENGTH: usize = 100_000;
    let ListSearch { walks, links, tags } =
        search_list(list(LENGTH, |at| vec![refer(at, at + 1, LINK)]));
    assert_eq!(links as usize, LENGTH - 3);
    assert!(walks < 10 && tags < 100, "{walks} {tags}");
}

/// Each element refers to the previous one, and a walk may begin at the end.
#[test]
fn a_chain_is_measured_from_either_end() {
    const LENGTH: usize = 10_000;
    let both = |at| vec![refer(at, at + 1, LINK), refer(at + 1, at, BACK)];
    let turned = |at| vec![refer(at + 1, at, BACK), refer(at, at + 1, LINK)];
    for heap in [list(LENGTH, both), list(LENGTH, turned)] {
        let ListSearch { walks, links, .. } = search_list(heap);
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
    let ListSearch { walks, links, .. } = search_list(heap);
    assert!(walks < 12 && links > 4_000, "{walks} {links}");
}

#[test]
fn a_circle_of_elements_ends() {
    const LENGTH: usize = 1_000;
    let next = |at| if at + 1 == LENGTH { 2 } else { at + 1 };
    let ListSearch { walks, links, .. } =
        search_list(list(LENGTH, |at| vec![refer(at, next(at), LINK)]));
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
