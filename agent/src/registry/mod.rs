//! The code registry: classes, methods and sites with their ids, from which the log's records are written.
//!
//! ```text
//! hooks decided ─► CodeRegistry: ids ─► hooked bytecode
//!                       └► WrittenRecords ─► AgentLog: a record is written when a number first needs it
//! ```
//!
//! If all loaders of a class are gone, the registry frees the class with its methods and sites. Their code cannot run any more,
//! and the log has the records that its numbers need. Ids are never reused.
//!
//! Read this file first, then `written_records`, `agent_log`, and `class_image` for the class cache. `call_recorder` writes
//! the call recording.

pub mod agent_log;
pub mod call_recorder;
pub mod class_image;
mod code_sources;
pub mod file_state;
pub mod written_records;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use lucce_callgraph::{MethodId, SiteId};
use lucce_tracelog::CodeSourceId;
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_64;

use crate::memory::address_space::MethodOfSite;
use crate::memory::bit_set::BitSet;
use crate::memory::grow_only_array::{GrowOnlyArray, PageRowCounts};
use crate::memory::shared_layout::LOW_SITE_BITS as SITE_BITS;
use crate::memory::text_table::TextTable;
use lucce_instrument::{EventCall, FrameKind, HookSiteKind, INTRINSICS, MethodInstrumentation};

use self::code_sources::CodeSources;

pub use crate::memory::text_table::InternedText;

/// Id of a class loader; 0 is the boot loader.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClassLoaderId(pub u32);

impl ClassLoaderId {
    pub const BOOT: ClassLoaderId = ClassLoaderId(0);
}

/// A class in the registry.
#[derive(Clone, Copy, Debug)]
pub struct RegisteredClass {
    /// `a/b/C`
    pub name: InternedText,
    pub source: Option<InternedText>,
    pub loader: ClassLoaderId,
    pub first_method: u32,
    pub methods: u32,
    first_site: u32,
    sites: u32,
    /// The number of loaders that have the class, plus one if it is retained for other loaders.
    owner_count: u32,
    /// Index of its first entry in `allocated_names`.
    first_allocated: u32,
    allocated_count: u32,
    /// Where it was loaded from; the default: unknown, or the boot loader.
    pub code_source: CodeSourceId,
}

/// A method in the registry.
#[derive(Clone, Copy, Debug)]
pub struct RegisteredMethod {
    pub class: u32,
    pub name: InternedText,
    pub descriptor: InternedText,
    pub access: u16,
    pub frame: FrameKind,
    /// Traces omit its frames.
    pub transparent: bool,
    lines: (u32, u32),
}

/// What happens at a site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegisteredSiteKind {
    Call,
    New(InternedText),
    Array(InternedText),
    Native,
    Current,
    /// A call of a native method that creates an object. The object is counted when the method returns.
    NativeAllocation,
    /// The method's entry.
    Entry,
    /// A call that matters to a kind of events.
    EventCall(EventCall),
}

/// A call site or allocation site in the registry.
#[derive(Clone, Copy, Debug)]
pub struct RegisteredSite {
    pub method: u32,
    position: SitePosition,
    pub kind: RegisteredSiteKind,
}

/// A site in compact form: a large program has a million sites, most of which are never read.
///
/// ```text
/// bci 16 | payload 12 | kind 4
/// ```
///
/// The payload of an allocation is the index among its class's allocated types. The payload of an event call is
/// [`EventCall::to_packed`]. Other sites are kept in `unpacked_sites`.
#[derive(Clone, Copy, Debug)]
struct PackedSite(u32);

impl PackedSite {
    const UNPACKED: PackedSite = PackedSite(15);
    /// The number of the other kinds.
    const KINDS: u32 = 8;
    const PAYLOADS: u32 = 1 << 12;

    /// `None`: it does not fit.
    fn new(bci: u16, kind: u32, more: u32) -> Option<PackedSite> {
        (more < PackedSite::PAYLOADS).then_some(PackedSite(u32::from(bci) << 16 | more << 4 | kind))
    }

    fn bci(self) -> u16 {
        (self.0 >> 16) as u16
    }

    fn kind(self) -> u32 {
        self.0 & 15
    }

    fn payload(self) -> u32 {
        self.0 >> 4 & (PackedSite::PAYLOADS - 1)
    }
}

/// The position of a site in its method.
///
/// ```text
/// 0 ≤ value < 2¹⁶   a bci
/// value < 0         a line ≥ −2 of a site whose bci is unknown: −3 − line
/// ```
#[derive(Clone, Copy, Debug)]
struct SitePosition(i32);

impl SitePosition {
    fn from_line(line: i32) -> SitePosition {
        SitePosition((NATIVE_LINE - 1).saturating_sub(line).min(-1))
    }
}

impl RegisteredSite {
    /// -1: unknown.
    pub fn bci(&self) -> i32 {
        self.position.0.max(-1)
    }

    /// The line, if the line table does not determine it.
    pub fn line(&self) -> Option<i32> {
        (self.position.0 < 0).then(|| NATIVE_LINE - 1 - self.position.0)
    }
}

/// Line number of native frames, as in `StackTraceElement`.
pub const NATIVE_LINE: i32 = -2;
/// Line number of a site whose line is unknown.
pub const NO_LINE: i32 = -1;

impl RegisteredMethod {
    /// Whether its frames have a slot.
    pub fn has_slot(&self) -> bool {
        !matches!(
            self.frame,
            FrameKind::Leaf
                | FrameKind::NoSlot
                | FrameKind::NoSlotVmEntered
                | FrameKind::Downcall
                | FrameKind::Upcall
                | FrameKind::ToCarrier
                | FrameKind::ToVirtual
        )
    }
}

