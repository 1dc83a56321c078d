//! `encoding=static`: calls are numbered in advance, from an earlier run's log.
//!
//! Ids differ from run to run. So each id of this run is mapped by names when the encoder first needs it: class, method,
//! descriptor; bytecode index, line. Ids without a counterpart are counted, and numbered as without a plan.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lucce_callgraph::numbering::{
    AcyclicNumbering, FastMap, NodeNumbering, NumberingRules, WeightedEdge,
};
use lucce_callgraph::{CallEdge, ContextLayout, EncodingPolicy, MethodId, NumberingPlan, SiteId};
use lucce_tracelog::ClassId;

use crate::comparison::earlier_run::{ClassName, EarlierNames, EarlierRun, SitePlace};
use crate::memory::counter::increment_counter;
use crate::memory::locks::{ReadGuard, WatchedRwLock};
use crate::registry::written_records::external_name;
use crate::registry::{ClassLoaderId, CodeRegistry, RegisteredSiteKind};

const BOOT: ClassLoaderId = ClassLoaderId(0);

/// How much of this run the plan covers.
#[derive(Default)]
pub struct PlanMatches {
    /// Calls and events of the earlier run.
    pub calls: u64,
    /// Calls and events of this run: looked up in the plan, known to the earlier run, and numbered in advance.
    pub call_lookups: AtomicU64,
    pub call_hits: AtomicU64,
    pub calls_numbered: AtomicU64,
    /// Methods and sites of this run without a counterpart.
    pub methods_unknown: AtomicU64,
    pub sites_unknown: AtomicU64,
}

impl PlanMatches {
    /// Statistics for the end of the log, by name.
    pub fn collect_stats(&self) -> [(&'static str, u64); 6] {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("plan.calls", self.calls),
            ("plan.calls_asked", of(&self.call_lookups)),
            ("plan.calls_known", of(&self.call_hits)),
            ("plan.calls_numbered", of(&self.calls_numbered)),
            ("plan.methods_unknown", of(&self.methods_unknown)),
            ("plan.sites_unknown", of(&self.sites_unknown)),
        ]
    }

    /// A warning for the user: the log of another program does no harm, but does not help.
    pub fn mismatch_warning(&self) -> Option<String> {
        let [lookups, hits] =
            [&self.call_lookups, &self.call_hits].map(|n| n.load(Ordering::Relaxed));
        (hits < lookups / 2).then(|| {
            format!("graph= knew {hits} of {lookups} calls: is it a log of the same program?")
        })
    }
}

/// The numbered calls of an earlier run.
pub struct NamedPlan {
    registry: Arc<WatchedRwLock<CodeRegistry>>,
    names: EarlierNames,
    nodes: FastMap<MethodId, PlannedNode>,
    /// The addition value of each call; `None`: it closes a cycle, or found no room.
    additions: FastMap<CallEdge, Option<u64>>,
    earlier_ids: RefCell<EarlierIds>,
    matches: Arc<PlanMatches>,
}

/// The plan of a method's node.
#[derive(Clone, Copy)]
struct PlannedNode {
    capacity: u64,
    /// The end of the range of its last planned caller.
    end: u64,
}

/// The earlier run's ids by this run's ids, as they are needed.
#[derive(Default)]
struct EarlierIds {
    classes: FastMap<u32, Option<ClassId>>,
    methods: FastMap<MethodId, Option<MethodId>>,
    sites: FastMap<SiteId, Option<SiteId>>,
    /// Number of classes of a name that this run's graph has met.
    class_counts: HashMap<ClassName, usize>,
}

impl NamedPlan {
    pub fn new(
        earlier: EarlierRun,
        layout: ContextLayout,
        policy: &EncodingPolicy,
        registry: Arc<WatchedRwLock<CodeRegistry>>,
    ) -> NamedPlan {
        let EarlierRun { calls, names } = earlier;
        let AcyclicNumbering {
            additions, nodes, ..
        } = AcyclicNumbering::from_edges(
            calls.as_slice(),
            &NumberingRules::for_base_version(layout, policy),
        );
        let matches = PlanMatches {
            calls: calls.as_slice().len() as u64,
            ..PlanMatches::default()
        };
        let addition = |known: &WeightedEdge| (known.edge, additions.get(&known.edge).copied());
        let node = |(method, node): (MethodId, NodeNumbering)| {
            let planned = PlannedNode {
                capacity: node.count,
                end: node.end,
            };
            (method, planned)
        };
        NamedPlan {
            registry,
            names,
            nodes: nodes.into_iter().map(node).collect(),
            additions: calls.as_slice().iter().map(addition).collect(),
            earlier_ids: RefCell::default(),
            matches: Arc::new(matches),
        }
    }

    pub fn matches(&self) -> Arc<PlanMatches> {
        Arc::clone(&self.matches)
    }

