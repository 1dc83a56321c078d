//! Compares runs: the common part of `diff` and `gate`.
//!
//! Each side has one or more runs. Runs of one side differ by chance (which thread loads a class, when a table grows); the
//! largest difference within a side is the noise. A change stands out if every new run lies beyond every old one by more
//! than the noise. `run_facts` reports what makes counts hard to compare.

mod change_row;
mod line_source;
mod run_facts;
mod shifts;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::path::PathBuf;

use lucce_decoder::{
    ALLOC, FrameDisplay, GroupBy, GroupKey, HEAP, Measure, MergedCounter, MergedProfile, NodeId,
    Profile, SampleErrors, StackFrame,
};

pub use change_row::ChangeRow;
pub use run_facts::{CompareRemark, RemarkSeverity, RunFacts};
pub use shifts::{LineShift, LineShifts};

use line_source::LineSource;

use super::amounts::format_amount;
use super::frame_args::FrameArgs;
use super::output::grouped;
use super::progress::ProgressMeter;
use super::selection::{IdleArgs, RowFilter, SelectedRun, Selection, SortArgs};
use super::{CommandError, CommandStatus, prefix_path, report_damage};

/// Which events, and what they are compared by.
#[derive(clap::Args)]
pub struct CompareArgs {
    #[command(flatten)]
    pub order: SortArgs,
    /// Divide by the number of events of this kind, e.g. requests that the program counts by CallContext.event
    #[arg(long, value_name = "KIND")]
    pub per: Option<String>,
    /// Join stack traces without line numbers, which move when a program is edited; the newest run's lines are shown
    #[arg(long)]
    pub no_lines: bool,
    #[command(flatten)]
    pub idle: IdleArgs,
    #[command(flatten)]
    pub frame_args: FrameArgs,
    #[command(flatten)]
    pub selection: Selection,
}

/// The runs of both sides.
pub struct RunComparison {
    pub merged: MergedProfile,
    /// Number of old runs, which come first.
    pub old: usize,
    /// The unit of amounts.
    pub unit: String,
    pub kind: String,
    /// Which frames of contexts the text shows.
    pub display: FrameDisplay,
    measure: Measure,
    number: u32,
    /// The divisor of amounts, by run.
    per: Vec<f64>,
    /// The selected types and methods.
    filter: RowFilter,
    /// Whether contexts are joined without lines.
    no_lines: bool,
    /// If so: the lines of the last new run, and those of the last old run.
    new_lines: Option<LineSource>,
    old_lines: Option<LineSource>,
    /// Whether waits of idle threads are compared.
    with_idle: bool,
    /// One element for each run.
    pub facts: Vec<RunFacts>,
    /// By run, the errors of the compared events, if they are estimated from samples.
    errors: Vec<Option<SampleErrors>>,
    pub remarks: Vec<CompareRemark>,
    pub end: CommandStatus,
}

/// The amounts of one group on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct AmountChange {
    pub key: Option<GroupKey>,
    /// One element for each run.
    pub old: Vec<f64>,
    pub new: Vec<f64>,
}

/// The errors of two means that are estimated from samples: 95 of 100 are within.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SideErrors {
    Known {
        old: f64,
        new: f64,
    },
    /// Numbers of objects have no known error.
    Unknown,
}

