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

use crate::book::Loader;
use crate::classes::Classes;
use crate::memory::counter::count;
use crate::memory::locks::WatchedMutex;
use lucce_hooks::{Mark, Shape};

/// How many sums are kept.
const SUMS: usize = 1 << 16;
/// How many bytes of classes are kept.
const MOST: usize = 32 << 20;

#[derive(Default)]
pub struct Twins(WatchedMutex<Known>);

#[derive(Default)]
struct Known {
    /// Of classes that came, by their low bits; 0: none.
    sums: Vec<u64>,
    twins: FxHashMap<u64, Twin>,
    /// Their sums, the oldest first.
    order: VecDeque<u64>,
    bytes: usize,
}

struct Twin {
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
    fn of(classes: &Classes, loader: Loader) -> LoaderKind {
        LoaderKind {
            is_trusted: classes.loaders.is_trusted(loader),
            is_own: classes.loaders.is_own(loader),
        }
    }
}

impl Twins {
    /// The class with its hooks, if it came before; the loader has it now.
    pub fn find(&self, classes: &Classes, loader: Loader, bytes: &[u8]) -> Option<Vec<u8>> {
        if loader == Loader::BOOT {
            return None;
        }
        let kind = LoaderKind::of(classes, loader);
        let known = self.lock();
        let twin = known.twins.get(&sum(bytes))?;
        // The bytes decide: sums may be equal by chance.
        if *twin.plain != *bytes || twin.kind != kind {
            return None;
        }
        let mut book = classes.book_mut();
        book.give_once(loader, twin.class);
        if let Some(class) = book.class(twin.class) {
            classes.watch.forget(loader, book.text(class.name));
        }
        drop(book);
        count(&classes.counts.classes);
        Some(twin.hooked.to_vec())
    }

    /// A class has got its hooks.
    pub fn met(
        &self,
        classes: &Classes,
        loader: Loader,
        (class, bytes): (&ClassFile<'_>, &[u8]),
        shapes: &[Shape],
        hooked: &[u8],
    ) {
        if loader == Loader::BOOT || !is_everywhere_the_same(class, shapes) {
            return;
        }
        let sum = sum(bytes);
        let mut known = self.lock();
        if !known.has_come(sum) || known.twins.contains_key(&sum) {
            return;
        }
        let mut book = classes.book_mut();
        let Some(id) = book.class_id(loader, class.name()) else {
            return;
        };
        book.hold(id);
        let twin = Twin {
            plain: bytes.into(),
            hooked: hooked.into(),
            kind: LoaderKind::of(classes, loader),
            class: id,
        };
        for gone in known.keep(sum, twin) {
            book.let_go(gone);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock()
    }
}

impl Known {
    /// Whether a class with this sum came before, as far as is remembered.
    fn has_come(&mut self, sum: u64) -> bool {
        if self.sums.is_empty() {
            self.sums = vec![0; SUMS];
        }
        let place = self.sums.get_mut(sum as usize % SUMS);
        place.is_some_and(|place| std::mem::replace(place, sum) == sum)
    }

    /// The classes that are not kept any more.
    fn keep(&mut self, sum: u64, twin: Twin) -> Vec<u32> {
        self.bytes += twin.plain.len() + twin.hooked.len();
        self.twins.insert(sum, twin);
        self.order.push_back(sum);
        let mut gone = Vec::new();
        while self.bytes > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            if let Some(twin) = self.twins.remove(&oldest) {
                self.bytes -= twin.plain.len() + twin.hooked.len();
                gone.push(twin.class);
            }
        }
        gone
    }
}

/// Whether the class makes only objects that are as large wherever it is loaded: its own, if it extends a class of
/// the JDK, and the JDK's.
fn is_everywhere_the_same(class: &ClassFile<'_>, shapes: &[Shape]) -> bool {
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
    places.into_iter().all(|place| match &place.mark {
        Mark::New(of) => of_java(of),
        _ => true,
    })
}

fn sum(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.write_usize(bytes.len());
    hasher.finish().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twin(class: u32, bytes: usize) -> Twin {
        Twin {
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
        let mut known = Known::default();
        assert!(!known.has_come(5) && known.has_come(5));
        // Another one in its place.
        assert!(!known.has_come(5 + SUMS as u64) && !known.has_come(5));
        let third = MOST / 3 + 2;
        assert!(known.keep(1, twin(11, third)).is_empty());
        assert!(known.keep(2, twin(12, third)).is_empty());
        assert_eq!(known.keep(3, twin(13, third)), [11]);
        assert_eq!(known.keep(4, twin(14, 2 * MOST)), [12, 13, 14]);
        assert_eq!(
            (known.bytes, known.twins.len(), known.order.len()),
            (0, 0, 0)
        );
    }
}
