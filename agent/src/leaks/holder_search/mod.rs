//! The holders of followed objects: the shortest paths from roots to some of them, with the names of fields.
//!
//! ```text
//! select objects ─► tags ─► HeapWalker: walks, HeapSearch ─► optional collection ─► HolderPathNamer ─► HolderSearchResult
//! ```
//!
//! `search_with_tools` walks in a JVMTI environment of its own, so no other tags interfere. The calling thread has no reference to
//! any object while the VM walks: the reference would be a root.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_callgraph::ContextId;
use lucce_control::HolderSearchOptions;
use lucce_jvmti::heap::{self, ReferenceKind};
use lucce_jvmti::{JniEnvironment, JvmError, Jvmti, VmHandle};

use crate::leaks::chain_runs::ChainField;
use crate::leaks::heap_search::{
    ClassRole, HeapSearch, HoldStrength, HolderPathStep, MAX_SIDE_LOADERS, ReferentField,
    SIDE_LOADER, TargetPath,
};
use crate::leaks::object_selection::SelectionLimits;
use crate::leaks::{LeakDetector, LiveObjectsOfType};

/// Maximum number of targets of one search.
const LIMITS: SelectionLimits = SelectionLimits {
    per_type: 8,
    total: 16,
};
/// No walk begins later, so that clients get an answer.
const MAX_DURATION: Duration = Duration::from_secs(60);
/// Maximum length of a name in the result.
const MAX_NAME_LENGTH: usize = 300;
/// `ACC_STATIC` does not matter: static and other fields share one numbering.
const REFERENT: &str = "referent";
/// Maximum number of classes added to loaders on paths. The walks find others.
const MAX_CLASSES: usize = 1 << 14;
/// The first tag of a class whose objects form a chain; the others are below.
const CHAIN_CLASS: i64 = -(1 << 40);
/// Minimum number of equal links that are shown as one.
const EQUAL_LINKS: u32 = 4;

/// The result of a search.
pub struct HolderSearchResult {
    pub types: Vec<HoldersOfType>,
    /// The VM's pause of each walk.
    pub pauses: Vec<Duration>,
    /// Duration of the requested collection.
    pub collection: Option<Duration>,
    /// Number of references that the last walk reported.
    pub references: u64,
    /// A shorter path may be missing.
    pub is_truncated: bool,
    /// The allowed walks or the time ended before the search was complete.
    pub is_incomplete: bool,
    /// The limit of the VM's pauses ended the search.
    pub is_out_of_budget: bool,
}

/// The followed objects of one type.
pub struct HoldersOfType {
    /// The type's descriptor.
    pub descriptor: Box<str>,
    pub followed: usize,
    pub alive: usize,
    /// Number of targets of the search.
    pub looked_for: usize,
    /// Paths to held objects, each from the root to the object.
    pub paths: Vec<Vec<HolderPathLink>>,
    /// Number of paths with an object that died or changed between walks.
    pub changed: usize,
    /// Paths of incomplete searches, each from the farthest known object.
    pub unfinished: Vec<Vec<HolderPathLink>>,
    /// Number of objects without a path that a collection has taken.
    pub collected: usize,
    /// Number of objects without a path that survived a collection after the last walk.
    pub unreported: usize,
}

/// One link of a path: a reference from the previous object, or from a root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HolderPathLink {
    pub by: &'static str,
    /// Descriptor of the class with the field or method, or of the class whose loader is held.
    pub class: Option<String>,
    /// Name of the field or method.
    pub name: Option<String>,
    /// Index in an array.
    pub index: Option<i32>,
    pub line: Option<i32>,
    pub thread: Option<String>,
    pub strength: HoldStrength,
    /// Number of consecutive equal references, from one object of the type to the next.
    pub times: u32,
    /// Descriptor of the referenced object's type.
    pub target_type: String,
    /// If that object is a `java.lang.Class`: the descriptor of that class.
    pub named_class: Option<String>,
}

/// The targets of a search without walks, and the size of the heap.
pub struct HolderSearchPreview {
    pub types: Vec<HoldersOfType>,
    pub heap_bytes: Option<u64>,
}

