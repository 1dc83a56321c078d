//! The whole report: head, body and notes, as text and JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{
    ALLOC, AllocationAmount, AllocationCoverage, BudgetSummary, BurstSummary, ContextList,
    CountingDelay, EstimateError, KindTotal, LEAK, Measure, Profile, describe_sampling,
    explain_sample_bias, has_array_sizes, read_counting_delay, read_sampled_bytes,
    summarize_budget, summarize_bursts,
};
use lucce_options::kinds::{NO_SURVIVAL, UNFOLLOWED_SAMPLES};
use serde::Serialize;

use super::defined_classes::DefinedClasses;
use super::heap_column::{HeapTotals, format_error, format_estimate, format_survival};
use super::listing::ContextRows;
use super::living_memory::LivingMemoryReport;
use super::living_threads::LivingThreads;
use super::lock_holders::LockHolders;
use super::overview::RunOverview;
use super::own_lines::OwnLines;
use super::report_head::ReportHead;
use super::totals::ReportTotals;
use super::{sum_table, tree};
use crate::amounts::{AmountFormat, format_amount};
use crate::output::{format_plural, grouped, percent_of};

/// What the head says if frames are folded.
const FOLDED: &str = "other frames are folded (--frames all)";
/// What the head of an overview says.
const TRACES: &str = "traces of one kind: --event KIND";

