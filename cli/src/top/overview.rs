//! The first list of a JVM with several kinds of events: for each kind its leading lines of own code, and the lines of own
//! code that make objects themselves.

use std::cmp::Reverse;
use std::collections::HashMap;

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{
    ALLOC, CodeOrigin, GroupBy, GroupKey, KindTotal, MergedCounter, TreeFrameKey, select_own_kinds,
};

use super::super::output::percent_of;
use super::super::report::is_costly_kind;
use super::rows::{SurvivalSums, TopRow, TopView, build_rows, format_rate};
use super::sampler::SampleWindow;

/// Rows of the main kind, of each further one, and of objects that own code itself makes.
const MAIN_ROWS: usize = 8;
const OTHER_ROWS: usize = 4;
const OWN_OBJECT_ROWS: usize = 4;

/// The events of a line of own code.
struct OwnLineSum {
    amount: u64,
    value: u64,
    count: u64,
    /// The context with the largest amount.
    largest: (u64, GroupKey),
}

/// The rows of the selected list.
pub fn list_top_rows(window: &SampleWindow, view: &TopView) -> Vec<TopRow> {
    build_overview(window, view).unwrap_or_else(|| build_rows(window, view))
}

/// The rows, kind by kind. `None`: fewer than two kinds have events in own code, or the user has selected a kind or another
/// list.
fn build_overview(window: &SampleWindow, view: &TopView) -> Option<Vec<TopRow>> {
    let is_mixed = || window.joined.names.is_own_code_mixed();
    if view.kind.is_some() || view.list != GroupBy::Context || !is_mixed() {
        return None;
    }
    let mut kinds = select_own_kinds(&window.totals);
    kinds.sort_by_key(|kind| (kind.name != window.main_kind, !is_costly_kind(kind)));
    let mut rows = Vec::new();
    let mut listed = 0;
    for kind in kinds {
        let most = match kind.name == window.main_kind {
            true => MAIN_ROWS,
            false => OTHER_ROWS,
        };
        let mut lines = sum_own_lines(window, view, kind, false);
        lines.truncate(most);
        listed += usize::from(!lines.is_empty());
        rows.append(&mut rows_of_lines(window, (view, kind), &lines, false));
        if ALLOC.is_kind(&kind.name) {
            let mut own = sum_own_lines(window, view, kind, true);
            own.retain(|(frame, _)| lines.iter().all(|(shown, _)| shown != frame));
            own.truncate(OWN_OBJECT_ROWS);
            rows.append(&mut rows_of_lines(window, (view, kind), &own, true));
        }
    }
    (listed > 1).then_some(rows)
}

/// The lines of own code, largest first. `itself`: only events that happen in own code itself.
fn sum_own_lines(
    window: &SampleWindow,
    view: &TopView,
    kind: &KindTotal,
    itself: bool,
) -> Vec<(TreeFrameKey, OwnLineSum)> {
    let joined = &window.joined;
    let by_count = view.by_count || kind.unit.is_empty();
    let number = joined.find_kind(&kind.name);
    let is_shown = |row: &MergedCounter| Some(row.kind) == number && view.shows_row(row);
    let mut lines: HashMap<TreeFrameKey, OwnLineSum> = HashMap::new();
    for row in joined.filter_counters(0, is_shown) {
        let Some(own) = find_own_line(window, row, itself) else {
            continue;
        };
        let amount = if by_count { row.count } else { row.value };
        let context = (amount, GroupKey::Context(row.node, row.what));
        let line = lines.entry(own).or_insert(OwnLineSum {
            amount: 0,
            value: 0,
            count: 0,
            largest: context,
        });
        line.amount = line.amount.saturating_add(amount);
        line.value = line.value.saturating_add(row.value);
        line.count = line.count.saturating_add(row.count);
        line.largest = line.largest.max(context);
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.retain(|(_, line)| line.count > 0);
    lines.sort_by_key(|(frame, line)| (Reverse(line.amount), frame.0));
    lines
}

/// The frame of own code that an event belongs to. `itself`: only if it happens there.
fn find_own_line(window: &SampleWindow, row: &MergedCounter, itself: bool) -> Option<TreeFrameKey> {
    let joined = &window.joined;
    let own = match itself {
        true => joined
            .tree
            .caller_and_frame(row.node)
            .map(|(_, frame)| frame),
        false => innermost_own_frame(window, row),
    };
    own.filter(|frame| joined.names.frame_origin(*frame) == CodeOrigin::Application)
}

fn innermost_own_frame(window: &SampleWindow, row: &MergedCounter) -> Option<TreeFrameKey> {
    let joined = &window.joined;
    let mut at = row.node;
    while let Some((caller, frame)) = joined.tree.caller_and_frame(at) {
        if joined.names.frame_origin(frame) == CodeOrigin::Application {
            return Some(frame);
        }
        at = caller;
    }
    None
}

fn rows_of_lines(
    window: &SampleWindow,
    (view, kind): (&TopView, &KindTotal),
    lines: &[(TreeFrameKey, OwnLineSum)],
    itself: bool,
) -> Vec<TopRow> {
    let prefix = if itself { "by own code " } else { "" };
    let survival = SurvivalSums::new(window, &kind.name, |run, is_wanted| {
        let mut sums: HashMap<TreeFrameKey, u64> = HashMap::new();
        for row in window.joined.filter_counters(run, is_wanted) {
            if let Some(frame) = find_own_line(window, row, itself) {
                let sum = sums.entry(frame).or_default();
                *sum = sum.saturating_add(row.value);
            }
        }
        sums
    });
    let number = window.joined.find_kind(&kind.name);
    let is_shown = |row: &MergedCounter| Some(row.kind) == number && view.shows_row(row);
    let by_count = view.by_count || kind.unit.is_empty();
    let amounts = window.joined.filter_counters(0, is_shown);
    let amounts = amounts.map(|row| if by_count { row.count } else { row.value });
    let whole = amounts.fold(0, u64::saturating_add);
    let rows = lines.iter().filter_map(|(key, line)| {
        let frame = window.joined.names.resolve_frame(*key)?;
        Some(TopRow {
            key: line.largest.1,
            share: percent_of(line.amount, whole),
            value: match kind.unit.as_str() {
                "" => String::new(),
                unit => format!("{}/s", format_rate(line.value, window, (kind, unit))),
            },
            count: format!("{}/s", format_rate(line.count, window, (kind, ""))),
            survival: survival.format_group(key),
            name: format!("{} {prefix}{frame}", EscapedText(&kind.name)),
        })
    });
    rows.collect()
}