/// Previews a search without walking.
pub fn preview_search(
    leaks: &LeakDetector,
    env: JniEnvironment,
    contexts: &[ContextId],
) -> HolderSearchPreview {
    let types = leaks.select_objects(env, (contexts, None), SelectionLimits::NONE);
    HolderSearchPreview {
        types: types.into_iter().map(HoldersOfType::from).collect(),
        heap_bytes: env.heap_bytes(),
    }
}

impl From<LiveObjectsOfType> for HoldersOfType {
    fn from(alive: LiveObjectsOfType) -> HoldersOfType {
        HoldersOfType {
            descriptor: alive.descriptor,
            followed: alive.followed,
            alive: alive.alive,
            looked_for: alive.objects.len(),
            paths: Vec::new(),
            changed: 0,
            unfinished: Vec::new(),
            collected: 0,
            unreported: 0,
        }
    }
}

/// Searches with a limited number of walks. `lines`: the agent's JVMTI environment, which can read line numbers.
///
/// # Errors
/// The VM refuses to walk.
pub fn find_holders(
    (leaks, lines): (&LeakDetector, Jvmti),
    (vm, env): (VmHandle, JniEnvironment),
    (contexts, walks): (&[ContextId], &HolderSearchOptions),
) -> Result<HolderSearchResult, JvmError> {
    let tools = vm.new_tool_environment()?;
    let found = search_with_tools((leaks, lines), (tools, env), (contexts, walks));
    // Frees its tags.
    tools.dispose_environment();
    found
}

fn search_with_tools(
    (leaks, lines): (&LeakDetector, Jvmti),
    (tools, env): (Jvmti, JniEnvironment),
    (contexts, walks): (&[ContextId], &HolderSearchOptions),
) -> Result<HolderSearchResult, JvmError> {
    let chosen = leaks.select_objects(env, (contexts, walks.type_descriptor.as_deref()), LIMITS);
    let objects = chosen.iter().flat_map(|of_type| &of_type.objects);
    let mut looked_for = 0;
    for (tag, object) in (1..).zip(objects) {
        tools.set_tag(*object, tag)?;
        env.delete_local(*object);
        looked_for += 1;
    }
    let mut walker = HeapWalker::new(tools, env, looked_for)?;
    walker.run_walks(walks)?;
    let mut paths = walker.search.target_paths();
    let collection = match walks.collect && paths.contains(&TargetPath::Unreached) {
        true => collect_heap(leaks, tools)?,
        false => None,
    };
    let alive = find_live_targets(tools, env, looked_for);
    let mut namer = HolderPathNamer::new(tools, lines, env);
    // In the order in which objects got their tags.
    let mut paths = (1..).zip(paths.drain(..));
    let named = |of_type: LiveObjectsOfType| {
        let mut of_type = HoldersOfType::from(of_type);
        for (tag, path) in paths.by_ref().take(of_type.looked_for) {
            let is_alive = alive.contains(&tag);
            match path {
                TargetPath::Held(steps) => match namer.name_path(&steps) {
                    Some(way) => of_type.paths.push(way),
                    None => of_type.changed += 1,
                },
                TargetPath::Unfinished(steps) => match namer.name_path(&steps) {
                    Some(way) if is_alive => of_type.unfinished.push(way),
                    _ => of_type.changed += 1,
                },
                TargetPath::Unreached if !is_alive => of_type.collected += 1,
                TargetPath::Unreached if collection.is_some() => of_type.unreported += 1,
                TargetPath::Unreached => {}
            }
        }
        of_type
    };
    Ok(HolderSearchResult {
        types: chosen.into_iter().map(named).collect(),
        pauses: walker.pauses,
        collection,
        references: walker.search.reference_count(),
        is_truncated: walker.search.is_truncated(),
        is_incomplete: walker.is_incomplete,
        is_out_of_budget: walker.is_out_of_budget,
    })
}

/// Requests a collection. `None`: the VM did not collect; for example, it has no collector.
fn collect_heap(leaks: &LeakDetector, tools: Jvmti) -> Result<Option<Duration>, JvmError> {
    let (before, began) = (leaks.count_collections(), Instant::now());
    tools.collect_heap()?;
    Ok((leaks.count_collections() > before).then(|| began.elapsed()))
}

