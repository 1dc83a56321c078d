//! Nodes, stored compactly: most have one caller, and a method's nodes are few or follow each other.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;

use super::Gone;
use crate::numbering::FastMap;
use crate::{MethodId, SiteId, Version};

/// A node's numbers: `[used, capacity)` are free, and each caller owns an interval of the rest.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    version: Version,
    pub(crate) capacity: u64,
    pub(crate) used: u64,
    callers: Callers,
}

/// Where the interval at `av` comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Incoming {
    pub(super) av: u64,
    origin: Origin,
}

/// ```text
/// version 12 | site 28 | caller 24        never 0, because no version is
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Origin(NonZeroU64);

/// Who owns which numbers. Most nodes have one caller; it needs no memory beside the node.
#[derive(Clone, Debug, Default)]
struct Callers {
    /// Its interval begins at 1.
    first: Option<Origin>,
    /// Ascending by addition value.
    #[allow(
        clippy::box_collection,
        reason = "a third of the size in nodes that need none"
    )]
    more: Option<Box<Vec<Incoming>>>,
}

impl Incoming {
    /// The ids were checked.
    pub(super) fn new(av: u64, from: Version, site: SiteId, caller: MethodId) -> Incoming {
        let place = u64::from(site.0) << MethodId::BITS | u64::from(caller.0);
        let version = u64::from(from.0) << (SiteId::BITS + MethodId::BITS);
        let origin = NonZeroU64::new(version | place).unwrap_or(NonZeroU64::MIN);
        Incoming {
            av,
            origin: Origin(origin),
        }
    }

    pub(super) fn from(self) -> Version {
        Version((self.origin.0.get() >> (SiteId::BITS + MethodId::BITS)) as u32)
    }

    pub(super) fn site(self) -> SiteId {
        SiteId((self.origin.0.get() >> MethodId::BITS) as u32 & SiteId::ENTRY.0)
    }

    pub(super) fn caller(self) -> MethodId {
        MethodId(self.origin.0.get() as u32 & MethodId::EVENT.0)
    }
}

impl Node {
    pub(super) fn new(version: Version, capacity: u64) -> Node {
        Node {
            version,
            capacity,
            used: 1,
            callers: Callers::default(),
        }
    }

    /// The caller with the greatest addition value up to `av`.
    pub(super) fn caller_at(&self, av: u64) -> Option<Incoming> {
        let Callers { first, more } = &self.callers;
        let more = more.as_ref().map_or(&[][..], |more| more.as_slice());
        let behind = more.partition_point(|edge| edge.av <= av);
        let found = behind.checked_sub(1).and_then(|at| more.get(at)).copied();
        found.or_else(|| {
            (*first)
                .filter(|_| av >= 1)
                .map(|origin| Incoming { av: 1, origin })
        })
    }

    /// Its interval `[av, av + width)` is free. Returns the bytes that this took.
    pub(super) fn add(&mut self, edge: Incoming, width: u64) -> usize {
        self.used = self.used.max(edge.av.saturating_add(width));
        self.callers.insert(edge)
    }
}

impl Callers {
    fn insert(&mut self, edge: Incoming) -> usize {
        if edge.av == 1 {
            self.first = Some(edge.origin);
            return 0;
        }
        let before = self.bytes();
        let more = self.more.get_or_insert_default();
        grow(more);
        let at = more.partition_point(|other| other.av < edge.av);
        more.insert(at, edge);
        self.bytes() - before
    }

    fn sweep(&mut self, gone: &dyn Gone) {
        let lives = |edge: &Incoming| !gone.method(edge.caller()) && !gone.site(edge.site());
        let first = |origin: &Origin| {
            lives(&Incoming {
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

    fn bytes(&self) -> usize {
        let of = |more: &Vec<Incoming>| {
            size_of::<Vec<Incoming>>() + more.capacity() * size_of::<Incoming>()
        };
        self.more.as_deref().map_or(0, of)
    }
}

/// Makes room for one more: a quarter of what is there, where a vector doubles.
pub(super) fn grow<T>(vector: &mut Vec<T>) {
    if vector.len() == vector.capacity() {
        vector.reserve_exact(vector.len() / 4 + 1);
    }
}

/// All nodes: of each method, in the order of versions.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    methods: FastMap<MethodId, Vec<Node>>,
    len: usize,
    /// Of everything but the map.
    bytes: usize,
}

impl Nodes {
    pub(super) fn get(&self, version: Version, method: MethodId) -> Option<&Node> {
        let nodes = self.methods.get(&method)?;
        nodes.get(
            nodes
                .binary_search_by_key(&version, |node| node.version)
                .ok()?,
        )
    }

    /// Those of `method` in `versions`, in order.
    pub(super) fn range(
        &self,
        method: MethodId,
        versions: RangeInclusive<Version>,
    ) -> impl Iterator<Item = (Version, &Node)> {
        let nodes = self.methods.get(&method).map_or(&[][..], Vec::as_slice);
        let first = nodes.partition_point(|node| node.version < *versions.start());
        let from = nodes.get(first..).unwrap_or_default().iter();
        from.map(|node| (node.version, node))
            .take_while(move |(version, _)| version <= versions.end())
    }

    /// The node is new.
    pub(super) fn insert(&mut self, method: MethodId, node: Node) {
        let nodes = self.methods.entry(method).or_default();
        let before = nodes.capacity();
        grow(nodes);
        self.bytes += (nodes.capacity() - before) * size_of::<Node>();
        let at = nodes.partition_point(|other| other.version < node.version);
        nodes.insert(at, node);
        self.len += 1;
    }

    /// Each change of the graph has seen to it that there is such a node.
    pub(super) fn add(&mut self, to: (Version, MethodId), edge: Incoming, width: u64) {
        let nodes = self.methods.get_mut(&to.1);
        let node = nodes.and_then(|nodes| {
            let at = nodes.binary_search_by_key(&to.0, |node| node.version);
            nodes.get_mut(at.ok()?)
        });
        self.bytes += node.map_or(0, |node| node.add(edge, width));
    }

    /// Without these methods, as callees and as callers.
    pub(super) fn sweep(&mut self, gone: &dyn Gone) {
        self.methods.retain(|method, _| !gone.method(*method));
        self.methods.shrink_to(2 * self.methods.len());
        self.bytes = 0;
        for nodes in self.methods.values_mut() {
            self.bytes += nodes.capacity() * size_of::<Node>();
            for node in nodes {
                node.callers.sweep(gone);
                self.bytes += node.callers.bytes();
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> usize {
        // A map's entry has one byte beside it.
        let entry = size_of::<(MethodId, Vec<Node>)>() + 1;
        self.bytes + self.methods.capacity() * 8 / 7 * entry
    }
}
