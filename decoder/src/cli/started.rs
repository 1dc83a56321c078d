//! Who started a thread, below its trace.

use std::io::{self, Write};

use lucce_decoder::{ContextId, Profile, StackFrame, StackTrace, StartedFrom, Submissions};
use serde::Serialize;

/// For `--across-threads`.
#[derive(Serialize)]
pub struct StartedBy {
    /// Innermost thread first.
    traces: Vec<Trace>,
    /// If the last of those threads was started from several contexts, one after the other.
    one_of: Vec<String>,
    /// More was not followed: a task that a task submitted, and so on.
    cut_off: bool,
}

#[derive(Serialize)]
struct Trace {
    id: String,
    /// Its content id.
    stack: String,
    frames: Vec<StackFrame>,
}

impl StartedBy {
    pub fn new(profile: &Profile, submissions: &Submissions, id: ContextId) -> Self {
        let (traces, end) = profile.started_by(submissions, id);
        let trace = |trace: StackTrace| Trace {
            id: profile.number(trace.id).to_string(),
            stack: trace.stack.to_string(),
            frames: trace.frames,
        };
        StartedBy {
            traces: traces.into_iter().map(trace).collect(),
            cut_off: end == StartedFrom::CutOff,
            one_of: match end {
                StartedFrom::Several(ids) => {
                    let numbers = ids.iter().map(|id| profile.number(*id).to_string());
                    numbers.collect()
                }
                StartedFrom::Unknown | StartedFrom::One(_) | StartedFrom::CutOff => Vec::new(),
            },
        }
    }

    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for trace in &self.traces {
            writeln!(out, "started by context {}  {}", trace.id, trace.stack)?;
            trace
                .frames
                .iter()
                .try_for_each(|frame| writeln!(out, "\tat {frame}"))?;
        }
        if self.cut_off {
            writeln!(out, "submitted by one of the tasks before, and so on")?;
        }
        match self.one_of.is_empty() {
            true => Ok(()),
            false => writeln!(out, "started by one of {}", self.one_of.join(", ")),
        }
    }
}
