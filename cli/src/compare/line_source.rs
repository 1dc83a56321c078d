//! Lines for contexts that were joined without lines: those of the newest run.

use std::collections::HashMap;

use lucce_decoder::{ContextId, GroupKey, MergedProfile, NodeId, Profile, StackFrame};

/// A run that knows the lines of its contexts.
pub struct LineSource {
    profile: Profile,
    /// The run's contexts of each row.
    contexts: HashMap<(NodeId, Option<u32>), Vec<ContextId>>,
}

impl LineSource {
    /// `run`: the number of the profile among the merged runs.
    pub fn new(profile: Profile, merged: &MergedProfile, run: usize) -> LineSource {
        let mut contexts: HashMap<_, Vec<ContextId>> = HashMap::new();
        for row in merged.filter_counters(run, |row| row.count > 0) {
            let ids = contexts.entry((row.node, row.what)).or_default();
            if ids.last() != Some(&row.id) {
                ids.push(row.id);
            }
        }
        LineSource { profile, contexts }
    }

    /// Sets the lines of a row's frames, innermost first. A frame for which the run has several lines gets none.
    pub fn set_lines(&self, key: GroupKey, frames: &mut [StackFrame]) {
        let GroupKey::Context(node, what) = key else {
            return;
        };
        let ids = self.contexts.get(&(node, what)).into_iter().flatten();
        let traces = ids.filter_map(|id| self.profile.decode_trace(*id).ok());
        let mut lines: Vec<Option<i32>> = Vec::new();
        for (number, trace) in traces.enumerate() {
            if trace.frames.len() != frames.len() {
                return;
            }
            let own = trace.frames.iter().map(|frame| frame.line);
            match number {
                0 => lines.extend(own.map(Some)),
                _ => lines
                    .iter_mut()
                    .zip(own)
                    .for_each(|(line, own)| *line = line.filter(|line| *line == own)),
            }
        }
        for (frame, line) in frames.iter_mut().zip(lines) {
            frame.line = line.unwrap_or(frame.line);
        }
    }
}
