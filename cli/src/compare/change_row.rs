//! A changed group, as text and JSON.

use std::fmt::Write as _;

use lucce_decoder::{FrameDisplay, GroupKey, StackFrame};
use serde::Serialize;

use super::{AmountChange, LineShift, LineShifts, RunComparison};

#[derive(Serialize)]
pub struct ChangeRow {
    pub name: String,
    /// The content id, for contexts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// Amounts by run.
    pub old: Vec<f64>,
    pub new: Vec<f64>,
    pub change: f64,
    /// The largest difference between runs of one side.
    pub noise: f64,
    /// Whether the change exceeds the noise. `None`: one run on each side.
    pub stands_out: Option<bool>,
    /// Other rows that differ only in lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<LineShift>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<StackFrame>,
    /// Which frames the text shows.
    #[serde(skip)]
    pub display: FrameDisplay,
}

impl ChangeRow {
    /// Builds a row; a change without a key is the total.
    pub fn new(compared: &RunComparison, change: &AmountChange, shifts: &LineShifts) -> ChangeRow {
        let node = match change.key {
            Some(GroupKey::Context(node, _)) => Some(node),
            _ => None,
        };
        ChangeRow {
            name: change
                .key
                .map_or_else(|| "all".to_owned(), |key| compared.merged.group_name(key)),
            stack: node.map(|node| compared.merged.stack_id(node).to_string()),
            change: change.difference(),
            noise: change.noise(),
            stands_out: change.stands_out(),
            moved: change.key.and_then(|key| shifts.get(&key)).cloned(),
            frames: compared.change_frames(change),
            display: compared.display,
            old: change.old.clone(),
            new: change.new.clone(),
        }
    }

    /// A line about rows that differ only in lines; empty if there are none.
    pub fn shift_line(&self, unit: &str) -> String {
        let moved = self.moved.as_ref();
        moved.map_or_else(String::new, |shift| shift.to_text(unit) + "\n")
    }

    pub fn side_means(&self) -> (f64, f64) {
        (super::mean_amount(&self.old), super::mean_amount(&self.new))
    }

    /// The trace as the JVM prints it under an exception; other frames than those of own code are folded.
    pub fn trace_text(&self) -> String {
        let lines = self.display.fold_frames(&self.frames).into_iter();
        lines.fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "\t{line}");
            text
        })
    }
}
