//! Whether the old generation was collected: the tool interface does not say.
//!
//! An object in the old generation may be garbage for hours before anybody collects it. That something
//! is still there tells nothing until the old generation was collected since. So the agent keeps a few
//! objects of its own and looks when they go:
//!
//! ```text
//! probe    no reference to it is left: it is gone after the next collection, whichever. One is a tick
//! canary   held for TICKS ticks: it is in the old generation then, at least as long as any collector
//!          lets objects age. Then let go: it is gone after the next collection of the old generation
//! ```
//! A collection that takes a canary would have taken everything that is older and to which no reference leads.
//! The VM also tells of pauses in which nothing is collected: these are no ticks.
//!
//! A collector that works beside the program counts pauses of its cycles, those that collect the whole heap apart. A
//! probe that went while there were such pauses and no others was taken by a collection of the whole heap.

use std::collections::VecDeque;

use lucce_jvmti::gc_counters::CyclePauses;

/// No collector of HotSpot lets an object survive more collections of the young generation in it: four bits.
const HELD_TICKS: u64 = 16;
/// Canaries that were let go and live; more are thinned out.
const MAX_RELEASED: usize = 64;

/// An object of ours. `R` is a reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CanaryObject<R> {
    pub strong: R,
    pub weak: R,
}

#[derive(Clone, Copy)]
struct CanaryEntry<T> {
    value: T,
    tick: u64,
    /// Collections before it was made.
    born: u64,
}

/// References that are not needed any more, weak or strong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnusedReference<R> {
    Weak(R),
    Strong(R),
}

/// An object without any other reference.
#[derive(Clone, Copy)]
struct ProbeObject<R> {
    weak: R,
    /// Collections before it was made.
    born: u64,
    pauses: Option<CyclePauses>,
}

pub struct CanarySet<R> {
    probe: Option<ProbeObject<R>>,
    held: VecDeque<CanaryEntry<CanaryObject<R>>>,
    /// Let go, the oldest first.
    released: VecDeque<CanaryEntry<R>>,
    ticks: u64,
}

/// What a look has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollectionEvidence {
    /// The old generation was collected: what was born before this collection was tested.
    pub tested: Option<u64>,
    /// There was a collection: what was born before this one has survived one.
    pub survived: Option<u64>,
    /// A new canary and a new probe are wanted.
    pub needs_objects: bool,
}

impl<R: Copy> CanarySet<R> {
    pub fn new() -> CanarySet<R> {
        CanarySet {
            probe: None,
            held: VecDeque::new(),
            released: VecDeque::new(),
            ticks: 0,
        }
    }

    /// `pauses` are those until now.
    pub fn check_collections(
        &mut self,
        is_alive: impl Fn(R) -> bool,
        freed: impl Fn(UnusedReference<R>),
        pauses: impl Fn() -> Option<CyclePauses>,
    ) -> CollectionEvidence {
        // First the canaries: one that is let go just now has not been looked for.
        let tested = self.remove_collected(&is_alive, &freed);
        let mut look = CollectionEvidence {
            tested,
            ..CollectionEvidence::default()
        };
        if let Some(probe) = self.probe.take_if(|probe| !is_alive(probe.weak)) {
            freed(UnusedReference::Weak(probe.weak));
            self.ticks += 1;
            look.survived = Some(probe.born);
            if is_full_collection(probe.pauses, pauses()) {
                look.tested = look.tested.max(Some(probe.born));
            }
        }
        self.release_old_canaries(&freed);
        look.needs_objects = self.probe.is_none();
        look
    }

    /// The birth of the youngest canary that is gone.
    fn remove_collected(
        &mut self,
        is_alive: &impl Fn(R) -> bool,
        freed: &impl Fn(UnusedReference<R>),
    ) -> Option<u64> {
        let oldest = self.released.front()?;
        if is_alive(oldest.value) {
            return None;
        }
        let mut tested = oldest.born;
        while let Some(canary) =
            pop_front_when(&mut self.released, |canary| !is_alive(canary.value))
        {
            tested = canary.born;
            freed(UnusedReference::Weak(canary.value));
        }
        Some(tested)
    }

    fn release_old_canaries(&mut self, freed: &impl Fn(UnusedReference<R>)) {
        let is_old = |canary: &CanaryEntry<_>| self.ticks - canary.tick >= HELD_TICKS;
        while let Some(canary) = pop_front_when(&mut self.held, is_old) {
            freed(UnusedReference::Strong(canary.value.strong));
            self.released.push_back(CanaryEntry {
                value: canary.value.weak,
                tick: canary.tick,
                born: canary.born,
            });
        }
        if self.released.len() > MAX_RELEASED {
            // The oldest says when there was one, the youngest says most.
            let mut stays = false;
            let last = self.released.len() - 1;
            let mut at = 0;
            self.released.retain(|canary| {
                stays = !stays || at == last;
                at += 1;
                if !stays {
                    freed(UnusedReference::Weak(canary.value));
                }
                stays
            });
        }
    }

    /// Nothing is looked for any more.
    pub fn release_all(&mut self, freed: &impl Fn(UnusedReference<R>)) {
        self.probe
            .take()
            .into_iter()
            .for_each(|probe| freed(UnusedReference::Weak(probe.weak)));
        for canary in self.held.drain(..) {
            freed(UnusedReference::Strong(canary.value.strong));
            freed(UnusedReference::Weak(canary.value.weak));
        }
        self.released
            .drain(..)
            .for_each(|canary| freed(UnusedReference::Weak(canary.value)));
    }

