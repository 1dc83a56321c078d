//! Every class, method and site that was instrumented, by id: what the log will say of them once
//! a number needs it.
//!
//! When the loaders that have a class are gone, so is the class, with its methods and sites: their code runs nowhere
//! and never will, and what numbers need of them is in the log. Their ids are given to nothing else.

pub mod calls;
pub mod fate;
pub mod image;
pub mod journal;
pub mod names;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use lucce_callgraph::{MethodId, SiteId};
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_64;

use crate::memory::bits::Bits;
use crate::memory::map::MethodOfSite;
use crate::memory::rows::{Needed, Rows};
use crate::memory::shared_layout::LOW_SITE_BITS as SITE_BITS;
use crate::memory::texts::Texts;
use lucce_hooks::{FrameKind, INTRINSICS, Mark, Of, Shape};

pub use crate::memory::texts::Name;

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
    first_site: u32,
    sites: u32,
    /// How many loaders have it, and one if it is kept for others.
    holders: u32,
    /// Where its descriptors of what is allocated begin.
    allocated: u32,
    allocates: u32,
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
    /// A call that means something for a kind of events.
    Of(Of),
}

#[derive(Clone, Copy, Debug)]
pub struct SiteInfo {
    pub method: u32,
    at: At,
    pub what: What,
}

/// A site as it is kept: a large program has a million, of which most are never asked for.
///
/// ```text
/// bci 16 | more 12 | kind 4
/// ```
///
/// `more` of an allocation is which of its class's descriptors, of `Of` the kind and what the call means for it. What does not fit
/// is elsewhere.
#[derive(Clone, Copy, Debug)]
struct Packed(u32);

impl Packed {
    const ELSEWHERE: Packed = Packed(15);
    /// How many others there are.
    const KINDS: u32 = 8;
    const MORE: u32 = 1 << 12;

    /// `None`: it does not fit.
    fn new(bci: u16, kind: u32, more: u32) -> Option<Packed> {
        (more < Packed::MORE).then_some(Packed(u32::from(bci) << 16 | more << 4 | kind))
    }

    fn bci(self) -> u16 {
        (self.0 >> 16) as u16
    }

    fn kind(self) -> u32 {
        self.0 & 15
    }

    fn more(self) -> u32 {
        self.0 >> 4 & (Packed::MORE - 1)
    }
}

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
/// Line number of a place whose line is not known.
pub const NO_LINE: i32 = -1;

impl MethodInfo {
    /// Whether its frames have a slot.
    pub fn has_slot(&self) -> bool {
        !matches!(
            self.frame,
            FrameKind::Leaf
                | FrameKind::Peek
                | FrameKind::PeekVm
                | FrameKind::Downcall
                | FrameKind::Upcall
                | FrameKind::ToCarrier
                | FrameKind::ToVirtual
        )
    }
}

/// Ids count from 1: 0 is "none" everywhere.
pub struct Book {
    texts: Texts,
    classes: Rows<ClassInfo>,
    gone_classes: Bits,
    gone_methods: Bits,
    methods: Rows<MethodInfo>,
    sites: Rows<Packed>,
    method_of_site: MethodOfSite,
    /// Its entries.
    needed_sites: Needed,
    /// Sites that do not fit.
    elsewhere: FxHashMap<u32, SiteInfo>,
    /// Of each class, descriptors of what its methods allocate.
    allocated: Rows<Name>,
    lines: Rows<(u16, u16)>,
    by_name: FxHashMap<Loader, FxHashMap<Name, u32>>,
    /// Those that a loader has, with earlier ones of a name that were changed.
    of_loader: FxHashMap<Loader, Vec<u32>>,
    /// Methods that are there, and those that went since the last sweep.
    live: usize,
    went: usize,
    /// Sites that were not planned: native frames, and places where the VM called something.
    extra: HashMap<(u32, i32), u32>,
    /// Sites that were not planned, where something was allocated.
    allocations: HashMap<(u32, i32, Name), u32>,
    /// Sites whose allocations were measured.
    sized: HashSet<u32>,
    /// Descriptors of classes whose objects are made where the code does not say it: see `types`.
    types: Rows<Name>,
    /// How many classes of a descriptor have a number.
    live_types: FxHashMap<Name, u32>,
    /// Descriptors of which the last such class went since the last sweep.
    went_types: FxHashSet<Name>,
    /// Class, name and descriptor of the JDK's methods that are [`Shape::quiet`].
    quiet: FxHashSet<(Name, Name, Name)>,
    /// Which methods of a class are in there, see [`Book::quiet_state`].
    quiet_states: FxHashMap<Name, u64>,
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

/// Lines of all methods, and descriptors of what each class allocates, in all classes.
const MOST_LINES: usize = 1 << 28;
const MOST_ALLOCATED: usize = 1 << 26;
/// Numbers of classes, see `types`.
const MOST_TYPES: usize = 1 << 28;
// Java code tells them from what has this bit.
const _: () = assert!(MOST_TYPES <= crate::memory::shared_layout::MAKER as usize);

impl Book {
    /// `method_of_site` says the method of each site from the time on when the site is in the book.
    pub fn new(method_of_site: MethodOfSite) -> Book {
        let mut book = Book {
            texts: Texts::default(),
            classes: Rows::new(1 << MethodId::BITS),
            gone_classes: Bits::default(),
            gone_methods: Bits::default(),
            methods: Rows::new(1 << MethodId::BITS),
            sites: Rows::new(1 << SiteId::BITS),
            method_of_site,
            needed_sites: Needed::default(),
            elsewhere: FxHashMap::default(),
            allocated: Rows::new(MOST_ALLOCATED),
            lines: Rows::new(MOST_LINES),
            by_name: FxHashMap::default(),
            of_loader: FxHashMap::default(),
            live: 0,
            went: 0,
            extra: HashMap::new(),
            allocations: HashMap::new(),
            sized: HashSet::new(),
            types: Rows::new(MOST_TYPES),
            live_types: FxHashMap::default(),
            went_types: FxHashSet::default(),
            quiet: FxHashSet::default(),
            quiet_states: FxHashMap::default(),
        };
        for _ in INTRINSICS {
            book.elsewhere(SiteInfo {
                method: 0,
                at: At::line(NO_LINE),
                what: What::Call,
            });
        }
        book
    }

