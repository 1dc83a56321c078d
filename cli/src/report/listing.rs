//! Lists contexts, each with its trace.

use std::collections::HashMap;
use std::io::{self, Write};

use lucce_contentid::StackId;
use lucce_decoder::escape::EscapedText;
use lucce_decoder::{
    ContextId, EstimateError, EventContext, FrameDisplay, FrameList, HeapAmount, KindTotal,
    Profile, SubmissionIndex, TraceId, TraceTree, index_submissions,
};
use serde::{Serialize, Serializer};

use crate::amounts::{AmountFormat, format_amount};
use crate::output::{format_plural, percent_of};
use crate::style::{TerminalStyle, write_trace};
use crate::thread_start::ThreadStartTraces;
use crate::threshold::estimate_frame_bytes;

use super::ReportArgs;
use super::heap_column::{RowOrder, format_error, format_heap};
use super::totals::{format_longest, format_value, value_in_bytes};

/// The durations of contexts whose bytes are listed: another kind in the log has them under the same context ids.
pub fn collect_operation_times(
    profile: &Profile,
    kind: &KindTotal,
) -> HashMap<(StackId, Option<String>), u64> {
    let Some(times) = kind.kind_descriptor().times else {
        return HashMap::new();
    };
    let contexts = profile.list_contexts_of(&profile.events_of_kind(times), &|_| ());
    let times = contexts.list.iter().map(|context| {
        let what = profile.context_detail(context).map(str::to_owned);
        ((context.stack, what), context.value)
    });
    times.collect()
}

/// Selects the listed contexts: at most `top`, and only large enough ones.
pub fn select_listed<'c>(
    list: &'c [EventContext],
    args: &ReportArgs,
    order: &RowOrder<'_>,
    whole: u64,
) -> &'c [EventContext] {
    let top = if args.top == 0 { usize::MAX } else { args.top };
    let is_large = |context: &&EventContext| args.threshold.admits(order.amount(context), whole);
    let number = list.iter().take(top).take_while(is_large).count();
    list.get(..number).unwrap_or_default()
}

#[derive(Serialize)]
pub struct ContextRow<'r> {
    id: String,
    aliases: Vec<String>,
    /// The content id of the trace.
    stack: String,
    class: Option<&'r str>,
    count: u64,
    value: u64,
    /// The value, if it is in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// The longest value of the trace's events, if the kind has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    longest: Option<u64>,
    /// Total duration in nanoseconds, if the log has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    nanos: Option<u64>,
    /// What reached the heap, if it was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    heap: Option<HeapAmount>,
    /// The error, if the row is estimated from samples.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    error: Option<EstimateError>,
    /// Percentage of the sort key's total.
    share: f64,
    /// Whose percentage it is, if that is not the value's.
    #[serde(skip)]
    share_of: &'static str,
    frames: FrameList<'r>,
    #[serde(skip)]
    display: FrameDisplay,
    #[serde(skip)]
    amounts: AmountFormat,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_by: Option<ThreadStartTraces>,
}

/// The listed contexts. Rows are built while writing, since all traces may be far larger than the log.
pub struct ContextRows<'r> {
    profile: &'r Profile,
    traces: TraceTree<'r>,
    pub list: Vec<(&'r EventContext, TraceId, StackId)>,
    kind: &'r KindTotal,
    order: RowOrder<'r>,
    whole: u64,
    times: HashMap<(StackId, Option<String>), u64>,
    /// Set with `--across-threads`.
    submissions: Option<SubmissionIndex>,
    display: FrameDisplay,
}

