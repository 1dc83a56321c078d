//! Classes without their hooks, for Java agents that change loaded classes. Only a hash of each class is kept. The bytes are
//! read from the class's loader, and used if the hash is the same.

use std::hash::Hasher;

use jvmti_bindings::sys::jni::{jobject, jvalue};
use rustc_hash::{FxHashMap, FxHasher};

use crate::memory::locks::WatchedMutex;
use crate::registry::ClassLoaderId;
use lucce_jvmti::JniEnvironment;

/// The hash of each class, by its loader and the hash of its name.
#[derive(Default)]
pub struct OriginalClasses(WatchedMutex<FxHashMap<ClassLoaderId, FxHashMap<u64, u64>>>);

impl OriginalClasses {
    /// Records the bytes with which an agent begins when it changes the class `name` later.
    pub fn record_class(&self, loader: ClassLoaderId, name: &[u8], bytes: &[u8]) {
        let (key, sum) = (hash_name(name), hash_class(bytes));
        let mut sums = self.0.lock();
        sums.entry(loader).or_default().insert(key, sum);
    }

    /// Forgets unloaded loaders.
    pub fn forget_loaders(&self, loaders: &[ClassLoaderId]) {
        let mut sums = self.0.lock();
        for loader in loaders {
            sums.remove(loader);
        }
    }

    /// The recorded class, read by its loader, an object (null: the boot loader). Runs Java code, and `called` after each call of
    /// it.
    pub fn find_class(
        &self,
        env: JniEnvironment,
        loader: (ClassLoaderId, jobject),
        name: &str,
        called: &dyn Fn(),
    ) -> Option<Vec<u8>> {
        let wanted = {
            let sums = self.0.lock();
            *sums.get(&loader.0)?.get(&hash_name(name.as_bytes()))?
        };
        let bytes = read_class_file(env, loader.1, name, called)?;
        (hash_class(&bytes) == wanted).then_some(bytes)
    }
}

fn hash_name(name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.finish()
}

fn hash_class(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.write_usize(bytes.len());
    hasher.finish()
}

/// The class file that the loader finds by the class's name.
fn read_class_file(
    env: JniEnvironment,
    loader: jobject,
    name: &str,
    called: &dyn Fn(),
) -> Option<Vec<u8>> {
    let descriptor = c"(Ljava/lang/String;)Ljava/io/InputStream;";
    let loaders = env.find_class(c"java/lang/ClassLoader")?;
    let streams = env.find_class(c"java/io/InputStream")?;
    let name = env.new_string(&format!("{name}.class"))?;
    let arguments = [jvalue { l: name }];
    let stream = match loader.is_null() {
        true => {
            let open = env.static_method_id(loaders, c"getSystemResourceAsStream", descriptor)?;
            env.call_static_object(loaders, open, &arguments)
        }
        false => {
            let open = env.method_id(loaders, c"getResourceAsStream", descriptor)?;
            env.call_object(loader, open, &arguments)
        }
    };
    called();
    let stream = stream?;
    let read = env.method_id(streams, c"readAllBytes", c"()[B")?;
    let bytes = env.call_object(stream, read, &[]);
    called();
    if let Some(close) = env.method_id(streams, c"close", c"()V") {
        env.call_void_on(stream, close, &[]);
        called();
    }
    let bytes = bytes?;
    let copy = env.read_all_bytes(bytes);
    for object in [loaders, streams, name, stream, bytes] {
        env.delete_local(object);
    }
    copy
}

#[cfg(test)]
mod original_classes_tests {
    use super::*;

    #[test]
    fn a_class_has_one_sum_by_loader_and_name() {
        let originals = OriginalClasses::default();
        originals.record_class(ClassLoaderId(0), b"a/B", b"old");
        originals.record_class(ClassLoaderId(0), b"a/B", b"new");
        originals.record_class(ClassLoaderId(1), b"a/B", b"other");
        let sums = |loader| originals.0.lock().get(&ClassLoaderId(loader)).cloned();
        let of = |bytes| {
            Some(
                [(hash_name(b"a/B"), hash_class(bytes))]
                    .into_iter()
                    .collect(),
            )
        };
        assert_eq!((sums(0), sums(1)), (of(b"new"), of(b"other")));
        originals.forget_loaders(&[ClassLoaderId(1), ClassLoaderId(7)]);
        assert_eq!((sums(0), sums(1)), (of(b"new"), None));
    }

    #[test]
    fn checksums_distinguish_a_class_from_one_that_ends_in_zeros() {
        assert_ne!(hash_class(b"class"), hash_class(b"class\0"));
        assert_ne!(hash_class(&[0; 8]), hash_class(&[0; 16]));
    }
}