/// Tags of the targets that are alive.
fn find_live_targets(tools: Jvmti, env: JniEnvironment, targets: u32) -> Vec<i64> {
    let tags: Vec<i64> = (1..=i64::from(targets)).collect();
    let alive = tools.objects_with_tags(&tags).into_iter();
    let alive = alive.map(|(object, tag)| {
        env.delete_local(object);
        tag
    });
    alive.collect()
}

/// Walks through the heap for a search, and adds references between two walks that no walk reports.
struct HeapWalker {
    tools: Jvmti,
    env: JniEnvironment,
    search: HeapSearch,
    pauses: Vec<Duration>,
    is_incomplete: bool,
    is_out_of_budget: bool,
    /// Number of classes added to the search.
    classes: usize,
    /// Number of walks that followed each field.
    chains: HashMap<ChainField, u32>,
    chain_classes: i64,
    /// Tags of the loaders at which side walks begin.
    side_loaders: Vec<i64>,
    has_side_walks: bool,
}

impl HeapWalker {
    fn new(tools: Jvmti, env: JniEnvironment, targets: u32) -> Result<HeapWalker, JvmError> {
        let roles = tag_class_roles(tools, env)?;
        let mut walker = HeapWalker {
            tools,
            env,
            search: HeapSearch::new(targets, roles),
            pauses: Vec::new(),
            is_incomplete: false,
            is_out_of_budget: false,
            classes: 0,
            chains: HashMap::new(),
            chain_classes: 0,
            side_loaders: Vec::new(),
            has_side_walks: false,
        };
        walker.set_target_roles(targets);
        walker.resolve_classes();
        Ok(walker)
    }

    fn run_walks(&mut self, walks: &HolderSearchOptions) -> Result<(), JvmError> {
        let began = Instant::now();
        let mut left = walks.budget;
        while self.needs_another_walk() {
            self.is_out_of_budget = left.is_some_and(|left| left.is_zero());
            self.is_incomplete = self.is_out_of_budget
                || self.pauses.len() as u32 >= walks.max_walks
                || began.elapsed() >= MAX_DURATION;
            if self.is_incomplete {
                break;
            }
            self.follow_chains();
            let end = left.map(|left| Instant::now() + left);
            self.search.begin_walk(end);
            let began = self.pauses.len();
            self.walk_from_loaders()?;
            self.walk_once(None)?;
            let pauses = self.pauses.iter().skip(began).sum::<Duration>();
            left = left.map(|left| left.saturating_sub(pauses));
            self.search.end_walk();
            self.resolve_classes();
        }
        self.is_out_of_budget |= self.search.is_stopped();
        self.is_incomplete |= self.is_out_of_budget;
        Ok(())
    }

    /// Whether another walk is needed. As a last resort, walks begin at loaders that no walk has reached.
    fn needs_another_walk(&mut self) -> bool {
        if self.search.needs_another_walk() {
            return true;
        }
        if self.has_side_walks || !self.search.has_unreached() {
            return false;
        }
        self.has_side_walks = true;
        self.side_loaders = self.tag_side_loaders();
        if self.side_loaders.is_empty() {
            return false;
        }
        self.search.reopen_unreached();
        true
    }

    fn walk_once(&mut self, from: Option<jobject>) -> Result<(), JvmError> {
        let (search, tools) = (&mut self.search, self.tools);
        let before = Instant::now();
        let walked = match from {
            None => {
                tools.follow_references(None, &mut |reference| search.visit_reference(reference))
            }
            from => tools.follow_references(from, &mut |reference| {
                search.visit_side_reference(reference)
            }),
        };
        self.pauses.push(before.elapsed());
        walked
    }

    fn walk_from_loaders(&mut self) -> Result<(), JvmError> {
        for (loader, _) in self.tools.objects_with_tags(&self.side_loaders) {
            let walked = self.walk_once(Some(loader));
            self.env.delete_local(loader);
            walked?;
        }
        Ok(())
    }

    /// Tags loaders that no walk has reached: those have no tags yet.
    fn tag_side_loaders(&self) -> Vec<i64> {
        let (env, tools) = (self.env, self.tools);
        let mut tags = Vec::new();
        for class in tools.loaded_classes() {
            let loader = tools.class_loader(class).filter(|loader| !loader.is_null());
            if let Some(loader) = loader {
                let tag = SIDE_LOADER - tags.len() as i64;
                if tools.get_tag(loader) == Ok(0)
                    && (tags.len() as i64) < MAX_SIDE_LOADERS
                    && tools.set_tag(loader, tag).is_ok()
                {
                    tags.push(tag);
                }
                env.delete_local(loader);
            }
            env.delete_local(class);
        }
        tags
    }

