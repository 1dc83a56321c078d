//! How often the code of a class was replaced, by whomever: Java agents, debuggers, Flight Recorder.
//!
//! HotSpot counts in a field of each `ClassRecord`, `classRedefinedCount`, how often that class or one above it was redefined
//! or retransformed. It does so in the same pause in which the new code becomes current. So what was read of a class is
//! valid as long as the count is the same, and no event has to be waited for, which would come before the new code is
//! current.

use std::sync::{Arc, OnceLock};

use jvmti_bindings::sys::jni::{jclass, jobject};
use rustc_hash::FxHashMap;

use crate::memory::locks::WatchedMutex;
use crate::registry::ClassLoaderId;
use lucce_jvmti::{FieldId, JniEnvironment};

/// A class whose count is read again and again.
#[derive(Debug)]
pub struct VersionedClass {
    /// A global reference, of a class of the boot loader; else a weak one.
    reference: usize,
    is_weak: bool,
}

impl VersionedClass {
    /// How often its code was replaced. The class must be alive: a frame of the current thread runs its code, say.
    pub fn redefinition_count(&self, env: JniEnvironment, field: FieldId) -> i32 {
        env.get_int(self.reference as jobject, field.as_raw())
    }
}

/// The classes that were seen, and where the VM counts.
#[derive(Default)]
pub struct ClassVersions {
    /// `None`: this VM does not count.
    field: OnceLock<Option<FieldId>>,
    classes: WatchedMutex<SeenClasses>,
}

#[derive(Default)]
struct SeenClasses {
    by_name: FxHashMap<ClassLoaderId, FxHashMap<Box<str>, Arc<VersionedClass>>>,
    /// Weak references to classes that are gone.
    discarded: Vec<usize>,
}

impl ClassVersions {
    /// Looks up where the VM counts. The VM is initialised, and the current thread runs no code of the program's.
    pub fn prepare_field(&self, env: JniEnvironment) {
        self.field.get_or_init(|| {
            let class = env.find_class(c"java/lang/Class")?;
            let field = env.field_id(class, c"classRedefinedCount", c"I");
            env.delete_local(class);
            field.map(FieldId::new)
        });
    }

    /// Where the VM counts. `None`: it does not, or it is not known yet.
    pub fn count_field(&self) -> Option<FieldId> {
        self.field.get().copied().flatten()
    }

    /// The class with this name, a living one.
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

    /// The VM has unloaded these loaders' classes.
    pub fn forget_loaders(&self, loaders: &[ClassLoaderId]) {
        let mut classes = self.classes.lock();
        for loader in loaders {
            let gone = classes.by_name.remove(loader).unwrap_or_default();
            let weak = gone.into_values().filter(|class| class.is_weak);
            classes.discarded.extend(weak.map(|class| class.reference));
        }
    }

    /// The agent leaves the VM: of all references.
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
