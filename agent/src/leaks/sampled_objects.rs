//! A table of fixed size with sampled objects, which are followed until they die.
//!
//! A sampled object represents others that were not sampled. An object of `size` bytes is sampled with probability
//! 1 − e^(−size / interval). It represents as many objects as the reciprocal (Horvitz and Thompson, "A generalization of
//! sampling without replacement from a finite universe", JASA 47, 1952).
//!
//! If the table is full of living objects, every second one is dropped, in the order of context and age. A coin decides whether
//! the first or the second one goes. So each object has the same chance to stay, and each context and age keeps its share. From
//! then on only every second sampled object is followed, at random, and each represents twice as many.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use lucce_callgraph::ContextId;
use lucce_tracelog::SurvivorGeneration;

/// Context and type of an allocation.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct AllocationOrigin {
    pub context: ContextId,
    /// The type's descriptor.
    pub descriptor: Box<str>,
}

/// The state of an origin, by its key in the log.
#[derive(Debug)]
struct OriginState {
    origin: Arc<AllocationOrigin>,
    /// The log has the record that names it.
    is_written: bool,
    objects: u32,
}

struct SampledObject<R> {
    reference: R,
    key: u32,
    /// Number of collections before its creation.
    born: u64,
    size: u64,
}

/// The followed objects; see the module. `R` is a weak reference to an object.
pub struct SampledObjectTable<R> {
    capacity: usize,
    interval: u64,
    objects: Vec<SampledObject<R>>,
    key_by_origin: HashMap<Arc<AllocationOrigin>, u32>,
    origins: HashMap<u32, OriginState>,
    next_key: u32,
    thinned: u32,
    random: XorshiftRandom,
}

/// The objects of one type that were created in a context.
#[derive(PartialEq, Debug)]
pub struct SampledObjectsOfType<R> {
    /// The type's descriptor.
    pub descriptor: Box<str>,
    pub objects: Vec<AgedReference<R>>,
}

/// A reference to an object, with the object's age.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AgedReference<R> {
    /// Number of collections before its creation.
    pub born: u64,
    pub reference: R,
}

/// The living objects of one origin.
#[derive(Clone, PartialEq, Debug)]
pub struct SurvivorRow {
    pub key: u32,
    /// Number of objects that they represent, and their bytes.
    pub objects: u64,
    pub bytes: u64,
    pub generations: Vec<SurvivorGeneration>,
}