/// All registered code, by id. Ids count from 1: 0 means "none" everywhere.
pub struct CodeRegistry {
    texts: TextTable,
    classes: GrowOnlyArray<RegisteredClass>,
    removed_classes: BitSet,
    removed_methods: BitSet,
    methods: GrowOnlyArray<RegisteredMethod>,
    sites: GrowOnlyArray<PackedSite>,
    method_of_site: MethodOfSite,
    /// Sites in use, by page of `method_of_site`.
    needed_sites: PageRowCounts,
    /// Sites that do not fit into a [`PackedSite`].
    unpacked_sites: FxHashMap<u32, RegisteredSite>,
    /// Descriptors of the types that each class's methods allocate.
    allocated_names: GrowOnlyArray<InternedText>,
    lines: GrowOnlyArray<(u16, u16)>,
    classes_by_name: FxHashMap<ClassLoaderId, FxHashMap<InternedText, u32>>,
    /// A loader's classes, with earlier versions of redefined ones.
    classes_of_loader: FxHashMap<ClassLoaderId, Vec<u32>>,
    /// The number of registered methods, and of methods removed since the last sweep.
    live_methods: usize,
    removed_since_sweep: usize,
    /// Sites without an instrumentation plan: native frames, and places at which the VM called something.
    line_sites: HashMap<(u32, i32), u32>,
    /// Allocation sites without an instrumentation plan.
    allocation_sites: HashMap<(u32, i32, InternedText), u32>,
    /// Sites whose object size was measured.
    measured_sites: HashSet<u32>,
    /// Descriptors of classes whose objects are created where the code does not name the class, see `counting::object_types`.
    class_number_names: GrowOnlyArray<InternedText>,
    /// The number of numbered classes with a descriptor.
    live_class_names: FxHashMap<InternedText, u32>,
    /// Descriptors whose last numbered class was removed since the last sweep.
    removed_class_names: FxHashSet<InternedText>,
    /// Class, name and descriptor of the JDK's methods that are [`MethodInstrumentation::untracked`].
    untracked_methods: FxHashSet<(InternedText, InternedText, InternedText)>,
    /// A hash of each class's methods in `untracked_methods`, see [`CodeRegistry::untracked_hash`].
    untracked_hashes: FxHashMap<InternedText, u64>,
    code_sources: CodeSources,
}

/// A class that is about to get its hooks.
pub struct ClassDefinition<'a> {
    pub name: &'a str,
    pub source: Option<&'a str>,
    pub loader: ClassLoaderId,
    /// Name, descriptor and access flags.
    pub methods: &'a [(&'a str, &'a str, u16)],
    pub instrumentations: &'a [MethodInstrumentation],
}

/// The first ids of a class's methods and sites.
#[derive(Clone, Copy, Debug)]
pub struct FirstClassIds {
    pub first_method: u32,
    pub first_site: u32,
}

/// Limits of the lines of all methods, and of the allocated types of all classes.
const MAX_LINES: usize = 1 << 28;
const MAX_ALLOCATED: usize = 1 << 26;
/// Limit of class numbers, see `counting::object_types`.
const MAX_CLASS_NUMBERS: usize = 1 << 28;
// Java code tells class numbers from values with this bit.
const _: () = assert!(MAX_CLASS_NUMBERS <= crate::memory::shared_layout::MAKER as usize);

impl CodeRegistry {
    /// `method_of_site` gets the method of each site when the site is registered.
    pub fn new(method_of_site: MethodOfSite) -> CodeRegistry {
        let mut book = CodeRegistry {
            texts: TextTable::default(),
            classes: GrowOnlyArray::new(1 << MethodId::BITS),
            removed_classes: BitSet::default(),
            removed_methods: BitSet::default(),
            methods: GrowOnlyArray::new(1 << MethodId::BITS),
            sites: GrowOnlyArray::new(1 << SiteId::BITS),
            method_of_site,
            needed_sites: PageRowCounts::default(),
            unpacked_sites: FxHashMap::default(),
            allocated_names: GrowOnlyArray::new(MAX_ALLOCATED),
            lines: GrowOnlyArray::new(MAX_LINES),
            classes_by_name: FxHashMap::default(),
            classes_of_loader: FxHashMap::default(),
            live_methods: 0,
            removed_since_sweep: 0,
            line_sites: HashMap::new(),
            allocation_sites: HashMap::new(),
            measured_sites: HashSet::new(),
            class_number_names: GrowOnlyArray::new(MAX_CLASS_NUMBERS),
            live_class_names: FxHashMap::default(),
            removed_class_names: FxHashSet::default(),
            untracked_methods: FxHashSet::default(),
            untracked_hashes: FxHashMap::default(),
            code_sources: CodeSources::default(),
        };
        for _ in INTRINSICS {
            book.add_unpacked_site(RegisteredSite {
                method: 0,
                position: SitePosition::from_line(NO_LINE),
                kind: RegisteredSiteKind::Call,
            });
        }
        book
    }

    /// The text of an interned name.
    pub fn name_text(&self, name: InternedText) -> &str {
        self.texts.resolve_text(name)
    }

    /// The interned name of a text, if it is in use.
    pub fn find_name(&self, text: &str) -> Option<InternedText> {
        self.texts.find_text(text)
    }