impl RunComparison {
    /// Reads all logs.
    pub fn open_runs(
        old: &[PathBuf],
        new: &[PathBuf],
        what: &CompareArgs,
    ) -> Result<RunComparison, CommandError> {
        let mut joined = MergedProfile::default();
        let mut end = CommandStatus::Fine;
        let mut facts = Vec::new();
        let mut errors = Vec::new();
        let (mut old_lines, mut new_lines) = (None, None);
        let mut is_whole = what.selection.is_whole_kind();
        for (run, path) in old.iter().chain(new).enumerate() {
            let SelectedRun { profile, status } = what.selection.open_run(path, false)?;
            end = end.max(status);
            is_whole &= profile.interval.is_none();
            facts.push(RunFacts::new(path, &profile));
            errors.push([
                (ALLOC, SampleErrors::read(&profile)),
                (HEAP, SampleErrors::read_heap(&profile)),
            ]);
            add_profile(&mut joined, &profile, what.no_lines);
            end = report_damage(path, profile.damage.as_ref(), end);
            if what.no_lines && run + 1 == old.len() {
                old_lines = Some(LineSource::new(profile, &joined, run));
            } else if what.no_lines && run + 1 == old.len() + new.len() {
                new_lines = Some(LineSource::new(profile, &joined, run));
            }
        }
        let (kind, unit) = choose_kind(&facts, what.selection.event());
        let Some(number) = joined.find_kind(&kind) else {
            return Err(CommandError::Usage(format!(
                "none of the logs has events of kind {kind:?}"
            )));
        };
        let errors = errors.into_iter().map(|run| {
            let mut kinds = run.into_iter().filter(|(of, _)| of.is_kind(&kind));
            kinds.next().and_then(|(_, errors)| errors)
        });
        let errors = errors.collect();
        let mut compared = RunComparison {
            filter: what.selection.event_filter().build_row_filter(&joined),
            old: old.len(),
            display: what
                .frame_args
                .resolve_display(joined.names.is_own_code_mixed()),
            measure: Measure::Value,
            per: vec![1.0; joined.runs.len()],
            merged: joined,
            unit,
            number,
            no_lines: what.no_lines,
            new_lines,
            old_lines,
            with_idle: what.idle.idle,
            remarks: run_facts::all_remarks(&facts, &kind, is_whole),
            facts,
            errors,
            kind,
            end,
        };
        compared
            .remarks
            .extend(compared.empty_remark(&what.selection));
        compared.choose_measure(what.order.measure());
        compared.divide_per_event(old.iter().chain(new), what.per.as_deref())?;
        compared.remarks.extend(compared.idle_remark());
        compared.remarks.extend(compared.outside_remark());
        Ok(compared)
    }

    /// A remark about events left out because they have no frame of the selected classes.
    fn outside_remark(&self) -> Option<CompareRemark> {
        let outside: Vec<u64> = self.merged.runs.iter().map(|run| run.outside).collect();
        let is_none = outside.iter().all(|outside| *outside == 0);
        let outside: Vec<String> = outside.into_iter().map(grouped).collect();
        let outside = outside.join(", ");
        let text = format!(
            "events of all kinds without any frame of these classes, left out of each run: {outside}"
        );
        (!is_none).then(|| CompareRemark::new(RemarkSeverity::Note, text))
    }

    /// A remark that there is nothing to compare; the options may be mistyped.
    fn empty_remark(&self, selection: &Selection) -> Option<CompareRemark> {
        let has_match = |run| {
            let mut selected = self
                .merged
                .filter_counters(run, |row| self.is_selected(row));
            selected.next().is_some()
        };
        let nothing = selection.nothing_matches(&self.kind);
        if (self.old..self.merged.runs.len()).any(has_match) {
            return None;
        }
        let (severity, place) = match (0..self.old).any(has_match) {
            // The new version may do without these events.
            true if !selection.counts.has_filters() => return None,
            true => (RemarkSeverity::Different, "in the new runs"),
            false => (RemarkSeverity::Incomparable, "in any run"),
        };
        Some(CompareRemark::new(severity, format!("{nothing} {place}")))
    }

    /// The frames of a context, innermost first.
    fn change_frames(&self, change: &AmountChange) -> Vec<StackFrame> {
        let Some(key @ GroupKey::Context(node, _)) = change.key else {
            return Vec::new();
        };
        let mut frames = self.merged.path_frames(node);
        let is_new = change.new.iter().any(|amount| *amount > 0.0);
        let lines = match is_new {
            true => &self.new_lines,
            false => &self.old_lines,
        };
        if let Some(lines) = lines {
            lines.set_lines(key, &mut frames);
        }
        frames
    }

    /// Each side in one line: command, JVM and number of runs.
    pub fn describe_sides(&self) -> (String, String) {
        let (old, new) = self.facts.split_at(self.old.min(self.facts.len()));
        (run_facts::describe_side(old), run_facts::describe_side(new))
    }

