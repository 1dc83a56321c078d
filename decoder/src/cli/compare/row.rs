//! One thing that changed, as it is shown and as JSON has it.

use std::fmt::Write as _;

use lucce_decoder::{Key, StackFrame};
use serde::Serialize;

use super::{Change, Compared, LineShift, LineShifts};

#[derive(Serialize)]
pub struct Row {
    pub name: String,
    /// The content id, of a context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// By run.
    pub old: Vec<f64>,
    pub new: Vec<f64>,
    pub change: f64,
    /// How far runs of one side lie apart.
    pub noise: f64,
    /// None: one run on each side.
    pub stands_out: Option<bool>,
    /// There are others that differ by line alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<LineShift>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<StackFrame>,
}

impl Row {
    /// A change without a key: all together.
    pub fn new(compared: &Compared, change: &Change, shifts: &LineShifts) -> Row {
        let node = match change.key {
            Some(Key::Context(node, _)) => Some(node),
            _ => None,
        };
        Row {
            name: change
                .key
                .map_or_else(|| "all".to_owned(), |key| compared.joined.name(key)),
            stack: node.map(|node| compared.joined.stack(node).to_string()),
            change: change.by(),
            noise: change.noise(),
            stands_out: change.stands_out(),
            moved: change.key.and_then(|key| shifts.get(&key)).cloned(),
            frames: node.map_or_else(Vec::new, |node| compared.joined.trace(node)),
            old: change.old.clone(),
            new: change.new.clone(),
        }
    }

    /// That other rows differ by line alone: a line of its own; empty if there are none.
    pub fn shift_line(&self, unit: &str) -> String {
        let moved = self.moved.as_ref();
        moved.map_or_else(String::new, |shift| shift.text(unit) + "\n")
    }

    pub fn means(&self) -> (f64, f64) {
        (super::mean(&self.old), super::mean(&self.new))
    }

    /// As the JVM prints it under an exception.
    pub fn trace(&self) -> String {
        let frames = self.frames.iter();
        frames.fold(String::new(), |mut text, frame| {
            let _ = writeln!(text, "\tat {frame}");
            text
        })
    }
}
