//! `encoding=static`: calls are numbered in advance, from an earlier run's log.
//!
//! Ids differ from run to run, so each id of this run is looked up by name when the encoder first asks
//! for it: class, method, descriptor; bytecode index, line. What has no counterpart is counted, and
//! numbered as if there were no plan.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLockReadGuard};

use lucce_callgraph::encodings::{FastMap, Known, Numbering, Numbers, Rules};
use lucce_callgraph::{Edge, Layout, MethodId, Plan, Policy, SiteId};
use lucce_tracelog::ClassId;

use crate::book::names::external;
use crate::book::{Book, Loader, What};
use crate::comparison::earlier::{ClassName, Earlier, Names, SitePlace};
use crate::memory::counter::count;
use crate::memory::locks::WatchedRwLock;

const BOOT: Loader = Loader(0);

/// How much of this run the plan knew.
#[derive(Default)]
pub struct Matches {
    /// Calls and events of the earlier run.
    pub calls: u64,
    /// Calls and events of this run for which the plan was asked, those of them that the earlier run
    /// knew, and those that have a number in advance.
    pub asked: AtomicU64,
    pub known: AtomicU64,
    pub numbered: AtomicU64,
    /// Of this run's methods and sites, those that have no counterpart.
    pub methods_unknown: AtomicU64,
    pub sites_unknown: AtomicU64,
}

impl Matches {
    /// For the log's end, by name.
    pub fn stats(&self) -> [(&'static str, u64); 6] {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("plan.calls", self.calls),
            ("plan.calls_asked", of(&self.asked)),
            ("plan.calls_known", of(&self.known)),
            ("plan.calls_numbered", of(&self.numbered)),
            ("plan.methods_unknown", of(&self.methods_unknown)),
            ("plan.sites_unknown", of(&self.sites_unknown)),
        ]
    }

    /// What the user should hear: another program's log does no harm, but it helps nothing either.
    pub fn warning(&self) -> Option<String> {
        let [asked, known] = [&self.asked, &self.known].map(|n| n.load(Ordering::Relaxed));
        (known < asked / 2).then(|| {
            format!("graph= knew {known} of {asked} calls: is it a log of the same program?")
        })
    }
}

/// The calls of an earlier run, numbered.
pub struct NamedPlan {
    book: Arc<WatchedRwLock<Book>>,
    names: Names,
    nodes: FastMap<MethodId, Planned>,
    /// What each call adds; none: it closes a cycle, or there was no room for it.
    additions: FastMap<Edge, Option<u64>>,
    found: RefCell<Counterpart>,
    matches: Arc<Matches>,
}

/// A method's node.
#[derive(Clone, Copy)]
struct Planned {
    capacity: u64,
    /// Behind its last planned caller.
    end: u64,
}

/// The earlier run's ids of what was asked for, by this run's.
#[derive(Default)]
struct Counterpart {
    classes: FastMap<u32, Option<ClassId>>,
    methods: FastMap<MethodId, Option<MethodId>>,
    sites: FastMap<SiteId, Option<SiteId>>,
    /// How many classes of a name the graph has met in this run.
    met: HashMap<ClassName, usize>,
}

impl NamedPlan {
    pub fn new(
        earlier: Earlier,
        layout: Layout,
        policy: &Policy,
        book: Arc<WatchedRwLock<Book>>,
    ) -> NamedPlan {
        let Earlier { calls, names } = earlier;
        let Numbering {
            additions, nodes, ..
        } = Numbering::of(calls.all(), &Rules::planned(layout, policy));
        let matches = Matches {
            calls: calls.all().len() as u64,
            ..Matches::default()
        };
        let addition = |known: &Known| (known.edge, additions.get(&known.edge).copied());
        let node = |(method, node): (MethodId, Numbers)| {
            let planned = Planned {
                capacity: node.count,
                end: node.end,
            };
            (method, planned)
        };
        NamedPlan {
            book,
            names,
            nodes: nodes.into_iter().map(node).collect(),
            additions: calls.all().iter().map(addition).collect(),
            found: RefCell::default(),
            matches: Arc::new(matches),
        }
    }

