//! Nodes, stored compactly: most have one caller, and a method has few nodes or consecutive ones.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;

use super::DeadCode;
use crate::numbering::FastMap;
use crate::{MethodId, SiteId, Version};

/// The numbers of a node: `[used, capacity)` are free, and each caller owns an interval of the rest.
#[derive(Clone, Debug)]
pub(crate) struct NodeIntervals {
    version: Version,
    pub(crate) capacity: u64,
    pub(crate) used: u64,
    callers: CallerIntervals,
}

/// The caller that owns the interval at `av`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct IncomingInterval {
    pub(super) av: u64,
    origin: PackedCaller,
}

/// ```text
/// version 12 | site 28 | caller 24        never 0, because no version is
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PackedCaller(NonZeroU64);

/// The owners of a node's numbers. Most nodes have one caller, which needs no memory beside the node.
#[derive(Clone, Debug, Default)]
struct CallerIntervals {
    /// Its interval begins at 1.
    first: Option<PackedCaller>,
    /// Ascending by addition value.
    #[allow(
        clippy::box_collection,
        reason = "a third of the size in nodes that need none"
    )]
    more: Option<Box<Vec<IncomingInterval>>>,
}

impl IncomingInterval {
    /// Packs ids that were checked.
    pub(super) fn new(av: u64, from: Version, site: SiteId, caller: MethodId) -> IncomingInterval {
        let place = u64::from(site.0) << MethodId::BITS | u64::from(caller.0);
        let version = u64::from(from.0) << (SiteId::BITS + MethodId::BITS);
        let origin = NonZeroU64::new(version | place).unwrap_or(NonZeroU64::MIN);
        IncomingInterval {
            av,
            origin: PackedCaller(origin),
        }
    }

    pub(super) fn source_version(self) -> Version {
        Version((self.origin.0.get() >> (SiteId::BITS + MethodId::BITS)) as u32)
    }

    pub(super) fn site(self) -> SiteId {
        SiteId((self.origin.0.get() >> MethodId::BITS) as u32 & SiteId::ENTRY.0)
    }

    pub(super) fn caller(self) -> MethodId {
        MethodId(self.origin.0.get() as u32 & MethodId::EVENT.0)
    }
}

impl NodeIntervals {
    pub(super) fn new(version: Version, capacity: u64) -> NodeIntervals {
        NodeIntervals {
            version,
            capacity,
            used: 1,
            callers: CallerIntervals::default(),
        }
    }

    /// Returns the caller with the greatest addition value up to `av`.
    pub(super) fn caller_at(&self, av: u64) -> Option<IncomingInterval> {
        let CallerIntervals { first, more } = &self.callers;
        let more = more.as_ref().map_or(&[][..], |more| more.as_slice());
        let behind = more.partition_point(|edge| edge.av <= av);
        let target = behind.checked_sub(1).and_then(|at| more.get(at)).copied();
        target.or_else(|| {
            (*first)
                .filter(|_| av >= 1)
                .map(|origin| IncomingInterval { av: 1, origin })
        })
    }

    /// Adds an interval `[av, av + width)`, which is free. Returns the additional bytes.
    pub(super) fn add_interval(&mut self, edge: IncomingInterval, width: u64) -> usize {
        self.used = self.used.max(edge.av.saturating_add(width));
        self.callers.insert(edge)
    }
}

impl CallerIntervals {
    fn insert(&mut self, edge: IncomingInterval) -> usize {
        if edge.av == 1 {
            self.first = Some(edge.origin);
            return 0;
        }
        let before = self.memory_bytes();
        let more = self.more.get_or_insert_default();
        reserve_one(more);
        // Mostly the node's last interval.
        let at = match more.last() {
            Some(last) if last.av > edge.av => more.partition_point(|other| other.av < edge.av),
            _ => more.len(),
        };
        more.insert(at, edge);
        self.memory_bytes() - before
    }

    fn remove_dead(&mut self, gone: &dyn DeadCode) {
        let lives = |edge: &IncomingInterval| {
            !gone.is_method_dead(edge.caller()) && !gone.is_site_dead(edge.site())
        };
        let first = |origin: &PackedCaller| {
            lives(&IncomingInterval {
                av: 1,
                origin: *origin,
            })
        };
        self.first = self.first.filter(first);
        if let Some(more) = &mut self.more {
            more.retain(lives);
            more.shrink_to(more.len() + more.len() / 4);
        }
    }

    fn memory_bytes(&self) -> usize {
        let of = |more: &Vec<IncomingInterval>| {
            size_of::<Vec<IncomingInterval>>() + more.capacity() * size_of::<IncomingInterval>()
        };
        self.more.as_deref().map_or(0, of)
    }
}

/// Reserves room for one more element: grows by a quarter, where a vector would double.
pub(super) fn reserve_one<T>(vector: &mut Vec<T>) {
    if vector.len() == vector.capacity() {
        vector.reserve_exact(vector.len() / 4 + 1);
    }
}

/// The nodes of a method, in the order of versions.
#[derive(Clone, Debug, Default)]
struct MethodNodes {
    /// The version of the first node, if there is one. It lies beside the method, where nodes are in other cache lines.
    first: Version,
    nodes: Vec<NodeIntervals>,
}

