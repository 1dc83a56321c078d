//! Who started a thread, below its trace.

use std::io::{self, Write};

use lucce_decoder::{ContextId, Profile, StackFrame, StackTrace, StartedFrom};
use serde::Serialize;

/// For `--across-threads`.
#[derive(Serialize)]
pub struct StartedBy {
    /// Innermost thread first.
    traces: Vec<Trace>,
    /// If the last of those threads was started from several contexts, one after the other.
    one_of: Vec<String>,
}

#[derive(Serialize)]
struct Trace {
    id: String,
    frames: Vec<StackFrame>,
}

impl StartedBy {
    pub fn new(profile: &Profile, id: ContextId) -> Self {
        let (traces, end) = profile.started_by(id);
        let trace = |trace: StackTrace| Trace {
            id: trace.id.to_string(),
            frames: trace.frames,
        };
        StartedBy {
            traces: traces.into_iter().map(trace).collect(),
            one_of: match end {
                StartedFrom::Several(ids) => ids.iter().map(ToString::to_string).collect(),
                StartedFrom::Unknown | StartedFrom::One(_) => Vec::new(),
            },
        }
    }

    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for trace in &self.traces {
            writeln!(out, "started by context {}", trace.id)?;
            trace
                .frames
                .iter()
                .try_for_each(|frame| writeln!(out, "\tat {frame}"))?;
        }
        match self.one_of.is_empty() {
            true => Ok(()),
            false => writeln!(out, "started by one of {}", self.one_of.join(", ")),
        }
    }
}
