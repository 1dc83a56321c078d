//! The tables of `--by`: sums by type, class, package, method, line, thread or tag.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{GroupBy, GroupKey, HeapAmount, Measure, MergedCounter, SURVIVAL_KINDS};
use serde::Serialize;

use crate::SortArg;
use crate::amounts::{AmountFormat, format_amount};
use crate::output::{format_plural, percent_of};
use crate::style::TerminalStyle;

use super::heap_column::format_estimate;
use super::object_sizes::ReportGrouping;
use super::{ReportArgs, ReportSums};

/// Sums, largest first.
#[derive(Serialize)]
pub struct SumTable {
    by: &'static str,
    /// The unit of `own` and `total`; empty: numbers of events, or no unit.
    amounts_in: String,
    #[serde(skip)]
    amounts: AmountFormat,
    /// Whether `own` and `total` differ: for methods, classes, packages and lines.
    #[serde(skip)]
    has_own: bool,
    rows: Vec<SumRow>,
    /// Number of groups, of which the largest are listed.
    different: u64,
    /// The own amounts of unlisted groups; the next field: their number.
    rest: u64,
    /// Why they are unlisted: the option that lists them, or their size.
    #[serde(skip)]
    listed_by: &'static str,
}

#[derive(Serialize)]
struct SumRow {
    name: String,
    /// The amount of its own code, in the sort key's unit.
    own: u64,
    /// The amount with all callees; a stack counts once.
    total: u64,
    /// Number of events in `own`.
    count: u64,
    /// What of `own` reached the heap, if it was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    heap: Option<HeapAmount>,
    /// Percentages of the total: of `own`, and of `total`.
    own_share: f64,
    total_share: f64,
}

