//! Sums of events by kind: their number and the sum of their values.

use std::collections::BTreeMap;
use std::fmt;

use lucce_export::{ExportRow, ExportRun};
use lucce_options::kinds::OPEN_RESOURCES;
use serde::Serialize;

use super::super::amounts::format_amount;
use super::super::output::format_plural;

#[derive(Default, Serialize)]
#[serde(transparent)]
pub struct EventLedger(BTreeMap<String, LedgerSum>);

#[derive(Default, Serialize)]
struct LedgerSum {
    count: u64,
    value: u64,
    #[serde(skip)]
    unit: String,
}

impl EventLedger {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds rows. Live objects at a snapshot and open resources are no events: they are reported anew.
    pub fn add_rows(&mut self, run: &ExportRun, rows: &[ExportRow]) {
        for row in rows {
            let Some(kind) = run
                .event_kind(row)
                .filter(|kind| !is_state_kind(&kind.name))
            else {
                continue;
            };
            let sum = self.0.entry(kind.name.clone()).or_default();
            sum.count = sum.count.saturating_add(row.count);
            sum.value = sum.value.saturating_add(row.value);
            sum.unit.clone_from(&kind.unit);
        }
    }
}

/// Whether rows of a kind say what there is, in place of what happened.
fn is_state_kind(name: &str) -> bool {
    name == "inuse" || OPEN_RESOURCES.is_kind(name)
}

/// `alloc: 3 events, 24 bytes; lock: 1 event, 2 ms`
impl fmt::Display for EventLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return write!(f, "nothing");
        }
        for (at, (kind, sum)) in self.0.iter().enumerate() {
            let between = if at == 0 { "" } else { "; " };
            write!(f, "{between}{kind}: {}", format_plural(sum.count, "event"))?;
            if !sum.unit.is_empty() {
                write!(f, ", {}", format_amount(sum.value as f64, &sum.unit))?;
            }
        }
        Ok(())
    }
}
