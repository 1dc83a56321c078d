//! `graph=FILE`: reads the calls of an earlier run, and their names, from its log.

use std::collections::HashMap;
use std::path::Path;

use lucce_callgraph::numbering::WeightedEdge;
use lucce_callgraph::{Anchor, CallEdge, GraphChange, MethodId, SiteId, Transition};
use lucce_tracelog::{
    ClassId, InMemoryLog, LoaderId, LogItem, LogRecord, MethodRecord, SiteKind, SiteRecord,
};

/// An earlier run, with its own ids.
#[derive(Default)]
pub struct EarlierRun {
    pub calls: EarlierCalls,
    pub names: EarlierNames,
}

/// All calls and events of the run, and how often its graph met each.
#[derive(Default)]
pub struct EarlierCalls {
    edges: Vec<WeightedEdge>,
    index: HashMap<CallEdge, usize>,
}

/// Maps names, which are equal in two runs of one program, to ids.
#[derive(Default)]
pub struct EarlierNames {
    /// In the order of their first occurrence: each class loader may have a class of this name.
    classes: HashMap<ClassName, Vec<ClassId>>,
    methods: HashMap<(ClassId, Box<str>, Box<str>), MethodId>,
    sites: HashMap<(MethodId, SitePlace), SiteId>,
}

/// The class's name as Java prints it, and whether the boot loader has it. The numbers of other loaders differ between runs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ClassName {
    pub name: Box<str>,
    pub boot: bool,
}

/// The position of a site in its method.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SitePlace {
    pub bci: i32,
    pub line: Option<i32>,
    /// An allocation and a call may have the same bci.
    pub allocates: bool,
}

impl EarlierRun {
    /// Reads a log. The log of a killed program is valid.
    ///
    /// # Errors
    /// A description of the damage for the user.
    pub fn read_log(path: &Path) -> Result<EarlierRun, String> {
        let log = InMemoryLog::open(path).map_err(|e| e.to_string())?;
        let mut earlier = EarlierRun::default();
        for item in log.items() {
            match item.map_err(|damage| damage.to_string())? {
                LogItem::Record(entry) => {
                    if let Some(record) = entry.record {
                        earlier.add_record(record);
                    }
                }
                LogItem::Counters(_)
                | LogItem::EventCounters(_)
                | LogItem::Totals(_)
                | LogItem::VmCounters(_) => {}
            }
        }
        Ok(earlier)
    }

    pub(crate) fn add_record(&mut self, record: LogRecord<'_>) {
        match record {
            LogRecord::Class(class) => {
                let name = ClassName {
                    name: class.name.into(),
                    boot: class.loader == LoaderId(0),
                };
                self.names.classes.entry(name).or_default().push(class.id);
            }
            LogRecord::Method(method) => self.names.add_method(method),
            LogRecord::Site(site) => self.names.add_site(&site),
            LogRecord::Change(change) => self.calls.add_change(change),
            _ => {}
        }
    }
}

impl EarlierCalls {
    /// All edges with their weights.
    pub fn as_slice(&self) -> &[WeightedEdge] {
        &self.edges
    }

    fn add_change(&mut self, change: GraphChange) {
        match change {
            GraphChange::Base(_) | GraphChange::Node(_) => {}
            GraphChange::Transition(Transition {
                site,
                caller,
                callee,
                ..
            }) => self.count_edge(CallEdge {
                site,
                caller,
                callee,
            }),
            GraphChange::Anchor(Anchor { head, parent, .. }) => self.count_edge(match parent {
                None => CallEdge::from_thread_entry(head),
                Some((_, site, caller)) => CallEdge {
                    site,
                    caller,
                    callee: head,
                },
            }),
        }
    }

    pub(crate) fn count_edge(&mut self, edge: CallEdge) {
        let at = *self.index.entry(edge).or_insert(self.edges.len());
        match self.edges.get_mut(at) {
            Some(known) => known.weight += 1,
            None => self.edges.push(WeightedEdge { edge, weight: 1 }),
        }
    }
}

impl EarlierNames {
    /// The n-th class of this name, from 0.
    pub fn find_class(&self, name: &ClassName, nth: usize) -> Option<ClassId> {
        self.classes.get(name)?.get(nth).copied()
    }

    pub fn find_method(&self, class: ClassId, name: &str, descriptor: &str) -> Option<MethodId> {
        let key = (class, name.into(), descriptor.into());
        self.methods.get(&key).copied()
    }

    pub fn find_site(&self, method: MethodId, place: SitePlace) -> Option<SiteId> {
        self.sites.get(&(method, place)).copied()
    }

    /// Bytes in memory, an estimate.
    pub fn memory_bytes(&self) -> usize {
        let texts: usize = self.methods.keys().map(|(_, n, d)| n.len() + d.len()).sum();
        texts
            + self.classes.len() * size_of::<(ClassName, Vec<ClassId>)>()
            + self.methods.len() * size_of::<((ClassId, Box<str>, Box<str>), MethodId)>()
            + self.sites.len() * size_of::<((MethodId, SitePlace), SiteId)>()
    }

    fn add_method(&mut self, method: MethodRecord<'_>) {
        let key = (method.class, method.name.into(), method.descriptor.into());
        self.methods.insert(key, method.id);
    }

    fn add_site(&mut self, site: &SiteRecord<'_>) {
        let place = SitePlace {
            bci: site.bci,
            line: site.line,
            allocates: matches!(site.kind, SiteKind::New(_) | SiteKind::Array(_)),
        };
        self.sites.insert((site.method, place), site.id);
    }
}
