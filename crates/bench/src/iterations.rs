//! Parses the output of a program that repeats its work, one line per iteration:
//!
//! ```text
//! iteration 3: 1219 ms wall, 1892 ms cpu, checksum 0a1b2c3d, 10485760 bytes
//! ```
//! The checksum and the bytes that the VM allocated may be missing. If work between iterations belongs to none, a program
//! prints the begin of the next one:
//!
//! ```text
//! iteration 3 begins
//! ```
//! A line that begins with `FAILED` reports a wrong result.

use std::collections::BTreeSet;

/// The times of an iteration.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Iteration {
    /// Wall-clock time in milliseconds.
    pub wall: f64,
    /// CPU time of the whole process in milliseconds.
    pub cpu: f64,
    /// Bytes that the VM allocated.
    pub bytes: Option<f64>,
}

/// The output of a program that repeats its work.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Iterations {
    pub list: Vec<Iteration>,
    /// All printed checksums.
    pub checksums: BTreeSet<String>,
    /// The printed failure.
    pub failed: Option<String>,
}

impl Iterations {
    /// Parses the output; all other lines are the program's own.
    pub fn parse(printed: &str) -> Iterations {
        let mut all = Iterations::default();
        for line in printed.lines() {
            if line.starts_with("FAILED") {
                all.failed.get_or_insert_with(|| line.to_owned());
            }
            let Some((iteration, checksum)) = iteration(line) else {
                continue;
            };
            all.list.push(iteration);
            all.checksums.extend(checksum.map(str::to_owned));
        }
        all
    }
}

/// Whether the line reports an iteration.
pub fn ends_iteration(line: &str) -> bool {
    iteration(line).is_some()
}

/// Whether the line reports the begin of an iteration.
pub fn begins_iteration(line: &str) -> bool {
    let rest = line.strip_prefix("iteration ");
    let number = rest.and_then(|rest| rest.strip_suffix(" begins"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

fn iteration(line: &str) -> Option<(Iteration, Option<&str>)> {
    let (index, rest) = line.strip_prefix("iteration ")?.split_once(": ")?;
    index.parse::<u32>().ok()?;
    let mut parts = rest.split(", ");
    let wall = number(parts.next()?, " ms wall")?;
    let cpu = number(parts.next()?, " ms cpu")?;
    let checksum = parts.next().and_then(|part| part.strip_prefix("checksum "));
    let bytes = parts.next().and_then(|part| number(part, " bytes"));
    Some((Iteration { wall, cpu, bytes }, checksum))
}

/// The number before the unit.
fn number(text: &str, unit: &str) -> Option<f64> {
    let value: f64 = text.strip_suffix(unit)?.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value)
}

#[cfg(test)]
mod iterations_tests {
    use super::*;

    #[test]
    fn lines_of_iterations_are_found_among_others() {
        let text = "H2Mix: 3000 transactions\n\
            iteration 1: 120 ms wall, 190.5 ms cpu, checksum 0a, 4096 bytes\n\
            iteration the second\n\
            iteration 2 begins\n\
            iteration 2: 100 ms wall, 150 ms cpu\n";
        let iterations = Iterations::parse(text);
        let expected = [(120.0, 190.5, Some(4096.0)), (100.0, 150.0, None)];
        assert_eq!(
            iterations.list,
            expected.map(|(wall, cpu, bytes)| Iteration { wall, cpu, bytes })
        );
        assert_eq!(iterations.checksums, BTreeSet::from(["0a".to_owned()]));
        assert_eq!(iterations.failed, None);
    }

    #[test]
    fn what_begins_an_iteration_does_not_end_one() {
        let line = "iteration 12 begins";
        assert!(begins_iteration(line) && !ends_iteration(line));
        let line = "iteration 12: 1 ms wall, 1 ms cpu";
        assert!(!begins_iteration(line) && ends_iteration(line));
        assert!(!begins_iteration("iteration x begins"));
    }

    #[test]
    fn a_failure_is_noticed_and_every_checksum_kept() {
        let iterations = Iterations::parse(
            "iteration 1: 1 ms wall, 1 ms cpu, checksum a\n\
             iteration 2: 1 ms wall, 1 ms cpu, checksum b\n\
             FAILED the results of two iterations differ\nFAILED again",
        );
        assert_eq!(iterations.checksums.len(), 2);
        assert_eq!(
            iterations.failed.as_deref(),
            Some("FAILED the results of two iterations differ")
        );
    }

    #[test]
    fn times_that_are_none_are_no_iterations() {
        for line in [
            "iteration 1: NaN ms wall, 1 ms cpu",
            "iteration 1: 1 ms wall, -1 ms cpu",
            "iteration x: 1 ms wall, 1 ms cpu",
            "iteration 1: 1 s wall, 1 ms cpu",
            "iteration 1: 1 ms wall",
        ] {
            assert_eq!(Iterations::parse(line), Iterations::default(), "{line}");
        }
    }
}
