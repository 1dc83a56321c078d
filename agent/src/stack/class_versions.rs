//! Counts how often a class was redefined, by any Java agent, debugger or Flight Recorder.
//!
//! HotSpot keeps a field in each `Class`, `classRedefinedCount`: how often that class or a superclass was redefined
//! or retransformed. It is incremented in the same pause in which the new code becomes current. So what was read of a
//! class is valid while the count is unchanged. No event is needed for that; events come before the new code is
//! current.

use std::sync::{Arc, OnceLock};

use jvmti_bindings::sys::jni::{jclass, jobject};
use rustc_hash::FxHashMap;

use crate::memory::locks::WatchedMutex;
use crate::registry::ClassLoaderId;
use lucce_jvmti::{FieldId, JniEnvironment};

/// A class whose redefinition count is read repeatedly.
#[derive(Debug)]
pub struct VersionedClass {
    /// A global reference for a class of the boot loader; otherwise a weak one.
    reference: usize,
    is_weak: bool,
}

impl VersionedClass {
    /// The number of times that the code of this class was replaced. The class must be alive; for example, a frame of
    /// the current thread runs its code.
    pub fn redefinition_count(&self, env: JniEnvironment, field: FieldId) -> i32 {
        env.get_int(self.reference as jobject, field.as_raw())
    }
}

/// The watched classes, and the field with the VM's count.
#[derive(Default)]
pub struct ClassVersions {
    /// `None`: this VM does not count.
    field: OnceLock<Option<FieldId>>,
    classes: WatchedMutex<SeenClasses>,
}

#[derive(Default)]
struct SeenClasses {
    by_name: FxHashMap<ClassLoaderId, FxHashMap<Box<str>, Arc<VersionedClass>>>,
    /// Weak references to unloaded classes, deleted at the next [`ClassVersions::watch_class`].
    discarded: Vec<usize>,
}

impl ClassVersions {
    /// Looks up the field with the VM's count. The VM must be initialised, and the current thread must not run code
    /// of the program.
    pub fn prepare_field(&self, env: JniEnvironment) {
        self.field.get_or_init(|| {
            let class = env.find_class(c"java/lang/Class")?;
            let field = env.field_id(class, c"classRedefinedCount", c"I");
            env.delete_local(class);
            field.map(FieldId::new)
        });
    }

    /// The field with the VM's count. `None`: the VM does not count, or [`ClassVersions::prepare_field`] has not run
    /// yet.
    pub fn count_field(&self) -> Option<FieldId> {
        self.field.get().copied().flatten()
    }

    /// Returns the watched class of this name; starts watching it at the first call. `class` must be alive.
    pub fn watch_class(
        &self,
        env: JniEnvironment,
        class: jclass,
        (loader, name): (ClassLoaderId, &str),
    ) -> Arc<VersionedClass> {
        let mut classes = self.classes.lock();
        for weak in classes.discarded.drain(..) {
            env.delete_weak(weak as jobject);
        }
        let of_loader = classes.by_name.entry(loader).or_default();
        if let Some(known) = of_loader.get(name) {
            return Arc::clone(known);
        }
        let is_weak = loader != ClassLoaderId::BOOT;
        let reference = match is_weak {
            true => env.new_weak_global(class),
            false => env.new_global(class),
        };
        let new = Arc::new(VersionedClass {
            reference: reference as usize,
            is_weak,
        });
        of_loader.insert(name.into(), Arc::clone(&new));
        new
    }

    /// Forgets the classes of unloaded loaders.
    pub fn forget_loaders(&self, loaders: &[ClassLoaderId]) {
        let mut classes = self.classes.lock();
        for loader in loaders {
            let gone = classes.by_name.remove(loader).unwrap_or_default();
            let weak = gone.into_values().filter(|class| class.is_weak);
            classes.discarded.extend(weak.map(|class| class.reference));
        }
    }

    /// Deletes all references, when the agent leaves the VM.
    pub fn release_all(&self, env: JniEnvironment) {
        let mut classes = self.classes.lock();
        let SeenClasses { by_name, discarded } = std::mem::take(&mut *classes);
        for class in by_name.into_values().flat_map(FxHashMap::into_values) {
            match class.is_weak {
                true => env.delete_weak(class.reference as jobject),
                false => env.delete_global(class.reference as jobject),
            }
        }
        for weak in discarded {
            env.delete_weak(weak as jobject);
        }
    }
}
