//! The slow path, for a call that is seen for the first time. It runs under the mutex.
//!
//! Each change is checked, appended to the journal and applied to the graph. When all changes of a call are applied,
//! the result is published in the tables. A refused change leaves a prefix (a node without callers, a base without
//! anchors), which later calls use.

use std::time::Instant;

use crate::adaptive_re_encoding::AdaptiveReEncoding;
use crate::anchor_table::AnchorKey;
use crate::forgotten_anchors::ForgottenAnchors;
use crate::full_nodes::FullNodes;
use crate::graph::VersionedGraph;
use crate::tables::EncoderTables;
use crate::transition_table::{ANCHORING, TransitionKey};
use crate::{
    Anchor, AnchorId, Base, CallEdge, ContextId, DeadCode, EncodingPolicy, GraphChange,
    GraphJournal, GraphNode, MethodId, NumberingPlan, SiteId, Transition, TransitionEffect,
    Version,
};

pub(crate) struct GraphLearner<J> {
    pub(crate) graph: VersionedGraph,
    pub(crate) journal: J,
    policy: EncodingPolicy,
    /// Applies to base versions from `retired` on.
    pub(crate) plan: Option<Box<dyn NumberingPlan>>,
    /// Every call from an earlier version anchors.
    retired: Version,
    pub(crate) adaptation: AdaptiveReEncoding,
    forgotten: ForgottenAnchors,
    full: FullNodes,
    pub(crate) slow_lookups: u64,
    pub(crate) refused: u64,
}

/// No number is available: the journal refused a change, the fields are exhausted, or the caller's number does not
/// belong to this encoder.
pub(crate) struct EncodeError;

/// A call that is being learned: `caller` with number `context` calls `callee` at `site`.
#[derive(Clone, Copy)]
pub(crate) struct CallStep {
    pub(crate) context: ContextId,
    pub(crate) site: SiteId,
    pub(crate) caller: MethodId,
    pub(crate) callee: MethodId,
}

impl CallStep {
    fn call_edge(self) -> CallEdge {
        CallEdge {
            site: self.site,
            caller: self.caller,
            callee: self.callee,
        }
    }
}

/// The destination of an additive transition.
struct AdditiveDestination {
    to: Version,
    av: u64,
    /// The capacity with which to create the node, if it does not exist yet.
    create: Option<u64>,
}

impl<J: GraphJournal> GraphLearner<J> {
    pub(crate) fn new(graph: VersionedGraph, policy: EncodingPolicy, journal: J) -> Self {
        GraphLearner {
            graph,
            journal,
            policy,
            plan: None,
            retired: Version(0),
            adaptation: AdaptiveReEncoding::new(&policy),
            forgotten: ForgottenAnchors::default(),
            full: FullNodes::default(),
            slow_lookups: 0,
            refused: 0,
        }
    }

    pub(crate) fn learn_root(
        &mut self,
        tables: &EncoderTables,
        head: MethodId,
    ) -> Result<ContextId, EncodeError> {
        self.slow_lookups += 1;
        if head > MethodId::EVENT {
            return Err(EncodeError);
        }
        let call = AnchorKey::from_thread_entry(head);
        if let Some(known) = tables.anchors.find(call) {
            return Ok(known);
        }
        self.adaptation
            .count_edge(CallEdge::from_thread_entry(head));
        self.create_anchor(tables, call, head, None)
    }

    pub(crate) fn learn_step(
        &mut self,
        tables: &EncoderTables,
        step: CallStep,
    ) -> Result<ContextId, EncodeError> {
        self.slow_lookups += 1;
        let layout = self.graph.layout();
        if !self.graph.holds_context(step.context, step.caller) {
            return Err(EncodeError);
        }
        self.adaptation.count_edge(step.call_edge());
        let version = layout.version_of(step.context);
        let key = TransitionKey::new(version, step.site, step.callee).ok_or(EncodeError)?;
        let delta = match tables.find_transition(key) {
            Some(delta) => delta,
            None => self.decide_transition(tables, key, step)?,
        };
        match delta {
            ANCHORING => self.intern_context(tables, step),
            _ => Ok(ContextId(step.context.0.wrapping_add(delta))),
        }
    }

