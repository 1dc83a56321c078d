//! Which of the followed objects of a context are looked for.

use crate::leaks::followed::Aged;

/// Objects that are chosen.
#[derive(Clone, Copy)]
pub struct Most {
    pub of_a_type: usize,
    pub together: usize,
}

impl Most {
    pub const NONE: Most = Most {
        of_a_type: 0,
        together: 0,
    };

    /// How many of each type, from the numbers of the living: one of each in turn, so that none takes the room of all.
    pub fn in_turn(self, living: &[usize]) -> Vec<usize> {
        let mut shares = vec![0; living.len()];
        let mut left = self.together;
        for _ in 0..self.of_a_type {
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

/// Some of the living, which come with the oldest first. What was just made says nothing of a leak: it may die soon. So those come
/// first that a collection of the old generation has `tested`, then those that were there at any of the collections so far.
pub fn survivors<R: Copy>(
    mut living: &[Aged<R>],
    most: usize,
    (tested, collections): (u64, u64),
) -> Vec<R> {
    let mut chosen = Vec::new();
    for bound in [tested, collections, u64::MAX] {
        let older = living.partition_point(|object| object.born < bound);
        let (older, younger) = living.split_at(older);
        chosen.extend(spread(older, most - chosen.len()));
        living = younger;
    }
    chosen
}

/// So many at most, from the first to the last.
fn spread<R: Copy>(all: &[Aged<R>], most: usize) -> impl Iterator<Item = R> {
    let wanted = most.min(all.len());
    let last = all.len().saturating_sub(1);
    let at = move |n: usize| all.get(n * last / wanted.saturating_sub(1).max(1));
    (0..wanted).filter_map(at).map(|object| object.reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Most = Most {
        of_a_type: 8,
        together: 16,
    };

    #[test]
    fn no_type_takes_the_room_of_all() {
        assert_eq!(MOST.in_turn(&[1_000]), [8]);
        assert_eq!(MOST.in_turn(&[1_000, 1_000]), [8, 8]);
        assert_eq!(MOST.in_turn(&[1_000, 900, 800]), [6, 5, 5]);
        assert_eq!(MOST.in_turn(&[1_000, 3, 0]), [8, 3, 0]);
        assert_eq!(MOST.in_turn(&[2; 20]).iter().sum::<usize>(), 16);
        assert_eq!(Most::NONE.in_turn(&[5]), [0]);
        assert_eq!(MOST.in_turn(&[]), [0; 0]);
    }

    fn born(ages: &[u64]) -> Vec<Aged<u64>> {
        let aged = |&born| Aged {
            born,
            reference: born,
        };
        ages.iter().map(aged).collect()
    }

    #[test]
    fn what_was_just_made_is_chosen_last() {
        let many: Vec<u64> = (0..100).collect();
        let ages = born(&many);
        // Of those that are proven to live, from the oldest to the youngest.
        assert_eq!(survivors(&ages, 4, (31, 90)), [0, 10, 20, 30]);
        assert_eq!(survivors(&ages, 1, (31, 90)), [0]);
        assert_eq!(survivors(&ages, 0, (31, 90)), [0; 0]);
        // There was no collection of the old generation, or none at all.
        assert_eq!(survivors(&ages, 3, (0, 51)), [0, 25, 50]);
        assert_eq!(survivors(&born(&[0; 9]), 3, (0, 0)), [0; 3]);
        // When they are too few, all of them and some others.
        let few = born(&[1, 2, 6, 7, 8, 9, 9]);
        assert_eq!(survivors(&few, 4, (3, 9)), [1, 2, 6, 8]);
        assert_eq!(survivors(&few, 20, (3, 9)), [1, 2, 6, 7, 8, 9, 9]);
    }
}