    pub fn text(&self, name: Name) -> &str {
        self.texts.text(name)
    }

    pub fn find_name(&self, text: &str) -> Option<Name> {
        self.texts.find(text)
    }

    /// `None`: there are no ids left, or no room.
    pub fn add(&mut self, class: &NewClass<'_>) -> Option<Ids> {
        let ids = self.next_ids();
        self.room(class.methods.len(), class.shapes)?;
        let index = self.classes.len() as u32 + 1;
        let info = ClassInfo {
            name: self.texts.name(class.name)?,
            source: match class.source {
                Some(text) => Some(self.texts.name(text)?),
                None => None,
            },
            loader: class.loader,
            first_method: ids.first_method,
            methods: class.methods.len() as u32,
            first_site: ids.first_site,
            sites: 0,
            holders: 0,
            allocated: self.allocated.len() as u32,
            allocates: 0,
        };
        let names = |(name, descriptor, _): &(&str, &str, u16)| {
            Some((self.texts.name(name)?, self.texts.name(descriptor)?))
        };
        let names: Vec<_> = class.methods.iter().map(names).collect::<Option<_>>()?;
        let allocates = class.shapes.iter().flat_map(|shape| &shape.places);
        for place in allocates {
            if let Mark::New(of) | Mark::Array(of) | Mark::Arrays(of) = &place.mark {
                self.texts.name(of)?;
            }
        }
        self.classes.push(info)?;
        self.live += class.methods.len();
        self.give(class.loader, index);
        let mut allocated = FxHashMap::default();
        let methods = names.iter().zip(class.methods);
        for (((name, descriptor), (.., access)), shape) in methods.zip(class.shapes) {
            let from = self.lines.len() as u32;
            self.lines.extend(&shape.lines)?;
            self.methods.push(MethodInfo {
                class: index,
                name: *name,
                descriptor: *descriptor,
                access: *access,
                frame: shape.frame,
                transparent: shape.transparent,
                lines: (from, self.lines.len() as u32),
            })?;
            self.add_sites(shape, &mut allocated)?;
            if shape.quiet && is_of_the_jdk(class.loader, class.name) {
                self.note_quiet(info.name, *name, *descriptor);
            }
        }
        if let Some(info) = self.classes.get_mut(index as usize - 1) {
            info.sites = self.sites.len() as u32 + 1 - info.first_site;
            info.allocates = allocated.len() as u32;
        }
        Some(ids)
    }

    /// Of the class that is added next.
    fn next_ids(&self) -> Ids {
        Ids {
            first_method: self.methods.len() as u32 + 1,
            first_site: self.sites.len() as u32 + 1,
        }
    }

    /// A loader has the class.
    pub fn give(&mut self, loader: Loader, class: u32) {
        let Some(info) = self.classes.get_mut(index(class)) else {
            return;
        };
        info.loader = loader;
        info.holders += 1;
        let name = info.name;
        self.by_name.entry(loader).or_default().insert(name, class);
        self.of_loader.entry(loader).or_default().push(class);
    }

