//! Live objects by context, type and age class, without a proof that they will stay.

use std::cmp::Reverse;
use std::collections::HashMap;

use lucce_callgraph::ContextId;
use lucce_tracelog::{HeapCensus, LogDamage, SurvivorGeneration};

use crate::followed_objects::LiveObjectCensus;
use crate::leaks::TracedType;
use crate::leaks::resolve_object_keys;
use crate::profile::{Profile, ProgressTick};

/// All objects that were live at a census, most bytes first.
#[derive(Clone, PartialEq, Debug)]
pub struct AliveObjects {
    pub census: HeapCensus<'static>,
    pub rows: Vec<AliveRow>,
    /// Set if a row has a context id that the log does not explain.
    pub damage: Option<LogDamage>,
}

/// Live objects of one type that were allocated in one context.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AliveRow {
    /// The smallest context id of the trace.
    pub id: ContextId,
    /// Its other context ids.
    pub aliases: Vec<ContextId>,
    /// The Java name of the type.
    pub type_name: String,
    /// In the order of [`AgeClass::ALL`].
    pub ages: [AliveAmount; 3],
}

/// Age class of a live object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgeClass {
    /// It survived a collection of the old generation.
    Old,
    /// It survived a collection.
    Survived,
    /// No collection has run since its allocation.
    New,
}

/// Estimated objects and bytes, extrapolated from sampled objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AliveAmount {
    pub followed: u64,
    pub objects: u64,
    pub bytes: u64,
}

impl AgeClass {
    pub const ALL: [AgeClass; 3] = [AgeClass::Old, AgeClass::Survived, AgeClass::New];

    /// The age class of objects allocated after `born` collections.
    fn from_birth(at: &HeapCensus<'_>, born: u64) -> AgeClass {
        match born {
            born if born < at.tested => AgeClass::Old,
            born if born < at.survived => AgeClass::Survived,
            _ => AgeClass::New,
        }
    }
}

impl AliveAmount {
    fn add_amount(&mut self, other: AliveAmount) {
        self.followed = self.followed.saturating_add(other.followed);
        self.objects = self.objects.saturating_add(other.objects);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl AliveRow {
    /// The sum of all ages.
    #[must_use]
    pub fn total_amount(&self) -> AliveAmount {
        let mut total = AliveAmount::default();
        self.ages
            .into_iter()
            .for_each(|amount| total.add_amount(amount));
        total
    }
}

impl AliveObjects {
    /// The sum of all rows.
    #[must_use]
    pub fn total_amount(&self) -> AliveAmount {
        let mut total = AliveAmount::default();
        self.rows
            .iter()
            .for_each(|row| total.add_amount(row.total_amount()));
        total
    }
}

/// Lists the objects that were live at a census of this log. Calls `tick` with the number of decoded ids.
#[must_use]
pub fn list_alive_objects(
    profile: &Profile,
    census: &LiveObjectCensus,
    tick: ProgressTick<'_>,
) -> AliveObjects {
    let keys = census.rows.iter().map(|row| row.key);
    let (places, damage) = resolve_object_keys(profile, keys, tick);
    let mut rows: HashMap<&TracedType, AliveRow> = HashMap::new();
    for row in &census.rows {
        let Some((id, place)) = places.get(&row.key) else {
            continue;
        };
        let alive = rows.entry(place).or_insert_with(|| AliveRow {
            id: *id,
            aliases: Vec::new(),
            type_name: place.1.clone(),
            ages: Default::default(),
        });
        alive.aliases.push(*id);
        let born = row.generations.first().map_or(u64::MAX, |first| first.born);
        let class = AgeClass::from_birth(&census.record, born);
        if let Some(amount) = alive.ages.get_mut(class as usize) {
            amount.add_amount(AliveAmount {
                followed: count_followed_objects(&row.generations),
                objects: row.objects,
                bytes: row.bytes,
            });
        }
    }
    let mut rows: Vec<AliveRow> = rows.into_values().map(AliveRow::with_smallest_id).collect();
    rows.sort_by(|a, b| {
        let key = |row: &AliveRow| (Reverse(row.total_amount().bytes), row.id);
        key(a)
            .cmp(&key(b))
            .then_with(|| a.type_name.cmp(&b.type_name))
    });
    AliveObjects {
        census: census.record.clone(),
        rows,
        damage,
    }
}

impl AliveRow {
    /// Sets `id` and `aliases`, given aliases with all ids of the row and duplicates.
    fn with_smallest_id(mut self) -> AliveRow {
        self.aliases.sort_unstable();
        self.aliases.dedup();
        self.id = self.aliases.remove(0);
        self
    }
}

fn count_followed_objects(generations: &[SurvivorGeneration]) -> u64 {
    let objects = generations.iter().map(|g| u64::from(g.objects));
    objects.sum()
}

#[cfg(test)]
mod alive_tests {
    use super::*;

    #[test]
    fn ages_have_three_classes() {
        let at = HeapCensus {
            tested: 5,
            survived: 8,
            ..HeapCensus::default()
        };
        let class = |born| AgeClass::from_birth(&at, born);
        assert_eq!([class(0), class(4)], [AgeClass::Old; 2]);
        assert_eq!([class(5), class(7)], [AgeClass::Survived; 2]);
        assert_eq!([class(8), class(u64::MAX)], [AgeClass::New; 2]);
    }
}
