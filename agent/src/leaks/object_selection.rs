//! Selects the followed objects of a context for which a search looks.

use crate::leaks::sampled_objects::AgedReference;

/// Maximum numbers of selected objects.
#[derive(Clone, Copy)]
pub struct SelectionLimits {
    pub per_type: usize,
    pub total: usize,
}

impl SelectionLimits {
    /// No object is selected.
    pub const NONE: SelectionLimits = SelectionLimits {
        per_type: 0,
        total: 0,
    };

    /// Number of objects of each type, from the numbers of living ones. Types take turns, so that no type takes all places.
    pub fn share_evenly(self, living: &[usize]) -> Vec<usize> {
        let mut shares = vec![0; living.len()];
        let mut left = self.total;
        for _ in 0..self.per_type {
            for (share, living) in shares.iter_mut().zip(living) {
                if left > 0 && *share < *living {
                    *share += 1;
                    left -= 1;
                }
            }
        }
        shares
    }
}

/// Selects from the living objects, which are sorted by age, the oldest first. A new object proves no leak: it may die soon. So
/// objects that a collection of the old generation has `tested` come first, then objects that existed at any collection.
pub fn select_survivors<R: Copy>(
    mut living: &[AgedReference<R>],
    most: usize,
    (tested, collections): (u64, u64),
) -> Vec<R> {
    let mut chosen = Vec::new();
    for bound in [tested, collections, u64::MAX] {
        let older = living.partition_point(|object| object.born < bound);
        let (older, younger) = living.split_at(older);
        chosen.extend(pick_evenly(older, most - chosen.len()));
        living = younger;
    }
    chosen
}

/// At most `most` objects, evenly spaced from the first to the last.
fn pick_evenly<R: Copy>(all: &[AgedReference<R>], most: usize) -> impl Iterator<Item = R> {
    let wanted = most.min(all.len());
    let last = all.len().saturating_sub(1);
    let at = move |n: usize| all.get(n * last / wanted.saturating_sub(1).max(1));
    (0..wanted).filter_map(at).map(|object| object.reference)
}

#[cfg(test)]
mod object_selection_tests {
    use super::*;

    const MOST: SelectionLimits = SelectionLimits {
        per_type: 8,
        total: 16,
    };

    #[test]
    fn no_type_takes_the_room_of_all() {
        assert_eq!(MOST.share_evenly(&[1_000]), [8]);
        assert_eq!(MOST.share_evenly(&[1_000, 1_000]), [8, 8]);
        assert_eq!(MOST.share_evenly(&[1_000, 900, 800]), [6, 5, 5]);
        assert_eq!(MOST.share_evenly(&[1_000, 3, 0]), [8, 3, 0]);
        assert_eq!(MOST.share_evenly(&[2; 20]).iter().sum::<usize>(), 16);
        assert_eq!(SelectionLimits::NONE.share_evenly(&[5]), [0]);
        assert_eq!(MOST.share_evenly(&[]), [0; 0]);
    }

    fn born(ages: &[u64]) -> Vec<AgedReference<u64>> {
        let aged = |&born| AgedReference {
            born,
            reference: born,
        };
        ages.iter().map(aged).collect()
    }

    #[test]
    fn what_was_just_made_is_chosen_last() {
        let many: Vec<u64> = (0..100).collect();
        let ages = born(&many);
        // Among the proven ones, from the oldest to the youngest.
        assert_eq!(select_survivors(&ages, 4, (31, 90)), [0, 10, 20, 30]);
        assert_eq!(select_survivors(&ages, 1, (31, 90)), [0]);
        assert_eq!(select_survivors(&ages, 0, (31, 90)), [0; 0]);
        // Without a collection of the old generation, or of any kind.
        assert_eq!(select_survivors(&ages, 3, (0, 51)), [0, 25, 50]);
        assert_eq!(select_survivors(&born(&[0; 9]), 3, (0, 0)), [0; 3]);
        // If they are too few, all of them and some others.
        let few = born(&[1, 2, 6, 7, 8, 9, 9]);
        assert_eq!(select_survivors(&few, 4, (3, 9)), [1, 2, 6, 8]);
        assert_eq!(select_survivors(&few, 20, (3, 9)), [1, 2, 6, 7, 8, 9, 9]);
    }
}