    /// Sets the roles of targets that are classes or class loaders themselves.
    fn set_target_roles(&mut self, targets: u32) {
        let env = self.env;
        let kinds = [c"java/lang/Class", c"java/lang/ClassLoader"].map(|name| env.find_class(name));
        let tags: Vec<i64> = (1..=i64::from(targets)).collect();
        for (object, tag) in self.tools.objects_with_tags(&tags) {
            let class = env.class_of(object);
            let [is_class, is_loader] =
                kinds.map(|kind| kind.is_some_and(|kind| env.is_assignable(class, kind)));
            if is_class {
                self.search.set_class(tag);
            } else if is_loader {
                self.search.set_loader(tag);
            }
            env.delete_local(class);
            env.delete_local(object);
        }
        for kind in kinds.into_iter().flatten() {
            env.delete_local(kind);
        }
    }

    /// Adds the loaders of classes that the last walk has found, and the classes of such loaders.
    fn resolve_classes(&mut self) {
        let (env, tools) = (self.env, self.tools);
        let (classes, loaders) = self.search.unresolved_classes();
        if classes.is_empty() && loaders.is_empty() {
            return;
        }
        let system = env.system_loaders();
        let is_system = |loader: jobject| {
            loader.is_null() || system.iter().any(|known| env.is_same(*known, loader))
        };
        for (class, tag) in tools.objects_with_tags(&classes) {
            if let Some(loader) = tools.class_loader(class) {
                match is_system(loader) {
                    true => self.search.set_system_class(tag),
                    false => self.add_loader(class, tag, loader),
                }
                env.delete_local(loader);
            }
            self.search.set_resolved(tag);
            env.delete_local(class);
        }
        let (_, loaders) = self.search.unresolved_classes();
        let mut wanted = Vec::new();
        for (loader, tag) in tools.objects_with_tags(&loaders) {
            if !is_system(loader) {
                wanted.push(tag);
            }
            self.search.set_resolved(tag);
            env.delete_local(loader);
        }
        for loader in system {
            env.delete_local(loader);
        }
        if !wanted.is_empty() {
            self.add_classes(&wanted);
        }
    }

    fn add_loader(&mut self, class: jclass, tag: i64, loader: jobject) {
        // A hidden class may be unloaded before its loader.
        let name = self.tools.class_signature(class).unwrap_or_default();
        let known = self.tools.get_tag(loader);
        if let (false, Ok(known)) = (name.contains('.'), known)
            && let Some(new) = self.search.add_loader(tag, known)
            && new != known
        {
            // Without the tag the loader is on no path.
            let _ = self.tools.set_tag(loader, new);
        }
    }

    /// Adds all classes of these loaders, given by their tags.
    fn add_classes(&mut self, loaders: &[i64]) {
        let (env, tools) = (self.env, self.tools);
        for class in tools.loaded_classes() {
            let loader = tools.class_loader(class).filter(|loader| !loader.is_null());
            let tag = loader.and_then(|loader| tools.get_tag(loader).ok());
            if let Some(loader) = tag.filter(|tag| loaders.contains(tag))
                && self.classes < MAX_CLASSES
                && let Ok(known) = tools.get_tag(class)
                && let Some(new) = self.search.add_class(loader, known)
            {
                self.classes += 1;
                if new != known {
                    // Without the tag the class is on no path.
                    let _ = tools.set_tag(class, new);
                }
            }
            env.delete_local(loader.unwrap_or(std::ptr::null_mut()));
            env.delete_local(class);
        }
    }

