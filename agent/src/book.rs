//! Every class, method and site that was instrumented, by id: what the log will say of them once
//! a number needs it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::planner::{FrameKind, INTRINSICS, Mark, Shape};

/// Index into [`Book`]'s strings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Name(u32);

/// Which class loader; 0 is the boot loader.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Loader(pub u32);

impl Loader {
    pub const BOOT: Loader = Loader(0);
}

#[derive(Clone, Copy, Debug)]
pub struct ClassInfo {
    /// `a/b/C`
    pub name: Name,
    pub source: Option<Name>,
    pub loader: Loader,
    pub first_method: u32,
    pub methods: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct MethodInfo {
    pub class: u32,
    pub name: Name,
    pub descriptor: Name,
    pub access: u16,
    pub frame: FrameKind,
    /// Not shown in traces.
    pub transparent: bool,
    lines: (u32, u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    Call,
    New(Name),
    Array(Name),
    Native,
    Current,
    /// A call of a native method that makes an object, which is counted when it returns.
    Making,
    /// The method's entry.
    Entry,
    /// The call by which a thread is started.
    Start,
    Submit,
    /// A call of one of the natives of `io`.
    Io(u8),
}

/// A large program has a million: each byte counts.
#[derive(Clone, Copy, Debug)]
pub struct SiteInfo {
    pub method: u32,
    at: At,
    pub what: What,
}

const _: () = assert!(size_of::<SiteInfo>() == 16);

/// Where a site is in its method.
///
/// ```text
/// 0 ≤ value < 2¹⁶   a bci
/// value < 0         a line ≥ −2 of a place whose bci is not known: −3 − line
/// ```
#[derive(Clone, Copy, Debug)]
struct At(i32);

impl At {
    fn line(line: i32) -> At {
        At((NATIVE - 1).saturating_sub(line).min(-1))
    }
}

impl SiteInfo {
    /// -1: not known.
    pub fn bci(&self) -> i32 {
        self.at.0.max(-1)
    }

    /// Where the line table does not say it.
    pub fn line(&self) -> Option<i32> {
        (self.at.0 < 0).then(|| NATIVE - 1 - self.at.0)
    }
}

/// Line number of native frames, as in `StackTraceElement`.
pub const NATIVE: i32 = -2;
/// Line number that nobody knows.
pub const NO_LINE: i32 = -1;

impl MethodInfo {
    /// Whether its frames have a slot.
    pub fn has_slot(&self) -> bool {
        !matches!(
            self.frame,
            FrameKind::Leaf | FrameKind::Peek | FrameKind::PeekVm
        )
    }
}

/// Ids count from 1: 0 is "none" everywhere.
pub struct Book {
    strings: Vec<Arc<str>>,
    names: HashMap<Arc<str>, Name>,
    classes: Vec<ClassInfo>,
    methods: Vec<MethodInfo>,
    sites: Vec<SiteInfo>,
    lines: Vec<(u16, u16)>,
    by_name: HashMap<(Loader, Name), u32>,
    /// Sites that were not planned: native frames, and places where the VM called something.
    extra: HashMap<(u32, i32), u32>,
    /// The same where something was allocated.
    allocations: HashMap<(u32, i32, Name), u32>,
    /// Sites whose allocations were measured.
    sized: HashSet<u32>,
}

/// A class as it comes from the hook.
pub struct NewClass<'a> {
    pub name: &'a str,
    pub source: Option<&'a str>,
    pub loader: Loader,
    /// Name, descriptor and access flags.
    pub methods: &'a [(&'a str, &'a str, u16)],
    pub shapes: &'a [Shape],
}

/// The ids a class was given.
#[derive(Clone, Copy, Debug)]
pub struct Ids {
    pub first_method: u32,
    pub first_site: u32,
}

impl Default for Book {
    fn default() -> Book {
        let unknown = SiteInfo {
            method: 0,
            at: At::line(NO_LINE),
            what: What::Call,
        };
        Book {
            strings: Vec::new(),
            names: HashMap::new(),
            classes: Vec::new(),
            methods: Vec::new(),
            sites: vec![unknown; INTRINSICS.len()],
            lines: Vec::new(),
            by_name: HashMap::new(),
            extra: HashMap::new(),
            allocations: HashMap::new(),
            sized: HashSet::new(),
        }
    }
}

impl Book {
    pub fn name(&mut self, text: &str) -> Name {
        if let Some(&known) = self.names.get(text) {
            return known;
        }
        let name = Name(self.strings.len() as u32);
        let text: Arc<str> = text.into();
        self.strings.push(Arc::clone(&text));
        self.names.insert(text, name);
        name
    }

