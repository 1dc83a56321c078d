//! Prints below a trace where its thread was started.

use std::io::{self, Write};

use lucce_decoder::{
    ContextId, FrameDisplay, Profile, StackFrame, StackTrace, StartOrigin, SubmissionIndex,
    trace_submitters,
};
use serde::Serialize;

use crate::style::write_trace;

/// The traces of `--across-threads`.
#[derive(Serialize)]
pub struct ThreadStartTraces {
    /// Innermost thread first.
    traces: Vec<StartTrace>,
    /// The contexts that started the last of these threads, if there are several.
    one_of: Vec<String>,
    /// Their content ids.
    one_of_stacks: Vec<String>,
    /// Whether the agent truncated a chain of submissions.
    cut_off: bool,
}

#[derive(Serialize)]
struct StartTrace {
    id: String,
    /// The content id of the trace.
    stack: String,
    frames: Vec<StackFrame>,
}

impl ThreadStartTraces {
    pub fn new(profile: &Profile, submissions: &SubmissionIndex, id: ContextId) -> Self {
        let (traces, end) = trace_submitters(profile, submissions, id);
        let trace = |trace: StackTrace| StartTrace {
            id: profile.context_number(trace.id).to_string(),
            stack: trace.stack.to_string(),
            frames: trace.frames,
        };
        let cut_off = end == StartOrigin::CutOff;
        let several = match end {
            StartOrigin::Several(ids) => ids,
            StartOrigin::Unknown | StartOrigin::One(_) | StartOrigin::CutOff => Vec::new(),
        };
        let number = |id: &ContextId| profile.context_number(*id).to_string();
        let stack = |id: &ContextId| match profile.decode_trace(*id) {
            Ok(trace) => trace.stack.to_string(),
            Err(_) => String::new(),
        };
        ThreadStartTraces {
            traces: traces.into_iter().map(trace).collect(),
            one_of: several.iter().map(number).collect(),
            one_of_stacks: several.iter().map(stack).collect(),
            cut_off,
        }
    }

    pub fn write(&self, display: FrameDisplay, out: &mut impl Write) -> io::Result<()> {
        for trace in &self.traces {
            writeln!(out, "started by context {}  {}", trace.id, trace.stack)?;
            write_trace(&display.fold_frames(&trace.frames), out)?;
        }
        if self.cut_off {
            writeln!(out, "submitted by one of the tasks before, and so on")?;
        }
        if self.one_of.is_empty() {
            return Ok(());
        }
        writeln!(out, "started by one of these contexts:")?;
        let mut ids = self.one_of.iter().zip(&self.one_of_stacks);
        ids.try_for_each(|(number, stack)| writeln!(out, "\t{number}  {stack}"))
    }
}
