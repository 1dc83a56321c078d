//! Classes that come again in another loader, byte by byte the same: such a class has the same frames, sites and
//! sizes, so all loaders' copies share their ids, and what was rewritten once is not rewritten again. A program that
//! loads one class for ever has its contexts, and its log, once.
//!
//! The first time only a sum of the class is kept, as most never come again; the second time the class with its
//! hooks. Those that came first go first when they are too many. A class that makes objects of others' classes
//! has its own ids in each loader, because those classes may be larger in one than in the other.

use std::collections::VecDeque;
use std::hash::Hasher;
use std::sync::MutexGuard;

use lucce_bytecode::ClassFile;
use rustc_hash::{FxHashMap, FxHasher};

use crate::classes::AgentClasses;
use crate::memory::counter::increment_counter;
use crate::memory::locks::WatchedMutex;
use crate::registry::ClassLoaderId;
use lucce_instrument::{HookSiteKind, MethodInstrumentation};

/// How many sums are kept.
const HASH_SLOTS: usize = 1 << 16;
/// How many bytes of classes are kept.
const MAX_BYTES: usize = 32 << 20;

#[derive(Default)]
pub struct DuplicateClasses(WatchedMutex<DuplicateClassTable>);

#[derive(Default)]
struct DuplicateClassTable {
    /// Of classes that came, by their low bits; 0: none.
    hashes: Vec<u64>,
    classes: FxHashMap<u64, DuplicateClass>,
    /// Their sums, the oldest first.
    order: VecDeque<u64>,
    bytes: usize,
}

struct DuplicateClass {
    plain: Box<[u8]>,
    hooked: Box<[u8]>,
    kind: LoaderKind,
    class: u32,
}

/// What hooks depend on but the class itself.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LoaderKind {
    is_trusted: bool,
    is_own: bool,
}

impl LoaderKind {
    fn for_loader(classes: &AgentClasses, loader: ClassLoaderId) -> LoaderKind {
        LoaderKind {
            is_trusted: classes.loaders.is_trusted(loader),
            is_own: classes.loaders.is_own(loader),
        }
    }
}

impl DuplicateClasses {
    /// The class with its hooks, if it came before; the loader has it now.
    pub fn find_hooked(
        &self,
        classes: &AgentClasses,
        loader: ClassLoaderId,
        bytes: &[u8],
    ) -> Option<Vec<u8>> {
        if loader == ClassLoaderId::BOOT {
            return None;
        }
        let kind = LoaderKind::for_loader(classes, loader);
        let known = self.lock();
        let twin = known.classes.get(&hash_class(bytes))?;
        // The bytes decide: sums may be equal by chance.
        if *twin.plain != *bytes || twin.kind != kind {
            return None;
        }
        let mut book = classes.registry_mut();
        book.link_loader_once(loader, twin.class);
        if let Some(class) = book.class(twin.class) {
            classes
                .method_watch
                .forget_class(loader, book.name_text(class.name));
        }
        drop(book);
        increment_counter(&classes.counts.classes);
        Some(twin.hooked.to_vec())
    }

    /// A class has got its hooks.
    pub fn record_hooked(
        &self,
        classes: &AgentClasses,
        loader: ClassLoaderId,
        (class, bytes): (&ClassFile<'_>, &[u8]),
        shapes: &[MethodInstrumentation],
        hooked: &[u8],
    ) {
        if loader == ClassLoaderId::BOOT || !is_loader_independent(class, shapes) {
            return;
        }
        let sum = hash_class(bytes);
        let mut known = self.lock();
        if !known.record_hash(sum) || known.classes.contains_key(&sum) {
            return;
        }
        let mut book = classes.registry_mut();
        let Some(id) = book.find_class_id(loader, class.name()) else {
            return;
        };
        book.retain_class(id);
        let twin = DuplicateClass {
            plain: bytes.into(),
            hooked: hooked.into(),
            kind: LoaderKind::for_loader(classes, loader),
            class: id,
        };
        for gone in known.insert_class(sum, twin) {
            book.release_class(gone);
        }
    }

    fn lock(&self) -> MutexGuard<'_, DuplicateClassTable> {
        self.0.lock()
    }
}

impl DuplicateClassTable {
    /// Whether a class with this sum came before, as far as is remembered.
    fn record_hash(&mut self, sum: u64) -> bool {
        if self.hashes.is_empty() {
            self.hashes = vec![0; HASH_SLOTS];
        }
        let place = self.hashes.get_mut(sum as usize % HASH_SLOTS);
        place.is_some_and(|place| std::mem::replace(place, sum) == sum)
    }

    /// The classes that are not kept any more.
    fn insert_class(&mut self, sum: u64, twin: DuplicateClass) -> Vec<u32> {
        self.bytes += twin.plain.len() + twin.hooked.len();
        self.classes.insert(sum, twin);
        self.order.push_back(sum);
        let mut gone = Vec::new();
        while self.bytes > MAX_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            if let Some(twin) = self.classes.remove(&oldest) {
                self.bytes -= twin.plain.len() + twin.hooked.len();
                gone.push(twin.class);
            }
        }
        gone
    }
}

/// Whether the class makes only objects that are as large wherever it is loaded: its own, if it extends a class of
/// the JDK, and the JDK's.
fn is_loader_independent(class: &ClassFile<'_>, shapes: &[MethodInstrumentation]) -> bool {
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
    let places = shapes.iter().flat_map(|shape| &shape.places);
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
mod tests {
    use super::*;

    fn twin(class: u32, bytes: usize) -> DuplicateClass {
        DuplicateClass {
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
        let mut known = DuplicateClassTable::default();
        assert!(!known.record_hash(5) && known.record_hash(5));
        // Another one in its place.
        assert!(!known.record_hash(5 + HASH_SLOTS as u64) && !known.record_hash(5));
        let third = MAX_BYTES / 3 + 2;
        assert!(known.insert_class(1, twin(11, third)).is_empty());
        assert!(known.insert_class(2, twin(12, third)).is_empty());
        assert_eq!(known.insert_class(3, twin(13, third)), [11]);
        assert_eq!(known.insert_class(4, twin(14, 2 * MAX_BYTES)), [12, 13, 14]);
        assert_eq!(
            (known.bytes, known.classes.len(), known.order.len()),
            (0, 0, 0)
        );
    }
}