    /// Decides permanently what (version, site, callee) does.
    fn decide_transition(
        &mut self,
        tables: &EncoderTables,
        key: TransitionKey,
        step: CallStep,
    ) -> Result<u64, EncodeError> {
        let layout = self.graph.layout();
        let from = layout.version_of(step.context);
        let (effect, delta) = match self.choose_destination(from, step.call_edge()) {
            Some(AdditiveDestination { to, av, create }) => {
                if let Some(capacity) = create {
                    self.record_change(GraphChange::Node(GraphNode {
                        version: to,
                        method: step.callee,
                        capacity,
                    }))?;
                }
                (
                    TransitionEffect::Additive { to, av },
                    layout.transition_delta(from, to, av),
                )
            }
            None => (TransitionEffect::Anchoring, ANCHORING),
        };
        let CallStep {
            site,
            caller,
            callee,
            ..
        } = step;
        self.record_change(GraphChange::Transition(Transition {
            version: from,
            site,
            caller,
            callee,
            effect,
        }))?;
        tables.publish_transition(key, delta);
        Ok(delta)
    }

    fn choose_destination(&mut self, from: Version, edge: CallEdge) -> Option<AdditiveDestination> {
        if from < self.retired {
            return None;
        }
        let need = self.graph.find_node(from, edge.caller)?.capacity;
        let av = self
            .plan_for(from)
            .and_then(|plan| plan.addition_value(edge));
        let planned = av.and_then(|av| self.planned_destination(from, edge.callee, av, need));
        match planned {
            None if self.policy.lazy => self.find_destination(from, edge.callee, need),
            planned => planned,
        }
    }

    /// Returns the plan, if it applies to this version.
    fn plan_for(&self, version: Version) -> Option<&dyn NumberingPlan> {
        let plan = self.plan.as_deref()?;
        (version >= self.retired && self.graph.is_base(version)).then_some(plan)
    }

    /// Returns the planned place of a caller with this need.
    fn planned_destination(
        &self,
        base: Version,
        callee: MethodId,
        av: u64,
        need: u64,
    ) -> Option<AdditiveDestination> {
        let capacity = self.plan_for(base)?.node_capacity(callee)?;
        let capacity = capacity.min(self.call_id_count(base));
        let place = |create| AdditiveDestination {
            to: base,
            av,
            create,
        };
        match self.graph.find_node(base, callee) {
            Some(node) => self.graph.is_free(node, av, need).then(|| place(None)),
            None => (need < capacity && av <= capacity - need).then(|| place(Some(capacity))),
        }
    }

    /// Returns the first version in reach whose node has room for the caller, or can be created with it.
    fn find_destination(
        &mut self,
        from: Version,
        callee: MethodId,
        need: u64,
    ) -> Option<AdditiveDestination> {
        if self.plan.is_none() {
            return self.find_unplanned_destination(from, callee, need);
        }
        let last = self.last_version(from);
        let plan = self
            .plan_for(from)
            .filter(|plan| plan.node_capacity(callee).is_some());
        let planned = plan.map_or(1, |plan| plan.planned_end(callee));
        let mut to = from;
        if plan.is_some() && self.graph.find_node(from, callee).is_none() {
            if let Some(place) = self.planned_destination(from, callee, planned, need) {
                return Some(place);
            }
            to = Version(from.0 + 1);
        }
        for (version, node) in self.graph.method_nodes(callee, to..=last.max(to)) {
            if version != to {
                break;
            }
            let used = if version == from { planned } else { 1 };
            let av = node.used.max(used);
            if node.capacity.saturating_sub(av) >= need {
                return Some(AdditiveDestination {
                    to,
                    av,
                    create: None,
                });
            }
            to = Version(to.0 + 1);
        }
        let capacity = self.node_capacity(to, callee, need);
        (to <= last && capacity > need).then_some(AdditiveDestination {
            to,
            av: 1,
            create: Some(capacity),
        })
    }