    pub fn text(&self, name: Name) -> &str {
        self.strings.get(name.0 as usize).map_or("", |text| text)
    }

    pub fn find_name(&self, text: &str) -> Option<Name> {
        self.names.get(text).copied()
    }

    /// `None`: there are no ids left.
    pub fn add(&mut self, class: &NewClass<'_>) -> Option<Ids> {
        let ids = Ids {
            first_method: self.methods.len() as u32 + 1,
            first_site: self.sites.len() as u32 + 1,
        };
        let sites: usize = class.shapes.iter().map(|shape| shape.places.len()).sum();
        self.room(class.methods.len(), sites)?;
        let index = self.classes.len() as u32 + 1;
        let info = ClassInfo {
            name: self.name(class.name),
            source: class.source.map(|text| self.name(text)),
            loader: class.loader,
            first_method: ids.first_method,
            methods: class.methods.len() as u32,
        };
        self.classes.push(info);
        self.by_name.insert((class.loader, info.name), index);
        for (method, shape) in class.methods.iter().zip(class.shapes) {
            self.add_method(index, *method, shape);
        }
        Some(ids)
    }

    /// Ids of methods have 24 bits and those of sites 28.
    fn room(&self, methods: usize, sites: usize) -> Option<()> {
        use lucce_callgraph::{MethodId, SiteId};
        let fits = self.methods.len() + methods < MethodId::MAX as usize
            && self.sites.len() + sites < SiteId::MAX as usize;
        fits.then_some(())
    }

    fn add_method(&mut self, class: u32, method: (&str, &str, u16), shape: &Shape) {
        let from = self.lines.len() as u32;
        self.lines.extend_from_slice(&shape.lines);
        let info = MethodInfo {
            class,
            name: self.name(method.0),
            descriptor: self.name(method.1),
            access: method.2,
            frame: shape.frame,
            transparent: shape.transparent,
            lines: (from, self.lines.len() as u32),
        };
        self.methods.push(info);
        let id = self.methods.len() as u32;
        if let Some((index, bci)) = shape.intrinsic {
            self.reserved(index, id, bci);
        }
        for place in &shape.places {
            let what = match &place.mark {
                Mark::New(of) => What::New(self.name(of)),
                Mark::Array(of) | Mark::Arrays(of) => What::Array(self.name(of)),
                Mark::Current | Mark::Event => What::Current,
                Mark::Native(_) => What::Making,
                Mark::Entry => What::Entry,
                Mark::Start => What::Start,
                Mark::Submit(_) => What::Submit,
                Mark::Io(operation) => What::Io(*operation),
                Mark::Call
                | Mark::Monitor
                | Mark::Park(_)
                | Mark::Reject(_)
                | Mark::Run
                | Mark::Ran
                | Mark::Schedule
                | Mark::Scope
                | Mark::ScopeEnd
                | Mark::Bracket(_)
                | Mark::DefineHidden
                | Mark::Intrinsic(_)
                | Mark::Uncounted => What::Call,
            };
            self.sites.push(SiteInfo {
                method: id,
                at: At(place.bci.into()),
                what,
            });
        }
    }

    /// The site at which callers count what an intrinsic allocates.
    fn reserved(&mut self, index: usize, method: u32, bci: u16) {
        let allocates = INTRINSICS.get(index).map_or("", |of| of.allocates);
        let what = What::Array(self.name(allocates));
        if let Some(site) = self.sites.get_mut(index) {
            *site = SiteInfo {
                method,
                at: At(bci.into()),
                what,
            };
        }
    }

    /// The class's hooks could not be inserted: its frames have no slots.
    pub fn untouched(&mut self, method: u32) {
        if let Some(info) = self.methods.get_mut(index(method)) {
            info.frame = FrameKind::Leaf;
            info.transparent = true;
        }
    }

    /// The site of `method` at `line`, made if it is new; `true` then.
    pub fn extra_site(&mut self, method: u32, line: i32) -> Option<(u32, bool)> {
        if let Some(&known) = self.extra.get(&(method, line)) {
            return Some((known, false));
        }
        self.room(0, 1)?;
        let what = if line == NATIVE {
            What::Native
        } else {
            What::Call
        };
        self.sites.push(SiteInfo {
            method,
            at: At::line(line),
            what,
        });
        let id = self.sites.len() as u32;
        self.extra.insert((method, line), id);
        Some((id, true))
    }