impl SumTable {
    pub fn new(summed: &ReportSums<'_>, args: &ReportArgs, by: GroupBy) -> Self {
        let (joined, whole) = (summed.joined, summed.whole);
        let wanted = |row: &MergedCounter| summed.is_wanted(row);
        let measure = summed.value;
        let own = joined.own_sums_by_group(0, measure, by, wanted);
        let count = joined.own_sums_by_group(0, Measure::Count, by, wanted);
        let total = match by.includes_callees() {
            true => joined.sum_by_group(0, measure, by, wanted),
            false => own.clone(),
        };
        let heap = summed.heap_interval.map(|interval| {
            let sums = |measure| joined.own_sums_by_group(1, measure, by, wanted);
            (sums(Measure::Value), sums(Measure::Count), interval)
        });
        // Runs from the second on are the kinds of `survive`, in their order.
        let survival = summed.has_survival.then(|| {
            let bytes = |kind| joined.own_sums_by_group(2 + kind, Measure::Value, by, wanted);
            std::array::from_fn::<_, SURVIVAL_KINDS, _>(bytes)
        });
        let amount =
            |sums: &HashMap<GroupKey, u64>, key: &GroupKey| sums.get(key).copied().unwrap_or(0);
        let mut keys: Vec<_> = total.keys().copied().collect();
        let none = HashMap::new();
        let (first, second) = match args.order.sort {
            Some(SortArg::Total) => (&total, &own),
            Some(SortArg::Heap) => (heap.as_ref().map_or(&none, |(bytes, ..)| bytes), &own),
            Some(SortArg::Survive) => (survival.as_ref().map_or(&none, |[old, ..]| old), &own),
            Some(SortArg::Value | SortArg::Count) | None => (&own, &total),
        };
        keys.sort_by_key(|key| {
            (
                Reverse(amount(first, key)),
                Reverse(amount(second, key)),
                *key,
            )
        });
        let top = if args.top == 0 { usize::MAX } else { args.top };
        let is_large = |key: &&GroupKey| args.threshold.admits(amount(first, key), whole);
        let rows = keys.iter().take(top).take_while(is_large).map(|key| {
            let (own, total) = (amount(&own, key), amount(&total, key));
            SumRow {
                name: joined.group_name(*key),
                own,
                total,
                count: amount(&count, key),
                heap: heap.as_ref().map(|(bytes, objects, interval)| {
                    let sum = (amount(objects, key), amount(bytes, key));
                    let estimate = HeapAmount::from_sums(std::iter::once(sum), *interval);
                    let bytes = survival.as_ref().map(|kinds| {
                        let kinds = kinds.each_ref();
                        kinds.map(|sums| amount(sums, key))
                    });
                    match bytes {
                        Some(bytes) => estimate.with_survival(bytes),
                        None => estimate,
                    }
                }),
                own_share: percent_of(own, whole),
                total_share: percent_of(total, whole),
            }
        });
        let rows: Vec<_> = rows.collect();
        let listed = rows.iter().map(|row| row.own).fold(0, u64::saturating_add);
        let all = own.values().copied().fold(0, u64::saturating_add);
        SumTable {
            by: match args.by {
                Some(ReportGrouping::Size) => "size",
                _ => by.name(),
            },
            amounts_in: summed.unit.to_owned(),
            amounts: summed.amounts,
            has_own: by.includes_callees(),
            different: keys.len() as u64,
            rest: all.saturating_sub(listed),
            listed_by: match rows.len() == top {
                true => "--top 0",
                false => "below the threshold",
            },
            rows,
        }
    }

    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let style = TerminalStyle::for_stdout();
        let unit = EscapedText(&self.amounts_in).to_string();
        let has_column = |holds: fn(&HeapAmount) -> bool| {
            let mut amounts = self.rows.iter().filter_map(|row| row.heap.as_ref());
            amounts.any(holds)
        };
        let mut heap = match has_column(|_| true) {
            true => format!("{:>18}  ", "on the heap"),
            false => String::new(),
        };
        if has_column(|heap| heap.survival.is_some()) {
            heap += &format!("{:>10}  {:>10}  ", "died young", "old");
        }
        match self.has_own {
            true => writeln!(
                out,
                "{:>7}  {:>10}  {heap}{:>12}  {:>7}  {:>10}  {}",
                "own", "", "events", "total", "", self.by
            )?,
            false => writeln!(
                out,
                "{:>7}  {:>10}  {heap}{:>12}  {}",
                "", "", "events", self.by
            )?,
        }
        for row in &self.rows {
            let (own, total) = (
                self.amounts.format_amount(row.own, &unit),
                self.amounts.format_amount(row.total, &unit),
            );
            let share = format!("{:>6.2}%", row.own_share);
            let heap = row.heap.as_ref();
            let heap = heap.map_or_else(String::new, |heap| {
                let estimate = match heap.bytes {
                    0 => "no sample".to_owned(),
                    _ => format_estimate(heap),
                };
                let survival = heap.survival.map(|survival| {
                    let died = percent_of(survival.died_bytes, heap.bytes);
                    let old = format_amount(survival.old_bytes as f64, "bytes");
                    format!("{died:>9.0}%  {old:>10}  ")
                });
                format!("{estimate:>18}  {}", survival.unwrap_or_default())
            });
            write!(
                out,
                "{}  {own:>10}  {heap}{:>12}  ",
                style.strong(share),
                self.amounts.format_count(row.count)
            )?;
            if self.has_own {
                write!(out, "{:>6.2}%  {total:>10}  ", row.total_share)?;
            }
            writeln!(
                out,
                "{}",
                style.style_by_name(&row.name, EscapedText(&row.name))
            )?;
        }
        let more = self.different.saturating_sub(self.rows.len() as u64);
        if more > 0 {
            let rest = self.amounts.format_amount(self.rest, &unit);
            writeln!(
                out,
                "{:>7}  {rest:>10}  {} more ({})",
                "",
                format_plural(more, self.by),
                self.listed_by
            )?;
        }
        if self.by == GroupBy::Thread.name() && self.rows.iter().any(|row| row.name.contains('*')) {
            writeln!(
                out,
                "*: threads whose names differ in digits only; what they did one after another, or under tags, is one sum"
            )?;
        }
        Ok(())
    }
}