impl<R: Copy> SampledObjectTable<R> {
    /// At most `capacity` objects. `interval`: mean number of bytes between two sampled allocations.
    pub fn new(capacity: usize, interval: u64) -> SampledObjectTable<R> {
        SampledObjectTable {
            capacity,
            interval,
            objects: Vec::new(),
            key_by_origin: HashMap::new(),
            origins: HashMap::new(),
            next_key: 0,
            thinned: 0,
            random: XorshiftRandom::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// How often half of the objects were dropped.
    pub fn thinning_count(&self) -> u32 {
        self.thinned
    }

    /// Draws whether the next sampled object is followed.
    pub fn draws_next_object(&mut self) -> bool {
        self.random.is_one_in_power(self.thinned)
    }

    pub fn is_full(&self) -> bool {
        self.objects.len() >= self.capacity
    }

    /// Follows an object of `size` bytes. `born`: number of collections before its creation.
    pub fn add_object(&mut self, place: AllocationOrigin, born: u64, size: u64, reference: R) {
        let key = self.resolve_key(place);
        if let Some(known) = self.origins.get_mut(&key) {
            known.objects += 1;
        }
        self.objects.push(SampledObject {
            reference,
            key,
            born,
            size,
        });
    }

    fn resolve_key(&mut self, place: AllocationOrigin) -> u32 {
        if let Some(&known) = self.key_by_origin.get(&place) {
            return known;
        }
        self.drop_unused_origins();
        self.next_key += 1;
        let (key, place) = (self.next_key, Arc::new(place));
        let state = OriginState {
            origin: Arc::clone(&place),
            is_written: false,
            objects: 0,
        };
        self.key_by_origin.insert(place, key);
        self.origins.insert(key, state);
        key
    }

    /// Drops origins without objects when there are many. Most get objects again.
    fn drop_unused_origins(&mut self) {
        if self.key_by_origin.len() < 2 * self.capacity {
            return;
        }
        self.origins.retain(|_, known| known.objects > 0);
        let places = &self.origins;
        self.key_by_origin.retain(|_, key| places.contains_key(key));
    }

    /// Removes dead objects; `free` gets their references.
    pub fn remove_dead_objects(&mut self, is_alive: impl Fn(R) -> bool, free: impl Fn(R)) {
        let places = &mut self.origins;
        self.objects.retain(|object| {
            let alive = is_alive(object.reference);
            if !alive {
                free(object.reference);
                decrement_objects(places, object.key);
            }
            alive
        });
    }

    /// The objects of some contexts by type, or of type `of` only; the oldest first.
    pub fn find_by_contexts(
        &self,
        contexts: &[ContextId],
        of: Option<&str>,
    ) -> Vec<SampledObjectsOfType<R>> {
        let is_it = |place: &AllocationOrigin| {
            contexts.contains(&place.context) && of.is_none_or(|of| *place.descriptor == *of)
        };
        let mut by_type: BTreeMap<&str, SampledObjectsOfType<R>> = BTreeMap::new();
        for object in &self.objects {
            if let Some(known) = self.origins.get(&object.key)
                && is_it(&known.origin)
            {
                let of_type = by_type.entry(&known.origin.descriptor).or_insert_with(|| {
                    SampledObjectsOfType {
                        descriptor: known.origin.descriptor.clone(),
                        objects: Vec::new(),
                    }
                });
                of_type.objects.push(AgedReference {
                    born: object.born,
                    reference: object.reference,
                });
            }
        }
        let mut by_type: Vec<_> = by_type.into_values().collect();
        for of_type in &mut by_type {
            of_type.objects.sort_by_key(|object| object.born);
        }
        by_type
    }

    /// Makes room after dead objects were removed, if necessary; `free` gets the references of dropped objects.
    pub fn thin_out(&mut self, free: impl Fn(R)) {
        // Otherwise the table would be full again too soon.
        if self.objects.len() <= self.capacity - self.capacity / 8 {
            return;
        }
        self.thinned += 1;
        self.objects.sort_by_key(|object| (object.key, object.born));
        let mut stays = self.random.is_one_in_power(1);
        let places = &mut self.origins;
        self.objects.retain(|object| {
            stays = !stays;
            if !stays {
                free(object.reference);
                decrement_objects(places, object.key);
            }
            stays
        });
    }

    /// The living objects by origin whose number of collections before birth is in `born`.
    pub fn survivor_rows(
        &self,
        born: Range<u64>,
        is_alive: impl Fn(R) -> bool,
    ) -> Vec<SurvivorRow> {
        let mut rows: BTreeMap<u32, (f64, f64, BTreeMap<u64, u32>)> = BTreeMap::new();
        let is_meant =
            |object: &&SampledObject<R>| born.contains(&object.born) && is_alive(object.reference);
        for object in self.objects.iter().filter(is_meant) {
            let (objects, bytes, generations) = rows.entry(object.key).or_default();
            let stands_for = self.represented_objects(object.size);
            *objects += stands_for;
            *bytes += stands_for * object.size as f64;
            *generations.entry(object.born).or_default() += 1;
        }
        let row = |(key, (objects, bytes, generations)): (u32, (f64, f64, BTreeMap<u64, u32>))| {
            let generation = |(born, objects)| SurvivorGeneration { born, objects };
            SurvivorRow {
                key,
                objects: objects.round() as u64,
                bytes: bytes.round() as u64,
                generations: generations.into_iter().map(generation).collect(),
            }
        };
        rows.into_iter().map(row).collect()
    }

    /// The number of objects that an object of `size` bytes represents.
    fn represented_objects(&self, size: u64) -> f64 {
        let sampled = match self.interval {
            0 => 1.0,
            interval => -(-(size as f64) / interval as f64).exp_m1(),
        };
        f64::from(self.thinned).exp2() / sampled.max(f64::MIN_POSITIVE)
    }

    /// The origin of a row, unless the log has its record.
    pub fn unwritten_origin(&self, key: u32) -> Option<Arc<AllocationOrigin>> {
        let state = self.origins.get(&key)?;
        (!state.is_written).then(|| Arc::clone(&state.origin))
    }

    /// Marks that the log has the origin's record.
    pub fn mark_origin_written(&mut self, key: u32) {
        if let Some(known) = self.origins.get_mut(&key) {
            known.is_written = true;
        }
    }
}

fn decrement_objects(places: &mut HashMap<u32, OriginState>, key: u32) {
    if let Some(known) = places.get_mut(&key) {
        known.objects -= 1;
    }
}

/// Marsaglia's xorshift generator: sufficient for coin flips.
struct XorshiftRandom(u64);

impl Default for XorshiftRandom {
    fn default() -> XorshiftRandom {
        XorshiftRandom(0x9e37_79b9_7f4a_7c15)
    }
}

impl XorshiftRandom {
    /// True with probability 1 / 2^`times`.
    fn is_one_in_power(&mut self, times: u32) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let high = self.0 >> 11;
        high.trailing_zeros() >= times
    }
}

#[cfg(test)]
mod sampled_objects_tests {
    use std::cell::RefCell;

