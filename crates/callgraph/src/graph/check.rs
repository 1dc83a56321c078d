//! Checks a change before it enters the graph: one check per kind of change.

use super::VersionedGraph;
use crate::{
    Anchor, Base, GraphChange, GraphError, GraphNode, MethodId, SiteId, Transition,
    TransitionEffect, Version,
};

/// The checks of [`VersionedGraph::apply_change`], one per kind of change.
impl VersionedGraph {
    pub(crate) fn check_change(&self, change: GraphChange) -> Result<(), GraphError> {
        match change {
            GraphChange::Base(base) => self.check_base(base),
            GraphChange::Node(node) => self.check_node(node),
            GraphChange::Transition(transition) => self.check_transition(transition),
            GraphChange::Anchor(anchor) => self.check_anchor(anchor),
        }
    }

    fn check_base(&self, base: Base) -> Result<(), GraphError> {
        let Base {
            version,
            anchor_bits,
        } = base;
        if version.0 == 0 || version > self.layout.max_version() {
            return Err(GraphError::Version(version));
        }
        check_rule(version > self.newest, GraphError::BaseTooEarly(version))?;
        let wrong = GraphError::AnchorBits(anchor_bits.unwrap_or_default());
        check_rule(self.layout_from(base).is_some(), wrong)
    }

    fn check_node(
        &self,
        GraphNode {
            version,
            method,
            capacity,
        }: GraphNode,
    ) -> Result<(), GraphError> {
        check_method(method)?;
        let layout = self
            .layout_of(version)
            .filter(|layout| version <= layout.max_version());
        let layout = layout.ok_or(GraphError::Version(version))?;
        let fits = (1..=layout.call_id_count()).contains(&capacity);
        check_rule(fits, GraphError::Capacity(capacity))?;
        let free = self.find_node(version, method).is_none();
        check_rule(free, GraphError::NodeExists(version, method))
    }

    fn check_transition(&self, transition: Transition) -> Result<(), GraphError> {
        let Transition {
            version,
            site,
            caller,
            callee,
            effect,
        } = transition;
        check_method(callee)?;
        check_site(site)?;
        let node = self
            .find_node(version, caller)
            .ok_or(GraphError::NoNode(version, caller))?;
        match effect {
            TransitionEffect::Anchoring => Ok(()),
            TransitionEffect::Additive { to, av } => {
                let same_epoch = self.epoch_index(version) == self.epoch_index(to);
                check_rule(
                    version <= to && same_epoch,
                    GraphError::Backwards(version, to),
                )?;
                self.check_interval(to, callee, av, node.capacity)
            }
        }
    }

    fn check_interval(
        &self,
        to: Version,
        callee: MethodId,
        av: u64,
        width: u64,
    ) -> Result<(), GraphError> {
        let node = self
            .find_node(to, callee)
            .ok_or(GraphError::NoNode(to, callee))?;
        let fits = av >= 1 && self.is_free(node, av, width);
        check_rule(fits, GraphError::Interval { to, callee, av })
    }

    fn check_anchor(
        &self,
        Anchor {
            base,
            id,
            head,
            parent,
        }: Anchor,
    ) -> Result<(), GraphError> {
        let in_order = self.next_anchor() == Some((base, id));
        check_rule(in_order, GraphError::AnchorOrder(base, id))?;
        self.find_node(base, head)
            .ok_or(GraphError::NoNode(base, head))?;
        let Some((context, site, caller)) = parent else {
            return Ok(());
        };
        check_site(site)?;
        check_rule(
            self.holds_context(context, caller),
            GraphError::Parent(context),
        )
    }
}

fn check_rule(holds: bool, error: GraphError) -> Result<(), GraphError> {
    if holds { Ok(()) } else { Err(error) }
}

fn check_method(method: MethodId) -> Result<(), GraphError> {
    check_rule(method <= MethodId::EVENT, GraphError::Method(method))
}

fn check_site(site: SiteId) -> Result<(), GraphError> {
    check_rule(site <= SiteId::ENTRY, GraphError::Site(site.0))
}
