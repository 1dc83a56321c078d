//! Classes and class loaders of a search. They hold each other by references that no walk reports.

use lucce_jvmti::heap::ReferenceKind;

use super::{HeapEdge, HeapSearch, HoldStrength, NodeRole};

impl HeapSearch {
    /// Tags of classes with unknown loaders, and of loaders with unknown classes, which the last walk has found.
    pub fn unresolved_classes(&self) -> (Vec<i64>, Vec<i64>) {
        let new = |role: NodeRole| {
            let new = self.nodes.iter().filter(move |node| {
                node.role == role && node.found_in_walk == self.walks && !node.is_resolved
            });
            new.map(|node| node.tag).collect()
        };
        (new(NodeRole::Class), new(NodeRole::Loader))
    }

    /// Marks a class that is never unloaded.
    pub fn set_system_class(&mut self, class: i64) {
        let node = self.by_tag.get(&class).copied();
        if let Some(node) = node.and_then(|at| self.nodes.get_mut(at as usize)) {
            (node.is_system_class, node.is_resolved) = (true, true);
            node.root = node.root.or(Some(ReferenceKind::SystemClass));
        }
    }

    /// Marks the object as a class.
    pub fn set_class(&mut self, tag: i64) {
        self.set_role(tag, NodeRole::Class);
    }

    /// Marks the object as a class loader.
    pub fn set_loader(&mut self, tag: i64) {
        self.set_role(tag, NodeRole::Loader);
    }

    fn set_role(&mut self, tag: i64, role: NodeRole) {
        let node = self.by_tag.get(&tag).copied();
        if let Some(node) = node.and_then(|at| self.nodes.get_mut(at as usize)) {
            node.role = role;
        }
    }

    /// Adds the loader that has defined the class. `tag`: the loader's tag or 0. Returns its tag.
    ///
    /// `None`: there are too many nodes.
    pub fn add_loader(&mut self, class: i64, mut tag: i64) -> Option<i64> {
        let to = self.by_tag.get(&class).copied()?;
        let from = self.resolve_node(&mut tag)?;
        if let Some(node) = self.nodes.get_mut(from as usize) {
            node.role = NodeRole::Loader;
        }
        let edge = HeapEdge::single(from, ReferenceKind::LoadedClass, HoldStrength::Strong);
        self.add_edge(to, edge);
        Some(tag)
    }

    /// Adds a class that holds the loader. Array classes and unlinked classes hold it as well, but no walk reports this. After the
    /// last class, call [`Self::set_resolved`].
    ///
    /// `None`: there are too many nodes.
    pub fn add_class(&mut self, loader: i64, mut tag: i64) -> Option<i64> {
        let to = self.by_tag.get(&loader).copied()?;
        let is_new = !self.by_tag.contains_key(&tag);
        let from = self.resolve_node(&mut tag)?;
        if let Some(node) = self.nodes.get_mut(from as usize)
            && is_new
        {
            // Its loader is known.
            (node.role, node.is_resolved) = (NodeRole::Class, true);
        }
        let edge = HeapEdge::single(from, ReferenceKind::ClassLoader, HoldStrength::Strong);
        self.add_edge(to, edge);
        Some(tag)
    }

    /// Marks a class whose loader is known, or a loader whose classes are all known.
    pub fn set_resolved(&mut self, tag: i64) {
        let node = self.by_tag.get(&tag).copied();
        if let Some(node) = node.and_then(|at| self.nodes.get_mut(at as usize)) {
            node.is_resolved = true;
        }
    }
}