    /// As [`give`](Book::give), unless the loader has it already.
    pub fn give_once(&mut self, loader: Loader, class: u32) {
        let name = self.class(class).map(|info| info.name);
        let known = || self.by_name.get(&loader)?.get(&name?).copied();
        if known() != Some(class) {
            self.give(loader, class);
        }
    }

    /// The loaders that have the class of a site's method.
    pub fn loaders_of(&self, site: u32) -> Vec<Loader> {
        let method = self.site(site).and_then(|site| self.method(site.method));
        let Some(class) = method.map(|method| method.class) else {
            return Vec::new();
        };
        let have =
            |(loader, classes): (&Loader, &Vec<u32>)| classes.contains(&class).then_some(*loader);
        self.of_loader.iter().filter_map(have).collect()
    }

    /// The class stays until it is let go, whatever its loaders do.
    pub fn hold(&mut self, class: u32) {
        if let Some(info) = self.classes.get_mut(index(class)) {
            info.holders += 1;
        }
    }

    /// A loader has the class no more, or the class is not kept for other loaders any longer.
    pub fn let_go(&mut self, class: u32) {
        if let Some(info) = self.classes.get_mut(index(class)) {
            info.holders = info.holders.saturating_sub(1);
            if info.holders == 0 {
                let info = *info;
                self.end(class, &info);
            }
        }
    }

    /// These loaders are gone.
    pub fn leave(&mut self, loaders: &[Loader]) {
        for loader in loaders {
            self.by_name.remove(loader);
            for class in self.of_loader.remove(loader).unwrap_or_default() {
                self.let_go(class);
            }
        }
    }

    /// Whether enough is gone for a [`sweep`](Book::sweep).
    pub fn is_due(&self) -> bool {
        const LEAST: usize = 1 << 14;
        self.went >= LEAST.max(self.live / 2)
            || self.went_types.len() >= LEAST.max(self.live_types.len() / 2)
    }

    fn end(&mut self, class: u32, info: &ClassInfo) {
        let methods = info.first_method..info.first_method + info.methods;
        for method in methods.clone() {
            if let Some((from, to)) = self.method(method).map(|method| method.lines) {
                self.lines.drop_rows(from as usize..to as usize);
            }
        }
        let sites = info.first_site..info.first_site + info.sites;
        for site in sites.clone() {
            self.elsewhere.remove(&site);
            self.sized.remove(&site);
        }
        self.drop_sites(sites);
        let allocated = info.allocated as usize;
        self.allocated
            .drop_rows(allocated..allocated + info.allocates as usize);
        self.methods
            .drop_rows(index(methods.start)..index(methods.end));
        self.gone_methods.set_all(methods.start, methods.end);
        self.classes.drop_rows(index(class)..index(class) + 1);
        self.gone_classes.set(class);
        self.live -= info.methods as usize;
        self.went += info.methods as usize;
    }

    fn drop_sites(&mut self, sites: std::ops::Range<u32>) {
        for site in sites.clone() {
            self.method_of_site.set(site, 0);
        }
        self.sites.drop_rows(index(sites.start)..index(sites.end));
        let (start, end) = (sites.start as usize, sites.end as usize);
        let free = self
            .needed_sites
            .drop(size_of::<u32>(), start..end, self.sites.len() + 1);
        self.method_of_site.give_back(&free);
    }

    /// Takes what has gone with methods and classes out of all that is found by something else than their ids:
    /// as much work as there are living ones.
    pub fn sweep(&mut self) {
        self.went = 0;
        let gone = |method: &u32| self.gone_methods.has(*method);
        let extra = self
            .extra
            .iter()
            .map(|((method, _), site)| (*method, *site));
        let allocations = self.allocations.iter();
        let extra = extra.chain(allocations.map(|((method, ..), site)| (*method, *site)));
        let of_gone_methods = extra.filter(|(method, _)| gone(method));
        let went = std::mem::take(&mut self.went_types);
        let of_gone_types = self.allocations.iter();
        let of_gone_types = of_gone_types.filter(|((.., of), _)| went.contains(of));
        let sites: FxHashSet<u32> = of_gone_methods
            .map(|(_, site)| site)
            .chain(of_gone_types.map(|(_, site)| *site))
            .collect();
        for site in sites {
            self.elsewhere.remove(&site);
            self.drop_sites(site..site + 1);
        }
        let gone = &self.gone_methods;
        self.extra.retain(|(method, _), _| !gone.has(*method));
        self.allocations
            .retain(|(method, _, of), _| !gone.has(*method) && !went.contains(of));
        self.live_types.shrink_to(2 * self.live_types.len());
        self.extra.shrink_to(2 * self.extra.len());
        self.allocations.shrink_to(2 * self.allocations.len());
        self.elsewhere.shrink_to(2 * self.elsewhere.len());
        self.sized.shrink_to(2 * self.sized.len());
        self.by_name.shrink_to(2 * self.by_name.len());
        self.of_loader.shrink_to(2 * self.of_loader.len());
        let names = self.names();
        self.texts.keep(&names);
    }

