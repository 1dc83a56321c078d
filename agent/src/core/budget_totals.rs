//! Sums in the log's mapped pages that show what a budget has chosen and what it cost.

use lucce_tracelog::{CounterBlock, TotalCounter};

use crate::registry::agent_log::AgentLog;

/// Counts of the log by their position among the names. They are missing if the log is full.
pub struct BudgetTotals(Option<CounterBlock<TotalCounter>>);

impl BudgetTotals {
    /// Adds the counts with these names to the log.
    pub fn new(log: &AgentLog, names: &[&'static str]) -> BudgetTotals {
        BudgetTotals(log.add_totals(names).ok())
    }

    pub fn add_to_total(&self, index: usize, more: u64) {
        if let Some(counter) = self.0.as_ref().and_then(|totals| totals.get(index)) {
            counter.add(more);
        }
    }

    /// Changes a total from one value to another.
    pub fn move_total(&self, index: usize, (from, to): (u32, u32)) {
        self.add_to_total(index, u64::from(to).wrapping_sub(u64::from(from)));
    }
}
