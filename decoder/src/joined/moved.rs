//! Paths that differ in lines alone: whether two versions of a program have more in common without them.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use lucce_contentid::names;

use super::Joined;
use crate::tree::NodeId;

impl Joined {
    /// By node: a number that is equal for paths of the same methods, whatever their lines. Overloads are one,
    /// so it is an estimate of what ids without lines would join.
    #[must_use]
    pub fn methods_of_paths(&self) -> Vec<u64> {
        let methods = self.methods_of_frames();
        let mut paths = vec![0_u64; self.tree.len()];
        for node in 1..self.tree.len() {
            let Some((caller, frame)) = self.tree.step(NodeId(node as u32)) else {
                continue;
            };
            let above = paths.get(caller.0 as usize).copied().unwrap_or_default();
            let own = methods.get(frame.0 as usize).copied().unwrap_or_default();
            let mut hash = DefaultHasher::new();
            (above, own).hash(&mut hash);
            if let Some(path) = paths.get_mut(node) {
                *path = hash.finish();
            }
        }
        paths
    }

    /// By frame. Names lose what differs from run to run, as where ids are made.
    fn methods_of_frames(&self) -> Vec<u32> {
        let of = &self.names;
        let mut known = HashMap::new();
        let frames = of.frames.all().iter().map(|frame| {
            let method = of.methods.get(frame.method);
            let name = method.map_or("", |method| &method.name);
            let class = method.and_then(|method| of.classes.get(method.class));
            let class = names::class(class.map_or("", String::as_str));
            let next = known.len() as u32;
            *known.entry((class, names::method(name))).or_insert(next)
        });
        frames.collect()
    }
}