    /// All that something names which is there.
    fn names(&self) -> Bits {
        let mut names = Bits::default();
        let mut set = |Name(name): Name| names.set(name);
        for class in 1..=self.classes.len() as u32 {
            let Some(info) = self.class(class) else {
                continue;
            };
            set(info.name);
            info.source.iter().for_each(|name| set(*name));
            let methods = info.first_method..info.first_method + info.methods;
            for method in methods.filter_map(|method| self.method(method)) {
                set(method.name);
                set(method.descriptor);
            }
            let allocated = info.allocated as usize;
            let allocated = self
                .allocated
                .all()
                .get(allocated..allocated + info.allocates as usize);
            allocated.into_iter().flatten().for_each(|name| set(*name));
        }
        for site in self.elsewhere.values() {
            if let What::New(of) | What::Array(of) = site.what {
                set(of);
            }
        }
        self.allocations.keys().for_each(|(.., of)| set(*of));
        self.live_types.keys().for_each(|name| set(*name));
        for (class, name, descriptor) in &self.quiet {
            [class, name, descriptor]
                .into_iter()
                .for_each(|name| set(*name));
        }
        names
    }

    /// Whether any class is.
    pub fn has_gone(&self) -> bool {
        !self.gone_classes.is_empty()
    }

    /// Methods of classes that are gone.
    pub fn gone_methods(&self) -> &Bits {
        &self.gone_methods
    }

    /// Whether a call that names this method is one of a method of the JDK before which nothing is said.
    pub fn is_quiet(&self, class: &str, name: &str, descriptor: &str) -> bool {
        let known = || {
            let name = self.find_name(name)?;
            let method = (self.find_name(class)?, name, self.find_name(descriptor)?);
            Some(self.quiet.contains(&method))
        };
        may_be_quiet(class) && known().unwrap_or(false)
    }

    /// A number for the set of the class's methods before whose calls nothing is said: the same in all runs. 0: there
    /// are none.
    pub fn quiet_state(&self, class: &str) -> u64 {
        let name = self.find_name(class);
        let state = name.and_then(|name| self.quiet_states.get(&name));
        state.copied().unwrap_or(0)
    }

    fn note_quiet(&mut self, class: Name, name: Name, descriptor: Name) {
        if self.quiet.insert((class, name, descriptor)) {
            let text = [self.text(name), self.text(descriptor)].join("\0");
            // In whichever order they come.
            *self.quiet_states.entry(class).or_default() ^= xxh3_64(text.as_bytes());
        }
    }

    /// `None`: there is no room for so many. Ids of methods have 24 bits and those of sites 28.
    fn room(&self, methods: usize, shapes: &[Shape]) -> Option<()> {
        let places = || shapes.iter().flat_map(|shape| &shape.places);
        let lines: usize = shapes.iter().map(|shape| shape.lines.len()).sum();
        // No more than one for each site.
        let allocated = places().count();
        self.fits(methods, places().count(), lines, allocated)
            .then_some(())
    }

    fn fits(&self, methods: usize, sites: usize, lines: usize, allocated: usize) -> bool {
        self.methods.len() + methods < self.methods.room().min(MethodId::MAX as usize)
            && self.has_site(sites)
            && self.lines.len() + lines <= self.lines.room()
            && self.allocated.len() + allocated <= self.allocated.room()
    }

    fn has_site(&self, count: usize) -> bool {
        let room = self.sites.room().min(self.method_of_site.room());
        self.sites.len() + count < room.min(SiteId::MAX as usize)
    }

