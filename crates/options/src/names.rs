//! Suggestions for misspelled names.

use crate::OptionError;

/// The name that the user probably meant, if one is near.
///
/// Near means a Damerau–Levenshtein distance (adjacent characters may be swapped) of at most 2, and less than half of
/// the longer name.
#[must_use]
pub fn find_near_name<'n>(
    given: &str,
    known: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let measured = known
        .into_iter()
        .map(|name| (edit_distance(given, name), name));
    let near = measured.filter(|(distance, name)| {
        let longer = given.chars().count().max(name.chars().count());
        *distance <= 2 && distance * 2 < longer
    });
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The error for an unknown name, with a near known name, or else with `otherwise`.
pub(crate) fn unknown_name<'n>(
    what: &str,
    given: &str,
    known: impl IntoIterator<Item = &'n str>,
    otherwise: &str,
) -> OptionError {
    let shown: String = given.chars().take(MOST_SHOWN).collect();
    OptionError(match find_near_name(&shown, known) {
        Some(near) => format!("unknown {what} '{shown}', did you mean '{near}'?"),
        None => format!("unknown {what} '{shown}': {otherwise}"),
    })
}

/// Maximum number of characters of an unknown name that a message repeats.
const MOST_SHOWN: usize = 80;

/// Number of insertions, deletions, replacements and swaps of neighbors, with no edit inside of a swap.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Three rows: of the prefix of `a` that is two shorter, one shorter, and the present one.
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = above[j] + usize::from(x != y);
            let mut least = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod names_tests {
    use super::*;

    #[test]
    fn distances_count_swaps_once() {
        for (a, b, distance) in [
            ("", "", 0),
            ("", "abc", 3),
            ("alloc", "aloc", 1),
            ("alloc", "allco", 1),
            ("lock", "clock", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(edit_distance(a, b), distance, "{a} {b}");
            assert_eq!(edit_distance(b, a), distance, "{b} {a}");
        }
    }

    #[test]
    fn only_near_names_are_suggested() {
        let names = ["alloc", "off", "on", "lock"];
        for (given, near) in [
            ("aloc", Some("alloc")),
            ("allco", Some("alloc")),
            ("of", Some("off")),
            ("yes", None),
            ("x", None),
            ("loop", None),
            ("no", None),
            ("", None),
        ] {
            assert_eq!(find_near_name(given, names), near, "{given}");
        }
    }
}
