//! Class loaders by number: 0 is the boot loader. A number is never given to another loader.
//!
//! The VM does not tell when it unloads classes, but a weak reference to their loader is null then. For each new
//! loader two others are looked at, in turns: so as many are found to be gone as come.

use std::collections::VecDeque;
use std::sync::MutexGuard;

use jvmti_bindings::sys::jni::jobject;
use rustc_hash::FxHashMap;

use crate::book::Loader;
use crate::memory::locks::WatchedMutex;
use lucce_vm::{Env, Jvmti};

/// Every loader that was seen and is not known to be gone.
#[derive(Default)]
pub struct Loaders(WatchedMutex<Known>);

#[derive(Default)]
struct Known {
    seen: FxHashMap<u32, Seen>,
    /// All of them, the one that will be looked at next first.
    turns: VecDeque<u32>,
    last: u32,
    /// The last one when others were looked at.
    looked: u32,
}

struct Seen {
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
const EARLY: u32 = 16;
/// How many are looked at for each new one.
const LOOKS: usize = 2;

impl Loaders {
    /// `loader` null is the boot loader.
    pub fn id(&self, jvmti: Jvmti, env: Env, loader: jobject) -> Loader {
        if loader.is_null() {
            return Loader(0);
        }
        match jvmti.tag(loader) {
            Ok(0) | Err(_) => self.unmarked(jvmti, env, loader),
            Ok(tag) => Loader(tag as u32),
        }
    }

    /// A loader without a tag is new, or one of the first few.
    fn unmarked(&self, jvmti: Jvmti, env: Env, loader: jobject) -> Loader {
        let mut known = self.lock();
        let early = (1..=EARLY).find(|id| {
            let seen = known.seen.get(id);
            seen.is_some_and(|seen| env.is_same(seen.weak as jobject, loader))
        });
        let id = early.unwrap_or_else(|| {
            known.last += 1;
            let id = known.last;
            let class = env.class_of(loader);
            let signature = jvmti.signature(class).unwrap_or_default();
            env.forget(class);
            let is_platform = signature == PLATFORM;
            let seen = Seen {
                weak: env.weak_global(loader) as usize,
                is_platform,
                is_of_the_jdk: is_platform || signature == APPLICATION,
            };
            known.seen.insert(id, seen);
            known.turns.push_back(id);
            id
        });
        let _ = jvmti.set_tag(loader, id.into());
        Loader(id)
    }

    /// Loaders whose classes the VM has unloaded, each once: their code runs nowhere and never will. Asked for
    /// again and again, all of them are told sooner or later.
    pub fn gone(&self, env: Env) -> Vec<Loader> {
        let mut known = self.lock();
        let mut gone = Vec::new();
        if known.last == known.looked {
            return gone;
        }
        let looks = LOOKS * (known.last - known.looked) as usize;
        known.looked = known.last;
        for _ in 0..looks.min(known.turns.len()) {
            let Some(id) = known.turns.pop_front() else {
                break;
            };
            let weak = known.seen.get(&id).map_or(0, |seen| seen.weak);
            if weak != 0 && env.is_gone(weak as jobject) {
                env.forget_weak(weak as jobject);
                known.seen.remove(&id);
                gone.push(Loader(id));
            } else {
                known.turns.push_back(id);
            }
        }
        gone
    }

    /// The agent leaves the VM: of all references.
    pub fn let_go(&self, env: Env) {
        let known = std::mem::take(&mut *self.lock());
        for seen in known.seen.into_values() {
            env.forget_weak(seen.weak as jobject);
        }
    }

    /// A local reference; null for the boot loader, `None` if it is gone.
    pub fn object(&self, env: Env, loader: Loader) -> Option<jobject> {
        if loader == Loader::BOOT {
            return Some(std::ptr::null_mut());
        }
        let local = env.local(self.lock().seen.get(&loader.0)?.weak as jobject);
        (!local.is_null()).then_some(local)
    }

    /// Whether the VM trusts this loader's classes with annotations of its own: the boot loader and the
    /// platform loader.
    pub fn is_trusted(&self, loader: Loader) -> bool {
        !self.is_application(loader)
    }

    /// Whether this is a loader of a program's own, which may refuse classes of the JDK.
    pub fn is_own(&self, loader: Loader) -> bool {
        let known = self.lock();
        let seen = known.seen.get(&loader.0);
        seen.is_some_and(|seen| !seen.is_of_the_jdk)
    }

    /// Whether a program's own classes come from this loader, which is not gone.
    pub fn is_application(&self, loader: Loader) -> bool {
        let known = self.lock();
        let seen = known.seen.get(&loader.0);
        seen.is_some_and(|seen| !seen.is_platform)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock()
    }
}
