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
}

const PLATFORM: &str = "Ljdk/internal/loader/ClassLoaders$PlatformClassLoader;";

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
            all.push(Seen {
                weak: env.weak_global(loader) as usize,
                is_platform: is_platform(jvmti, env, loader),
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

    /// Whether a program's own classes come from this loader.
    pub fn is_application(&self, loader: Loader) -> bool {
        let Some(at) = loader.0.checked_sub(1) else {
            return false;
        };
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(at as usize).is_some_and(|seen| !seen.is_platform)
    }
}

fn is_platform(jvmti: Jvmti, env: Env, loader: jobject) -> bool {
    let class = env.class_of(loader);
    let signature = jvmti.signature(class);
    env.forget(class);
    signature.as_deref() == Some(PLATFORM)
}
