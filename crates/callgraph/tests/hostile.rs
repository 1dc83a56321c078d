//! Logs are hostile: whatever is read, nothing panics and decoding ends.
#![cfg(not(loom))]

mod support;

use lucce_callgraph::*;
use proptest::prelude::*;
use support::*;

/// Small values, so that changes often fit together, and a few arbitrary ones.
fn small(below: u32) -> impl Strategy<Value = u32> {
    prop_oneof![20 => 0..below, 1 => any::<u32>()]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![10 => 0..70_000u64, 10 => 0..8u64, 1 => any::<u64>()]
}

fn method() -> impl Strategy<Value = MethodId> {
    prop_oneof![10 => small(4).prop_map(MethodId), 1 => Just(MethodId::EVENT)]
}

fn change() -> impl Strategy<Value = GraphChange> {
    let version = || small(6).prop_map(Version);
    let site = || small(4).prop_map(SiteId);
    let base = (version(), prop::option::of(small(40)));
    let base = base.prop_map(|(version, anchor_bits)| {
        GraphChange::Base(Base {
            version,
            anchor_bits,
        })
    });
    let node = (version(), method(), number()).prop_map(|(version, method, capacity)| {
        GraphChange::Node(GraphNode {
            version,
            method,
            capacity,
        })
    });
    let effect = prop_oneof![
        4 => (version(), number()).prop_map(|(to, av)| TransitionEffect::Additive { to, av }),
        1 => Just(TransitionEffect::Anchoring),
    ];
    let transition = (version(), site(), method(), method(), effect).prop_map(
        |(version, site, caller, callee, effect)| {
            GraphChange::Transition(Transition {
                version,
                site,
                caller,
                callee,
                effect,
            })
        },
    );
    let parent = prop::option::of((number().prop_map(ContextId), site(), method()));
    let anchor = (version(), small(4).prop_map(AnchorId), method(), parent).prop_map(
        |(base, id, head, parent)| {
            GraphChange::Anchor(Anchor {
                base,
                id,
                head,
                parent,
            })
        },
    );
    prop_oneof![1 => base, 4 => node, 6 => transition, 3 => anchor]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..config() })]

    #[test]
    fn random_changes_are_refused_or_harmless(
        layout in layouts(),
        changes in prop::collection::vec(change(), 0..300),
        ids in prop::collection::vec((number(), method()), 50),
    ) {
        let mut graph = VersionedGraph::new(layout);
        for change in changes {
            // A refused change leaves the graph as it was; reading goes on.
            let _ = graph.apply_change(change);
        }
        for (id, method) in ids {
            let _ = graph.decode_context(ContextId(id), method);
        }
    }

    /// A log whose records were damaged one by one.
    #[test]
    fn a_damaged_log_never_panics(
        layout in layouts(), turns in turns(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), change()), 0..10),
    ) {
        let encoder = ContextEncoder::new(layout, EncodingPolicy::LUCCE, Vec::new());
        let given = run(&encoder, &turns);
        let mut changes = encoder.with_journal(|changes| changes.clone());
        for (at, change) in damage {
            let at = at.index(changes.len().max(1));
            changes.splice(at..(at + 1).min(changes.len()), [change]);
        }
        let mut graph = VersionedGraph::new(layout);
        for change in changes {
            let _ = graph.apply_change(change);
        }
        for given in given {
            let _ = graph.decode_context(given.id, given.last);
        }
    }
}

/// `depth` methods calling each other, the last one anchoring into the first, `anchors` times.
fn spiral(depth: u32, anchors: u32) -> (VersionedGraph, ContextId) {
    let layout = ContextLayout::DEFAULT;
    let version = Version(1);
    let mut graph = VersionedGraph::new(layout);
    let mut apply = |change| assert_eq!(graph.apply_change(change), Ok(()));
    apply(GraphChange::Base(Base::new(version)));
    for method in 0..depth {
        let capacity = u64::from(method) + 1;
        apply(GraphChange::Node(GraphNode {
            version,
            method: MethodId(method),
            capacity,
        }));
    }
    for (caller, callee) in (1..depth).map(|callee| (MethodId(callee - 1), MethodId(callee))) {
        let effect = TransitionEffect::Additive { to: version, av: 1 };
        apply(GraphChange::Transition(Transition {
            version,
            site: SiteId(1),
            caller,
            callee,
            effect,
        }));
    }
    let deepest = |id| layout.pack_context(version, AnchorId(id), u64::from(depth) - 1);
    for id in 0..anchors {
        let caller = MethodId(depth - 1);
        let parent = id
            .checked_sub(1)
            .map(|before| (deepest(before), SiteId(1), caller));
        apply(GraphChange::Anchor(Anchor {
            base: version,
            id: AnchorId(id),
            head: MethodId(0),
            parent,
        }));
    }
    (graph, deepest(anchors - 1))
}

