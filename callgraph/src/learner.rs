//! The slow path: what happens when a call is seen for the first time. Runs under the mutex.
//!
//! Order of every change: check it, append it to the journal, apply it to the graph, and only when
//! all changes of a call are applied, publish the result in the tables. A change that is refused
//! leaves a prefix behind (a node without callers, a base without anchors) that later calls use.

use std::time::Instant;

use crate::adaptation::Adaptation;
use crate::anchor_table::Call;
use crate::forgotten::Forgotten;
use crate::full::Full;
use crate::graph::Graph;
use crate::tables::Tables;
use crate::transition_table::{ANCHORING, Key};
use crate::{
    Anchor, AnchorId, Base, Change, ContextId, Edge, Effect, Gone, Journal, MethodId, Node, Plan,
    Policy, SiteId, Transition, Version,
};

pub(crate) struct Learner<J> {
    pub(crate) graph: Graph,
    pub(crate) journal: J,
    policy: Policy,
    /// For base versions from `retired` on.
    pub(crate) plan: Option<Box<dyn Plan>>,
    /// Every call from an earlier version anchors.
    retired: Version,
    pub(crate) adaptation: Adaptation,
    forgotten: Forgotten,
    full: Full,
    pub(crate) slow_lookups: u64,
    pub(crate) refused: u64,
}

/// There is no number to give: the journal refused, or the fields have run out, or the caller's
/// number is not one of this encoder's.
pub(crate) struct Lost;

/// A call on its way: `caller` with number `context` calls `callee` at `site`.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) context: ContextId,
    pub(crate) site: SiteId,
    pub(crate) caller: MethodId,
    pub(crate) callee: MethodId,
}

impl Step {
    fn edge(self) -> Edge {
        Edge {
            site: self.site,
            caller: self.caller,
            callee: self.callee,
        }
    }
}

/// Where an additive transition goes.
struct Destination {
    to: Version,
    av: u64,
    /// The node does not exist yet: the capacity to create it with.
    create: Option<u64>,
}

impl<J: Journal> Learner<J> {
    pub(crate) fn new(graph: Graph, policy: Policy, journal: J) -> Self {
        Learner {
            graph,
            journal,
            policy,
            plan: None,
            retired: Version(0),
            adaptation: Adaptation::new(&policy),
            forgotten: Forgotten::default(),
            full: Full::default(),
            slow_lookups: 0,
            refused: 0,
        }
    }

    pub(crate) fn root(&mut self, tables: &Tables, head: MethodId) -> Result<ContextId, Lost> {
        self.slow_lookups += 1;
        if head > MethodId::EVENT {
            return Err(Lost);
        }
        let call = Call::entry(head);
        if let Some(known) = tables.anchors.find(call) {
            return Ok(known);
        }
        self.adaptation.met(Edge::entry(head));
        self.anchor(tables, call, head, None)
    }

    pub(crate) fn step(&mut self, tables: &Tables, step: Step) -> Result<ContextId, Lost> {
        self.slow_lookups += 1;
        let layout = self.graph.layout();
        if !self.graph.holds(step.context, step.caller) {
            return Err(Lost);
        }
        self.adaptation.met(step.edge());
        let version = layout.version(step.context);
        let key = Key::new(version, step.site, step.callee).ok_or(Lost)?;
        let delta = match tables.transition(key) {
            Some(delta) => delta,
            None => self.transition(tables, key, step)?,
        };
        match delta {
            ANCHORING => self.interned(tables, step),
            _ => Ok(ContextId(step.context.0.wrapping_add(delta))),
        }
    }

    /// Decides for ever what (version, site, callee) does.
    fn transition(&mut self, tables: &Tables, key: Key, step: Step) -> Result<u64, Lost> {
        let layout = self.graph.layout();
        let from = layout.version(step.context);
        let (effect, delta) = match self.place(from, step.edge()) {
            Some(Destination { to, av, create }) => {
                if let Some(capacity) = create {
                    self.record(Change::Node(Node {
                        version: to,
                        method: step.callee,
                        capacity,
                    }))?;
                }
                (Effect::Additive { to, av }, layout.delta(from, to, av))
            }
            None => (Effect::Anchoring, ANCHORING),
        };
        let Step {
            site,
            caller,
            callee,
            ..
        } = step;
        self.record(Change::Transition(Transition {
            version: from,
            site,
            caller,
            callee,
            effect,
        }))?;
        tables.publish_transition(key, delta);
        Ok(delta)
    }

