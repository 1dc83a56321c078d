//! Removes dead code: methods that will never run again and sites without further events leave the graph, with all
//! contexts that pass through them.
//!
//! Their numbers are not reused: a node's used numbers stay used, and anchors keep their numbers. This graph no longer
//! knows the number of such a context; the log does.

use super::VersionedGraph;
use crate::{ContextId, MethodId, Version};

/// Which code will never run again.
pub trait DeadCode {
    fn is_method_dead(&self, method: MethodId) -> bool;
    fn is_site_dead(&self, site: crate::SiteId) -> bool;
}

/// Live anchors by epoch and number, one bit each.
struct LiveAnchors(Vec<Vec<u64>>);

impl LiveAnchors {
    fn contains(&self, epoch: usize, anchor: usize) -> bool {
        let words = self.0.get(epoch);
        let word = words.and_then(|words| words.get(anchor / 64)).copied();
        word.unwrap_or(0) >> (anchor % 64) & 1 == 1
    }

    fn insert(&mut self, epoch: usize, anchor: usize) {
        let words = self.0.get_mut(epoch);
        if let Some(word) = words.and_then(|words| words.get_mut(anchor / 64)) {
            *word |= 1 << (anchor % 64);
        }
    }
}

impl VersionedGraph {
    pub(crate) fn sweep_dead_code(&mut self, gone: &dyn DeadCode) {
        let living = self.find_live_anchors(gone);
        for (at, epoch) in self.epochs.iter_mut().enumerate() {
            epoch.anchors.retain(|anchor| living.contains(at, anchor));
        }
        self.nodes.remove_dead(gone);
    }

    /// Returns the anchors of contexts without dead methods. An anchor's parent was known before it.
    fn find_live_anchors(&self, gone: &dyn DeadCode) -> LiveAnchors {
        let words = |len: usize| vec![0; len.div_ceil(64)];
        let epochs = self.epochs.iter();
        let mut living = LiveAnchors(epochs.map(|epoch| words(epoch.anchors.len())).collect());
        for (at, epoch) in self.epochs.iter().enumerate() {
            for (anchor, origin) in epoch.anchors.iter() {
                let parent = origin.parent_context();
                let lives = !gone.is_method_dead(origin.head)
                    && !gone.is_site_dead(origin.site)
                    && (parent == ContextId::UNKNOWN
                        || self.is_path_live(gone, &living, parent, origin.caller));
                if lives {
                    living.insert(at, anchor);
                }
            }
        }
        living
    }

    /// Whether the context of `method`, down to the nearest anchor, and that anchor are live.
    fn is_path_live(
        &self,
        gone: &dyn DeadCode,
        living: &LiveAnchors,
        id: ContextId,
        method: MethodId,
    ) -> bool {
        let (mut id, mut method) = (id, method);
        loop {
            let version: Version = self.layout.version_of(id);
            let (Some(layout), Some(epoch)) = (self.layout_of(version), self.epoch_index(version))
            else {
                return false;
            };
            if gone.is_method_dead(method) {
                return false;
            }
            match layout.call_id_of(id) {
                0 => return living.contains(epoch, layout.anchor_of(id).0 as usize),
                call => match self.interval_source(layout, id, method, call) {
                    Ok((_, frame)) if gone.is_site_dead(frame.site) => return false,
                    Ok((parent, frame)) => (id, method) = (parent, frame.method),
                    Err(_) => return false,
                },
            }
        }
    }
}
