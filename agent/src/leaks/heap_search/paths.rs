//! The paths that a search has found: from a target back to a root, by the kept referrers.

use std::collections::{HashMap, VecDeque};

use lucce_jvmti::heap::ReferenceKind;

use super::{HeapEdge, HeapSearch, HoldStrength, HolderPathStep, TargetPath};

/// Number of equal steps that count as a chain.
const CHAIN: usize = 4;

pub(super) const STRENGTHS: [HoldStrength; 3] = [
    HoldStrength::Strong,
    HoldStrength::Soft,
    HoldStrength::Finalizer,
];

impl HeapSearch {
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

    pub(super) fn find_path(&self, target: u32) -> Option<Vec<HolderPathStep>> {
        // Paths that hold only for a limited time come last.
        STRENGTHS
            .into_iter()
            .find_map(|strength| self.find_path_by(target, strength))
    }

    pub(super) fn find_path_by(
        &self,
        target: u32,
        strength: HoldStrength,
    ) -> Option<Vec<HolderPathStep>> {
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
pub(super) fn root_rank(root: ReferenceKind) -> u32 {
    match root {
        ReferenceKind::Static(_) => 0,
        ReferenceKind::Thread => 1,
        ReferenceKind::Local { .. } => 3,
        ReferenceKind::JniLocal { .. } => 4,
        _ => 2,
    }
}
