//! Changes that differ by line alone: a line that has moved is one that is gone and one that is new.

use std::collections::HashMap;

use lucce_decoder::GroupKey;
use serde::Serialize;

use super::super::amounts::{format_amount, format_change as signed};
use super::super::output::format_plural;
use super::{AmountChange, RunComparison};

/// What a row and the rows that differ from it by line alone are together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LineShift {
    /// How many other rows there are.
    pub rows: u64,
    /// Their change.
    pub change: f64,
    /// The means of both sides, of all these rows together.
    pub old: f64,
    pub new: f64,
}

/// Changes that differ from each other by line alone.
type RowGroup<'c> = Vec<(GroupKey, &'c AmountChange)>;

/// By the key of a change.
pub type LineShifts = HashMap<GroupKey, LineShift>;

impl LineShift {
    /// For people: one line.
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
    /// The changes that have others which differ by line alone: one of them only the old side has, one only the new side.
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
mod tests {
    use super::*;

    #[test]
    fn a_shift_says_what_both_rows_are_together() {
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
