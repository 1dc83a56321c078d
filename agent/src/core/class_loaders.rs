//! Class loaders by number; 0 is the boot loader. Numbers are never reused.
//!
//! The VM does not report when it unloads classes, but a weak reference to their loader is null then. For each new
//! loader two others are tested, in turns, and more as long as unloaded ones are found. So those of one collection are
//! found soon after it.

use std::collections::VecDeque;
use std::sync::MutexGuard;

use jvmti_bindings::sys::jni::jobject;
use rustc_hash::FxHashMap;

use crate::memory::locks::WatchedMutex;
use crate::registry::ClassLoaderId;
use lucce_jvmti::{JniEnvironment, Jvmti};

/// All loaders that were seen and are not known to be unloaded.
#[derive(Default)]
pub struct ClassLoaders(WatchedMutex<LoaderTable>);

#[derive(Default)]
struct LoaderTable {
    entries: FxHashMap<u32, LoaderEntry>,
    /// All of them; the next one to test comes first.
    turns: VecDeque<u32>,
    last: u32,
    /// The value of `last` when loaders were last tested.
    last_checked: u32,
}

struct LoaderEntry {
    /// A weak global reference.
    weak: usize,
    /// The loader of the JDK modules that the boot loader does not define.
    is_platform: bool,
    /// It delegates every class of `java.base` to the boot loader.
    is_of_the_jdk: bool,
}

const PLATFORM: &str = "Ljdk/internal/loader/ClassLoaders$PlatformClassLoader;";
const APPLICATION: &str = "Ljdk/internal/loader/ClassLoaders$AppClassLoader;";
/// Tags cannot be set before the VM's live phase, so the first few loaders are found by comparison.
const EARLY_LOADERS: u32 = 16;
/// Loaders tested for each new one, and for each that was unloaded.
const CHECKS_PER_LOADER: usize = 2;
/// The most loaders tested at a time because others were unloaded.
const MOST_CHECKS: usize = 256;

impl ClassLoaders {
    /// The number of a loader; null is the boot loader.
    pub fn loader_id(&self, jvmti: Jvmti, env: JniEnvironment, loader: jobject) -> ClassLoaderId {
        if loader.is_null() {
            return ClassLoaderId(0);
        }
        match jvmti.get_tag(loader) {
            Ok(0) | Err(_) => self.untagged_loader_id(jvmti, env, loader),
            Ok(tag) => ClassLoaderId(tag as u32),
        }
    }

    /// A loader without a tag is new, or one of the first few.
    fn untagged_loader_id(
        &self,
        jvmti: Jvmti,
        env: JniEnvironment,
        loader: jobject,
    ) -> ClassLoaderId {
        let mut loaders = self.lock();
        let early = (1..=EARLY_LOADERS).find(|id| {
            let seen = loaders.entries.get(id);
            seen.is_some_and(|seen| env.is_same(seen.weak as jobject, loader))
        });
        let id = early.unwrap_or_else(|| {
            loaders.last += 1;
            let id = loaders.last;
            let class = env.class_of(loader);
            let signature = jvmti.class_signature(class).unwrap_or_default();
            env.delete_local(class);
            let is_platform = signature == PLATFORM;
            let seen = LoaderEntry {
                weak: env.new_weak_global(loader) as usize,
                is_platform,
                is_of_the_jdk: is_platform || signature == APPLICATION,
            };
            loaders.entries.insert(id, seen);
            loaders.turns.push_back(id);
            id
        });
        let _ = jvmti.set_tag(loader, id.into());
        ClassLoaderId(id)
    }

    /// Loaders whose classes the VM has unloaded, each returned once: their code never runs again. Repeated calls
    /// find every loader eventually.
    pub fn remove_unloaded(&self, env: JniEnvironment) -> Vec<ClassLoaderId> {
        let mut loaders = self.lock();
        let mut gone = Vec::new();
        if loaders.last == loaders.last_checked {
            return gone;
        }
        let mut looks = CHECKS_PER_LOADER * (loaders.last - loaders.last_checked) as usize;
        loaders.last_checked = loaders.last;
        looks = looks.min(loaders.turns.len());
        // A collection unloads many loaders at once.
        let most = looks.max(MOST_CHECKS.min(loaders.turns.len()));
        let mut looked = 0;
        while looked < looks
            && let Some(id) = loaders.turns.pop_front()
        {
            looked += 1;
            let weak = loaders.entries.get(&id).map_or(0, |seen| seen.weak);
            if weak != 0 && env.is_cleared(weak as jobject) {
                env.delete_weak(weak as jobject);
                loaders.entries.remove(&id);
                gone.push(ClassLoaderId(id));
                looks = (looks + CHECKS_PER_LOADER).min(most);
            } else {
                loaders.turns.push_back(id);
            }
        }
        gone
    }

    /// Deletes all references, when the agent leaves the VM.
    pub fn release_all(&self, env: JniEnvironment) {
        let loaders = std::mem::take(&mut *self.lock());
        for seen in loaders.entries.into_values() {
            env.delete_weak(seen.weak as jobject);
        }
    }

    /// A local reference to the loader; null for the boot loader. `None`: it is unloaded.
    pub fn loader_object(&self, env: JniEnvironment, loader: ClassLoaderId) -> Option<jobject> {
        if loader == ClassLoaderId::BOOT {
            return Some(std::ptr::null_mut());
        }
        let local = env.new_local(self.lock().entries.get(&loader.0)?.weak as jobject);
        (!local.is_null()).then_some(local)
    }

    /// Whether the VM accepts its own annotations in this loader's classes: the boot loader and the platform loader.
    pub fn is_trusted(&self, loader: ClassLoaderId) -> bool {
        !self.is_application(loader)
    }

    /// Whether this is a loader of the program, which may refuse classes of the JDK.
    pub fn is_own(&self, loader: ClassLoaderId) -> bool {
        let loaders = self.lock();
        let seen = loaders.entries.get(&loader.0);
        seen.is_some_and(|seen| !seen.is_of_the_jdk)
    }

    /// Whether this loader, which is not unloaded, defines classes of the program.
    pub fn is_application(&self, loader: ClassLoaderId) -> bool {
        let loaders = self.lock();
        let seen = loaders.entries.get(&loader.0);
        seen.is_some_and(|seen| !seen.is_platform)
    }

    fn lock(&self) -> MutexGuard<'_, LoaderTable> {
        self.0.lock()
    }
}