    /// As [`Self::find_destination`], without a plan; skips nodes that are known to be full.
    fn find_unplanned_destination(
        &mut self,
        from: Version,
        callee: MethodId,
        need: u64,
    ) -> Option<AdditiveDestination> {
        let last = self.last_version(from);
        let mut to = self.full.skip_full(callee, from, need);
        let mut first_free = None;
        if to > last {
            return None;
        }
        for (version, node) in self.graph.method_nodes(callee, to..=last) {
            if version != to {
                break;
            }
            if node.capacity.saturating_sub(node.used) >= need {
                first_free = Some(node.used);
                break;
            }
            to = Version(to.0 + 1);
        }
        self.full.record_full(callee, (from, to), need);
        if let Some(av) = first_free {
            let create = None;
            return Some(AdditiveDestination { to, av, create });
        }
        let capacity = self.node_capacity(to, callee, need);
        (to <= last && capacity > need).then_some(AdditiveDestination {
            to,
            av: 1,
            create: Some(capacity),
        })
    }

    /// Returns the last version that a transition from `from` may go to; at least `from` itself.
    fn last_version(&self, from: Version) -> Version {
        let reach = Version(from.0.saturating_add(self.policy.unroll));
        let end = self
            .graph
            .epoch_end(from)
            .unwrap_or_else(|| self.newest_end());
        reach.min(end).max(from)
    }

    /// Returns the end of the versions for additive transitions. The rest is reserved for fresh bases.
    fn newest_end(&self) -> Version {
        let base = self.graph.newest_base().map_or(0, |base| base.0);
        let remaining = self.graph.layout().max_version().0 - base;
        let share = u64::from(remaining) * u64::from(self.policy.epoch_percent.min(100)) / 100;
        Version(base + share as u32)
    }

    /// Returns the number of callIds in a version.
    fn call_id_count(&self, version: Version) -> u64 {
        let layout = self.graph.layout_of(version);
        layout.unwrap_or(self.graph.layout()).call_id_count()
    }

    fn node_capacity(&self, version: Version, method: MethodId, need: u64) -> u64 {
        let all = self.call_id_count(version);
        if method == MethodId::EVENT {
            // An event calls nothing: no callee needs its range.
            return all;
        }
        let limit = 1u64.checked_shl(self.policy.max_node_bits).unwrap_or(all);
        self.policy.new_node_capacity(need, limit.min(all))
    }

    fn intern_context(
        &mut self,
        tables: &EncoderTables,
        step: CallStep,
    ) -> Result<ContextId, EncodeError> {
        let CallStep {
            context,
            site,
            caller,
            callee,
        } = step;
        let call = AnchorKey::new(context, site, callee);
        if let Some(known) = tables.anchors.find(call) {
            return Ok(known);
        }
        self.create_anchor(tables, call, callee, Some((context, site, caller)))
    }

    fn create_anchor(
        &mut self,
        tables: &EncoderTables,
        call: AnchorKey,
        head: MethodId,
        parent: Option<(ContextId, SiteId, MethodId)>,
    ) -> Result<ContextId, EncodeError> {
        let (base, id) = self.next_anchor()?;
        if self.graph.find_node(base, head).is_none() {
            let planned = self
                .plan_for(base)
                .and_then(|plan| plan.node_capacity(head));
            let capacity = planned.map(|planned| planned.min(self.call_id_count(base)));
            let capacity = capacity.unwrap_or_else(|| self.node_capacity(base, head, 0));
            self.record_change(GraphChange::Node(GraphNode {
                version: base,
                method: head,
                capacity,
            }))?;
        }
        self.record_change(GraphChange::Anchor(Anchor {
            base,
            id,
            head,
            parent,
        }))?;
        let layout = self.graph.layout_of(base).ok_or(EncodeError)?;
        let to = layout.pack_context(base, id, 0);
        self.make_room(tables, call, parent);
        tables.publish_anchor(call, to);
        if self.adaptation.count_interned() {
            self.re_encode(tables);
        }
        Ok(to)
    }

