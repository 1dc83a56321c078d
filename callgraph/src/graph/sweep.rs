//! What is gone: methods that will never run again, and sites where nothing will happen again, leave the graph, with all
//! contexts that pass through them.
//!
//! Their numbers are given to no other context: a node's used numbers stay used, and anchors keep their places. A number
//! of such a context is then one that this graph does not know; the log does.

use super::Graph;
use crate::{ContextId, MethodId, Version};

/// Which code will never run again.
pub trait Gone {
    fn method(&self, method: MethodId) -> bool;
    fn site(&self, site: crate::SiteId) -> bool;
}

/// Anchors by epoch and number.
struct Living(Vec<Vec<u64>>);

impl Living {
    fn has(&self, epoch: usize, anchor: usize) -> bool {
        let words = self.0.get(epoch);
        let word = words.and_then(|words| words.get(anchor / 64)).copied();
        word.unwrap_or(0) >> (anchor % 64) & 1 == 1
    }

    fn set(&mut self, epoch: usize, anchor: usize) {
        let words = self.0.get_mut(epoch);
        if let Some(word) = words.and_then(|words| words.get_mut(anchor / 64)) {
            *word |= 1 << (anchor % 64);
        }
    }
}

impl Graph {
    pub(crate) fn sweep(&mut self, gone: &dyn Gone) {
        let living = self.living(gone);
        for (at, epoch) in self.epochs.iter_mut().enumerate() {
            epoch.anchors.retain(|anchor| living.has(at, anchor));
        }
        self.nodes.sweep(gone);
    }

    /// The anchors of contexts without methods that are gone. An anchor's parent was known before it.
    fn living(&self, gone: &dyn Gone) -> Living {
        let words = |len: usize| vec![0; len.div_ceil(64)];
        let epochs = self.epochs.iter();
        let mut living = Living(epochs.map(|epoch| words(epoch.anchors.len())).collect());
        for (at, epoch) in self.epochs.iter().enumerate() {
            for (anchor, origin) in epoch.anchors.iter() {
                let parent = origin.parent();
                let lives = !gone.method(origin.head)
                    && !gone.site(origin.site)
                    && (parent == ContextId::UNKNOWN
                        || self.path_lives(gone, &living, parent, origin.caller));
                if lives {
                    living.set(at, anchor);
                }
            }
        }
        living
    }

    /// Whether the context of `method`, down to the nearest anchor, and that anchor live.
    fn path_lives(
        &self,
        gone: &dyn Gone,
        living: &Living,
        id: ContextId,
        method: MethodId,
    ) -> bool {
        let (mut id, mut method) = (id, method);
        loop {
            let version: Version = self.layout.version(id);
            let (Some(layout), Some(epoch)) = (self.layout_of(version), self.epoch_index(version))
            else {
                return false;
            };
            if gone.method(method) {
                return false;
            }
            match layout.call(id) {
                0 => return living.has(epoch, layout.anchor(id).0 as usize),
                call => match self.source(layout, id, method, call) {
                    Ok((_, frame)) if gone.site(frame.site) => return false,
                    Ok((parent, frame)) => (id, method) = (parent, frame.method),
                    Err(_) => return false,
                },
            }
        }
    }
}