    use super::*;

    fn place(context: u64, of: &str) -> AllocationOrigin {
        AllocationOrigin {
            context: ContextId(context),
            descriptor: of.into(),
        }
    }

    fn generation(born: u64, objects: u32) -> SurvivorGeneration {
        SurvivorGeneration { born, objects }
    }

    #[test]
    fn the_living_are_counted_by_place_and_age() {
        let mut followed = SampledObjectTable::new(100, 0);
        for (context, of, born, size, reference) in [
            (1, "[B", 0, 24, 1),
            (1, "[B", 0, 40, 2),
            (1, "[B", 5, 16, 3),
            (1, "LA;", 5, 16, 4),
            (2, "[B", 7, 16, 5),
            (2, "[B", 8, 16, 6),
        ] {
            followed.add_object(place(context, of), born, size, reference);
        }
        let gone = RefCell::new(Vec::new());
        followed.remove_dead_objects(|reference| reference != 4, |r| gone.borrow_mut().push(r));
        assert_eq!(*gone.borrow(), [4]);
        let row = |key, objects, bytes, generations| SurvivorRow {
            key,
            objects,
            bytes,
            generations,
        };
        let first = row(1, 3, 80, vec![generation(0, 2), generation(5, 1)]);
        let last = row(3, 1, 16, vec![generation(7, 1)]);
        assert_eq!(followed.survivor_rows(0..8, |_| true), [first, last]);
        let young = row(1, 1, 16, vec![generation(5, 1)]);
        assert_eq!(
            followed.survivor_rows(1..8, |reference| reference != 5),
            [young]
        );
        assert_eq!(followed.unwritten_origin(3).unwrap().context, ContextId(2));
        followed.mark_origin_written(3);
        assert!(followed.unwritten_origin(3).is_none());
    }

    /// One line may allocate many types.
    #[test]
    fn objects_of_a_context_are_counted_by_type() {
        let mut followed = SampledObjectTable::new(100, 0);
        for (context, of, born, reference) in [
            (1, "LNode;", 7, 1),
            (1, "[J", 3, 2),
            (2, "LNode;", 0, 3),
            (1, "LNode;", 5, 4),
        ] {
            followed.add_object(place(context, of), born, 16, reference);
        }
        let of_type = |of: &str, objects: &[(u64, i32)]| SampledObjectsOfType {
            descriptor: of.into(),
            objects: objects
                .iter()
                .map(|&(born, reference)| AgedReference { born, reference })
                .collect(),
        };
        let (nodes, arrays) = (
            of_type("LNode;", &[(5, 4), (7, 1)]),
            of_type("[J", &[(3, 2)]),
        );
        assert_eq!(
            followed.find_by_contexts(&[ContextId(1)], Some("[J")),
            [arrays]
        );
        let arrays = of_type("[J", &[(3, 2)]);
        assert_eq!(
            followed.find_by_contexts(&[ContextId(1)], None),
            [nodes, arrays]
        );
        assert_eq!(
            followed.find_by_contexts(&[ContextId(1)], Some("LNod;")),
            []
        );
        // Objects of several contexts are merged.
        let all = of_type("LNode;", &[(0, 3), (5, 4), (7, 1)]);
        let both = [ContextId(2), ContextId(1)];
        assert_eq!(followed.find_by_contexts(&both, Some("LNode;")), [all]);
    }