    fn place(&mut self, from: Version, edge: Edge) -> Option<Destination> {
        if from < self.retired {
            return None;
        }
        let need = self.graph.node(from, edge.caller)?.capacity;
        let av = self.plan_for(from).and_then(|plan| plan.addition(edge));
        let planned = av.and_then(|av| self.planned(from, edge.callee, av, need));
        match planned {
            None if self.policy.lazy => self.found(from, edge.callee, need),
            planned => planned,
        }
    }

    /// The plan, if it is one for this version.
    fn plan_for(&self, version: Version) -> Option<&dyn Plan> {
        let plan = self.plan.as_deref()?;
        (version >= self.retired && self.graph.is_base(version)).then_some(plan)
    }

    /// The place that the plan has for a caller that needs so much.
    fn planned(&self, base: Version, callee: MethodId, av: u64, need: u64) -> Option<Destination> {
        let capacity = self.plan_for(base)?.capacity(callee)?;
        let capacity = capacity.min(self.calls(base));
        let place = |create| Destination {
            to: base,
            av,
            create,
        };
        match self.graph.node(base, callee) {
            Some(node) => self.graph.is_free(node, av, need).then(|| place(None)),
            None => (need < capacity && av <= capacity - need).then(|| place(Some(capacity))),
        }
    }

    /// The first version in reach whose node has, or can be created with, room for the caller.
    fn found(&mut self, from: Version, callee: MethodId, need: u64) -> Option<Destination> {
        if self.plan.is_none() {
            return self.found_without_plan(from, callee, need);
        }
        let last = self.last_version(from);
        let plan = self
            .plan_for(from)
            .filter(|plan| plan.capacity(callee).is_some());
        let planned = plan.map_or(1, |plan| plan.end(callee));
        let mut to = from;
        if plan.is_some() && self.graph.node(from, callee).is_none() {
            if let Some(place) = self.planned(from, callee, planned, need) {
                return Some(place);
            }
            to = Version(from.0 + 1);
        }
        for (version, node) in self.graph.nodes_of(callee, to..=last.max(to)) {
            if version != to {
                break;
            }
            let used = if version == from { planned } else { 1 };
            let av = node.used.max(used);
            if node.capacity.saturating_sub(av) >= need {
                return Some(Destination {
                    to,
                    av,
                    create: None,
                });
            }
            to = Version(to.0 + 1);
        }
        let capacity = self.capacity(to, callee, need);
        (to <= last && capacity > need).then_some(Destination {
            to,
            av: 1,
            create: Some(capacity),
        })
    }

    /// As `found`, past what is known to be full.
    fn found_without_plan(
        &mut self,
        from: Version,
        callee: MethodId,
        need: u64,
    ) -> Option<Destination> {
        let last = self.last_version(from);
        let mut to = self.full.skip(callee, from, need);
        let mut found = None;
        if to > last {
            return None;
        }
        for (version, node) in self.graph.nodes_of(callee, to..=last) {
            if version != to {
                break;
            }
            if node.capacity.saturating_sub(node.used) >= need {
                found = Some(node.used);
                break;
            }
            to = Version(to.0 + 1);
        }
        self.full.met(callee, (from, to), need);
        if let Some(av) = found {
            let create = None;
            return Some(Destination { to, av, create });
        }
        let capacity = self.capacity(to, callee, need);
        (to <= last && capacity > need).then_some(Destination {
            to,
            av: 1,
            create: Some(capacity),
        })
    }

    /// The last version that a transition from `from` may go to; at least `from` itself.
    fn last_version(&self, from: Version) -> Version {
        let reach = Version(from.0.saturating_add(self.policy.unroll));
        let end = self
            .graph
            .epoch_end(from)
            .unwrap_or_else(|| self.newest_end());
        reach.min(end).max(from)
    }

    /// Versions are kept back so that anchors can have fresh bases.
    fn newest_end(&self) -> Version {
        let base = self.graph.newest_base().map_or(0, |base| base.0);
        let remaining = self.graph.layout().max_version().0 - base;
        let share = u64::from(remaining) * u64::from(self.policy.epoch_percent.min(100)) / 100;
        Version(base + share as u32)
    }

    /// How many callIds there are in a version.
    fn calls(&self, version: Version) -> u64 {
        let layout = self.graph.layout_of(version);
        layout.unwrap_or(self.graph.layout()).calls()
    }

    fn capacity(&self, version: Version, method: MethodId, need: u64) -> u64 {
        let all = self.calls(version);
        if method == MethodId::EVENT {
            // An event calls nothing: no callee needs its range.
            return all;
        }
        let limit = 1u64.checked_shl(self.policy.max_node_bits).unwrap_or(all);
        self.policy.capacity(need, limit.min(all))
    }