    fn choose_measure(&mut self, measure: Option<Measure>) {
        let is_count = match measure {
            Some(Measure::Count) => true,
            Some(Measure::Value) => false,
            None => {
                self.unit.is_empty()
                    && (0..self.merged.runs.len()).all(|run| self.total_amount(run) == 0.0)
            }
        };
        if is_count {
            self.measure = Measure::Count;
            self.unit = String::new();
        }
    }

    fn divide_per_event<'a>(
        &mut self,
        files: impl Iterator<Item = &'a PathBuf>,
        per: Option<&str>,
    ) -> Result<(), CommandError> {
        let Some(per) = per else { return Ok(()) };
        let kind = self.merged.find_kind(per);
        for (run, path) in files.enumerate() {
            let own = self
                .merged
                .filter_counters(run, |row| Some(row.kind) == kind);
            let count = own.map(|row| row.count).fold(0, u64::saturating_add);
            if count == 0 {
                return Err(CommandError::Usage(prefix_path(
                    path,
                    format_args!("no events of kind {per:?} to divide by"),
                )));
            }
            if let Some(divisor) = self.per.get_mut(run) {
                *divisor = count as f64;
            }
        }
        Ok(())
    }

    /// Whether an event is compared.
    fn is_compared(&self, row: &MergedCounter) -> bool {
        (self.with_idle || !row.is_idle) && self.is_selected(row)
    }

    /// Whether an event is of the compared kind and selected.
    fn is_selected(&self, row: &MergedCounter) -> bool {
        row.kind == self.number && self.filter.matches_row(row)
    }

    /// A remark about events left out because their threads wait for work.
    fn idle_remark(&self) -> Option<CompareRemark> {
        let idle = |(run, per): (usize, &f64)| {
            let rows = |row: &MergedCounter| row.is_idle && self.is_selected(row);
            let amounts = self.merged.filter_counters(run, rows);
            let amounts = amounts.map(|row| row.amount(self.measure));
            amounts.fold(0, u64::saturating_add) as f64 / per
        };
        let amounts: Vec<f64> = self.per.iter().enumerate().map(idle).collect();
        let is_none = self.with_idle || amounts.iter().all(|amount| *amount == 0.0);
        let (old, new) = AmountChange::new(None, amounts, self.old).side_means();
        let (old, new) = (
            format_amount(old, &self.unit),
            format_amount(new, &self.unit),
        );
        let text =
            format!("idle, threads that wait for work (--idle compares them): {old} → {new}");
        (!is_none).then(|| CompareRemark::new(RemarkSeverity::Note, text))
    }

    fn compared_rows(&self, run: usize) -> impl Iterator<Item = &MergedCounter> {
        self.merged
            .filter_counters(run, |row| self.is_compared(row))
    }

    fn sums_by_key(&self, run: usize, by: GroupBy) -> HashMap<GroupKey, u64> {
        self.merged
            .sum_by_group(run, self.measure, by, |row| self.is_compared(row))
    }

    fn total_amount(&self, run: usize) -> f64 {
        let sum = self
            .sums_by_key(run, GroupBy::Type)
            .values()
            .fold(0, |sum: u64, one| sum.saturating_add(*one));
        sum as f64 / self.per.get(run).copied().unwrap_or(1.0)
    }

    /// The change of all events.
    pub fn total_change(&self) -> AmountChange {
        let totals: Vec<f64> = (0..self.merged.runs.len())
            .map(|run| self.total_amount(run))
            .collect();
        AmountChange::new(None, totals, self.old)
    }

    /// The errors of the means of both sides. `None`: the compared events were counted exactly.
    pub fn side_errors(&self) -> Option<SideErrors> {
        if self.errors.iter().all(Option::is_none) {
            return None;
        }
        if self.measure == Measure::Count {
            return Some(SideErrors::Unknown);
        }
        let run_error = |run: usize| {
            let errors = self.errors.get(run)?.as_ref()?;
            let rows = self.compared_rows(run);
            let error = errors.chance_error(rows.map(|row| (row.id, row.count, row.value)));
            let per = self.per.get(run).copied().unwrap_or(1.0);
            Some(error.error_bytes as f64 / per)
        };
        let side_error = |runs: std::ops::Range<usize>| {
            let count = runs.len().max(1) as f64;
            let squares = runs.map(|run| run_error(run).unwrap_or(0.0).powi(2));
            squares.sum::<f64>().sqrt() / count
        };
        Some(SideErrors::Known {
            old: side_error(0..self.old),
            new: side_error(self.old..self.merged.runs.len()),
        })
    }

    /// The changes by group, largest first.
    pub fn list_changes(&self, by: GroupBy) -> Vec<AmountChange> {
        let runs = self.merged.runs.len();
        let mut rows: HashMap<GroupKey, Vec<f64>> = HashMap::new();
        for (run, per) in self.per.iter().enumerate() {
            for (key, amount) in self.sums_by_key(run, by) {
                let row = rows.entry(key).or_insert_with(|| vec![0.0; runs]);
                if let Some(cell) = row.get_mut(run) {
                    *cell = amount as f64 / per;
                }
            }
        }
        let rows = rows
            .into_iter()
            .map(|(key, row)| AmountChange::new(Some(key), row, self.old));
        let mut changes: Vec<_> = rows.filter(|change| change.difference() != 0.0).collect();
        changes.sort_by(|a, b| cmp_by_size(b, a).then(a.key.cmp(&b.key)));
        changes
    }
}

