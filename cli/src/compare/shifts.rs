//! Finds changes that differ only in lines: a moved line looks like one removed and one added context.

use std::collections::HashMap;

use lucce_decoder::GroupKey;
use serde::Serialize;

use super::super::amounts::{format_amount, format_change as signed};
use super::super::output::format_plural;
use super::{AmountChange, RunComparison};

/// The sums of a row and all rows that differ from it only in lines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LineShift {
    /// Number of other rows.
    pub rows: u64,
    /// The change of all these rows together.
    pub change: f64,
    /// The mean of the old side, of all these rows; `new`: of the new side.
    pub old: f64,
    pub new: f64,
}

/// Changes that differ only in lines.
type RowGroup<'c> = Vec<(GroupKey, &'c AmountChange)>;

/// Shifts by the change's key.
pub type LineShifts = HashMap<GroupKey, LineShift>;

impl LineShift {
    /// One line of text.
    pub fn to_text(&self, unit: &str) -> String {
        let (change, rows) = (signed(self.change, unit), format_plural(self.rows, "row"));
        let (old, new) = (format_amount(self.old, unit), format_amount(self.new, unit));
        let differ = if self.rows == 1 { "differs" } else { "differ" };
        format!(
            "lines have moved, it seems: {rows} more, {change}, {differ} by line alone; together {old} → {new} (--no-lines joins them)"
        )
    }
}

impl RunComparison {
    /// The changes for which other rows differ only in lines, where one row is only on the old side, and another only on
    /// the new side.
    pub fn line_shifts(&self, changes: &[AmountChange]) -> LineShifts {
        if self.no_lines {
            return LineShifts::new();
        }
        let paths = self.merged.stacks_without_lines();
        let names = &self.merged.names;
        let without_line = |key: GroupKey| match key {
            GroupKey::Context(node, what) => Some((paths.get(node.0 as usize)?.0, what)),
            GroupKey::Line(frame) => Some((names.frames.get(frame)?.by_method.0, None)),
            _ => None,
        };
        let mut groups: HashMap<_, RowGroup<'_>> = HashMap::new();
        for change in changes {
            if let Some(key) = change.key
                && let Some(group) = without_line(key)
            {
                groups.entry(group).or_default().push((key, change));
            }
        }
        let is_shift = |group: &&RowGroup<'_>| {
            let mut means = group.iter().map(|(_, change)| change.side_means());
            let has_old = means.clone().any(|(old, new)| old > 0.0 && new == 0.0);
            has_old && means.any(|(old, new)| old == 0.0 && new > 0.0)
        };
        let shifts = groups.values().filter(is_shift).flat_map(|group| {
            let (old, new) = group.iter().fold((0.0, 0.0), |sum, (_, change)| {
                let (old, new) = change.side_means();
                (sum.0 + old, sum.1 + new)
            });
            let shift = move |(key, change): &(GroupKey, &AmountChange)| {
                let shift = LineShift {
                    rows: group.len() as u64 - 1,
                    change: new - old - change.difference(),
                    old,
                    new,
                };
                (*key, shift)
            };
            group.iter().map(shift)
        });
        shifts.collect()
    }
}

#[cfg(test)]
mod shifts_tests {
    use super::*;

    #[test]
    fn a_shift_has_the_sum_of_both_rows() {
        let shift = LineShift {
            rows: 1,
            change: -4.8e6,
            old: 4.8e6,
            new: 4.8e6,
        };
        assert_eq!(
            shift.to_text("bytes"),
            "lines have moved, it seems: 1 row more, -4.80 MB, differs by line alone; together 4.80 MB → 4.80 MB (--no-lines joins them)"
        );
    }
}
