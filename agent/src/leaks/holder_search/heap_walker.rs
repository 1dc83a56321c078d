//! Walks through the heap for one search.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_control::HolderSearchOptions;
use lucce_jvmti::{JniEnvironment, JvmError, Jvmti};

use crate::leaks::chain_runs::ChainField;
use crate::leaks::heap_search::{
    ClassRole, HeapSearch, HoldStrength, MAX_SIDE_LOADERS, ReferentField, SIDE_LOADER,
};

use super::class_fields::ClassFields;

/// No walk begins later, so that clients get an answer.
const MAX_DURATION: Duration = Duration::from_secs(60);
/// Maximum number of classes added to loaders on paths. The walks find others.
const MAX_CLASSES: usize = 1 << 14;
/// The first tag of a class whose objects form a chain; the others are below.
const CHAIN_CLASS: i64 = -(1 << 40);
/// `ACC_STATIC` does not matter: static and other fields share one numbering.
const REFERENT: &str = "referent";

/// Walks through the heap for a search, and adds references between two walks that no walk reports.
pub(super) struct HeapWalker {
    pub(super) tools: Jvmti,
    pub(super) env: JniEnvironment,
    pub(super) search: HeapSearch,
    pub(super) pauses: Vec<Duration>,
    pub(super) is_incomplete: bool,
    pub(super) is_out_of_budget: bool,
    /// Number of classes added to the search.
    pub(super) classes: usize,
    /// Number of walks that followed each field.
    pub(super) chains: HashMap<ChainField, u32>,
    pub(super) chain_classes: i64,
    /// Tags of the loaders at which side walks begin.
    pub(super) side_loaders: Vec<i64>,
    pub(super) has_side_walks: bool,
}

impl HeapWalker {
    pub(super) fn new(
        tools: Jvmti,
        env: JniEnvironment,
        targets: u32,
    ) -> Result<HeapWalker, JvmError> {
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

    /// `began`: the first walk of all.
    pub(super) fn run_walks(
        &mut self,
        walks: &HolderSearchOptions,
        began: Instant,
    ) -> Result<(), JvmError> {
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
        let loader_tag = self.tools.get_tag(loader);
        if let (false, Ok(loader_tag)) = (name.contains('.'), loader_tag)
            && let Some(new) = self.search.add_loader(tag, loader_tag)
            && new != loader_tag
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