#[test]
fn a_log_that_claims_endless_stacks_is_stopped() {
    let (graph, deepest) = spiral(1024, 100);
    assert_eq!(
        graph.decode_context(deepest, MethodId(1023)).unwrap().len(),
        100 * 1024 - 1
    );
    let (graph, deepest) = spiral(1024, 4097);
    assert_eq!(
        graph.decode_context(deepest, MethodId(1023)),
        Err(DecodeError::TooDeep)
    );
}

fn graph_of(changes: &[GraphChange]) -> VersionedGraph {
    replay(ContextLayout::DEFAULT, changes)
}

const V: Version = Version(1);
const M: MethodId = MethodId(1);
const BEGIN: [GraphChange; 3] = [
    GraphChange::Base(Base::new(V)),
    GraphChange::Node(GraphNode {
        version: V,
        method: M,
        capacity: 4,
    }),
    GraphChange::Node(GraphNode {
        version: V,
        method: MethodId(2),
        capacity: 9,
    }),
];

fn additive(caller: MethodId, callee: MethodId, av: u64) -> GraphChange {
    let effect = TransitionEffect::Additive { to: V, av };
    GraphChange::Transition(Transition {
        version: V,
        site: SiteId(1),
        caller,
        callee,
        effect,
    })
}

#[test]
fn every_inconsistent_change_is_named() {
    let anchor = |id, parent| Anchor {
        base: V,
        id: AnchorId(id),
        head: M,
        parent,
    };
    let with_anchors = |bits| {
        GraphChange::Base(Base {
            version: Version(2),
            anchor_bits: Some(bits),
        })
    };
    let cases = [
        (BEGIN[0], GraphError::BaseTooEarly(V)),
        (
            GraphChange::Base(Base::new(Version(0))),
            GraphError::Version(Version(0)),
        ),
        (with_anchors(0), GraphError::AnchorBits(0)),
        (with_anchors(52), GraphError::AnchorBits(52)),
        (BEGIN[1], GraphError::NodeExists(V, M)),
        (
            additive(M, M, 1),
            GraphError::Interval {
                to: V,
                callee: M,
                av: 1,
            },
        ),
        (
            additive(M, MethodId(2), 0),
            GraphError::Interval {
                to: V,
                callee: MethodId(2),
                av: 0,
            },
        ),
        (
            additive(M, MethodId(2), 6),
            GraphError::Interval {
                to: V,
                callee: MethodId(2),
                av: 6,
            },
        ),
        (
            additive(MethodId(3), M, 1),
            GraphError::NoNode(V, MethodId(3)),
        ),
        (
            additive(M, MethodId(3), 1),
            GraphError::NoNode(V, MethodId(3)),
        ),
        (
            GraphChange::Anchor(anchor(1, None)),
            GraphError::AnchorOrder(V, AnchorId(1)),
        ),
        (
            GraphChange::Anchor(anchor(0, Some((ContextId(7), SiteId(1), M)))),
            GraphError::Parent(ContextId(7)),
        ),
    ];
    for (change, error) in cases {
        assert_eq!(
            graph_of(&BEGIN).apply_change(change),
            Err(error),
            "{change:?}"
        );
    }
}

#[test]
fn what_a_number_misses_is_named() {
    let mut graph = graph_of(&BEGIN);
    let layout = graph.layout();
    let id = |version, call| layout.pack_context(Version(version), AnchorId(0), call);
    let missing = |graph: &VersionedGraph, id, method| match graph.decode_context(id, method) {
        Err(DecodeError::Unknown { missing, .. }) => missing,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        missing(&graph, ContextId::UNKNOWN, M),
        MissingReference::Number
    );
    assert_eq!(
        missing(&graph, id(2, 1), M),
        MissingReference::Node(Version(2), M)
    );
    assert_eq!(
        missing(&graph, id(1, 1), M),
        MissingReference::Interval(V, M, 1)
    );
    assert_eq!(
        missing(&graph, id(1, 0), M),
        MissingReference::Anchor(V, AnchorId(0))
    );
    graph
        .apply_change(GraphChange::Anchor(Anchor {
            base: V,
            id: AnchorId(0),
            head: M,
            parent: None,
        }))
        .unwrap();
    assert_eq!(graph.decode_context(id(1, 0), M), Ok(Vec::new()));
    let other = DecodeError::NotHead {
        id: id(1, 0),
        method: MethodId(2),
        head: M,
    };
    assert_eq!(graph.decode_context(id(1, 0), MethodId(2)), Err(other));
}
