//! The column "on the heap": what of counted allocations reached the heap (agent option `events=alloc+heap`).

use lucce_decoder::{
    ALLOC, EstimateError, EventContext, HeapAmount, HeapEstimates, Measure, Profile, SampleErrors,
    SurvivalAmount, list_sampled_contexts, read_heap_interval,
};
use lucce_options::kinds::SURVIVED_COLLECTIONS;
use serde::Serialize;

use crate::SortArg;
use crate::amounts::format_amount;
use crate::output::percent_of;

use super::ReportRequest;

/// The samples of a report's contexts.
pub struct HeapColumn {
    pub estimates: HeapEstimates,
    /// The sampled contexts that the report selects.
    pub sampled: Vec<EventContext>,
}

impl HeapColumn {
    /// Reads the samples. `None`: the run has none, or the events are not those of its counters.
    pub fn read(request: &ReportRequest<'_>, exact: &[EventContext]) -> Option<HeapColumn> {
        if !request.has_heap_column() {
            return None;
        }
        let profile = request.profile;
        let mut sampled = list_sampled_contexts(profile);
        request.filter.retain_contexts(profile, &mut sampled);
        let estimates = HeapEstimates::new(profile, exact, &sampled)?;
        Some(HeapColumn { estimates, sampled })
    }
}

impl ReportRequest<'_> {
    /// Whether the report has the column.
    pub fn has_heap_column(&self) -> bool {
        let is_counted = !self.args.counted.stream
            && !self.args.has_sizes()
            && self.args.selection.times.is_unrestricted();
        is_counted && ALLOC.is_kind(&self.kind.name) && read_heap_interval(self.profile).is_some()
    }
}

/// The order of contexts, and the amount that shares are percentages of.
#[derive(Clone, Copy)]
pub struct RowOrder<'r> {
    pub profile: &'r Profile,
    pub measure: Measure,
    pub heap: Option<&'r HeapColumn>,
    /// If counts are estimated from samples.
    pub errors: Option<&'r SampleErrors>,
    by_samples: Option<SampleOrder>,
}

/// An order by amounts of samples.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SampleOrder {
    Heap,
    Old,
}

impl SampleOrder {
    fn amount(self, heap: &HeapAmount) -> u64 {
        match self {
            SampleOrder::Heap => heap.bytes,
            SampleOrder::Old => heap.survival.map_or(0, |survival| survival.old_bytes),
        }
    }
}

impl<'r> RowOrder<'r> {
    pub fn new(
        profile: &'r Profile,
        (sort, measure): (Option<SortArg>, Measure),
        heap: Option<&'r HeapColumn>,
    ) -> RowOrder<'r> {
        RowOrder {
            profile,
            measure,
            heap,
            errors: None,
            by_samples: match sort {
                Some(SortArg::Heap) => Some(SampleOrder::Heap),
                Some(SortArg::Survive) => Some(SampleOrder::Old),
                _ => None,
            },
        }
    }

    /// The same order of rows that have errors.
    pub fn with_errors(self, errors: Option<&'r SampleErrors>) -> RowOrder<'r> {
        RowOrder { errors, ..self }
    }

    /// The error of a sum of contexts, if it is estimated from samples.
    pub fn sum_error<'c>(
        &self,
        contexts: impl Iterator<Item = &'c EventContext> + Clone,
    ) -> Option<EstimateError> {
        Some(self.errors?.context_error(contexts))
    }

    /// What reached the heap, if it was sampled.
    pub fn heap_amount(&self, context: &EventContext) -> Option<HeapAmount> {
        let heap = self.heap?;
        Some(heap.estimates.context_amount(self.profile, context))
    }

    pub fn amount(&self, context: &EventContext) -> u64 {
        match self.by_samples {
            Some(order) => {
                let heap = self.heap_amount(context);
                heap.map_or(0, |heap| order.amount(&heap))
            }
            None => context.amount(self.measure),
        }
    }

    /// The amount of a sum of contexts, of which `heap` reached the heap.
    pub fn select_amount(&self, value: u64, count: u64, heap: Option<HeapAmount>) -> u64 {
        match self.by_samples {
            Some(order) => heap.map_or(0, |heap| order.amount(&heap)),
            None => self.measure.select_amount(value, count),
        }
    }

    /// What shares are percentages of, if that is not the value.
    pub fn share_of(&self, value: u64) -> &'static str {
        match self.measure {
            _ if self.by_samples == Some(SampleOrder::Heap) => " of the heap",
            _ if self.by_samples == Some(SampleOrder::Old) => " of the old generation",
            Measure::Count if value > 0 => " of events",
            Measure::Count | Measure::Value => "",
        }
    }
}

/// The samples of a whole report.
#[derive(Serialize)]
pub struct HeapTotals {
    /// The mean number of bytes between two samples.
    pub interval_bytes: u64,
    #[serde(flatten)]
    pub total: HeapAmount,
    /// The part in traces without exact counts.
    pub unjoined: HeapAmount,
}

impl HeapTotals {
    pub fn new(heap: &HeapColumn) -> HeapTotals {
        HeapTotals {
            interval_bytes: heap.estimates.interval(),
            total: heap.estimates.total_amount(),
            unjoined: heap.estimates.unjoined_amount(),
        }
    }
}

/// `on the heap 12.3 MB ±4%`, or why there is nothing.
pub fn format_heap(amount: &HeapAmount) -> String {
    match (amount.removed, amount.bytes) {
        (true, _) => "removed by the compiler".to_owned(),
        (false, 0) => "on the heap: no sample".to_owned(),
        (false, _) => {
            let survival = amount
                .survival
                .map(|survival| format_survival(&survival, amount.bytes));
            let survival = survival.map_or_else(String::new, |text| format!("  {text}"));
            format!("on the heap {}{survival}", format_estimate(amount))
        }
    }
}

/// `died young 97%, lived 1/2/4/8: 4/3/3/3%, old 3%`: percentages of `bytes`.
pub fn format_survival(survival: &SurvivalAmount, bytes: u64) -> String {
    let percent = |part: u64| format!("{:.0}", percent_of(part, bytes));
    let lived = survival.lived_bytes.map(percent).join("/");
    let (died, old) = (percent(survival.died_bytes), percent(survival.old_bytes));
    let collections = SURVIVED_COLLECTIONS
        .map(|number| number.to_string())
        .join("/");
    format!("died young {died}%, lived {collections}: {lived}%, old {old}%")
}

/// `12.3 MB ±4%`
pub fn format_estimate(amount: &HeapAmount) -> String {
    let bytes = format_amount(amount.bytes as f64, "bytes");
    format!("{bytes} {}", format_error(amount.error_bytes, amount.bytes))
}

/// `±4%`: an error as a percentage of its estimate.
pub fn format_error(error: u64, estimate: u64) -> String {
    let error = percent_of(error, estimate);
    match error < 1.0 {
        true => format!("±{error:.1}%"),
        false => format!("±{error:.0}%"),
    }
}
