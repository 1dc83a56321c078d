//! Classes as they were before their hooks, for Java agents that change them after they have been loaded. Only a sum of
//! each is kept: the bytes come from where its loader finds them, if they are still the same.

use std::hash::Hasher;

use jvmti_bindings::sys::jni::{jobject, jvalue};
use rustc_hash::{FxHashMap, FxHasher};

use crate::book::Loader;
use crate::memory::locks::WatchedMutex;
use lucce_vm::Env;

/// The sum of a class by its loader and the sum of its name.
#[derive(Default)]
pub struct Originals(WatchedMutex<FxHashMap<Loader, FxHashMap<u64, u64>>>);

impl Originals {
    /// An agent that changes the class called `name` later begins with these bytes.
    pub fn note(&self, loader: Loader, name: &[u8], bytes: &[u8]) {
        let (key, sum) = (key(name), sum(bytes));
        let mut known = self.0.lock();
        known.entry(loader).or_default().insert(key, sum);
    }

    /// The VM has unloaded these loaders' classes.
    pub fn forget(&self, loaders: &[Loader]) {
        let mut known = self.0.lock();
        for loader in loaders {
            known.remove(loader);
        }
    }

    /// The class as it was noted, read by its loader, an object (null: the boot loader). Runs Java code, and `called`
    /// behind each call of it.
    pub fn find(
        &self,
        env: Env,
        loader: (Loader, jobject),
        name: &str,
        called: &dyn Fn(),
    ) -> Option<Vec<u8>> {
        let wanted = {
            let known = self.0.lock();
            *known.get(&loader.0)?.get(&key(name.as_bytes()))?
        };
        let bytes = read(env, loader.1, name, called)?;
        (sum(&bytes) == wanted).then_some(bytes)
    }
}

fn key(name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.finish()
}

fn sum(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.write_usize(bytes.len());
    hasher.finish()
}

/// What the loader has by the name of the class's file.
fn read(env: Env, loader: jobject, name: &str, called: &dyn Fn()) -> Option<Vec<u8>> {
    let descriptor = c"(Ljava/lang/String;)Ljava/io/InputStream;";
    let loaders = env.find_class(c"java/lang/ClassLoader")?;
    let streams = env.find_class(c"java/io/InputStream")?;
    let name = env.string(&format!("{name}.class"))?;
    let arguments = [jvalue { l: name }];
    let stream = match loader.is_null() {
        true => {
            let open = env.static_method(loaders, c"getSystemResourceAsStream", descriptor)?;
            env.call_static_object(loaders, open, &arguments)
        }
        false => {
            let open = env.method(loaders, c"getResourceAsStream", descriptor)?;
            env.call_object(loader, open, &arguments)
        }
    };
    called();
    let stream = stream?;
    let read = env.method(streams, c"readAllBytes", c"()[B")?;
    let bytes = env.call_object(stream, read, &[]);
    called();
    if let Some(close) = env.method(streams, c"close", c"()V") {
        env.call_on(stream, close, &[]);
        called();
    }
    let bytes = bytes?;
    let copy = env.all_bytes(bytes);
    for object in [loaders, streams, name, stream, bytes] {
        env.forget(object);
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_one_sum_by_loader_and_name() {
        let originals = Originals::default();
        originals.note(Loader(0), b"a/B", b"old");
        originals.note(Loader(0), b"a/B", b"new");
        originals.note(Loader(1), b"a/B", b"other");
        let sums = |loader| originals.0.lock().get(&Loader(loader)).cloned();
        let of = |bytes| Some([(key(b"a/B"), sum(bytes))].into_iter().collect());
        assert_eq!((sums(0), sums(1)), (of(b"new"), of(b"other")));
        originals.forget(&[Loader(1), Loader(7)]);
        assert_eq!((sums(0), sums(1)), (of(b"new"), None));
    }

    #[test]
    fn sums_tell_a_class_from_one_that_ends_in_zeros() {
        assert_ne!(sum(b"class"), sum(b"class\0"));
        assert_ne!(sum(&[0; 8]), sum(&[0; 16]));
    }
}
