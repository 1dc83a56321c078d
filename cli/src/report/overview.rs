//! The first screen of a run with several kinds of events: for each kind its leading lines of own code, one row each.
//!
//! ```text
//! lock: 40.31 s, 1,072 events in 204 contexts; 8 more lines: --event lock
//!   0.61%    247.6 ms  io.lucce.shop.StockLedger.reserve(StockLedger.java:14)  30 × io.lucce.shop.StockLedger (enter) …
//! ```

use std::collections::HashSet;
use std::io::{self, Write};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{ALLOC, ContextFocus, EventContext, KindTotal, Profile, StackFrame};

use crate::amounts::AmountFormat;
use crate::output::{format_plural, percent_of};
use crate::style::TerminalStyle;

use super::ReportArgs;
use super::heap_column::{RowOrder, format_error, format_heap};
use super::own_lines::OwnLines;
use super::totals::{ReportTotals, format_value};

/// Lines of the screen without head and notes.
const SCREEN_LINES: usize = 42;
/// Rows of objects that own code itself makes.
const OWN_OBJECTS: usize = 4;
/// Rows of each further kind, at least.
const LEAST_ROWS: usize = 2;

/// Whether events of this kind cost the program time by themselves: these come first, with more rows.
pub fn is_costly_kind(kind: &KindTotal) -> bool {
    ["lock", "exception"].contains(&kind.name.as_str())
}

/// The leading lines of own code, by kind.
pub struct RunOverview {
    kinds: Vec<KindOverview>,
}

struct KindOverview {
    title: String,
    rows: Vec<OverviewRow>,
}

struct OverviewRow {
    share: f64,
    amount: String,
    frame: StackFrame,
    events: String,
}

/// The selected contexts of a kind.
#[derive(Clone, Copy)]
pub struct KindContexts<'r> {
    pub kind: &'r KindTotal,
    pub contexts: &'r [EventContext],
    pub focus: &'r [ContextFocus],
    /// The sum that shares are percentages of.
    pub whole: u64,
    pub order: RowOrder<'r>,
}

/// Number of rows of each further kind, if `used` lines are taken and `others` kinds follow.
pub fn rows_of_others(top: usize, used: usize, others: usize) -> usize {
    let left = SCREEN_LINES.saturating_sub(used);
    let each = left.checked_div(others).unwrap_or(0).saturating_sub(1);
    each.min(top.div_ceil(2)).max(LEAST_ROWS)
}

impl RunOverview {
    pub fn new() -> RunOverview {
        RunOverview { kinds: Vec::new() }
    }

    /// Adds a kind with at most `top` rows. For allocations, lines of own code that make objects themselves follow.
    pub fn add_kind(
        &mut self,
        profile: &Profile,
        of: &KindContexts<'_>,
        args: &ReportArgs,
        top: usize,
    ) {
        let KindContexts {
            kind, whole, order, ..
        } = *of;
        let totals = ReportTotals::sum_contexts(kind, of.contexts.iter());
        let by = (whole, order);
        let lines = OwnLines::new(profile, kind, by, (of.contexts, of.focus), (args, top));
        if lines.row_count() == 0 {
            return;
        }
        let amounts = AmountFormat::for_kind(profile, kind);
        let name = EscapedText(&kind.name);
        let more = lines.different.saturating_sub(lines.row_count());
        let more = match more {
            0 => String::new(),
            more => format!("; {}: --event {name}", format_plural(more, "more line")),
        };
        let title = format!("{name}: {}{more}", totals.to_text(&kind.unit, amounts));
        let shown: HashSet<StackFrame> = lines.frames().cloned().collect();
        self.kinds.push(KindOverview {
            title,
            rows: build_rows(&lines, kind, by, amounts),
        });
        if ALLOC.is_kind(&kind.name) {
            let own = of.contexts.iter().zip(of.focus);
            let own = own.filter(|(_, focus)| focus.is_own_event);
            let (contexts, focus): (Vec<_>, Vec<_>) = own
                .map(|(context, focus)| (context.clone(), *focus))
                .unzip();
            let lines = OwnLines::new(profile, kind, by, (&contexts, &focus), (args, top));
            let mut rows = build_rows(&lines, kind, by, amounts);
            rows.retain(|row| !shown.contains(&row.frame));
            rows.truncate(OWN_OBJECTS);
            if !rows.is_empty() {
                let title = format!("{name} by own code itself:");
                self.kinds.push(KindOverview { title, rows });
            }
        }
    }

    /// Number of lines, without the head.
    pub fn line_count(&self) -> usize {
        self.kinds.iter().map(|kind| 1 + kind.rows.len()).sum()
    }

    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let style = TerminalStyle::for_stdout();
        for kind in &self.kinds {
            writeln!(out, "{}", style.strong(&kind.title))?;
            for row in &kind.rows {
                let events = style.faint(&row.events);
                let (share, amount) = (row.share, &row.amount);
                writeln!(out, "{share:>6.2}%  {amount:>10}  {}  {events}", row.frame)?;
            }
        }
        Ok(())
    }
}

fn build_rows(
    lines: &OwnLines<'_>,
    kind: &KindTotal,
    (whole, order): (u64, RowOrder<'_>),
    amounts: AmountFormat,
) -> Vec<OverviewRow> {
    let rows = lines.rows().iter().map(|row| {
        let ReportTotals { count, value, .. } = row.totals;
        let heap = row.heap.as_ref();
        let heap = heap.map_or_else(String::new, |heap| format!("{}  ", format_heap(heap)));
        let error = row
            .error
            .map(|error| format_error(error.error_bytes, value));
        let error = error.map_or_else(String::new, |error| format!(" {error}"));
        OverviewRow {
            share: percent_of(order.select_amount(value, count, row.heap), whole),
            amount: format_value(value, &kind.unit, amounts)
                .map(|text| text + &error)
                .unwrap_or_else(|| amounts.format_count(count)),
            frame: row.frame.clone(),
            events: heap + &row.format_types(&kind.unit, amounts),
        }
    });
    rows.collect()
}

#[cfg(test)]
mod overview_tests {
    use super::*;

    #[test]
    fn all_kinds_share_a_screen() {
        // Allocations, and what own code makes itself.
        let used = 1 + 10 + 1 + OWN_OBJECTS;
        for others in 1..=8 {
            let each = rows_of_others(10, used, others);
            let lines = used + others * (1 + each);
            assert!(lines <= SCREEN_LINES, "{others} kinds: {lines} lines");
            assert!(each >= LEAST_ROWS);
        }
        assert_eq!(rows_of_others(10, used, 1), 5);
        // Many kinds need more than a screen.
        assert_eq!(rows_of_others(10, used, 30), LEAST_ROWS);
    }
}
