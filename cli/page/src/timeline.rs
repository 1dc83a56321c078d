//! Events over time: steps of equal width, by kind, and by context for selected parts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use lucce_stream::{EventStream, StreamEvent};

use lucce_decoder::EventMeaning;

use super::columns::{TimelineCells, TimelineColumns, TimelineSeries};
use super::page_sums::PageSums;

/// Approximate maximum number of sums by step and context. Contexts with most events have sums of their own; the others
/// have one sum for each step and kind.
const MAX_CELLS: usize = 60_000;

/// Maximum number of steps.
const MAX_STEPS: u64 = 1000;

/// The minimum width. Widths are 1, 2 or 5 times a power of ten, in nanoseconds.
const MIN_STEP_WIDTH_NS: u64 = 1_000_000;

/// One run's events by step.
pub struct EventTimeline {
    width: u64,
    /// The first step with an event; `count`: the number of steps.
    first: u64,
    count: usize,
    sums: BTreeMap<(u32, EventMeaning), (u64, i64)>,
}

impl EventTimeline {
    /// Sums a stream's events by step. `meaning`: the meaning and value of an event; `None`: the log does not explain it.
    pub fn new(
        stream: &EventStream,
        mut meaning: impl FnMut(&StreamEvent) -> Option<(EventMeaning, i64)>,
    ) -> EventTimeline {
        let times = || {
            stream
                .iter_events()
                .map(|event| stream.since_start(event.clock))
        };
        let (from, to) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        let width = step_width(to - from);
        let first = from / width;
        let mut sums: BTreeMap<_, (u64, i64)> = BTreeMap::new();
        for event in stream.iter_events() {
            if let Some((meaning, value)) = meaning(&event) {
                let step = (stream.since_start(event.clock) / width - first) as u32;
                let sum = sums.entry((step, meaning)).or_default();
                *sum = (sum.0 + 1, sum.1.saturating_add(value));
            }
        }
        EventTimeline {
            width,
            first,
            count: (to / width - first + 1) as usize,
            sums,
        }
    }

    pub fn to_columns(
        &self,
        run: usize,
        kinds: usize,
        gathered: &mut PageSums<'_>,
    ) -> TimelineColumns {
        let mut line = TimelineColumns {
            run,
            start: self.first * self.width,
            width: self.width,
            count: self.count,
            kinds: vec![None; kinds],
            cells: TimelineCells::default(),
        };
        let frequent = self.frequent_contexts(gathered);
        let mut cells: BTreeMap<(u32, u32), (u64, i64)> = BTreeMap::new();
        for ((step, meaning), (count, value)) in &self.sums {
            line.add_events(*step, meaning.kind, *count, *value);
            let own = gathered
                .find_context(*meaning)
                .filter(|context| frequent.contains(context));
            let context =
                own.unwrap_or_else(|| gathered.rest_context(meaning.kind, meaning.is_idle));
            let cell = cells.entry((*step, context)).or_default();
            *cell = (cell.0 + count, cell.1.saturating_add(*value));
        }
        for ((step, context), (count, value)) in cells {
            line.cells.bucket.push(step);
            line.cells.context.push(context);
            line.cells.count.push(count);
            line.cells.value.push(value);
        }
        line
    }

    /// The contexts of the page with most events, within [`MAX_CELLS`] sums.
    fn frequent_contexts(&self, gathered: &PageSums<'_>) -> HashSet<u32> {
        let mut sums: BTreeMap<u32, (u64, usize)> = BTreeMap::new();
        for ((_, meaning), (count, _)) in &self.sums {
            if let Some(context) = gathered.find_context(*meaning) {
                let sum = sums.entry(context).or_default();
                *sum = (sum.0 + count, sum.1 + 1);
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_unstable_by_key(|(context, (count, _))| (Reverse(*count), *context));
        let mut room = MAX_CELLS;
        let fitting = sums.into_iter().take_while(|(_, (_, cells))| {
            let fits = room >= *cells;
            room = room.saturating_sub(*cells);
            fits
        });
        fitting.map(|(context, _)| context).collect()
    }
}

impl TimelineColumns {
    fn add_events(&mut self, step: u32, kind: u32, count: u64, value: i64) {
        let steps = self.count;
        let Some(series) = self.kinds.get_mut(kind as usize) else {
            return;
        };
        let series = series.get_or_insert_with(|| TimelineSeries {
            count: vec![0; steps],
            value: vec![0; steps],
        });
        if let (Some(counts), Some(values)) = (
            series.count.get_mut(step as usize),
            series.value.get_mut(step as usize),
        ) {
            *counts += count;
            *values = values.saturating_add(value);
        }
    }
}

fn step_width(duration: u64) -> u64 {
    let least = (duration / MAX_STEPS + 1).max(MIN_STEP_WIDTH_NS);
    let mut width = MIN_STEP_WIDTH_NS;
    for factor in [2, 5, 10].into_iter().cycle() {
        if width >= least {
            return width;
        }
        let power = 10_u64.pow(width.ilog10());
        width = power.saturating_mul(factor);
    }
    width
}

#[cfg(test)]
mod timeline_tests {
    use super::*;

    #[test]
    fn steps_are_round_and_not_too_many() {
        let second = 1_000_000_000;
        let widths = [
            0,
            second / 2,
            second,
            3 * second,
            60 * second,
            3600 * second,
        ]
        .map(step_width);
        assert_eq!(widths, [1, 1, 2, 5, 100, 5000].map(|ms| ms * 1_000_000));
    }
}
