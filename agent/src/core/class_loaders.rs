//! Class loaders by number: 0 is the boot loader. A number is never given to another loader.
//!
//! The VM does not tell when it unloads classes, but a weak reference to their loader is null then. For each new
//! loader two others are looked at, in turns: so as many are found to be gone as come.

use std::collections::VecDeque;
use std::sync::MutexGuard;

use jvmti_bindings::sys::jni::jobject;
use rustc_hash::FxHashMap;

use crate::memory::locks::WatchedMutex;
use crate::registry::ClassLoaderId;
use lucce_jvmti::{JniEnvironment, Jvmti};

/// Every loader that was seen and is not known to be gone.
#[derive(Default)]
pub struct ClassLoaders(WatchedMutex<LoaderTable>);

#[derive(Default)]
struct LoaderTable {
    entries: FxHashMap<u32, LoaderEntry>,
    /// All of them, the one that will be looked at next first.
    turns: VecDeque<u32>,
    last: u32,
    /// The last one when others were looked at.
    last_checked: u32,
}

struct LoaderEntry {
    /// A weak global reference.
    weak: usize,
    /// The loader of the JDK's modules that the boot loader does not define.
    is_platform: bool,
    /// It asks the boot loader for every class of `java.base`.
    is_of_the_jdk: bool,
}

const PLATFORM: &str = "Ljdk/internal/loader/ClassLoaders$PlatformClassLoader;";
const APPLICATION: &str = "Ljdk/internal/loader/ClassLoaders$AppClassLoader;";
/// Tags cannot be set before the VM is live, so the first few loaders are found by comparing.
const EARLY_LOADERS: u32 = 16;
/// How many are looked at for each new one.
const CHECKS_PER_LOADER: usize = 2;

impl ClassLoaders {
    /// `loader` null is the boot loader.
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
        let mut known = self.lock();
        let early = (1..=EARLY_LOADERS).find(|id| {
            let seen = known.entries.get(id);
            seen.is_some_and(|seen| env.is_same(seen.weak as jobject, loader))
        });
        let id = early.unwrap_or_else(|| {
            known.last += 1;
            let id = known.last;
            let class = env.class_of(loader);
            let signature = jvmti.class_signature(class).unwrap_or_default();
            env.delete_local(class);
            let is_platform = signature == PLATFORM;
            let seen = LoaderEntry {
                weak: env.new_weak_global(loader) as usize,
                is_platform,
                is_of_the_jdk: is_platform || signature == APPLICATION,
            };
            known.entries.insert(id, seen);
            known.turns.push_back(id);
            id
        });
        let _ = jvmti.set_tag(loader, id.into());
        ClassLoaderId(id)
    }

    /// Loaders whose classes the VM has unloaded, each once: their code runs nowhere and never will. Asked for
    /// again and again, all of them are told sooner or later.
    pub fn remove_unloaded(&self, env: JniEnvironment) -> Vec<ClassLoaderId> {
        let mut known = self.lock();
        let mut gone = Vec::new();
        if known.last == known.last_checked {
            return gone;
        }
        let looks = CHECKS_PER_LOADER * (known.last - known.last_checked) as usize;
        known.last_checked = known.last;
        for _ in 0..looks.min(known.turns.len()) {
            let Some(id) = known.turns.pop_front() else {
                break;
            };
            let weak = known.entries.get(&id).map_or(0, |seen| seen.weak);
            if weak != 0 && env.is_cleared(weak as jobject) {
                env.delete_weak(weak as jobject);
                known.entries.remove(&id);
                gone.push(ClassLoaderId(id));
            } else {
                known.turns.push_back(id);
            }
        }
        gone
    }

    /// The agent leaves the VM: of all references.
    pub fn release_all(&self, env: JniEnvironment) {
        let known = std::mem::take(&mut *self.lock());
        for seen in known.entries.into_values() {
            env.delete_weak(seen.weak as jobject);
        }
    }

    /// A local reference; null for the boot loader, `None` if it is gone.
    pub fn loader_object(&self, env: JniEnvironment, loader: ClassLoaderId) -> Option<jobject> {
        if loader == ClassLoaderId::BOOT {
            return Some(std::ptr::null_mut());
        }
        let local = env.new_local(self.lock().entries.get(&loader.0)?.weak as jobject);
        (!local.is_null()).then_some(local)
    }

    /// Whether the VM trusts this loader's classes with annotations of its own: the boot loader and the
    /// platform loader.
    pub fn is_trusted(&self, loader: ClassLoaderId) -> bool {
        !self.is_application(loader)
    }

    /// Whether this is a loader of a program's own, which may refuse classes of the JDK.
    pub fn is_own(&self, loader: ClassLoaderId) -> bool {
        let known = self.lock();
        let seen = known.entries.get(&loader.0);
        seen.is_some_and(|seen| !seen.is_of_the_jdk)
    }

    /// Whether a program's own classes come from this loader, which is not gone.
    pub fn is_application(&self, loader: ClassLoaderId) -> bool {
        let known = self.lock();
        let seen = known.entries.get(&loader.0);
        seen.is_some_and(|seen| !seen.is_platform)
    }

    fn lock(&self) -> MutexGuard<'_, LoaderTable> {
        self.0.lock()
    }
}
