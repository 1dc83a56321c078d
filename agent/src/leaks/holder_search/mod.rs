//! The holders of followed objects: the shortest paths from roots to some of them, with the names of fields.
//!
//! ```text
//! select objects ─► tags ─► HeapWalker: walks, HeapSearch ─► optional collection ─► HolderPathNamer ─► HolderSearchResult
//! ```
//!
//! `search_with_tools` walks in a JVMTI environment of its own, so no other tags interfere. The calling thread has no reference to
//! any object while the VM walks: the reference would be a root.

mod class_fields;
mod heap_walker;
mod path_names;

use std::time::{Duration, Instant};

use lucce_callgraph::ContextId;
use lucce_control::HolderSearchOptions;
use lucce_jvmti::{JniEnvironment, JvmError, Jvmti, VmHandle};

use crate::leaks::heap_search::{HoldStrength, TargetPath};
use crate::leaks::object_selection::SelectionLimits;
use crate::leaks::{LeakDetector, LiveObjectsOfType};

use heap_walker::HeapWalker;
use path_names::HolderPathNamer;

/// Maximum number of targets of one search.
const LIMITS: SelectionLimits = SelectionLimits {
    per_type: 8,
    total: 16,
};
/// The most repetitions of a search whose paths have changed.
const MAX_REPETITIONS: usize = 2;

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

impl HolderSearchResult {
    /// Adds a repetition: it replaces the types of which only changed paths are known.
    fn add_repeated(&mut self, repeated: HolderSearchResult) {
        for of_type in repeated.types {
            let mut known = self.types.iter_mut();
            let known = known.find(|known| known.descriptor == of_type.descriptor);
            if let Some(known) = known.filter(|known| known.has_only_changed()) {
                *known = of_type;
            }
        }
        self.pauses.extend(repeated.pauses);
        self.references = repeated.references;
        self.is_truncated |= repeated.is_truncated;
        self.is_incomplete |= repeated.is_incomplete;
        self.is_out_of_budget |= repeated.is_out_of_budget;
    }
}

impl HoldersOfType {
    /// Whether the program has changed every path between two walks.
    fn has_only_changed(&self) -> bool {
        self.changed > 0 && self.paths.is_empty() && self.unfinished.is_empty()
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
/// The program runs between two walks and can replace an object on every path to a type, such as the array of a growing list. Such
/// a search is repeated with the walks and the pauses that are left.
///
/// # Errors
/// The VM refuses to walk.
pub fn find_holders(
    (leaks, lines): (&LeakDetector, Jvmti),
    (vm, env): (VmHandle, JniEnvironment),
    (contexts, walks): (&[ContextId], &HolderSearchOptions),
) -> Result<HolderSearchResult, JvmError> {
    let began = Instant::now();
    let search = |walks: &HolderSearchOptions| {
        let tools = vm.new_tool_environment()?;
        let result = search_with_tools((leaks, lines), (tools, env), (contexts, walks, began));
        // Frees its tags.
        tools.dispose_environment();
        result
    };
    let mut result = search(walks)?;
    let mut left = walks.clone();
    // One collection is enough.
    left.collect = false;
    reduce_limits(&mut left, &result.pauses);
    for _ in 0..MAX_REPETITIONS {
        let may_walk = left.max_walks > 0 && left.budget.is_none_or(|left| !left.is_zero());
        if !may_walk || !result.types.iter().any(HoldersOfType::has_only_changed) {
            break;
        }
        let Ok(repeated) = search(&left) else { break };
        reduce_limits(&mut left, &repeated.pauses);
        result.add_repeated(repeated);
    }
    Ok(result)
}

/// Subtracts the pauses of a search from the limits.
fn reduce_limits(left: &mut HolderSearchOptions, pauses: &[Duration]) {
    let walks = u32::try_from(pauses.len()).unwrap_or(u32::MAX);
    left.max_walks = left.max_walks.saturating_sub(walks);
    let paused = pauses.iter().sum();
    left.budget = left.budget.map(|left| left.saturating_sub(paused));
}

fn search_with_tools(
    (leaks, lines): (&LeakDetector, Jvmti),
    (tools, env): (Jvmti, JniEnvironment),
    (contexts, walks, began): (&[ContextId], &HolderSearchOptions, Instant),
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
    walker.run_walks(walks, began)?;
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
