//! Sums of reported events.

use std::collections::HashSet;

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{EventContext, KindTotal, MergedCounter};
use serde::Serialize;

use crate::amounts::AmountFormat;
use crate::output::format_plural;

#[derive(Serialize)]
pub(super) struct ReportTotals {
    pub(super) contexts: u64,
    pub(super) count: u64,
    pub(super) value: u64,
    /// The value, if it is in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    /// The longest value, if the kind has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) longest: Option<u64>,
}

impl ReportTotals {
    pub(super) fn sum_contexts<'c>(
        kind: &KindTotal,
        contexts: impl Iterator<Item = &'c EventContext>,
    ) -> Self {
        let (mut traces, mut count, mut value) = (HashSet::new(), 0_u64, 0_u64);
        let mut longest = 0;
        for context in contexts {
            longest = context.longest.max(longest);
            traces.insert(context.stack);
            count = count.saturating_add(context.count);
            value = value.saturating_add(context.value);
        }
        ReportTotals {
            contexts: traces.len() as u64,
            count,
            value,
            bytes: value_in_bytes(kind, value),
            longest: (longest > 0).then_some(longest),
        }
    }

    pub(super) fn from_rows<'c>(
        kind: &KindTotal,
        rows: impl Iterator<Item = &'c MergedCounter>,
    ) -> Self {
        let (mut traces, mut count, mut value) = (HashSet::new(), 0_u64, 0_u64);
        for row in rows {
            traces.insert(row.node);
            count = count.saturating_add(row.count);
            value = value.saturating_add(row.value);
        }
        ReportTotals {
            contexts: traces.len() as u64,
            count,
            value,
            bytes: value_in_bytes(kind, value),
            longest: None,
        }
    }

    /// `12 bytes, 3 events in 2 contexts`
    pub(super) fn to_text(&self, unit: &str, amounts: AmountFormat) -> String {
        if self.count == 0 {
            return "none".to_owned();
        }
        let value = format_value(self.value, unit, amounts);
        let value = value.map_or_else(String::new, |text| text + ", ");
        let contexts = format_plural(self.contexts, "context");
        let longest =
            format_longest(self.longest, unit).map_or_else(String::new, |text| text + ", ");
        format!(
            "{value}{longest}{} in {contexts}",
            format_plural(amounts.round_amount(self.count), "event")
        )
    }
}

/// `longest 1.2 ms`
pub(super) fn format_longest(longest: Option<u64>, unit: &str) -> Option<String> {
    let text = format_value(longest?, unit, AmountFormat::for_estimates(false))?;
    Some(format!("longest {text}"))
}

pub(super) fn value_in_bytes(kind: &KindTotal, value: u64) -> Option<u64> {
    kind.is_bytes().then_some(value)
}

/// Formats a value with its unit, exactly if that is short; `None`: the kind has no values.
pub(super) fn format_value(value: u64, unit: &str, amounts: AmountFormat) -> Option<String> {
    match (value, unit) {
        (0, "") => None,
        (value, "") => Some(format!("value {}", amounts.format_count(value))),
        (value, unit) => Some(amounts.format_amount(value, &EscapedText(unit).to_string())),
    }
}