    /// For each class, the next walk follows the linking field that was followed least.
    fn follow_chains(&mut self) {
        let ends = self.search.chain_ends();
        let mut chosen: HashMap<i64, (u32, ChainField)> = HashMap::new();
        let tags: Vec<i64> = ends.iter().map(|(tag, _)| *tag).collect();
        for (object, tag) in self.tools.objects_with_tags(&tags) {
            let class = self.env.class_of(object);
            let class_tag = self.chain_class_tag(class);
            for (_, field) in ends.iter().filter(|(end, _)| *end == tag) {
                let chain = ChainField {
                    class_tag,
                    field: *field,
                };
                let times = self.chains.get(&chain).copied().unwrap_or(0);
                let best = chosen.entry(class_tag).or_insert((times, chain));
                if times < best.0 {
                    *best = (times, chain);
                }
            }
            self.env.delete_local(class);
            self.env.delete_local(object);
        }
        let chosen: Vec<_> = chosen.into_values().map(|(_, chain)| chain).collect();
        let chosen: Vec<_> = chosen.into_iter().filter(|of| of.class_tag != 0).collect();
        for chain in &chosen {
            *self.chains.entry(*chain).or_default() += 1;
        }
        self.search.follow_chains(chosen);
    }

    /// 0: the VM refuses to tag the class.
    fn chain_class_tag(&mut self, class: jclass) -> i64 {
        match self.tools.get_tag(class) {
            Ok(0) => {
                let tag = CHAIN_CLASS - self.chain_classes;
                self.chain_classes += 1;
                self.tools.set_tag(class, tag).map_or(0, |()| tag)
            }
            Ok(known) => known,
            Err(_) => 0,
        }
    }
}

/// Tags the classes of references, whose referents are held differently from fields, and of class loaders.
fn tag_class_roles(tools: Jvmti, env: JniEnvironment) -> Result<Vec<ClassRole>, JvmError> {
    let kinds = [
        (c"java/lang/ref/WeakReference", None),
        (c"java/lang/ref/PhantomReference", None),
        (c"java/lang/ref/SoftReference", Some(HoldStrength::Soft)),
        (
            c"java/lang/ref/FinalReference",
            Some(HoldStrength::Finalizer),
        ),
    ];
    let kinds = kinds.map(|(name, strength)| (env.find_class(name), strength));
    let loader = env.find_class(c"java/lang/ClassLoader");
    let mut roles = Vec::new();
    for class in tools.loaded_classes() {
        let is_a = |kind: Option<jclass>| kind.is_some_and(|kind| env.is_assignable(class, kind));
        let kind = kinds.iter().find(|(kind, _)| is_a(*kind));
        let role = match kind {
            Some((_, strength)) => {
                let number = ClassFields::from_class(tools, env, class).find_number(REFERENT);
                number.map(|number| {
                    ClassRole::Reference(ReferentField {
                        number,
                        strength: *strength,
                    })
                })
            }
            None => is_a(loader).then_some(ClassRole::Loader),
        };
        if let Some(role) = role {
            roles.push(role);
            tools.set_tag(class, -(roles.len() as i64))?;
        }
        env.delete_local(class);
    }
    for kind in kinds.into_iter().map(|(kind, _)| kind).chain([loader]) {
        env.delete_local(kind.unwrap_or(std::ptr::null_mut()));
    }
    Ok(roles)
}

/// The fields of a class, as heap walks number them: superclasses' fields come first. The fields of all interfaces take the
/// lowest numbers (JVMTI, `jvmtiHeapReferenceInfoField`).
struct ClassFields {
    first: i32,
    /// The declaring class and the name of each field.
    fields: Vec<(String, String)>,
}

impl ClassFields {
    fn from_class(tools: Jvmti, env: JniEnvironment, class: jclass) -> ClassFields {
        let mut line = vec![env.new_local(class)];
        let is_interface = tools.is_interface(class);
        while let Some(last) = line.last().filter(|_| !is_interface) {
            let above = env.superclass(*last);
            if above.is_null() {
                break;
            }
            line.push(above);
        }
        let mut interfaces = Vec::new();
        for class in &line {
            add_interfaces((tools, env), *class, &mut interfaces);
        }
        let counts = interfaces.iter().map(|of| tools.class_fields(*of).len());
        let first = counts.sum::<usize>() as i32;
        let mut fields = Vec::new();
        for class in line.iter().rev() {
            let owner = tools.class_signature(*class).unwrap_or_default();
            for field in tools.class_fields(*class) {
                let name = tools.field_name(*class, field).unwrap_or_default();
                fields.push((owner.clone(), name));
            }
        }
        for class in line.into_iter().chain(interfaces) {
            env.delete_local(class);
        }
        ClassFields { first, fields }
    }