/// Maximum ratio of one-sided amounts without lines to those with lines, for the remark.
const WORTH: f64 = 0.5;
/// Minimum fraction of all amounts that must be one-sided, for the remark.
const POOR: f64 = 0.1;

impl RunComparison {
    /// A remark if contexts differ mostly in their lines.
    pub fn lines_remark(&self) -> Option<CompareRemark> {
        if self.no_lines {
            return None;
        }
        let with = self.one_sided_share(|row| (row.node, row.what));
        if with < POOR {
            return None;
        }
        let paths = self.merged.stacks_without_lines();
        let path = |node: NodeId| paths.get(node.0 as usize).copied();
        let without = self.one_sided_share(|row| (path(row.node), row.what));
        let percent = |part: f64| format!("{:.0}%", part * 100.0);
        let text = || {
            format!(
                "lines have moved: {} is in contexts that only one side has, {} without their lines; --no-lines joins them",
                percent(with),
                percent(without)
            )
        };
        (without <= with * WORTH).then(|| CompareRemark::new(RemarkSeverity::Note, text()))
    }

    /// The fraction of both sides' amounts in groups that only one side has.
    fn one_sided_share<K: Hash + Eq>(&self, key: impl Fn(&MergedCounter) -> K) -> f64 {
        let amount = |row: &MergedCounter| row.amount(self.measure);
        let keys = |runs: std::ops::Range<usize>| -> HashSet<K> {
            let rows = runs.flat_map(|run| self.compared_rows(run));
            let rows = rows.filter(|row| amount(row) > 0);
            rows.map(&key).collect()
        };
        let runs = self.merged.runs.len();
        let (old, new) = (keys(0..self.old), keys(self.old..runs));
        let (mut apart, mut all) = (0.0, 0.0);
        for row in (0..runs).flat_map(|run| self.compared_rows(run)) {
            let (key, amount) = (key(row), amount(row) as f64);
            all += amount;
            if !(old.contains(&key) && new.contains(&key)) {
                apart += amount;
            }
        }
        if all > 0.0 { apart / all } else { 0.0 }
    }
}

fn add_profile(joined: &mut MergedProfile, profile: &Profile, no_lines: bool) {
    let bar = ProgressMeter::new("decoding", profile.events.by_context().count() as u64);
    match no_lines {
        true => joined.add_profile_without_lines(profile, &|more| bar.tick(more)),
        false => joined.add_profile(profile, &|more| bar.tick(more)),
    }
}

fn cmp_by_size(a: &AmountChange, b: &AmountChange) -> Ordering {
    a.difference().abs().total_cmp(&b.difference().abs())
}

