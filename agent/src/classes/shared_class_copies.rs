//! Classes that several loaders load with identical bytes. Such classes have the same frames, sites and sizes, so all copies
//! share their ids, and the class is rewritten once. If a program loads one class again and again, its contexts and its log
//! do not grow.
//!
//! The first occurrence leaves only a hash, because most classes never recur. The second occurrence keeps the class with its
//! hooks. The oldest classes are dropped first. A class that creates objects of other loaders' classes has its own ids in
//! each loader, because those classes may have different sizes.

use std::collections::VecDeque;
use std::hash::Hasher;
use std::sync::MutexGuard;

use lucce_bytecode::ClassFile;
use rustc_hash::{FxHashMap, FxHasher};

use crate::classes::ClassParts;
use crate::memory::counter::increment_counter;
use crate::memory::locks::WatchedMutex;
use crate::registry::ClassLoaderId;
use lucce_instrument::{HookSiteKind, MethodInstrumentation};

/// Number of remembered hashes.
const HASH_SLOTS: usize = 1 << 16;
/// Maximum bytes of kept classes.
const MAX_BYTES: usize = 32 << 20;

/// Classes with their hooks, for loaders that load them again.
#[derive(Default)]
pub struct SharedClassCopies(WatchedMutex<SharedCopyTable>);

#[derive(Default)]
struct SharedCopyTable {
    /// Hashes of classes seen, by their low bits; 0: none.
    hashes: Vec<u64>,
    classes: FxHashMap<u64, SharedClassCopy>,
    /// The hashes of kept classes, the oldest first.
    order: VecDeque<u64>,
    bytes: usize,
}

struct SharedClassCopy {
    plain: Box<[u8]>,
    hooked: Box<[u8]>,
    kind: LoaderKind,
    class: u32,
}

/// What hooks depend on besides the class itself.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LoaderKind {
    is_trusted: bool,
    is_own: bool,
}

impl LoaderKind {
    fn for_loader(agent: ClassParts<'_>, loader: ClassLoaderId) -> LoaderKind {
        LoaderKind {
            is_trusted: agent.core.loaders.is_trusted(loader),
            is_own: agent.core.loaders.is_own(loader),
        }
    }
}

impl SharedClassCopies {
    /// The class with its hooks, if it was kept. The loader is added to its loaders.
    pub fn find_hooked(
        &self,
        agent: ClassParts<'_>,
        loader: ClassLoaderId,
        bytes: &[u8],
    ) -> Option<Vec<u8>> {
        if loader == ClassLoaderId::BOOT {
            return None;
        }
        let kind = LoaderKind::for_loader(agent, loader);
        let table = self.lock();
        let copy = table.classes.get(&hash_class(bytes))?;
        // The bytes decide: hashes may collide.
        if *copy.plain != *bytes || copy.kind != kind {
            return None;
        }
        let mut registry = agent.core.registry_mut();
        registry.link_loader_once(loader, copy.class);
        if let Some(class) = registry.class(copy.class) {
            agent
                .classes
                .method_watch
                .forget_class(loader, registry.name_text(class.name));
        }
        drop(registry);
        increment_counter(&agent.core.counts.classes);
        Some(copy.hooked.to_vec())
    }

    /// Records a class that has got its hooks.
    pub fn record_hooked(
        &self,
        agent: ClassParts<'_>,
        loader: ClassLoaderId,
        (class, bytes): (&ClassFile<'_>, &[u8]),
        instrumentations: &[MethodInstrumentation],
        hooked: &[u8],
    ) {
        if loader == ClassLoaderId::BOOT || !is_loader_independent(class, instrumentations) {
            return;
        }
        let sum = hash_class(bytes);
        let mut table = self.lock();
        if !table.record_hash(sum) || table.classes.contains_key(&sum) {
            return;
        }
        let mut registry = agent.core.registry_mut();
        let Some(id) = registry.find_class_id(loader, class.name()) else {
            return;
        };
        registry.retain_class(id);
        let copy = SharedClassCopy {
            plain: bytes.into(),
            hooked: hooked.into(),
            kind: LoaderKind::for_loader(agent, loader),
            class: id,
        };
        for gone in table.insert_class(sum, copy) {
            registry.release_class(gone);
        }
    }

    fn lock(&self) -> MutexGuard<'_, SharedCopyTable> {
        self.0.lock()
    }
}

impl SharedCopyTable {
    /// Whether a class with this hash was seen and is still remembered.
    fn record_hash(&mut self, sum: u64) -> bool {
        if self.hashes.is_empty() {
            self.hashes = vec![0; HASH_SLOTS];
        }
        let place = self.hashes.get_mut(sum as usize % HASH_SLOTS);
        place.is_some_and(|place| std::mem::replace(place, sum) == sum)
    }

    /// Keeps a class. Returns the registry ids of the classes that were dropped for it.
    fn insert_class(&mut self, sum: u64, copy: SharedClassCopy) -> Vec<u32> {
        self.bytes += copy.plain.len() + copy.hooked.len();
        self.classes.insert(sum, copy);
        self.order.push_back(sum);
        let mut gone = Vec::new();
        while self.bytes > MAX_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            if let Some(copy) = self.classes.remove(&oldest) {
                self.bytes -= copy.plain.len() + copy.hooked.len();
                gone.push(copy.class);
            }
        }
        gone
    }
}

/// Whether all objects that the class creates have the same size in every loader: objects of the JDK's classes, and of the class
/// itself if it extends a class of the JDK.
fn is_loader_independent(
    class: &ClassFile<'_>,
    instrumentations: &[MethodInstrumentation],
) -> bool {
    const JAVA: &str = "java/";
    let extends_java = || {
        class
            .super_name()
            .is_some_and(|name| name.starts_with(JAVA))
    };
    let of_java = |descriptor: &str| {
        let name = descriptor.trim_start_matches('L').trim_end_matches(';');
        name.starts_with(JAVA) || name == class.name() && extends_java()
    };
    let places = instrumentations
        .iter()
        .flat_map(|instrumentation| &instrumentation.places);
    places.into_iter().all(|place| match &place.kind {
        HookSiteKind::New(of) => of_java(of),
        _ => true,
    })
}

fn hash_class(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.write_usize(bytes.len());
    hasher.finish().max(1)
}

#[cfg(test)]
mod shared_class_copies_tests {
    use super::*;

    fn copy(class: u32, bytes: usize) -> SharedClassCopy {
        SharedClassCopy {
            plain: vec![0; bytes / 2].into(),
            hooked: vec![0; bytes / 2].into(),
            kind: LoaderKind {
                is_trusted: false,
                is_own: true,
            },
            class,
        }
    }

    #[test]
    fn a_class_is_kept_the_second_time_and_the_oldest_goes() {
        let mut table = SharedCopyTable::default();
        assert!(!table.record_hash(5) && table.record_hash(5));
        // Another hash in the same slot.
        assert!(!table.record_hash(5 + HASH_SLOTS as u64) && !table.record_hash(5));
        let third = MAX_BYTES / 3 + 2;
        assert!(table.insert_class(1, copy(11, third)).is_empty());
        assert!(table.insert_class(2, copy(12, third)).is_empty());
        assert_eq!(table.insert_class(3, copy(13, third)), [11]);
        assert_eq!(table.insert_class(4, copy(14, 2 * MAX_BYTES)), [12, 13, 14]);
        assert_eq!(
            (table.bytes, table.classes.len(), table.order.len()),
            (0, 0, 0)
        );
    }
}