    /// Those of the last method. `allocated`: which descriptors the class has already, and where.
    fn add_sites(&mut self, shape: &Shape, allocated: &mut FxHashMap<Name, u32>) -> Option<()> {
        let id = self.methods.len() as u32;
        if let Some((index, bci)) = shape.intrinsic {
            self.reserved(index, id, bci);
        }
        for place in &shape.places {
            let what = match &place.mark {
                Mark::New(of) => What::New(self.texts.name(of)?),
                Mark::Array(of) | Mark::Arrays(of) => What::Array(self.texts.name(of)?),
                Mark::Current | Mark::Event => What::Current,
                Mark::Made(_) => What::Making,
                Mark::Entry => What::Entry,
                Mark::Of(of) => What::Of(*of),
                Mark::Call
                | Mark::Unsaid
                | Mark::Changes
                | Mark::Hides
                | Mark::Traced
                | Mark::Describes(_)
                | Mark::Asks
                | Mark::Monitor
                | Mark::Scope
                | Mark::ScopeEnd
                | Mark::Bracket(_)
                | Mark::BracketMaking(_)
                | Mark::DefineHidden
                | Mark::Intrinsic(_)
                | Mark::Uncounted => What::Call,
            };
            let info = SiteInfo {
                method: id,
                at: At(place.bci.into()),
                what,
            };
            match self.pack(place.bci, what, allocated) {
                Some(packed) => {
                    self.sites.push(packed)?;
                    self.note_site(id);
                }
                None => drop(self.elsewhere(info)?),
            }
        }
        Some(())
    }

    /// `None`: it does not fit.
    fn pack(
        &mut self,
        bci: u16,
        what: What,
        allocated: &mut FxHashMap<Name, u32>,
    ) -> Option<Packed> {
        let mut which = |name| match allocated.get(&name) {
            Some(known) => Some(*known),
            None => {
                let new = allocated.len() as u32;
                let fits = new < Packed::MORE;
                fits.then(|| self.allocated.push(name)).flatten()?;
                allocated.insert(name, new);
                Some(new)
            }
        };
        let (kind, more) = match what {
            What::Call => (0, 0),
            What::New(of) => (1, which(of)?),
            What::Array(of) => (2, which(of)?),
            What::Native => (3, 0),
            What::Current => (4, 0),
            What::Making => (5, 0),
            What::Entry => (6, 0),
            What::Of(of) => (7, of.packed()),
        };
        Packed::new(bci, kind, more)
    }

    fn unpack(&self, site: u32, packed: Packed) -> Option<SiteInfo> {
        let method = self.method_of_site.get(site);
        let of = || {
            let class = self.class(self.method(method)?.class)?;
            let at = class.allocated + packed.more();
            self.allocated.get(at as usize).copied()
        };
        let what = match packed.kind() {
            0 => What::Call,
            1 => What::New(of()?),
            2 => What::Array(of()?),
            3 => What::Native,
            4 => What::Current,
            5 => What::Making,
            6 => What::Entry,
            7 => What::Of(Of::unpacked(packed.more())),
            _ => return self.elsewhere.get(&site).copied(),
        };
        Some(SiteInfo {
            method,
            at: At(packed.bci().into()),
            what,
        })
    }

    /// A new site that does not fit. `None`: there are no ids left.
    fn elsewhere(&mut self, site: SiteInfo) -> Option<u32> {
        if !self.has_site(1) {
            return None;
        }
        self.sites.push(Packed::ELSEWHERE)?;
        let id = self.sites.len() as u32;
        self.elsewhere.insert(id, site);
        self.note_site(site.method);
        Some(id)
    }

    /// The last site is in `method`.
    fn note_site(&mut self, method: u32) {
        let site = self.sites.len() as u32;
        self.note_sites(site..site + 1, method);
    }

    fn note_sites(&mut self, sites: std::ops::Range<u32>, method: u32) {
        let rows = sites.start as usize..sites.end as usize;
        self.needed_sites.add(size_of::<u32>(), rows);
        for site in sites {
            self.method_of_site.set(site, method);
        }
    }

    /// The site at which callers count what an intrinsic allocates.
    fn reserved(&mut self, index: usize, method: u32, bci: u16) {
        let allocates = INTRINSICS.get(index).map_or("", |of| of.allocates);
        let id = index as u32 + 1;
        if let (Some(name), Some(site)) = (self.texts.name(allocates), self.elsewhere.get_mut(&id))
        {
            *site = SiteInfo {
                method,
                at: At(bci.into()),
                what: What::Array(name),
            };
            self.method_of_site.set(id, method);
        }
    }

    /// The method's hooks could not be inserted: its frames have no slots, but those that they get when it calls
    /// while it is watched.
    pub fn untouched(&mut self, method: u32, watched: bool) {
        if self.gone_methods.has(method) {
            return;
        }
        if let Some(info) = self.methods.get_mut(index(method)) {
            info.frame = FrameKind::Leaf;
            info.transparent |= !watched;
        }
    }

