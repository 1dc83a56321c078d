//! Paths that differ in lines alone.

use lucce_contentid::StackId;

use super::Joined;
use crate::tree::FrameKey;

impl Joined {
    /// By node, the content id of its path without lines: equal for paths of the same methods.
    #[must_use]
    pub fn stacks_without_lines(&self) -> Vec<StackId> {
        let id = |key: FrameKey| self.names.frames.get(key.0).map(|frame| frame.by_method);
        self.tree.stacks(id)
    }
}