    /// Registers a class. `None`: no ids are left, or no room.
    pub fn add_class(&mut self, class: &ClassDefinition<'_>) -> Option<FirstClassIds> {
        let ids = self.next_class_ids();
        self.check_room(class.methods.len(), class.instrumentations)?;
        let index = self.classes.len() as u32 + 1;
        let info = RegisteredClass {
            name: self.texts.intern_text(class.name)?,
            source: match class.source {
                Some(text) => Some(self.texts.intern_text(text)?),
                None => None,
            },
            loader: class.loader,
            first_method: ids.first_method,
            methods: class.methods.len() as u32,
            first_site: ids.first_site,
            sites: 0,
            owner_count: 0,
            first_allocated: self.allocated_names.len() as u32,
            allocated_count: 0,
            // Other code of a loaded class comes from the same place.
            code_source: self
                .find_class(class.loader, class.name)
                .map_or(CodeSourceId::default(), |before| before.code_source),
        };
        let names = |(name, descriptor, _): &(&str, &str, u16)| {
            Some((
                self.texts.intern_text(name)?,
                self.texts.intern_text(descriptor)?,
            ))
        };
        let names: Vec<_> = class.methods.iter().map(names).collect::<Option<_>>()?;
        let allocates = class
            .instrumentations
            .iter()
            .flat_map(|shape| &shape.places);
        for place in allocates {
            if let HookSiteKind::New(of) | HookSiteKind::Array(of) | HookSiteKind::Arrays(of) =
                &place.kind
            {
                self.texts.intern_text(of)?;
            }
        }
        self.classes.push(info)?;
        self.live_methods += class.methods.len();
        self.link_loader(class.loader, index);
        let mut allocated = FxHashMap::default();
        let methods = names.iter().zip(class.methods);
        for (((name, descriptor), (.., access)), shape) in methods.zip(class.instrumentations) {
            let from = self.lines.len() as u32;
            self.lines.extend(&shape.lines)?;
            self.methods.push(RegisteredMethod {
                class: index,
                name: *name,
                descriptor: *descriptor,
                access: *access,
                frame: shape.frame,
                transparent: shape.transparent,
                lines: (from, self.lines.len() as u32),
            })?;
            self.add_sites(shape, &mut allocated)?;
            if shape.untracked && is_jdk_class(class.loader, class.name) {
                self.add_untracked(info.name, *name, *descriptor);
            }
        }
        if let Some(info) = self.classes.get_mut(index as usize - 1) {
            info.sites = self.sites.len() as u32 + 1 - info.first_site;
            info.allocated_count = allocated.len() as u32;
        }
        Some(ids)
    }

    /// The ids of the next class.
    fn next_class_ids(&self) -> FirstClassIds {
        FirstClassIds {
            first_method: self.methods.len() as u32 + 1,
            first_site: self.sites.len() as u32 + 1,
        }
    }

    /// Adds `loader` to the class's loaders.
    pub fn link_loader(&mut self, loader: ClassLoaderId, class: u32) {
        let Some(info) = self.classes.get_mut(row_of_id(class)) else {
            return;
        };
        info.loader = loader;
        info.owner_count += 1;
        let name = info.name;
        self.classes_by_name
            .entry(loader)
            .or_default()
            .insert(name, class);
        self.classes_of_loader
            .entry(loader)
            .or_default()
            .push(class);
    }

    /// Like [`link_loader`](CodeRegistry::link_loader), unless the loader has the class already.
    pub fn link_loader_once(&mut self, loader: ClassLoaderId, class: u32) {
        let name = self.class(class).map(|info| info.name);
        let known = || self.classes_by_name.get(&loader)?.get(&name?).copied();
        if known() != Some(class) {
            self.link_loader(loader, class);
        }
    }

    /// The loaders of the class that contains a site.
    pub fn loaders_of_site(&self, site: u32) -> Vec<ClassLoaderId> {
        let method = self.site(site).and_then(|site| self.method(site.method));
        let Some(class) = method.map(|method| method.class) else {
            return Vec::new();
        };
        let have = |(loader, classes): (&ClassLoaderId, &Vec<u32>)| {
            classes.contains(&class).then_some(*loader)
        };
        self.classes_of_loader.iter().filter_map(have).collect()
    }

    /// Keeps the class until [`release_class`](CodeRegistry::release_class), even if its loaders are gone.
    pub fn retain_class(&mut self, class: u32) {
        if let Some(info) = self.classes.get_mut(row_of_id(class)) {
            info.owner_count += 1;
        }
    }

    /// Removes one loader of the class, or ends [`retain_class`](CodeRegistry::retain_class).
    pub fn release_class(&mut self, class: u32) {
        if let Some(info) = self.classes.get_mut(row_of_id(class)) {
            info.owner_count = info.owner_count.saturating_sub(1);
            if info.owner_count == 0 {
                let info = *info;
                self.remove_class(class, &info);
            }
        }
    }

    /// Removes unloaded loaders and their classes.
    pub fn remove_loaders(&mut self, loaders: &[ClassLoaderId]) {
        for loader in loaders {
            self.classes_by_name.remove(loader);
            for class in self.classes_of_loader.remove(loader).unwrap_or_default() {
                self.release_class(class);
            }
        }
    }

    /// Whether enough was removed to justify [`sweep_indexes`](CodeRegistry::sweep_indexes).
    pub fn is_sweep_due(&self) -> bool {
        const LEAST: usize = 1 << 14;
        self.removed_since_sweep >= LEAST.max(self.live_methods / 2)
            || self.removed_class_names.len() >= LEAST.max(self.live_class_names.len() / 2)
    }

    fn remove_class(&mut self, class: u32, info: &RegisteredClass) {
        let methods = info.first_method..info.first_method + info.methods;
        for method in methods.clone() {
            if let Some((from, to)) = self.method(method).map(|method| method.lines) {
                self.lines.drop_rows(from as usize..to as usize);
            }
        }
        let sites = info.first_site..info.first_site + info.sites;
        for site in sites.clone() {
            self.unpacked_sites.remove(&site);
            self.measured_sites.remove(&site);
        }
        self.drop_sites(sites);
        let allocated = info.first_allocated as usize;
        self.allocated_names
            .drop_rows(allocated..allocated + info.allocated_count as usize);
        self.methods
            .drop_rows(row_of_id(methods.start)..row_of_id(methods.end));
        self.removed_methods
            .insert_range(methods.start, methods.end);
        self.classes
            .drop_rows(row_of_id(class)..row_of_id(class) + 1);
        self.removed_classes.insert(class);
        self.live_methods -= info.methods as usize;
        self.removed_since_sweep += info.methods as usize;
    }

    fn drop_sites(&mut self, sites: std::ops::Range<u32>) {
        for site in sites.clone() {
            self.method_of_site.set(site, 0);
        }
        self.sites
            .drop_rows(row_of_id(sites.start)..row_of_id(sites.end));
        let (start, end) = (sites.start as usize, sites.end as usize);
        let free =
            self.needed_sites
                .remove_rows(size_of::<u32>(), start..end, self.sites.len() + 1);
        self.method_of_site.release_pages(&free);
    }