    /// The site of `method` at `line`, made if it is new.
    pub fn extra_site(&mut self, method: u32, line: i32) -> Option<u32> {
        if let Some(&known) = self.extra.get(&(method, line)) {
            return Some(known);
        }
        let what = if line == NATIVE {
            What::Native
        } else {
            What::Call
        };
        let id = self.elsewhere(SiteInfo {
            method,
            at: At::line(line),
            what,
        })?;
        self.extra.insert((method, line), id);
        Some(id)
    }

    pub fn known_allocation(&self, method: u32, line: i32, what: &str) -> Option<u32> {
        let key = (method, line, self.find_name(what)?);
        self.allocations.get(&key).copied()
    }

    /// The site of `method` at `line` that allocates `what`, a descriptor, made if it is new.
    pub fn extra_allocation(&mut self, method: u32, line: i32, what: &str) -> Option<u32> {
        let key = (method, line, self.texts.name(what)?);
        if let Some(&known) = self.allocations.get(&key) {
            return Some(known);
        }
        while self.is_like_another(method) {
            self.elsewhere(SiteInfo {
                method: 0,
                at: At::line(NO_LINE),
                what: What::Call,
            })?;
        }
        let id = self.elsewhere(SiteInfo {
            method,
            at: At::line(line),
            what: match what.starts_with('[') {
                true => What::Array(key.2),
                false => What::New(key.2),
            },
        })?;
        self.allocations.insert(key, id);
        Some(id)
    }

    /// A number for a class with this descriptor. `None`: there are too many.
    pub fn add_type(&mut self, descriptor: &str) -> Option<u32> {
        let name = self.texts.name(descriptor)?;
        let id = u32::try_from(self.types.len()).ok()?.checked_add(1)?;
        i32::try_from(id).ok()?;
        self.types.push(name)?;
        *self.live_types.entry(name).or_default() += 1;
        self.went_types.remove(&name);
        Some(id)
    }

    /// The class with this number is gone. What its objects were made at goes, too, unless another class has its name.
    pub fn end_type(&mut self, id: u32) {
        let Some(name) = self.types.get(index(id)).copied() else {
            return;
        };
        self.types.drop_rows(index(id)..index(id) + 1);
        if let Entry::Occupied(mut classes) = self.live_types.entry(name) {
            *classes.get_mut() -= 1;
            if *classes.get() == 0 {
                classes.remove();
                self.went_types.insert(name);
            }
        }
    }

    /// The site at which objects of this type are made where the code at `site` does not say it.
    pub fn typed(&mut self, site: u32, of: u32) -> Option<u32> {
        let info = self.site(site)?;
        let name = *self.types.get(index(of))?;
        let what = self.text(name).to_string();
        self.extra_allocation(info.method, self.line(&info), &what)
    }

    pub fn class(&self, id: u32) -> Option<&ClassInfo> {
        (!self.gone_classes.has(id))
            .then(|| self.classes.get(index(id)))
            .flatten()
    }

    /// Whether the next site would have the low bits of another one of `method`: by these a thread's index tells
    /// the sites of a method apart.
    fn is_like_another(&self, method: u32) -> bool {
        let next = self.sites.len() as u32 + 1;
        let mut like = (1..next >> SITE_BITS).map(|high| next - (high << SITE_BITS));
        next >> SITE_BITS > 0
            && (self.method_of_site.get(next & ((1 << SITE_BITS) - 1)) == method
                || like.any(|site| self.method_of_site.get(site) == method))
    }

    pub fn class_named(&self, loader: Loader, name: &str) -> Option<&ClassInfo> {
        self.class(self.class_id(loader, name)?)
    }

    pub fn class_id(&self, loader: Loader, name: &str) -> Option<u32> {
        let name = self.find_name(name)?;
        self.by_name.get(&loader)?.get(&name).copied()
    }

    pub fn method(&self, id: u32) -> Option<&MethodInfo> {
        (!self.gone_methods.has(id))
            .then(|| self.methods.get(index(id)))
            .flatten()
    }

    /// Whether the two are one method of one class, whose code was changed in between: frames that were there before
    /// go on in the old code.
    pub fn is_same(&self, one: u32, other: u32) -> bool {
        let of = |id| {
            let method = self.method(id)?;
            let class = self.class(method.class)?;
            Some((class.loader, class.name, method.name, method.descriptor))
        };
        one == other || of(one).is_some_and(|one| of(other) == Some(one))
    }

    /// The method in which a site is; 0: there is no such site.
    pub fn method_of(&self, site: SiteId) -> MethodId {
        MethodId(self.method_of_site.get(site.0))
    }