    fn find_number(&self, name: &str) -> Option<i32> {
        let at = self.fields.iter().position(|(_, of)| of == name)?;
        Some(self.first + at as i32)
    }

    fn get(&self, number: i32) -> Option<&(String, String)> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.fields.get(at)
    }
}

/// Adds the interfaces of a class and their superinterfaces, each once.
fn add_interfaces((tools, env): (Jvmti, JniEnvironment), class: jclass, all: &mut Vec<jclass>) {
    for interface in tools.class_interfaces(class) {
        if all.iter().any(|known| env.is_same(*known, interface)) {
            env.delete_local(interface);
            continue;
        }
        all.push(interface);
        add_interfaces((tools, env), interface, all);
    }
}

/// Names the links of paths.
struct HolderPathNamer {
    tools: Jvmti,
    lines: Jvmti,
    env: JniEnvironment,
    /// Names of threads by their ids.
    threads: Option<HashMap<i64, String>>,
}

impl HolderPathNamer {
    fn new(tools: Jvmti, lines: Jvmti, env: JniEnvironment) -> HolderPathNamer {
        HolderPathNamer {
            tools,
            lines,
            env,
            threads: None,
        }
    }

    /// `None`: an object of the path is gone.
    fn name_path(&mut self, steps: &[HolderPathStep]) -> Option<Vec<HolderPathLink>> {
        let all = steps
            .iter()
            .flat_map(|step| step.from.into_iter().chain([step.to]));
        let mut tags: Vec<i64> = all.collect();
        tags.sort_unstable();
        tags.dedup();
        let objects = self.tools.objects_with_tags(&tags);
        let object = |tag: i64| {
            let found = objects.iter().find(|(_, of)| *of == tag);
            found.map(|(object, _)| *object)
        };
        let links = steps.iter().map(|step| {
            let to = object(step.to)?;
            let from = match step.from {
                Some(tag) => Some(object(tag)?),
                None => None,
            };
            Some(self.name_link(step, from, to))
        });
        let links: Option<Vec<HolderPathLink>> = links.collect();
        for (object, _) in objects {
            self.env.delete_local(object);
        }
        links.map(merge_equal_links)
    }

    fn name_link(
        &mut self,
        step: &HolderPathStep,
        from: Option<jobject>,
        to: jobject,
    ) -> HolderPathLink {
        let mut link = HolderPathLink {
            by: reference_kind_name(step.by),
            class: None,
            name: None,
            index: None,
            line: None,
            thread: None,
            strength: step.strength,
            times: step.times,
            target_type: self.type_of_object(to),
            named_class: None,
        };
        if link.target_type == CLASS {
            link.named_class = self.tools.class_signature(to).map(clip_text);
        }
        match step.by {
            ReferenceKind::Field(number) => {
                if let Some(from) = from {
                    let class = self.env.class_of(from);
                    self.set_field_name(&mut link, class, number);
                    self.env.delete_local(class);
                }
            }
            ReferenceKind::Static(number) => {
                if let Some(class) = from {
                    self.set_field_name(&mut link, class, number);
                }
            }
            ReferenceKind::Element(index) => link.index = Some(index),
            ReferenceKind::Local {
                thread,
                method,
                location,
                ..
            } => {
                link.thread = self.thread_name(thread);
                self.set_method_name(&mut link, method, Some(location));
            }
            ReferenceKind::JniLocal { thread, method } => {
                link.thread = self.thread_name(thread);
                self.set_method_name(&mut link, method, None);
            }
            ReferenceKind::Thread => link.thread = self.read_thread_name(to),
            ReferenceKind::ClassLoader
            | ReferenceKind::ProtectionDomain
            | ReferenceKind::Signers
            | ReferenceKind::Interface
            | ReferenceKind::ConstantPool
            | ReferenceKind::Superclass => {
                let class = from.and_then(|class| self.tools.class_signature(class));
                link.class = class.map(clip_text);
            }
            _ => {}
        }
        link
    }

    fn type_of_object(&self, object: jobject) -> String {
        let class = self.env.class_of(object);
        let of = self.tools.class_signature(class).unwrap_or_default();
        self.env.delete_local(class);
        clip_text(of)
    }

