//! Events over time: steps of equal width, by kind, and by context for parts that are chosen.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use lucce_stream::{Event, Stream};

use crate::joined::EventMeaning;

use super::columns::{Cells, Line, Series};
use super::gather::Gathered;

/// A page has sums by step and context for the contexts with most events, about so many sums; events of the
/// other ones are one sum for each step and kind.
const CELLS: usize = 60_000;

/// At most so many steps.
const STEPS: u64 = 1000;

/// Widths are 1, 2 or 5 times a power of ten, in nanoseconds; none is narrower than this.
const NARROWEST: u64 = 1_000_000;

/// One run's events by step.
pub struct Steps {
    width: u64,
    /// The first step with an event, and how many there are.
    first: u64,
    count: usize,
    sums: BTreeMap<(u32, EventMeaning), (u64, i64)>,
}

impl Steps {
    /// `meaning`: what an event is, and its value; none, if the log does not say.
    pub fn new(
        stream: &Stream,
        mut meaning: impl FnMut(&Event) -> Option<(EventMeaning, i64)>,
    ) -> Steps {
        let times = || stream.events().map(|event| stream.since_start(event.clock));
        let (from, to) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        let width = width(to - from);
        let first = from / width;
        let mut sums: BTreeMap<_, (u64, i64)> = BTreeMap::new();
        for event in stream.events() {
            if let Some((meaning, value)) = meaning(&event) {
                let step = (stream.since_start(event.clock) / width - first) as u32;
                let sum = sums.entry((step, meaning)).or_default();
                *sum = (sum.0 + 1, sum.1.saturating_add(value));
            }
        }
        Steps {
            width,
            first,
            count: (to / width - first + 1) as usize,
            sums,
        }
    }

    pub fn columns(&self, run: usize, kinds: usize, gathered: &mut Gathered<'_>) -> Line {
        let mut line = Line {
            run,
            start: self.first * self.width,
            width: self.width,
            count: self.count,
            kinds: vec![None; kinds],
            cells: Cells::default(),
        };
        let frequent = self.frequent(gathered);
        let mut cells: BTreeMap<(u32, u32), (u64, i64)> = BTreeMap::new();
        for ((step, meaning), (count, value)) in &self.sums {
            line.add(*step, meaning.kind, *count, *value);
            let own = gathered
                .of(*meaning)
                .filter(|context| frequent.contains(context));
            let context = own.unwrap_or_else(|| gathered.others(meaning.kind, meaning.is_idle));
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

    /// Contexts of the page with most events, as many as have [`CELLS`] sums.
    fn frequent(&self, gathered: &Gathered<'_>) -> HashSet<u32> {
        let mut sums: BTreeMap<u32, (u64, usize)> = BTreeMap::new();
        for ((_, meaning), (count, _)) in &self.sums {
            if let Some(context) = gathered.of(*meaning) {
                let sum = sums.entry(context).or_default();
                *sum = (sum.0 + count, sum.1 + 1);
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_unstable_by_key(|(context, (count, _))| (Reverse(*count), *context));
        let mut room = CELLS;
        let fitting = sums.into_iter().take_while(|(_, (_, cells))| {
            let fits = room >= *cells;
            room = room.saturating_sub(*cells);
            fits
        });
        fitting.map(|(context, _)| context).collect()
    }
}

impl Line {
    fn add(&mut self, step: u32, kind: u32, count: u64, value: i64) {
        let steps = self.count;
        let Some(series) = self.kinds.get_mut(kind as usize) else {
            return;
        };
        let series = series.get_or_insert_with(|| Series {
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

fn width(duration: u64) -> u64 {
    let least = (duration / STEPS + 1).max(NARROWEST);
    let mut width = NARROWEST;
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
mod tests {
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
        .map(width);
        assert_eq!(widths, [1, 1, 2, 5, 100, 5000].map(|ms| ms * 1_000_000));
    }
}