    pub fn site(&self, id: u32) -> Option<SiteInfo> {
        let packed = *self.sites.get(index(id))?;
        // Only those that stand elsewhere may be in no method.
        let is_gone = self.method_of_site.get(id) == 0 && packed.kind() != Packed::ELSEWHERE.kind();
        (!is_gone).then(|| self.unpack(id, packed)).flatten()
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
        self.lines
            .all()
            .get(from as usize..to as usize)
            .unwrap_or(&[])
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
        let found = self.made_at(site)?;
        self.sized.insert(site).then_some(found)
    }

    /// As `ask_size`, of a site that was asked for before.
    pub fn sized_at(&self, site: u32) -> Option<(Loader, String)> {
        self.sized.contains(&site).then(|| self.made_at(site))?
    }

    fn made_at(&self, site: u32) -> Option<(Loader, String)> {
        let info = self.site(site)?;
        let What::New(of) = info.what else {
            return None;
        };
        // One that was made for a type counts bytes itself.
        if info.line().is_some() {
            return None;
        }
        let name = self.text(of).strip_prefix('L')?.strip_suffix(';')?;
        let class = self.class(self.method(info.method)?.class)?;
        Some((class.loader, name.to_string()))
    }
}

/// Packages of which every loader has the classes of the boot loader, or of a loader of the JDK with others.
const JAVA: &str = "java/";

/// Whether the book may know methods of the class before whose calls nothing is said.
pub fn may_be_quiet(class: &str) -> bool {
    class.starts_with(JAVA)
}

/// Whether every class that names this one means it.
fn is_of_the_jdk(loader: Loader, class: &str) -> bool {
    loader == Loader::BOOT && class.starts_with(JAVA)
}

#[cfg(test)]
impl Default for Book {
    fn default() -> Book {
        Book::new(MethodOfSite::new().unwrap())
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
            let id = book.extra_site(method, line).unwrap();
            let site = book.site(id).unwrap();
            assert_eq!((site.bci(), site.line()), (-1, Some(line)));
            assert_eq!(book.line(&site), line);
            assert_eq!(book.extra_site(method, line), Some(id));
            assert_eq!(book.method_of_site.get(id), method);
        }
        let places = [0, 1, 7, u16::MAX].map(|bci| lucce_hooks::HookPlace {
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
            (site.bci(), site.line(), book.line(&site))
        };
        assert_eq!(shown(0), (0, None, NO_LINE));
        assert_eq!(shown(1), (1, None, 20));
        assert_eq!(shown(2), (7, None, 20));
        assert_eq!(shown(3), (65_535, None, 10));
    }

    #[test]
    fn a_class_that_is_changed_has_its_methods_still() {
        let mut book = Book::default();
        let shapes = [Shape::without_hooks(false), Shape::without_hooks(false)];
        let mut add = |loader, name| {
            let methods = [("f", "()V", 0), ("f", "(I)V", 0)];
            let class = NewClass {
                name,
                source: None,
                loader,
                methods: &methods,
                shapes: &shapes,
            };
            book.add(&class).unwrap().first_method
        };
        let [before, after] = [0; 2].map(|_| add(Loader::BOOT, "a/B"));
        let others = [add(Loader(1), "a/B"), add(Loader::BOOT, "a/C"), before + 1];
        assert_ne!(before, after);
        assert!(book.is_same(before, after) && book.is_same(before + 1, after + 1));
        for other in others {
            assert!(!book.is_same(other, after), "{other}");
        }
        // No class at all.
        assert!(!book.is_same(100, 101));
    }

    #[test]
    fn a_site_says_what_happens_there() {
        let marked = |mark| lucce_hooks::HookPlace { bci: 3, mark };
        // More than a packed site can tell apart.
        let kinds = Packed::MORE + 5;
        let mut shapes = Vec::new();
        for part in 0..2 {
            let mut shape = Shape::without_hooks(false);
            shape.places = (0..kinds)
                .map(|n| marked(Mark::New(format!("La/C{n};"))))
                .collect();
            shape.places.push(marked(Mark::Array(format!("[I{part}"))));
            shape
                .places
                .push(marked(Mark::Of(Of::unpacked(8 << 8 | 200))));
            shape
                .places
                .push(marked(Mark::Of(Of::unpacked(7 << 8 | 1))));
            shapes.push(shape);
        }
        let mut book = Book::default();
        let class = NewClass {
            name: "a/B",
            source: None,
            loader: Loader::BOOT,
            methods: &[("f", "()V", 0), ("g", "()V", 0)],
            shapes: &shapes,
        };
        // The second one's descriptors are its own.
        for _ in 0..2 {
            let ids = book.add(&class).unwrap();
            let mut site = ids.first_site;
            for part in 0..2 {
                let mut next = || {
                    let info = book.site(site).unwrap();
                    assert_eq!((info.method, info.bci()), (ids.first_method + part, 3));
                    assert_eq!(book.method_of_site.get(site), info.method);
                    site += 1;
                    info.what
                };
                for n in 0..kinds {
                    let name = book.find_name(&format!("La/C{n};")).unwrap();
                    assert_eq!(next(), What::New(name));
                }
                let array = book.find_name(&format!("[I{part}")).unwrap();
                assert_eq!(next(), What::Array(array));
                let packed = |what| match what {
                    What::Of(of) => of.packed(),
                    _ => 0,
                };
                assert_eq!((packed(next()), packed(next())), (8 << 8 | 200, 7 << 8 | 1));
            }
            assert!(book.site(site).is_none());
        }
        let reserved = book.site(1).unwrap();
        assert_eq!((reserved.method, reserved.what), (0, What::Call));
    }