    /// Removes the data of removed methods and classes from all indexes with other keys than ids. The cost is proportional to the
    /// living entries.
    pub fn sweep_indexes(&mut self) {
        self.removed_since_sweep = 0;
        let gone = |method: &u32| self.removed_methods.contains(*method);
        let extra = self
            .line_sites
            .iter()
            .map(|((method, _), site)| (*method, *site));
        let allocations = self.allocation_sites.iter();
        let extra = extra.chain(allocations.map(|((method, ..), site)| (*method, *site)));
        let of_gone_methods = extra.filter(|(method, _)| gone(method));
        let went = std::mem::take(&mut self.removed_class_names);
        let of_gone_types = self.allocation_sites.iter();
        let of_gone_types = of_gone_types.filter(|((.., of), _)| went.contains(of));
        let sites: FxHashSet<u32> = of_gone_methods
            .map(|(_, site)| site)
            .chain(of_gone_types.map(|(_, site)| *site))
            .collect();
        for site in sites {
            self.unpacked_sites.remove(&site);
            self.drop_sites(site..site + 1);
        }
        let gone = &self.removed_methods;
        self.line_sites
            .retain(|(method, _), _| !gone.contains(*method));
        self.allocation_sites
            .retain(|(method, _, of), _| !gone.contains(*method) && !went.contains(of));
        self.live_class_names
            .shrink_to(2 * self.live_class_names.len());
        self.line_sites.shrink_to(2 * self.line_sites.len());
        self.allocation_sites
            .shrink_to(2 * self.allocation_sites.len());
        self.unpacked_sites.shrink_to(2 * self.unpacked_sites.len());
        self.measured_sites.shrink_to(2 * self.measured_sites.len());
        self.classes_by_name
            .shrink_to(2 * self.classes_by_name.len());
        self.classes_of_loader
            .shrink_to(2 * self.classes_of_loader.len());
        let names = self.used_names();
        self.texts.retain_texts(&names);
    }

