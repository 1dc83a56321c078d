//! Paths that differ in lines alone.

use lucce_contentid::StackId;

use super::MergedProfile;
use crate::tree::TreeFrameKey;

impl MergedProfile {
    /// By node, the content id of its path without lines: equal for paths of the same methods.
    #[must_use]
    pub fn stacks_without_lines(&self) -> Vec<StackId> {
        let id = |key: TreeFrameKey| self.names.frames.get(key.0).map(|frame| frame.by_method);
        self.tree.stack_ids(id)
    }
}