    /// What was wanted; `born`: collections before both were made, `pauses`: those until then.
    pub fn add_canary_and_probe(
        &mut self,
        (canary, probe): (CanaryObject<R>, R),
        born: u64,
        pauses: Option<CyclePauses>,
    ) {
        self.probe = Some(ProbeObject {
            weak: probe,
            born,
            pauses,
        });
        self.held.push_back(CanaryEntry {
            value: canary,
            tick: self.ticks,
            born,
        });
    }
}

/// Whether there were pauses of cycles that collect the whole heap, and no others.
fn is_full_collection(before: Option<CyclePauses>, after: Option<CyclePauses>) -> bool {
    before
        .zip(after)
        .is_some_and(|(before, after)| after.major > before.major && after.minor == before.minor)
}

fn pop_front_when<T>(queue: &mut VecDeque<T>, wanted: impl Fn(&T) -> bool) -> Option<T> {
    match queue.front().is_some_and(wanted) {
        true => queue.pop_front(),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashSet;

    use super::*;

    /// A heap with two generations: (id, collections survived, referred to by us).
    #[derive(Default)]
    struct Heap {
        objects: Vec<(u32, u32)>,
        strong: HashSet<u32>,
        next: u32,
        collections: u64,
    }

    /// Objects survive so many collections before they are old.
    const AGE: u32 = 15;

    impl Heap {
        fn make(&mut self) -> u32 {
            self.next += 1;
            self.objects.push((self.next, 0));
            self.next
        }

        fn collect(&mut self, old_too: bool) {
            let strong = &self.strong;
            self.objects
                .retain(|(id, age)| strong.contains(id) || *age >= AGE && !old_too);
            self.objects.iter_mut().for_each(|(_, age)| *age += 1);
            self.collections += 1;
        }

        /// A pause that collects nothing.
        fn pause(&mut self) {
            self.collections += 1;
        }
    }

    struct World {
        heap: RefCell<Heap>,
        canaries: CanarySet<u32>,
        /// Collections of the old generation that were noticed.
        old: u64,
        /// Of a collector that works beside the program.
        pauses: Option<CyclePauses>,
    }

    impl World {
        fn new() -> World {
            World {
                heap: RefCell::default(),
                canaries: CanarySet::new(),
                old: 0,
                pauses: None,
            }
        }

        fn look(&mut self) -> Option<u64> {
            let alive = |id| {
                self.heap
                    .borrow()
                    .objects
                    .iter()
                    .any(|(known, _)| *known == id)
            };
            let freed = |freed| {
                if let UnusedReference::Strong(id) = freed {
                    assert!(self.heap.borrow_mut().strong.remove(&id));
                }
            };
            let look = self
                .canaries
                .check_collections(alive, freed, || self.pauses);
            if look.needs_objects {
                let mut heap = self.heap.borrow_mut();
                let (id, probe) = (heap.make(), heap.make());
                heap.strong.insert(id);
                let canary = CanaryObject {
                    strong: id,
                    weak: id,
                };
                let born = heap.collections;
                self.canaries
                    .add_canary_and_probe((canary, probe), born, self.pauses);
            }
            self.old += u64::from(look.tested.is_some());
            look.tested
        }
    }

    #[test]
    fn collections_of_the_young_generation_are_not_taken_for_others() {
        let mut world = World::new();
        for _ in 0..500 {
            assert_eq!(world.look(), None);
            world.heap.borrow_mut().collect(false);
            // Pauses in which nothing is collected.
            (0..3).for_each(|_| world.heap.borrow_mut().pause());
        }
        assert_eq!(world.old, 0);
        assert!(world.canaries.released.len() <= MAX_RELEASED + 1);
        assert!(world.heap.borrow().strong.len() <= HELD_TICKS as usize + 1);
    }

    #[test]
    fn every_collection_of_the_old_generation_is_noticed_once() {
        let mut world = World::new();
        for n in 1..=300_u64 {
            world.look();
            world.heap.borrow_mut().collect(n % 30 == 0);
        }
        world.look();
        assert_eq!(world.old, 10);
    }

    /// Of a collector that works beside the program the first cycle of the whole heap is enough.
    #[test]
    fn a_cycle_of_the_whole_heap_is_noticed_at_once() {
        let mut world = World::new();
        let pauses = |major, minor| Some(CyclePauses { major, minor });
        world.pauses = pauses(0, 0);
        world.look();
        world.heap.borrow_mut().collect(true);
        world.pauses = pauses(3, 0);
        assert_eq!(world.look(), Some(0));
        // One of the young generation alone, and both between two looks.
        world.heap.borrow_mut().collect(false);
        world.pauses = pauses(3, 3);
        assert_eq!(world.look(), None);
        world.heap.borrow_mut().collect(true);
        world.pauses = pauses(6, 6);
        assert_eq!(world.look(), None);
    }

    /// Garbage that is as old as what was tested is gone.
    #[test]
    fn what_was_tested_was_collected() {
        let mut world = World::new();
        let mut garbage = Vec::new();
        let mut noticed = 0;
        for n in 1..=400_u64 {
            let tested = world.look();
            let mut heap = world.heap.borrow_mut();
            if let Some(tested) = tested {
                noticed += 1;
                assert!(tested + 2 * HELD_TICKS + 64 > heap.collections, "{tested}");
                let known: HashSet<u32> = heap.objects.iter().map(|(id, _)| *id).collect();
                let lie = |(born, id): &(u64, u32)| *born < tested && known.contains(id);
                assert!(!garbage.iter().any(lie));
            }
            // Made, referred to for a while, then not any more.
            let id = heap.make();
            heap.strong.insert(id);
            garbage.push((heap.collections, id));
            if let Some(index) = garbage.len().checked_sub(16) {
                let (_, id) = garbage[index];
                heap.strong.remove(&id);
            }
            heap.collect(n % 37 == 0);
        }
        assert!(noticed >= 9, "{noticed}");
    }
}