    /// All names in use.
    fn used_names(&self) -> BitSet {
        let mut names = BitSet::default();
        let mut set = |InternedText(name): InternedText| names.insert(name);
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
            let allocated = info.first_allocated as usize;
            let allocated = self
                .allocated_names
                .as_slice()
                .get(allocated..allocated + info.allocated_count as usize);
            allocated.into_iter().flatten().for_each(|name| set(*name));
        }
        for site in self.unpacked_sites.values() {
            if let RegisteredSiteKind::New(of) | RegisteredSiteKind::Array(of) = site.kind {
                set(of);
            }
        }
        self.allocation_sites.keys().for_each(|(.., of)| set(*of));
        self.live_class_names.keys().for_each(|name| set(*name));
        for (class, name, descriptor) in &self.untracked_methods {
            [class, name, descriptor]
                .into_iter()
                .for_each(|name| set(*name));
        }
        names
    }

    /// Whether any class was removed.
    pub fn has_removed_classes(&self) -> bool {
        !self.removed_classes.is_empty()
    }

    /// The methods of removed classes.
    pub fn removed_methods(&self) -> &BitSet {
        &self.removed_methods
    }

    /// Whether a call of this method is untracked: the JDK's code has no hook before it.
    pub fn is_untracked(&self, class: &str, name: &str, descriptor: &str) -> bool {
        let known = || {
            let name = self.find_name(name)?;
            let method = (self.find_name(class)?, name, self.find_name(descriptor)?);
            Some(self.untracked_methods.contains(&method))
        };
        may_be_untracked(class) && known().unwrap_or(false)
    }

    /// A hash of the class's untracked methods, equal in all runs. 0: it has none.
    pub fn untracked_hash(&self, class: &str) -> u64 {
        let name = self.find_name(class);
        let state = name.and_then(|name| self.untracked_hashes.get(&name));
        state.copied().unwrap_or(0)
    }

    fn add_untracked(&mut self, class: InternedText, name: InternedText, descriptor: InternedText) {
        if self.untracked_methods.insert((class, name, descriptor)) {
            let text = [self.name_text(name), self.name_text(descriptor)].join("\0");
            // XOR: the order of the methods does not matter.
            *self.untracked_hashes.entry(class).or_default() ^= xxh3_64(text.as_bytes());
        }
    }

    /// `None`: there is no room. Method ids have 24 bits, site ids 28.
    fn check_room(&self, methods: usize, shapes: &[MethodInstrumentation]) -> Option<()> {
        let places = || shapes.iter().flat_map(|shape| &shape.places);
        let lines: usize = shapes.iter().map(|shape| shape.lines.len()).sum();
        // At most one for each site.
        let allocated = places().count();
        self.has_room_for(methods, places().count(), lines, allocated)
            .then_some(())
    }

    fn has_room_for(&self, methods: usize, sites: usize, lines: usize, allocated: usize) -> bool {
        self.methods.len() + methods < self.methods.capacity().min(MethodId::MAX as usize)
            && self.has_room_for_sites(sites)
            && self.lines.len() + lines <= self.lines.capacity()
            && self.allocated_names.len() + allocated <= self.allocated_names.capacity()
    }

    fn has_room_for_sites(&self, count: usize) -> bool {
        let room = self
            .sites
            .capacity()
            .min(self.method_of_site.site_capacity());
        self.sites.len() + count < room.min(SiteId::MAX as usize)
    }

    /// Adds the sites of the last method. `allocated`: the class's allocated types so far, with their indexes.
    fn add_sites(
        &mut self,
        shape: &MethodInstrumentation,
        allocated: &mut FxHashMap<InternedText, u32>,
    ) -> Option<()> {
        let id = self.methods.len() as u32;
        if let Some((index, bci)) = shape.intrinsic {
            self.define_intrinsic_site(index, id, bci);
        }
        for place in &shape.places {
            let what = match &place.kind {
                HookSiteKind::New(of) => RegisteredSiteKind::New(self.texts.intern_text(of)?),
                HookSiteKind::Array(of) | HookSiteKind::Arrays(of) => {
                    RegisteredSiteKind::Array(self.texts.intern_text(of)?)
                }
                HookSiteKind::Current | HookSiteKind::Event => RegisteredSiteKind::Current,
                HookSiteKind::Creation(_) => RegisteredSiteKind::NativeAllocation,
                HookSiteKind::Entry => RegisteredSiteKind::Entry,
                HookSiteKind::EventCall(of) => RegisteredSiteKind::EventCall(*of),
                HookSiteKind::Call
                | HookSiteKind::Untracked
                | HookSiteKind::ClassRedefinition
                | HookSiteKind::FrameHiding
                | HookSiteKind::StackTrace
                | HookSiteKind::ThrowableMessage(_)
                | HookSiteKind::AgentQuery
                | HookSiteKind::Monitor
                | HookSiteKind::Scope
                | HookSiteKind::ScopeEnd
                | HookSiteKind::NativeBracket(_)
                | HookSiteKind::CreatingBracket(_)
                | HookSiteKind::DefineHidden
                | HookSiteKind::Intrinsic(_)
                | HookSiteKind::Uncounted => RegisteredSiteKind::Call,
            };
            let info = RegisteredSite {
                method: id,
                position: SitePosition(place.bci.into()),
                kind: what,
            };
            match self.pack_site(place.bci, what, allocated) {
                Some(packed) => {
                    self.sites.push(packed)?;
                    self.set_last_site_method(id);
                }
                None => drop(self.add_unpacked_site(info)?),
            }
        }
        Some(())
    }

    /// `None`: it does not fit.
    fn pack_site(
        &mut self,
        bci: u16,
        what: RegisteredSiteKind,
        allocated: &mut FxHashMap<InternedText, u32>,
    ) -> Option<PackedSite> {
        let mut which = |name| match allocated.get(&name) {
            Some(known) => Some(*known),
            None => {
                let new = allocated.len() as u32;
                let fits = new < PackedSite::PAYLOADS;
                fits.then(|| self.allocated_names.push(name)).flatten()?;
                allocated.insert(name, new);
                Some(new)
            }
        };
        let (kind, more) = match what {
            RegisteredSiteKind::Call => (0, 0),
            RegisteredSiteKind::New(of) => (1, which(of)?),
            RegisteredSiteKind::Array(of) => (2, which(of)?),
            RegisteredSiteKind::Native => (3, 0),
            RegisteredSiteKind::Current => (4, 0),
            RegisteredSiteKind::NativeAllocation => (5, 0),
            RegisteredSiteKind::Entry => (6, 0),
            RegisteredSiteKind::EventCall(of) => (7, of.to_packed()),
        };
        PackedSite::new(bci, kind, more)
    }

    fn unpack_site(&self, site: u32, packed: PackedSite) -> Option<RegisteredSite> {
        let method = self.method_of_site.get(site);
        let of = || {
            let class = self.class(self.method(method)?.class)?;
            let at = class.first_allocated + packed.payload();
            self.allocated_names.get(at as usize).copied()
        };
        let what = match packed.kind() {
            0 => RegisteredSiteKind::Call,
            1 => RegisteredSiteKind::New(of()?),
            2 => RegisteredSiteKind::Array(of()?),
            3 => RegisteredSiteKind::Native,
            4 => RegisteredSiteKind::Current,
            5 => RegisteredSiteKind::NativeAllocation,
            6 => RegisteredSiteKind::Entry,
            7 => RegisteredSiteKind::EventCall(EventCall::from_packed(packed.payload())),
            _ => return self.unpacked_sites.get(&site).copied(),
        };
        Some(RegisteredSite {
            method,
            position: SitePosition(packed.bci().into()),
            kind: what,
        })
    }

    /// Adds a site that is not packed. `None`: no ids are left.
    fn add_unpacked_site(&mut self, site: RegisteredSite) -> Option<u32> {
        if !self.has_room_for_sites(1) {
            return None;
        }
        self.sites.push(PackedSite::UNPACKED)?;
        let id = self.sites.len() as u32;
        self.unpacked_sites.insert(id, site);
        self.set_last_site_method(site.method);
        Some(id)
    }

    /// Sets the method of the last site.
    fn set_last_site_method(&mut self, method: u32) {
        let site = self.sites.len() as u32;
        self.set_sites_method(site..site + 1, method);
    }

    fn set_sites_method(&mut self, sites: std::ops::Range<u32>, method: u32) {
        let rows = sites.start as usize..sites.end as usize;
        self.needed_sites.add_rows(size_of::<u32>(), rows);
        for site in sites {
            self.method_of_site.set(site, method);
        }
    }

    /// Sets the site at which callers count the allocation of an intrinsic.
    fn define_intrinsic_site(&mut self, index: usize, method: u32, bci: u16) {
        let allocates = INTRINSICS.get(index).map_or("", |of| of.allocates);
        let id = index as u32 + 1;
        if let (Some(name), Some(site)) = (
            self.texts.intern_text(allocates),
            self.unpacked_sites.get_mut(&id),
        ) {
            *site = RegisteredSite {
                method,
                position: SitePosition(bci.into()),
                kind: RegisteredSiteKind::Array(name),
            };
            self.method_of_site.set(id, method);
        }
    }

    /// Marks a method whose hooks could not be inserted. Its frames have no slots. If it is `watched`, it gets slots when it calls.
    pub fn mark_uninstrumented(&mut self, method: u32, watched: bool) {
        if self.removed_methods.contains(method) {
            return;
        }
        if let Some(info) = self.methods.get_mut(row_of_id(method)) {
            info.frame = FrameKind::Leaf;
            info.transparent |= !watched;
        }
    }

    /// The site of `method` at `line`; a new one if necessary.
    pub fn resolve_line_site(&mut self, method: u32, line: i32) -> Option<u32> {
        if let Some(&known) = self.line_sites.get(&(method, line)) {
            return Some(known);
        }
        let what = if line == NATIVE_LINE {
            RegisteredSiteKind::Native
        } else {
            RegisteredSiteKind::Call
        };
        let id = self.add_unpacked_site(RegisteredSite {
            method,
            position: SitePosition::from_line(line),
            kind: what,
        })?;
        self.line_sites.insert((method, line), id);
        Some(id)
    }

    /// The site of `method` at `line` that allocates the type `what`, if it exists.
    pub fn find_allocation_site(&self, method: u32, line: i32, what: &str) -> Option<u32> {
        let key = (method, line, self.find_name(what)?);
        self.allocation_sites.get(&key).copied()
    }

    /// The site of `method` at `line` that allocates the type `what`, a descriptor; a new one if necessary.
    pub fn resolve_allocation_site(&mut self, method: u32, line: i32, what: &str) -> Option<u32> {
        let key = (method, line, self.texts.intern_text(what)?);
        if let Some(&known) = self.allocation_sites.get(&key) {
            return Some(known);
        }
        while self.has_low_bits_conflict(method) {
            self.add_unpacked_site(RegisteredSite {
                method: 0,
                position: SitePosition::from_line(NO_LINE),
                kind: RegisteredSiteKind::Call,
            })?;
        }
        let id = self.add_unpacked_site(RegisteredSite {
            method,
            position: SitePosition::from_line(line),
            kind: match what.starts_with('[') {
                true => RegisteredSiteKind::Array(key.2),
                false => RegisteredSiteKind::New(key.2),
            },
        })?;
        self.allocation_sites.insert(key, id);
        Some(id)
    }

    /// A number for a class with this descriptor. `None`: there are too many.
    pub fn add_class_number(&mut self, descriptor: &str) -> Option<u32> {
        let name = self.texts.intern_text(descriptor)?;
        let id = u32::try_from(self.class_number_names.len())
            .ok()?
            .checked_add(1)?;
        i32::try_from(id).ok()?;
        self.class_number_names.push(name)?;
        *self.live_class_names.entry(name).or_default() += 1;
        self.removed_class_names.remove(&name);
        Some(id)
    }

    /// Removes a class number. If no other class has its name, the next sweep removes the sites of its objects.
    pub fn remove_class_number(&mut self, id: u32) {
        let Some(name) = self.class_number_names.get(row_of_id(id)).copied() else {
            return;
        };
        self.class_number_names
            .drop_rows(row_of_id(id)..row_of_id(id) + 1);
        if let Entry::Occupied(mut classes) = self.live_class_names.entry(name) {
            *classes.get_mut() -= 1;
            if *classes.get() == 0 {
                classes.remove();
                self.removed_class_names.insert(name);
            }
        }
    }

    /// The site for objects of class number `of`, created at `site` by code that does not name the class.
    pub fn resolve_typed_site(&mut self, site: u32, of: u32) -> Option<u32> {
        let info = self.site(site)?;
        let name = *self.class_number_names.get(row_of_id(of))?;
        let what = self.name_text(name).to_string();
        self.resolve_allocation_site(info.method, self.line_of_site(&info), &what)
    }

    /// A class by id. `None`: it was removed, or never existed.
    pub fn class(&self, id: u32) -> Option<&RegisteredClass> {
        (!self.removed_classes.contains(id))
            .then(|| self.classes.get(row_of_id(id)))
            .flatten()
    }

    /// Whether the next site would share its low bits with another site of `method`. A thread's index tells the sites of a method
    /// apart by these bits.
    fn has_low_bits_conflict(&self, method: u32) -> bool {
        let next = self.sites.len() as u32 + 1;
        let mut like = (1..next >> SITE_BITS).map(|high| next - (high << SITE_BITS));
        next >> SITE_BITS > 0
            && (self.method_of_site.get(next & ((1 << SITE_BITS) - 1)) == method
                || like.any(|site| self.method_of_site.get(site) == method))
    }

    /// The newest class of this name (`a/b/C`) in a loader.
    pub fn find_class(&self, loader: ClassLoaderId, name: &str) -> Option<&RegisteredClass> {
        self.class(self.find_class_id(loader, name)?)
    }

    /// The id of the newest class of this name (`a/b/C`) in a loader.
    pub fn find_class_id(&self, loader: ClassLoaderId, name: &str) -> Option<u32> {
        let name = self.find_name(name)?;
        self.classes_by_name.get(&loader)?.get(&name).copied()
    }

    /// A method by id. `None`: it was removed, or never existed.
    pub fn method(&self, id: u32) -> Option<&RegisteredMethod> {
        (!self.removed_methods.contains(id))
            .then(|| self.methods.get(row_of_id(id)))
            .flatten()
    }

    /// Whether two ids are versions of one method of one class: a redefinition came between, and older frames still run the old
    /// code.
    pub fn is_same_method(&self, one: u32, other: u32) -> bool {
        let of = |id| {
            let method = self.method(id)?;
            let class = self.class(method.class)?;
            Some((class.loader, class.name, method.name, method.descriptor))
        };
        one == other || of(one).is_some_and(|one| of(other) == Some(one))
    }

    /// The method that contains a site. 0: no such site.
    pub fn method_of_site(&self, site: SiteId) -> MethodId {
        MethodId(self.method_of_site.get(site.0))
    }

    /// A site by id. `None`: it was removed, or never existed.
    pub fn site(&self, id: u32) -> Option<RegisteredSite> {
        let packed = *self.sites.get(row_of_id(id))?;
        // Only unpacked sites may have no method.
        let is_gone =
            self.method_of_site.get(id) == 0 && packed.kind() != PackedSite::UNPACKED.kind();
        (!is_gone).then(|| self.unpack_site(id, packed)).flatten()
    }

    /// The id of a class's method by name and descriptor.
    pub fn find_method(
        &self,
        class: &RegisteredClass,
        name: &str,
        descriptor: &str,
    ) -> Option<u32> {
        let (name, descriptor) = (self.find_name(name)?, self.find_name(descriptor)?);
        let mut ids = class.first_method..class.first_method + class.methods;
        ids.find(|&id| {
            self.method(id)
                .is_some_and(|m| m.name == name && m.descriptor == descriptor)
        })
    }

    /// The method's line table: bci and line, in ascending order of bci.
    pub fn line_table(&self, method: &RegisteredMethod) -> &[(u16, u16)] {
        let (from, to) = method.lines;
        self.lines
            .as_slice()
            .get(from as usize..to as usize)
            .unwrap_or(&[])
    }

    /// The line that a stack trace shows for a site.
    pub fn line_of_site(&self, site: &RegisteredSite) -> i32 {
        if let Some(line) = site.line() {
            return line;
        }
        let Some(method) = self.method(site.method) else {
            return NO_LINE;
        };
        let lines = self.line_table(method);
        let before = lines.partition_point(|&(bci, _)| i32::from(bci) <= site.bci());
        let found = before.checked_sub(1).and_then(|at| lines.get(at));
        found.map_or(NO_LINE, |&(_, line)| line.into())
    }

    /// Loader and name of the class that a `new` site allocates. `None` after the first call for the site.
    pub fn start_measuring_class(&mut self, site: u32) -> Option<(ClassLoaderId, String)> {
        let found = self.allocated_class(site)?;
        self.measured_sites.insert(site).then_some(found)
    }

    /// Like `start_measuring_class`, for a site that was measured before.
    pub fn measured_class(&self, site: u32) -> Option<(ClassLoaderId, String)> {
        self.measured_sites
            .contains(&site)
            .then(|| self.allocated_class(site))?
    }

    fn allocated_class(&self, site: u32) -> Option<(ClassLoaderId, String)> {
        let info = self.site(site)?;
        let RegisteredSiteKind::New(of) = info.kind else {
            return None;
        };
        // A site made for a type counts bytes itself.
        if info.line().is_some() {
            return None;
        }
        let name = self.name_text(of).strip_prefix('L')?.strip_suffix(';')?;
        let class = self.class(self.method(info.method)?.class)?;
        Some((class.loader, name.to_string()))
    }
}