impl<'r> ContextRows<'r> {
    pub fn new(
        profile: &'r Profile,
        kind: &'r KindTotal,
        (whole, order): (u64, RowOrder<'r>),
        contexts: &'r [EventContext],
        (across_threads, display): (bool, FrameDisplay),
    ) -> Self {
        let mut traces = TraceTree::new(profile);
        let list = contexts.iter().map(|context| {
            let trace = traces.insert_trace(context.id).unwrap_or(TraceId::EMPTY);
            (context, trace, traces.stack_id(trace))
        });
        ContextRows {
            list: list.collect(),
            profile,
            traces,
            kind,
            order,
            whole,
            times: collect_operation_times(profile, kind),
            submissions: across_threads.then(|| index_submissions(profile)),
            display,
        }
    }

    fn iter_rows(&self) -> impl Iterator<Item = ContextRow<'_>> {
        let number = |id: &ContextId| self.profile.context_number(*id).to_string();
        self.list.iter().map(move |(context, trace, stack)| {
            let class = self.profile.context_detail(context);
            let started = self.submissions.as_ref();
            let key = (context.stack, class.map(str::to_owned));
            ContextRow {
                id: number(&context.id),
                aliases: context.aliases.iter().map(number).collect(),
                stack: stack.to_string(),
                class,
                count: context.count,
                value: context.value,
                bytes: value_in_bytes(self.kind, context.value),
                longest: (context.longest > 0).then_some(context.longest),
                nanos: self.times.get(&key).copied(),
                heap: self.order.heap_amount(context),
                error: self.order.sum_error(std::iter::once(*context)),
                share: percent_of(self.order.amount(context), self.whole),
                share_of: self.order.share_of(context.value),
                frames: self.traces.list_frames(*trace, usize::MAX),
                display: self.display,
                amounts: AmountFormat::for_kind(self.profile, self.kind),
                started_by: started.map(|of| ThreadStartTraces::new(self.profile, of, context.id)),
            }
        })
    }

    /// Approximate bytes of the output, without traces of other threads.
    pub fn estimate_bytes(&self, as_json: bool) -> u64 {
        const ROW: u64 = 130;
        let sums = self
            .traces
            .sum_frames(|_, frame| estimate_frame_bytes(frame, as_json));
        let rows = self
            .list
            .iter()
            .map(|(_, trace, _)| sums.trace_sum(*trace).saturating_add(ROW));
        rows.fold(0, u64::saturating_add)
    }
}

impl ContextRows<'_> {
    pub fn write(&self, unit: &str, out: &mut impl Write) -> io::Result<()> {
        let mut rows = self.iter_rows().enumerate();
        rows.try_for_each(|(number, row)| row.write(number + 1, unit, out))
    }
}

impl Serialize for ContextRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter_rows())
    }
}

impl ContextRow<'_> {
    fn write(&self, number: usize, unit: &str, out: &mut impl Write) -> io::Result<()> {
        let events = format_events(self.count, self.class, unit, self.amounts);
        let nanos = self.nanos.map_or_else(String::new, |nanos| {
            format_amount(nanos as f64, "ns") + "  "
        });
        let with_space = |text: Option<String>| text.map_or_else(String::new, |text| text + "  ");
        let error = self
            .error
            .map(|error| format_error(error.error_bytes, self.value));
        let value = format_value(self.value, unit, self.amounts);
        let value = [value, error].into_iter().flatten().collect::<Vec<_>>();
        let value = with_space((!value.is_empty()).then(|| value.join(" ")))
            + &with_space(format_longest(self.longest, unit))
            + &nanos
            + &with_space(self.heap.as_ref().map(format_heap));
        let style = TerminalStyle::for_stdout();
        let share = style.strong(format!("#{number} {:.2}%{}", self.share, self.share_of));
        let ids = style.faint(format!("{}  {}", self.id, self.stack));
        writeln!(out, "{share}  {value}{events}  {ids}")?;
        let lines = self.display.fold_frames(self.frames.iter());
        write_trace(&lines, out)?;
        if let Some(started_by) = &self.started_by {
            started_by.write(self.display, out)?;
        }
        writeln!(out)
    }
}

/// `1,200 × byte[]`, or the number of events.
pub fn format_events(count: u64, class: Option<&str>, unit: &str, amounts: AmountFormat) -> String {
    let number = amounts.format_count(count);
    match (class, unit) {
        (Some(class), _) => format!("{number} × {}", EscapedText(class)),
        (None, "bytes") => format!("{number} × events without a type"),
        (None, _) => format_plural(amounts.round_amount(count), "event"),
    }
}
