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
//! Read this file first, then `sites`, `types`, `unloading`, `written_records`, `agent_log`, and `class_image` for the class
//! cache.

pub mod agent_log;
pub mod class_image;
mod code_sources;
pub mod file_state;
mod sites;
mod types;
mod unloading;
pub mod written_records;

use std::collections::{HashMap, HashSet};

use lucce_callgraph::{MethodId, SiteId};
use lucce_tracelog::CodeSourceId;
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_64;

use crate::memory::address_space::MethodOfSite;
use crate::memory::bit_set::BitSet;
use crate::memory::grow_only_array::{GrowOnlyArray, PageRowCounts};
use crate::memory::text_table::TextTable;
use lucce_instrument::{FrameKind, HookSiteKind, INTRINSICS, MethodInstrumentation};

use self::code_sources::CodeSources;

pub use crate::memory::text_table::InternedText;
pub use sites::{NATIVE_LINE, NO_LINE, RegisteredSite, RegisteredSiteKind};

use sites::{PackedSite, SitePosition};

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

impl RegisteredMethod {
    /// Whether its frames have a slot.
    pub fn has_slot(&self) -> bool {
        !matches!(
            self.frame,
            FrameKind::Leaf
                | FrameKind::Hidden
                | FrameKind::HiddenVmEntered
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
        let mut registry = CodeRegistry {
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
            registry.add_unpacked_site(RegisteredSite {
                method: 0,
                position: SitePosition::from_line(NO_LINE),
                kind: RegisteredSiteKind::Call,
            });
        }
        registry
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
            .flat_map(|instrumentation| &instrumentation.places);
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
        for (((name, descriptor), (.., access)), instrumentation) in
            methods.zip(class.instrumentations)
        {
            let from = self.lines.len() as u32;
            self.lines.extend(&instrumentation.lines)?;
            self.methods.push(RegisteredMethod {
                class: index,
                name: *name,
                descriptor: *descriptor,
                access: *access,
                frame: instrumentation.frame,
                transparent: instrumentation.transparent,
                lines: (from, self.lines.len() as u32),
            })?;
            self.add_sites(instrumentation, &mut allocated)?;
            if instrumentation.untracked && is_jdk_class(class.loader, class.name) {
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
    fn check_room(&self, methods: usize, instrumentations: &[MethodInstrumentation]) -> Option<()> {
        let places = || {
            instrumentations
                .iter()
                .flat_map(|instrumentation| &instrumentation.places)
        };
        let lines: usize = instrumentations
            .iter()
            .map(|instrumentation| instrumentation.lines.len())
            .sum();
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

    /// A class by id. `None`: it was removed, or never existed.
    pub fn class(&self, id: u32) -> Option<&RegisteredClass> {
        (!self.removed_classes.contains(id))
            .then(|| self.classes.get(row_of_id(id)))
            .flatten()
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
mod registry_tests {
    use super::*;

    #[test]
    fn a_class_that_is_changed_has_its_methods_still() {
        let mut registry = CodeRegistry::default();
        let instrumentations = [
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
                instrumentations: &instrumentations,
            };
            registry.add_class(&class).unwrap().first_method
        };
        let [before, after] = [0; 2].map(|_| add(ClassLoaderId::BOOT, "a/B"));
        let others = [
            add(ClassLoaderId(1), "a/B"),
            add(ClassLoaderId::BOOT, "a/C"),
            before + 1,
        ];
        assert_ne!(before, after);
        assert!(
            registry.is_same_method(before, after)
                && registry.is_same_method(before + 1, after + 1)
        );
        for other in others {
            assert!(!registry.is_same_method(other, after), "{other}");
        }
        // There is no such class.
        assert!(!registry.is_same_method(100, 101));
    }

    #[test]
    fn only_methods_of_the_jdk_are_untracked() {
        let mut registry = CodeRegistry::default();
        let mut untracked = MethodInstrumentation::without_hooks(false);
        untracked.untracked = true;
        let instrumentations = [untracked, MethodInstrumentation::without_hooks(false)];
        let classes = [
            ("java/util/A", ClassLoaderId::BOOT),
            ("java/util/B", ClassLoaderId(7)),
            ("org/C", ClassLoaderId::BOOT),
        ];
        for (name, loader) in classes {
            let ids = registry.add_class(&ClassDefinition {
                name,
                source: None,
                loader,
                methods: &[("f", "()V", 0), ("g", "()V", 0)],
                instrumentations: &instrumentations,
            });
            assert!(ids.is_some());
        }
        assert!(registry.is_untracked("java/util/A", "f", "()V"));
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
                !registry.is_untracked(class, method, descriptor),
                "{class}.{method}{descriptor}"
            );
        }
    }
}