/// Packages of which every loader sees the classes of the boot loader, or of a loader of the JDK.
const JAVA: &str = "java/";

/// Whether methods of the class may be untracked.
pub fn may_be_untracked(class: &str) -> bool {
    class.starts_with(JAVA)
}

/// Whether every class that refers to this name refers to this class.
fn is_jdk_class(loader: ClassLoaderId, class: &str) -> bool {
    loader == ClassLoaderId::BOOT && class.starts_with(JAVA)
}

#[cfg(test)]
impl Default for CodeRegistry {
    fn default() -> CodeRegistry {
        CodeRegistry::new(MethodOfSite::new().unwrap())
    }
}

fn row_of_id(id: u32) -> usize {
    (id as usize).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_has_a_bci_or_a_line() {
        let mut book = CodeRegistry::default();
        let lines = [NATIVE_LINE, NO_LINE, 0, 1, 65_535];
        for (method, line) in (1..).zip(lines) {
            let id = book.resolve_line_site(method, line).unwrap();
            let site = book.site(id).unwrap();
            assert_eq!((site.bci(), site.line()), (-1, Some(line)));
            assert_eq!(book.line_of_site(&site), line);
            assert_eq!(book.resolve_line_site(method, line), Some(id));
            assert_eq!(book.method_of_site.get(id), method);
        }
        let places = [0, 1, 7, u16::MAX].map(|bci| lucce_instrument::HookPlace {
            bci,
            kind: HookSiteKind::Call,
        });
        let mut shape = MethodInstrumentation::without_hooks(false);
        shape.places = places.to_vec();
        shape.lines = vec![(1, 20), (8, 10)];
        let ids = book.add_class(&ClassDefinition {
            name: "a/B",
            source: None,
            loader: ClassLoaderId::BOOT,
            methods: &[("f", "()V", 0)],
            instrumentations: &[shape],
        });
        let first = ids.unwrap().first_site;
        let shown = |n| {
            let site = book.site(first + n).unwrap();
            (site.bci(), site.line(), book.line_of_site(&site))
        };
        assert_eq!(shown(0), (0, None, NO_LINE));
        assert_eq!(shown(1), (1, None, 20));
        assert_eq!(shown(2), (7, None, 20));
        assert_eq!(shown(3), (65_535, None, 10));
    }

    #[test]
    fn a_class_that_is_changed_has_its_methods_still() {
        let mut book = CodeRegistry::default();
        let shapes = [
            MethodInstrumentation::without_hooks(false),
            MethodInstrumentation::without_hooks(false),
        ];
        let mut add = |loader, name| {
            let methods = [("f", "()V", 0), ("f", "(I)V", 0)];
            let class = ClassDefinition {
                name,
                source: None,
                loader,
                methods: &methods,
                instrumentations: &shapes,
            };
            book.add_class(&class).unwrap().first_method
        };
        let [before, after] = [0; 2].map(|_| add(ClassLoaderId::BOOT, "a/B"));
        let others = [
            add(ClassLoaderId(1), "a/B"),
            add(ClassLoaderId::BOOT, "a/C"),
            before + 1,
        ];
        assert_ne!(before, after);
        assert!(book.is_same_method(before, after) && book.is_same_method(before + 1, after + 1));
        for other in others {
            assert!(!book.is_same_method(other, after), "{other}");
        }
        // There is no such class.
        assert!(!book.is_same_method(100, 101));
    }

    #[test]
    fn a_site_says_what_happens_there() {
        let marked = |mark| lucce_instrument::HookPlace { bci: 3, kind: mark };
        // More than a packed site can distinguish.
        let kinds = PackedSite::PAYLOADS + 5;
        let mut shapes = Vec::new();
        for part in 0..2 {
            let mut shape = MethodInstrumentation::without_hooks(false);
            shape.places = (0..kinds)
                .map(|n| marked(HookSiteKind::New(format!("La/C{n};"))))
                .collect();
            shape
                .places
                .push(marked(HookSiteKind::Array(format!("[I{part}"))));
            shape
                .places
                .push(marked(HookSiteKind::EventCall(EventCall::from_packed(
                    8 << 8 | 200,
                ))));
            shape
                .places
                .push(marked(HookSiteKind::EventCall(EventCall::from_packed(
                    7 << 8 | 1,
                ))));
            shapes.push(shape);
        }
        let mut book = CodeRegistry::default();
        let class = ClassDefinition {
            name: "a/B",
            source: None,
            loader: ClassLoaderId::BOOT,
            methods: &[("f", "()V", 0), ("g", "()V", 0)],
            instrumentations: &shapes,
        };
        // The second class has descriptors of its own.
        for _ in 0..2 {
            let ids = book.add_class(&class).unwrap();
            let mut site = ids.first_site;
            for part in 0..2 {
                let mut next = || {
                    let info = book.site(site).unwrap();
                    assert_eq!((info.method, info.bci()), (ids.first_method + part, 3));
                    assert_eq!(book.method_of_site.get(site), info.method);
                    site += 1;
                    info.kind
                };
                for n in 0..kinds {
                    let name = book.find_name(&format!("La/C{n};")).unwrap();
                    assert_eq!(next(), RegisteredSiteKind::New(name));
                }
                let array = book.find_name(&format!("[I{part}")).unwrap();
                assert_eq!(next(), RegisteredSiteKind::Array(array));
                let packed = |what| match what {
                    RegisteredSiteKind::EventCall(of) => of.to_packed(),
                    _ => 0,
                };
                assert_eq!((packed(next()), packed(next())), (8 << 8 | 200, 7 << 8 | 1));
            }
            assert!(book.site(site).is_none());
        }
        let reserved = book.site(1).unwrap();
        assert_eq!(
            (reserved.method, reserved.kind),
            (0, RegisteredSiteKind::Call)
        );
    }

    #[test]
    fn what_is_made_of_a_class_that_is_gone_goes() {
        let mut book = CodeRegistry::default();
        let ids = book.add_class(&ClassDefinition {
            name: "a/B",
            source: None,
            loader: ClassLoaderId::BOOT,
            methods: &[("f", "()V", 0)],
            instrumentations: &[MethodInstrumentation::without_hooks(false)],
        });
        let site = book
            .resolve_line_site(ids.unwrap().first_method, 7)
            .unwrap();
        let other = book.add_class_number("La/Other;").unwrap();
        let made = book.resolve_typed_site(site, other).unwrap();
        // Two classes with one name; array classes are separate classes.
        let twice = [0, 1].map(|_| book.add_class_number("La/Twice;").unwrap());
        let twice_made = book.resolve_typed_site(site, twice[0]).unwrap();
        assert_eq!(book.resolve_typed_site(site, twice[1]), Some(twice_made));
        book.remove_class_number(twice[0]);
        book.sweep_indexes();
        assert_eq!(book.resolve_typed_site(site, twice[1]), Some(twice_made));
        let most = 1 << 14;
        let mut numbers = Vec::new();
        for n in 0..most {
            let number = book.add_class_number(&format!("[La/Made{n};")).unwrap();
            numbers.push((number, book.resolve_typed_site(site, number).unwrap()));
        }
        for (number, _) in &numbers[1..] {
            book.remove_class_number(*number);
            assert!(!book.is_sweep_due());
        }
        book.remove_class_number(numbers[0].0);
        book.remove_class_number(twice[1]);
        assert!(book.is_sweep_due());
        // One class returns in time.
        let again = book.add_class_number("[La/Made5;").unwrap();
        book.sweep_indexes();
        assert!(!book.is_sweep_due());
        for (n, (_, typed)) in numbers.iter().enumerate() {
            assert_eq!(book.site(*typed).is_some(), n == 5);
            assert_eq!(book.method_of_site.get(*typed) == 0, n != 5);
        }
        assert!(book.site(twice_made).is_none() && book.find_name("La/Twice;").is_none());
        assert_eq!(book.resolve_typed_site(site, again), Some(numbers[5].1));
        assert_eq!(book.resolve_typed_site(site, other), Some(made));
        assert_eq!(
            (book.allocation_sites.len(), book.unpacked_sites.len()),
            (2, INTRINSICS.len() + 3)
        );
        // A new class with the name has a site of its own.
        let number = book.add_class_number("La/Twice;").unwrap();
        let new = book.resolve_typed_site(site, number).unwrap();
        assert!(new > twice_made && book.site(new).is_some());
    }

    #[test]
    fn only_methods_of_the_jdk_are_quiet_for_all() {
        let mut book = CodeRegistry::default();
        let mut quiet = MethodInstrumentation::without_hooks(false);
        quiet.untracked = true;
        let shapes = [quiet, MethodInstrumentation::without_hooks(false)];
        let classes = [
            ("java/util/A", ClassLoaderId::BOOT),
            ("java/util/B", ClassLoaderId(7)),
            ("org/C", ClassLoaderId::BOOT),
        ];
        for (name, loader) in classes {
            let ids = book.add_class(&ClassDefinition {
                name,
                source: None,
                loader,
                methods: &[("f", "()V", 0), ("g", "()V", 0)],
                instrumentations: &shapes,
            });
            assert!(ids.is_some());
        }
        assert!(book.is_untracked("java/util/A", "f", "()V"));
        for (class, method, descriptor) in [
            ("java/util/A", "g", "()V"),
            ("java/util/A", "f", "()I"),
            // Not of the boot loader: a class that refers to the name may mean another class.
            ("java/util/B", "f", "()V"),
            // Several classes of this name are possible.
            ("org/C", "f", "()V"),
            ("java/util/D", "f", "()V"),
        ] {
            assert!(
                !book.is_untracked(class, method, descriptor),
                "{class}.{method}{descriptor}"
            );
        }
    }
}