    fn set_field_name(&self, link: &mut HolderPathLink, class: jclass, number: i32) {
        let fields = ClassFields::from_class(self.tools, self.env, class);
        if let Some((owner, name)) = fields.get(number) {
            link.class = Some(clip_text(owner.clone()));
            link.name = Some(clip_text(name.clone()));
        }
    }

    fn set_method_name(&self, link: &mut HolderPathLink, id: usize, location: Option<i64>) {
        if id == 0 {
            return;
        }
        let method = heap::method_id_from(id);
        let named = self
            .tools
            .method_name(method)
            .map(|(name, _)| clip_text(name));
        link.name = named;
        if let Some(class) = self.tools.declaring_class(method) {
            link.class = self.tools.class_signature(class).map(clip_text);
            self.env.delete_local(class);
        }
        let lines = self.lines.line_table(method);
        let at = |location: i64| {
            lines
                .iter()
                .take_while(|(start, _)| *start <= location)
                .last()
        };
        link.line = location.and_then(at).map(|(_, line)| *line);
    }

    fn thread_name(&mut self, number: i64) -> Option<String> {
        if self.threads.is_none() {
            self.threads = Some(self.read_thread_names());
        }
        let known = self.threads.as_ref()?.get(&number).cloned();
        Some(known.unwrap_or_else(|| format!("thread {number}")))
    }

    fn read_thread_names(&self) -> HashMap<i64, String> {
        let env = self.env;
        let class = env.find_class(c"java/lang/Thread");
        let number = class.and_then(|class| env.field_id(class, c"tid", c"J"));
        let mut threads = HashMap::new();
        for thread in self.tools.all_threads() {
            if let (Some(number), Some(name)) = (number, self.read_thread_name(thread)) {
                threads.insert(env.get_long(thread, number), name);
            }
            env.delete_local(thread);
        }
        env.delete_local(class.unwrap_or(std::ptr::null_mut()));
        threads
    }

    /// The name of a thread.
    fn read_thread_name(&self, thread: jobject) -> Option<String> {
        let env = self.env;
        let class = env.find_class(c"java/lang/Thread")?;
        let field = env.field_id(class, c"name", c"Ljava/lang/String;");
        let name = field.map(|field| env.get_object(thread, field));
        env.delete_local(class);
        let name = name.filter(|name| !name.is_null())?;
        let text = env.read_string(name, MAX_NAME_LENGTH);
        env.delete_local(name);
        Some(text)
    }
}

const CLASS: &str = "Ljava/lang/Class;";

/// Merges [`EQUAL_LINKS`] or more consecutive equal links into one.
fn merge_equal_links(links: Vec<HolderPathLink>) -> Vec<HolderPathLink> {
    let is_equal = |a: &HolderPathLink, b: &HolderPathLink| {
        let times = b.times;
        a.index.is_none() && HolderPathLink { times, ..a.clone() } == *b
    };
    let joined = links.chunk_by(is_equal).flat_map(|equal| {
        let times = equal
            .iter()
            .fold(0, |sum: u32, link| sum.saturating_add(link.times));
        match equal.first() {
            Some(first) if times >= EQUAL_LINKS => vec![HolderPathLink {
                times,
                ..first.clone()
            }],
            _ => equal.to_vec(),
        }
    });
    joined.collect()
}

fn clip_text(text: String) -> String {
    match text.char_indices().nth(MAX_NAME_LENGTH) {
        None => text,
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

/// The kind's name in JSON.
fn reference_kind_name(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Field(_) => "field",
        ReferenceKind::Static(_) => "static",
        ReferenceKind::Element(_) => "element",
        ReferenceKind::Class => "class",
        ReferenceKind::ClassLoader => "class_loader",
        ReferenceKind::LoadedClass => "loaded_class",
        ReferenceKind::ProtectionDomain => "protection_domain",
        ReferenceKind::Signers => "signers",
        ReferenceKind::Interface => "interface",
        ReferenceKind::ConstantPool => "constant_pool",
        ReferenceKind::Superclass => "superclass",
        ReferenceKind::JniGlobal => "jni_global",
        ReferenceKind::SystemClass => "system_class",
        ReferenceKind::Monitor => "monitor",
        ReferenceKind::Thread => "thread",
        ReferenceKind::Local { .. } => "local",
        ReferenceKind::JniLocal { .. } => "jni_local",
        ReferenceKind::Other => "vm",
    }
}
