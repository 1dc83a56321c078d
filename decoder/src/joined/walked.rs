//! The contexts of a run in a tree, by two threads.
//!
//! ```text
//! first half of the numbers  ─► the tree of all runs            this thread
//! second half                ─► a tree of its own ─► added to it   another thread
//! ```
//! Walks wait for memory most of the time, so two threads are nearly twice as fast. Nodes of the second tree are added in the order
//! in which they came, so all get the numbers that one thread would have given them.

use std::collections::HashMap;

use lucce_callgraph::{ContextId, DecodeError, Frame, MethodId, SiteId};

use super::names::Apart;
use super::{Joined, JoinedPlace};
use crate::profile::{Profile, Tick};
use crate::tree::{FrameKey, NodeId, Tree};

/// Fewer contexts are not worth a thread.
const MANY: usize = 100_000;

/// Where contexts are in the tree, in their order, and which numbers the log does not explain.
#[derive(Default)]
pub(super) struct Walked {
    pub places: Vec<Option<JoinedPlace>>,
    pub unknown: Vec<(ContextId, DecodeError)>,
}

/// Some of them in a tree of their own.
struct Part {
    tree: Tree,
    /// By key.
    frames: Vec<Frame>,
    walked: Walked,
}

/// Puts these contexts of a run into the tree of all runs.
pub(super) fn walk(
    joined: &mut Joined,
    profile: &Profile,
    apart: Apart,
    ids: &[ContextId],
    tick: Tick<'_>,
) -> Walked {
    let (first, second) = match ids.len() >= MANY {
        true => ids.split_at(ids.len() / 2),
        false => (ids, &[][..]),
    };
    let Joined { tree, names, .. } = joined;
    // One for both halves: it knows which frames it has numbered.
    let mut key = names.frames(profile, apart);
    std::thread::scope(|scope| {
        let other = (!second.is_empty()).then(|| {
            let named = std::thread::Builder::new().name("lucce-walk".into());
            let part = || part(profile, second, tick);
            // Without a thread this one does it.
            named.spawn_scoped(scope, part).ok()
        });
        let mut walked = each(profile, tree, &mut key, first, tick);
        if !second.is_empty() {
            let done = other.flatten().and_then(|thread| thread.join().ok());
            let part = done.unwrap_or_else(|| part(profile, second, tick));
            walked.add(part, tree, &mut key);
        }
        walked
    })
}

fn part(profile: &Profile, ids: &[ContextId], tick: Tick<'_>) -> Part {
    let mut tree = Tree::default();
    let mut frames = Vec::new();
    let mut known: HashMap<(SiteId, MethodId), FrameKey> = HashMap::new();
    let key = |frame: Frame| {
        let key = known.entry((frame.site, frame.method));
        Some(*key.or_insert_with(|| {
            frames.push(frame);
            FrameKey(frames.len() as u32 - 1)
        }))
    };
    let walked = each(profile, &mut tree, key, ids, tick);
    Part {
        tree,
        frames,
        walked,
    }
}

fn each(
    profile: &Profile,
    tree: &mut Tree,
    key: impl FnMut(Frame) -> Option<FrameKey>,
    ids: &[ContextId],
    tick: Tick<'_>,
) -> Walked {
    let mut grower = profile.grower(key);
    let mut walked = Walked::default();
    walked.places.reserve(ids.len());
    for id in ids {
        tick(1);
        let place = match grower.node(tree, *id) {
            Ok((node, leaf)) => {
                let site = leaf.map_or(SiteId::NONE, |leaf| leaf.site);
                Some(JoinedPlace { node, site })
            }
            Err(error) => {
                walked.unknown.push((*id, error));
                None
            }
        };
        walked.places.push(place);
    }
    walked
}

impl Walked {
    /// What another thread has found.
    fn add(&mut self, part: Part, all: &mut Tree, key: &mut impl FnMut(Frame) -> Option<FrameKey>) {
        let Part {
            tree,
            frames,
            walked,
        } = part;
        let mut nodes: Vec<Option<NodeId>> = vec![Some(Tree::ROOT)];
        for node in 1..tree.len() {
            let added = tree.step(NodeId(node as u32)).and_then(|(parent, of)| {
                let parent = (*nodes.get(parent.0 as usize)?)?;
                let key = key(*frames.get(of.0 as usize)?)?;
                all.child(parent, key)
            });
            nodes.push(added);
        }
        drop(tree);
        let here = |place: JoinedPlace| {
            let node = (*nodes.get(place.node.0 as usize)?)?;
            Some(JoinedPlace { node, ..place })
        };
        let places = walked.places.into_iter();
        self.places.extend(places.map(|place| place.and_then(here)));
        self.unknown.extend(walked.unknown);
    }
}