    pub fn matches(&self) -> Arc<Matches> {
        Arc::clone(&self.matches)
    }

    fn planned(&self, method: MethodId) -> Option<Planned> {
        self.nodes.get(&self.method(method)?).copied()
    }

    fn edge(&self, edge: Edge) -> Option<Edge> {
        Some(Edge {
            site: self.site(edge.site)?,
            caller: self.method(edge.caller)?,
            callee: self.method(edge.callee)?,
        })
    }

    fn method(&self, id: MethodId) -> Option<MethodId> {
        if id == Edge::NOBODY || id == MethodId::EVENT {
            return Some(id);
        }
        let mut found = self.found.borrow_mut();
        if let Some(known) = found.methods.get(&id) {
            return *known;
        }
        let same = found.method(&self.names, &self.book(), id);
        found.methods.insert(id, same);
        told(same, &self.matches.methods_unknown)
    }

    fn site(&self, id: SiteId) -> Option<SiteId> {
        if id == SiteId::ENTRY {
            return Some(id);
        }
        if let Some(known) = self.found.borrow().sites.get(&id) {
            return *known;
        }
        let same = self.same_place(id);
        self.found.borrow_mut().sites.insert(id, same);
        told(same, &self.matches.sites_unknown)
    }

    fn same_place(&self, id: SiteId) -> Option<SiteId> {
        let site = self.book().site(id.0)?;
        let place = SitePlace {
            bci: site.bci(),
            line: site.line(),
            allocates: matches!(site.what, What::New(_) | What::Array(_)),
        };
        let method = self.method(MethodId(site.method))?;
        self.names.site_of(method, place)
    }

    /// A thread that asks the encoder holds no lock of the book: see `journal`.
    fn book(&self) -> RwLockReadGuard<'_, Book> {
        self.book.read()
    }
}

impl Counterpart {
    fn method(&mut self, names: &Names, book: &Book, id: MethodId) -> Option<MethodId> {
        let method = book.method(id.0)?;
        let class = self.class(names, book, method.class)?;
        names.method_of(class, book.text(method.name), book.text(method.descriptor))
    }

    /// The n-th class of its name that is met is the n-th that was met.
    fn class(&mut self, names: &Names, book: &Book, id: u32) -> Option<ClassId> {
        if let Some(known) = self.classes.get(&id) {
            return *known;
        }
        let class = book.class(id)?;
        let name = ClassName {
            name: external(book.text(class.name)).into(),
            boot: class.loader == BOOT,
        };
        let met = self.met.entry(name.clone()).or_default();
        let same = names.class(&name, *met);
        *met += 1;
        self.classes.insert(id, same);
        same
    }
}

fn told<T>(same: Option<T>, unknown: &AtomicU64) -> Option<T> {
    if same.is_none() {
        count(unknown);
    }
    same
}

impl Plan for NamedPlan {
    fn capacity(&self, method: MethodId) -> Option<u64> {
        Some(self.planned(method)?.capacity)
    }

    fn end(&self, method: MethodId) -> u64 {
        self.planned(method).map_or(1, |node| node.end)
    }

    fn addition(&self, edge: Edge) -> Option<u64> {
        count(&self.matches.asked);
        let known = self.additions.get(&self.edge(edge)?)?;
        count(&self.matches.known);
        let addition = (*known)?;
        count(&self.matches.numbered);
        Some(addition)
    }

    fn memory(&self) -> usize {
        let found = self.found.borrow();
        self.names.memory()
            + self.nodes.len() * size_of::<(MethodId, Planned)>()
            + self.additions.len() * size_of::<(Edge, Option<u64>)>()
            + found.methods.len() * size_of::<(MethodId, Option<MethodId>)>()
            + found.sites.len() * size_of::<(SiteId, Option<SiteId>)>()
    }
}

#[cfg(test)]
mod tests {
    use lucce_tracelog::{Class, LoaderId, Method, Record, Site, SiteKind};

    use super::*;
    use crate::book::{Ids, NewClass};
    use lucce_hooks::{FrameKind, HookPlace as Marked, Mark, Shape};