    /// Objects are sampled like the VM does it. The sampled objects of each size represent all objects of that size.
    #[test]
    fn sampled_objects_stand_for_those_that_are_not() {
        let mut random = XorshiftRandom::default();
        for size in [16_u64, 500, 4_000, 50_000] {
            const INTERVAL: u64 = 1_000;
            const ALL: u64 = 40_000;
            let mut followed = SampledObjectTable::new(1 << 20, INTERVAL);
            let mut left = 0.0;
            for n in 0..ALL {
                left -= size as f64;
                if left < 0.0 {
                    random.is_one_in_power(0);
                    let unit = (random.0 >> 11) as f64 / (1_u64 << 53) as f64;
                    // The distance to the next sample is memoryless.
                    left = -(1.0 - unit).ln() * INTERVAL as f64;
                    followed.add_object(place(1, "[B"), 0, size, n);
                }
            }
            let rows = followed.survivor_rows(0..1, |_| true);
            let (objects, bytes) = (rows[0].objects as f64, rows[0].bytes as f64);
            let ratio = objects / ALL as f64;
            assert!((0.9..1.1).contains(&ratio), "{size}: {ratio}");
            assert!((bytes / objects - size as f64).abs() < 0.01 * size as f64);
        }
    }

    #[test]
    fn room_is_made_in_a_fair_way() {
        const CAPACITY: usize = 4_000;
        let mut followed = SampledObjectTable::new(CAPACITY, 0);
        let (mut n, freed) = (0_u64, RefCell::new(0));
        // Three of four are of context 1; a hundred of each age.
        while followed.thinning_count() < 5 {
            let context = if n % 4 == 0 { 2 } else { 1 };
            if followed.draws_next_object() {
                followed.add_object(place(context, "[B"), n / 100, 16, n);
            }
            n += 1;
            if followed.is_full() {
                followed.remove_dead_objects(|_| true, |_| unreachable!());
                followed.thin_out(|_| *freed.borrow_mut() += 1);
                assert!(followed.len() <= CAPACITY / 2 + 1);
            }
        }
        assert!(*freed.borrow() >= 5 * CAPACITY / 2 - CAPACITY);
        let rows = followed.survivor_rows(0..u64::MAX, |_| true);
        let all = rows[0].objects + rows[1].objects;
        // The followed objects represent all objects, each context with its share.
        assert!((all as f64 / n as f64 - 1.0).abs() < 0.1, "{all} of {n}");
        let share = rows.iter().find(|row| row.key == 1).unwrap().objects as f64 / all as f64;
        assert!((share - 0.25).abs() < 0.03, "{share}");
        // So does each range of ages.
        let old = |g: &&SurvivorGeneration| g.born < n / 200;
        let ages = rows.iter().flat_map(|row| &row.generations);
        let (old, young): (Vec<_>, Vec<_>) = ages.partition(old);
        let count =
            |of: &[&SurvivorGeneration]| of.iter().map(|g| f64::from(g.objects)).sum::<f64>();
        let ratio = count(&old) / count(&young);
        assert!((0.85..1.15).contains(&ratio), "{ratio}");
    }

    #[test]
    fn dead_objects_make_room_before_living_ones_are_let_go() {
        let mut followed = SampledObjectTable::new(64, 0);
        for round in 0..50_u64 {
            while !followed.is_full() {
                assert!(followed.draws_next_object());
                followed.add_object(place(round, "[B"), round, 16, round);
            }
            followed.remove_dead_objects(|reference| reference == round && round % 2 == 1, |_| ());
            if round % 2 == 0 {
                followed.thin_out(|_| unreachable!("nothing lives"));
                assert_eq!((followed.len(), followed.thinning_count()), (0, 0));
            } else {
                followed.remove_dead_objects(|_| false, |_| ());
            }
        }
    }

    #[test]
    fn places_are_forgotten_when_there_are_many() {
        let mut followed = SampledObjectTable::new(8, 0);
        for n in 0..1_000 {
            followed.add_object(place(n, "[B"), n, 16, n);
            followed.remove_dead_objects(|reference| reference == 0 || reference == n, |_| ());
        }
        assert!(
            followed.key_by_origin.len() <= 16
                && followed.origins.len() == followed.key_by_origin.len()
        );
        // An origin with living objects keeps its key.
        assert_eq!(followed.survivor_rows(0..1, |_| true)[0].key, 1);
    }
}
