//! Lists lines of own code: contexts with the same innermost own frame are one row, and other frames are folded.
//!
//! ```text
//! #1 45.15%  19.3 MB  200,000 × byte[]  lucce:…:0x1000…  2d90…      one row for each line of own code
//!     at java.lang.StringConcatHelper.newArray(…) … 2 JDK frames    the largest context of the row
//!     at com.acme.Shop.invoice(Shop.java:63)
//! ```
//! The rows share a budget of lines, so that a report fits a screen. Every row gets its shortest form; the first rows get
//! what is left.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use lucce_contentid::StackId;
use lucce_decoder::{
    ContextFocus, EstimateError, EventContext, FrameDisplay, HeapAmount, KindTotal,
    MIN_TRACE_LINES, Profile, StackFrame, SubmissionIndex, TraceId, TraceTree, find_sample_role,
    index_submissions, shorten_trace,
};

use crate::amounts::{AmountFormat, format_amount};
use crate::output::{format_plural, percent_of};
use crate::style::{TerminalStyle, write_trace};
use crate::thread_start::ThreadStartTraces;

use super::ReportArgs;
use super::heap_column::{RowOrder, format_error, format_heap};
use super::listing::{collect_operation_times, format_events};
use super::totals::{ReportTotals, format_longest, format_value};

/// Lines of a list of at most ten rows; each further row adds [`ROW_LINES`].
const SCREEN_LINES: usize = 40;
/// A row's first line, and the shortest form of its trace.
const ROW_LINES: usize = 1 + MIN_TRACE_LINES;

/// The listed lines of own code.
pub struct OwnLines<'r> {
    profile: &'r Profile,
    rows: Vec<OwnLine<'r>>,
    /// Number of lines, of which the largest are listed.
    pub different: u64,
    /// The sums of the lines that are not listed.
    pub rest: ReportTotals,
    /// The sums of contexts without own code.
    foreign: ReportTotals,
    foreign_heap: Option<HeapAmount>,
    order: RowOrder<'r>,
    whole: u64,
    amounts: AmountFormat,
    /// Set with `--across-threads`.
    submissions: Option<SubmissionIndex>,
}

/// The contexts with one innermost frame of own code.
pub struct OwnLine<'r> {
    pub totals: ReportTotals,
    /// The frame of own code.
    pub frame: StackFrame,
    /// Durations in nanoseconds, if the log has them.
    nanos: u64,
    /// What reached the heap, if it was sampled.
    pub heap: Option<HeapAmount>,
    /// The error of the bytes, if they are estimated from samples.
    pub error: Option<EstimateError>,
    /// Number of events by type.
    types: BTreeMap<Option<&'r str>, u64>,
    largest: &'r EventContext,
}

/// Whether traces of these contexts are folded: some of their frames are own code, and some are not.
pub fn is_own_code_mixed(focus: &[ContextFocus]) -> bool {
    focus.iter().any(|focus| focus.own.is_some()) && focus.iter().any(|focus| focus.has_other_code)
}