#[derive(Serialize)]
pub(super) struct ContextReport<'r> {
    pub(super) schema: &'static str,
    pub(super) version: u32,
    #[serde(flatten)]
    pub(super) head: ReportHead,
    pub(super) event: String,
    /// The unit of `value`; empty: a plain number of the program.
    pub(super) unit: String,
    /// Number of events of the other kinds in the log.
    pub(super) others: BTreeMap<String, u64>,
    pub(super) totals: ReportTotals,
    /// The allocation coverage, if it is known.
    pub(super) coverage: Option<AllocationCoverage>,
    /// Whether the JVM ended normally.
    pub(super) ended: bool,
    pub(super) damage: Option<ReportDamage>,
    pub(super) lost: u64,
    /// Set if events were counted in bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bursts: Option<BurstSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delay: Option<CountingDelay>,
    /// Number of events without a frame of the selected classes.
    pub(super) outside: u64,
    pub(super) skipped: SkippedCounts,
    /// Set if the agent chose what to record by its cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) budget: Option<BudgetSummary>,
    /// The sampling interval in bytes, if counts are estimated from samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sampled_bytes: Option<u64>,
    /// A known bias of this JVM's samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sample_bias: Option<&'static str>,
    /// The error of the totals, if they are estimated from samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_error: Option<EstimateError>,
    /// What reached the heap, if it was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) heap: Option<HeapTotals>,
    /// Waits of idle threads, which the other sums exclude.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) idle: Option<ReportTotals>,
    #[serde(skip)]
    pub(super) amounts: AmountFormat,
    /// Who waits for whom, of the kind `lock`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) holders: Option<LockHolders>,
    /// Classes by context and loader, of the kind `class`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) classes: Option<DefinedClasses>,
    /// Threads by the context that started them, of the kind `thread`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) threads: Option<LivingThreads>,
    /// Memory outside of the heap by the context that allocated it, of the kind `native`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<LivingMemoryReport>,
    /// What shares are percentages of.
    #[serde(skip)]
    pub(super) sorted_by: Measure,
    /// Whether own code was looked for, and no frame is own code.
    #[serde(skip)]
    pub(super) lacks_own_code: bool,
    /// Allocations that `--min-size` leaves out, as their sizes are unknown.
    #[serde(skip)]
    pub(super) unknown_sizes: AllocationAmount,
    #[serde(flatten)]
    pub(super) body: ReportBody<'r>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ReportBody<'r> {
    Contexts {
        contexts: Box<ContextRows<'r>>,
        /// Number of rows, of which the largest are listed.
        #[serde(skip)]
        different: u64,
        /// The sum of unlisted contexts.
        rest: ReportTotals,
    },
    /// Contexts by line of own code, as text.
    #[serde(skip)]
    OwnLines(Box<OwnLines<'r>>),
    /// Leading lines of own code of all kinds, as text.
    #[serde(skip)]
    Overview(RunOverview),
    Sums(sum_table::SumTable),
    Tree(tree::ReportTree),
}

#[derive(Serialize)]
pub(super) struct ReportDamage {
    pub(super) offset: u64,
    pub(super) reason: String,
}

#[derive(Serialize)]
pub(super) struct SkippedCounts {
    pub(super) classes: u64,
    pub(super) methods: u64,
}

impl<'r> ContextReport<'r> {
    pub(super) fn new(
        profile: &Profile,
        contexts: &ContextList,
        kind: &KindTotal,
        (totals, body): (ReportTotals, ReportBody<'r>),
    ) -> Self {
        let others = profile.counted_kinds().into_iter();
        let others = others.filter(|other| other.name != kind.name);
        let (classes, methods) = profile.skipped_counts();
        ContextReport {
            schema: "lucce-report",
            version: 1,
            head: ReportHead::new(profile),
            others: others.map(|other| (other.name, other.count)).collect(),
            totals,
            coverage: None,
            ended: profile.ended,
            damage: contexts.damage.as_ref().map(|damage| ReportDamage {
                offset: damage.offset,
                reason: damage.reason.to_string(),
            }),
            lost: profile.dropped_events(),
            bursts: summarize_bursts(profile),
            delay: read_counting_delay(profile),
            outside: contexts.outside,
            skipped: SkippedCounts { classes, methods },
            budget: summarize_budget(profile),
            sampled_bytes: read_sampled_bytes(profile).filter(|_| ALLOC.is_kind(&kind.name)),
            sample_bias: explain_sample_bias(profile).filter(|_| ALLOC.is_kind(&kind.name)),
            total_error: None,
            heap: None,
            idle: None,
            holders: None,
            classes: None,
            threads: None,
            memory: None,
            event: kind.name.clone(),
            unit: kind.unit.clone(),
            amounts: AmountFormat::for_kind(profile, kind),
            sorted_by: Measure::Value,
            lacks_own_code: false,
            unknown_sizes: AllocationAmount::default(),
            body,
        }
    }

    pub(super) fn write(&self, profile: &Profile, out: &mut impl Write) -> io::Result<()> {
        self.write_head(out)?;
        if let Some(classes) = &self.classes {
            classes.write(out)?;
        }
        if let Some(threads) = &self.threads {
            threads.write(out)?;
        }
        if let Some(memory) = &self.memory {
            memory.write(out)?;
        }
        if let Some(holders) = &self.holders {
            holders.write(out)?;
        }
        match &self.body {
            ReportBody::Contexts { contexts, .. } => contexts.write(&self.unit, out)?,
            ReportBody::OwnLines(lines) => lines.write(&self.unit, out)?,
            ReportBody::Overview(kinds) => kinds.write(out)?,
            ReportBody::Sums(table) => table.write(out)?,
            ReportBody::Tree(drawn) => drawn.write(out)?,
        }
        let mut notes = Vec::new();
        self.write_closing(profile, &mut notes)?;
        // Contexts end with an empty line each.
        let has_rows = !matches!(
            self.body,
            ReportBody::Contexts { .. } | ReportBody::OwnLines(_)
        );
        if has_rows && !notes.is_empty() {
            writeln!(out)?;
        }
        out.write_all(&notes)
    }

    /// Writes what follows the body.
    fn write_closing(&self, profile: &Profile, out: &mut impl Write) -> io::Result<()> {
        if let Some(idle) = &self.idle {
            writeln!(
                out,
                "idle, threads that wait for work (--idle shows them): {}",
                idle.to_text(&self.unit, self.amounts)
            )?;
        }
        if LEAK.is_kind(&self.event) && self.totals.count == 0 {
            writeln!(
                out,
                "note: objects were followed, which are no events: `lucce leaks` says what of them lives"
            )?;
        }
        self.write_notes(profile, out)
    }

    /// Writes run, events, coverage, and what is shown of them.
    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        self.head.write(out)?;
        let total = self.totals.to_text(&self.unit, self.amounts);
        write!(out, "events: {}, {total}", EscapedText(&self.event))?;
        match (self.lost, self.totals.count) {
            (0, 0) => {}
            (0, _) => write!(out, ", none lost")?,
            (lost, _) => write!(out, ", {} lost", format_plural(lost, "event"))?,
        }
        let others = self.others.iter();
        let others: Vec<_> = others
            .map(|(name, count)| format!("{} {}", EscapedText(name), grouped(*count)))
            .collect();
        if !others.is_empty() {
            write!(out, "; others, for --event: {}", others.join(", "))?;
        }
        writeln!(out)?;
        if let Some(heap) = &self.heap {
            let share = percent_of(heap.total.bytes, self.totals.value);
            let total = format_estimate(&heap.total);
            writeln!(out, "on the heap: {total}, {share:.2}% of what is counted")?;
            if let Some(survival) = &heap.total.survival {
                let parts = format_survival(survival, heap.total.bytes);
                let old = format_amount(survival.old_bytes as f64, "bytes");
                writeln!(out, "survival: {parts}, {old} (--sort survive)")?;
            }
        }
        if let Some(budget) = &self.budget {
            writeln!(out, "budget: {budget}")?;
        }
        if let Some(coverage) = &self.coverage {
            writeln!(out, "counted: {coverage}")?;
        }
        let own_code = match self.lacks_own_code {
            true => Some("own code: in no frame of these events (--app names it)".to_owned()),
            false => self.head.describe_own_code(),
        };
        let parts = [own_code, self.describe_shown()];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            writeln!(out, "{}", parts.join("; "))?;
        }
        writeln!(out)
    }

    /// How much of all is listed: `shown: 10 of 932 contexts, 61.32%`; `None`: all.
    fn describe_shown(&self) -> Option<String> {
        let (rows, different, what, rest) = match &self.body {
            ReportBody::Contexts {
                contexts,
                different,
                rest,
            } => (contexts.list.len() as u64, *different, "context", rest),
            ReportBody::OwnLines(lines) => {
                (lines.row_count(), lines.different, "line", &lines.rest)
            }
            ReportBody::Tree(tree) => return tree.is_folded.then(|| FOLDED.to_owned()),
            ReportBody::Overview(_) => return Some(TRACES.to_owned()),
            ReportBody::Sums(_) => return None,
        };
        let folded = matches!(self.body, ReportBody::OwnLines(_)).then_some(FOLDED);
        let shown = (rows < different).then(|| {
            let amount = |of: &ReportTotals| self.sorted_by.select_amount(of.value, of.count);
            let whole = amount(&self.totals);
            let share = percent_of(amount(rest), whole);
            let (rows, all) = (grouped(rows), format_plural(different, what));
            let rest = rest.to_text(&self.unit, self.amounts);
            format!("shown: {rows} of {all}; the others: {share:.2}%, {rest}")
        });
        let parts: Vec<String> = shown.into_iter().chain(folded.map(str::to_owned)).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    pub(super) fn write_notes(&self, profile: &Profile, out: &mut impl Write) -> io::Result<()> {
        if let Some(damage) = &self.damage {
            writeln!(
                out,
                "note: the log is damaged at offset {}; what could be read is counted",
                damage.offset
            )?;
        } else if !self.ended {
            writeln!(
                out,
                "note: the JVM was killed or still runs; all it recorded is here, its counters without checksums"
            )?;
        } else if profile.unsealed > 0 {
            writeln!(
                out,
                "note: the log's counters have no checksums (an older version wrote it, or it was copied while it ended)"
            )?;
        }
        if let Some(bursts) = &self.bursts {
            writeln!(out, "note: {}", EscapedText(&bursts.to_string()))?;
        }
        if let Some(delay) = &self.delay {
            writeln!(out, "note: {delay}")?;
        }
        if self.unknown_sizes.count > 0 {
            let AllocationAmount { count, bytes } = self.unknown_sizes;
            let bytes = format_amount(bytes as f64, "bytes");
            let hint = match has_array_sizes(profile) {
                true => "",
                false => " (agent option events=alloc=sizes)",
            };
            writeln!(
                out,
                "note: left out, as their sizes are unknown{hint}: {}, {bytes}",
                format_plural(count, "allocation")
            )?;
        }
        let sampling = describe_sampling(profile).filter(|_| self.sampled_bytes.is_some());
        if let Some(sampling) = sampling {
            let bias = match self.sample_bias {
                Some(_) => ", with what this JVM samples too rarely",
                None => "",
            };
            let total = self.total_error.map_or_else(String::new, |error| {
                let error = format_error(error.error_bytes, self.totals.value);
                format!("; the total is {error}, parts are less exact")
            });
            writeln!(
                out,
                "note: estimated from samples, {sampling}{total}; ±: 95 of 100 estimates are within{bias}"
            )?;
        }
        if let Some(heap) = &self.heap {
            let bytes = grouped(heap.interval_bytes);
            writeln!(
                out,
                "note: what is on the heap is estimated from samples, one every {bytes} bytes; ±: 95 of 100 runs are within"
            )?;
            if heap.unjoined.bytes > 0 {
                let part = format_estimate(&heap.unjoined);
                writeln!(
                    out,
                    "note: {part} of it is in traces without counts, as compiled code omits frames; own lines include it"
                )?;
            }
        }
        if let Some(why) = profile
            .meta
            .get(NO_SURVIVAL)
            .filter(|_| self.heap.is_some())
        {
            writeln!(out, "note: survival is not known: {}", EscapedText(why))?;
        }
        let unfollowed = UNFOLLOWED_SAMPLES.map(|stat| profile.stat_value(stat));
        let unfollowed = unfollowed.into_iter().fold(0, u64::saturating_add);
        if unfollowed > 0 && self.heap.is_some() {
            writeln!(
                out,
                "note: {} were not followed, so survival has less than all of them",
                format_plural(unfollowed, "sample")
            )?;
        }
        if let Some(bias) = self.sample_bias {
            writeln!(out, "note: {bias}")?;
        }
        if self.outside > 0 {
            let events = format_plural(self.outside, "event");
            writeln!(
                out,
                "note: {events} without any frame of these classes left out"
            )?;
        }
        let SkippedCounts { classes, methods } = self.skipped;
        if classes + methods > 0 {
            let (classes, methods) = (grouped(classes), grouped(methods));
            writeln!(
                out,
                "note: without hooks: classes {classes}, single methods {methods} (lucce stats)"
            )?;
        }
        profile
            .warnings
            .iter()
            .try_for_each(|warning| writeln!(out, "warning: {}", EscapedText(warning)))
    }
}