    fn find_node(&self, method: MethodId) -> Option<PlannedNode> {
        self.nodes.get(&self.translate_method(method)?).copied()
    }

    fn translate_edge(&self, edge: CallEdge) -> Option<CallEdge> {
        Some(CallEdge {
            site: self.translate_site(edge.site)?,
            caller: self.translate_method(edge.caller)?,
            callee: self.translate_method(edge.callee)?,
        })
    }

    fn translate_method(&self, id: MethodId) -> Option<MethodId> {
        if id == CallEdge::NO_CALLER || id == MethodId::EVENT {
            return Some(id);
        }
        let mut earlier_ids = self.earlier_ids.borrow_mut();
        if let Some(known) = earlier_ids.methods.get(&id) {
            return *known;
        }
        let same = earlier_ids.find_method(&self.names, &self.read_registry(), id);
        earlier_ids.methods.insert(id, same);
        count_unknown(same, &self.matches.methods_unknown)
    }

    fn translate_site(&self, id: SiteId) -> Option<SiteId> {
        if id == SiteId::ENTRY {
            return Some(id);
        }
        if let Some(known) = self.earlier_ids.borrow().sites.get(&id) {
            return *known;
        }
        let same = self.find_same_site(id);
        self.earlier_ids.borrow_mut().sites.insert(id, same);
        count_unknown(same, &self.matches.sites_unknown)
    }

    fn find_same_site(&self, id: SiteId) -> Option<SiteId> {
        let site = self.read_registry().site(id.0)?;
        let place = SitePlace {
            bci: site.bci(),
            line: site.line(),
            allocates: matches!(
                site.kind,
                RegisteredSiteKind::New(_) | RegisteredSiteKind::Array(_)
            ),
        };
        let method = self.translate_method(MethodId(site.method))?;
        self.names.find_site(method, place)
    }

    /// A thread that calls the encoder holds no lock of the registry: see `registry::agent_log`.
    fn read_registry(&self) -> ReadGuard<'_, CodeRegistry> {
        self.registry.read()
    }
}

impl EarlierIds {
    fn find_method(
        &mut self,
        names: &EarlierNames,
        registry: &CodeRegistry,
        id: MethodId,
    ) -> Option<MethodId> {
        let method = registry.method(id.0)?;
        let class = self.find_class(names, registry, method.class)?;
        names.find_method(
            class,
            registry.name_text(method.name),
            registry.name_text(method.descriptor),
        )
    }

    /// The n-th class of a name in this run corresponds to the n-th class of that name in the earlier run.
    fn find_class(
        &mut self,
        names: &EarlierNames,
        registry: &CodeRegistry,
        id: u32,
    ) -> Option<ClassId> {
        if let Some(known) = self.classes.get(&id) {
            return *known;
        }
        let class = registry.class(id)?;
        let name = ClassName {
            name: external_name(registry.name_text(class.name)).into(),
            boot: class.loader == BOOT,
        };
        let met = self.class_counts.entry(name.clone()).or_default();
        let same = names.find_class(&name, *met);
        *met += 1;
        self.classes.insert(id, same);
        same
    }
}

fn count_unknown<T>(same: Option<T>, unknown: &AtomicU64) -> Option<T> {
    if same.is_none() {
        increment_counter(unknown);
    }
    same
}

impl NumberingPlan for NamedPlan {
    fn node_capacity(&self, method: MethodId) -> Option<u64> {
        Some(self.find_node(method)?.capacity)
    }

    fn planned_end(&self, method: MethodId) -> u64 {
        self.find_node(method).map_or(1, |node| node.end)
    }

    fn addition_value(&self, edge: CallEdge) -> Option<u64> {
        increment_counter(&self.matches.call_lookups);
        let addition = self.additions.get(&self.translate_edge(edge)?)?;
        increment_counter(&self.matches.call_hits);
        let addition = (*addition)?;
        increment_counter(&self.matches.calls_numbered);
        Some(addition)
    }

    fn memory_bytes(&self) -> usize {
        let earlier_ids = self.earlier_ids.borrow();
        self.names.memory_bytes()
            + self.nodes.len() * size_of::<(MethodId, PlannedNode)>()
            + self.additions.len() * size_of::<(CallEdge, Option<u64>)>()
            + earlier_ids.methods.len() * size_of::<(MethodId, Option<MethodId>)>()
            + earlier_ids.sites.len() * size_of::<(SiteId, Option<SiteId>)>()
    }
}

#[cfg(test)]
mod named_plan_tests {
    use lucce_tracelog::{ClassRecord, LoaderId, LogRecord, MethodRecord, SiteKind, SiteRecord};

    use super::*;
    use crate::registry::{ClassDefinition, FirstClassIds};
    use lucce_instrument::{FrameKind, HookPlace as Marked, HookSiteKind, MethodInstrumentation};