impl<'r> OwnLines<'r> {
    /// Groups contexts. `focus`: of each context. `top`: the maximum number of rows; 0: all.
    pub fn new(
        profile: &'r Profile,
        kind: &'r KindTotal,
        (whole, order): (u64, RowOrder<'r>),
        (contexts, focus): (&'r [EventContext], &[ContextFocus]),
        (args, top): (&ReportArgs, usize),
    ) -> Self {
        let sampled = order.heap.map_or(&[][..], |heap| &heap.sampled);
        let ids: Vec<_> = sampled.iter().map(|context| context.id).collect();
        let sampled_focus = profile.find_focus(&ids);
        let focused = contexts.iter().zip(focus);
        let focused = focused.chain(sampled.iter().zip(&sampled_focus));
        let (groups, foreign) = group_by_own_line(profile, focused);
        let groups = groups.into_iter();
        let groups = groups.map(|(frame, group)| (frame, LineContexts::new(group, &order)));
        // A line may have samples alone: the compiler moved the allocation of another line there.
        let mut groups: Vec<_> = groups
            .filter(|(_, group)| !group.exact.is_empty())
            .collect();
        groups.sort_by_cached_key(|(_, group)| {
            (
                Reverse(group.amount),
                group.exact.first().map(|context| context.id),
            )
        });
        let top = if top == 0 { usize::MAX } else { top };
        let is_large = |(_, group): &&(StackFrame, LineContexts<'_>)| {
            args.threshold.admits(group.amount, whole)
        };
        let listed = groups.iter().take(top).take_while(is_large).count();
        let (shown, left) = groups.split_at(listed);
        let times = collect_operation_times(profile, kind);
        let rows = shown
            .iter()
            .filter_map(|group| OwnLine::from_contexts((profile, &order), kind, group, &times));
        let left = left.iter().flat_map(|(_, group)| &group.exact);
        let foreign = LineContexts::new(foreign, &order);
        OwnLines {
            profile,
            rows: rows.collect(),
            different: groups.len() as u64,
            rest: ReportTotals::sum_contexts(kind, left.copied()),
            foreign: ReportTotals::sum_contexts(kind, foreign.exact.iter().copied()),
            foreign_heap: foreign.heap,
            order,
            whole,
            amounts: AmountFormat::for_kind(profile, kind),
            submissions: args.across_threads.then(|| index_submissions(profile)),
        }
    }

    pub fn rows(&self) -> &[OwnLine<'r>] {
        &self.rows
    }

    /// The frames of own code, in the order of rows.
    pub fn frames(&self) -> impl Iterator<Item = &StackFrame> {
        self.rows.iter().map(|row| &row.frame)
    }

    /// Number of rows.
    pub fn row_count(&self) -> u64 {
        self.rows.len() as u64
    }

    pub fn write(&self, unit: &str, out: &mut impl Write) -> io::Result<()> {
        let mut traces = TraceTree::new(self.profile);
        let ids = self.rows.iter().map(|row| {
            let trace = traces.insert_trace(row.largest.id);
            trace.unwrap_or(TraceId::EMPTY)
        });
        let ids: Vec<_> = ids.collect();
        let folded = ids
            .iter()
            .map(|trace| FrameDisplay::Focused.fold_frames(traces.stack_frames(*trace)));
        let folded: Vec<_> = folded.collect();
        let lengths: Vec<usize> = folded.iter().map(Vec::len).collect();
        let budget = SCREEN_LINES.max(ROW_LINES * folded.len());
        let (shares, is_spaced) = share_lines(&lengths, budget);
        let rows = self.rows.iter().zip(folded).zip(shares).zip(1..);
        for (((row, lines), share), number) in rows {
            self.write_head(row, number, unit, out)?;
            write_trace(&shorten_trace(lines, share), out)?;
            if let Some(submissions) = &self.submissions {
                let started = ThreadStartTraces::new(self.profile, submissions, row.largest.id);
                started.write(FrameDisplay::Focused, out)?;
            }
            if is_spaced {
                writeln!(out)?;
            }
        }
        if !is_spaced {
            writeln!(out)?;
        }
        self.write_foreign(unit, out)
    }

    fn write_foreign(&self, unit: &str, out: &mut impl Write) -> io::Result<()> {
        let ReportTotals { count, value, .. } = self.foreign;
        if count == 0 {
            return Ok(());
        }
        let amount = self.order.select_amount(value, count, self.foreign_heap);
        let share = percent_of(amount, self.whole);
        let mut total = self.foreign.to_text(unit, self.amounts);
        if let Some(heap) = &self.foreign_heap {
            total = format!("{total}; {}", format_heap(heap));
        }
        writeln!(
            out,
            "without own code (--frames all lists them): {share:.2}%, {total}"
        )
    }

    /// `#1 45.15%  19.3 MB  200,000 × byte[] and 3 more types in 12 contexts, 30.10% in this one:  lucce:…  2d90…`
    fn write_head(
        &self,
        row: &OwnLine<'_>,
        number: usize,
        unit: &str,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let ReportTotals {
            contexts,
            count,
            value,
            ..
        } = row.totals;
        let amount = self.order.select_amount(value, count, row.heap);
        let share = percent_of(amount, self.whole);
        let share_of = self.order.share_of(value);
        let mut parts = Vec::new();
        let error = row
            .error
            .map(|error| format_error(error.error_bytes, value));
        let error = error.map_or_else(String::new, |error| format!(" {error}"));
        parts.extend(format_value(value, unit, self.amounts).map(|text| text + &error));
        parts.extend(format_longest(row.totals.longest, unit));
        if row.nanos > 0 {
            parts.push(format_amount(row.nanos as f64, "ns"));
        }
        parts.extend(row.heap.as_ref().map(format_heap));
        parts.push(row.format_types(unit, self.amounts) + &self.format_contexts(row, contexts));
        let number_of = |context: &EventContext| self.profile.context_number(context.id);
        let style = TerminalStyle::for_stdout();
        let share = style.strong(format!("#{number} {share:.2}%{share_of}"));
        let ids = format!("{}  {}", number_of(row.largest), row.largest.stack);
        writeln!(out, "{share}  {}  {}", parts.join("  "), style.faint(ids))
    }

    /// The number of contexts, and the share of the one that is shown.
    fn format_contexts(&self, row: &OwnLine<'_>, contexts: u64) -> String {
        if contexts < 2 {
            return String::new();
        }
        let share = percent_of(self.order.amount(row.largest), self.whole);
        let contexts = format_plural(contexts, "context");
        format!(" in {contexts}, {share:.2}% in this one:")
    }
}

/// The contexts of each line of own code, and those without own code.
pub fn group_by_own_line<'c, 'f>(
    profile: &Profile,
    focused: impl Iterator<Item = (&'c EventContext, &'f ContextFocus)>,
) -> (
    Vec<(StackFrame, Vec<&'c EventContext>)>,
    Vec<&'c EventContext>,
) {
    let mut group_of_frame = HashMap::new();
    let mut group_of_name: HashMap<StackFrame, usize> = HashMap::new();
    let mut groups: Vec<(StackFrame, Vec<&EventContext>)> = Vec::new();
    let mut foreign = Vec::new();
    for (context, focus) in focused {
        let Some(frame) = focus.own else {
            foreign.push(context);
            continue;
        };
        // Several sites have one line, and several loaders may load one class.
        let group = *group_of_frame.entry(frame).or_insert_with(|| {
            let next = group_of_name.len();
            let name = profile.code.resolve_frame(frame);
            *group_of_name.entry(name).or_insert(next)
        });
        if group == groups.len() {
            groups.push((profile.code.resolve_frame(frame), Vec::new()));
        }
        if let Some((_, group)) = groups.get_mut(group) {
            group.push(context);
        }
    }
    (groups, foreign)
}

/// The contexts of a line: counted ones, the largest first, and what of them reached the heap.
struct LineContexts<'c> {
    exact: Vec<&'c EventContext>,
    heap: Option<HeapAmount>,
    /// Their sum, in the sort key's unit.
    amount: u64,
}

impl<'c> LineContexts<'c> {
    fn new(contexts: Vec<&'c EventContext>, order: &RowOrder<'_>) -> LineContexts<'c> {
        let is_sample = |context: &&EventContext| {
            order.heap.is_some() && find_sample_role(order.profile, context.event).is_some()
        };
        let (sampled, mut exact): (Vec<_>, Vec<_>) = contexts.into_iter().partition(is_sample);
        exact.sort_by_cached_key(|context| (Reverse(order.amount(context)), context.id));
        let heap = order.heap;
        let heap = heap.map(|heap| {
            let estimates = &heap.estimates;
            estimates.line_amount(order.profile, &exact, &sampled)
        });
        let sum = |of: fn(&EventContext) -> u64| {
            let amounts = exact.iter().map(|context| of(context));
            amounts.fold(0, u64::saturating_add)
        };
        let (value, count) = (sum(|context| context.value), sum(|context| context.count));
        LineContexts {
            amount: order.select_amount(value, count, heap),
            exact,
            heap,
        }
    }
}

impl<'r> OwnLine<'r> {
    /// Sums up contexts.
    fn from_contexts(
        (profile, order): (&'r Profile, &RowOrder<'_>),
        kind: &KindTotal,
        (frame, LineContexts { exact, heap, .. }): &(StackFrame, LineContexts<'r>),
        times: &HashMap<(StackId, Option<String>), u64>,
    ) -> Option<OwnLine<'r>> {
        let mut row = OwnLine {
            totals: ReportTotals::sum_contexts(kind, exact.iter().copied()),
            frame: frame.clone(),
            nanos: 0,
            heap: *heap,
            error: order.sum_error(exact.iter().copied()),
            types: BTreeMap::new(),
            largest: exact.first()?,
        };
        for context in exact {
            let class = profile.context_detail(context);
            let count = row.types.entry(class).or_default();
            *count = count.saturating_add(context.count);
            let nanos = times.get(&(context.stack, class.map(str::to_owned)));
            row.nanos = row.nanos.saturating_add(nanos.copied().unwrap_or(0));
        }
        Some(row)
    }