    /// An earlier run in which `a.A` and `a.B` were loaded, and A.run calls B.work at 5, which allocates
    /// at 9; ids are counted from the given number.
    fn earlier(ids: u32) -> Earlier {
        let mut earlier = Earlier::default();
        let (run, work) = (MethodId(ids + 1), MethodId(ids + 2));
        for (class, name, method, text) in [(1, "a.A", run, "run"), (2, "a.B", work, "work")] {
            let class = ClassId(ids + class);
            earlier.record(Record::from(Class {
                id: class,
                loader: LoaderId(7),
                name: name.into(),
                source_file: None,
            }));
            earlier.record(Record::from(Method {
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
            earlier.record(Record::from(Site {
                id: SiteId(site),
                method,
                bci,
                line: None,
                what,
            }));
        }
        for edge in [
            Edge::entry(run),
            Edge {
                site: SiteId(ids + 1),
                caller: run,
                callee: work,
            },
            Edge {
                site: SiteId(ids + 2),
                caller: work,
                callee: MethodId::EVENT,
            },
        ] {
            earlier.calls.met(edge);
        }
        earlier
    }

    /// This run's class with one method and one place in it.
    fn load(book: &mut Book, (class, loader): (&str, u32), method: &str, place: Marked) -> Ids {
        let shape = Shape {
            frame: FrameKind::Push,
            places: vec![place],
            ..Shape::none()
        };
        let class = NewClass {
            name: class,
            source: None,
            loader: Loader(loader),
            methods: &[(method, "()V", 0)],
            shapes: &[shape],
        };
        book.add(&class).unwrap()
    }

    const CALL: Marked = Marked {
        bci: 5,
        mark: Mark::Call,
    };

    fn allocation() -> Marked {
        Marked {
            bci: 9,
            mark: Mark::New("La/C;".into()),
        }
    }

    fn plan(earlier: Earlier, book: Book) -> NamedPlan {
        let book = Arc::new(WatchedRwLock::new(book));
        NamedPlan::new(earlier, Layout::DEFAULT, &Policy::STATIC, book)
    }

    fn edge(caller: Ids, callee: MethodId) -> Edge {
        Edge {
            site: SiteId(caller.first_site),
            caller: MethodId(caller.first_method),
            callee,
        }
    }

    #[test]
    fn ids_are_matched_by_name() {
        let mut book = Book::default();
        load(&mut book, ("x/Other", 1), "run", CALL);
        let work = load(&mut book, ("a/B", 1), "work", allocation());
        let run = load(&mut book, ("a/A", 1), "run", CALL);
        let moved = load(&mut book, ("a/A2", 1), "run", CALL);
        let plan = plan(earlier(70_000), book);
        let callee = MethodId(work.first_method);
        assert_eq!(plan.addition(edge(run, callee)), Some(1));
        assert_eq!(plan.addition(edge(work, MethodId::EVENT)), Some(1));
        assert_eq!(plan.capacity(MethodId(run.first_method)), Some(1));
        assert_eq!(plan.capacity(callee), Some(2));
        assert_eq!(plan.addition(edge(moved, callee)), None);
        let stats = plan.matches().stats().map(|(_, count)| count);
        assert_eq!(stats, [3, 3, 2, 2, 1, 1]);
    }

    #[test]
    fn the_boot_loaders_class_is_another_one() {
        let mut book = Book::default();
        let boot = load(&mut book, ("a/A", 0), "run", CALL);
        let plan = plan(earlier(0), book);
        assert_eq!(plan.capacity(MethodId(boot.first_method)), None);
    }

    #[test]
    fn a_second_class_of_a_name_is_the_second_that_was_met() {
        let mut book = Book::default();
        let first = load(&mut book, ("a/A", 3), "run", CALL);
        let second = load(&mut book, ("a/A", 4), "run", CALL);
        let plan = plan(earlier(0), book);
        // Asked for in the other order.
        assert_eq!(plan.capacity(MethodId(second.first_method)), Some(1));
        assert_eq!(plan.capacity(MethodId(first.first_method)), None);
    }
}
