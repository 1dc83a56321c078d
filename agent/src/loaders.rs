//! Class loaders by number: 0 is the boot loader.

use std::sync::{Mutex, PoisonError};

use jvmti_bindings::sys::jni::jobject;

use crate::book::Loader;
use crate::jvm::{Env, Jvmti};

/// Every loader that was seen.
#[derive(Default)]
pub struct Loaders(Mutex<Vec<Seen>>);

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

    /// Tags cannot be set before the VM is live, so early loaders are found by comparing.
    fn unmarked(&self, jvmti: Jvmti, env: Env, loader: jobject) -> Loader {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A loader without a tag is new, or one of the first few.
        const EARLY: usize = 16;
        let known = all
            .iter()
            .take(EARLY)
            .position(|seen| env.is_same(seen.weak as jobject, loader));
        let at = known.unwrap_or_else(|| {
            let class = env.class_of(loader);
            let signature = jvmti.signature(class).unwrap_or_default();
            env.forget(class);
            let is_platform = signature == PLATFORM;
            all.push(Seen {
                weak: env.weak_global(loader) as usize,
                is_platform,
                is_of_the_jdk: is_platform || signature == APPLICATION,
            });
            all.len() - 1
        });
        let id = at as u32 + 1;
        let _ = jvmti.set_tag(loader, id.into());
        Loader(id)
    }

    /// A local reference; null for the boot loader, `None` if it is gone.
    pub fn object(&self, env: Env, loader: Loader) -> Option<jobject> {
        let Some(at) = loader.0.checked_sub(1) else {
            return Some(std::ptr::null_mut());
        };
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let local = env.local(all.get(at as usize)?.weak as jobject);
        (!local.is_null()).then_some(local)
    }

    /// Whether the VM trusts this loader's classes with annotations of its own: the boot loader and the
    /// platform loader.
    pub fn is_trusted(&self, loader: Loader) -> bool {
        !self.is_application(loader)
    }

    /// Whether this is a loader of a program's own, which may refuse classes of the JDK.
    pub fn is_own(&self, loader: Loader) -> bool {
        let Some(at) = loader.0.checked_sub(1) else {
            return false;
        };
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(at as usize).is_some_and(|seen| !seen.is_of_the_jdk)
    }

    /// Whether a program's own classes come from this loader.
    pub fn is_application(&self, loader: Loader) -> bool {
        let Some(at) = loader.0.checked_sub(1) else {
            return false;
        };
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(at as usize).is_some_and(|seen| !seen.is_platform)
    }
}
