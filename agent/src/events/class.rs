//! `events=class`: classes that the VM defines, by context and by the class of their loader, with the bytes of their class
//! files. Unloaded classes are counted in the contexts of their definitions (`counting::class_unloads`).
//!
//! The class file load hook has the bytes of a class, and the event of its definition has the class. Hidden classes have no
//! class file load hook; `LucceRtClasses` has their bytes if their creator has hooks. The VM also reports a class that another
//! loader finds by delegation. Such a class has a tag already, or no class file arrived in this thread.

use std::hash::Hasher;

use jvmti_bindings::sys::jni::{jclass, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_contentid::generated_names::normalize_class;
use lucce_instrument::EventKindInfo;
use lucce_instrument::kinds::{CLASS, CLASS_LOADERS, CLASS_UNLOADS, CLASSES, LOADER_UNLOADS};
use lucce_jvmti::{JniEnvironment, Jvmti};
use rustc_hash::FxHasher;

use crate::counting::CountingParts;
use crate::counting::class_unloads::ArrivingClassKey;
use crate::counting::counter_lookup::{event_detail, find_counter_here};
use crate::events::EventSource;
use crate::thread::ThreadState;
use crate::thread::event_kind::{EventCounterRef, EventKind};

static LOADED: EventKind = EventKind::new(&CLASSES, "loaded");
/// Named as known generators name their classes.
static GENERATED: EventKind = EventKind::new(&CLASSES, "generated");
static HIDDEN: EventKind = EventKind::new(&CLASSES, "hidden");

/// Classes that the VM defines.
pub struct ClassDefinitionSource;

impl EventSource for ClassDefinitionSource {
    fn kind(&self) -> &'static EventKindInfo {
        &CLASS
    }

    fn vm_events(&self) -> &'static [ti::jvmtiEvent] {
        &[ti::JVMTI_EVENT_CLASS_LOAD]
    }
}

/// A class that the current thread has defined.
pub struct DefinedClass {
    class: jclass,
    /// A local reference; null: the boot loader.
    pub loader: jobject,
    pub kind: &'static EventKind,
    pub bytes: u32,
    /// `None`: the VM does not report unloaded classes.
    tags: Option<Jvmti>,
}

/// Whether classes are counted now.
fn are_classes_counted(agent: CountingParts<'_>) -> bool {
    agent.core.event_mask.is_enabled(CLASS.mask_bit)
}

/// The current thread is about to define a class: `name` with slashes; `None`: a hidden one.
pub fn note_class_bytes(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    name: Option<&[u8]>,
    bytes: usize,
) {
    if are_classes_counted(agent) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let unloads = &agent.counting.class_unloads;
        unloads.note_class_bytes(arriving_key(env, name), bytes);
    }
}

fn arriving_key(env: JniEnvironment, name: Option<&[u8]>) -> ArrivingClassKey {
    let mut hasher = FxHasher::default();
    hasher.write(name.unwrap_or_default());
    (env.as_raw() as usize, hasher.finish())
}

impl DefinedClass {
    /// `report_tag`: what the VM calls when it has unloaded a class. `None`: the class is not new, or the VM does not know its
    /// name.
    pub fn read(
        agent: CountingParts<'_>,
        env: JniEnvironment,
        class: jclass,
        report_tag: ti::JvmtiObjectFreeFn,
    ) -> Option<DefinedClass> {
        let signature = agent.core.jvmti.class_signature(class)?;
        let name = signature.strip_prefix('L')?.strip_suffix(';')?;
        // The suffix of a hidden class's name stands behind a dot.
        let is_hidden = name.contains('.');
        let kind = match is_hidden {
            true => &HIDDEN,
            false if is_generated(name) => &GENERATED,
            false => &LOADED,
        };
        let unloads = &agent.counting.class_unloads;
        let encoded = (!is_hidden).then(|| lucce_bytecode::mutf8::encode(name));
        let bytes = unloads.take_class_bytes(arriving_key(env, encoded.as_deref()));
        let tags = unloads.tag_environment(env, report_tag);
        let is_tagged = tags.is_some_and(|tags| tags.get_tag(class) != Ok(0));
        if is_tagged || bytes.is_none() && !is_hidden {
            return None;
        }
        Some(DefinedClass {
            class,
            loader: agent.core.jvmti.class_loader(class)?,
            kind,
            bytes: bytes.unwrap_or(0),
            tags,
        })
    }

    /// Follows the class, which was counted in this context, until it is unloaded. Returns the type of its loader if this is
    /// the first class that the loader defines.
    pub fn follow(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        number: ContextId,
    ) -> Option<lucce_tracelog::EventTypeId> {
        let tags = self.tags?;
        let unloads = &agent.counting.class_unloads;
        let loader_class = match self.loader.is_null() {
            true => self.loader,
            false => env.class_of(self.loader),
        };
        let detail = event_detail(agent, loader_class, self.kind);
        env.delete_local(loader_class);
        let unload =
            agent.find_or_add_event_type(CLASS_UNLOADS.name, CLASS_UNLOADS.unit, &detail)?;
        unloads.follow_object(agent.core, (tags, self.class), (number, unload), self.bytes);
        if self.loader.is_null() || tags.get_tag(self.loader) != Ok(0) {
            return None;
        }
        let (loader, _) = detail.split_once(' ')?;
        let add_type = |kind| agent.find_or_add_event_type(kind, "", loader);
        let unload = add_type(LOADER_UNLOADS.name)?;
        let is_first = unloads.follow_loader(agent.core, (tags, self.loader), (number, unload));
        is_first.then(|| add_type(CLASS_LOADERS.name)).flatten()
    }
}

/// Whether a class, named with slashes, is named as known generators name theirs.
fn is_generated(name: &str) -> bool {
    let name = name.replace('/', ".");
    *normalize_class(&name) != *name
}

/// Counts a class that the current thread has defined.
pub fn count_class(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    class: &DefinedClass,
) {
    let what = (class.kind, class.loader);
    let Some(counter) = find_counter_here(agent, env, state, what) else {
        return;
    };
    counter.count_event(agent, env, state, class.bytes.into());
    let EventCounterRef(counter) = counter;
    if let Some(loader) = class.follow(agent, env, counter.id()) {
        // A dropped event is counted as such.
        let _ = agent.count_event(env, state, counter.id(), Some(loader), 0);
    }
}