impl MethodNodes {
    fn get(&self, version: Version) -> Option<&NodeIntervals> {
        let node = self.nodes.get(self.first_from(version))?;
        (node.version == version).then_some(node)
    }

    fn get_mut(&mut self, version: Version) -> Option<&mut NodeIntervals> {
        let at = self.first_from(version);
        self.nodes
            .get_mut(at)
            .filter(|node| node.version == version)
    }

    /// The index of the first node from `version` on. Mostly versions are consecutive, so the first one says where it is: a
    /// binary search reads one cache line per step.
    fn first_from(&self, version: Version) -> usize {
        let guess = version.0.saturating_sub(self.first.0) as usize;
        match self.nodes.get(guess) {
            Some(node) if node.version == version => guess,
            _ => self.nodes.partition_point(|node| node.version < version),
        }
    }

    /// Inserts a new node and returns the additional bytes.
    fn insert(&mut self, node: NodeIntervals) -> usize {
        let before = self.nodes.capacity();
        reserve_one(&mut self.nodes);
        let at = self.first_from(node.version);
        if at == 0 {
            self.first = node.version;
        }
        self.nodes.insert(at, node);
        (self.nodes.capacity() - before) * size_of::<NodeIntervals>()
    }
}

/// All nodes: for each method, in the order of versions.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeTable {
    methods: FastMap<MethodId, MethodNodes>,
    len: usize,
    /// Bytes of everything but the map.
    bytes: usize,
}

impl NodeTable {
    pub(super) fn get(&self, version: Version, method: MethodId) -> Option<&NodeIntervals> {
        self.methods.get(&method)?.get(version)
    }

    /// Returns the nodes of `method` in `versions`, in order.
    pub(super) fn nodes_in_range(
        &self,
        method: MethodId,
        versions: RangeInclusive<Version>,
    ) -> impl Iterator<Item = (Version, &NodeIntervals)> {
        let of_method = self.methods.get(&method);
        let nodes = of_method.and_then(|of| of.nodes.get(of.first_from(*versions.start())..));
        let from = nodes.unwrap_or_default().iter();
        from.map(|node| (node.version, node))
            .take_while(move |(version, _)| version <= versions.end())
    }

    /// Inserts a new node.
    pub(super) fn insert(&mut self, method: MethodId, node: NodeIntervals) {
        self.bytes += self.methods.entry(method).or_default().insert(node);
        self.len += 1;
    }

    /// Adds an interval to a node. The checks of each change ensure that the node exists.
    pub(super) fn add_interval(
        &mut self,
        to: (Version, MethodId),
        edge: IncomingInterval,
        width: u64,
    ) {
        let nodes = self.methods.get_mut(&to.1);
        let node = nodes.and_then(|nodes| nodes.get_mut(to.0));
        self.bytes += node.map_or(0, |node| node.add_interval(edge, width));
    }

    /// Removes these methods, as callees and as callers.
    pub(super) fn remove_dead(&mut self, gone: &dyn DeadCode) {
        self.methods
            .retain(|method, _| !gone.is_method_dead(*method));
        self.methods.shrink_to(2 * self.methods.len());
        self.bytes = 0;
        for MethodNodes { nodes, .. } in self.methods.values_mut() {
            self.bytes += nodes.capacity() * size_of::<NodeIntervals>();
            for node in nodes {
                node.callers.remove_dead(gone);
                self.bytes += node.callers.memory_bytes();
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn memory_bytes(&self) -> usize {
        // A map's entry has one byte beside it.
        let entry = size_of::<(MethodId, MethodNodes)>() + 1;
        self.bytes + self.methods.capacity() * 8 / 7 * entry
    }
}

#[cfg(test)]
mod node_tests {
    use super::*;

    /// Versions with and without gaps, inserted in any order, against a plain list.
    #[test]
    fn nodes_are_found_by_version() {
        let method = MethodId(7);
        for versions in [&[3, 4, 5, 6][..], &[9, 1, 2, 3, 7, 8, 12], &[5], &[]] {
            let mut table = NodeTable::default();
            for version in versions {
                let capacity = u64::from(*version) * 10;
                table.insert(method, NodeIntervals::new(Version(*version), capacity));
            }
            for start in 0..15 {
                let known = table.get(Version(start), method);
                let expected = versions.contains(&start).then(|| u64::from(start) * 10);
                assert_eq!(known.map(|node| node.capacity), expected);
                let found = table.nodes_in_range(method, Version(start)..=Version(8));
                let found: Vec<u32> = found.map(|(version, _)| version.0).collect();
                let expected: Vec<u32> = (start..=8).filter(|at| versions.contains(at)).collect();
                assert_eq!(found, expected, "{versions:?} from {start}");
            }
        }
    }

    #[test]
    fn the_last_interval_up_to_a_number_owns_it() {
        let mut node = NodeIntervals::new(Version(1), 100);
        let edge = |av| IncomingInterval::new(av, Version(1), SiteId(av as u32), MethodId(1));
        // The last one is appended, and one between is inserted.
        for av in [1, 40, 90, 20] {
            node.add_interval(edge(av), 5);
        }
        for (number, av) in [(1, 1), (19, 1), (20, 20), (41, 40), (89, 40), (99, 90)] {
            assert_eq!(node.caller_at(number), Some(edge(av)));
        }
        assert_eq!((node.caller_at(0), node.used), (None, 95));
    }
}