    /// Doubles the budget of a full anchor table if entries that it forgot earlier were needed again; else it will
    /// forget all entries.
    fn make_room(
        &mut self,
        tables: &EncoderTables,
        call: AnchorKey,
        parent: Option<(ContextId, SiteId, MethodId)>,
    ) {
        if let Some((context, _, caller)) = parent
            && ForgottenAnchors::is_sampled(call)
            && let Ok(path) = self.graph.decode_context(context, caller)
        {
            self.forgotten.record_anchor(call, &path);
        }
        if tables.anchors.is_full() && !self.forgotten.may_forget(tables.anchors.budget()) {
            tables.anchors.double_budget();
        }
    }

    /// Renumbers all known edges in a fresh base version.
    ///
    /// No thread stops: frames keep their numbers, and their next call anchors into the new version.
    fn re_encode(&mut self, tables: &EncoderTables) {
        let began = Instant::now();
        let numbering = self
            .adaptation
            .build_numbering(self.graph.layout(), &self.policy);
        let begun = self.graph.next_base().filter(|version| {
            self.record_change(GraphChange::Base(Base::new(*version)))
                .is_ok()
        });
        let Some(version) = begun else {
            return self.adaptation.give_up();
        };
        self.plan = Some(Box::new(numbering));
        self.retired = version;
        tables.retire_before(version);
        self.adaptation.finish_re_encoding(began.elapsed());
    }

    /// Removes code that will never run again from the graph and the tables. `false`: planned numbers need all code.
    pub(crate) fn sweep_dead_code(&mut self, tables: &EncoderTables, gone: &dyn DeadCode) -> bool {
        if self.plan.is_some() || self.policy.adapt_after > 0 {
            return false;
        }
        self.graph.sweep_dead_code(gone);
        self.full.sweep_dead_code(gone);
        tables.sweep_dead_code(gone);
        true
    }

    /// Returns the bytes of the graph and its auxiliary data.
    pub(crate) fn memory_bytes(&self) -> usize {
        let plan = self.plan.as_ref().map_or(0, |plan| plan.memory_bytes());
        let own = self.adaptation.memory_bytes()
            + self.forgotten.memory_bytes()
            + self.full.memory_bytes();
        self.graph.memory_bytes() + plan + own
    }

    /// Returns the next anchor, in the newest base or, if that has none left, in a fresh base.
    ///
    /// A fresh base has more anchors: few versions are left, so calls without room continue to anchor.
    fn next_anchor(&mut self) -> Result<(Version, AnchorId), EncodeError> {
        if let Some(next) = self.graph.next_anchor() {
            return Ok(next);
        }
        let version = self.graph.next_base().ok_or(EncodeError)?;
        let is_first = self.graph.newest_base().is_none();
        let anchor_bits = (!is_first).then(|| self.wider_anchor_bits());
        self.record_change(GraphChange::Base(Base {
            version,
            anchor_bits,
        }))?;
        Ok((version, AnchorId(0)))
    }

    fn wider_anchor_bits(&self) -> u32 {
        let layout = self.graph.layout();
        let most = (layout.version_shift() - 1).min(32);
        most.min(layout.anchor_bits() + self.policy.more_anchor_bits)
    }

    fn record_change(&mut self, change: GraphChange) -> Result<(), EncodeError> {
        let checked = self.graph.check_change(change);
        debug_assert_eq!(checked, Ok(()));
        checked.map_err(|_| EncodeError)?;
        if self.journal.append_change(change).is_err() {
            self.refused += 1;
            return Err(EncodeError);
        }
        self.graph.commit_change(change);
        Ok(())
    }
}