    fn interned(&mut self, tables: &Tables, step: Step) -> Result<ContextId, Lost> {
        let Step {
            context,
            site,
            caller,
            callee,
        } = step;
        let call = Call::new(context, site, callee);
        if let Some(known) = tables.anchors.find(call) {
            return Ok(known);
        }
        self.anchor(tables, call, callee, Some((context, site, caller)))
    }

    fn anchor(
        &mut self,
        tables: &Tables,
        call: Call,
        head: MethodId,
        parent: Option<(ContextId, SiteId, MethodId)>,
    ) -> Result<ContextId, Lost> {
        let (base, id) = self.next_anchor()?;
        if self.graph.node(base, head).is_none() {
            let planned = self.plan_for(base).and_then(|plan| plan.capacity(head));
            let capacity = planned.map(|planned| planned.min(self.calls(base)));
            let capacity = capacity.unwrap_or_else(|| self.capacity(base, head, 0));
            self.record(Change::Node(Node {
                version: base,
                method: head,
                capacity,
            }))?;
        }
        self.record(Change::Anchor(Anchor {
            base,
            id,
            head,
            parent,
        }))?;
        let layout = self.graph.layout_of(base).ok_or(Lost)?;
        let to = layout.pack(base, id, 0);
        self.make_room(tables, call, parent);
        tables.publish_anchor(call, to);
        if self.adaptation.interned() {
            self.adapt(tables);
        }
        Ok(to)
    }

    /// Before the table of anchors forgets all that it has: unless what it forgot before was needed again.
    fn make_room(
        &mut self,
        tables: &Tables,
        call: Call,
        parent: Option<(ContextId, SiteId, MethodId)>,
    ) {
        if let Some((context, _, caller)) = parent
            && Forgotten::is_sampled(call)
            && let Ok(path) = self.graph.decode(context, caller)
        {
            self.forgotten.met(call, &path);
        }
        if tables.anchors.is_full() && !self.forgotten.may_go(tables.anchors.budget()) {
            tables.anchors.double_budget();
        }
    }

    /// Numbers all known edges anew, in a fresh base version. No thread stops: frames keep their numbers,
    /// and their next call anchors into the new version.
    fn adapt(&mut self, tables: &Tables) {
        let began = Instant::now();
        let numbering = self.adaptation.numbering(self.graph.layout(), &self.policy);
        let begun = self
            .graph
            .next_base()
            .filter(|version| self.record(Change::Base(Base::new(*version))).is_ok());
        let Some(version) = begun else {
            return self.adaptation.give_up();
        };
        self.plan = Some(Box::new(numbering));
        self.retired = version;
        tables.retire(version);
        self.adaptation.adapted(began.elapsed());
    }

    /// Code that will never run again leaves the graph and the tables. `false`: numbers that are planned need all.
    pub(crate) fn sweep(&mut self, tables: &Tables, gone: &dyn Gone) -> bool {
        if self.plan.is_some() || self.policy.adapt_after > 0 {
            return false;
        }
        self.graph.sweep(gone);
        self.full.sweep(gone);
        tables.sweep(gone);
        true
    }

    /// Of the graph and what belongs to it.
    pub(crate) fn memory(&self) -> usize {
        let plan = self.plan.as_ref().map_or(0, |plan| plan.memory());
        let own = self.adaptation.memory() + self.forgotten.memory() + self.full.memory();
        self.graph.memory() + plan + own
    }

    /// In the newest base, or in a fresh one if its anchors have run out. That has more of them: few
    /// versions are left, so what no range has room for goes on being anchored.
    fn next_anchor(&mut self) -> Result<(Version, AnchorId), Lost> {
        if let Some(next) = self.graph.next_anchor() {
            return Ok(next);
        }
        let version = self.graph.next_base().ok_or(Lost)?;
        let is_first = self.graph.newest_base().is_none();
        let anchor_bits = (!is_first).then(|| self.more_anchors());
        self.record(Change::Base(Base {
            version,
            anchor_bits,
        }))?;
        Ok((version, AnchorId(0)))
    }

    fn more_anchors(&self) -> u32 {
        let layout = self.graph.layout();
        let most = (layout.version_shift() - 1).min(32);
        most.min(layout.anchor_bits() + self.policy.more_anchor_bits)
    }

    fn record(&mut self, change: Change) -> Result<(), Lost> {
        let checked = self.graph.check(change);
        debug_assert_eq!(checked, Ok(()));
        checked.map_err(|_| Lost)?;
        if self.journal.append(change).is_err() {
            self.refused += 1;
            return Err(Lost);
        }
        self.graph.commit(change);
        Ok(())
    }
}