    /// An earlier run that loaded `a.A` and `a.B`. A.run calls B.work at 5, which allocates at 9. Ids begin at the given number.
    fn earlier(ids: u32) -> EarlierRun {
        let mut earlier = EarlierRun::default();
        let (run, work) = (MethodId(ids + 1), MethodId(ids + 2));
        for (class, name, method, text) in [(1, "a.A", run, "run"), (2, "a.B", work, "work")] {
            let class = ClassId(ids + class);
            earlier.add_record(LogRecord::from(ClassRecord {
                id: class,
                loader: LoaderId(7),
                name: name.into(),
                source_file: None,
            }));
            earlier.add_record(LogRecord::from(MethodRecord {
                id: method,
                class,
                name: text.into(),
                descriptor: "()V".into(),
                access: 0,
                lines: vec![].into(),
            }));
        }
        for (site, method, bci, what) in [
            (ids + 1, run, 5, SiteKind::Call),
            (ids + 2, work, 9, SiteKind::New("La/C;".into())),
        ] {
            earlier.add_record(LogRecord::from(SiteRecord {
                id: SiteId(site),
                method,
                bci,
                line: None,
                kind: what,
            }));
        }
        for edge in [
            CallEdge::from_thread_entry(run),
            CallEdge {
                site: SiteId(ids + 1),
                caller: run,
                callee: work,
            },
            CallEdge {
                site: SiteId(ids + 2),
                caller: work,
                callee: MethodId::EVENT,
            },
        ] {
            earlier.calls.count_edge(edge);
        }
        earlier
    }

    /// Loads this run's class, with one method and one site in it.
    fn load(
        registry: &mut CodeRegistry,
        (class, loader): (&str, u32),
        method: &str,
        place: Marked,
    ) -> FirstClassIds {
        let instrumentation = MethodInstrumentation {
            frame: FrameKind::OwnSlot,
            places: vec![place],
            ..MethodInstrumentation::empty()
        };
        let class = ClassDefinition {
            name: class,
            source: None,
            loader: ClassLoaderId(loader),
            methods: &[(method, "()V", 0)],
            instrumentations: &[instrumentation],
        };
        registry.add_class(&class).unwrap()
    }

    const CALL: Marked = Marked {
        bci: 5,
        kind: HookSiteKind::Call,
    };

    fn allocation() -> Marked {
        Marked {
            bci: 9,
            kind: HookSiteKind::New("La/C;".into()),
        }
    }

    fn plan(earlier: EarlierRun, registry: CodeRegistry) -> NamedPlan {
        let registry = Arc::new(WatchedRwLock::new(registry));
        NamedPlan::new(
            earlier,
            ContextLayout::DEFAULT,
            &EncodingPolicy::STATIC,
            registry,
        )
    }

    fn edge(caller: FirstClassIds, callee: MethodId) -> CallEdge {
        CallEdge {
            site: SiteId(caller.first_site),
            caller: MethodId(caller.first_method),
            callee,
        }
    }

    #[test]
    fn ids_are_matched_by_name() {
        let mut registry = CodeRegistry::default();
        load(&mut registry, ("x/Other", 1), "run", CALL);
        let work = load(&mut registry, ("a/B", 1), "work", allocation());
        let run = load(&mut registry, ("a/A", 1), "run", CALL);
        let moved = load(&mut registry, ("a/A2", 1), "run", CALL);
        let plan = plan(earlier(70_000), registry);
        let callee = MethodId(work.first_method);
        assert_eq!(plan.addition_value(edge(run, callee)), Some(1));
        assert_eq!(plan.addition_value(edge(work, MethodId::EVENT)), Some(1));
        assert_eq!(plan.node_capacity(MethodId(run.first_method)), Some(1));
        assert_eq!(plan.node_capacity(callee), Some(2));
        assert_eq!(plan.addition_value(edge(moved, callee)), None);
        let stats = plan.matches().collect_stats().map(|(_, count)| count);
        assert_eq!(stats, [3, 3, 2, 2, 1, 1]);
    }

    #[test]
    fn the_boot_loaders_class_is_another_one() {
        let mut registry = CodeRegistry::default();
        let boot = load(&mut registry, ("a/A", 0), "run", CALL);
        let plan = plan(earlier(0), registry);
        assert_eq!(plan.node_capacity(MethodId(boot.first_method)), None);
    }

    #[test]
    fn a_second_class_of_a_name_is_the_second_that_was_met() {
        let mut registry = CodeRegistry::default();
        let first = load(&mut registry, ("a/A", 3), "run", CALL);
        let second = load(&mut registry, ("a/A", 4), "run", CALL);
        let plan = plan(earlier(0), registry);
        // Looked up in the reverse order.
        assert_eq!(plan.node_capacity(MethodId(second.first_method)), Some(1));
        assert_eq!(plan.node_capacity(MethodId(first.first_method)), None);
    }
}
