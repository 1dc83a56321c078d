//! Finds paths that differ only in lines.

use lucce_contentid::StackId;

use super::MergedProfile;
use crate::call_tree::TreeFrameKey;

impl MergedProfile {
    /// The content id of each node's path without lines: equal for paths of the same methods.
    #[must_use]
    pub fn stacks_without_lines(&self) -> Vec<StackId> {
        let id = |key: TreeFrameKey| self.names.frames.get(key.0).map(|frame| frame.by_method);
        self.tree.stack_ids(id)
    }
}