/// Chooses the compared kind and its unit: the requested kind, else allocations if any run has some, else the most
/// frequent kind of all runs together. The order of the runs does not matter.
fn choose_kind(runs: &[RunFacts], event: Option<&str>) -> (String, String) {
    let mut kinds: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for kind in runs.iter().flat_map(|run| &run.kinds) {
        let (count, unit) = kinds.entry(&kind.name).or_default();
        *count = count.saturating_add(kind.count);
        *unit = (*unit).max(&kind.unit);
    }
    let most = || {
        let allocations = kinds.keys().find(|name| ALLOC.is_kind(name));
        let most = kinds.iter().max_by_key(|(_, (count, _))| *count);
        allocations.or(most.map(|(name, _)| name)).copied()
    };
    let name = event.or_else(most).unwrap_or(ALLOC.name);
    let unit = match kinds.get(name) {
        Some((_, unit)) => unit,
        None if ALLOC.is_kind(name) => ALLOC.unit,
        None => "",
    };
    (name.to_owned(), unit.to_owned())
}

impl AmountChange {
    fn new(key: Option<GroupKey>, mut amounts: Vec<f64>, old: usize) -> AmountChange {
        let new = amounts.split_off(old.min(amounts.len()));
        AmountChange {
            key,
            old: amounts,
            new,
        }
    }

    pub fn side_means(&self) -> (f64, f64) {
        (mean_amount(&self.old), mean_amount(&self.new))
    }

    /// The difference between the means of old and new runs.
    pub fn difference(&self) -> f64 {
        let (old, new) = self.side_means();
        new - old
    }

    /// The largest difference between runs of one side.
    pub fn noise(&self) -> f64 {
        amount_spread(&self.old).max(amount_spread(&self.new))
    }

    /// Whether any side has several runs.
    fn is_noise_known(&self) -> bool {
        self.old.len() > 1 || self.new.len() > 1
    }

    /// Whether the change exceeds the noise. `None`: each side has one run, so the noise is unknown.
    pub fn stands_out(&self) -> Option<bool> {
        let gap = (min_amount(&self.new) - max_amount(&self.old))
            .max(min_amount(&self.old) - max_amount(&self.new));
        self.is_noise_known().then(|| gap > self.noise())
    }
}

fn mean_amount(amounts: &[f64]) -> f64 {
    match amounts.len() {
        0 => 0.0,
        runs => amounts.iter().sum::<f64>() / runs as f64,
    }
}

fn min_amount(amounts: &[f64]) -> f64 {
    amounts.iter().copied().fold(f64::INFINITY, f64::min)
}

fn max_amount(amounts: &[f64]) -> f64 {
    amounts.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn amount_spread(amounts: &[f64]) -> f64 {
    match amounts.len() {
        0 => 0.0,
        _ => max_amount(amounts) - min_amount(amounts),
    }
}

#[cfg(test)]
mod compare_tests {
    use super::*;

    fn change(old: &[f64], new: &[f64]) -> AmountChange {
        AmountChange::new(None, [old, new].concat(), old.len())
    }

    #[test]
    fn changes_beyond_the_noise_are_significant() {
        assert_eq!(change(&[100.0], &[200.0]).stands_out(), None);
        assert_eq!(
            change(&[100.0, 101.0], &[110.0, 111.0]).stands_out(),
            Some(true)
        );
        assert_eq!(change(&[100.0, 101.0], &[90.0]).stands_out(), Some(true));
        assert_eq!(
            change(&[100.0, 104.0], &[106.0, 107.0]).stands_out(),
            Some(false)
        );
        assert_eq!(
            change(&[100.0, 104.0], &[103.0, 120.0]).stands_out(),
            Some(false)
        );
        assert_eq!(change(&[0.0, 0.0], &[1.0, 1.0]).stands_out(), Some(true));
        assert_eq!(change(&[5.0, 5.0], &[5.0, 5.0]).stands_out(), Some(false));
    }

    #[test]
    fn changes_are_those_of_the_means() {
        let change = change(&[1.0, 3.0], &[5.0]);
        assert_eq!(
            (change.side_means(), change.difference(), change.noise()),
            ((2.0, 5.0), 3.0, 2.0)
        );
    }
}
