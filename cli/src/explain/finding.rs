//! What a detector finds, and the sums that detectors make.

use std::collections::HashMap;
use std::hash::Hash;

use lucce_command::format_plural;
use lucce_decoder::StackFrame;

use super::prepared_run::{EventSum, PathIndex, PreparedRun, RunContext};

/// One finding of a detector.
#[derive(Clone, Debug)]
pub struct Finding<'f> {
    /// The detector's name.
    pub detector: &'static str,
    /// What happens, with its count.
    pub sentence: String,
    /// The exact number of counted events, or its estimate from samples.
    pub count: u64,
    /// What was counted.
    pub counted: String,
    pub cost: FindingCost,
    /// The line of the program's own code.
    pub place: &'f StackFrame,
    pub path: PathIndex,
    /// What to do.
    pub advice: String,
    /// The command that shows more, without the file.
    pub command: String,
}

/// What a finding costs.
#[derive(Clone, Debug)]
pub struct FindingCost {
    /// From 0 to 1: the order of findings.
    pub share: f64,
    pub text: String,
}

/// Sums of contexts by a key, with the path of the largest context.
pub struct ContextSums<K>(HashMap<K, ContextSum>);

#[derive(Clone, Copy, Debug)]
pub struct ContextSum {
    pub sum: EventSum,
    /// The path of the context with most events.
    pub path: PathIndex,
    /// The number of its events.
    pub most: u64,
}

impl<K: Hash + Eq + Clone + Ord> ContextSums<K> {
    /// Sums the contexts that `key` gives a key.
    pub fn from_contexts<'r, 'f: 'r>(
        contexts: impl Iterator<Item = &'r RunContext<'f>>,
        key: impl Fn(&'r RunContext<'f>) -> Option<K>,
    ) -> ContextSums<K> {
        let mut sums: HashMap<K, ContextSum> = HashMap::new();
        for context in contexts {
            let Some(key) = key(context) else { continue };
            let sum = sums.entry(key).or_insert(ContextSum {
                sum: EventSum::default(),
                path: context.path,
                most: 0,
            });
            sum.sum.add(context.sum);
            if context.sum.count > sum.most {
                (sum.most, sum.path) = (context.sum.count, context.path);
            }
        }
        ContextSums(sums)
    }

    /// All sums, in the order of their keys.
    pub fn into_sorted(self) -> Vec<(K, ContextSum)> {
        let mut sums: Vec<_> = self.0.into_iter().collect();
        sums.sort_by(|a, b| a.0.cmp(&b.0));
        sums
    }
}

/// A line of source, as a key that is ordered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SourceLine<'f> {
    class: &'f str,
    method: &'f str,
    line: i32,
}

impl<'f> SourceLine<'f> {
    pub fn from_frame(frame: &'f StackFrame) -> SourceLine<'f> {
        SourceLine {
            class: &frame.class,
            method: &frame.method,
            line: frame.line,
        }
    }
}

impl<'f> PreparedRun<'f> {
    /// The own line of a path.
    pub fn source_line(&self, path: PathIndex) -> Option<SourceLine<'f>> {
        self.place_frame(path).map(SourceLine::from_frame)
    }

    pub fn place_frame(&self, path: PathIndex) -> Option<&'f StackFrame> {
        self.frame(self.place(path)?)
    }
}

/// Part divided by whole, from 0 to 1.
pub fn share_of(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => (part as f64 / whole as f64).min(1.0),
    }
}

/// A pattern that matches one method, for `--through`.
pub fn through_pattern(frame: &StackFrame) -> String {
    let mut pattern = String::new();
    for c in frame.qualified_method().chars() {
        if !c.is_alphanumeric() && c != '_' {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    format!("'^{pattern}$'")
}

/// `, 40.0 for each of 200 runs of a.b.C.m`, if the runs of the entry are counted.
pub fn per_run(run: &PreparedRun<'_>, path: PathIndex, count: u64) -> String {
    let Some(entry) = run.entry(path) else {
        return String::new();
    };
    match run
        .entry_runs(entry)
        .filter(|runs| run.is_reliable(runs.sum))
    {
        Some(runs) if runs.sum.count > 1 && count >= runs.sum.count => format!(
            ", {:.1} for each of {} of {}.{}",
            count as f64 / runs.sum.count as f64,
            format_plural(runs.sum.count, "run"),
            entry.class,
            entry.method
        ),
        _ => format!(", below {}.{}", entry.class, entry.method),
    }
}