    /// `200,000 × byte[] and 3 more types`: the type with most events.
    pub fn format_types(&self, unit: &str, amounts: AmountFormat) -> String {
        let most = self.types.iter().max_by_key(|(_, count)| **count);
        let (class, count) = most.map_or((None, 0), |(class, count)| (*class, *count));
        let events = format_events(count, class, unit, amounts);
        match self.types.len() {
            0 | 1 => events,
            types => {
                let more = format_plural(types as u64 - 1, "more type");
                format!("{events} and {more}")
            }
        }
    }
}

/// Divides a budget of lines among traces: each gets its shortest form, then the first ones get what is left. Also returns
/// whether rows can be separated by empty lines.
fn share_lines(lengths: &[usize], budget: usize) -> (Vec<usize>, bool) {
    let mut shares: Vec<usize> = lengths
        .iter()
        .map(|length| (*length).min(MIN_TRACE_LINES))
        .collect();
    let used = shares.iter().map(|share| share + 1).sum();
    let mut left = budget.saturating_sub(used);
    for (share, length) in shares.iter_mut().zip(lengths) {
        let more = (length - *share).min(left);
        *share += more;
        left -= more;
    }
    (shares, left >= lengths.len())
}

#[cfg(test)]
mod own_lines_tests {
    use super::*;

    #[test]
    fn the_first_rows_get_what_is_left() {
        assert_eq!(share_lines(&[9, 9, 2], 40), (vec![9, 9, 2], true));
        assert_eq!(share_lines(&[9, 9, 2], 20), (vec![9, 6, 2], false));
        assert_eq!(share_lines(&[9, 9, 2], 5), (vec![3, 3, 2], false));
        assert_eq!(share_lines(&[], 40), (vec![], true));
    }
}
