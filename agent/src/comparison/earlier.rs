//! `graph=FILE`: an earlier run's log, as far as it tells which calls there are and what they are
//! called.

use std::collections::HashMap;
use std::path::Path;

use lucce_callgraph::encodings::Known;
use lucce_callgraph::{Anchor, Change, Edge, MethodId, SiteId, Transition};
use lucce_tracelog::{ClassId, Item, LoaderId, Log, Method, Record, Site, SiteKind};

/// Ids are the earlier run's own.
#[derive(Default)]
pub struct Earlier {
    pub calls: Calls,
    pub names: Names,
}

/// All calls and events that were seen, and how often the graph met each.
#[derive(Default)]
pub struct Calls {
    all: Vec<Known>,
    index: HashMap<Edge, usize>,
}

/// What is the same in two runs of one program: the way from names to ids.
#[derive(Default)]
pub struct Names {
    /// In the order in which the graph met them: each class loader may have a class of this name.
    classes: HashMap<ClassName, Vec<ClassId>>,
    methods: HashMap<(ClassId, Box<str>, Box<str>), MethodId>,
    sites: HashMap<(MethodId, SitePlace), SiteId>,
}

/// The class's name as Java prints it, and whether the boot loader has it. Other loaders have numbers
/// that mean nothing in another run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ClassName {
    pub name: Box<str>,
    pub boot: bool,
}

/// Where in its method a site is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SitePlace {
    pub bci: i32,
    pub line: Option<i32>,
    /// The sites of an allocation and of a call may have one bci.
    pub allocates: bool,
}

impl Earlier {
    /// # Errors
    /// What is wrong with the file, for a person. A log of a program that was killed is whole.
    pub fn read(path: &Path) -> Result<Earlier, String> {
        let log = Log::open(path).map_err(|e| e.to_string())?;
        let mut earlier = Earlier::default();
        for item in log.items() {
            match item.map_err(|damage| damage.to_string())? {
                Item::Record(entry) => {
                    if let Some(record) = entry.record {
                        earlier.record(record);
                    }
                }
                Item::Cells(_) | Item::EventCells(_) | Item::Totals(_) | Item::VmCells(_) => {}
            }
        }
        Ok(earlier)
    }

    pub(crate) fn record(&mut self, record: Record<'_>) {
        match record {
            Record::Class(class) => {
                let name = ClassName {
                    name: class.name.into(),
                    boot: class.loader == LoaderId(0),
                };
                self.names.classes.entry(name).or_default().push(class.id);
            }
            Record::Method(method) => self.names.method(method),
            Record::Site(site) => self.names.site(&site),
            Record::Change(change) => self.calls.change(change),
            _ => {}
        }
    }
}

impl Calls {
    pub fn all(&self) -> &[Known] {
        &self.all
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Base(_) | Change::Node(_) => {}
            Change::Transition(Transition {
                site,
                caller,
                callee,
                ..
            }) => self.met(Edge {
                site,
                caller,
                callee,
            }),
            Change::Anchor(Anchor { head, parent, .. }) => self.met(match parent {
                None => Edge::entry(head),
                Some((_, site, caller)) => Edge {
                    site,
                    caller,
                    callee: head,
                },
            }),
        }
    }

    pub(crate) fn met(&mut self, edge: Edge) {
        let at = *self.index.entry(edge).or_insert(self.all.len());
        match self.all.get_mut(at) {
            Some(known) => known.weight += 1,
            None => self.all.push(Known { edge, weight: 1 }),
        }
    }
}

impl Names {
    /// The n-th class of this name, from 0.
    pub fn class(&self, name: &ClassName, nth: usize) -> Option<ClassId> {
        self.classes.get(name)?.get(nth).copied()
    }

    pub fn method_of(&self, class: ClassId, name: &str, descriptor: &str) -> Option<MethodId> {
        let key = (class, name.into(), descriptor.into());
        self.methods.get(&key).copied()
    }

    pub fn site_of(&self, method: MethodId, place: SitePlace) -> Option<SiteId> {
        self.sites.get(&(method, place)).copied()
    }

    /// Bytes in memory, an estimate.
    pub fn memory(&self) -> usize {
        let texts: usize = self.methods.keys().map(|(_, n, d)| n.len() + d.len()).sum();
        texts
            + self.classes.len() * size_of::<(ClassName, Vec<ClassId>)>()
            + self.methods.len() * size_of::<((ClassId, Box<str>, Box<str>), MethodId)>()
            + self.sites.len() * size_of::<((MethodId, SitePlace), SiteId)>()
    }

    fn method(&mut self, method: Method<'_>) {
        let key = (method.class, method.name.into(), method.descriptor.into());
        self.methods.insert(key, method.id);
    }

    fn site(&mut self, site: &Site<'_>) {
        let place = SitePlace {
            bci: site.bci,
            line: site.line,
            allocates: matches!(site.what, SiteKind::New(_) | SiteKind::Array(_)),
        };
        self.sites.insert((site.method, place), site.id);
    }
}