    #[test]
    fn what_is_made_of_a_class_that_is_gone_goes() {
        let mut book = Book::default();
        let ids = book.add(&NewClass {
            name: "a/B",
            source: None,
            loader: Loader::BOOT,
            methods: &[("f", "()V", 0)],
            shapes: &[Shape::without_hooks(false)],
        });
        let site = book.extra_site(ids.unwrap().first_method, 7).unwrap();
        let other = book.add_type("La/Other;").unwrap();
        let made = book.typed(site, other).unwrap();
        // Two classes of a name; array classes are classes of their own.
        let twice = [0, 1].map(|_| book.add_type("La/Twice;").unwrap());
        let twice_made = book.typed(site, twice[0]).unwrap();
        assert_eq!(book.typed(site, twice[1]), Some(twice_made));
        book.end_type(twice[0]);
        book.sweep();
        assert_eq!(book.typed(site, twice[1]), Some(twice_made));
        let most = 1 << 14;
        let mut numbers = Vec::new();
        for n in 0..most {
            let number = book.add_type(&format!("[La/Made{n};")).unwrap();
            numbers.push((number, book.typed(site, number).unwrap()));
        }
        for (number, _) in &numbers[1..] {
            book.end_type(*number);
            assert!(!book.is_due());
        }
        book.end_type(numbers[0].0);
        book.end_type(twice[1]);
        assert!(book.is_due());
        // One comes again in time.
        let again = book.add_type("[La/Made5;").unwrap();
        book.sweep();
        assert!(!book.is_due());
        for (n, (_, typed)) in numbers.iter().enumerate() {
            assert_eq!(book.site(*typed).is_some(), n == 5);
            assert_eq!(book.method_of_site.get(*typed) == 0, n != 5);
        }
        assert!(book.site(twice_made).is_none() && book.find_name("La/Twice;").is_none());
        assert_eq!(book.typed(site, again), Some(numbers[5].1));
        assert_eq!(book.typed(site, other), Some(made));
        assert_eq!(
            (book.allocations.len(), book.elsewhere.len()),
            (2, INTRINSICS.len() + 3)
        );
        // A new class of the name has a site of its own.
        let number = book.add_type("La/Twice;").unwrap();
        let new = book.typed(site, number).unwrap();
        assert!(new > twice_made && book.site(new).is_some());
    }

    #[test]
    fn only_methods_of_the_jdk_are_quiet_for_all() {
        let mut book = Book::default();
        let mut quiet = Shape::without_hooks(false);
        quiet.quiet = true;
        let shapes = [quiet, Shape::without_hooks(false)];
        let classes = [
            ("java/util/A", Loader::BOOT),
            ("java/util/B", Loader(7)),
            ("org/C", Loader::BOOT),
        ];
        for (name, loader) in classes {
            let ids = book.add(&NewClass {
                name,
                source: None,
                loader,
                methods: &[("f", "()V", 0), ("g", "()V", 0)],
                shapes: &shapes,
            });
            assert!(ids.is_some());
        }
        assert!(book.is_quiet("java/util/A", "f", "()V"));
        for (class, method, descriptor) in [
            ("java/util/A", "g", "()V"),
            ("java/util/A", "f", "()I"),
            // Not of the boot loader: a class that names it may mean another one.
            ("java/util/B", "f", "()V"),
            // Not one of which there can be only one.
            ("org/C", "f", "()V"),
            ("java/util/D", "f", "()V"),
        ] {
            assert!(
                !book.is_quiet(class, method, descriptor),
                "{class}.{method}{descriptor}"
            );
        }
    }
}
