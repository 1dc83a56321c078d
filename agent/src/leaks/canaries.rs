//! Detects collections of the old generation, which JVMTI does not report.
//!
//! An object in the old generation may be garbage for hours before it is collected. So a present object proves nothing until the
//! old generation has been collected. Therefore the agent keeps a few objects of its own and watches when they disappear:
//!
//! ```text
//! probe    has no strong reference: it disappears with the next collection of any kind. Each one is a tick
//! canary   is held for HELD_TICKS ticks. Then it is in the old generation: no collector lets objects age longer.
//!          Then it is released, and disappears with the next collection of the old generation
//! ```
//! A collection that takes a canary would have taken every older object without references. The VM also reports pauses that
//! collect nothing: these are no ticks.
//!
//! A concurrent collector counts the pauses of its cycles, and cycles of the whole heap separately. If only cycles of the whole
//! heap had pauses while a probe disappeared, a collection of the whole heap has taken it.

use std::collections::VecDeque;

use lucce_jvmti::gc_counters::CyclePauses;

/// No collector of HotSpot keeps an object in the young generation for more collections: its age has four bits.
const HELD_TICKS: u64 = 16;
/// Maximum number of released canaries that are alive; beyond it, they are thinned out.
const MAX_RELEASED: usize = 64;

/// An object of the agent. `R` is a reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CanaryObject<R> {
    pub strong: R,
    pub weak: R,
}

#[derive(Clone, Copy)]
struct CanaryEntry<T> {
    value: T,
    tick: u64,
    /// Number of collections before its creation.
    born: u64,
}

/// References that are not needed any more, to be deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnusedReference<R> {
    Weak(R),
    Strong(R),
}

/// An object without a strong reference.
#[derive(Clone, Copy)]
struct ProbeObject<R> {
    weak: R,
    /// Number of collections before its creation.
    born: u64,
    pauses: Option<CyclePauses>,
}

/// The probe and the canaries.
pub struct CanarySet<R> {
    probe: Option<ProbeObject<R>>,
    held: VecDeque<CanaryEntry<CanaryObject<R>>>,
    /// Released canaries, the oldest first.
    released: VecDeque<CanaryEntry<R>>,
    ticks: u64,
}

/// What a check has proven.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollectionEvidence {
    /// The old generation was collected: objects born before this collection were tested.
    pub tested: Option<u64>,
    /// There was a collection: objects born before this one have survived a collection.
    pub survived: Option<u64>,
    /// A new canary and a new probe are needed.
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

    /// Checks probe and canaries. `pauses` returns the present counts.
    pub fn check_collections(
        &mut self,
        is_alive: impl Fn(R) -> bool,
        freed: impl Fn(UnusedReference<R>),
        pauses: impl Fn() -> Option<CyclePauses>,
    ) -> CollectionEvidence {
        // Canaries come first: a canary that is released below was not checked yet.
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

    /// Removes canaries that have disappeared. Returns the birth of the youngest one.
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
            // The oldest detects the next collection, the youngest proves most.
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

    /// Deletes all references.
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

    /// Adds the needed objects. `born`: number of collections before both were created. `pauses`: the counts at that time.
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

/// Whether only cycles that collect the whole heap had pauses.
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
mod canaries_tests {
    use std::cell::RefCell;
    use std::collections::HashSet;

    use super::*;

    /// A heap with two generations: (id, survived collections, strong reference of the agent).
    #[derive(Default)]
    struct Heap {
        objects: Vec<(u32, u32)>,
        strong: HashSet<u32>,
        next: u32,
        collections: u64,
    }

    /// Objects are old after this number of collections.
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
        /// Detected collections of the old generation.
        old: u64,
        /// The pauses of a concurrent collector.
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
            // Pauses that collect nothing.
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

    /// With a concurrent collector, the first cycle of the whole heap suffices.
    #[test]
    fn a_cycle_of_the_whole_heap_is_noticed_at_once() {
        let mut world = World::new();
        let pauses = |major, minor| Some(CyclePauses { major, minor });
        world.pauses = pauses(0, 0);
        world.look();
        world.heap.borrow_mut().collect(true);
        world.pauses = pauses(3, 0);
        assert_eq!(world.look(), Some(0));
        // A cycle of the young generation alone, and both between two checks.
        world.heap.borrow_mut().collect(false);
        world.pauses = pauses(3, 3);
        assert_eq!(world.look(), None);
        world.heap.borrow_mut().collect(true);
        world.pauses = pauses(6, 6);
        assert_eq!(world.look(), None);
    }

    /// Garbage as old as the tested objects is gone.
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
                let living: HashSet<u32> = heap.objects.iter().map(|(id, _)| *id).collect();
                let lie = |(born, id): &(u64, u32)| *born < tested && living.contains(id);
                assert!(!garbage.iter().any(lie));
            }
            // Created, referenced for a while, then no longer.
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
