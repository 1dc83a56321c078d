//! Inserts the contexts of a run into the tree, on two threads.
//!
//! ```text
//! first half of the context ids  ─► the tree of all runs                   this thread
//! second half                    ─► a separate tree ─► added to the first  another thread
//! ```
//! Walks mostly wait for memory, so two threads are nearly twice as fast. Nodes of the second tree are added in their
//! order of insertion, so all nodes get the numbers that one thread would have given them.

use std::collections::HashMap;

use lucce_callgraph::{ContextFrame, ContextId, DecodeError, MethodId, SiteId};

use super::names::FrameIdentity;
use super::{ContextPosition, MergedProfile};
use crate::call_tree::{CallTree, CallTreeBuilder, NodeId, TreeFrameKey};
use crate::profile::{Profile, ProgressTick};

/// Minimum number of contexts for a second thread.
const MIN_PARALLEL_CONTEXTS: usize = 100_000;

/// Positions of contexts in the tree, in their order, and the ids that the log does not explain.
#[derive(Default)]
pub(super) struct ContextWalkResult {
    pub positions: Vec<Option<ContextPosition>>,
    pub unknown: Vec<(ContextId, DecodeError)>,
}

/// A part of the contexts in a separate tree.
struct PartialTree {
    tree: CallTree,
    /// Frames by key.
    frames: Vec<ContextFrame>,
    result: ContextWalkResult,
}

/// Inserts contexts of a run into the tree of all runs.
pub(super) fn walk_contexts(
    joined: &mut MergedProfile,
    profile: &Profile,
    apart: FrameIdentity,
    ids: &[ContextId],
    tick: ProgressTick<'_>,
) -> ContextWalkResult {
    let (first, second) = match ids.len() >= MIN_PARALLEL_CONTEXTS {
        true => ids.split_at(ids.len() / 2),
        false => (ids, &[][..]),
    };
    let MergedProfile { tree, names, .. } = joined;
    // One numbering for both halves, which numbers each frame once.
    let mut key = names.number_frames(profile, apart);
    std::thread::scope(|scope| {
        let other = (!second.is_empty()).then(|| {
            let named = std::thread::Builder::new().name("lucce-walk".into());
            let part = || build_partial_tree(profile, second, tick);
            // If no thread can be started, this one does all work.
            named.spawn_scoped(scope, part).ok()
        });
        let mut walked = insert_ids(profile, tree, &mut key, first, tick);
        if !second.is_empty() {
            let done = other.flatten().and_then(|thread| thread.join().ok());
            let part = done.unwrap_or_else(|| build_partial_tree(profile, second, tick));
            walked.append_part(part, tree, &mut key);
        }
        walked
    })
}

fn build_partial_tree(profile: &Profile, ids: &[ContextId], tick: ProgressTick<'_>) -> PartialTree {
    let mut tree = CallTree::default();
    let mut frames = Vec::new();
    let mut cache: HashMap<(SiteId, MethodId), TreeFrameKey> = HashMap::new();
    let key = |frame: ContextFrame| {
        let key = cache.entry((frame.site, frame.method));
        Some(*key.or_insert_with(|| {
            frames.push(frame);
            TreeFrameKey(frames.len() as u32 - 1)
        }))
    };
    let walked = insert_ids(profile, &mut tree, key, ids, tick);
    PartialTree {
        tree,
        frames,
        result: walked,
    }
}

fn insert_ids(
    profile: &Profile,
    tree: &mut CallTree,
    key: impl FnMut(ContextFrame) -> Option<TreeFrameKey>,
    ids: &[ContextId],
    tick: ProgressTick<'_>,
) -> ContextWalkResult {
    let mut grower = CallTreeBuilder::new(profile, key);
    let mut walked = ContextWalkResult::default();
    walked.positions.reserve(ids.len());
    for id in ids {
        tick(1);
        let place = match grower.insert_context(tree, *id) {
            Ok((node, leaf)) => {
                let site = leaf.map_or(SiteId::NONE, |leaf| leaf.site);
                Some(ContextPosition { node, site })
            }
            Err(error) => {
                walked.unknown.push((*id, error));
                None
            }
        };
        walked.positions.push(place);
    }
    walked
}

impl ContextWalkResult {
    /// Adds the result of the other thread.
    fn append_part(
        &mut self,
        part: PartialTree,
        all: &mut CallTree,
        key: &mut impl FnMut(ContextFrame) -> Option<TreeFrameKey>,
    ) {
        let PartialTree {
            tree,
            frames,
            result: walked,
        } = part;
        let mut nodes: Vec<Option<NodeId>> = vec![Some(CallTree::ROOT)];
        for node in 1..tree.len() {
            let added = tree
                .caller_and_frame(NodeId(node as u32))
                .and_then(|(parent, of)| {
                    let parent = (*nodes.get(parent.0 as usize)?)?;
                    let key = key(*frames.get(of.0 as usize)?)?;
                    all.get_or_insert_child(parent, key)
                });
            nodes.push(added);
        }
        drop(tree);
        let here = |place: ContextPosition| {
            let node = (*nodes.get(place.node.0 as usize)?)?;
            Some(ContextPosition { node, ..place })
        };
        let places = walked.positions.into_iter();
        self.positions
            .extend(places.map(|place| place.and_then(here)));
        self.unknown.extend(walked.unknown);
    }
}