    pub fn known_allocation(&self, method: u32, line: i32, what: &str) -> Option<u32> {
        let key = (method, line, self.find_name(what)?);
        self.allocations.get(&key).copied()
    }

    /// The site of `method` at `line` that allocates `what`, a descriptor, made if it is new.
    pub fn extra_allocation(&mut self, method: u32, line: i32, what: &str) -> Option<u32> {
        let key = (method, line, self.name(what));
        if let Some(&known) = self.allocations.get(&key) {
            return Some(known);
        }
        self.room(0, 1)?;
        self.sites.push(SiteInfo {
            method,
            at: At::line(line),
            what: match what.starts_with('[') {
                true => What::Array(key.2),
                false => What::New(key.2),
            },
        });
        let id = self.sites.len() as u32;
        self.allocations.insert(key, id);
        Some(id)
    }

    pub fn class(&self, id: u32) -> Option<&ClassInfo> {
        self.classes.get(index(id))
    }

    pub fn class_named(&self, loader: Loader, name: &str) -> Option<&ClassInfo> {
        let name = self.find_name(name)?;
        self.class(*self.by_name.get(&(loader, name))?)
    }

    pub fn method(&self, id: u32) -> Option<&MethodInfo> {
        self.methods.get(index(id))
    }

    pub fn site(&self, id: u32) -> Option<&SiteInfo> {
        self.sites.get(index(id))
    }

    pub fn find_method(&self, class: &ClassInfo, name: &str, descriptor: &str) -> Option<u32> {
        let (name, descriptor) = (self.find_name(name)?, self.find_name(descriptor)?);
        let mut ids = class.first_method..class.first_method + class.methods;
        ids.find(|&id| {
            self.method(id)
                .is_some_and(|m| m.name == name && m.descriptor == descriptor)
        })
    }

    pub fn lines(&self, method: &MethodInfo) -> &[(u16, u16)] {
        let (from, to) = method.lines;
        self.lines.get(from as usize..to as usize).unwrap_or(&[])
    }

    /// What a stack trace shows for a site.
    pub fn line(&self, site: &SiteInfo) -> i32 {
        if let Some(line) = site.line() {
            return line;
        }
        let Some(method) = self.method(site.method) else {
            return NO_LINE;
        };
        let lines = self.lines(method);
        let before = lines.partition_point(|&(bci, _)| i32::from(bci) <= site.bci());
        let found = before.checked_sub(1).and_then(|at| lines.get(at));
        found.map_or(NO_LINE, |&(_, line)| line.into())
    }

    /// Loader and name of the class that a `new` site allocates, when asked for the first time.
    pub fn ask_size(&mut self, site: u32) -> Option<(Loader, String)> {
        let info = *self.site(site)?;
        let What::New(of) = info.what else {
            return None;
        };
        if !self.sized.insert(site) {
            return None;
        }
        let name = self
            .text(of)
            .strip_prefix('L')?
            .strip_suffix(';')?
            .to_string();
        let class = self.class(self.method(info.method)?.class)?;
        Some((class.loader, name))
    }
}

fn index(id: u32) -> usize {
    (id as usize).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_has_a_bci_or_a_line() {
        let mut book = Book::default();
        let lines = [NATIVE, NO_LINE, 0, 1, 65_535];
        for (method, line) in (1..).zip(lines) {
            let (id, is_new) = book.extra_site(method, line).unwrap();
            let site = book.site(id).unwrap();
            assert_eq!((is_new, site.bci(), site.line()), (true, -1, Some(line)));
            assert_eq!(book.line(site), line);
            assert_eq!(book.extra_site(method, line), Some((id, false)));
        }
        let places = [0, 1, 7, u16::MAX].map(|bci| crate::planner::Place {
            bci,
            mark: Mark::Call,
        });
        let mut shape = Shape::without_hooks(false);
        shape.places = places.to_vec();
        shape.lines = vec![(1, 20), (8, 10)];
        let ids = book.add(&NewClass {
            name: "a/B",
            source: None,
            loader: Loader::BOOT,
            methods: &[("f", "()V", 0)],
            shapes: &[shape],
        });
        let first = ids.unwrap().first_site;
        let shown = |n| {
            let site = book.site(first + n).unwrap();
            (site.bci(), site.line(), book.line(site))
        };
        assert_eq!(shown(0), (0, None, NO_LINE));
        assert_eq!(shown(1), (1, None, 20));
        assert_eq!(shown(2), (7, None, 20));
        assert_eq!(shown(3), (65_535, None, 10));
    }
}
