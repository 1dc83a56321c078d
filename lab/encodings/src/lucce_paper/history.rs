//! The values of a variable in all versions of the graph.

/// A version of the whole graph. The root's is 0.
pub type PaperVersion = u64;

/// In place of a number that exceeds the limit.
pub const EXCEEDED: u64 = u64::MAX;
/// In place of a value that is no longer kept.
const FORGOTTEN: u64 = u64::MAX - 1;

/// Pairs of a version and the value since that version, ascending.
#[derive(Default)]
pub struct ValueHistory(Vec<(PaperVersion, u64)>);

/// The value of a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HistoricValue {
    Value(u64),
    /// There was no value yet.
    Unset,
    Forgotten,
}

impl ValueHistory {
    /// Values are below `u64::MAX - 1`, or [`EXCEEDED`].
    pub fn push_value(&mut self, since: PaperVersion, value: u64) {
        self.0.push((since, value));
    }

    pub fn latest_value(&self) -> Option<u64> {
        self.0.last().map(|(_, value)| *value)
    }

    pub fn value_at(&self, version: PaperVersion) -> HistoricValue {
        let behind = self.0.partition_point(|(since, _)| *since <= version);
        match behind.checked_sub(1).and_then(|last| self.0.get(last)) {
            None => HistoricValue::Unset,
            Some((_, FORGOTTEN)) => HistoricValue::Forgotten,
            Some((_, value)) => HistoricValue::Value(*value),
        }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Keeps the values of the versions in `versions`, which is ascending, and of those from `floor` on.
    pub fn forget_versions(&mut self, versions: &[PaperVersion], floor: PaperVersion) {
        let mut versions = versions.iter().peekable();
        let mut ends = self.0.iter().skip(1).map(|(end, _)| *end);
        let mut kept: Vec<(PaperVersion, u64)> = Vec::new();
        for &(since, value) in &self.0 {
            while versions.next_if(|version| **version < since).is_some() {}
            let wanted = ends.next().is_none_or(|end| {
                end > floor || versions.peek().is_some_and(|version| **version < end)
            });
            let value = if wanted { value } else { FORGOTTEN };
            if value != FORGOTTEN || kept.last().is_none_or(|(_, last)| *last != FORGOTTEN) {
                kept.push((since, value));
            }
        }
        kept.shrink_to_fit();
        self.0 = kept;
    }
}

#[cfg(test)]
mod history_tests {
    use super::*;

    fn squares() -> ValueHistory {
        let mut history = ValueHistory::default();
        (1..=10).for_each(|n| history.push_value(n * n, n));
        history
    }

    #[test]
    fn a_value_is_there_from_its_version_on() {
        let history = squares();
        assert_eq!(history.value_at(0), HistoricValue::Unset);
        for version in 1..150 {
            let value = u64::from((version as u32).isqrt()).min(10);
            assert_eq!(
                history.value_at(version),
                HistoricValue::Value(value),
                "{version}"
            );
        }
        assert_eq!(history.latest_value(), Some(10));
    }

    #[test]
    fn what_is_forgotten_is_never_answered_with_another_value() {
        let whole = squares();
        for versions in [&[][..], &[3], &[0, 10, 26, 99], &[200]] {
            for floor in [0, 1, 30, 81, 500] {
                let mut history = squares();
                history.forget_versions(versions, floor);
                for version in 0..150 {
                    let now = history.value_at(version);
                    let needed = version >= floor || versions.contains(&version);
                    assert!(
                        now == whole.value_at(version)
                            || now == HistoricValue::Forgotten && !needed
                    );
                }
                assert_eq!(history.latest_value(), whole.latest_value());
                let once = history.len();
                history.forget_versions(versions, floor);
                assert_eq!(history.len(), once);
            }
        }
        let mut history = squares();
        history.forget_versions(&[26], 500);
        // A gap, 25, a gap, 100.
        assert_eq!(history.len(), 4);
    }
}
